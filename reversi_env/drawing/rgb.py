"""A diagram as pixels, drawn with NumPy alone: each shape is a distance, and its edge fades over one pixel."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from reversi_env.drawing import style
from reversi_env.drawing.diagram import Diagram
from reversi_env.drawing.lettering import GLYPH_HEIGHT, Line
from reversi_env.notation import square_name

_LEAST_UNIT = 8  # pixels a square, under which a disc is no longer one
_LABEL_WIDTH = 0.8  # squares, the widest that a label may be
_LEAST_RADIUS = 1.0  # pixels, so that small boards show their marks too

Distance = Callable[[np.ndarray, np.ndarray], np.ndarray]  # of points (x, y) from a shape's edge, negative inside
Point = tuple[float, float]


def to_rgb(diagram: Diagram, pixels: int = 512) -> np.ndarray:
    """Returns the board as uint8 [pixels, pixels, 3], without the caption.

    Labels are written as far as they are digits, signs and the letters a to j and fit their squares; coordinates where
    they fit the frame, from 14 pixels a square on (10×10: 18). Raises ValueError where `pixels` leaves a square too
    small to be seen.
    """
    check_pixels(diagram.size, pixels)
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
    _draw_labels(canvas, diagram)
    return image.round().astype(np.uint8)


def check_pixels(size: int, pixels: int) -> None:
    """Raises ValueError where a board of so many pixels is too small to be seen."""
    least = _LEAST_UNIT * round(size + 2 * style.MARGIN)
    if pixels < least:
        raise ValueError(f"a board of {size}×{size} needs {least} pixels or more, got {pixels}")


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
    columns = [Line.of(square_name(column, size)[0]) for column in range(size)]
    rows = [Line.of(str(row + 1)) for row in range(size)]
    if near * canvas.unit >= max(GLYPH_HEIGHT, *(line.width for line in rows)):  # else the frame is too narrow
        for index in range(size):
            middle = near + index + 0.5
            for outside in (near / 2, far + near / 2):
                canvas.write(columns[index], (middle, outside), style.COORDINATE_HEIGHT, style.FRAME_TEXT)
                canvas.write(rows[index], (outside, middle), style.COORDINATE_HEIGHT, style.FRAME_TEXT)
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
            canvas.disc(*style.center(square, diagram.size), canvas.visible(style.DOT_RADIUS), style.DOT)
    if diagram.last_move is not None:
        x, y = style.center(diagram.last_move, diagram.size)
        if diagram.last_move in diagram.labels:
            canvas.ring(x, y, style.RIM_RADIUS, style.LAST_MOVE_WIDTH, style.LAST_MOVE)
        else:
            canvas.disc(x, y, canvas.visible(style.LAST_MOVE_RADIUS), style.LAST_MOVE)


def _draw_labels(canvas: "_Canvas", diagram: Diagram) -> None:
    """Writes the labels, all as high as lets the longest of them fit its square."""
    lines = {square: Line.of(label) for square, label in diagram.labels.items()}
    widest = max((line.width for line in lines.values()), default=0)
    height = min(style.LABEL_HEIGHT, _LABEL_WIDTH * GLYPH_HEIGHT / max(widest, 1))
    for square, line in lines.items():
        canvas.write(line, style.center(square, diagram.size), height, style.label_color(diagram, square))


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
            np.arange(max(int(low[axis] * self.unit) - 1, 0), min(int(high[axis] * self.unit) + 2, length))
            for axis, length in enumerate(self.image.shape[1::-1])
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

    def visible(self, radius: float) -> float:
        """Returns the radius, or that of the smallest disc which can be seen."""
        return max(radius, _LEAST_RADIUS / self.unit)

    def write(self, line: Line, middle: Point, height: float, color: str) -> None:
        """Writes a line of text around a point, or nothing where it would be wider than a square."""
        dot = height * self.unit / GLYPH_HEIGHT
        if dot < 1.5:  # such thin strokes are sharp on whole pixels alone
            dot = 1
        left, top = (
            round(at * self.unit - dot * dots / 2) / self.unit
            for at, dots in zip(middle, (line.width, GLYPH_HEIGHT), strict=True)
        )
        dot /= self.unit

        def distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            return dot * line.distance((x - left) / dot, (y - top) / dot)

        if line.strokes and dot * line.width <= 1:
            self.paint(distance, (left, top), (left + dot * line.width, top + dot * GLYPH_HEIGHT), color)


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
