"""Positions as arrays, for learners: planes of discs and the mask of legal actions. The one place that writes them.

Both are relative to the side to move. Row 0 of a plane is the board's top row, and action row · size + column is a
disc on that square. The pass, the last action, is set exactly when the side to move must pass; the mask of a finished
game is all zero.
"""

import numpy as np

from reversi_env.bitboard import load
from reversi_env.geometry import WORD_BITS, Bitboard, stride_of
from reversi_env.jit import kernel
from reversi_env.rules import MUST_PASS, Rules, legal_mask, status
from reversi_env.vectors import spread_1, spread_4, spread_32, spread_64

NUM_OBSERVATION_PLANES = 2  # what `write_observation` writes
NUM_PLANES = 3  # what `write_planes` writes

_STRIDE_1 = stride_of(1)
_STRIDE_2 = stride_of(2)


@kernel
def write_squares(board: Bitboard, size: int, array: np.ndarray, first: int) -> None:
    """Writes one for each square of `board` and zero for the others, in the order of squares.

    They go to the size² elements of `array`, of any type and shape and in C order, that begin with element `first`.
    """
    stride = _STRIDE_1 if len(board) == 1 else _STRIDE_2
    left = size * size
    for word in board:
        bits = word if size == stride else _without_gaps(word, size, stride)
        if left >= WORD_BITS:
            spread_64(bits, array, first)
            first += WORD_BITS
            left -= WORD_BITS
            continue
        if left >= 32:
            spread_32(bits, array, first)
            bits >>= np.uint64(32)
            first += 32
            left -= 32
        while left:
            spread_4(bits, array, first)
            bits >>= np.uint64(4)
            first += 4
            left -= 4


@kernel
def _without_gaps(word: np.uint64, size: int, stride: int) -> np.uint64:
    """Returns the squares of a board that is smaller than its word, bit n for square n."""
    row_mask = (np.uint64(1) << np.uint64(size)) - np.uint64(1)
    bits = np.uint64(0)
    for row in range(size):
        bits |= ((word >> np.uint64(row * stride)) & row_mask) << np.uint64(row * size)
    return bits


@kernel
def write_mask(legal: Bitboard, must_pass: bool, size: int, masks: np.ndarray, row: int) -> None:
    """Writes an action mask to row `row` of `masks`, [N, size² + 1], or one alone to row 0."""
    first = row * (size * size + 1)
    write_squares(legal, size, masks, first)
    spread_1(np.uint64(must_pass), masks, first + size * size)


@kernel
def write_discs(player: Bitboard, opponent: Bitboard, size: int, observations: np.ndarray, row: int) -> None:
    """Writes the mover's discs and the other side's to row `row` of `observations`, [N, 2, size, size], or to row 0."""
    first = row * NUM_OBSERVATION_PLANES * size * size
    write_squares(player, size, observations, first)
    write_squares(opponent, size, observations, first + size * size)


@kernel
def write_observation(
    player: Bitboard, opponent: Bitboard, legal: Bitboard, must_pass: bool, observation: np.ndarray, mask: np.ndarray
) -> None:
    """Fills what an environment shows of a position: `observation`, int8 [2, size, size], and `mask`, int8 [size² + 1].

    The planes are the mover's discs and the other side's; `legal` holds the mover's legal squares.
    """
    size = observation.shape[1]
    write_discs(player, opponent, size, observation, 0)
    write_mask(legal, must_pass, size, mask, 0)


def with_legal_plane(planes: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Returns `planes`, [..., P, size, size], and behind them the legal squares of `mask`, [..., size² + 1]."""
    legal = mask[..., :-1].reshape(*planes.shape[:-3], 1, *planes.shape[-2:])
    return np.concatenate([planes, legal], axis=-3)


@kernel
def write_planes(player: np.ndarray, opponent: np.ndarray, planes: np.ndarray, mask: np.ndarray, rules: Rules) -> None:
    """Fills what a network sees of N positions: `planes` and `mask`, all arrays C-contiguous.

    player, opponent: uint64 [N, W], the discs of the side to move and of the other one.
    planes: float32 [N, 3, size, size], the mover's discs, the other side's discs, and the mover's legal squares.
    mask: bool or int8 [N, size² + 1].
    """
    size = rules.size
    num_squares = size * size
    for row in range(player.shape[0]):
        own, other = load(player, row, rules.squares), load(opponent, row, rules.squares)
        legal = legal_mask(own, other, rules)
        first = row * NUM_PLANES * num_squares
        write_squares(own, size, planes, first)
        write_squares(other, size, planes, first + num_squares)
        write_squares(legal, size, planes, first + 2 * num_squares)
        must_pass = status(own, other, legal, rules) == MUST_PASS
        write_mask(legal, must_pass, size, mask, row)
