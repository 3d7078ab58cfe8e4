"""Files of endgame problems: positions, and what is published of how they end.

OBF (`.obf`, see `reversi_env.records.obf`), or tables (`.tsv`): columns in any order, parted by tabs, under a header

    id  board64  side  score  best_moves  empties

of which the board (`board` will do) and the side to move are needed. A board is size² characters, X black, O white,
- empty; the score is the side to move's with the empties given to the winner; the best moves, parted by blanks, are all
of them.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reversi_env import Position, Variant
from reversi_env.naming import UnknownNameError
from reversi_env.records.fields import parse_number
from reversi_env.records.formats import read_records
from reversi_env.records.lines import decode
from reversi_env.records.record import ProblemRecord, RecordError, shown

SUFFIXES = (".obf", ".tsv")

_BYTE_ORDER_MARK = "\ufeff"
_BOARDS = ("board64", "board")
_SIDE, _NAME, _SCORE, _BEST, _EMPTIES = "side", "id", "score", "best_moves", "empties"


@dataclass(frozen=True)
class Problem:
    """A position to solve, and what a file says of it, for the side to move; nothing where it says nothing."""

    name: str
    position: Position
    score: float | None = None
    best_moves: frozenset[int] = frozenset()  # said to be best
    worse_moves: frozenset[int] = frozenset()  # said not to be; of the others nothing is said
    move_scores: Mapping[int, float] = field(default_factory=dict)

    @property
    def is_told(self) -> bool:
        """Whether there is anything to compare a solution with."""
        return self.score is not None or bool(self.best_moves)


def read_problems(path: str | os.PathLike[str]) -> Iterator[Problem]:
    """Yields the problems of a file, named by the file or else numbered.

    Raises UnknownNameError for a name that ends otherwise than in `SUFFIXES`, RecordError with the file and line of the
    first fault, and OSError.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise UnknownNameError(f"format of problems of {os.fspath(path)}:", suffix, SUFFIXES)
    return _read_obf(path) if suffix == ".obf" else _read_table(path)


def _read_obf(path: str | os.PathLike[str]) -> Iterator[Problem]:
    for number, record in enumerate(read_records(path), start=1):
        assert isinstance(record, ProblemRecord)
        scores = record.scores
        best = max(scores.values(), default=None)
        best_moves = frozenset(move for move, score in scores.items() if score == best)
        yield Problem(
            name=record.name or str(number),
            position=record.position,
            score=best,
            best_moves=best_moves,
            worse_moves=frozenset(scores) - best_moves,
            move_scores=scores,
        )


def _read_table(path: str | os.PathLike[str]) -> Iterator[Problem]:
    columns: list[str] = []
    num_problems = 0
    with open(path, "rb") as file:
        for number, data in enumerate(file, start=1):
            line = decode(data).removeprefix(_BYTE_ORDER_MARK).rstrip("\r\n")
            if not line.strip():
                continue
            cells = [cell.strip() for cell in line.split("\t")]
            try:
                if columns:
                    num_problems += 1
                    yield _problem(_row(columns, cells), str(num_problems))
                else:
                    columns = _header(cells)
            except ValueError as error:
                raise RecordError(f"{os.fspath(path)}: line {number}: {error}") from None


def _header(columns: list[str]) -> list[str]:
    if _SIDE not in columns or not set(_BOARDS) & set(columns):
        found = shown(" ".join(columns))
        raise RecordError(
            f"the first line names columns parted by tabs, {_BOARDS[0]} and {_SIDE} among them, not {found}"
        )
    return columns


def _row(columns: Sequence[str], cells: list[str]) -> dict[str, str]:
    if len(cells) > len(columns):
        raise RecordError(f"{len(cells)} cells where the header names {len(columns)} columns")
    return dict(zip(columns, cells, strict=False))


def _problem(row: Mapping[str, str], number: str) -> Problem:
    text = f"{next((row[name] for name in _BOARDS if name in row), '')} {row.get(_SIDE, '')}"
    position = Position.from_text(text)
    position = Position.from_text(text, Variant(size=position.variant.size, scoring="tournament"))
    score = _number(row, _SCORE)
    num_empties = _number(row, _EMPTIES)
    if num_empties is not None and num_empties != position.num_empties:
        raise RecordError(f"the board has {position.num_empties} empty squares, not {row[_EMPTIES]}")
    best_moves = frozenset(map(position.parse_move, row.get(_BEST, "").split()))
    for move in best_moves - set(position.legal_moves):
        legal = " ".join(map(position.move_name, position.legal_moves)) or "none, the game is over"
        raise RecordError(f"{position.move_name(move)} is said to be best but is not legal; legal: {legal}")
    worse_moves = frozenset(position.legal_moves) - best_moves if best_moves else frozenset()
    return Problem(row.get(_NAME) or number, position, score, best_moves, worse_moves)


def _number(row: Mapping[str, str], column: str) -> float | None:
    text = row.get(column, "")
    number = parse_number(text)
    if text and number is None:
        raise RecordError(f"{column} is a number, not {shown(text)}")
    return number
