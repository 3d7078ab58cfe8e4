"""What a run shows on stderr while it goes on: a bar on a terminal, a line an iteration elsewhere."""

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from experiments.evaluation import Row
from experiments.training.config import NTUPLE, TrainConfig
from reversi_env import Position

# What a line tells of an iteration beside its time, where there is such a number.
_SHOWN = {
    "alphazero": {
        "train/policy_loss": "policy loss {:.3f}",
        "train/value_loss": "value loss {:.3f}",
        "self_play/games": "{:.0f} games",
        "self_play/simulations_per_cpu_s": "{:,.0f} simulations a CPU-second",
    },
    "maskable_ppo": {  # whose policy loss stays near 0 however it learns
        "games/score": "score {:.2f}",
        "train/entropy": "entropy {:.3f}",
        "train/value_loss": "value loss {:.3f}",
        "games/finished": "{:.0f} games",
        "games/moves_per_s": "{:,.0f} moves/s",
    },
    "ntuple": {
        "held_out/error": "error {:.2f} discs",
        "self_play/depth": "depth {:.0f}",
        "self_play/games": "{:.0f} games",
        "self_play/games_per_s": "{:,.0f} games/s",
    },
}


class Display:
    """Lines and, on a terminal, a bar below them."""

    def __init__(self, config: TrainConfig, bar: Progress | None) -> None:
        self._num_iterations, self._duration_s = config.schedule.num_iterations, config.schedule.duration_s
        self._shown = _SHOWN[config.algorithm]
        self._bar = bar
        self._console = bar.console if bar else Console(stderr=True)
        total = self._num_iterations if self._duration_s is None else 100
        self._iterations = bar.add_task("training", total=total) if bar else None
        self._games = bar.add_task("evaluation games", total=1, visible=False) if bar else None
        self._began = time.monotonic()

    def say(self, line: str) -> None:
        """Prints a line above the bar; a run goes on where nobody reads it, or a log has no room for it."""
        with contextlib.suppress(OSError):
            if self._bar:
                self._console.print(line, markup=False, highlight=False)
            else:
                print(line, file=sys.stderr, flush=True)

    def iteration(self, done: int, numbers: Mapping[str, float]) -> None:
        """Tells the numbers of the iteration that has just ended."""
        told = [template.format(numbers[key]) for key, template in self._shown.items() if key in numbers]
        told.append(f"{time.monotonic() - self._began:.0f} s")
        completed, count = done, f"iteration {done} of {self._num_iterations}"
        if self._duration_s is not None:  # the one or the other ends the run
            share = max(done / self._num_iterations, numbers["time/elapsed_s"] / self._duration_s)
            completed = round(100 * min(share, 1.0))
            count = f"iteration {done}, {completed} % of the run"
        self.say(f"{count}: {', '.join(told)}")
        if self._bar and self._iterations is not None:
            self._bar.update(self._iterations, completed=completed)

    def forecast(self, counts: Mapping[str, int]) -> None:
        """Tells what the run will have done at its end."""
        told = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        self.say(f"a tenth of the time is over; at this rate the end of it will see {told}")

    def evaluation(self, done: int, rows: list[Row]) -> None:
        """Tells the scores of an evaluation."""
        scores = ", ".join(f"{row.match.second} {100 * row.score.value:.0f} %" for row in rows)
        self.say(f"after iteration {done}, {len(rows[0].match.games)} games each: {scores}")
        if self._bar and self._games is not None:
            self._bar.update(self._games, visible=False)

    def games(self, finished: int, num_games: int) -> None:
        """Tells how far an evaluation is."""
        if self._bar and self._games is not None:
            self._bar.update(self._games, visible=True, completed=finished, total=num_games)


@contextlib.contextmanager
def display(folder: Path, config: TrainConfig) -> Iterator[Display]:
    """Gives the display of a run and takes its bar away at the end."""
    variant = config.variant.to_variant()
    learned = f"{config.network.num_channels} channels × {config.network.num_blocks} blocks"
    if config.algorithm == "ntuple":
        learned = "n-tuples"
    elif config.network.kind == NTUPLE:
        learned = "policy and value by n-tuples"
    with contextlib.ExitStack() as stack:
        bar = None
        if sys.stderr.isatty():
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
            )
            bar = stack.enter_context(Progress(*columns, console=Console(stderr=True), transient=True))
        shown = Display(config, bar)
        shown.say(f"training {variant.name}, {learned}, in {folder}; watch it: tensorboard --logdir {folder.parent}")
        num_empties, exact_empties = Position(variant).num_empties, config.self_play.exact_empties
        if config.algorithm == "alphazero" and exact_empties >= num_empties:
            shown.say(
                f"nothing is searched: from {exact_empties} empty squares on (self_play.exact_empties) the solver "
                f"plays, and {variant.name} begins with {num_empties}"
            )
        yield shown
