"""A diagram as pixels, drawn with NumPy alone: each shape is a distance, and its edge fades over one pixel."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from reversi_env.drawing import style
from reversi_env.drawing.diagram import Diagram
from reversi_env.notation import square_name

# Rows of 5 pixels from the top, as bits from the left: 0b10000 is the leftmost.
_GLYPH_WIDTH, _GLYPH_HEIGHT = 5, 7
_GLYPHS = {
    "0": (14, 17, 19, 21, 25, 17, 14),
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

_LEAST_UNIT = 8  # pixels a square, under which a disc is no longer one

Distance = Callable[[np.ndarray, np.ndarray], np.ndarray]  # of points (x, y) from a shape's edge, negative inside
Point = tuple[float, float]


def to_rgb(diagram: Diagram, pixels: int = 512) -> np.ndarray:
    """Returns the board as uint8 [pixels, pixels, 3], without the caption.

    Labels are written as far as they are digits, signs and the letters a to j. Raises ValueError where `pixels` leaves
    a square too small to be seen.
    """
    least = _LEAST_UNIT * round(diagram.size + 2 * style.MARGIN)
    if pixels < least:
        raise ValueError(f"a board of {diagram.size}×{diagram.size} needs {least} pixels or more, got {pixels}")
    image = _empty_board(diagram.size, pixels).copy()
    canvas = _Canvas.centered(image, diagram.size)
    for square, heat in diagram.heat.items():
        x, y = style.center(square, diagram.size)
        half = 0.5 - style.LINE_WIDTH / 2
        canvas.rectangle(x - half, y - half, x + half, y + half, style.HEAT, style.heat_opacity(heat))
    _draw_discs(canvas, diagram)
    _draw_marks(canvas, diagram)
    for start, end in diagram.arrows:
        if start != end:
            canvas.arrow(style.center(start, diagram.size), style.center(end, diagram.size))
    for square, label in diagram.labels.items():
        canvas.write(label, style.center(square, diagram.size), style.LABEL_HEIGHT, style.label_color(diagram, square))
    return image.round().astype(np.uint8)


@lru_cache(maxsize=8)
def _empty_board(size: int, pixels: int) -> np.ndarray:
    """Returns the frame, the coordinates and the felt, float32 [pixels, pixels, 3]."""
    image = np.empty((pixels, pixels, 3), np.float32)
    image[:] = _rgb(style.FRAME)
    canvas = _Canvas.centered(image, size)
    near, far = style.MARGIN, style.MARGIN + size
    canvas.rectangle(near, near, far, far, style.FELT)
    half = style.LINE_WIDTH / 2
    for line in range(size + 1):
        at = near + line
        canvas.rectangle(near - half, at - half, far + half, at + half, style.LINE)
        canvas.rectangle(at - half, near - half, at + half, far + half, style.LINE)
    for column, row in style.star_points(size):
        canvas.disc(near + column, near + row, style.STAR_RADIUS, style.LINE)
    for index in range(size):
        middle = near + index + 0.5
        for outside in (near / 2, far + near / 2):
            canvas.write(square_name(index, size)[0], (middle, outside), style.COORDINATE_HEIGHT, style.FRAME_TEXT)
            canvas.write(str(index + 1), (outside, middle), style.COORDINATE_HEIGHT, style.FRAME_TEXT)
    return image


def _draw_discs(canvas: "_Canvas", diagram: Diagram) -> None:
    for squares, face, rim in (
        (diagram.black, style.BLACK_DISC, style.BLACK_RIM),
        (diagram.white, style.WHITE_DISC, style.WHITE_RIM),
    ):
        for square in squares:
            x, y = style.center(square, diagram.size)
            offset = style.SHADOW_OFFSET
            canvas.disc(x + offset, y + offset, style.DISC_RADIUS, style.SHADOW, style.SHADOW_OPACITY)
            canvas.disc(x, y, style.DISC_RADIUS, face)
            canvas.ring(x, y, style.RIM_RADIUS, style.RIM_WIDTH, rim)


def _draw_marks(canvas: "_Canvas", diagram: Diagram) -> None:
    for square in diagram.dots:
        if square not in diagram.labels:
            canvas.disc(*style.center(square, diagram.size), style.DOT_RADIUS, style.DOT)
    if diagram.last_move is not None:
        x, y = style.center(diagram.last_move, diagram.size)
        if diagram.last_move in diagram.labels:
            canvas.ring(x, y, style.RIM_RADIUS, style.LAST_MOVE_WIDTH, style.LAST_MOVE)
        else:
            canvas.disc(x, y, style.LAST_MOVE_RADIUS, style.LAST_MOVE)


class _Canvas:
    """A picture that shapes are painted on, in place; all lengths are in squares, from the frame's top left corner."""

    def __init__(self, image: np.ndarray, unit: int) -> None:
        self.image = image  # float32 [P, P, 3], 0 to 255
        self.unit = unit  # pixels a square

    @classmethod
    def centered(cls, image: np.ndarray, size: int) -> "_Canvas":
        """Returns the largest canvas for a board whose squares, and half squares, are whole pixels."""
        extent = size + 2 * style.MARGIN
        unit = int(len(image) / extent) // 2 * 2
        first = (len(image) - round(unit * extent)) // 2
        return cls(image[first:, first:], unit)

    def paint(self, distance: Distance, low: Point, high: Point, color: str, opacity: float = 1.0) -> None:
        """Paints a shape that lies within the rectangle from `low` to `high`."""
        columns, rows = (
            np.arange(max(int(low[axis] * self.unit) - 1, 0), int(high[axis] * self.unit) + 2) for axis in (0, 1)
        )
        region = self.image[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        x, y = (columns[None, :] + 0.5) / self.unit, (rows[:, None] + 0.5) / self.unit
        share = opacity * np.clip(0.5 - distance(x, y) * self.unit, 0, 1)[:, :, None]
        region += share * (_rgb(color) - region)

    def rectangle(self, left: float, top: float, right: float, bottom: float, color: str, opacity: float = 1.0) -> None:
        def distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            outside: np.ndarray = np.maximum(np.maximum(left - x, x - right), np.maximum(top - y, y - bottom))
            return outside

        self.paint(distance, (left, top), (right, bottom), color, opacity)

    def disc(self, x: float, y: float, radius: float, color: str, opacity: float = 1.0) -> None:
        self.paint(
            lambda at_x, at_y: np.hypot(at_x - x, at_y - y) - radius,
            (x - radius, y - radius),
            (x + radius, y + radius),
            color,
            opacity,
        )

    def ring(self, x: float, y: float, radius: float, width: float, color: str) -> None:
        """Paints what lies within half of `width` of a circle."""
        outer = radius + width / 2
        self.paint(
            lambda at_x, at_y: np.abs(np.hypot(at_x - x, at_y - y) - radius) - width / 2,
            (x - outer, y - outer),
            (x + outer, y + outer),
            color,
        )

    def arrow(self, start: Point, end: Point) -> None:
        corners = style.arrow_outline(start, end)
        shaft, head = [corners[index] for index in (0, 1, 5, 6)], corners[2:5]

        def distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            nearest: np.ndarray = np.minimum(_distance_from_convex(shaft, x, y), _distance_from_convex(head, x, y))
            return nearest

        columns, rows = zip(*corners, strict=True)
        low, high = (min(columns), min(rows)), (max(columns), max(rows))
        self.paint(distance, low, high, style.ARROW, style.ARROW_OPACITY)

    def write(self, text: str, middle: Point, height: float, color: str) -> None:
        """Writes a line of text around a point in letters of whole pixels, smaller where it would leave its square."""
        glyphs = [_GLYPHS[letter] for letter in text if letter in _GLYPHS]
        if not glyphs:
            return
        width = len(glyphs) * (_GLYPH_WIDTH + 1) - 1
        scale = max(1, min(round(height * self.unit / _GLYPH_HEIGHT), int(0.9 * self.unit / width)))
        bits = np.zeros((_GLYPH_HEIGHT, width), np.bool_)
        for index, glyph in enumerate(glyphs):
            for row, pattern in enumerate(glyph):
                for column in range(_GLYPH_WIDTH):
                    bits[row, index * (_GLYPH_WIDTH + 1) + column] = pattern >> (_GLYPH_WIDTH - 1 - column) & 1
        ink = np.kron(bits, np.ones((scale, scale), np.bool_))
        left, top = (
            max(round(at * self.unit - length / 2), 0) for at, length in zip(middle, ink.shape[::-1], strict=True)
        )
        region = self.image[top : top + ink.shape[0], left : left + ink.shape[1]]
        region[ink[: region.shape[0], : region.shape[1]]] = _rgb(color)


def _distance_from_convex(corners: list[Point], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Returns how far points lie beyond the sides of a convex polygon, whose corners turn as `arrow_outline`'s do."""
    farthest = np.full(np.broadcast_shapes(x.shape, y.shape), -np.inf)
    for (from_x, from_y), (to_x, to_y) in zip(corners, corners[1:] + corners[:1], strict=True):
        length = np.hypot(to_x - from_x, to_y - from_y)
        beyond = ((x - from_x) * (from_y - to_y) + (y - from_y) * (to_x - from_x)) / length
        np.maximum(farthest, beyond, out=farthest)
    return farthest


def _rgb(color: str) -> np.ndarray:
    """Returns "#rrggbb" as float32 [3]."""
    return np.frombuffer(bytes.fromhex(color[1:]), np.uint8).astype(np.float32)
