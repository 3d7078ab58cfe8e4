"""The checkpoints in a run's folder: which there are, and which is to be used. Needs no torch.

A checkpoint is a folder with a manifest; `agents.checkpoint` tells what else is in it. That of algorithm=ntuple
holds tables, as `agents.ntuple.tables` writes them, in a folder of its own.
"""

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agents.manifest import MANIFEST, CheckpointError, check_file, read_manifest
from agents.ntuple.tables import is_tables

FORMAT_VERSION = 2  # with 1 a network told a value alone; n-tuples are as they were
CHECKPOINTS = "checkpoints"  # the folder of a run that holds them
MODEL, CONFIG = "model.safetensors", "config.yaml"
TRAINER_TENSORS, TRAINER_COUNTERS = "trainer.safetensors", "trainer.json"
TABLES = "tables"  # a folder

_FILES = frozenset(
    (MODEL, CONFIG, TRAINER_TENSORS, TRAINER_COUNTERS, f"{TABLES}/{MANIFEST}", f"{TABLES}/weights.safetensors")
)


def find_checkpoint(path: Path, check: Callable[[Path], object] | None = None) -> Path:
    """Returns the checkpoint at `path`: itself, or the newest undamaged one of a run's folder.

    One of which `check` raises CheckpointError counts as damaged. Raises CheckpointError where there is none, with what
    was found.
    """
    if (path / MANIFEST).is_file():
        return path
    if not path.exists():
        raise CheckpointError(f"there is no checkpoint or run at {path}")
    faults = []
    for candidate in reversed(checkpoints_of(path)):
        try:
            for name, digest in checkpoint_manifest(candidate)["files"].items():
                check_file(candidate / name, digest)
            if check is not None:
                check(candidate)
            return candidate
        except CheckpointError as error:
            faults.append(str(error))
    if faults:
        raise CheckpointError(f"every checkpoint of {path} is damaged; the newest: {faults[0]}")
    raise CheckpointError(
        f"{path} holds no checkpoint: a run has some under {CHECKPOINTS}/, a checkpoint has a {MANIFEST}"
    )


def find_tables(path: Path) -> Path:
    """Returns the n-tuple tables at `path`: the folder itself, or those of a checkpoint or of a run's newest one.

    Raises CheckpointError where there are none.
    """
    found = find_checkpoint(path)
    if not holds_tables(found):
        raise CheckpointError(f"{path} holds no n-tuple tables; a run has some that trained with algorithm=ntuple")
    return found if is_tables(found) else found / TABLES


def holds_tables(checkpoint: Path) -> bool:
    """Returns whether a checkpoint, or what else has a manifest, holds n-tuple tables or is the folder of some."""
    return is_tables(checkpoint) or is_tables(checkpoint / TABLES)


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


def checkpoint_manifest(folder: Path) -> dict[str, Any]:
    """Returns a checkpoint's manifest; raises CheckpointError where that is missing, or names what is no part of it."""
    manifest = read_manifest(folder, "a checkpoint", FORMAT_VERSION)
    path = folder / MANIFEST
    files = manifest.get("files")
    if not isinstance(files, dict) or not isinstance(manifest.get("variant"), dict):
        raise CheckpointError(f"{path} is not the manifest of a checkpoint: it names no files or no variant")
    if not isinstance(manifest.get("network"), dict):
        raise CheckpointError(f"{path} is not the manifest of a checkpoint: it names no network")
    if unknown := set(files) - _FILES:
        raise CheckpointError(f"{path} names a file that is no part of a checkpoint: {sorted(unknown)[0]!r}")
    return manifest
