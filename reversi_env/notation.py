"""Squares, moves and boards as people write them, and back.

A square is a letter for the column and a number for the row, a1 at the top left, j10 the last of 10×10. A board is
size² characters row by row and the side to move, or a drawing with coordinates (`draw_board`).
"""

import re
from collections.abc import Collection

from reversi_env.geometry import SIZES

BLACK, WHITE, EMPTY, LEGAL = "X", "O", "-", "."
PASS_NAME = "pass"

_COLUMNS = "abcdefghij"
_DISCS = {**dict.fromkeys("Xx*Bb●", BLACK), **dict.fromkeys("Oo0Ww○", WHITE), **dict.fromkeys("-._·?", EMPTY)}
_SIDES = {**dict.fromkeys(("x", "*", "b", "black", "●"), BLACK), **dict.fromkeys(("o", "0", "w", "white", "○"), WHITE)}
_MOVE = re.compile(r"[a-j](?:10|[1-9])|pass|pa|ps|--|@@|\S", re.IGNORECASE)
_PASSES = frozenset(("pass", "pa", "ps", "--", "@@"))
_ROW = re.compile(r"^\s*(\d+)\s+(\S.*)$")
_TO_MOVE = re.compile(r"(?<!\S)(\S+)\s+to\s+move", re.IGNORECASE)


def square_name(square: int, size: int) -> str:
    """Returns "f5" for a square, and "pass" for the pass, size²."""
    if square == size * size:
        return PASS_NAME
    if not 0 <= square < size * size:
        raise ValueError(f"there is no square {square} on {size}×{size}; squares are 0 to {size * size - 1}")
    return f"{_COLUMNS[square % size]}{square // size + 1}"


def parse_move(name: str, size: int) -> int:
    """Returns the square that "f5" names, in any case, or size² for a pass in any of its spellings.

    Raises ValueError for anything else.
    """
    text = name.strip().lower()
    if text in _PASSES:
        return size * size
    match = re.fullmatch(r"([a-j])(10|[1-9])", text)
    if match:
        column, row = _COLUMNS.index(match[1]), int(match[2]) - 1
        if column < size and row < size:
            return row * size + column
    last = square_name(size * size - 1, size)
    raise ValueError(f"{name.strip()!r} is not a square of {size}×{size}; squares are a1 to {last}, a pass is 'pass'")


def parse_transcript(text: str, size: int) -> list[int]:
    """Returns the moves of "f5d6c3…", passes as size² where they are written.

    Any case; blanks, commas and move numbers ("1. f5") are allowed. Raises ValueError that names the place of what is
    not a move.
    """
    without_numbers = re.sub(r"(?<![a-jA-J\d])\d+\s*\.", lambda match: " " * len(match[0]), text)
    moves = []
    for match in _MOVE.finditer(without_numbers):
        if match[0] in ",;":
            continue
        try:
            moves.append(parse_move(match[0], size))
        except ValueError as error:
            raise ValueError(f"character {match.start() + 1} of the transcript: {error}") from None
    return moves


def parse_board(text: str, size: int | None = None) -> tuple[str, str]:
    """Returns the board as size² of "X", "O" and "-", and the side to move, "X" or "O".

    `text` is size² characters and the side to move, with blanks and line breaks anywhere, or a drawing. Black is any
    of X*Bb●, white any of O0Ww○, empty any of -._·?. Raises ValueError that says what was found and what would be
    right.
    """
    drawn = _read_drawing(text)
    if drawn is not None:
        cells, side_text = drawn
    else:
        words = re.sub(r"to\s+move|[|,;:/]", " ", text, flags=re.IGNORECASE).split()
        if words and words[-1].lower() in ("black", "white"):
            words[-1] = words[-1][0]
        letters = "".join(words)
        cells, side_text = letters[:-1], letters[-1:]
    expected = [size] if size else SIZES
    if len(cells) not in [columns * columns for columns in expected]:
        wanted = " or ".join(f"{columns * columns} ({columns}×{columns})" for columns in expected)
        raise ValueError(
            f"a board text is one character a square and the side to move (X or O); "
            f"found {len(cells)} squares, expected {wanted}"
        )
    board = ""
    for index, cell in enumerate(cells):
        if cell not in _DISCS:
            where = square_name(index, round(len(cells) ** 0.5))
            raise ValueError(f"{cell!r} at {where} is neither a black disc (X), a white one (O) nor empty (-)")
        board += _DISCS[cell]
    side = _SIDES.get(side_text.lower())
    if side is None:
        raise ValueError(f"the side to move is X or O after the board, found {side_text!r}")
    return board, side


def _read_drawing(text: str) -> tuple[str, str] | None:
    """Returns the cells and the side of a drawing, or None where the text is no drawing."""
    rows = [match for line in text.splitlines() if (match := _ROW.match(line))]
    if not rows or [int(row[1]) for row in rows] != list(range(1, len(rows) + 1)):
        return None
    cells = ""
    for row in rows:
        found = row[2].split()
        if len(found) > len(rows) and found[-1] == row[1]:
            found.pop()  # some drawings repeat the row's number on the right
        if len(found) == 1:
            found = list(found[0])
        if len(found) != len(rows) or any(len(cell) != 1 for cell in found):
            raise ValueError(
                f"row {row[1]} of the drawn board has {len(found)} squares, expected {len(rows)}: {row[2]!r}"
            )
        cells += "".join(found)
    side = _TO_MOVE.search(text)
    if side is None:
        raise ValueError("a drawn board needs a line 'X to move' or 'O to move'")
    return cells, side[1]


def draw_board(board: str, side: str, legal: Collection[int] = ()) -> str:
    """Returns a drawing with coordinates, a dot on each square of `legal`, and the side to move in the last line."""
    size = round(len(board) ** 0.5)
    lines = ["   " + " ".join(_COLUMNS[:size])]
    for row in range(size):
        cells = [LEGAL if square in legal else board[square] for square in range(row * size, (row + 1) * size)]
        lines.append(f"{row + 1:2} " + " ".join(cells))
    return "\n".join([*lines, f"{side} to move"])
