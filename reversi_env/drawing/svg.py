"""A diagram as SVG: one element without ids or style sheets, so that many stand on one page and none needs another."""

import html
import re
from collections.abc import Iterator

from reversi_env.drawing import style
from reversi_env.drawing.diagram import Diagram
from reversi_env.notation import square_name

UNIT = 50  # of the view box, a square
_CAPTION_HEIGHT = 0.6
_FONT = 'font-family="system-ui, Helvetica, Arial, DejaVu Sans, sans-serif" text-anchor="middle"'
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # www.w3.org/TR/xml, section 2.2


def to_svg(diagram: Diagram) -> str:
    """Returns the board as an SVG element; it scales with its container and says its caption to a screen reader."""
    width = diagram.size + 2 * style.MARGIN
    height = width + (_CAPTION_HEIGHT if diagram.caption else 0)
    caption = _escape(diagram.caption)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_length(width)} {_length(height)}" '
            f'width="{_length(width)}" style="max-width:100%" role="img" aria-label="{caption or "board"}">',
            f'<rect width="{_length(width)}" height="{_length(height)}" rx="8" fill="{style.FRAME}"/>',
            *_board(diagram.size),
            *_heat(diagram),
            *_discs(diagram),
            *_marks(diagram),
            *_arrows(diagram),
            *_labels(diagram),
            *([_text(caption, width / 2, width + 0.2, 0.36, style.FRAME_TEXT)] if caption else []),
            "</svg>",
        ]
    )


def _board(size: int) -> Iterator[str]:
    edge = style.MARGIN
    yield (
        f'<rect x="{_length(edge)}" y="{_length(edge)}" width="{_length(size)}" height="{_length(size)}" '
        f'fill="{style.FELT}"/>'
    )
    near, length = _length(edge), _length(size)
    ats = [_length(edge + line) for line in range(size + 1)]
    lines = "".join(f"M{near} {at}h{length}M{at} {near}v{length}" for at in ats)
    yield (
        f'<path d="{lines}" fill="none" stroke="{style.LINE}" stroke-width="{_length(style.LINE_WIDTH)}" '
        f'stroke-linecap="square"/>'
    )
    for column, row in style.star_points(size):
        yield _circle(edge + column, edge + row, style.STAR_RADIUS, fill=style.LINE)
    for index in range(size):
        middle = edge + index + 0.5
        for outside in (edge / 2, edge * 1.5 + size):
            yield _text(square_name(index, size)[0], middle, outside, style.COORDINATE_HEIGHT, style.FRAME_TEXT)
            yield _text(str(index + 1), outside, middle, style.COORDINATE_HEIGHT, style.FRAME_TEXT)


def _heat(diagram: Diagram) -> Iterator[str]:
    inset = style.LINE_WIDTH / 2
    for square, heat in diagram.heat.items():
        x, y = style.center(square, diagram.size)
        yield (
            f'<rect x="{_length(x - 0.5 + inset)}" y="{_length(y - 0.5 + inset)}" width="{_length(1 - 2 * inset)}" '
            f'height="{_length(1 - 2 * inset)}" fill="{style.HEAT}" fill-opacity="{style.heat_opacity(heat):.3g}"/>'
        )


def _discs(diagram: Diagram) -> Iterator[str]:
    for squares, face, rim in (
        (diagram.black, style.BLACK_DISC, style.BLACK_RIM),
        (diagram.white, style.WHITE_DISC, style.WHITE_RIM),
    ):
        for square in squares:
            x, y = style.center(square, diagram.size)
            lower_x, lower_y = x + style.SHADOW_OFFSET, y + style.SHADOW_OFFSET
            opacity = style.SHADOW_OPACITY
            yield _circle(lower_x, lower_y, style.DISC_RADIUS, fill=style.SHADOW, fill_opacity=opacity)
            yield _circle(x, y, style.DISC_RADIUS, fill=face)
            yield _circle(x, y, style.RIM_RADIUS, fill="none", stroke=rim, stroke_width=_length(style.RIM_WIDTH))


def _marks(diagram: Diagram) -> Iterator[str]:
    for square in diagram.dots:
        if square not in diagram.labels:
            yield _circle(*style.center(square, diagram.size), style.DOT_RADIUS, fill=style.DOT)
    if diagram.last_move is None:
        return
    x, y = style.center(diagram.last_move, diagram.size)
    if diagram.last_move in diagram.labels:
        width = _length(style.LAST_MOVE_WIDTH)
        yield _circle(x, y, style.RIM_RADIUS, fill="none", stroke=style.LAST_MOVE, stroke_width=width)
    else:
        yield _circle(x, y, style.LAST_MOVE_RADIUS, fill=style.LAST_MOVE)


def _labels(diagram: Diagram) -> Iterator[str]:
    # A digit is a little more than half as wide as the text is high; all labels are as high as the longest may be.
    longest = max(map(len, diagram.labels.values()), default=0)
    height = min(style.LABEL_HEIGHT, 1.3 / max(longest, 1))
    for square, label in diagram.labels.items():
        color = style.label_color(diagram, square)
        yield _text(_escape(label), *style.center(square, diagram.size), height, color, ' font-weight="600"')


def _arrows(diagram: Diagram) -> Iterator[str]:
    for start, end in diagram.arrows:
        if start == end:
            continue
        outline = style.arrow_outline(style.center(start, diagram.size), style.center(end, diagram.size))
        points = " ".join(f"{_length(x)},{_length(y)}" for x, y in outline)
        yield f'<polygon points="{points}" fill="{style.ARROW}" fill-opacity="{style.ARROW_OPACITY}"/>'


def _escape(text: str) -> str:
    """Returns a text for an element or attribute; XML has no way to write most control characters."""
    return html.escape(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def _length(squares: float) -> str:
    return f"{squares * UNIT:.5g}"


def _circle(x: float, y: float, radius: float, **attributes: str | float) -> str:
    painted = " ".join(f'{name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<circle cx="{_length(x)}" cy="{_length(y)}" r="{_length(radius)}" {painted}/>'


def _text(text: str, x: float, y: float, height: float, color: str, attributes: str = "") -> str:
    # Half the height of a digit below the middle; `dominant-baseline` is not known everywhere.
    baseline = y + 0.36 * height
    where = f'x="{_length(x)}" y="{_length(baseline)}" font-size="{_length(height)}"'
    return f'<text {where} fill="{color}" {_FONT}{attributes}>{text}</text>'
