"""The eight symmetries of the square, on boards, actions and policies.

Symmetry k (0 to 7) transposes first where k ≥ 4, then turns k mod 4 quarters clockwise. Symmetry 0 changes nothing.
"""

from functools import cache

import numpy as np

from reversi_env.geometry import to_squares
from reversi_env.position import Position

NUM_SYMMETRIES = 8


@cache
def square_map(symmetry: int, size: int) -> np.ndarray:
    """Returns where each square goes, int64 [size²]: the disc on square s lies on map[s] afterwards. Read-only."""
    grid = transform(np.arange(size * size).reshape(size, size), symmetry)
    goes_to = np.empty(size * size, np.int64)
    goes_to[grid.ravel()] = np.arange(size * size)
    goes_to.flags.writeable = False
    return goes_to


def transform(planes: np.ndarray, symmetry: int) -> np.ndarray:
    """Returns a view of `planes` [..., size, size] under a symmetry."""
    _check(symmetry)
    if symmetry >= 4:
        planes = planes.swapaxes(-1, -2)
    return np.rot90(planes, -(symmetry % 4), axes=(-2, -1))


def transform_action(action: int, symmetry: int, size: int) -> int:
    """Returns the action on the transformed board; a pass stays one."""
    return action if action == size * size else int(square_map(symmetry, size)[action])


def transform_policy(policy: np.ndarray, symmetry: int, size: int) -> np.ndarray:
    """Returns policies (or masks, or logits) [..., size² + 1] for the transformed board; a new array."""
    transformed = np.empty_like(policy)
    transformed[..., square_map(symmetry, size)] = policy[..., :-1]
    transformed[..., -1] = policy[..., -1]
    return transformed


def inverse(symmetry: int) -> int:
    """Returns the symmetry that undoes one: reflections undo themselves, turns are undone by the opposite turn."""
    _check(symmetry)
    return symmetry if symmetry >= 4 else -symmetry % 4


def _check(symmetry: int) -> None:
    if not 0 <= symmetry < NUM_SYMMETRIES:
        raise ValueError(f"symmetries are 0 to {NUM_SYMMETRIES - 1}, got {symmetry}")


def transform_position(position: Position, symmetry: int) -> Position:
    """Returns the position under a symmetry; its variant stays, so a start given as text is still the old one."""
    size = position.variant.size
    goes_to = square_map(symmetry, size)
    black, white = (goes_to[list(to_squares(discs, size))] for discs in (position.black, position.white))
    return Position.from_squares(position.variant, black.tolist(), white.tolist(), position.is_black_to_move)


def canonical(position: Position) -> tuple[Position, int]:
    """Returns the least of the eight equivalent positions, by text, and the symmetry that leads to it."""
    return min(
        ((transform_position(position, symmetry), symmetry) for symmetry in range(NUM_SYMMETRIES)),
        key=lambda candidate: (candidate[0].text, candidate[1]),
    )
