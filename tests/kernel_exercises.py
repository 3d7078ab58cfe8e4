"""Exercises that between them run every kernel: `python -m tests.kernel_exercises 1 reversi_env agents`.

They run on boards of so many words only, since what is compiled for one and for two has little in common, and two
processes are done in half the time. Prints, as JSON, what the exercises returned and how each kernel of these packages
came by its machine code. A kernel that no exercise reaches is named by tests/test_kernels.py; the place to reach it is
`EXERCISES`.
"""

import importlib
import json
import pkgutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import agents
from agents.evaluation import error_model_of, evaluate, evaluation_of, learned_evaluation
from agents.explain import explain
from agents.mcts import MCTSAgent, MCTSConfig
from agents.mcts.cache import CachedEvaluator
from agents.mcts.evaluators import InDiscs, Playouts
from agents.networks.inference import NUM_RESULTS, NetworkEvaluator
from agents.ntuple.layout import layout_of
from agents.ntuple.network import TupleNetwork
from agents.ntuple.policy import TupleEvaluator
from agents.ntuple.tables import Tables
from agents.search.midgame import Searcher
from agents.search.probcut import margins
from agents.search.solver import Solver
from experiments.bench import measure
from experiments.training.ntuple_games import Style, predicted, self_play, share_of
from experiments.training.ntuple_learner import NTupleLearner
from experiments.training.replay import Replay, ReplayConfig, Samples
from experiments.training.self_play import SelfPlayConfig, play_games
from experiments.training.tuple_learner import TupleLearner, TupleLearnerConfig
from reversi_env import Batch, Position, ReversiEnv, Variant, jit, perft, random_games
from reversi_env.datasets import PositionDataset
from reversi_env.encoding import NUM_PLANES, write_planes
from reversi_env.geometry import num_words
from reversi_env.opponents import BASELINES
from reversi_env.replay import replay
from reversi_env.shards import Plan, open_dataset, write_random_games

VARIANTS = [Variant(8), Variant(10), Variant(6, "free", "fewest", "tournament")]  # one word, two words, other rules


def rules() -> object:
    """Counts leaves, plays random games, and walks through one of them."""
    seen: list[object] = []
    for variant in VARIANTS:
        position = Position(variant)
        games = random_games(position, 3, seed=1)
        for move in games.moves[0, : games.lengths[0]].tolist():
            seen.append(position.flips(move).sum() if move < variant.pass_move else 0)
            position = position.play(move)
        seen += [perft(Position(variant), 4), games.black_scores.tolist(), position.score, position.text]
    return seen


def environments() -> object:
    """Plays a game of first legal moves against each opponent."""
    seen: list[object] = []
    for variant in VARIANTS:
        for opponent in (*BASELINES, None):
            env = ReversiEnv(variant=variant, opponent=opponent)
            observation, _ = env.reset(seed=1)
            is_over = False
            while not is_over:
                observation, reward, is_over, _, _ = env.step(int(observation["action_mask"].argmax()))
                seen.append(float(reward))
            seen.append(observation["observation"].tolist())
    return seen


