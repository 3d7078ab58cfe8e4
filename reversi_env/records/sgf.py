"""SGF, the Smart Game Format, of Othello: `(;FF[4]GM[2]SZ[8]PB[…]PW[…];B[f5];W[d6]…)`.

Source: red-bean.com/sgf, FF[4]. As read here:

- Without AB, AW and PL a game begins from the Othello diagonal; with them, from the board that they show. Where PL does
  not say who begins, the first move does. The empties count for the winner: variants have tournament scoring.
- The main line is read, the first of all variations; other variations are passed over.
- V, black's evaluation of the position after a move, becomes the evaluation of the move, for its mover; of several
  moves in a node it is the last one's.
- CA is believed where Python knows the charset; else, and where the text is none of it, see `lines.decode`.
- RE tells the score where it has one (B+12, 0); where it names a winner alone it stays a tag.
- TM is the main time of both; BL and WL, the times left, are passed over.
- Passes may be `pass`, `pa`, `--` or empty, or left out.

Whatever cannot be read of the rest stays a tag, as do properties of the root that have no field in a `GameRecord`; of
the nodes after it only the moves, their evaluations and times are kept. What is written is read back as it was; this
takes properties of our own: TAKEN, the seconds of a move, CLOCKS, black's and white's clock where TM does not tell all,
RESULT, the score with the manner of an early end, and those of `fields`. Numbers that are not finite and texts that are
no Unicode cannot be written.
"""

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import BinaryIO

from reversi_env.geometry import SIZES
from reversi_env.notation import BLACK, EMPTY, WHITE
from reversi_env.records.fields import (
    CARRIERS,
    Root,
    clock_text,
    number_property,
    number_text,
    parse_clock,
    parse_number,
    result_text,
    root_from,
    rules_property,
    tag_properties,
    take_circumstances,
    take_number,
    take_result,
    take_variant,
    text_properties,
    wthor_property,
)
from reversi_env.records.lines import decode, write_lines
from reversi_env.records.moves import (
    BLACK_MOVE,
    WHITE_MOVE,
    move_names,
    movers,
    parse_moves,
    parse_plays,
    play_from,
    told_by,
)
from reversi_env.records.properties import Properties, escape, read_records
from reversi_env.records.record import Clock, GameRecord, OnFault, RecordError, shown
from reversi_env.variant import Variant

_FILE = ("GM", "FF", "CA")  # what they say ends with the reading
_SETUP = {"AB": BLACK, "AW": WHITE, "AE": EMPTY}
_OF_NODES = (BLACK_MOVE, WHITE_MOVE, "V", "TAKEN", "PL", *_SETUP)
_OF_ROOT = ("SZ", "PB", "PW", "BR", "WR", "DT", "EV", "RE", "RESULT", "TM", "CLOCKS", *CARRIERS)
_OWN = frozenset((*_FILE, *_OF_NODES, *_OF_ROOT))
_SIDES = {"B": BLACK, "BLACK": BLACK, "1": BLACK, "W": WHITE, "WHITE": WHITE, "2": WHITE}
_SCORE = re.compile(r"([BW])\+(\d{1,15})(?:\.0*)?|0(?:\.0*)?|D|DRAW", re.ASCII | re.IGNORECASE)
_WINNER = re.compile(r"[BW]\+(R|RESIGN|T|TIME)", re.IGNORECASE)
_NO_CLOCK = "-"
_SIZE = re.compile(r"0{0,2}(\d{1,2})(?:\s*[:x]\s*0{0,2}(\d{1,2}))?", re.ASCII | re.IGNORECASE)
_CHARSET = re.compile(rb"\bCA\s*\[\s*([\w.:+-]{1,40})\s*\]", re.IGNORECASE)
_CHARSET_WITHIN = 1024  # bytes from the beginning of a record
_ASCII = bytes(range(32, 127)) + b"\\u0041+AEE-\n"  # and what codecs that are no charsets would take for more
_SMALL = re.compile(r"[a-z]+")


def read(file: BinaryIO, on_fault: OnFault | None = None) -> Iterator[GameRecord]:
    """Yields the games of an SGF file.

    Raises RecordError at the first record that is none, or hands it to `on_fault` and goes on with the next.
    """
    return read_records(file, on_fault, _spell, _interpret, _decode)


def write(file: BinaryIO, records: Iterable[GameRecord]) -> None:
    """Writes games one a line; raises RecordError for one that cannot be written."""
    write_lines(file, map(_text, records))


