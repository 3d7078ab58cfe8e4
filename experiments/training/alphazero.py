"""AlphaZero (Silver et al. 2018): the network learns from games that it plays against itself by tree search.

An iteration plays games with the network as the last one left it, and at the same time, in another thread, fits the
network to the games before: so both cores of a small machine work, and a result depends on the seed and the number of
threads, not on which of them was faster.
"""

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agents.networks.residual import ResidualNetwork
from experiments.training.algorithm import Counters, NetworkAlgorithm
from experiments.training.config import TrainConfig
from experiments.training.interruption import Stop
from experiments.training.learner import ResidualLearner
from experiments.training.replay import REPLAY, Replay
from experiments.training.self_play import SelfPlay, play_games
from experiments.training.tensors import join_tensors, split_tensors
from experiments.training.watched import watched_evaluator


@dataclass
class SelfPlayCounters(Counters):
    num_games: int = 0
    num_positions: int = 0
    num_steps: int = 0  # of the optimizer


class AlphaZero(NetworkAlgorithm):
    def __init__(self, config: TrainConfig, network: ResidualNetwork) -> None:
        super().__init__(config, network)
        self.counters: SelfPlayCounters = SelfPlayCounters()
        self._replay = Replay(self.variant, config.replay)
        self._learner = ResidualLearner(network, config.learner)
        self.network = self._learner.averaged()

    def settle(self, run: Path) -> None:
        self._replay = Replay(self.variant, self.config.replay, run / REPLAY)

    def prune(self, checkpoints: Sequence[Path]) -> None:
        self._replay.prune(checkpoints)

    def iterate(self, stop: Stop) -> dict[str, float]:
        schedule, counters = self.config.schedule, self.counters
        evaluator = watched_evaluator(self.network, self.device, stop)
        num_threads = min(schedule.num_threads or max(1, (os.cpu_count() or 2) - 1), schedule.games_per_iteration)
        shares = [range(first, schedule.games_per_iteration, num_threads) for first in range(num_threads)]
        seed = (self.config.seed, counters.iteration)
        began = time.monotonic()
        with ThreadPoolExecutor(num_threads + 1) as pool:
            try:
                learning = pool.submit(self._learn, stop)
                playing = [
                    pool.submit(
                        play_games, self.variant, evaluator, self.config.search, self.config.self_play, share, seed
                    )
                    for share in shares
                ]
                futures: list[Future[Any]] = [learning, *playing]
                for future in wait(futures, return_when=FIRST_EXCEPTION).done:
                    future.result()  # raises what ended it, before the others are waited for
                played = SelfPlay.joined([future.result() for future in playing])
                learned = learning.result()
                self.network = self._learner.averaged()
            except BaseException:
                stop.request()  # so that the other threads end too
                raise
        self._replay.add(played.samples)
        counters.num_games += played.num_games
        counters.num_positions += len(played.samples)
        counters.num_steps = self._learner.num_steps
        numbers: dict[str, float] = {
            "self_play/games": counters.num_games,
            "self_play/positions": counters.num_positions,
            **played.metrics(self.variant.size),
            "replay/positions": len(self._replay),
            "replay/age_rounds": self._replay.age,
            "time/iteration_s": time.monotonic() - began,
        }
        return numbers | learned

    def tensors(self) -> dict[str, Tensor]:
        replay = {name: torch.from_numpy(array) for name, array in self._replay.arrays().items()}
        return join_tensors(learner=self._learner.tensors(), replay=replay)

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        learner, replay = split_tensors(tensors, "learner", REPLAY)
        self._learner.load_tensors(learner, self.counters.num_steps)
        self.network = self._learner.averaged()
        self._replay.load_arrays({name: tensor.numpy() for name, tensor in replay.items()})

    def _learn(self, stop: Stop) -> dict[str, float]:
        """Fits the network to the replay as it was before this iteration's games."""
        if not len(self._replay):
            return {}
        learner, counters = self.config.learner, self.counters
        positions_per_iteration = counters.num_positions / counters.iteration
        num_steps = round(positions_per_iteration * learner.samples_per_position / learner.batch_size)
        rng = np.random.default_rng(np.random.SeedSequence((self.config.seed, counters.iteration), spawn_key=(1,)))
        return self._learner.learn(self._replay, max(num_steps, 1), self.progress, rng, stop.check)
