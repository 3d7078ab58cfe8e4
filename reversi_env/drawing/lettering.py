"""The digits, signs and letters that a board needs, as strokes: sharp at any size, and without a font.

A glyph is drawn in dots, and a stroke, as thick as a dot, joins dots that lie in a line.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

Dot = tuple[int, int]  # (column, row) from the top left
Stroke = tuple[Dot, Dot]

# Rows of dots from the top, as bits from the left: 0b10000 is the leftmost.
_GLYPH_WIDTH, GLYPH_HEIGHT = 5, 7
_GLYPHS = {
    "0": (14, 17, 17, 17, 17, 17, 14),
    "1": (4, 12, 4, 4, 4, 4, 14),
    "2": (14, 17, 1, 2, 4, 8, 31),
    "3": (31, 2, 4, 2, 1, 17, 14),
    "4": (2, 6, 10, 18, 31, 2, 2),
    "5": (31, 16, 30, 1, 1, 17, 14),
    "6": (6, 8, 16, 30, 17, 17, 14),
    "7": (31, 1, 2, 4, 8, 8, 8),
    "8": (14, 17, 17, 14, 17, 17, 14),
    "9": (14, 17, 17, 15, 1, 2, 12),
    "a": (0, 0, 14, 1, 15, 17, 15),
    "b": (16, 16, 22, 25, 17, 17, 30),
    "c": (0, 0, 14, 16, 16, 17, 14),
    "d": (1, 1, 13, 19, 17, 17, 15),
    "e": (0, 0, 14, 17, 31, 16, 14),
    "f": (6, 9, 8, 28, 8, 8, 8),
    "g": (0, 15, 17, 17, 15, 1, 14),
    "h": (16, 16, 22, 25, 17, 17, 17),
    "i": (4, 0, 12, 4, 4, 4, 14),
    "j": (2, 0, 6, 2, 2, 18, 12),
    "%": (24, 25, 2, 4, 8, 19, 3),
    "+": (0, 4, 4, 31, 4, 4, 0),
    "-": (0, 0, 0, 31, 0, 0, 0),
    "−": (0, 0, 0, 31, 0, 0, 0),
    ".": (0, 0, 0, 0, 0, 12, 12),
    " ": (0, 0, 0, 0, 0, 0, 0),
    "?": (14, 17, 1, 2, 4, 0, 4),
}


class Line(NamedTuple):
    """A line of text, GLYPH_HEIGHT dots high. Letters that have no glyph are left out of it."""

    strokes: list[Stroke]
    width: int  # in dots

    @classmethod
    def of(cls, text: str) -> "Line":
        strokes: list[Stroke] = []
        width = 0
        for letter in filter(_GLYPHS.__contains__, text):
            space = 1 if width else 0
            glyph = _glyph(letter)
            strokes += [
                ((column + width + space, row), (to_column + width + space, to_row))
                for (column, row), (to_column, to_row) in glyph.strokes
            ]
            width += space + glyph.width
        return cls(strokes, width)

    def distance(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Returns how far points lie from the edge of the nearest stroke, negative inside; all lengths in dots."""
        nearest = np.full(np.broadcast_shapes(x.shape, y.shape), np.inf)
        for (column, row), (to_column, to_row) in self.strokes:
            along_x, along_y = to_column - column, to_row - row
            from_x, from_y = x - column - 0.5, y - row - 0.5
            share = (from_x * along_x + from_y * along_y) / max(along_x**2 + along_y**2, 1)
            share = share.clip(0, 1)
            np.minimum(nearest, np.hypot(from_x - share * along_x, from_y - share * along_y), out=nearest)
        return nearest - 0.5


@cache
def _glyph(letter: str) -> Line:
    """Returns a letter without the empty columns beside it."""
    dots = [
        (column, row)
        for row, pattern in enumerate(_GLYPHS[letter])
        for column in range(_GLYPH_WIDTH)
        if pattern >> (_GLYPH_WIDTH - 1 - column) & 1
    ]
    columns = [column for column, _ in dots] or [0, 1]  # a space is two dots wide
    first = min(columns)
    return Line(list(_strokes({(column - first, row) for column, row in dots})), max(columns) - first + 1)


def _strokes(dots: set[Dot]) -> Iterator[Stroke]:
    """Yields the longest strokes through dots side by side, and the dots that none goes through."""
    lonely = set(dots)
    for right, down in ((1, 0), (0, 1), (1, 1), (-1, 1)):
        for column, row in dots:
            if _goes_on(dots, column - right, row - down, right, down):
                continue  # the stroke began there
            through = [(column, row)]
            while _goes_on(dots, *through[-1], right, down):
                through.append((through[-1][0] + right, through[-1][1] + down))
            if len(through) > 1:
                yield through[0], through[-1]
                lonely -= set(through)
    yield from ((dot, dot) for dot in lonely)


def _goes_on(dots: set[Dot], column: int, row: int, right: int, down: int) -> bool:
    """Returns whether a stroke leads from a dot to the next one: aslant only where no dot fills a corner."""
    corners = {(column + right, row), (column, row + down)} if right and down else set()
    return {(column, row), (column + right, row + down)} <= dots and not corners & dots
