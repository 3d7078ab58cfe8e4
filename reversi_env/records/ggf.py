"""GGF, the Generic Game Format of the server GGS: `(;GM[Othello]PB[…]PW[…]BO[8 … *]B[d3/evaluation/seconds]W[…];)`.

Source: skatgame.net/mburo/ggsa/ggf, and /clock. As read here:

- BO is the board before the first move, and the side to move; without it TY gives the size. Sizes other than 4, 6, 8
  and 10 are faults, as are boards without corners, with `?` for the squares that are none.
- TY is the type of game; an `a` in it means that the fewest discs win, an `r` a start drawn by lot. RE is black's
  result, so with that goal too it is positive where black won. The empties count for the winner: variants have
  tournament scoring.
- Evaluations are in discs for the mover; times are those taken.
- Passes may be `pass`, `PA`, `--` or empty, or left out.

Whatever cannot be read of the rest (say, a rating that is no number) stays a tag, as do properties that have no field
in a `GameRecord`. What is written is read back as it was; `fields` tells of the properties of our own that this takes,
to which EV, the event, belongs. Numbers that are not finite and texts that are no Unicode cannot be written.
"""

import math
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import zip_longest
from typing import BinaryIO

from reversi_env.geometry import SIZES
from reversi_env.notation import parse_board
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
from reversi_env.records.lines import write_lines
from reversi_env.records.moves import (
    BLACK_MOVE,
    WHITE_MOVE,
    move_names,
    movers,
    parse_plays,
    play_from,
    told_by,
)
from reversi_env.records.properties import Properties, read_records
from reversi_env.records.record import Clock, GameRecord, OnFault, RecordError, shown
from reversi_env.variant import Variant

_OWN = frozenset(
    ("GM", "DT", "EV", "PB", "PW", "RB", "RW", "TI", "TB", "TW", "TY", "RE", "BO", BLACK_MOVE, WHITE_MOVE, *CARRIERS)
)
_TYPE = re.compile(r"s?(\d{1,2})([a-z0-9]{0,16})", re.ASCII | re.IGNORECASE)
_DISCS = str.maketrans("XO-", "*O-")


def read(file: BinaryIO, on_fault: OnFault | None = None) -> Iterator[GameRecord]:
    """Yields the games of a GGF file.

    Raises RecordError at the first record that is none, or hands it to `on_fault` and goes on with the next.
    """
    return read_records(file, on_fault, str.upper, _interpret)


def write(file: BinaryIO, records: Iterable[GameRecord]) -> None:
    """Writes games one a line; raises RecordError for one that cannot be written."""
    write_lines(file, map(_text, records))


def _interpret(properties: Properties) -> GameRecord:
    told = told_by(properties)
    root = root_from((name, value) for name, value, _ in told.others)
    game = root.pop("GM", "")
    if game.strip().lower() != "othello":
        raise RecordError(f"the game is {shown(game)}; GGF of Othello says GM[Othello]")
    board, side = _take_board(root)
    size = math.isqrt(len(board))
    variant = take_variant(root, board, side, _take_goal(root, size))
    squares, evaluations, times_s = _split_moves(told.moves)
    colors, moves = parse_plays(told, squares, size)
    play = play_from(variant, colors, moves, evaluations, times_s)
    score, ending = take_result(root, "RE")
    both = _take_clock(root, "TI")
    return GameRecord(
        variant,
        black_score=score,
        ending=ending,
        black_rating=take_number(root, "RB"),
        white_rating=take_number(root, "RW"),
        black_clock=_take_clock(root, "TB") or both,
        white_clock=_take_clock(root, "TW") or both,
        **play,
        **take_circumstances(root),  # the last, for what is left become tags
    )


def _split_moves(moves: list[str]) -> tuple[list[str], list[float | None], list[float | None]]:
    """Returns the squares, evaluations and times of moves; the latter two are empty where no move has any."""
    if "/" not in "".join(moves):
        return moves, [], []
    parts = [[*move.split("/", 2), "", ""][:3] for move in moves]
    squares, evaluations, times = zip(*parts, strict=True)
    return list(squares), list(map(_parse_annotation, evaluations)), list(map(_parse_annotation, times))


