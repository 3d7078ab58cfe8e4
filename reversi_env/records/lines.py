"""Formats that hold one record a line, read and written as a stream."""

from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, TypeVar

from reversi_env.records.record import OnFault, RecordError, report, shown

MAX_LINE_BYTES = 1 << 16

Record = TypeVar("Record")

_BYTE_ORDER_MARK = "\ufeff"


def decode(data: bytes) -> str:
    """Returns the text of a record, which is UTF-8 where that is possible and Latin-1 otherwise."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def encode(text: str) -> bytes:
    """Returns a text as UTF-8; raises RecordError where it has half of a surrogate pair, which no file can hold."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise RecordError(f"{shown(text[error.start : error.end])} is no character that a file can hold") from None


def write_lines(file: BinaryIO, texts: Iterable[str]) -> None:
    """Writes records one a line; raises RecordError as `encode`."""
    for text in texts:
        file.write(encode(f"{text}\n"))


def read_lines(
    file: BinaryIO, on_fault: OnFault | None, comments: str, interpret: Callable[[str], Record]
) -> Iterator[Record]:
    """Yields what `interpret` makes of each line that is not blank and does not begin with a letter of `comments`.

    A RecordError that it raises is reported with the number of the line, as is a line that is too long.
    """
    number = 0
    while data := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        is_too_long = len(data) > MAX_LINE_BYTES
        while len(data) > MAX_LINE_BYTES and not data.endswith(b"\n"):
            data = file.readline(MAX_LINE_BYTES + 1)
        try:
            if is_too_long:
                raise RecordError(f"the line is longer than {MAX_LINE_BYTES} bytes; a record is one short line")
            line = decode(data).removeprefix(_BYTE_ORDER_MARK).strip()
            if not line or line[0] in comments:
                continue
            record = interpret(line)
        except RecordError as fault:
            report(fault.at(f"line {number}"), on_fault)
        else:
            yield record
