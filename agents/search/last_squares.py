"""The last few empty squares, played out square by square: nothing else is fast enough so near the end.

Each function is asked whether the player gets more than `alpha`. What it returns is more than `alpha` exactly where the
true score is, and bounds the true score from the same side (fail-soft). Positions looked at are added to
`memory[NODES]`.

A move that moves last into a region gains by it, so squares in quadrants with an odd number of empty squares come first
(parity; Rose, "Othello: A Minute to Learn... A Lifetime to Master", 2005, chapter 9).
"""

from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np

from agents.search.memory import NODES
from reversi_env.bitboard import bit_of, load
from reversi_env.geometry import Bitboard, bit_indices, num_words, to_bitboard
from reversi_env.jit import kernel
from reversi_env.rules import Rules, final_score
from reversi_env.vectors import (
    bit,
    count,
    is_empty,
    line_flips,
    line_moves,
    lowest,
    no_square,
    overlap,
    union,
    without,
    without_lowest,
)

SquaresOf: TypeAlias = Callable[[int, int], Iterable[tuple[int, int]]]  # of a row and a column

UNKNOWN = -(1 << 14)  # less than any score

_BITS = 64  # rows of a table of squares for boards of one word; those of two have a square more than 64
_FILE = np.uint64(0x0101010101010101)
_FILE_TO_BYTE = np.uint64(0x0102040810204080)
_ROW = np.uint64(0xFF)
_TOP_BYTE = np.uint64(56)


def _boards(size: int, squares_of: SquaresOf) -> np.ndarray:
    """Returns a board for each bit of a board of `size` columns, uint64 [bits, W]: `squares_of` a row and a column."""
    words = num_words(size)
    boards = np.zeros((_BITS * words, words), np.uint64)
    for square, index in enumerate(bit_indices(size)):
        on_board = [
            row * size + column
            for row, column in squares_of(*divmod(square, size))
            if 0 <= row < size and 0 <= column < size
        ]
        boards[index] = to_bitboard(on_board, size)
    return boards


def _around(row: int, column: int) -> list[tuple[int, int]]:
    return [(row + down, column + right) for down in (-1, 0, 1) for right in (-1, 0, 1) if down or right]


def _diagonal(slope: int) -> SquaresOf:
    return lambda row, column: [(row + step, column + slope * step) for step in range(-7, 8) if step]


