"""AlphaZero (Silver et al. 2018): the network learns from games that it plays against itself by tree search.

Games and learning overlap. An iteration takes the games of its round, learns, and publishes what it has learned; round
k is played with what was published after round k − 2, or with the network as it began. So while the learner works its
actors are at the next round, and when that is done, at the one after it. Which games are played by which network is
thus settled beforehand, and a result depends on the seed alone, not on who was faster, unless the run ends by time.
"""

import contextlib
import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from agents.agent import Agent
from agents.checkpoint import Network
from agents.manifest import CheckpointError
from agents.mcts import MCTSAgent
from agents.networks.published import TUPLES, Published, is_available, publish
from agents.networks.residual import ResidualNetwork
from agents.ntuple.tables import Tables
from experiments.training.actors import DEFAULT_CACHE_ENTRIES, Actors, Round, Terms, make_actors
from experiments.training.algorithm import Algorithm, Counters
from experiments.training.config import NTUPLE, TrainConfig
from experiments.training.interruption import Stop, TrainingError
from experiments.training.learner import Learner
from experiments.training.replay import REPLAY, Replay
from experiments.training.tensors import join_tensors, split_tensors
from experiments.training.watched import Watched
from reversi_env.naming import UsageError

_AHEAD = 2  # rounds that are asked for before the first of them is learned from
_CALIBRATION_POSITIONS = 512
_LOG = logging.getLogger(__name__)


@dataclass
class SelfPlayCounters(Counters):
    num_games: int = 0
    num_positions: int = 0
    num_steps: int = 0  # of the optimizer


