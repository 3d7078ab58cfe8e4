"""Transcripts: one game a line, "f5d6c3…", the moves alone.

In reading, moves may be in any case, with blanks, commas, dashes and numbers between them, and passes written or left
out; lines that begin with `#` or `%` are comments. A line may end with a result, set off by a blank, a colon, a bar or
parentheses: a signed number or 0 is black's score, "34-30" the discs of black and white, and any other number, which
might be either or more than the board holds, stays the tag "result". As in the other formats the empties count for the
winner, where the reader is not told another variant.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import BinaryIO

from reversi_env.notation import parse_transcript
from reversi_env.records.lines import read_lines, write_lines
from reversi_env.records.moves import move_names, parse_moves
from reversi_env.records.record import GameRecord, OnFault, RecordError, complete_moves
from reversi_env.variant import STARTS, Variant

VARIANT = Variant(scoring="tournament")  # of which games are that do not say it

_SQUARE = re.compile(r"[a-j](?:10|[1-9])", re.ASCII | re.IGNORECASE)
_RESULT_LENGTH = 40  # of a result with blanks: so much is looked through at the end of a line
_RESULT = re.compile(
    r"(?:\s*[:;,|(]|\s)[\s(]*+(([+-]\d{1,3}|0)|(\d{1,3})\s*+[-:]\s*+(\d{1,3})|\d{1,3})[\s)]*$", re.ASCII
)
_BETWEEN = re.compile(r"(?<=\d)-(?=[a-j])|(?<!\S)\d{1,3}\s++(?=[a-j]\d)", re.ASCII | re.IGNORECASE)  # f5-d6, 1 f5 2 d6


def read(file: BinaryIO, on_fault: OnFault | None = None, variant: Variant | None = None) -> Iterator[GameRecord]:
    """Yields the games of a file of transcripts, all of one variant: `VARIANT` where none is given.

    Raises RecordError at the first line that is none, or hands it to `on_fault` and goes on with the next.
    """
    return read_lines(file, on_fault, "#%", partial(_interpret, variant or VARIANT))


def write(file: BinaryIO, records: Iterable[GameRecord]) -> None:
    """Writes the moves of games, and nothing else of them, one game a line; passes are left out where moves follow.

    Raises RecordError for a game that has no move or begins from a given board, and for one whose size or start is not
    that of the games before it, since a reader is told one variant for all.
    """
    write_lines(file, _texts(records))


def check_alike(variant: Variant, first: Variant) -> None:
    """Raises RecordError where games of two variants cannot be in one file, of which a reader is told one variant."""
    if (variant.size, variant.start) != (first.size, first.start):
        raise RecordError(f"a file of transcripts is of one variant; {variant.name} comes after {first.name}")


def _texts(records: Iterable[GameRecord]) -> Iterator[str]:
    first: Variant | None = None
    for record in records:
        variant = record.variant
        first = first or variant
        if variant.start not in STARTS:
            raise RecordError("a transcript cannot say from which board a game begins; GGF and SGF can")
        check_alike(variant, first)
        if not record.moves:
            raise RecordError("a game without a move has no transcript")
        names = move_names(variant.size)
        text = "".join(names[move] for move in record.moves[:-1] if move != variant.pass_move)
        yield f"{text}{names[record.moves[-1]]}"


def _interpret(variant: Variant, line: str) -> GameRecord:
    result = _RESULT.search(line, max(0, len(line) - _RESULT_LENGTH))
    score, tags = None, {}
    if result:
        line = line[: result.start()]
        score = _score_of(result, variant.num_squares)
        if score is None:
            tags["result"] = result[1]
    return GameRecord(variant, complete_moves(variant, _parse(line, variant.size)), black_score=score, tags=tags)


def _score_of(result: re.Match[str], num_squares: int) -> int | None:
    """Returns black's score, or None where the result may be another number or is more than a board can hold."""
    _, signed, black, white = result.groups()
    if signed:
        return int(signed) if abs(int(signed)) <= num_squares else None
    if black and int(black) + int(white) <= num_squares:
        return int(black) - int(white)
    return None


def _parse(line: str, size: int) -> list[int]:
    squares = _SQUARE.findall(line)
    if "".join(squares) == line:
        with suppress(RecordError):  # quicker, but the fault below says which character is wrong
            return parse_moves(squares, size)
    try:
        return parse_transcript(_BETWEEN.sub(lambda match: " " * len(match[0]), line), size)
    except ValueError as error:
        raise RecordError(str(error)) from None
