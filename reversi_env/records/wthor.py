"""WTHOR, the binary format of the French federation: `.wtb` games, `.jou` players and `.trn` tournaments.

All files are little endian and begin with a header of 16 bytes. A game has the numbers of its tournament and players
in the name files, black's discs with the empties given to the winner, black's best discs at some depth, and up to 60
squares as 10 · row + column, both from 1; passes are not written. The header also knows boards of 10×10 and
solitaires; such files are refused.
"""

import datetime
import itertools
import logging
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

import numpy as np

from reversi_env.playouts import NO_MOVE
from reversi_env.position import Position
from reversi_env.records.dates import parse_date
from reversi_env.records.record import GameRecord, OnFault, RecordError, WthorFacts, report
from reversi_env.replay import NO_SCORE, first_fault, moves_array, replay
from reversi_env.variant import Variant

VARIANT = Variant(8, scoring="tournament")

_LOG = logging.getLogger(__name__)
_SIZE, _SQUARES, _MOVES = 8, 64, 60
_PLAYER_BYTES, _TOURNAMENT_BYTES = 20, 26
_BLOCK = 4096  # records read or written at a time
_MOST_NAMES = _LAST_YEAR = 0xFFFF
_ENCODING = "latin-1"

_HEADER = np.dtype(
    [
        ("century", "u1"),  # the day of writing
        ("year", "u1"),
        ("month", "u1"),
        ("day", "u1"),
        ("num_games", "<i4"),
        ("num_names", "<u2"),
        ("year_of_games", "<u2"),
        ("size", "u1"),  # 0 or 8 for 8×8
        ("type", "u1"),  # 1 for solitaires
        ("depth", "u1"),  # empties at which the theoretical score is counted
        ("reserved", "u1"),
    ]
)
_GAME = np.dtype(
    [
        ("tournament", "<u2"),
        ("black", "<u2"),
        ("white", "<u2"),
        ("discs", "u1"),
        ("theoretical_discs", "u1"),
        ("moves", "u1", (_MOVES,)),
    ]
)

