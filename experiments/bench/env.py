"""Measures the environment on 8×8: games in a kernel, plies from Python, steps of the Gymnasium environment.

    reversi bench env
    reversi bench env --json

Plies are moves of `Position` with the choice made in Python. Steps are those of `Reversi-v0` as `gymnasium.make` gives
it, with observation and mask, both sides' moves chosen beforehand; the reset of each game is counted in.
"""

import functools
import random
from typing import Any

import gymnasium

from experiments.bench.measure import bench
from reversi_env import Position, random_games

SEED = 1
KERNEL_GAMES = 20_000
PYTHON_GAMES = 200


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
}


def main(arguments: list[str]) -> int:
    """Runs `reversi bench env`."""
    return bench("bench env", __doc__ or "", WORKLOADS, arguments)
