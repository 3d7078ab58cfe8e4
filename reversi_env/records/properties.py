r"""The bracket syntax that GGF and SGF share, `(;NAME[value]NAME[value][value];…)`, read as a stream.

In a value a backslash stands before a `]` or a backslash that is meant as such. Variations, `(…)` within a record, are
passed over but for the first, which goes on with the game.
"""

import re
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import BinaryIO, NamedTuple

from reversi_env.geometry import SIZES
from reversi_env.notation import square_name
from reversi_env.records.lines import decode
from reversi_env.records.record import GameRecord, OnFault, RecordError, report, shown

MAX_RECORD_BYTES = 1 << 20
MAX_DEPTH = 1000  # of variations within variations

_CHUNK_BYTES = 1 << 16
_MAX_OPENING_BYTES = 256  # of what `_OPENING` or `_HEAD` matches, and more

# Every repetition is possessive, so that no text is looked at twice.
_VALUE = r"\[[^\]\\]*+(?:\\.[^\]\\]*+)*+\]"
_OPENING = re.compile(rb"\(\s{0,32}+;")
# What begins with a property of the root is a record wherever it stands: an unclosed bracket costs one record only.
# Within a sound text the bracket that closes the property is escaped, and there it is none.
_HEAD = re.compile(
    rb"\(;\s{0,32}+(?:AP|CA|DT|EV|FF|GM|GN|PB|PC|PW|RE|RO|ST|SZ|US)\s{0,8}+\[[^\[\]\\]{0,128}+\]", re.IGNORECASE
)
_UP_TO_PARENTHESIS = re.compile(rf"[^\[()]*+(?:{_VALUE}[^\[()]*+)*+".encode(), re.DOTALL)
_SYNTAX = re.compile(rf"[\s;(]*+(?:[A-Za-z]\w*+\s*+{_VALUE}(?:\s*+{_VALUE})*+[\s;(]*+)*+", re.ASCII | re.DOTALL)
_PROPERTY = re.compile(r"(\w*+)\s*+\[([^\]\\]*+(?:\\.[^\]\\]*+)*+)\][\s(]*+(;?)", re.ASCII | re.DOTALL)
_FIRST_MOVE = re.compile(r"(?<=[\];])[BW]\[[a-j]")
_BARE_MOVES = frozenset(
    f"{color}[{square_name(move, SIZES[-1])}" for color in "BW" for move in range(SIZES[-1] ** 2 + 1)
)
_ESCAPE = re.compile(r"\\(\r\n|\n\r|.)", re.DOTALL)
_TO_ESCAPE = re.compile(r"[\]\\]|(?<=\();")


class Properties(NamedTuple):
    """The properties of a record's main line, one entry a value, but for the bare moves with which most records end."""

    names: list[str]  # a property of several values has its name at each
    values: list[str]  # unescaped
    nodes: list[int]  # the number of the node where each stands, from 0, and that of the end
    run: list[str]  # moves and nothing else, each like "B[f5"


def escape(value: str) -> str:
    """Returns a value as it stands between brackets."""
    return _TO_ESCAPE.sub(r"\\\g<0>", value)


def _unescape(value: str) -> str:
    """Returns what a value between brackets means; an escaped line break means nothing."""
    return _ESCAPE.sub(lambda match: "" if match[1][0] in "\r\n" else match[1], value)


def read_records(
    file: BinaryIO,
    on_fault: OnFault | None,
    spell: Callable[[str], str],
    interpret: Callable[[Properties], GameRecord],
    to_text: Callable[[bytes], str] = decode,
) -> Iterator[GameRecord]:
    """Yields what `interpret` makes of each record of a file.

    `spell` says how a name of a property is meant, `to_text` decodes a record.

    Faults are reported with the line where their record begins. Holds one record at a time, of at most
    MAX_RECORD_BYTES; what stands between records is passed over.
    """
    window = _Window(file)
    has_found_one = False
    pattern = _OPENING
    while window.seek(pattern):
        has_found_one = True
        line = window.line
        try:
            data = window.take()
        except RecordError as fault:
            pattern = _HEAD  # within the unclosed record a parenthesis may open a variation
            report(fault.at(f"line {line}"), on_fault)
            continue
        pattern = _OPENING
        try:
            record = interpret(_parse(to_text(data), spell))
        except RecordError as fault:
            report(fault.at(f"line {line}"), on_fault)
        else:
            yield record
    if not has_found_one and window.has_text:
        report(RecordError("line 1: the file has no record in brackets; one looks like (;GM[…]…)"), on_fault)