_NO_SQUARE = 254  # what no game can play
_BYTE_OF = bytes(10 * (square // _SIZE + 1) + square % _SIZE + 1 for square in range(_SQUARES)).ljust(256, b"\0")
_SQUARE_OF = np.full(256, _NO_SQUARE, np.uint8)
_SQUARE_OF[np.frombuffer(_BYTE_OF[:_SQUARES], np.uint8)] = np.arange(_SQUARES)
_SQUARE_OF[0] = NO_MOVE
_ROW = struct.Struct("<3H2B60s")  # a game, as Python packs it


@dataclass(frozen=True)
class Names:
    """What the numbers in games stand for; a name may be empty, and a number may have none."""

    players: Sequence[str] = ()
    tournaments: Sequence[str] = ()


# Reading


def read(file: BinaryIO, on_fault: OnFault | None = None, names: Names | None = None) -> Iterator[GameRecord]:
    """Yields the games of a `.wtb` file; an unfinished one has the stored score too.

    Raises RecordError with the byte at the first fault, or hands it to `on_fault` and goes on with the next game where
    there is one. The header's number of games is compared with the file; memory does not depend on it.
    """
    names = names or Names()
    try:
        header = _read_header(file)
        _check_kind(header)
    except RecordError as error:
        report(error, on_fault)
        return
    for first, block in _read_records(file, _GAME, header.num_games, "game", on_fault):
        yield from _games_of(block, first, header, names, on_fault)


def read_players(file: BinaryIO) -> list[str]:
    """Returns the names of a `.jou` file by their numbers; raises RecordError with the byte."""
    return _read_names(file, _PLAYER_BYTES)


def read_tournaments(file: BinaryIO) -> list[str]:
    """Returns the names of a `.trn` file by their numbers; raises RecordError with the byte."""
    return _read_names(file, _TOURNAMENT_BYTES)


class _Header(NamedTuple):
    num_games: int
    num_names: int
    year_of_games: int
    size: int
    type: int
    depth: int


def _read_header(file: BinaryIO) -> _Header:
    data = _read_bytes(file, _HEADER.itemsize)
    if len(data) < _HEADER.itemsize:
        raise RecordError(f"byte {len(data)}: the file ends within the header, which has {_HEADER.itemsize} bytes")
    fields = np.frombuffer(data, _HEADER)[0]
    header = _Header(*(int(fields[name]) for name in _Header._fields))
    if header.num_games < 0:
        raise RecordError(f"byte 4: the header tells of {header.num_games} games")
    return header


def _check_kind(header: _Header) -> None:
    if header.size not in (0, _SIZE):
        raise RecordError(f"byte 12: the games are of a board of {header.size} columns; only those of 8×8 can be read")
    if header.type != 0:
        raise RecordError(f"byte 13: the file holds no games, but records of type {header.type}; games have type 0")


def _read_records(
    file: BinaryIO, dtype: np.dtype[np.void], number: int, what: str, on_fault: OnFault | None
) -> Iterator[tuple[int, np.ndarray]]:
    """Yields blocks of records and the index of their first; finds fault with a file that has fewer or more."""
    offset = _HEADER.itemsize
    for first in range(0, number, _BLOCK):
        wanted = min(_BLOCK, number - first)
        data = _read_bytes(file, wanted * dtype.itemsize)
        whole = len(data) // dtype.itemsize
        if whole:
            yield first, np.frombuffer(data, dtype, whole)
        offset += len(data)
        if whole < wanted:
            error = RecordError(f"the file ends within {what} {first + whole + 1} of {number} that the header tells of")
            report(error.at(f"byte {offset}"), on_fault)
            return
    if file.read(1):
        error = RecordError(f"the file goes on after {number} {what}s, as many as the header tells of")
        report(error.at(f"byte {offset}"), on_fault)


def _read_bytes(file: BinaryIO, size: int) -> bytes:
    """Returns `size` bytes, or all that are left."""
    data = file.read(size)
    while len(data) < size and (more := file.read(size - len(data))):  # a pipe gives what it has
        data += more
    return data


def _games_of(
    block: np.ndarray, first: int, header: _Header, names: Names, on_fault: OnFault | None
) -> Iterator[GameRecord]:
    told = _SQUARE_OF[block["moves"]]
    games = replay(Position(VARIANT), told)
    num_told = (block["moves"] != 0).sum(1)
    is_sound = ((games.num_legal == num_told) & (block["discs"] <= _SQUARES)).tolist()
    date = f"{header.year_of_games:04}" if header.year_of_games else ""
    players, tournaments = (dict(enumerate(known)) for known in (names.players, names.tournaments))
    columns = (block[name].tolist() for name in ("tournament", "black", "white", "discs", "theoretical_discs"))
    rows = zip(is_sound, games.lengths.tolist(), *columns, strict=True)
    moves, width = games.moves.tobytes(), games.moves.shape[1]
    for index, (sound, length, tournament, black, white, discs, theoretical_discs) in enumerate(rows):
        if not sound:
            number = first + index
            place = f"game {number + 1} at byte {_HEADER.itemsize + number * _GAME.itemsize}"
            report(RecordError(_what_is_wrong(block[index], int(games.num_legal[index]))).at(place), on_fault)
            continue
        yield GameRecord(
            variant=VARIANT,
            moves=tuple(moves[index * width : index * width + length]),
            black=players.get(black, ""),
            white=players.get(white, ""),
            black_score=2 * discs - _SQUARES,
            date=date,
            event=tournaments.get(tournament, ""),
            wthor=WthorFacts(tournament, black, white, theoretical_discs, header.depth),
        )


def _what_is_wrong(game: np.void, number: int) -> str:
    """Returns what is wrong with a game whose first `number` moves are legal."""
    if game["discs"] > _SQUARES:
        return f"black has {game['discs']} discs of {_SQUARES}"
    byte = int(game["moves"][number])
    if byte == 0:
        return f"move {number + 1} is missing, and others follow"
    if _SQUARE_OF[byte] == _NO_SQUARE:
        return f"move {number + 1} is {byte}, which is no square; squares are 11 to 88"
    return str(first_fault(Position(VARIANT), _SQUARE_OF[game["moves"][: number + 1]].tolist()))


def _read_names(file: BinaryIO, width: int) -> list[str]:
    number = _read_header(file).num_names
    blocks = _read_records(file, np.dtype(f"V{width}"), number, "name", None)
    return [_name(name.tobytes()) for _, block in blocks for name in block]


def _name(field: bytes) -> str:
    return field.partition(b"\0")[0].decode(_ENCODING).rstrip()


# Writing


def write(
    file: BinaryIO,
    records: Iterable[GameRecord],
    on_fault: OnFault | None = None,
    *,
    names: Names | None = None,
    date: datetime.date | None = None,
    year: int | None = None,
    depth: int | None = None,
) -> Names:
    """Writes games as a `.wtb` file and returns what their numbers stand for, for the name files.

    A game that comes from WTHOR keeps its numbers, unless they stand for other names already; the players and the event
    of others get those by which `names` or another game knows them, else the next that are free. Number 0 is nobody's.

    date: of writing, else today.
    year: of the games, else what all of them tell, else 0.
    depth: of the theoretical scores, else that of the first game which has such a score, else 0. A game without one, or
        with one of another depth, which a warning tells of, has its own score in its place.

    Raises RecordError, before anything is written, for a game that WTHOR cannot hold, or hands it to `on_fault` and
    leaves the game out.
    """
    sheet = _Sheet(names or Names(), depth)
    remaining = enumerate(records, start=1)
    while block := list(itertools.islice(remaining, _BLOCK)):
        fitting = []
        for number, record in block:
            if record.variant.is_played_like(VARIANT):
                fitting.append((number, record))
            else:
                report(RecordError(f"game {number}: WTHOR holds Othello on 8×8, not {record.variant.name}"), on_fault)
        scores = replay(Position(VARIANT), moves_array([record.moves for _, record in fitting])).black_scores.tolist()
        for (number, record), score in zip(fitting, scores, strict=True):
            try:
                sheet.add(record, score)
            except RecordError as error:
                report(error.at(f"game {number}"), on_fault)
    games = sheet.games()
    only_year = sheet.years.pop() if len(sheet.years) == 1 else 0
    header = _header(date, len(games), 0, only_year if year is None else year, _SIZE, sheet.depth)
    file.write(header + games.tobytes())
    return Names(sheet.players.names(), sheet.tournaments.names())


def write_players(file: BinaryIO, players: Sequence[str], date: datetime.date | None = None) -> None:
    """Writes the names of a `.jou` file; raises RecordError for one that it cannot hold."""
    _write_names(file, players, _PLAYER_BYTES, date)


def write_tournaments(file: BinaryIO, tournaments: Sequence[str], date: datetime.date | None = None) -> None:
    """Writes the names of a `.trn` file; raises RecordError for one that it cannot hold."""
    _write_names(file, tournaments, _TOURNAMENT_BYTES, date)


class _Numbers:
    """The numbers of names: some games bring along, the others are given when all games are known."""

    def __init__(self, known: Sequence[str], width: int) -> None:
        self._names = {
            number: name for number, name in enumerate(known) if name
        }  # empty where only the number is known
        self._width = width
        self._unnumbered: dict[str, None] = {}  # in the order of their coming
        self._checked: set[str] = set()

    def check(self, name: str) -> None:
        """Raises RecordError for a name that the name file cannot hold."""
        if name not in self._checked:
            _encoded(name, self._width)
            self._checked.add(name)

    def bring(self, number: int, name: str) -> bool:
        """Notes the number and the name that a game brings along; returns False where it stands for another name."""
        known = self._names.get(number, "")
        self._names[number] = known or name
        return name in ("", self._names[number])

    def ask(self, name: str) -> None:
        """Notes a name that needs a number."""
        self._unnumbered[name] = None

    def give(self) -> dict[str, int]:
        """Returns the numbers of all names, and gives one to each that asked; raises RecordError when they run out."""
        numbers = {name: number for number, name in self._names.items() if name}
        free = (number for number in range(1, _MOST_NAMES) if number not in self._names)
        numbers[""] = 0
        for name in self._unnumbered:
            if name not in numbers:
                number = next(free, None)
                if number is None:
                    raise RecordError(f"the games have more than {_MOST_NAMES} names, which is as many as WTHOR holds")
                numbers[name] = number
        self._names |= {number: name for name, number in numbers.items() if name}
        return numbers

    def names(self) -> list[str]:
        """Returns the names by their numbers, up to the last that has one."""
        last = max((number for number, name in self._names.items() if name), default=-1)
        return [self._names.get(number, "") for number in range(last + 1)]


class _Sheet:
    """The games to be written, as bytes, while the numbers of some names are still open."""

    def __init__(self, names: Names, depth: int | None) -> None:
        self.players = _Numbers(names.players, _PLAYER_BYTES)
        self.tournaments = _Numbers(names.tournaments, _TOURNAMENT_BYTES)
        self.years: set[int] = set()
        self.depth = depth or 0
        self._is_depth_given = depth is not None
        self._rows = bytearray()
        self._depths: list[int] = []  # of the games' theoretical scores, 0 for none
        self._unnumbered: list[tuple[int, str, str]] = []  # row, column, name

    def add(self, record: GameRecord, score: int) -> None:
        """Adds a game whose final score is `score`, or NO_SCORE; raises RecordError where it does not fit."""
        discs = _black_discs(record, score)
        self.players.check(record.black)
        self.players.check(record.white)
        self.tournaments.check(record.event)
        facts = record.wthor or WthorFacts(0, 0, 0, discs, 0)
        squares = bytes(record.moves).translate(_BYTE_OF, bytes((VARIANT.pass_move,)))
        if not 0 <= facts.theoretical_depth <= _SQUARES:
            raise RecordError(f"a theoretical score is that at 0 to 64 empties, not at {facts.theoretical_depth}")
        try:
            row = _ROW.pack(facts.tournament, facts.black, facts.white, discs, facts.theoretical_discs, squares)
        except struct.error:
            raise RecordError(f"WTHOR cannot hold numbers as large as those of {facts}") from None
        self._rows += row
        for column, numbers, number, name in (
            ("tournament", self.tournaments, facts.tournament, record.event),
            ("black", self.players, facts.black, record.black),
            ("white", self.players, facts.white, record.white),
        ):
            if record.wthor is None or not numbers.bring(number, name):
                numbers.ask(name)
                self._unnumbered.append((len(self._depths), column, name))
        if not self._is_depth_given:
            self.depth = self.depth or facts.theoretical_depth
        self._depths.append(facts.theoretical_depth)
        self.years.add(_year_of(record.date))

    def games(self) -> np.ndarray:
        """Returns all games with their numbers; raises RecordError where there are more names than numbers."""
        games = np.frombuffer(self._rows, _GAME)
        given = {"tournament": self.tournaments.give()}
        given["black"] = given["white"] = self.players.give()
        for row, column, name in self._unnumbered:
            games[column][row] = given[column][name]
        if not self._is_depth_given:
            self._leave_one_depth(games)
        return games

    def _leave_one_depth(self, games: np.ndarray) -> None:
        """Puts the games' own scores in the place of theoretical ones of other depths, in place."""
        depths = np.array(self._depths, np.int64)
        others = depths != self.depth
        games["theoretical_discs"][others] = games["discs"][others]
        if lost := int((others & (depths != 0)).sum()):
            _LOG.warning(
                "a .wtb file has theoretical scores of one depth, here %d empties; %d games lose those of other depths",
                self.depth,
                lost,
            )


def _year_of(date: str) -> int:
    """Returns the year that a date begins with, 0 where it begins with none."""
    parsed = parse_date(date)
    return parsed.year if parsed and parsed.year <= _LAST_YEAR else 0


def _black_discs(record: GameRecord, final_score: int) -> int:
    """Returns black's discs, the empties given to the winner: as stated under this scoring, else as the game ended."""
    score = record.black_score
    if score is None or (final_score != NO_SCORE and record.variant.scoring != VARIANT.scoring):
        score = final_score
    if score == NO_SCORE:
        raise RecordError("the game has not ended, and says no score, which WTHOR wants of every game")
    if score % 2 or abs(score) > _SQUARES:
        raise RecordError(f"a score of {score:+} is none that tournament scoring knows; they are even, −64 to +64")
    return (score + _SQUARES) // 2


def _header(date: datetime.date | None, *counts: int) -> bytes:
    """Returns a header; `counts` are the games, the names, the year of the games, the size and the depth."""
    date = date or datetime.date.today()
    num_games, num_names, year, size, depth = counts
    fields = (date.year // 100, date.year % 100, date.month, date.day, num_games, num_names, year, size, 0, depth, 0)
    return np.array(fields, _HEADER).tobytes()


def _write_names(file: BinaryIO, names: Sequence[str], width: int, date: datetime.date | None) -> None:
    if len(names) > _MOST_NAMES:
        raise RecordError(f"a name file holds {_MOST_NAMES} names, not {len(names)}")
    encoded = [_encoded(name, width).ljust(width, b"\0") for name in names]
    file.write(_header(date, 0, len(names), 0, 0, 0) + b"".join(encoded))


def _encoded(name: str, width: int) -> bytes:
    try:
        encoded = name.encode(_ENCODING)
    except UnicodeEncodeError:
        raise RecordError(f"the name {name!r} has letters beyond Latin-1, which WTHOR cannot hold") from None
    if len(encoded) > width or b"\0" in encoded:
        raise RecordError(f"the name {name!r} is none for WTHOR, which has room for {width} letters, none of them NUL")
    return encoded
