"""Kernels on bitboards: what holds on any board, whatever the variant's rules.

The number of words of a board is its type, so each kernel is written once and compiled once for one word and once for
two. `like` is any board, given for its type alone.
"""

import numpy as np
from numba.cpython.unsafe.tuple import tuple_setitem

from reversi_env.geometry import Bitboard, stride_of
from reversi_env.jit import kernel
from reversi_env.vectors import lowest, no_square, without_lowest

_STRIDE_1 = stride_of(1)
_STRIDE_2 = stride_of(2)


@kernel
def load(boards: np.ndarray, row: int, like: Bitboard) -> Bitboard:
    """Returns row `row` of `boards`, uint64 [N, W]; `like` has W words."""
    board = no_square(like)
    for word in range(len(like)):
        board = tuple_setitem(board, word, boards[row, word])
    return board


@kernel
def store(boards: np.ndarray, row: int, board: Bitboard) -> None:
    """Writes `board` into row `row` of `boards`, uint64 [N, W]."""
    for word in range(len(board)):
        boards[row, word] = board[word]


@kernel
def bit_of(square: int, size: int, like: Bitboard) -> int:
    """Returns the index of the bit of `square` on a board of `size` columns."""
    stride = _STRIDE_1 if len(like) == 1 else _STRIDE_2
    return square if size == stride else square // size * stride + square % size


@kernel
def square_of(bit_index: int, size: int, like: Bitboard) -> int:
    """Returns the square whose bit has the index `bit_index`."""
    stride = _STRIDE_1 if len(like) == 1 else _STRIDE_2
    return bit_index if size == stride else bit_index // stride * size + bit_index % stride


@kernel
def nth_bit(board: Bitboard, n: int) -> int:
    """Returns the index of the n-th lowest bit that is set, counted from 0; the board has more than n."""
    for _ in range(n):
        board = without_lowest(board)
    return lowest(board)