def batches() -> object:
    """Plays some games at once against a pool, and replays random games without their passes."""
    seen: list[object] = []
    for variant in VARIANTS:
        batch = Batch(8, variant, ["random", "positional", lambda position, rng: position.legal_moves[0]], "random")
        batch.reset(seed=1)
        for _ in range(variant.num_squares // 2):
            batch.step(batch.action_mask.argmax(axis=1))
            seen.append([batch.reward.tolist(), batch.is_over.tolist()])
        seen.append(batch.observation.tolist())
        games = random_games(Position(variant), 3, seed=1)
        seen.append(replay(Position(variant), games.moves).moves.tolist())
    return seen


def datasets() -> object:
    """Writes random games to disk, and reads from there the games and their positions."""
    seen: list[object] = []
    for variant in VARIANTS:
        with tempfile.TemporaryDirectory() as folder:
            write_random_games(Path(folder), Plan(variant, 3), seed=1)
            games = open_dataset(folder)
            seen += [array.tolist() for array in games[:].values()]
            seen += [array.tolist() for array in PositionDataset(games)[:9].values()]
    return seen


def planes() -> object:
    """Writes what a network sees of the start."""
    seen = []
    for variant in VARIANTS:
        start = Position(variant)
        player, opponent = (np.array([discs], np.uint64) for discs in (start.player, start.opponent))
        array = np.empty((1, NUM_PLANES, variant.size, variant.size), np.float32)
        mask = np.empty((1, variant.num_actions), np.bool_)
        write_planes(player, opponent, array, mask, variant.rules)
        seen.append([array.tolist(), mask.tolist()])
    return seen


def players() -> object:
    """Lets each kind of player that needs no network move in a middle game and near the end."""
    seen: list[object] = []
    for spec in (
        "random",
        "greedy",
        "positional",
        "mobility",
        "alphabeta:depth=3,exact=8",
        "alphabeta:nodes=2000,exact=8",
    ):
        agent = agents.make(spec)
        for variant in VARIANTS:
            games = random_games(Position(variant), 1, seed=2)
            position = Position(variant)
            for ply, move in enumerate(games.moves[0, : games.lengths[0]].tolist()):
                if ply in (10, games.lengths[0] - 9):
                    seen.append(int(agent.select(position, np.random.default_rng(1)).move))
                position = position.play(move)
    return seen


def searches_ahead() -> object:
    """Looks some plies ahead, with a shallower search believed where it is sure."""
    seen: list[object] = []
    for variant in VARIANTS:
        start, evaluation = Position(variant), evaluation_of("mobility", variant)
        searcher = Searcher(variant.size, 1 << 8, margins(error_model_of("mobility", variant), 3, variant.size), 2)
        player, opponent = (np.array([discs], np.uint64) for discs in (start.player, start.opponent))
        seen.append([array.tolist() for array in searcher.best_moves(player, opponent, 5, evaluation, variant.rules)])
        seen.append(searcher.move_values(player, opponent, 3, evaluation, variant.rules).tolist())
    return seen


def solutions() -> object:
    """Solves positions near the end, one of them with two threads."""
    seen: list[object] = []
    for variant in VARIANTS:
        for num_empties, num_threads in ((9, 1), (11, 1), (15, 2)):
            position = near_end(variant, num_empties)
            solver = Solver(variant, 1 << 10, num_threads=num_threads)
            seen.append(solver.solve(position).score)
        seen.append([solution.upper for solution in solver.solve_moves(near_end(variant, 8)).values()])
    return seen


def near_end(variant: Variant, num_empties: int) -> Position:
    """Returns a position of a random game with so many empty squares."""
    games = random_games(Position(variant), 1, seed=3)
    position = Position(variant)
    for move in games.moves[0, : games.lengths[0]].tolist():
        if position.num_empties == num_empties:
            break
        position = position.play(move)
    return position


def tables() -> object:
    """Evaluates the start by n-tuples that stand for nothing."""
    seen: list[object] = []
    for variant in VARIANTS:
        start, known = Position(variant), Tables.zeros(variant)
        known.weights[:] = np.linspace(-1, 1, known.weights.size, dtype=np.float32).reshape(known.weights.shape)
        seen.append(evaluate(start.player, start.opponent, learned_evaluation(known), variant.rules))
    return seen


def policies_of_tuples() -> object:
    """Asks n-tuples that know nothing for policy and value of the start."""
    seen: list[object] = []
    for variant in VARIANTS:
        start = Position(variant)
        player, opponent = (np.array([discs], np.uint64) for discs in (start.player, start.opponent))
        seen.append(
            [array.tolist() for array in TupleEvaluator(TupleNetwork.new(variant.size))(player, opponent, variant)]
        )
    return seen


def explanations() -> object:
    """Explains each move of a game."""
    seen: list[object] = []
    for variant in VARIANTS:
        position = Position(variant)
        games = random_games(position, 1, seed=3)
        for move in games.moves[0, : games.lengths[0]].tolist():
            seen.append(explain(position, move).reasons)
            position = position.play(move)
    return seen


def searches() -> object:
    """Searches trees with an evaluator that knows nothing: by both kinds of roots, with noise, with leaves solved."""
    seen: list[object] = []
    for config in (
        MCTSConfig(num_simulations=30, noise_fraction=0.25, forced_playouts=2.0, leaves_per_call=3),
        MCTSConfig(root="gumbel", num_simulations=30, gumbel_scale=1.0),
        MCTSConfig(num_simulations=30, exact_empties=8),
    ):
        for variant in VARIANTS:
            agent = MCTSAgent(_know_nothing, config, "mcts")
            for position in (Position(variant), near_end(variant, 10)):
                decision = agent.select(position, np.random.default_rng(1))
                assert decision.policy is not None
                seen.append([decision.policy.tolist(), decision.value, decision.principal_line, decision.candidates])
    return seen


def self_play_of_searches() -> object:
    """Lets tree searches play against themselves: some of them quick, trees kept, the end solved."""
    seen: list[object] = []
    config = SelfPlayConfig(2, 8, max_random_plies=2, full_share=0.5, quick_simulations=4, reuses_tree=True)
    search = MCTSConfig(num_simulations=8, noise_fraction=0.25, temperature_moves=10)
    for variant in VARIANTS:
        played = play_games(variant, _know_nothing, search, config, range(3), (1,))
        seen += [array.tolist() for array in played.samples.arrays().values()]
    return seen


def _know_nothing(player: np.ndarray, opponent: np.ndarray, variant: Variant) -> tuple[np.ndarray, np.ndarray]:
    policy = np.empty((len(player), variant.num_actions), np.float32)
    for row, discs in enumerate(zip(player.tolist(), opponent.tolist(), strict=True)):
        mask = Position.from_bitboards(variant, *map(tuple, discs)).action_mask
        policy[row] = mask / mask.sum()
    return policy, np.zeros(len(player), np.float32)


def evaluators() -> object:
    """Asks a network that knows nothing, what remembers its answers, random playouts and an evaluation in discs."""
    seen: list[object] = []
    for variant in VARIANTS:
        start = Position(variant)
        boards = [np.array([discs] * 2) for discs in (start.player, start.opponent)]
        cached = CachedEvaluator(NetworkEvaluator(_LogitsOfNothing()), 8)
        for evaluator in (cached, Playouts(2), InDiscs("mobility")):
            seen.append([array.tolist() for array in evaluator(*boards, variant)])
    return seen


class _LogitsOfNothing:
    name = "nothing"

    def __call__(self, planes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        num_actions = planes[0, 0].size + 1
        return np.zeros((len(planes), num_actions), np.float32), np.zeros((len(planes), NUM_RESULTS), np.float32)


def self_play_of_tables() -> object:
    """Lets n-tuples that know nothing play two games against themselves, and learn from them."""
    seen: list[object] = []
    for variant in VARIANTS:
        layout, evaluation = layout_of(variant.size), learned_evaluation(Tables.zeros(variant))
        style = Style(1, 4, 0, 4, share_of(0.1), 0.8)
        positions = self_play(variant, evaluation, style, 2, 1, 1, lambda: None).positions
        learner = NTupleLearner(layout)
        learner.learn(positions.boards, positions.target, np.arange(len(positions)), 0.5, 1.0, 1)
        seen += [predicted(positions, evaluation, variant).tolist(), float(learner.weights.sum())]
    return seen


def replays() -> object:
    """Draws the start as a training step takes it, and lets n-tuples learn from it."""
    seen: list[object] = []
    for variant in VARIANTS:
        start, num_rows = Position(variant), 3
        player, opponent = (np.array([discs] * num_rows) for discs in (start.player, start.opponent))
        zeros = np.zeros(num_rows, np.int8)
        samples = Samples(
            player=player,
            opponent=opponent,
            policy=np.array([start.action_mask / start.action_mask.sum()] * num_rows, np.float16),
            policy_weight=np.ones(num_rows, np.float16),
            value=np.zeros(num_rows, np.float16),
            result=zeros,
            score=zeros,
            final_player=player,
            final_opponent=opponent,
        )
        replay = Replay(variant, ReplayConfig())
        replay.add(samples)
        batch = replay.draw(8, np.random.default_rng(1))
        seen.append([array.tolist() for array in (batch.planes, batch.legal, batch.policy, batch.owner)])
        learner = TupleLearner(TupleNetwork.new(variant.size), TupleLearnerConfig(batch_size=8))
        seen.append(learner.learn(replay, 1, 0.0, np.random.default_rng(1), lambda: None))
    return seen


def benchmarks() -> object:
    """Runs the chain that benchmarks compare with."""
    return measure._chain(np.uint64(1), 10)


EXERCISES: dict[str, list[Callable[[], object]]] = {
    "reversi_env": [rules, environments, batches, datasets, planes],
    "agents": [players, searches_ahead, solutions, tables, policies_of_tuples, explanations, searches, evaluators],
    "experiments": [self_play_of_tables, self_play_of_searches, replays, benchmarks],
}


def modules(package: str) -> list[str]:
    """Imports every module of a package, and returns their names."""
    found = importlib.import_module(package)
    names = [module.name for module in pkgutil.walk_packages(found.__path__, f"{package}.")]
    for name in names:
        importlib.import_module(name)
    return [package, *names]


def kernels(package: str) -> dict[str, Any]:
    """Returns the kernels of all modules of a package by name."""
    names = set(modules(package))
    ours = [dispatcher for dispatcher in jit._DISPATCHERS if dispatcher.py_func.__module__ in names]
    return {f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__}": dispatcher for dispatcher in ours}


def main(words: str, *packages: str) -> None:
    VARIANTS[:] = [variant for variant in VARIANTS if num_words(variant.size) == int(words)]
    results = {exercise.__name__: repr(exercise()) for package in packages for exercise in EXERCISES[package]}
    states = {
        name: {
            "compiled": sum(dispatcher.stats.cache_misses.values()),
            "loaded": sum(dispatcher.stats.cache_hits.values()),
            "folder": dispatcher.stats.cache_path,
        }
        for package in packages
        for name, dispatcher in kernels(package).items()
    }
    json.dump({"results": results, "kernels": states}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
