"""The loop of a run: games, learning, checkpoints, evaluation.

An iteration plays games with the network as the last one left it, and at the same time, in another thread, fits the
network to the games before: so both cores of a small machine work, and a result depends on the seed and the number of
threads, not on which of them was faster.
"""

import copy
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from agents.agent import Agent
from agents.checkpoint import (
    CHECKPOINTS,
    Checkpoint,
    CheckpointError,
    checkpoints_of,
    prune_checkpoints,
    write_checkpoint,
)
from agents.mcts import Evaluator, MCTSAgent
from agents.networks.inference import NetworkEvaluator, TorchBackend
from agents.networks.residual import ResidualNetwork
from experiments.evaluation import Row, evaluate
from experiments.match import save_games
from experiments.provenance import commit
from experiments.training.config import TrainConfig
from experiments.training.learner import Learner, Losses
from experiments.training.replay import Replay, Samples
from experiments.training.run_folder import Metrics
from experiments.training.self_play import SelfPlay, play_games
from reversi_env import Variant


class Interrupted(KeyboardInterrupt):
    """The run was asked to stop; it is in the state in which its last whole iteration left it."""


class Report(Protocol):
    """Whom a run tells how it goes on."""

    def iteration(self, done: int, numbers: Mapping[str, float]) -> None: ...

    def evaluation(self, done: int, rows: list[Row]) -> None: ...

    def games(self, finished: int, num_games: int) -> None: ...


@dataclass
class _State:
    """What a run is after a whole iteration; nothing here changes afterwards."""

    iteration: int
    checkpoint: Checkpoint


@dataclass
class _Counters:
    iteration: int = 0
    num_games: int = 0
    num_positions: int = 0
    num_steps: int = 0
    elapsed_s: float = 0.0


