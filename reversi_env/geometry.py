"""How a square board lies in 64-bit words: which bit is which square, and which bits are squares at all.

Up to 8×8 a board is one word of 8 columns, 10×10 is two words of 10 columns; 4×4 and 6×6 lie in the top left corner
of the 8×8 grid. Squares and actions count row by row on the board itself: square = row · size + column.
"""

from collections.abc import Iterable
from functools import cache
from typing import TypeAlias

import numpy as np

SIZES = (4, 6, 8, 10)
WORD_BITS = 64
_WORD_MASK = (1 << WORD_BITS) - 1

Bitboard: TypeAlias = tuple[np.uint64, ...]  # the lowest word first


def num_words(size: int) -> int:
    """Returns how many 64-bit words a board of `size` columns takes."""
    return 1 if size <= 8 else 2


def stride_of(words: int) -> int:
    """Returns how many bits a row of a board of so many words takes."""
    return 8 if words == 1 else 10


@cache
def bit_indices(size: int) -> tuple[int, ...]:
    """Returns the bit of each square, [size²], in the order of squares."""
    stride = stride_of(num_words(size))
    return tuple(row * stride + column for row in range(size) for column in range(size))


def inner_mask(words: int) -> int:
    """Returns the bits of all columns but the first and the last, as one integer."""
    stride = stride_of(words)
    row = (1 << (stride - 1)) - 2
    return sum(row << (stride * index) for index in range(stride))


def to_bitboard(squares: Iterable[int], size: int) -> Bitboard:
    """Returns the board of `size` columns with a bit on each of `squares`."""
    bits = bit_indices(size)
    return words_of(sum(1 << bits[square] for square in set(squares)), size)


def words_of(mask: int, size: int) -> Bitboard:
    """Returns one integer of bits as a tuple of words."""
    return tuple(np.uint64(mask >> (WORD_BITS * index) & _WORD_MASK) for index in range(num_words(size)))


def mask_of(board: Bitboard) -> int:
    """Returns a tuple of words as one integer of bits."""
    mask = int(board[0])
    for index, word in enumerate(board[1:], start=1):
        mask |= int(word) << (WORD_BITS * index)
    return mask


def to_squares(board: Bitboard, size: int) -> tuple[int, ...]:
    """Returns the squares whose bits are set, in rising order."""
    return mask_squares(mask_of(board), size)


def mask_squares(mask: int, size: int) -> tuple[int, ...]:
    """Returns the squares whose bits are set in one integer of bits, in rising order."""
    rows, stride, row_mask = _row_tables(size)
    squares: tuple[int, ...] = ()
    for row in rows:
        squares += row[mask & row_mask]
        mask >>= stride
    return squares


@cache
def _row_tables(size: int) -> tuple[tuple[tuple[tuple[int, ...], ...], ...], int, int]:
    """Returns the squares of each pattern of bits in each row, the stride and the mask of a row.

    A look-up a row is three times as fast as a loop over bits.
    """
    rows = tuple(
        tuple(
            tuple(row * size + column for column in range(size) if pattern >> column & 1)
            for pattern in range(1 << size)
        )
        for row in range(size)
    )
    return rows, stride_of(num_words(size)), (1 << size) - 1