def _interpret(properties: Properties) -> GameRecord:
    told = told_by(properties)
    of_root: list[tuple[str, str]] = []
    setup: list[tuple[str, str]] = []
    evaluations: dict[int, float | None] = {}  # by node, for black
    times_s: dict[int, float | None] = {}
    for name, value, node in told.others:
        if name == "V":
            evaluations[node] = parse_number(value)
        elif name == "TAKEN":
            times_s[node] = parse_number(value)
        elif name in _SETUP or name == "PL":
            if told.nodes and told.nodes[0] < node:
                raise RecordError(f"{name}[{value}] after a move; a board is set up before the first")
            setup.append((name, value))
        elif node == 0:
            of_root.append((name, value))
    root = root_from(of_root)
    game = root.get("GM", "")
    if game.strip() != "2":
        raise RecordError(f"the game is {shown(game)}; SGF of Othello says GM[2]")
    for name in _FILE:
        root.pop(name, None)
    size = _take_size(root)
    colors, moves = parse_plays(told, told.moves, size)
    variant = take_variant(root, *_set_up(setup, size, colors))
    play = play_from(
        variant,
        colors,
        moves,
        [_for_mover(color, value) for color, value in zip(colors, _of_moves(evaluations, told.nodes), strict=False)],
        _of_moves(times_s, told.nodes),
    )
    score, ending = _take_result(root)
    black_clock, white_clock = _take_clocks(root)
    return GameRecord(
        variant,
        black_score=score,
        ending=ending,
        black_rating=take_number(root, "BR"),
        white_rating=take_number(root, "WR"),
        black_clock=black_clock,
        white_clock=white_clock,
        **play,
        **take_circumstances(root),  # the last, for what is left become tags
    )


def _of_moves(values: dict[int, float | None], nodes: Sequence[int]) -> list[float | None]:
    """Returns the value of each move, by the nodes where they stand: the node's, for its last move; [] without any."""
    if not values:
        return []
    following = [*nodes[1:], None]
    return [values.get(node) if node != after else None for node, after in zip(nodes, following, strict=False)]


def _decode(data: bytes) -> str:
    """Returns the text of a record, by its CA where that is a charset that Python knows."""
    stated = _CHARSET.search(data, 0, _CHARSET_WITHIN)
    if stated and (charset := _charset(stated[1].decode("ascii", "replace"))):
        try:
            return data.decode(charset)
        except UnicodeDecodeError:
            pass
    return decode(data)


