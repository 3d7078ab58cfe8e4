"""Checkpoints: a folder with a network's weights, what they were trained for, and whatever a trainer wants back.

    model.safetensors     the weights
    config.yaml           the run's resolved configuration, for people
    trainer.safetensors   optimizer and replay, where training may go on from here
    trainer.json          counters, likewise
    manifest.json         format version, variant, network, versions, commit, and each file's SHA-256

Whatever comes from disk is data: nothing is unpickled, imported or made by a name found in a file, and sizes are
checked before memory is taken.
"""

import hashlib
import itertools
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from agents.agent import Agent
from agents.mcts import MCTSAgent, MCTSConfig
from agents.networks.inference import NetworkEvaluator, TorchBackend
from agents.networks.residual import ResidualConfig, ResidualNetwork
from reversi_env import Variant
from reversi_env.durable import new_folder

FORMAT_VERSION = 1
CHECKPOINTS = "checkpoints"  # the folder of a run that holds them

_MANIFEST, _MODEL, _CONFIG = "manifest.json", "model.safetensors", "config.yaml"
_TRAINER_TENSORS, _TRAINER_COUNTERS = "trainer.safetensors", "trainer.json"
_FILES = frozenset((_MODEL, _CONFIG, _TRAINER_TENSORS, _TRAINER_COUNTERS))
_LARGEST_TEXT = 1 << 20  # bytes of a JSON or YAML file


class CheckpointError(ValueError):
    """A checkpoint that is not there, damaged, or not to be used; the sentence says which file and why."""


@dataclass
class Checkpoint:
    """A network and where it comes from."""

    network: ResidualNetwork
    variant: Variant
    config_yaml: str = ""
    commit: str | None = None
    trainer_tensors: dict[str, Tensor] = field(default_factory=dict)
    trainer_counters: dict[str, Any] = field(default_factory=dict)


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Writes a checkpoint whole or not at all.

    Raises FileExistsError where the folder is there, OSError on a full disk.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(folder) as temporary:
        try:
            save_file(_contiguous(checkpoint.network.state_dict()), temporary / _MODEL)
            if checkpoint.trainer_counters:
                save_file(_contiguous(checkpoint.trainer_tensors), temporary / _TRAINER_TENSORS)
        except SafetensorError as error:  # how safetensors reports a full disk
            raise OSError(f"{folder} cannot be written: {error}") from None
        if checkpoint.trainer_counters:
            (temporary / _TRAINER_COUNTERS).write_text(json.dumps(checkpoint.trainer_counters, indent=1))
        (temporary / _CONFIG).write_text(checkpoint.config_yaml)
        manifest = {
            "format_version": FORMAT_VERSION,
            "variant": asdict(checkpoint.variant),
            "network": {"kind": "residual", **asdict(checkpoint.network.config)},
            "files": {file.name: _sha256(file) for file in sorted(temporary.iterdir())},
            "versions": {name: _version(name) for name in ("reversi-lab", "torch", "numpy")},
            "commit": checkpoint.commit,
        }
        (temporary / _MANIFEST).write_text(json.dumps(manifest, indent=1))


def read_checkpoint(folder: Path, with_trainer: bool = False) -> Checkpoint:
    """Returns the checkpoint in a folder, its files checked against their digests.

    Raises CheckpointError with the file and the fault: missing, cut short, edited, of a newer format.
    """
    manifest = _read_manifest(folder)
    files = manifest["files"]
    wanted = [_MODEL, _CONFIG] + ([_TRAINER_TENSORS, _TRAINER_COUNTERS] if with_trainer else [])
    for name in wanted:
        if name not in files:
            what = "holds no trainer state, so training cannot go on from it" if with_trainer else f"holds no {name}"
            raise CheckpointError(f"the checkpoint {folder} {what}")
        _check_digest(folder / name, files[name])
    try:
        variant = Variant(**manifest["variant"])
        kind, sizes = manifest["network"].get("kind"), dict(manifest["network"])
        sizes.pop("kind", None)
        if kind != "residual":
            raise ValueError(f"a network of kind {kind!r} is not known here; 'residual' is")
        network_config = ResidualConfig(**sizes)
    except (TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"{folder / _MANIFEST} describes no network or variant that can be used: {error}"
        ) from None
    checkpoint = Checkpoint(
        network=_read_network(folder / _MODEL, network_config),
        variant=variant,
        config_yaml=_read_text(folder / _CONFIG),
        commit=manifest.get("commit"),
    )
    if with_trainer:
        try:
            checkpoint.trainer_tensors = load_file(folder / _TRAINER_TENSORS)
        except (SafetensorError, OSError) as error:
            raise CheckpointError(f"{folder / _TRAINER_TENSORS} is no file of tensors: {error}") from None
        checkpoint.trainer_counters = _read_json(folder / _TRAINER_COUNTERS)
    return checkpoint