class AlphaZero(Algorithm):
    def __init__(self, config: TrainConfig, learner: Learner) -> None:
        super().__init__(config)
        self.counters: SelfPlayCounters = SelfPlayCounters()
        self._device = config.to_device()
        self._replay = Replay(self.variant, config.replay)
        self._learner = learner
        self._published: dict[int, Published] = {}  # by the round that it plays
        self._rounds: dict[int, Round] = {}  # that were asked for, by number
        self._actors: Actors | None = None

    def settle(self, run: Path) -> None:
        self._replay = Replay(self.variant, self.config.replay, run / REPLAY)

    def prepare(self) -> None:
        self._learner.compile(self.variant)
        self._start()

    def prune(self, checkpoints: Sequence[Path]) -> None:
        self._replay.prune(checkpoints)

    def iterate(self, stop: Stop) -> dict[str, float]:
        counters, number = self.counters, self.counters.iteration
        began = time.monotonic()
        if not self._published:
            self._published = dict.fromkeys(range(_AHEAD), self._publish())
        self._ask()
        has_asked = time.monotonic()
        played = self._rounds.pop(number).result(stop.check)
        has_games = time.monotonic()
        self._replay.add(played.samples)
        counters.num_games += played.num_games
        counters.num_positions += len(played.samples)
        learner_began = time.thread_time()
        losses = self._learn(len(played.samples), stop)
        learner_s = time.thread_time() - learner_began
        all_s = max(played.cpu_s + learner_s, 1e-9)
        counters.num_steps = self._learner.num_steps
        has_learned = time.monotonic()
        del self._published[number]
        self._published[number + _AHEAD] = self._publish()
        self._ask()
        seconds = time.monotonic() - began
        return losses | {
            "self_play/games": counters.num_games,
            "self_play/positions": counters.num_positions,
            **played.metrics(self.variant.size),
            "self_play/games_per_s": played.num_games / seconds,
            "self_play/positions_per_s": len(played.samples) / seconds,
            "self_play/simulations_per_s": played.num_simulations / seconds,
            "replay/positions": len(self._replay),
            "replay/age_rounds": self._replay.age,
            # Shares in the CPU time of this round's games and of the learner's thread.
            "time/network_share": played.evaluator_s / all_s,
            "time/solver_share": played.solver_s / all_s,
            "time/tree_share": (played.cpu_s - played.evaluator_s - played.solver_s) / all_s,  # and what is around it
            "time/learner_share": learner_s / all_s,
            "time/wait_s": has_games - has_asked,  # of the learner, for games
            "time/learn_s": has_learned - has_games,
            "time/publish_s": seconds - (has_learned - began),
            "time/iteration_s": seconds,
        }

    def copied(self) -> Network:
        return self._learner.averaged()

    def take_up(self, network: Network) -> None:
        """Only looks whether it is such a network: `load_tensors` has its weights before they were averaged, too."""
        own = self._learner.network
        if type(network) is not type(own):
            raise CheckpointError(
                f"the checkpoint holds a {type(network).__name__}, the configuration asks for a {type(own).__name__}"
            )
        if isinstance(network, ResidualNetwork) and isinstance(own, ResidualNetwork) and network.config != own.config:
            raise CheckpointError(
                f"the checkpoint's network is {network.config}, the configuration asks for {own.config}"
            )

    @contextlib.contextmanager
    def player(self, name: str, stop: Stop) -> Iterator[Agent]:
        evaluator = Watched(self._published[max(self._published)].evaluator(), stop)
        yield MCTSAgent(evaluator, self.config.evaluation.search, name, self.variant, os.cpu_count() or 1)

    def tensors(self) -> dict[str, Tensor]:
        return join_tensors(
            learner=self._learner.tensors(),
            replay={name: torch.from_numpy(array) for name, array in self._replay.arrays().items()},
            published={
                f"{number}.{network.backend}": torch.frombuffer(bytearray(network.data), dtype=torch.uint8)
                for number, network in self._published.items()
            },
        )

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        learner, replay, published = split_tensors(tensors, "learner", REPLAY, "published")
        self._learner.load_tensors(learner, self.counters.num_steps)
        self._replay.load_arrays({name: tensor.numpy() for name, tensor in replay.items()})
        self._published = {}
        for name, tensor in published.items():
            number, _, backend = name.partition(".")
            if not number.isdecimal() or tensor.dtype != torch.uint8:
                raise ValueError(f"published.{name} is no published network")
            self._published[int(number)] = Published(backend, tensor.numpy().tobytes(), self._actors_device.type)
        iteration = self.counters.iteration
        wanted = set(range(iteration, iteration + _AHEAD)) if iteration else set()
        if self._published.keys() != wanted:
            raise ValueError(
                f"it has the networks of rounds {sorted(self._published)}; after iteration {iteration} those of "
                f"{sorted(wanted)} are played"
            )
        for at, network in self._published.items():
            if network.backend != TUPLES and not is_available(network.backend, network.device):
                _LOG.warning(
                    "round %d was to be played by %s, which cannot run here; it is played by what is learned by now, "
                    "so the run goes on, but not as an unbroken one would",
                    at,
                    network.backend,
                )
                self._published[at] = self._publish()

    def close(self) -> None:
        if self._actors is not None:
            self._actors.close()
        self._actors, self._rounds = None, {}

    def _ask(self) -> None:
        """Has the actors play the rounds whose networks are published, where they are not at it."""
        schedule, actors = self.config.schedule, self._start()
        for number, published in sorted(self._published.items()):
            if number not in self._rounds and self.counters.iteration <= number < schedule.num_iterations:
                numbers, seed = range(schedule.games_per_iteration), (self.config.seed, number)
                self._rounds[number] = actors.submit(published, numbers, seed)

    def _start(self) -> Actors:
        """Returns the actors, which begin to work where there are none yet."""
        if self._actors is None:
            config = self.config
            cache_entries = config.actors.cache_entries
            if cache_entries is None:
                cache_entries = 0 if config.network.kind == NTUPLE else DEFAULT_CACHE_ENTRIES
            terms = Terms(self.variant, config.search, config.self_play, cache_entries)
            self._actors = make_actors(config.actors, terms)
        return self._actors

    @property
    def _actors_device(self) -> torch.device:
        """Where networks are asked: on the learner's device, but by CPUs on a cluster."""
        return torch.device("cpu") if self.config.actors.kind == "ray" else self._device

    def _publish(self) -> Published:
        """Returns what is learned by now, for actors; the replay's positions tell how closely a backend keeps to it."""
        config, calibration = self.config.actors, None
        if len(self._replay) and isinstance(self._learner.network, ResidualNetwork):
            rng = np.random.default_rng(self._seeds(2))
            drawn = self._replay.draw_samples(_CALIBRATION_POSITIONS, rng)
            calibration = drawn.player, drawn.opponent
        network = self._learner.averaged()
        assert not isinstance(network, Tables)  # with which no tree is searched
        try:
            return publish(
                network,
                self.variant,
                config.inference.backend,
                calibration,
                self._actors_device,
                self.config.self_play.games_at_once,
                config.inference.float32,
            )
        except UsageError:  # a backend that is not there
            raise
        except ValueError as error:
            raise TrainingError(f"what is learned cannot be played with: {error}") from None

    def _learn(self, num_new: int, stop: Stop) -> dict[str, float]:
        sampling = self._learner.config
        num_steps = round(num_new * sampling.samples_per_position / sampling.batch_size)
        rng = np.random.default_rng(self._seeds(1))
        return self._learner.learn(self._replay, max(num_steps, 1), self.progress, rng, stop.check)

    def _seeds(self, purpose: int) -> np.random.SeedSequence:
        """Returns what this iteration draws from, games apart: 1 to learn, 2 to publish."""
        return np.random.SeedSequence((self.config.seed, self.counters.iteration), spawn_key=(purpose,))
