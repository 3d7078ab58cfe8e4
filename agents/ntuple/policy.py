"""Policies and values by n-tuples: the kernel, and the evaluator that search asks."""

import math

import numpy as np

from agents.ntuple.lanes import sum_pairs
from agents.ntuple.layout import MOST_MOVES, UNIT
from agents.ntuple.network import TupleArrays, TupleNetwork
from reversi_env import Variant
from reversi_env.bitboard import load, square_of
from reversi_env.geometry import Bitboard
from reversi_env.jit import kernel
from reversi_env.rules import Rules, final_score, legal_mask, play_square
from reversi_env.vectors import count, is_empty, lowest, without_lowest

_UNIT = np.float32(UNIT)
_HALF = np.float32(0.5)
_ROOT_HALF = np.float32(math.sqrt(0.5))


class TupleEvaluator:
    """An `agents.mcts.Evaluator` by n-tuples: hundreds of thousands of positions a second on one thread."""

    def __init__(self, network: TupleNetwork) -> None:
        self.size = network.size
        self._arrays = network.arrays()

    def __call__(self, player: np.ndarray, opponent: np.ndarray, variant: Variant) -> tuple[np.ndarray, np.ndarray]:
        if variant.size != self.size:
            raise ValueError(
                f"these n-tuples were trained on {self.size}×{self.size}, and {variant.name} has {variant.size} columns"
            )
        policy = np.empty((len(player), variant.num_actions), np.float32)
        value = np.empty(len(player), np.float32)
        evaluate_tuples(player, opponent, policy, value, self._arrays, variant.rules)
        return policy, value


@kernel
def expected_result(margin: np.float32, spread: np.float32) -> np.float32:
    """Returns P(win) − P(loss) where the final score is normal about `margin` and an odd one does not occur.

    Scores are even as long as no square stays empty; so a draw has the probability of a score from −1 to 1.
    """
    scale = _ROOT_HALF / spread
    return _HALF * (math.erf((margin + 1) * scale) + math.erf((margin - 1) * scale))


@kernel
def evaluate_tuples(
    player: np.ndarray,
    opponent: np.ndarray,
    policy: np.ndarray,
    value: np.ndarray,
    arrays: TupleArrays,
    rules: Rules,
) -> None:
    """Fills `policy`, float32 [B, A], and `value`, float32 [B], of positions uint64 [B, W], none of them over."""
    pass_move = rules.size * rules.size
    moves, margins = np.empty(pass_move, np.int64), np.empty(pass_move, np.float32)
    policy[:] = 0
    for row in range(player.shape[0]):
        own, other = load(player, row, rules.squares), load(opponent, row, rules.squares)
        num_empties = pass_move - count(own) - count(other)
        legal = legal_mask(own, other, rules)
        if is_empty(legal):
            policy[row, pass_move] = 1
            margin = -_margin_and_logit(other, own, count(legal_mask(other, own, rules)), 0, arrays, rules)[0]
            value[row] = expected_result(margin, arrays.spread[num_empties])
            continue
        num_moves = 0
        highest = np.float32(-np.inf)
        while not is_empty(legal):
            move = square_of(lowest(legal), rules.size, legal)
            legal = without_lowest(legal)
            after = play_square(own, other, move, rules)
            num_replies = count(legal_mask(after[0], after[1], rules))
            num_next = count(legal_mask(after[1], after[0], rules))
            margin, logit = _margin_and_logit(after[0], after[1], num_replies, num_next, arrays, rules)
            if num_replies == 0 and num_next == 0:
                margin = np.float32(final_score(after[0], after[1], rules))
            logit -= arrays.logit_per_disc[num_empties] * margin
            highest = max(highest, logit)
            moves[num_moves], margins[num_moves], policy[row, move] = move, -margin, logit
            num_moves += 1
        total = np.float32(0)
        mean = np.float32(0)
        for number in range(num_moves):
            share = np.exp(policy[row, moves[number]] - highest)
            policy[row, moves[number]] = share
            total += share
            mean += share * margins[number]
        for number in range(num_moves):
            policy[row, moves[number]] /= total
        value[row] = expected_result(mean / total, arrays.spread[num_empties])


@kernel
def _margin_and_logit(
    player: Bitboard, opponent: Bitboard, num_moves: int, num_replies: int, arrays: TupleArrays, rules: Rules
) -> tuple[np.float32, np.float32]:
    """Returns the sums of a position's weights, in discs and in logits; the counts are those of both sides' moves."""
    num_empties = rules.size * rules.size - count(player) - count(opponent)
    cells = (
        arrays.move_cells[0] + min(num_moves, MOST_MOVES),
        arrays.move_cells[1] + min(num_replies, MOST_MOVES),
    )
    margin, logit = sum_pairs(player, opponent, num_empties, cells, arrays.packed)
    return np.float32(margin) / _UNIT, np.float32(logit) / _UNIT