def _take_board(root: Root) -> tuple[str, str]:
    """Returns the squares and the side to move: of BO, else of the type of game."""
    if "BO" in root:
        return _parse_board(" ".join(root.pop("BO").split()))
    kind = _TYPE.fullmatch(root.get("TY", ""))
    size, letters = (int(kind[1]), kind[2].lower()) if kind else (8, "")
    if size not in SIZES or "r" in letters:
        raise RecordError("the record has no board; BO[8 … *] gives its size, its squares and the side to move")
    return Variant(size).start_board


@lru_cache(maxsize=256)
def _parse_board(text: str) -> tuple[str, str]:
    """Returns the squares and the side to move of BO."""
    size, _, cells = text.partition(" ")
    if size not in map(str, SIZES):
        raise RecordError(f"BO begins with the number of columns, {', '.join(map(str, SIZES))}, not with {shown(size)}")
    if "?" in cells[:-1]:
        raise RecordError("BO: the board lacks the squares that are '?'; only whole boards can be read")
    try:
        return parse_board(cells, int(size))
    except ValueError as error:
        raise RecordError(f"BO: {error}") from None


def _take_goal(root: Root, size: int) -> str:
    """Returns the goal of the type of game, and takes TY out where it says nothing else but the size."""
    goal = _goal(root.get("TY", ""))
    if root.get("TY") == _plain_type(size, goal):
        del root["TY"]
    return goal


def _goal(kind: str) -> str:
    return "fewest" if _TYPE.fullmatch(kind) and "a" in kind.lower() else "most"


def _plain_type(size: int, goal: str) -> str:
    return f"{size}a" if goal == "fewest" else str(size)


def _take_clock(root: Root, name: str) -> Clock | None:
    clock = parse_clock(root.get(name, ""))
    if clock is not None:
        del root[name]
    return clock


def _parse_annotation(text: str) -> float | None:
    """Returns the evaluation or the time of a move, None for an empty one."""
    number = parse_number(text)
    if number is None and text.strip():
        raise RecordError(f"{shown(text)} is not a number; a move is square/evaluation/seconds")
    return number


def _text(record: GameRecord) -> str:
    variant = record.variant
    tags = dict(record.tags)
    kind = _plain_type(variant.size, variant.goal)
    if (told := tags.get("TY", kind)) != kind and _TYPE.fullmatch(told) and _goal(told) == variant.goal:
        kind = tags.pop("TY")
    result = result_text(record)
    return "".join(
        [
            "(;GM[Othello]",
            tag_properties(tags, _OWN),
            text_properties(record),
            number_property("RB", record.black_rating),
            number_property("RW", record.white_rating),
            _clock_properties(record.black_clock, record.white_clock),
            f"TY[{kind}]",
            f"RE[{result}]" if result else "",
            wthor_property(record.wthor),
            rules_property(variant, _goal(kind)),
            _board_property(variant),
            *_move_properties(record),
            ";)",
        ]
    )


def _clock_properties(black: Clock | None, white: Clock | None) -> str:
    if black is not None and black == white:
        return f"TI[{clock_text(black)}]"
    clocks = {"TB": black, "TW": white}
    return "".join(f"{name}[{clock_text(clock)}]" for name, clock in clocks.items() if clock is not None)


def _board_property(variant: Variant) -> str:
    board, side = variant.start_board
    rows = [board[place : place + variant.size] for place in range(0, len(board), variant.size)]
    return f"BO[{variant.size} {' '.join([*rows, side]).translate(_DISCS)}]"


def _move_properties(record: GameRecord) -> Iterator[str]:
    names = move_names(record.variant.size)
    told = zip_longest(record.moves, record.evaluations, record.times_s)
    for color, (move, evaluation, time_s) in zip(movers(record.variant), told, strict=False):
        annotations = ""
        if time_s is not None:
            annotations = f"/{'' if evaluation is None else number_text(evaluation)}/{number_text(time_s)}"
        elif evaluation is not None:
            annotations = f"/{number_text(evaluation)}"
        yield f"{color}[{names[move]}{annotations}]"
