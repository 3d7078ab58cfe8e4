"""Transcripts: one game a line, "f5d6c3…", the moves alone.

In reading, moves may be in any case, with blanks, commas and numbers between them, and passes written or left out;
lines that begin with `#` or `%` are comments. A line may end with a result, set off by a blank or a colon: a signed
number or 0 is black's score, "34-30" the discs of black and white, and any other number, which might be either, stays
the tag "result".
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import BinaryIO

from reversi_env.notation import parse_transcript
from reversi_env.records.fields import move_names, parse_moves
from reversi_env.records.lines import read_lines
from reversi_env.records.record import GameRecord, OnFault, RecordError, complete_moves
from reversi_env.variant import STARTS, Variant

_SQUARE = re.compile(r"[a-j](?:10|[1-9])", re.ASCII | re.IGNORECASE)
_RESULT_LENGTH = 40  # of a result with blanks: so much is looked through at the end of a line
_RESULT = re.compile(r"(?:\s*[:;,]|\s)\s*+(?:([+-]\d{1,3}|0)|(\d{1,3})\s*+[-:]\s*+(\d{1,3})|(\d{1,3}))$", re.ASCII)


def read(file: BinaryIO, on_fault: OnFault | None = None, variant: Variant | None = None) -> Iterator[GameRecord]:
    """Yields the games of a file of transcripts, all of one variant: Othello where none is given.

    Raises RecordError at the first line that is none, or hands it to `on_fault` and goes on with the next.
    """
    return read_lines(file, on_fault, "#%", partial(_interpret, variant or Variant()))


def write(file: BinaryIO, records: Iterable[GameRecord]) -> None:
    """Writes the moves of games, and nothing else of them, one game a line; passes are left out where moves follow.

    Raises RecordError for a game that has no move or begins from a given board, and for one whose size or start is not
    that of the games before it, since a reader is told one variant for all.
    """
    first: Variant | None = None
    for record in records:
        variant = record.variant
        first = first or variant
        if variant.start not in STARTS:
            raise RecordError("a transcript cannot say from which board a game begins; GGF and SGF can")
        if (variant.size, variant.start) != (first.size, first.start):
            raise RecordError(f"a file of transcripts is of one variant; {variant.name} comes after {first.name}")
        if not record.moves:
            raise RecordError("a game without a move has no transcript")
        names = move_names(variant.size)
        text = "".join(names[move] for move in record.moves[:-1] if move != variant.pass_move)
        file.write(f"{text}{names[record.moves[-1]]}\n".encode())


def _interpret(variant: Variant, line: str) -> GameRecord:
    result = _RESULT.search(line, max(0, len(line) - _RESULT_LENGTH))
    score, tags = None, {}
    if result:
        line = line[: result.start()]
        signed, black, white, other = result.groups()
        if signed:
            score = int(signed)
        elif black:
            score = int(black) - int(white)
        else:
            tags["result"] = other
    return GameRecord(variant, complete_moves(variant, _parse(line, variant.size)), black_score=score, tags=tags)


def _parse(line: str, size: int) -> list[int]:
    squares = _SQUARE.findall(line)
    if "".join(squares) == line:
        with suppress(RecordError):  # quicker, but the fault below says which character is wrong
            return parse_moves(squares, size)
    try:
        return parse_transcript(line, size)
    except ValueError as error:
        raise RecordError(str(error)) from None
