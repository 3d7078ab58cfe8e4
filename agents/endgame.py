"""The last few empty squares, played out exactly: too near the end for a table or an order of moves to pay."""

import numpy as np

from reversi_env.geometry import Bitboard
from reversi_env.jit import kernel
from reversi_env.rules import Rules, final_score, legal_mask, play
from reversi_env.vectors import bit, is_empty, lowest, without_lowest

NODES = 0  # entry of `progress` that counts the positions looked at


@kernel
def solve_few(
    player: Bitboard, opponent: Bitboard, alpha: int, beta: int, num_empties: int, progress: np.ndarray, rules: Rules
) -> int:
    """Returns the score of perfect play for `player` where it lies between `alpha` and `beta`, else a bound of it.

    A value at or below `alpha` bounds the score from above, one at or above `beta` from below. Adds the positions
    looked at to `progress[NODES]`.
    """
    progress[NODES] += 1
    legal = legal_mask(player, opponent, rules)
    if is_empty(legal):
        if is_empty(legal_mask(opponent, player, rules)):
            return final_score(player, opponent, rules)
        return -solve_few(opponent, player, -beta, -alpha, num_empties, progress, rules)
    best = -rules.size * rules.size
    while not is_empty(legal):
        after = play(player, opponent, bit(lowest(legal), legal), rules)
        if num_empties == 1:
            return -final_score(after[0], after[1], rules)
        score = -solve_few(after[0], after[1], -beta, -max(alpha, best), num_empties - 1, progress, rules)
        if score > best:
            best = score
            if best >= beta:
                break
        legal = without_lowest(legal)
    return best
