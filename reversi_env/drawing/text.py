"""A diagram as text for a terminal."""

import os
import sys

from reversi_env.drawing.diagram import Diagram
from reversi_env.notation import BLACK, EMPTY, LEGAL, WHITE, square_name

_RESET = "\x1b[0m"
# Of the 256 colors that nearly every terminal has. Two greens alternate, since text has no lines between squares.
_GREENS = ("48;5;71", "48;5;65")
_GOLD = "48;5;178"  # behind the last move
_INK = {BLACK: "1;38;5;16", WHITE: "1;38;5;231", None: "38;5;16"}  # of discs, and of dots and labels


def shows_color() -> bool:
    """Returns whether stdout is a terminal whose user has not asked for plain text (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def to_ansi(diagram: Diagram, color: bool) -> str:
    """Returns the board with coordinates, then the caption, then the number of discs and the last move.

    With `color` it is drawn in ANSI colors; without, it is plain text, which `Position.from_text` reads where the
    caption says who is to move and there are no labels. Labels stand on empty squares; heat and arrows are left out.
    There is no line break at the end.
    """
    size = diagram.size
    discs = {**dict.fromkeys(diagram.black, BLACK), **dict.fromkeys(diagram.white, WHITE)}
    inner = max([1, *(len(label) for square, label in diagram.labels.items() if square not in discs)])
    lines = ["   " + "".join(f" {square_name(column, size)[0]:^{inner}}" + " " * color for column in range(size))]
    for row in range(size):
        cells = ""
        for square in range(row * size, (row + 1) * size):
            disc = discs.get(square)
            dot = LEGAL if square in diagram.dots else EMPTY
            if not color:
                cells += f" {disc or diagram.labels.get(square, dot):^{inner}}"
                continue
            face = "●" if disc else diagram.labels.get(square, "·" if square in diagram.dots else "")
            ground = _GOLD if square == diagram.last_move else _GREENS[(row + square) % 2]
            cells += f"\x1b[{ground};{_INK[disc]}m {face:^{inner}} {_RESET}"
        lines.append(f"{row + 1:2} {cells}")
    if diagram.caption:
        lines.append(diagram.caption)
    last = "" if diagram.last_move is None else f", last move {square_name(diagram.last_move, size)}"
    lines.append(f"{BLACK} {len(diagram.black)}, {WHITE} {len(diagram.white)}{last}")
    return "\n".join(line.rstrip() for line in lines)
