"""Samples of random games, for tests of what learns from them; the value tells which position a sample is."""

import numpy as np

from experiments.training.replay import Samples
from reversi_env import Game, Position, Variant, random_games


def samples_of(variant: Variant, num_games: int, seed: int) -> tuple[list[Position], list[Position], Samples]:
    """Returns the positions of random games, how the game of each ended, and both as samples with random policies."""
    games = random_games(Position(variant), num_games, seed)
    positions, ends = [], []
    for moves, length in zip(games.moves, games.lengths, strict=True):
        *before, end = Game.from_moves(moves[:length].tolist(), variant).positions
        positions += before
        ends += [end] * len(before)
    rng = np.random.default_rng(seed)
    policy = np.array([position.action_mask * rng.random(variant.num_actions) for position in positions])
    is_same = np.array(
        [position.is_black_to_move == end.is_black_to_move for position, end in zip(positions, ends, strict=True)]
    )
    sign = np.where(is_same, 1, -1).astype(np.int8)
    first, second = (np.array([getattr(end, side) for end in ends]) for side in ("player", "opponent"))
    return (
        positions,
        ends,
        Samples(
            player=np.array([position.player for position in positions]),
            opponent=np.array([position.opponent for position in positions]),
            policy=(policy / policy.sum(axis=1, keepdims=True)).astype(np.float16),
            policy_weight=np.ones(len(positions), np.float16),
            value=(np.arange(len(positions)) / 1024).astype(np.float16),
            result=sign * np.array([end.result for end in ends], np.int8),
            score=sign * np.array([end.score for end in ends], np.int8),
            final_player=np.where(is_same[:, None], first, second),
            final_opponent=np.where(is_same[:, None], second, first),
        ),
    )