def _quadrant(size: int) -> SquaresOf:
    half = size // 2
    return lambda row, column: [
        (row // half * half + down, column // half * half + right) for down in range(half) for right in range(half)
    ]


def _flips_by_line() -> np.ndarray:
    """Returns how many discs a move flips on a full line of 8, uint8 [8 · 256]: by its place and the player's discs."""
    table = np.zeros((8, 256), np.uint8)
    for place in range(8):
        for discs in range(256):
            for step in (-1, 1):
                end = place + step
                while 0 <= end < 8 and not discs >> end & 1:
                    end += step
                if 0 <= end < 8:
                    table[place, discs] += abs(end - place) - 1
    return table.ravel()


_NEIGHBORS_1, _NEIGHBORS_2 = _boards(8, _around), _boards(10, _around)
_QUADRANTS_1 = np.concatenate([_boards(size, _quadrant(size)) for size in (4, 6, 8)])
_QUADRANTS_2 = _boards(10, _quadrant(10))
_FALLING, _RISING = _boards(8, _diagonal(1)), _boards(8, _diagonal(-1))
_FLIPS_BY_LINE = _flips_by_line()


@kernel
def neighbors_of(index: int, like: Bitboard) -> Bitboard:
    """Returns the squares around the one with the bit `index`."""
    return load(_NEIGHBORS_1, index, like) if len(like) == 1 else load(_NEIGHBORS_2, index, like)


@kernel
def quadrant_of(index: int, like: Bitboard, rules: Rules) -> Bitboard:
    """Returns the quarter of the board in which the square with the bit `index` lies."""
    if len(like) == 1:
        return load(_QUADRANTS_1, (rules.size // 2 - 2) * _BITS + index, like)
    return load(_QUADRANTS_2, index, like)


@kernel
def odd_quadrants(empties: Bitboard, rules: Rules) -> Bitboard:
    """Returns the quadrants with an odd number of empty squares."""
    odd = no_square(empties)
    half = rules.size // 2
    for corner in (0, half, half * rules.size, half * (rules.size + 1)):
        quadrant = quadrant_of(bit_of(corner, rules.size, empties), empties, rules)
        if count(overlap(empties, quadrant)) & 1:
            odd = union(odd, quadrant)
    return odd


@kernel
def last_flips(player: Bitboard, index: int, rules: Rules) -> int:
    """Returns how many discs a move to the bit `index`, the only empty square, flips."""
    if len(player) == 1:
        discs = player[0]
        column, row = index & 7, index >> 3
        in_row = discs >> np.uint64(index & 56) & _ROW
        in_column = (discs >> np.uint64(column) & _FILE) * _FILE_TO_BYTE >> _TOP_BYTE
        falling = (discs & _FALLING[index, 0]) * _FILE >> _TOP_BYTE
        rising = (discs & _RISING[index, 0]) * _FILE >> _TOP_BYTE
        by_column, by_row = np.uint64(column << 8), np.uint64(row << 8)
        flipped = 0
        flipped += _FLIPS_BY_LINE[by_column | in_row]
        flipped += _FLIPS_BY_LINE[by_row | in_column]
        flipped += _FLIPS_BY_LINE[by_column | falling]
        flipped += _FLIPS_BY_LINE[by_column | rising]
        return int(flipped)
    move = bit(index, player)
    return count(line_flips(player, without(rules.squares, union(player, move)), move))


@kernel
def score_1(player: Bitboard, index: int, rules: Rules) -> int:
    """Returns the score with one empty square, the bit `index`; every other square that is not `player`'s is taken."""
    num_squares = rules.size * rules.size
    num_own = count(player)
    flipped = last_flips(player, index, rules)
    if flipped > 0:
        differential = 2 * (num_own + flipped + 1) - num_squares
    else:
        opponent = without(rules.squares, union(player, bit(index, player)))
        flipped = last_flips(opponent, index, rules)
        if flipped > 0:
            differential = 2 * (num_own - flipped) - num_squares
        else:  # it stays empty; the discs are odd in number, so somebody has more
            differential = 2 * num_own + 1 - num_squares
            if rules.tournament:
                differential += 1 if differential > 0 else -1
    return -differential if rules.fewest else differential


@kernel
def score_2(
    player: Bitboard, opponent: Bitboard, alpha: int, first: int, second: int, memory: np.ndarray, rules: Rules
) -> int:
    """Returns the score with two empty squares, the bits `first` and `second`, as far as it matters."""
    best = UNKNOWN
    move, rest = first, second
    for _ in range(2):
        if not is_empty(overlap(neighbors_of(move, player), opponent)):
            flipped = line_flips(player, opponent, bit(move, player))
            if not is_empty(flipped):
                memory[NODES] += 1
                score = -score_1(without(opponent, flipped), rest, rules)
                if score > alpha:
                    return score
                best = max(best, score)
        move, rest = second, first
    if best > UNKNOWN:
        return best
    worst = -UNKNOWN
    move, rest = first, second
    for _ in range(2):
        if not is_empty(overlap(neighbors_of(move, player), player)):
            flipped = line_flips(opponent, player, bit(move, player))
            if not is_empty(flipped):
                memory[NODES] += 1
                score = score_1(without(player, flipped), rest, rules)
                if score <= alpha:
                    return score
                worst = min(worst, score)
        move, rest = second, first
    return worst if worst < -UNKNOWN else final_score(player, opponent, rules)


@kernel
def score_few(
    player: Bitboard,
    opponent: Bitboard,
    alpha: int,
    empties: Bitboard,
    odd: Bitboard,
    memory: np.ndarray,
    rules: Rules,
) -> int:
    """Returns the score with three empty squares or more, as far as it matters.

    `odd` holds the squares of the quadrants with an odd number of `empties`.
    """
    best = UNKNOWN
    is_even = 0
    candidates = empties
    if not is_empty(without_lowest(without_lowest(without_lowest(without_lowest(empties))))):
        candidates = line_moves(player, opponent, empties)  # with more squares most trials would be in vain
    waiting = overlap(candidates, odd)
    while True:
        if is_empty(waiting):
            if is_even:
                break
            is_even = 1
            waiting = without(candidates, odd)
            continue
        index = lowest(waiting)
        waiting = without_lowest(waiting)
        if is_empty(overlap(neighbors_of(index, player), opponent)):
            continue
        move = bit(index, player)
        flipped = line_flips(player, opponent, move)
        if is_empty(flipped):
            continue
        memory[NODES] += 1
        after_player, after_opponent = without(opponent, flipped), union(player, union(flipped, move))
        rest = without(empties, move)
        rest_odd = without(
            union(odd, quadrant_of(index, player, rules)), overlap(odd, quadrant_of(index, player, rules))
        )
        after_first = without_lowest(without_lowest(rest))
        if is_empty(after_first):
            first = overlap(rest, rest_odd)
            if is_empty(first):
                first = rest
            low = lowest(first)
            score = -score_2(
                after_player, after_opponent, -alpha - 1, low, lowest(without(rest, bit(low, rest))), memory, rules
            )
        else:
            score = -score_few(after_player, after_opponent, -alpha - 1, rest, rest_odd, memory, rules)
        if score > alpha:
            return score
        best = max(best, score)
    if best > UNKNOWN:
        return best
    if is_empty(line_moves(opponent, player, empties)):
        return final_score(player, opponent, rules)
    return -score_few(opponent, player, -alpha - 1, empties, odd, memory, rules)
