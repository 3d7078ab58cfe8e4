"""Perft: the number of leaves of the game tree to a depth, the field's test of rules and their speed."""

import operator

from reversi_env.geometry import Bitboard
from reversi_env.jit import kernel
from reversi_env.position import Position
from reversi_env.rules import Rules, legal_mask, play
from reversi_env.vectors import bit, count, is_empty, lowest, without_lowest

AT_ONCE = 8  # plies below which a kernel counts in one go, and nothing, Ctrl-C included, comes in between


@kernel
def count_leaves(player: Bitboard, opponent: Bitboard, depth: int, rules: Rules) -> int:
    """Returns the leaves `depth` plies below; a pass is one ply, a finished game one leaf at any depth."""
    if depth == 0:
        return 1
    legal = legal_mask(player, opponent, rules)
    if depth == 1:
        return max(1, count(legal))
    if is_empty(legal):
        if is_empty(legal_mask(opponent, player, rules)):
            return 1
        return count_leaves(opponent, player, depth - 1, rules)
    leaves = 0
    while not is_empty(legal):
        after = play(player, opponent, bit(lowest(legal), legal), rules)
        leaves += count_leaves(after[0], after[1], depth - 1, rules)
        legal = without_lowest(legal)
    return leaves


def perft(position: Position, depth: int) -> int:
    """Returns the leaves of the game tree `depth` plies below a position; raises ValueError for a negative depth."""
    depth = operator.index(depth)  # a fraction would never reach zero
    if depth < 0:
        raise ValueError(f"the depth is 0 or more, got {depth}")
    depth = min(depth, 2 * position.num_empties)  # no side passes twice running, so no game has more plies
    if depth > AT_ONCE and not position.is_over:
        return sum(perft(position.play(move), depth - 1) for move in position.legal_moves)
    return count_leaves(position.player, position.opponent, depth, position.variant.rules)