def find_checkpoint(path: Path) -> Path:
    """Returns the checkpoint at `path`: itself, or the newest undamaged one of a run's folder.

    Raises CheckpointError where there is none, with what was found.
    """
    if (path / _MANIFEST).is_file():
        return path
    if not path.exists():
        raise CheckpointError(f"there is no checkpoint or run at {path}")
    candidates = checkpoints_of(path)
    faults = []
    for candidate in reversed(candidates):
        try:
            for name, digest in _read_manifest(candidate)["files"].items():
                _check_digest(candidate / name, digest)
            return candidate
        except CheckpointError as error:
            faults.append(str(error))
    if faults:
        raise CheckpointError(f"every checkpoint of {path} is damaged; the newest: {faults[0]}")
    raise CheckpointError(
        f"{path} holds no checkpoint: a run has some under {CHECKPOINTS}/, a checkpoint has a {_MANIFEST}"
    )


def checkpoints_of(run: Path) -> list[Path]:
    """Returns the folders of a run's checkpoints, the oldest first."""
    folder = run / CHECKPOINTS
    if not folder.is_dir():
        return []
    found = [entry for entry in folder.iterdir() if entry.name.isdecimal() and entry.is_dir()]
    return sorted(found, key=lambda entry: int(entry.name))


def prune_checkpoints(run: Path, num_kept: int) -> None:
    """Removes all but the newest checkpoints of a run, and what a killed process left half written."""
    for unfinished in (run / CHECKPOINTS).glob(".[0-9]*"):
        shutil.rmtree(unfinished, ignore_errors=True)
    for folder in checkpoints_of(run)[:-num_kept]:
        shutil.rmtree(folder, ignore_errors=True)


def set_aside_after(checkpoint: Path) -> list[Path]:
    """Renames the run's checkpoints newer than this one, which are damaged, and returns where they are now.

    Else a run that goes on from `checkpoint` would take their names for its own, and keep them for the newest.
    """
    moved = []
    for newer in checkpoints_of(checkpoint.parents[1]):
        if int(newer.name) > int(checkpoint.name):
            aside = next(
                path for number in itertools.count(1) if not (path := newer.with_suffix(f".damaged-{number}")).exists()
            )
            moved.append(newer.rename(aside))
    return moved


def load_agent(path: Path, config: MCTSConfig) -> Agent:
    """Returns the player that searches with a checkpoint's network; `path` is a checkpoint or a run.

    Raises CheckpointError for a checkpoint that cannot be used.
    """
    checkpoint = read_checkpoint(find_checkpoint(path))
    evaluator = NetworkEvaluator(TorchBackend(checkpoint.network, torch.device("cpu")))
    return MCTSAgent(evaluator, config, name=str(path), variant=checkpoint.variant)


def _contiguous(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / _MANIFEST
    manifest = _read_json(path)
    found = manifest.get("format_version")
    if not isinstance(found, int):
        raise CheckpointError(f"{path} is not the manifest of a checkpoint: it has no format_version")
    if found > FORMAT_VERSION:
        raise CheckpointError(
            f"{folder} has format version {found}, and this version of reversi-lab reads up to {FORMAT_VERSION}; "
            "a newer reversi-lab wrote it, and reads it"
        )
    files = manifest.get("files")
    if not isinstance(files, dict) or not isinstance(manifest.get("variant"), dict):
        raise CheckpointError(f"{path} is not the manifest of a checkpoint: it names no files or no variant")
    if not isinstance(manifest.get("network"), dict):
        raise CheckpointError(f"{path} is not the manifest of a checkpoint: it names no network")
    if unknown := set(files) - _FILES:
        raise CheckpointError(f"{path} names a file that is no part of a checkpoint: {sorted(unknown)[0]!r}")
    return manifest


def _read_text(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST_TEXT:
            raise CheckpointError(f"{path} has {path.stat().st_size} bytes, more than any such file needs")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(_read_text(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(f"{path} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} holds no JSON object")
    return content


def _check_digest(path: Path, digest: object) -> None:
    try:
        found = _sha256(path)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from None
    if found != digest:
        raise CheckpointError(
            f"{path} is not the file that was saved: it was cut short or edited (its SHA-256 differs)"
        )


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_network(path: Path, config: ResidualConfig) -> ResidualNetwork:
    """Returns the network of that size with the weights of a file; shapes are compared before anything is loaded."""
    with torch.device("meta"):  # shapes without memory
        network = ResidualNetwork(config)
    wanted = {name: list(tensor.shape) for name, tensor in network.state_dict().items()}
    try:
        with safe_open(path, framework="pt") as file:
            found = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118 (not a dict)
        if found != wanted:
            name = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))[0]
            raise CheckpointError(
                f"{path} does not fit the network of its manifest: "
                f"{name} has shape {found.get(name)}, expected {wanted.get(name)}"
            )
        network.load_state_dict(load_file(path), assign=True)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is no file of weights: {error}") from None
    return network


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
