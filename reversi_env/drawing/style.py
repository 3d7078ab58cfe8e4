"""How a drawn board looks, whatever draws it: colors, and lengths in squares.

The board stands on a frame of its own, so that it looks the same on light and dark pages.
"""

from reversi_env.drawing.diagram import Diagram

FRAME = "#173327"
FRAME_TEXT = "#c9dbcf"
FELT = "#2f8f5b"
LINE = "#1c5f3b"
BLACK_DISC, BLACK_RIM = "#17191a", "#45494b"
WHITE_DISC, WHITE_RIM = "#f7f6f1", "#c2c0b6"
SHADOW = "#0d2a1b"
DOT = "#123f29"
HEAT = "#ffa31a"
LAST_MOVE = "#f04438"
ARROW = "#2563eb"
TEXT_ON_FELT = "#0a1f14"
TEXT_ON_BLACK = "#f7f6f1"
TEXT_ON_WHITE = "#17191a"

MARGIN = 0.5  # of the frame around the squares; the coordinates stand in it
LINE_WIDTH = 0.03
DISC_RADIUS = 0.42
RIM_RADIUS, RIM_WIDTH = 0.36, 0.035
SHADOW_OFFSET, SHADOW_OPACITY = 0.035, 0.45
DOT_RADIUS = 0.09
STAR_RADIUS = 0.06  # of the four dots that a real board has on its lines
STAR_DISTANCE = 2  # from the edges
COORDINATE_HEIGHT = 0.3
LABEL_HEIGHT = 0.34
LAST_MOVE_RADIUS = 0.1  # a dot; a ring on the rim where a label takes the middle
LAST_MOVE_WIDTH = 0.06
ARROW_WIDTH = 0.1
ARROW_HEAD = 0.3  # its length; as wide as long
ARROW_OPACITY = 0.8
HEAT_OPACITY = 0.9  # of the hottest square


def center(square: int, size: int) -> tuple[float, float]:
    """Returns the middle of a square, as (x, y) from the frame's top left corner."""
    return MARGIN + square % size + 0.5, MARGIN + square // size + 0.5


def heat_opacity(heat: float) -> float:
    """Returns how opaque the shade of a heat is, which is cut to 0..1."""
    return HEAT_OPACITY * min(max(heat, 0.0), 1.0)


def label_color(diagram: Diagram, square: int) -> str:
    """Returns the color in which a label can be read on a square."""
    if square in diagram.black:
        return TEXT_ON_BLACK
    return TEXT_ON_WHITE if square in diagram.white else TEXT_ON_FELT


def star_points(size: int) -> tuple[tuple[int, int], ...]:
    """Returns the crossings of lines that bear a dot, as (column, row); none on 4×4, where they would coincide."""
    if size <= 2 * STAR_DISTANCE:
        return ()
    ends = (STAR_DISTANCE, size - STAR_DISTANCE)
    return tuple((column, row) for row in ends for column in ends)


def arrow_outline(start: tuple[float, float], end: tuple[float, float]) -> list[tuple[float, float]]:
    """Returns the seven corners of an arrow between two different points (x, y), in squares."""
    length = ((end[0] - start[0]) ** 2 + (end[1] - start[1]) ** 2) ** 0.5
    along = ((end[0] - start[0]) / length, (end[1] - start[1]) / length)
    neck = length - ARROW_HEAD
    corners = [
        (0, ARROW_WIDTH / 2),
        (neck, ARROW_WIDTH / 2),
        (neck, ARROW_HEAD / 2),
        (length, 0),
        (neck, -ARROW_HEAD / 2),
        (neck, -ARROW_WIDTH / 2),
        (0, -ARROW_WIDTH / 2),
    ]
    return [
        (start[0] + far * along[0] - aside * along[1], start[1] + far * along[1] + aside * along[0])
        for far, aside in corners
    ]
