"""The rules as kernels: legal moves, moves, the end and the score, for every variant.

Boards are relative to the side to move (`player`, `opponent`); a move swaps them. `center` holds the center squares
under free placement and nothing under other starts: while one of them is empty, discs are placed there, nothing flips,
nobody passes and nothing ends.
"""

from typing import NamedTuple

import numpy as np

from reversi_env.bitboard import bit_of, load
from reversi_env.geometry import Bitboard
from reversi_env.jit import kernel
from reversi_env.vectors import bit, count, is_empty, line_flips, line_moves, no_square, overlap, union, without

MUST_MOVE, MUST_PASS, OVER = 0, 1, 2


class Rules(NamedTuple):
    """A variant as kernels take it."""

    squares: Bitboard  # every square of the board
    center: Bitboard  # the center squares under free placement, else none
    size: int
    fewest: bool  # the goal: fewest discs win
    tournament: bool  # the scoring: empties count for the side with more discs


@kernel
def rules_for_moves(field: np.ndarray, size: int, fewest: bool, like: Bitboard) -> Rules:
    """Returns rules that serve for moves, and not for scores, from a `Variant.field`, uint64 [2, W].

    An array costs a call from Python a third of what a tuple does.
    """
    return Rules(load(field, 0, like), load(field, 1, like), size, fewest, False)


@kernel
def legal_mask(player: Bitboard, opponent: Bitboard, rules: Rules) -> Bitboard:
    """Returns the squares on which `player` may place a disc."""
    occupied = union(player, opponent)
    unplaced = without(rules.center, occupied)
    if not is_empty(unplaced):
        return unplaced
    return line_moves(player, opponent, without(rules.squares, occupied))


@kernel
def flip_mask(player: Bitboard, opponent: Bitboard, move: Bitboard, rules: Rules) -> Bitboard:
    """Returns the opponent's discs that `move` (one bit set, an empty square) turns."""
    if not is_empty(without(rules.center, union(player, opponent))):
        return no_square(player)
    return line_flips(player, opponent, move)


@kernel
def is_legal(legal: Bitboard, move: int, rules: Rules) -> bool:
    """Returns whether a move may be played where `legal` are the legal squares and the game goes on; any integer."""
    if move == rules.size * rules.size:
        return is_empty(legal)
    if move < 0 or move > rules.size * rules.size:
        return False
    return not is_empty(overlap(legal, bit(bit_of(move, rules.size, legal), legal)))


@kernel
def play(player: Bitboard, opponent: Bitboard, move: Bitboard, rules: Rules) -> tuple[Bitboard, Bitboard]:
    """Returns the boards after the legal `move` (one bit set), as the other side sees them."""
    flipped = flip_mask(player, opponent, move, rules)
    return without(opponent, flipped), union(player, union(flipped, move))


@kernel
def play_square(player: Bitboard, opponent: Bitboard, square: int, rules: Rules) -> tuple[Bitboard, Bitboard]:
    """Returns the boards after a move to `square`, or after a pass (size²), as the other side sees them."""
    if square == rules.size * rules.size:
        return opponent, player
    return play(player, opponent, bit(bit_of(square, rules.size, player), player), rules)


@kernel
def status(player: Bitboard, opponent: Bitboard, legal: Bitboard, rules: Rules) -> int:
    """Returns what `player`, whose legal squares are `legal`, may do: MUST_MOVE, MUST_PASS or nothing, OVER."""
    if not is_empty(legal):
        return MUST_MOVE
    return OVER if is_empty(legal_mask(opponent, player, rules)) else MUST_PASS


@kernel
def final_score(player: Bitboard, opponent: Bitboard, rules: Rules) -> int:
    """Returns the score of a finished game for `player`, under the variant's scoring and goal."""
    differential = count(player) - count(opponent)
    if rules.tournament and differential != 0:
        empties = rules.size * rules.size - count(player) - count(opponent)
        differential += empties if differential > 0 else -empties
    return -differential if rules.fewest else differential
