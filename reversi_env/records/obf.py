"""OBF, endgame problems, one a line: `<board> <side to move>; <move>:<score>; <move>:<score>; …  % name`.

A board is size² characters, X or * black, O white, - empty, as `notation.parse_board` reads it. Scores are in discs for
the side to move, with the empties given to the winner, so positions have tournament scoring. `%` begins a comment: a
line of its own is passed over, one behind a problem is its name.
"""

import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from reversi_env.notation import parse_board, square_name
from reversi_env.position import Position
from reversi_env.records.fields import parse_number, signed_text
from reversi_env.records.lines import read_lines, write_lines
from reversi_env.records.moves import parse_moves
from reversi_env.records.record import OnFault, ProblemRecord, RecordError, shown
from reversi_env.variant import Variant

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def read(file: BinaryIO, on_fault: OnFault | None = None) -> Iterator[ProblemRecord]:
    """Yields the problems of an OBF file.

    Raises RecordError at the first line that is none, or hands it to `on_fault` and goes on with the next.
    """
    return read_lines(file, on_fault, "%", _interpret)


def write(file: BinaryIO, records: Iterable[ProblemRecord]) -> None:
    """Writes problems one a line; the start of the game is not told, a position with another is read as of Othello's.

    Raises RecordError for a variant other than Othello with tournament scoring, for a score that is not finite or whose
    move is not legal, and for a name with control characters or with blanks around it.
    """
    write_lines(file, map(_text, records))


def _interpret(line: str) -> ProblemRecord:
    problem, _, name = line.partition("%")
    board_text, *entries = problem.split(";")
    try:
        board, side = parse_board(board_text)
    except ValueError as error:
        raise RecordError(str(error)) from None
    variant = Variant(size=round(len(board) ** 0.5), scoring="tournament")
    position = Position.from_text(f"{board} {side}", variant)
    scores: dict[int, float] = {}
    for entry in entries:
        if not entry.strip():
            continue
        move_name, _, score_text = entry.partition(":")
        score = parse_number(score_text)
        if score is None or not move_name.strip():
            raise RecordError(f"{shown(entry.strip())} is not a move and its score, like g8:+18")
        (move,) = parse_moves([move_name], variant.size)
        _check_legal(position, move)
        if move in scores:
            raise RecordError(f"{square_name(move, variant.size)} has two scores")
        scores[move] = score
    return ProblemRecord(position, scores, _CONTROL.sub(" ", name).strip())


def _check_legal(position: Position, move: int) -> None:
    if move not in position.legal_moves:
        legal = " ".join(position.move_name(legal) for legal in position.legal_moves) or "none, the game is over"
        raise RecordError(f"{position.move_name(move)} has a score but is not legal; legal: {legal}")


def _text(record: ProblemRecord) -> str:
    position, variant = record.position, record.position.variant
    if variant.start == "free" or variant.goal != "most" or variant.scoring != "tournament":
        raise RecordError(f"OBF is of Othello with tournament scoring, the position is of {variant.name}")
    if _CONTROL.search(record.name) or record.name != record.name.strip():
        raise RecordError(f"OBF cannot hold the name {record.name!r}: it is one line without blanks around it")
    text = f"{position.text};"
    for move, score in record.scores.items():
        _check_legal(position, move)
        text += f" {square_name(move, variant.size)}:{signed_text(score)};"
    return f"{text} % {record.name}" if record.name else text