def _parse(text: str, spell: Callable[[str], str]) -> Properties:
    """Returns the properties of a main line, from its "(" to where it ends."""
    text, run = _split_run(text)
    end = _end_of_syntax(text)
    if end < len(text):
        raise RecordError(f"{shown(text[end:])} is not a property; one looks like NAME[value]")
    found = _PROPERTY.findall(text)
    written, values, boundaries = zip(*found, strict=True) if found else ((), (), ())
    spelling = {name: spell(name) for name in set(written)}
    names = list(map(spelling.__getitem__, written))
    if "" in spelling:
        names = list(accumulate(names, _name_or_last))
    if "\\" in text:
        values = tuple(map(_unescape, values))
    return Properties(names, list(values), list(accumulate(map(len, boundaries), initial=0)), run)


def _split_run(text: str) -> tuple[str, list[str]]:
    """Returns a main line without the bare moves at its end, and these; all of it where it does not end so.

    Splitting is several times quicker than finding each move by a pattern.
    """
    first = _FIRST_MOVE.search(text)
    if first:
        *run, rest = text[first.start() :].replace("];", "]").split("]")
        head = text[: first.start()]
        if not rest and _BARE_MOVES.issuperset(run) and _end_of_syntax(head) == len(head):
            return head, run
    return text, []


def _end_of_syntax(text: str) -> int:
    """Returns how far a text is made of properties."""
    syntax = _SYNTAX.match(text)
    assert syntax is not None  # it matches the empty text
    return syntax.end()


def _name_or_last(last: str, name: str) -> str:
    return name or last


class _Window:
    """The part of a file in sight: it grows while a record needs it, and is cut off in front of what has been read."""

    def __init__(self, file: BinaryIO) -> None:
        self.line = 1  # of the place where reading stands
        self.has_text = False
        self._file = file
        self._data = b""
        self._start = 0  # the place where reading stands
        self._head = 0  # the first head after it, or the end of the data; searched anew where it does not lie after it

    def seek(self, pattern: re.Pattern[bytes]) -> bool:
        """Goes on to where the pattern matches; returns False at the end of the file."""
        while (found := pattern.search(self._data, self._start)) is None:
            self._advance(max(self._start, len(self._data) - _MAX_OPENING_BYTES))
            if not self._grow():
                return False
        self._advance(found.start())
        return True

    def take(self) -> bytes:
        """Returns the main line of the record that begins here, without its last parenthesis, and goes past the record.

        Raises RecordError where the record is not closed, and goes to where another may begin.
        """
        while True:
            limit = min(self._next_head(), self._start + MAX_RECORD_BYTES)
            end = self._balance(limit)
            if end is not None:
                main_end, record_end = end
                data = self._data[self._start : main_end]
                self._advance(record_end)
                return data
            if limit == len(self._data) and limit < self._start + MAX_RECORD_BYTES and self._grow():
                continue
            is_too_long = limit == self._start + MAX_RECORD_BYTES
            self._advance(limit)
            if is_too_long:
                raise RecordError(f"the record is longer than {MAX_RECORD_BYTES} bytes")
            raise RecordError("the record is not closed; each [ needs its ] and each ( its )")

    def _next_head(self) -> int:
        if self._head <= self._start:
            found = _HEAD.search(self._data, self._start + 1)
            self._head = found.start() if found else len(self._data)
        return self._head

    def _balance(self, limit: int) -> tuple[int, int] | None:
        """Returns where the first parenthesis closes and where that of the record does, or None where it does not."""
        depth = 0
        main_end = 0
        place = self._start
        while True:
            place = _UP_TO_PARENTHESIS.match(self._data, place, limit).end()  # type: ignore[union-attr]  # it always matches
            if place == limit or self._data[place] == ord("["):
                return None
            if self._data[place] == ord("("):
                depth += 1
            else:
                depth -= 1
                main_end = main_end or place
            place += 1
            if depth == 0:
                return main_end, place
            if depth > MAX_DEPTH:
                self._advance(place)
                raise RecordError(f"the record has variations more than {MAX_DEPTH} deep")

    def _advance(self, place: int) -> None:
        self.line += self._data.count(b"\n", self._start, place)
        self._start = place

    def _grow(self) -> bool:
        """Brings as much again into sight; returns whether there was more."""
        rest = self._data[self._start :]
        chunk = self._file.read(max(_CHUNK_BYTES, len(rest)))
        self._data = rest + chunk
        self._start = self._head = 0
        self.has_text = self.has_text or bool(chunk.strip())
        return bool(chunk)
