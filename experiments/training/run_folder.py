"""A run's own folder: its configuration, metrics, checkpoints and evaluation games.

config.yaml     the resolved configuration
run.json        commit, versions, machine, command line
metrics.jsonl   one object a line, with the iteration and stable keys such as train/policy_loss
events.out.…    the same numbers for TensorBoard
checkpoints/    numbered by iteration
games/          of the evaluations, numbered likewise, one JSON object a game
"""

import json
import re
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from experiments.provenance import provenance
from reversi_env.durable import write_file

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


def write_facts(folder: Path, config_yaml: str) -> None:
    """Writes the configuration and what it ran on."""
    write_file(folder / _CONFIG, config_yaml)
    started = datetime.now().astimezone().isoformat(timespec="seconds")
    facts = {**provenance(), "command": sys.argv, "started": started}
    write_file(folder / _FACTS, json.dumps(facts, indent=1))


class Metrics:
    """Numbers by iteration, written to `metrics.jsonl` and to TensorBoard as they come."""

    def __init__(self, folder: Path, first_iteration: int) -> None:
        """Opens both; what an earlier, broken off run wrote from `first_iteration` on is dropped."""
        from torch.utils.tensorboard import SummaryWriter  # takes a second to import

        path = folder / _METRICS
        if path.exists():
            kept = [line for line in path.read_text().splitlines() if _iteration_of(line) < first_iteration]
            write_file(path, "".join(f"{line}\n" for line in kept))
        self._file = path.open("a", encoding="utf-8")
        self._board = SummaryWriter(str(folder), purge_step=first_iteration)

    def add(self, iteration: int, numbers: Mapping[str, float]) -> None:
        """Writes the numbers of an iteration; infinite ones are left out, since JSON has none."""
        finite = {key: float(f"{value:.6g}") for key, value in numbers.items() if abs(value) < float("inf")}
        self._file.write(json.dumps({"iteration": iteration, **finite}) + "\n")
        self._file.flush()
        for key, value in finite.items():
            self._board.add_scalar(key, value, iteration)
        self._board.flush()

    def add_text(self, name: str, text: str) -> None:
        self._board.add_text(name, text)

    def close(self) -> None:
        self._file.close()
        self._board.close()


def _iteration_of(line: str) -> float:
    """Returns a line's iteration; of a line that was cut short, infinity."""
    try:
        return float(json.loads(line)["iteration"])
    except (ValueError, KeyError, TypeError):
        return float("inf")
