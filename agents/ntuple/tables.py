"""The weights of an n-tuple evaluation, in memory and as a folder.

    weights.safetensors   the weights, int16 [stages, weights], in units of 1/256 disc
    manifest.json         format version, variant, patterns, error model, what it was trained with, versions, SHA-256

Configurations that share a weight are stored once; `layout` says which do. Whatever comes from disk is data: sizes are
checked before memory is taken, and nothing is unpickled, imported or made by a name found in a file.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from agents.manifest import MANIFEST, CheckpointError, check_digest, digest_of, read_bytes, read_manifest, versions_of
from agents.ntuple.layout import UNIT, Layout, layout_of
from reversi_env import Variant
from reversi_env.durable import new_folder

FORMAT_VERSION = 1

_KIND = "ntuple"
_WHAT = "n-tuple tables"
_WEIGHTS = "weights"
_FILE = "weights.safetensors"
_LARGEST_HEADER = 1 << 16  # bytes of a safetensors file before its numbers

NO_MODEL = np.empty(0)  # as an error model: nobody knows how far searches err
MODEL_TERMS = 5
_LARGEST_TERM = 1000.0


@dataclass(frozen=True)
class Tables:
    """An n-tuple evaluation of a variant's positions, for the side to move; the variant's goal is in the weights."""

    variant: Variant
    weights: np.ndarray  # float32 [num_stages, num_weights], in discs
    trained_with: Mapping[str, Any] = field(default_factory=dict)  # what the manifest says of it, for people
    error_model: np.ndarray = field(default_factory=NO_MODEL.copy)  # float64 [5] or [0], see `agents.search.probcut`

    def __post_init__(self) -> None:
        if self.weights.shape != (wanted := _shape(self.layout)):
            raise ValueError(f"tables for {self.layout.size} columns have the shape {wanted}, not {self.weights.shape}")
        _checked_terms(self.error_model.tolist())

    @classmethod
    def zeros(cls, variant: Variant) -> "Tables":
        """Returns tables that know nothing."""
        return cls(variant, np.zeros(_shape(layout_of(variant.size)), np.float32))

    @property
    def layout(self) -> Layout:
        return layout_of(self.variant.size)


def write_tables(folder: Path, tables: Tables, commit: str | None = None) -> None:
    """Writes tables whole or not at all, weights rounded to 16 bits.

    Raises FileExistsError where the folder is there, OSError on a full disk.
    """
    content = save({_WEIGHTS: tables.layout.rounded(tables.weights)})
    manifest = {
        "format_version": FORMAT_VERSION,
        "kind": _KIND,
        "variant": asdict(tables.variant),
        **tables.layout.described,
        "files": {_FILE: digest_of(content)},
        "error_model": tables.error_model.tolist(),
        "trained_with": dict(tables.trained_with),
        "versions": versions_of("reversi-lab", "numpy"),
        "commit": commit,
    }
    folder.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(folder) as temporary:
        (temporary / _FILE).write_bytes(content)
        (temporary / MANIFEST).write_text(json.dumps(manifest, indent=1))


def read_tables(folder: Path) -> Tables:
    """Returns the tables in a folder; raises CheckpointError with the file and the fault."""
    manifest = read_manifest(folder, _WHAT, FORMAT_VERSION)
    path = folder / MANIFEST
    if manifest.get("kind") != _KIND:
        raise CheckpointError(f"{path} is not the manifest of {_WHAT}: its kind is {manifest.get('kind')!r}")
    try:
        variant = Variant(**manifest["variant"])
        digest = manifest["files"][_FILE]
        trained_with = dict(manifest["trained_with"])
        error_model = _checked_terms(manifest.get("error_model", []))  # older ones have none
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} describes no {_WHAT} that can be used: {error}") from None
    layout = layout_of(variant.size)
    if any(manifest.get(name) != told for name, told in layout.described.items()):
        raise CheckpointError(f"{path} tells of other patterns or stages than this version of reversi-lab has")
    weights = _read_weights(folder / _FILE, digest, layout)
    return Tables(variant, weights, trained_with, np.array(error_model, np.float64))


def is_tables(folder: Path) -> bool:
    """Returns whether a folder seems to hold n-tuple tables, and not a network or nothing."""
    try:
        return read_manifest(folder, _WHAT, FORMAT_VERSION).get("kind") == _KIND
    except CheckpointError:
        return False


def _read_weights(path: Path, digest: object, layout: Layout) -> np.ndarray:
    shape = _shape(layout)
    content = read_bytes(path, 2 * shape[0] * shape[1] + _LARGEST_HEADER)
    check_digest(path, content, digest)
    try:
        found = load(content)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise CheckpointError(f"{path} is no file of weights: {error}") from None
    if set(found) != {_WEIGHTS} or found[_WEIGHTS].dtype != np.int16 or found[_WEIGHTS].shape != shape:
        described = ", ".join(f"{name} {array.dtype} {list(array.shape)}" for name, array in found.items())
        raise CheckpointError(f"{path} holds {described or 'nothing'}; expected {_WEIGHTS} int16 {list(shape)}")
    return found[_WEIGHTS].astype(np.float32) / UNIT


def _checked_terms(found: object) -> list[float]:
    """Returns the terms of an error model, perhaps none; raises ValueError for anything else."""
    if isinstance(found, list) and len(found) in (0, MODEL_TERMS):
        terms = [term for term in found if type(term) in (int, float) and abs(term) <= _LARGEST_TERM]
        if len(terms) == len(found):
            return terms
    raise ValueError(f"an error model is {MODEL_TERMS} numbers of at most ±{_LARGEST_TERM:.0f}, or none")


def _shape(layout: Layout) -> tuple[int, int]:
    return layout.num_stages, layout.num_weights
