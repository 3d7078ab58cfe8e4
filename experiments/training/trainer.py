"""The loop of a run, whatever its algorithm: iterations, checkpoints, evaluations."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from agents.agent import Agent
from agents.checkpoint import Checkpoint, write_checkpoint
from agents.manifest import CheckpointError
from agents.runs import CHECKPOINTS, checkpoints_of, prune_checkpoints
from experiments.calibration import calibration_of
from experiments.concepts import observe
from experiments.evaluation import Row, evaluate
from experiments.match import save_games
from experiments.provenance import commit
from experiments.tables import table_text
from experiments.training.algorithm import Algorithm, Counters, counters_from
from experiments.training.boards import boards_of
from experiments.training.config import ScheduleConfig
from experiments.training.interruption import Stop
from experiments.training.run_folder import Metrics
from experiments.truth.report import measure_truth
from experiments.truth.solved import held_out

_FORECAST_AT = 0.1  # of a run's time
_COMPARED = ("/elo", "/kept", "/discs_lost")  # ends of the names of numbers by which runs are compared


class Report(Protocol):
    """Whom a run tells how it goes on."""

    def iteration(self, done: int, numbers: Mapping[str, float]) -> None: ...

    def forecast(self, counts: Mapping[str, int]) -> None: ...

    def evaluation(self, done: int, rows: list[Row]) -> None: ...

    def games(self, finished: int, num_games: int) -> None: ...


@dataclass
class _State:
    """What a run is after a whole iteration; nothing here changes afterwards."""

    iteration: int
    checkpoint: Checkpoint


def forecast(counters: Counters, schedule: ScheduleConfig) -> dict[str, int]:
    """Returns what a run will have counted when its time or its iterations are over, at the rate it has had so far."""
    counts = {name.removeprefix("num_"): number for name, number in vars(counters).items() if name.startswith("num_")}
    rate = schedule.num_iterations / counters.iteration
    if schedule.duration_s is not None:
        rate = min(rate, schedule.duration_s / counters.elapsed_s)
    return {name: round(rate * number) for name, number in {"iterations": counters.iteration, **counts}.items()}


class Trainer:
    """One run in its folder, from its start or from a checkpoint of its own."""

    def __init__(
        self,
        algorithm: Algorithm,
        config_yaml: str,
        folder: Path,
        opponents: Sequence[Agent],
        resumed: Checkpoint | None,
        report: Report,
    ) -> None:
        self.algorithm = algorithm
        self.config = algorithm.config
        self.folder = folder
        self.report = report
        self._config_yaml = config_yaml
        self._commit = commit()
        self._stop = Stop()
        self._opponents = opponents
        self._solved = held_out(algorithm.variant)
        algorithm.settle(folder)
        if resumed is not None:
            self._take_up(resumed)
        self._state = self._snapshot()

    @property
    def iteration(self) -> int:
        """How many iterations are done."""
        return self._state.iteration

    def stop(self) -> None:
        """Makes `run` raise Interrupted soon; may be called from a signal handler or another thread."""
        self._stop.request()

    def run(self) -> list[Row]:
        """Trains to the last iteration, or for as long as it shall, and returns the final evaluation.

        Raises Interrupted after `stop`, TrainingError when learning fails, OSError when the folder cannot be written.
        """
        schedule, counters = self.config.schedule, self.algorithm.counters
        metrics = Metrics(self.folder, counters.iteration)
        metrics.add_text("config", f"```yaml\n{self._config_yaml}\n```")
        metrics.add_text("commit", str(self._commit))
        try:
            if not self._is_done(counters):
                self.algorithm.prepare()
            began = time.monotonic() - counters.elapsed_s
            while not self._is_done(counters):
                numbers = self.algorithm.iterate(self._stop)
                before_s, counters.elapsed_s = counters.elapsed_s, time.monotonic() - began
                counters.iteration += 1
                numbers["time/elapsed_s"] = counters.elapsed_s
                self._state = self._snapshot()
                done = counters.iteration
                is_last = self._is_done(counters)
                try:
                    if not is_last and self.config.evaluation.every and done % self.config.evaluation.every == 0:
                        rows, rated = self._rate(self.config.evaluation.num_games, metrics)
                        numbers |= rated
                        if rows:
                            self.report.evaluation(done, rows)
                finally:  # the iteration is whole, whatever becomes of its evaluation
                    metrics.add(done, numbers)  # before its checkpoint, from which on a resumed run writes
                    if is_last or done % schedule.checkpoint_every == 0:
                        self.save()
                self.report.iteration(done, numbers)
                tenth_s = _FORECAST_AT * (schedule.duration_s or math.inf)
                if before_s < tenth_s <= counters.elapsed_s and not is_last:
                    self.report.forecast(forecast(counters, schedule))
            self.algorithm.close()  # of what it may have begun for later iterations the evaluation needs nothing
            rows, numbers = self._rate(self.config.evaluation.final_num_games, metrics)
            metrics.add(self.iteration, numbers)
            return rows
        finally:
            metrics.close()

    def _is_done(self, counters: Counters) -> bool:
        schedule = self.config.schedule
        is_over = schedule.duration_s is not None and counters.elapsed_s >= schedule.duration_s
        return is_over or counters.iteration >= schedule.num_iterations

    def save(self) -> Path:
        """Writes the state after the last whole iteration, if it is not on disk yet, and returns its folder."""
        folder = self.folder / CHECKPOINTS / f"{self._state.iteration:06}"
        if folder not in checkpoints_of(self.folder):
            checkpoint = self._state.checkpoint
            write_checkpoint(folder, replace(checkpoint, network=self.algorithm.kept(checkpoint.network)))
            prune_checkpoints(self.folder, self.config.schedule.kept_checkpoints)
            self.algorithm.prune(checkpoints_of(self.folder))
        return folder

    def _rate(self, num_games: int, metrics: Metrics) -> tuple[list[Row], dict[str, float]]:
        """Plays the evaluation's matches and measures the moves; returns the rows and all numbers.

        The games are saved, and what is no number is shown in TensorBoard.
        """
        if not self._opponents:
            return [], {}
        algorithm, seed = self.algorithm, self.config.seed
        with algorithm.player(str(self.folder), self._stop) as agent:
            rows = evaluate(agent, self._opponents, algorithm.variant, num_games, seed, progress=self._watched_games)
            matches = [row.match for row in rows]
            truth = measure_truth(agent, self._solved, seed, self._watched)
            boards = boards_of(agent, matches[-1])
        games = self.folder / "games"
        games.mkdir(exist_ok=True)
        save_games(games / f"{self.iteration:06}.jsonl", [game for match in matches for game in match.games])
        numbers = {name: value for row in rows for name, value in row.metrics().items()}
        concepts = observe(matches, seed, progress=self._watched)
        for name, report in (("truth", truth), ("concepts", concepts), ("calibration", calibration_of(matches))):
            numbers |= report.metrics()
            metrics.add_text(name, f"```\n{table_text(*report.table())}\n```", self.iteration)
        metrics.add_picture("evaluation/game", boards, self.iteration)
        metrics.add_hyperparameters(self._config_yaml, [name for name in numbers if name.endswith(_COMPARED)])
        return rows, numbers

    def _watched_games(self, finished: int, num_games: int) -> None:
        self._stop.check()
        self.report.games(finished, num_games)

    def _watched(self, finished: int, num_all: int) -> None:
        self._stop.check()

    def _snapshot(self) -> _State:
        """Returns a copy of what the next iteration will change."""
        algorithm = self.algorithm
        checkpoint = Checkpoint(
            network=algorithm.copied(),
            variant=algorithm.variant,
            config_yaml=self._config_yaml,
            commit=self._commit,
            trainer_tensors=algorithm.tensors(),
            trainer_counters=dict(vars(algorithm.counters)),
        )
        return _State(algorithm.counters.iteration, checkpoint)

    def _take_up(self, resumed: Checkpoint) -> None:
        """Puts the run into the state of a checkpoint; raises CheckpointError where that is another run's."""
        algorithm = self.algorithm
        if resumed.variant != algorithm.variant:
            raise CheckpointError(
                f"the checkpoint was trained for {resumed.variant.name}, "
                f"the configuration asks for {algorithm.variant.name}"
            )
        algorithm.take_up(resumed.network)
        try:
            algorithm.counters = counters_from(type(algorithm.counters), resumed.trainer_counters)
            algorithm.load_tensors(resumed.trainer_tensors)
        except (ValueError, TypeError) as error:  # TypeError for numbers where arrays should be
            raise CheckpointError(f"the checkpoint's trainer state cannot be used: {error}") from None