class Trainer:
    """One run in its folder, from its start or from a checkpoint of its own."""

    def __init__(
        self,
        config: TrainConfig,
        config_yaml: str,
        folder: Path,
        opponents: Sequence[Agent],
        resumed: Checkpoint | None,
        report: Report,
    ) -> None:
        self.config = config
        self.folder = folder
        self.report = report
        self.variant = config.variant.to_variant()
        self.device = config.to_device()
        self._config_yaml = config_yaml
        self._commit = commit()
        self._stop = threading.Event()
        self._counters = _Counters()
        self._opponents = opponents
        torch.manual_seed(config.seed)
        network = ResidualNetwork(config.network)
        self._replay = Replay(self.variant, config.schedule.replay_window)
        self._learner = Learner(network.to(self.device), config.learner)
        if resumed is not None:
            self._take_up(resumed)
        self._state = self._snapshot()

    @property
    def iteration(self) -> int:
        """How many iterations are done."""
        return self._state.iteration

    def stop(self) -> None:
        """Makes `run` raise Interrupted soon; may be called from a signal handler or another thread."""
        self._stop.set()

    def run(self) -> list[Row]:
        """Trains to the last iteration and returns the final evaluation.

        Raises Interrupted after `stop`, TrainingError when learning fails, OSError when the folder cannot be written.
        """
        schedule = self.config.schedule
        metrics = Metrics(self.folder, self._counters.iteration)
        metrics.add_text("config", f"```yaml\n{self._config_yaml}\n```")
        metrics.add_text("commit", str(self._commit))
        began = time.monotonic() - self._counters.elapsed_s
        try:
            while self._counters.iteration < schedule.num_iterations:
                numbers = self._iterate()
                self._counters.elapsed_s = time.monotonic() - began
                self._counters.iteration += 1
                numbers["time/elapsed_s"] = self._counters.elapsed_s
                self._state = self._snapshot()
                done = self._counters.iteration
                is_last = done == schedule.num_iterations
                try:
                    if not is_last and self.config.evaluation.every and done % self.config.evaluation.every == 0:
                        rows, rated = self._rate(self.config.evaluation.num_games)
                        numbers |= rated
                        self.report.evaluation(done, rows)
                finally:  # the iteration is whole, whatever becomes of its evaluation
                    metrics.add(done, numbers)  # before its checkpoint, from which on a resumed run writes
                    if is_last or done % schedule.checkpoint_every == 0:
                        self.save()
                self.report.iteration(done, numbers)
            rows, numbers = self._rate(self.config.evaluation.final_num_games)
            metrics.add(self.iteration, numbers)
            return rows
        finally:
            metrics.close()

    def save(self) -> Path:
        """Writes the state after the last whole iteration, if it is not on disk yet, and returns its folder."""
        folder = self.folder / CHECKPOINTS / f"{self._state.iteration:06}"
        if folder not in checkpoints_of(self.folder):
            write_checkpoint(folder, self._state.checkpoint)
            prune_checkpoints(self.folder, self.config.schedule.kept_checkpoints)
        return folder

    def _check(self) -> None:
        if self._stop.is_set():
            raise Interrupted

    def _iterate(self) -> dict[str, float]:
        """Plays and learns once; returns the numbers of the iteration."""
        schedule, iteration = self.config.schedule, self._counters.iteration
        evaluator = _Watched(NetworkEvaluator(TorchBackend(self._learner.network, self.device)), self._check)
        num_threads = min(schedule.num_threads or max(1, (os.cpu_count() or 2) - 1), schedule.games_per_iteration)
        shares = [range(first, schedule.games_per_iteration, num_threads) for first in range(num_threads)]
        began = time.monotonic()
        with ThreadPoolExecutor(num_threads + 1) as pool:
            try:
                learning = pool.submit(self._learn, iteration)
                playing = [
                    pool.submit(
                        play_games, self.variant, evaluator, self.config.search, share, (self.config.seed, iteration)
                    )
                    for share in shares
                ]
                futures: list[Future[Any]] = [learning, *playing]
                for future in wait(futures, return_when=FIRST_EXCEPTION).done:
                    future.result()  # raises what ended it, before the others are waited for
                played = SelfPlay.joined([future.result() for future in playing])
                losses = learning.result()
            except BaseException:
                self._stop.set()  # so that the other threads end too
                raise
        self._replay.add(played.samples)
        self._counters.num_games += played.num_games
        self._counters.num_positions += len(played.samples)
        self._counters.num_steps = self._learner.num_steps
        numbers = {
            "self_play/games": self._counters.num_games,
            "self_play/positions": self._counters.num_positions,
            "self_play/plies_per_game": played.num_plies / played.num_games,
            "self_play/passes_per_game": played.num_passes / played.num_games,
            "self_play/visit_entropy": played.visit_entropy,
            "self_play/black_mean_score": played.black_mean_score,
            "self_play/simulations_per_s": played.num_simulations / played.wall_s,
            "replay/positions": len(self._replay),
            "time/self_play_s": played.wall_s,
            "time/iteration_s": time.monotonic() - began,
        }
        if losses is not None:
            numbers |= {
                "train/policy_loss": losses.policy_loss,
                "train/value_loss": losses.value_loss,
                "train/gradient_norm": losses.gradient_norm,
                "train/learning_rate": losses.learning_rate,
                "train/steps": self._learner.num_steps,
            }
        return numbers

    def _learn(self, iteration: int) -> Losses | None:
        """Fits the network to the replay as it was before this iteration's games."""
        config = self.config
        if not len(self._replay):
            return None
        positions_per_iteration = self._counters.num_positions / iteration
        num_steps = round(positions_per_iteration * config.learner.samples_per_position / config.learner.batch_size)
        rng = np.random.default_rng(np.random.SeedSequence((config.seed, iteration), spawn_key=(1,)))
        progress = iteration / max(config.schedule.num_iterations - 1, 1)
        return self._learner.learn(self._replay, max(num_steps, 1), progress, rng, self._check)

    def _rate(self, num_games: int) -> tuple[list[Row], dict[str, float]]:
        """Plays the evaluation's matches and saves their games; returns the rows and their numbers."""
        if not self._opponents:
            return [], {}
        evaluator = _Watched(NetworkEvaluator(TorchBackend(self._learner.network, self.device)), self._check)
        agent = MCTSAgent(
            evaluator, self.config.evaluation.search, str(self.folder), self.variant, num_threads=os.cpu_count() or 1
        )
        rows = evaluate(agent, self._opponents, self.variant, num_games, self.config.seed, progress=self._watched_games)
        games = self.folder / "games"
        games.mkdir(exist_ok=True)
        save_games(games / f"{self._counters.iteration:06}.jsonl", [game for row in rows for game in row.match.games])
        numbers: dict[str, float] = {}
        for row in rows:
            opponent = row.match.second
            numbers |= {f"evaluation/{opponent}/score": row.score.value, f"evaluation/{opponent}/elo": row.elo.value}
        return rows, numbers

    def _watched_games(self, finished: int, num_games: int) -> None:
        self._check()
        self.report.games(finished, num_games)

    def _snapshot(self) -> _State:
        """Returns a copy of what the next iteration will change."""
        samples = self._replay.samples
        tensors = {f"replay.{name}": torch.from_numpy(array) for name, array in samples.arrays().items()}
        tensors |= {name: tensor.clone() for name, tensor in self._learner.optimizer_tensors().items()}
        checkpoint = Checkpoint(
            network=copy.deepcopy(self._learner.network),
            variant=self.variant,
            config_yaml=self._config_yaml,
            commit=self._commit,
            trainer_tensors=tensors,
            trainer_counters=vars(copy.copy(self._counters)),
        )
        return _State(self._counters.iteration, checkpoint)

    def _take_up(self, resumed: Checkpoint) -> None:
        """Puts the run into the state of a checkpoint; raises CheckpointError where that is another run's."""
        if resumed.variant != self.variant:
            raise CheckpointError(
                f"the checkpoint was trained for {resumed.variant.name}, the configuration asks for {self.variant.name}"
            )
        if resumed.network.config != self.config.network:
            raise CheckpointError(
                f"the checkpoint's network is {resumed.network.config}, "
                f"the configuration asks for {self.config.network}"
            )
        try:
            self._learner.network.load_state_dict(resumed.network.state_dict())
            tensors = resumed.trainer_tensors
            self._learner.load_optimizer_tensors(
                {name: tensor for name, tensor in tensors.items() if name.startswith("optimizer.")}
            )
            arrays = {
                name.removeprefix("replay."): tensor.numpy()
                for name, tensor in tensors.items()
                if name.startswith("replay.")
            }
            self._replay.add(Samples.from_arrays(arrays, self.variant))
            self._counters = _counters_from(resumed.trainer_counters)
            self._learner.num_steps = self._counters.num_steps
            if len(self._replay) and not self._counters.iteration:
                raise ValueError(f"{len(self._replay)} positions before the first iteration")
        except (KeyError, ValueError, TypeError) as error:
            raise CheckpointError(f"the checkpoint's trainer state cannot be used: {error}") from None


def _counters_from(found: Mapping[str, Any]) -> _Counters:
    """Returns the counters of a file; raises KeyError, TypeError or ValueError where one is none."""
    for entry in fields(_Counters):
        number = found[entry.name]
        if type(number) not in (entry.type, int) or not 0 <= number < 1 << 53:
            raise ValueError(f"{entry.name} is {number!r}")
    return _Counters(**found)


@dataclass
class _Watched:
    """An evaluator that can be stopped."""

    evaluate: Evaluator
    check: Callable[[], None] = field(repr=False)

    def __call__(self, player: np.ndarray, opponent: np.ndarray, variant: Variant) -> tuple[np.ndarray, np.ndarray]:
        self.check()
        return self.evaluate(player, opponent, variant)
