"""What n-tuples say of a position, in plain Python and in float64: a feature, a move at a time."""

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from agents.ntuple.layout import layout_of
from agents.ntuple.network import MARGIN, POLICY, TupleNetwork
from agents.ntuple.patterns import patterns_of
from reversi_env import Position
from reversi_env.geometry import to_squares


class Numbers(NamedTuple):
    """Those of a `TupleNetwork`, of any precision."""

    weights: np.ndarray
    logit_per_disc: np.ndarray
    spread: np.ndarray


@cache
def random_network(size: int) -> TupleNetwork:
    """Returns a network whose numbers are random and survive the rounding of its bytes."""
    rng = np.random.default_rng(size)
    network = TupleNetwork.new(size)
    network.weights[:] = rng.normal(0, 0.5, network.weights.shape)
    network.weights[:] = np.rint(network.weights * 256) / 256
    network.logit_per_disc[:] = rng.uniform(0.1, 0.5, size * size + 1)
    network.spread[:] = rng.uniform(1, 20, size * size + 1)
    return network


def num_moves(position: Position, of_mover: bool) -> int:
    """Returns how many squares are legal for a side, whatever the other one may do."""
    black_to_move = position.is_black_to_move is of_mover
    size = position.variant.size
    black, white = (list(to_squares(discs, size)) for discs in (position.black, position.white))
    asked = Position.from_squares(position.variant, black, white, black_to_move)
    return 0 if asked.is_over else len([move for move in asked.legal_moves if move < size * size])


def weights_by_hand(position: Position) -> tuple[int, list[int]]:
    """Returns the stage of a position and the number of each of its weights, some of them more than once."""
    size = position.variant.size
    digits = dict.fromkeys(range(size * size), 0)
    digits.update(dict.fromkeys(to_squares(position.player, size), 1))
    digits.update(dict.fromkeys(to_squares(position.opponent, size), 2))
    width = max(2, size * size // 16)
    counted = max(position.num_empties - 1, 0)
    moves = [min(num_moves(position, of_mover), 31) for of_mover in (True, False)]
    cells = [1 + counted % width, 1 + width + moves[0], 1 + width + 32 + moves[1]]
    start = 1 + width + 64
    for pattern in patterns_of(size):
        for squares in pattern.features:
            cells.append(start + sum(digits[square] * 3**place for place, square in enumerate(squares)))
        start += 3 ** len(pattern.squares)
    weight_of_cell = layout_of(size, counts_moves=True).weight_of_cell
    return counted // width, [int(weight_of_cell[cell - 1]) for cell in cells]


def sums_by_hand(position: Position, network: Numbers | TupleNetwork) -> np.ndarray:
    """Returns the sums of a position's weights, float64 [2]."""
    stage, weights = weights_by_hand(position)
    return network.weights[stage, weights].sum(axis=0, dtype=np.float64)


def answer_by_hand(position: Position, network: Numbers | TupleNetwork) -> tuple[np.ndarray, float, float]:
    """Returns policy, value and margin by what the docstrings say, a move at a time."""
    num_empties = position.num_empties
    policy = np.zeros(position.variant.num_actions)
    margins, logits = [], []
    for move in position.legal_moves:
        after = position.play(move)
        sums = sums_by_hand(after, network)
        margins.append(-(after.score if after.is_over else sums[MARGIN]))
        logits.append(sums[POLICY] + network.logit_per_disc[num_empties] * margins[-1])
    shares = np.exp(np.array(logits) - max(logits))
    policy[list(position.legal_moves)] = shares / shares.sum()
    margin = float(policy[list(position.legal_moves)] @ margins)
    spread = float(network.spread[num_empties])
    return policy, norm.sf(1, margin, spread) - norm.cdf(-1, margin, spread), margin
