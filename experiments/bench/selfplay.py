"""Measures self-play: the tree alone, and how close whole games come to the bare speed of their network.

    reversi bench selfplay
    reversi bench selfplay --json --rounds 3 --channels 32 --blocks 4

Amounts are positions evaluated, of the tree alone simulations. One actor, no learner, no solver. The tree alone
searches 256 positions side by side with an evaluator that costs nothing; playouts are random games from a leaf. Each
network is asked bare for as many positions at a time as its actor asks for, then by an actor whose games search by
Gumbel roots. The usual loop has a tree of Python objects and asks for one position at a time.
"""

import itertools
import time
from dataclasses import dataclass

import numpy as np
import torch

from agents.mcts import Evaluator, MCTSConfig, Search
from agents.mcts.evaluators import Playouts
from agents.networks.inference import Backend, NetworkEvaluator
from agents.networks.published import is_available, publish
from agents.networks.residual import ResidualConfig, ResidualNetwork
from experiments.arguments import setting
from experiments.bench.inference import asking
from experiments.bench.measure import BenchSettings, Workload, measure, settings_of, show
from experiments.bench.usual_loop import UsualLoop
from experiments.training.self_play import Playing, SelfPlayConfig
from reversi_env import Game, Position, Variant, random_games

SEED = 1
BACKENDS = ("onnx", "onnx-int8", "openvino-int8", "torch")
USUAL = "torch"  # what the usual loop asks, one position at a time
TREE_GAMES = 256
TREE_SEARCHES = 8  # of each position in a round
PLAYOUT_CALLS = 250  # in a round


@dataclass
class SelfPlayBenchSettings(BenchSettings):
    """Which network plays, and how."""

    rounds: int = setting(3, "rounds, of which the medians are taken")
    channels: int = setting(64, "channels of the residual network")
    blocks: int = setting(5, "blocks of the residual network")
    games: int = setting(64, "games side by side, and so positions a call")
    simulations: int = setting(32, "simulations a move")
    calls: int = setting(60, "calls of the network in a round")


class _Free:
    """An Evaluator that costs nothing: it reads the same priors and values at every call."""

    def __init__(self, variant: Variant) -> None:
        rng = np.random.default_rng(SEED)
        self._policy = rng.dirichlet(np.ones(variant.num_actions), TREE_GAMES).astype(np.float32)
        self._value = rng.uniform(-0.1, 0.1, TREE_GAMES).astype(np.float32)

    def __call__(self, player: np.ndarray, opponent: np.ndarray, variant: Variant) -> tuple[np.ndarray, np.ndarray]:
        return self._policy[: len(player)], self._value[: len(player)]


class _Timed:
    """A backend that tells its CPU time."""

    def __init__(self, backend: Backend) -> None:
        self.name = backend.name
        self.cpu_s = 0.0
        self._backend = backend

    def __call__(self, planes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        began = time.process_time()
        answer = self._backend(planes)
        self.cpu_s += time.process_time() - began
        return answer


class _Think:
    """The work of searching positions of random games; counts simulations."""

    def __init__(self, variant: Variant, config: MCTSConfig) -> None:
        self._search = Search(variant, _Free(variant), config, TREE_GAMES)
        games = random_games(Position(variant), TREE_GAMES, SEED)
        positions = [  # after 4 to 43 plies, which no game is shorter than
            Game.from_moves(moves[: 4 + number % 40].tolist(), variant).position
            for number, moves in enumerate(games.moves)
        ]
        self._player = np.array([position.player for position in positions])
        self._opponent = np.array([position.opponent for position in positions])
        self._rngs = [np.random.default_rng(number) for number in range(TREE_GAMES)]

    def __call__(self) -> int:
        num_simulations = 0
        for _ in range(TREE_SEARCHES):
            found = self._search.run(self._player, self._opponent, self._rngs)
            num_simulations += int(found.num_simulations.sum())
        return num_simulations


class _Play:
    """The work of playing games side by side until the evaluator was called so often; counts its positions."""

    def __init__(self, variant: Variant, evaluate: Evaluator, config: MCTSConfig, num_games: int, calls: int) -> None:
        self.cpu_s = 0.0
        self._calls = calls
        config_of_games = SelfPlayConfig(games_at_once=num_games, exact_empties=0)
        self._actor = Playing(variant, evaluate, config, config_of_games, range(1 << 40), (SEED,))

    def __call__(self) -> int:
        began, before = time.process_time(), self._actor.search.num_evaluated
        for _ in range(self._calls):
            self._actor.step()
        self.cpu_s += time.process_time() - began
        return self._actor.search.num_evaluated - before


def _search_config(root: str, num_simulations: int) -> MCTSConfig:
    """Returns how self-play searches, with its noise."""
    if root == "gumbel":
        return MCTSConfig(root=root, num_simulations=num_simulations, gumbel_scale=1.0)
    return MCTSConfig(num_simulations=num_simulations, noise_fraction=0.25, temperature_moves=12)


def main(arguments: list[str]) -> int:
    """Runs `reversi bench selfplay`."""
    settings = settings_of("bench selfplay", __doc__ or "", SelfPlayBenchSettings, arguments)
    variant = Variant()
    workloads: dict[str, Workload] = {}
    for num_simulations, root in itertools.product((32, 200), ("gumbel", "puct")):
        config = _search_config(root, num_simulations)
        workloads[f"tree alone, {root}, {num_simulations} simulations a move"] = _Think(variant, config)
    workloads["playouts, one a leaf, 32 simulations a move"] = _Play(
        variant, Playouts(), _search_config("puct", 32), TREE_GAMES, PLAYOUT_CALLS
    )
    torch.manual_seed(SEED)
    network = ResidualNetwork(ResidualConfig(settings.channels, settings.blocks))
    published = {name: publish(network, variant, name) for name in BACKENDS if is_available(name)}
    backends = {name: found.make_backend() for name, found in published.items() if found.backend == name}
    timed = {name: _Timed(backend) for name, backend in backends.items()}
    config = _search_config("gumbel", settings.simulations)
    players = {
        name: _Play(variant, NetworkEvaluator(timed[name]), config, settings.games, settings.calls) for name in backends
    }
    for name in backends:
        workloads[f"{name}, bare"] = asking(backends[name], variant, settings.games, settings.calls)
        workloads[f"{name}, self-play"] = players[name]
    loop = UsualLoop(variant, NetworkEvaluator(backends[USUAL]), settings.simulations)
    num_moves = max(settings.calls * settings.games // (10 * settings.simulations), 1)
    workloads[f"{USUAL}, usual loop"] = lambda: loop.play_moves(num_moves)
    figures = measure(workloads, settings.rounds)
    rates = {figure.name: figure.per_cpu_s for figure in figures}
    summary = {
        name: {
            "share_in_network": timed[name].cpu_s / players[name].cpu_s,
            "of_bare": rates[f"{name}, self-play"] / rates[f"{name}, bare"],
            "of_usual_loop": rates[f"{name}, self-play"] / rates[f"{USUAL}, usual loop"],
        }
        for name in backends
    }
    show(figures, settings, backends=summary)
    if not settings.json:
        for name, shares in summary.items():
            print(
                f"{name}: {shares['share_in_network']:.1%} of the actor's CPU time is the network's; it plays at "
                f"{shares['of_bare']:.1%} of the bare speed, {shares['of_usual_loop']:.1f} times the usual loop's"
            )
    return 0
