"""Measures self-play and learning together, against what bare network and bare training steps would allow.

    reversi bench training
    reversi bench training --json --channels 32 --blocks 4 --games 128

A generated position costs as many calls of the network as its search has simulations, and as many samples of training
as it is drawn: simulations / the network's bare rate + samples / the bare rate of training steps, in CPU seconds. That
leaves out the root's own call, and that simulations which end in finished games make none. The whole has all that a run
of `reversi train` has but evaluations and checkpoints: trees, replay, averaged weights, publishing. Its actor and its
learner are threads of this process; the solver plays no moves, no evaluation is remembered.
"""

import contextlib
import math
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from agents.mcts import MCTSConfig
from agents.networks.published import AUTO, InferenceConfig, choose, publish
from agents.networks.residual import ResidualConfig, ResidualNetwork
from experiments.arguments import setting
from experiments.bench.inference import asking
from experiments.bench.measure import BenchSettings, measure, settings_of, show
from experiments.training.actors import ActorsConfig
from experiments.training.algorithms import make_algorithm
from experiments.training.config import NetworkConfig, ScheduleConfig, TrainConfig, VariantConfig
from experiments.training.interruption import Stop
from experiments.training.learner import LearnerConfig, Targets, losses
from experiments.training.self_play import SelfPlayConfig
from reversi_env import Variant

SEED = 1
CALLS = 60  # of the bare network, in a round
STEPS = 10  # bare ones of training, in a round


@dataclass
class TrainingBenchSettings(BenchSettings):
    """Which network plays and learns, and how."""

    rounds: int = setting(1, "rounds, of which the medians are taken")
    channels: int = setting(64, "channels of the residual network")
    blocks: int = setting(5, "blocks of the residual network")
    games: int = setting(64, "games side by side, and in an iteration")
    simulations: int = setting(32, "simulations a move")
    samples: float = setting(4.0, "how often a position is drawn")
    iterations: int = setting(2, "iterations in a round")
    backend: str = setting(AUTO, "what runs the network for search")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("channels", "blocks", "games", "simulations", "iterations"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not 0 < self.samples < math.inf:
            raise ValueError(f"samples must be above 0 and finite, got {self.samples}")


class _Steps:
    """The work of training steps on one batch, and nothing around them; counts samples."""

    def __init__(self, variant: Variant, network: ResidualNetwork, config: LearnerConfig) -> None:
        num_samples, num_squares = config.batch_size, variant.num_squares
        rng = np.random.default_rng(SEED)
        planes = torch.from_numpy(rng.integers(2, size=(num_samples, 3, variant.size, variant.size)).astype(np.float32))
        self._targets = Targets(
            planes=planes.to(memory_format=torch.channels_last),
            legal=torch.ones(num_samples, variant.num_actions, dtype=torch.bool),
            policy=torch.full((num_samples, variant.num_actions), 1 / variant.num_actions),
            policy_weight=torch.ones(num_samples),
            result=torch.full((num_samples, 3), 1 / 3),
            margin=torch.zeros(num_samples),
            owner=torch.zeros(num_samples, num_squares),
        )
        self._network = network.train().to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs leave it out
        self._optimizer = torch.optim.AdamW(network.parameters(), lr=1e-6)
        self._config = config

    def __call__(self) -> int:
        for _ in range(STEPS):
            self._optimizer.zero_grad(set_to_none=True)
            loss, _ = losses(self._network(self._targets.planes), self._targets, self._config)
            loss.backward()
            self._optimizer.step()
        return STEPS * self._config.batch_size


def generate(config: TrainConfig) -> int:
    """Runs all iterations of a configuration; returns how many positions were generated, and learned from."""
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(make_algorithm(config)) as algorithm:
        algorithm.settle(Path(folder))
        algorithm.prepare()
        num_positions = 0.0
        for iteration in range(config.schedule.num_iterations):
            algorithm.counters.iteration = iteration
            num_positions = algorithm.iterate(Stop())["self_play/positions"]
        return int(num_positions)


def _as_small_as_may_be(config: TrainConfig) -> TrainConfig:
    return replace(
        config,
        search=replace(config.search, num_simulations=2),
        learner=replace(config.learner, batch_size=16, samples_per_position=1.0),
        schedule=ScheduleConfig(num_iterations=1, games_per_iteration=2),
    )


def main(arguments: list[str]) -> int:
    """Runs `reversi bench training`."""
    settings = settings_of("bench training", __doc__ or "", TrainingBenchSettings, arguments)
    variant = Variant()
    size = ResidualConfig(settings.channels, settings.blocks)
    backend = choose(settings.backend, batch=settings.games).backend
    config = TrainConfig(
        variant=VariantConfig(),
        network=NetworkConfig(settings.channels, settings.blocks),
        search=MCTSConfig(root="gumbel", num_simulations=settings.simulations, gumbel_scale=1.0),
        self_play=SelfPlayConfig(games_at_once=settings.games, exact_empties=0),
        learner=LearnerConfig(samples_per_position=settings.samples),
        actors=ActorsConfig(kind="thread", num_actors=1, inference=InferenceConfig(backend), cache_entries=0),
        schedule=ScheduleConfig(num_iterations=settings.iterations, games_per_iteration=settings.games),
        seed=SEED,
        device="cpu",
    )
    torch.manual_seed(SEED)
    published = publish(ResidualNetwork(size), variant, backend)
    bare, steps, together = f"{published.backend}, bare", "training steps, bare", "self-play and learning"
    ask = asking(published.make_backend(), variant, settings.games, CALLS)
    learn = _Steps(variant, ResidualNetwork(size), config.learner)
    ask()
    learn()
    generate(_as_small_as_may_be(config))  # to compile the kernels
    figures = measure({bare: ask, steps: learn, together: lambda: generate(config)}, settings.rounds, warm_up=False)
    rates = {figure.name: figure.per_cpu_s for figure in figures}
    allowed = 1 / (settings.simulations / rates[bare] + settings.samples / rates[steps])
    share = rates[together] / allowed
    show(figures, settings, allowed_positions_per_cpu_s=allowed, of_allowed=share)
    if not settings.json:
        print(
            f"{settings.simulations} simulations and {settings.samples:g} samples each would allow {allowed:,.1f} "
            f"positions a CPU-second; the whole makes {rates[together]:,.1f}, {share:.1%} of that"
        )
    return 0
