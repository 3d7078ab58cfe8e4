"""Measures the environment on 8×8: games in a kernel, plies from Python, steps of one environment and of many.

    reversi bench env
    reversi bench env --json

Plies are moves of `Position` with the choice made in Python. Steps are those of `Reversi-v0` as `gymnasium.make` gives
it, with observation and mask, both sides' moves chosen beforehand; the reset of each game is counted in. Batches and
vector environments hold 1,024 games, and each game's step counts; against greedy, a step is a move and its answer.
"""

import functools
import random
from typing import Any

import gymnasium
import numpy as np

from experiments.bench.measure import bench
from reversi_env import Batch, Position, random_games

SEED = 1
KERNEL_GAMES = 20_000
PYTHON_GAMES = 200
BATCH_GAMES = 1024
BATCH_STEPS = 500


def play_in_kernel() -> int:
    """Plays random games in one kernel call and returns how many."""
    random_games(Position(), KERNEL_GAMES, SEED)
    return KERNEL_GAMES


def play_from_python() -> int:
    """Plays random games move by move and returns the plies."""
    draw = random.Random(SEED).random
    num_plies = 0
    for _ in range(PYTHON_GAMES):
        position = Position()
        while moves := position.legal_moves:
            position = position.play(moves[int(draw() * len(moves))])
            num_plies += 1
    return num_plies


def step_env() -> int:
    """Steps through games known beforehand and returns the steps."""
    env, games = _env(), _known_games()
    for moves in games:
        env.reset()
        for move in moves:
            env.step(move)
    return sum(map(len, games))


def step_batch() -> int:
    """Steps through games known beforehand, arrays filled in place, and returns the steps of all games."""
    batch = _batch()
    batch.reset()
    for actions in _known_actions():
        batch.step(actions)
    return BATCH_GAMES * BATCH_STEPS


def step_vector_env() -> int:
    """Steps through games known beforehand, new arrays each time, and returns the steps of all games."""
    envs = _vector_env()
    envs.reset()
    for actions in _known_actions():
        envs.step(actions)
    return BATCH_GAMES * BATCH_STEPS


def step_against_greedy() -> int:
    """Steps through games against a compiled opponent, first legal actions, and returns the learner's steps."""
    batch = _batch("greedy")
    batch.reset()
    for _ in range(BATCH_STEPS):
        batch.step(batch.action_mask.argmax(axis=1))
    return BATCH_GAMES * BATCH_STEPS


@functools.cache
def _batch(opponent: str | None = None) -> Batch:
    return Batch(BATCH_GAMES, opponent=opponent)


@functools.cache
def _vector_env() -> gymnasium.vector.VectorEnv[Any, Any, Any]:
    return gymnasium.make_vec("reversi_env:Reversi-v0", num_envs=BATCH_GAMES, opponent=None)


@functools.cache
def _known_actions() -> np.ndarray:
    """Returns an action for each step and game, int64 [S, N]: random games one after the other."""
    games = random_games(Position(), BATCH_GAMES * (BATCH_STEPS // 50 + 1), SEED)  # of 60 plies for the most part
    plies = np.arange(games.moves.shape[1]) < games.lengths[:, None]
    rows = np.split(np.arange(len(games.moves)), BATCH_GAMES)
    actions = [games.moves[row][plies[row]][:BATCH_STEPS] for row in rows]
    return np.ascontiguousarray(np.array(actions, np.int64).T)


@functools.cache
def _env() -> gymnasium.Env[Any, Any]:
    return gymnasium.make("reversi_env:Reversi-v0", opponent=None)


@functools.cache
def _known_games() -> list[list[int]]:
    games = random_games(Position(), PYTHON_GAMES, SEED)
    return [moves[:length] for moves, length in zip(games.moves.tolist(), games.lengths.tolist(), strict=True)]


WORKLOADS = {
    "random games in a kernel": play_in_kernel,
    "plies from Python": play_from_python,
    "steps of Reversi-v0": step_env,
    f"steps of a batch of {BATCH_GAMES:,} games, in place": step_batch,
    f"steps of a vector environment of {BATCH_GAMES:,} games": step_vector_env,
    "steps of a batch against greedy, choice of argmax counted": step_against_greedy,
}


def main(arguments: list[str]) -> int:
    """Runs `reversi bench env`."""
    return bench("bench env", __doc__ or "", WORKLOADS, arguments)
