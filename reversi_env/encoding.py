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

NUM_OBSERVATION_PLANES = 2  # what `write_observation` writes
NUM_PLANES = 3  # what `write_planes` writes

_STRIDE_1 = stride_of(1)
_STRIDE_2 = stride_of(2)


@kernel
def _write_plane(board: Bitboard, plane: np.ndarray) -> None:
    """Fills `plane`, [size, size], with one on each square of `board` and zero elsewhere."""
    stride = _STRIDE_1 if len(board) == 1 else _STRIDE_2
    size = plane.shape[0]
    for row in range(size):
        for column in range(size):
            index = row * stride + column
            plane[row, column] = (board[index // WORD_BITS] >> np.uint64(index % WORD_BITS)) & np.uint64(1)


@kernel
def _write_mask(legal: Bitboard, must_pass: bool, mask: np.ndarray, size: int) -> None:
    """Fills `mask`, [size² + 1]."""
    _write_plane(legal, mask[:-1].reshape(size, size))
    mask[-1] = must_pass


@kernel
def write_observation(
    player: Bitboard, opponent: Bitboard, legal: Bitboard, must_pass: bool, observation: np.ndarray, mask: np.ndarray
) -> None:
    """Fills what an environment shows of a position: `observation`, int8 [2, size, size], and `mask`, int8 [size² + 1].

    The planes are the mover's discs and the other side's; `legal` holds the mover's legal squares.
    """
    _write_plane(player, observation[0])
    _write_plane(opponent, observation[1])
    _write_mask(legal, must_pass, mask, observation.shape[1])


@kernel
def write_planes(player: np.ndarray, opponent: np.ndarray, planes: np.ndarray, mask: np.ndarray, rules: Rules) -> None:
    """Fills what a network sees of N positions: `planes` and `mask`, all arrays C-contiguous.

    player, opponent: uint64 [N, W], the discs of the side to move and of the other one.
    planes: float32 [N, 3, size, size], the mover's discs, the other side's discs, and the mover's legal squares.
    mask: bool or int8 [N, size² + 1].
    """
    for row in range(player.shape[0]):
        own, other = load(player, row, rules.squares), load(opponent, row, rules.squares)
        legal = legal_mask(own, other, rules)
        _write_plane(own, planes[row, 0])
        _write_plane(other, planes[row, 1])
        _write_plane(legal, planes[row, 2])
        _write_mask(legal, status(own, other, legal, rules) == MUST_PASS, mask[row], rules.size)
