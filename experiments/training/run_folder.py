"""A run's own folder: its configuration, metrics, checkpoints and evaluation games.

config.yaml     the resolved configuration
run.json        commit, versions, machine, command line
metrics.jsonl   one object a line, with the iteration and stable keys such as train/policy_loss
events.out.…    the same numbers for TensorBoard, with tables and a game of each evaluation
checkpoints/    numbered by iteration
replay/         positions of self-play, numbered likewise
games/          of the evaluations, numbered likewise, one JSON object a game
"""

import contextlib
import json
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import OmegaConf

from agents.manifest import MANIFEST
from agents.runs import checkpoints_of, find_checkpoint
from experiments.provenance import provenance
from experiments.training.replay import REPLAY, check_shards
from reversi_env.durable import blaming, write_file

_CONFIG, _FACTS, _METRICS = "config.yaml", "run.json", "metrics.jsonl"


def make_run_folder(runs: Path, name: str | None, label: str) -> Path:
    """Makes and returns a folder that no other run has.

    With a name it is `runs/name`, and FileExistsError says when that is taken; otherwise the label, the time, and a
    number where two runs begin in one second.
    """
    if name is not None:
        if not re.fullmatch(r"[\w.+-]+", name) or name.startswith("."):
            raise ValueError(f"a run's name has letters, digits, and _ . + - only, got {name!r}")
        runs.mkdir(parents=True, exist_ok=True)
        folder = runs / name
        try:
            folder.mkdir()
        except FileExistsError:
            raise FileExistsError(
                f"the run folder {folder} is taken; choose another name, or go on with it: resume={folder}"
            ) from None
        return folder
    runs.mkdir(parents=True, exist_ok=True)
    stem = f"{label}-{datetime.now():%Y%m%d-%H%M%S}"
    number = 1
    while True:
        folder = runs / (stem if number == 1 else f"{stem}-{number}")
        try:
            folder.mkdir()
            return folder
        except FileExistsError:
            number += 1


def find_resumed(folder: Path) -> Path | None:
    """Returns the checkpoint from which a run goes on, the newest that is undamaged, as are the positions it needs.

    None where the run ended before its first, and begins anew. Raises CheckpointError where the folder is no run's, or
    all its checkpoints are damaged.
    """
    is_checkpoint = (folder / MANIFEST).exists()
    if not is_checkpoint and not checkpoints_of(folder) and (folder / _CONFIG).is_file():
        return None
    return find_checkpoint(folder, lambda checkpoint: check_shards(checkpoint, folder / REPLAY))


def holds_nothing(folder: Path) -> bool:
    """Returns whether a run ended before it had anything to keep: a checkpoint, or the numbers of an iteration."""
    metrics = folder / _METRICS
    return not checkpoints_of(folder) and not (metrics.exists() and metrics.stat().st_size)


def write_config(folder: Path, config_yaml: str) -> None:
    """Writes the configuration, over an earlier one where the run goes on by another."""
    write_file(folder / _CONFIG, config_yaml)


def write_facts(folder: Path) -> None:
    """Writes what the run began on."""
    started = datetime.now().astimezone().isoformat(timespec="seconds")
    facts = {**provenance(), "command": sys.argv, "started": started}
    write_file(folder / _FACTS, json.dumps(facts, indent=1))


class Metrics:
    """Numbers by iteration, written to `metrics.jsonl` and to TensorBoard as they come."""

    def __init__(self, folder: Path, num_iterations: int) -> None:
        """Opens both; what an earlier run wrote after so many iterations, its last evaluation too, is dropped."""
        from torch.utils.tensorboard import SummaryWriter  # takes a second to import

        self._path = folder / _METRICS
        if self._path.exists():
            lines = self._path.read_text(encoding="utf-8", errors="replace").splitlines()
            kept = [line for line in lines if _is_of_iteration(line, num_iterations)]
            write_file(self._path, "".join(f"{line}\n" for line in kept))
        self._hook_before, threading.excepthook = threading.excepthook, _pass_over_os_errors
        with blaming(folder):
            self._board = SummaryWriter(str(folder), purge_step=num_iterations + 1)

    def add(self, iteration: int, numbers: Mapping[str, float]) -> None:
        """Writes the numbers of an iteration; infinite ones are left out, since JSON has none.

        Raises OSError, which names the file, on a full disk.
        """
        finite = {key: float(f"{value:.6g}") for key, value in numbers.items() if abs(value) < float("inf")}
        with blaming(self._path), self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"iteration": iteration, **finite}) + "\n")
        with blaming(self._path.parent):
            for key, value in finite.items():
                self._board.add_scalar(key, value, iteration)
            self._board.flush()

    def add_text(self, name: str, text: str, iteration: int | None = None) -> None:
        with blaming(self._path.parent):
            self._board.add_text(name, text, iteration)

    def add_picture(self, name: str, pixels: np.ndarray, iteration: int) -> None:
        """Shows a picture, uint8 [height, width, 3], in TensorBoard."""
        with blaming(self._path.parent):
            self._board.add_image(name, pixels, iteration, dataformats="HWC")

    def add_hyperparameters(self, config_yaml: str, names: Iterable[str]) -> None:
        """Puts the run into TensorBoard's table of hyperparameters, with the last of the numbers of these names.

        They stand in the run's own file. SummaryWriter's `add_hparams` would write another run, with other numbers.
        """
        from torch.utils.tensorboard.summary import hparams

        values = dict(_flat(OmegaConf.create(config_yaml)))
        writer: Any = self._board.file_writer  # None only once it is closed
        with blaming(self._path.parent):
            for summary in hparams(values, dict.fromkeys(names, 0.0)):
                writer.add_summary(summary)

    def close(self) -> None:
        with contextlib.suppress(OSError):  # `add` has flushed, and said what was wrong
            self._board.close()
        threading.excepthook = self._hook_before


def _flat(config: Any, prefix: str = "") -> Iterator[tuple[str, float | str | None]]:
    """Yields the values of a configuration under their dotted names."""
    for key, value in config.items():
        if OmegaConf.is_dict(value):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", " ".join(map(str, value)) if OmegaConf.is_list(value) else value


def _pass_over_os_errors(raised: threading.ExceptHookArgs) -> None:
    """Shows what ended a thread, save what TensorBoard's own raises once more in `Metrics`, such as a full disk."""
    if not issubclass(raised.exc_type, OSError):
        threading.__excepthook__(raised)


def _is_of_iteration(line: str, last: int) -> bool:
    """Returns whether a line has the numbers of an iteration up to the last; one that was cut short has not."""
    try:
        numbers = json.loads(line)
        return "time/iteration_s" in numbers and numbers["iteration"] <= last
    except (ValueError, KeyError, TypeError):
        return False