@lru_cache(maxsize=256)
def _charset(name: str) -> str | None:
    """Returns a name if it is that of a charset which reads ASCII as such, so that brackets are brackets."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return name if _ASCII.decode(name) == _ASCII.decode("ascii") else None
    except (LookupError, ValueError):
        return None


def _spell(name: str) -> str:
    """Returns the name of a property; small letters in it are for people, GaMe is GM, unless it has no others."""
    return _SMALL.sub("", name) or name.upper()


def _for_mover(color: str, evaluation: float | None) -> float | None:
    return -evaluation if evaluation is not None and color == WHITE_MOVE else evaluation


# The board before the first move


def _take_size(root: Root) -> int:
    text = root.pop("SZ", "8")
    match = _SIZE.fullmatch(text.strip())
    size = int(match[1]) if match and match[2] in (None, match[1]) else 0
    if size not in SIZES:
        raise RecordError(f"SZ is the number of columns, {', '.join(map(str, SIZES))}, not {shown(text)}")
    return size


def _set_up(setup: list[tuple[str, str]], size: int, colors: Sequence[str]) -> tuple[str, str]:
    """Returns the board before the first move, as size² characters, and the side to move."""
    cells = [EMPTY] * (size * size)
    side = BLACK
    if setup and colors:
        side = _SIDES[colors[0]]
    has_board = False
    for name, value in setup:
        if name == "PL":
            if value.strip().upper() not in _SIDES:
                raise RecordError(f"PL is the side to move, B or W, not {shown(value)}")
            side = _SIDES[value.strip().upper()]
        else:
            has_board = True
            for square in _parse_squares(value, size):
                cells[square] = _SETUP[name]
    if not has_board:
        return _diagonal(size), side
    return "".join(cells), side


@lru_cache
def _diagonal(size: int) -> str:
    return Variant(size).start_board[0]


def _parse_squares(text: str, size: int) -> list[int]:
    """Returns the squares of a point, or of the rectangle between two, "a1:c2"."""
    names = [name.strip() for name in text.split(":", 2)]
    corners = parse_moves(names, size)
    if len(corners) > 2 or size * size in corners:
        raise RecordError(f"{shown(text)} is neither a square nor a rectangle like a1:c2")
    rows, columns = zip(*(divmod(corner, size) for corner in corners), strict=True)
    return [
        row * size + column
        for row in range(min(rows), max(rows) + 1)
        for column in range(min(columns), max(columns) + 1)
    ]


def _setup_properties(variant: Variant) -> str:
    """Returns the board where the game does not begin from the diagonal."""
    board, side = variant.start_board
    if variant.start in ("diagonal", "free"):
        return ""
    names = move_names(variant.size)
    text = ""
    for name, disc in _SETUP.items():
        squares = [square for square, cell in enumerate(board) if cell == disc]
        if disc == EMPTY:
            squares = [] if text else squares[:1]  # an empty board must be set up too
        text += (name if squares else "") + "".join(f"[{names[square]}]" for square in squares)
    return f"{text}PL[{BLACK_MOVE if side == BLACK else WHITE_MOVE}]"


# Results


def _take_result(root: Root) -> tuple[int | None, str]:
    """Takes out of RESULT and RE what they say, and returns the score and the ending."""
    stated = root.get("RE", "")
    score = None
    if match := _SCORE.fullmatch(stated.strip()):
        del root["RE"]
        score = int(match[2] or 0) * (-1 if match[1] in ("W", "w") else 1)
    if "RESULT" in root:
        result = take_result(root, "RESULT")
        if "RESULT" not in root:
            return result
    return score, _early_end(stated)


def _early_end(stated: str) -> str:
    """Returns how a game ended of which RE names the winner alone."""
    match = _WINNER.fullmatch(stated.strip())
    if match is None:
        return ""
    return "resignation" if match[1][0] in "Rr" else "timeout"


def _result_properties(record: GameRecord) -> str:
    score, text = record.black_score, ""
    if score is not None:
        text = f"RE[{'B' if score > 0 else 'W'}+{number_text(abs(score))}]" if score else "RE[0]"
    return text + (f"RESULT[{result_text(record)}]" if record.ending else "")


# Clocks


def _take_clocks(root: Root) -> tuple[Clock | None, Clock | None]:
    """Takes CLOCKS and TM out where they can be read, and returns black's clock and white's."""
    main_s = take_number(root, "TM")
    both = None if main_s is None else Clock(main_s)
    words = root.get("CLOCKS", "").split()
    clocks = [parse_clock(word) for word in words]
    if len(words) != 2 or any(clock is None and word != _NO_CLOCK for word, clock in zip(words, clocks, strict=True)):
        return both, both
    del root["CLOCKS"]
    return clocks[0], clocks[1]


def _clock_properties(black: Clock | None, white: Clock | None) -> str:
    text = ""
    if black is not None and white is not None and black.main_s == white.main_s:
        text = f"TM[{number_text(black.main_s)}]"
        if black == white == Clock(black.main_s):
            return text
    if black is None and white is None:
        return ""
    words = [_NO_CLOCK if clock is None else clock_text(clock) for clock in (black, white)]
    return f"{text}CLOCKS[{' '.join(words)}]"


# Writing


def _text(record: GameRecord) -> str:
    tags = dict(record.tags)
    if record.black_score is None and record.ending and _early_end(tags.get("RE", "")) == record.ending:
        result = f"RE[{escape(tags.pop('RE'))}]"
    else:
        result = _result_properties(record)
    return "".join(
        [
            f"(;FF[4]GM[2]CA[UTF-8]SZ[{record.variant.size}]",
            tag_properties(tags, _OWN),
            text_properties(record),
            number_property("BR", record.black_rating),
            number_property("WR", record.white_rating),
            _clock_properties(record.black_clock, record.white_clock),
            result,
            wthor_property(record.wthor),
            rules_property(record.variant),
            _setup_properties(record.variant),
            *_nodes(record),
            ")",
        ]
    )


def _nodes(record: GameRecord) -> Iterator[str]:
    names = move_names(record.variant.size)
    told = zip_longest(record.moves, record.evaluations, record.times_s)
    for color, (move, evaluation, time_s) in zip(movers(record.variant), told, strict=False):
        annotations = number_property("V", _for_mover(color, evaluation)) + number_property("TAKEN", time_s)
        yield f";{color}[{names[move]}]{annotations}"
