"""Which squares an n-tuple evaluation looks at, and which configurations of them share a weight.

A pattern is a few squares; its features are its images under the symmetries of the square, each once. A feature's
index is a number in base 3 with a digit for each of its squares, the first square's the lowest: 0 where it is empty, 1
for a disc of the side to move, 2 for one of the other side.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from reversi_env.symmetry import NUM_SYMMETRIES, square_map

_MOST_SQUARES = 10  # 3^10 = 59,049 indices fit 16 bits
_SHORTEST_DIAGONAL = 4


@dataclass(frozen=True)
class Pattern:
    """Some squares of a board of `size` columns, in the order of their digits."""

    name: str
    size: int
    squares: tuple[int, ...]

    @property
    def num_indices(self) -> int:
        return int(3 ** len(self.squares))

    @cached_property
    def features(self) -> tuple[tuple[int, ...], ...]:
        """The squares of the pattern's distinct images, in the order of their digits."""
        by_squares: dict[frozenset[int], tuple[int, ...]] = {}
        for image in self._images():
            by_squares.setdefault(frozenset(image), image)
        return tuple(by_squares.values())

    @cached_property
    def least_indices(self) -> np.ndarray:
        """The least index that shares a weight with each, int64 [num_indices].

        A symmetry that maps the pattern onto itself, as a mirror does an edge, turns one index into another.
        """
        places = [[self.squares.index(square) for square in image] for image in self._images() if self._is_onto(image)]
        powers = 3 ** np.arange(len(self.squares))
        digits = np.arange(self.num_indices)[:, np.newaxis] // powers % 3
        least: np.ndarray = np.min([digits[:, order] @ powers for order in places], axis=0)
        return least

    def _images(self) -> Iterator[tuple[int, ...]]:
        for symmetry in range(NUM_SYMMETRIES):
            yield tuple(square_map(symmetry, self.size)[list(self.squares)].tolist())

    def _is_onto(self, image: tuple[int, ...]) -> bool:
        return set(image) == set(self.squares)


@cache
def patterns_of(size: int) -> tuple[Pattern, ...]:
    """Returns the field's patterns on a board of `size` columns: 11 with 46 features on 8×8.

    They are the edge with its X squares, the lines beside it up to the middle, the diagonals, and two blocks in the
    corner. On 10×10 the edge is alone, since with its X squares it has more indices than fit.
    """

    def pattern(name: str, *squares: tuple[int, int]) -> Pattern:
        return Pattern(name, size, tuple(row * size + column for row, column in squares))

    def block(num_rows: int, num_columns: int) -> Pattern:
        squares = [(row, column) for row in range(num_rows) for column in range(num_columns)]
        return pattern(f"corner {num_rows}×{num_columns}", *squares)

    lines = [[(row, column) for column in range(size)] for row in range(size // 2)]
    edge_and_x = [*lines[0], (1, 1), (1, size - 2)]
    shortest = min(_SHORTEST_DIAGONAL, size - 1)
    return (
        pattern("edge", *lines[0]) if len(edge_and_x) > _MOST_SQUARES else pattern("edge and X", *edge_and_x),
        *(pattern(f"line {row + 1}", *lines[row]) for row in range(1, size // 2)),
        *(
            pattern(f"diagonal of {length}", *((step, size - length + step) for step in range(length)))
            for length in range(size, shortest - 1, -1)
        ),
        block(3, 3),
        block(2, min(5, size)),
    )
