"""Files of records, in the format that their name's ending tells: read and written one record at a time."""

import contextlib
import io
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias

from reversi_env.durable import blaming, new_file
from reversi_env.naming import UnknownNameError, UsageError
from reversi_env.records import ggf, obf, sgf, transcript, wthor
from reversi_env.records.record import GameRecord, OnFault, ProblemRecord, RecordError, report
from reversi_env.variant import Variant

Record: TypeAlias = GameRecord | ProblemRecord
KINDS: dict[type[Record], str] = {GameRecord: "games", ProblemRecord: "problems"}


class Format(NamedTuple):
    """What is known of a format: `read(file, on_fault)` and `write(file, records)` are those of its module."""

    name: str
    record: type[Record]
    read: Callable[[BinaryIO, OnFault | None], Iterator[Record]]
    write: Callable[[BinaryIO, Iterable[Any]], object]  # of records of its kind
    says_variant: bool = True  # else a reader is told one variant for all games of a file


TRANSCRIPTS = Format("transcripts", GameRecord, transcript.read, transcript.write, says_variant=False)
WTHOR = Format("WTHOR", GameRecord, wthor.read, wthor.write)
FORMATS = {  # by the ending of a file's name
    ".txt": TRANSCRIPTS,
    ".ggf": Format("GGF", GameRecord, ggf.read, ggf.write),
    ".sgf": Format("SGF", GameRecord, sgf.read, sgf.write),
    ".obf": Format("OBF", ProblemRecord, obf.read, obf.write),
    ".wtb": WTHOR,
}

_PLAYERS, _TOURNAMENTS = ".jou", ".trn"  # the name files of WTHOR
_COMMON_STEM = "wthor"  # of those that serve the games of all years


def format_of(path: str | os.PathLike[str]) -> Format:
    """Returns the format of a file by its name; raises UnknownNameError for an ending that no format has."""
    suffix = Path(path).suffix
    if suffix.lower() not in FORMATS:
        raise UnknownNameError(f"record format of {os.fspath(path)}:", suffix, FORMATS)
    return FORMATS[suffix.lower()]


def read_records(
    path: str | os.PathLike[str], on_fault: OnFault | None = None, variant: Variant | None = None
) -> Iterator[Record]:
    """Yields the records of a file, reading as they are asked for.

    Transcripts are of `variant`, else of Othello with tournament scoring; the other formats say theirs. Games of WTHOR
    get their names from `.jou` and `.trn` files beside them, called like the file or else WTHOR.

    Raises UnknownNameError at once for a name without a known ending; then OSError, and RecordError with file and place
    at the first fault, or hands it to `on_fault` and goes on with the next record.
    """
    return _read(Path(path), format_of(path), on_fault, variant)


def _read(path: Path, known: Format, on_fault: OnFault | None, variant: Variant | None) -> Iterator[Record]:
    fault = on_fault and (lambda error: on_fault(error.at(str(path))))
    with open(path, "rb") as file:
        if known is WTHOR:
            records: Iterator[Record] = wthor.read(file, fault, _names_beside(path, on_fault))
        elif known is TRANSCRIPTS:
            records = transcript.read(file, fault, variant)
        else:
            records = known.read(file, fault)
        try:
            with blaming(path):
                yield from records
        except RecordError as error:
            raise error.at(str(path)) from None


def write_records(path: str | os.PathLike[str], records: Iterable[Record], on_fault: OnFault | None = None) -> int:
    """Writes a file of records as they come and returns their number; old files are replaced at the end, or kept.

    Beside games of WTHOR that have names it writes name files, and empty ones where others would name them.

    Raises UnknownNameError as `read_records` does, UsageError for a file of games called as the name files that serve
    all years are, OSError, and RecordError for a record that the format cannot hold, or hands it to `on_fault` and
    leaves the record out, unless none is left.
    """
    path, known = Path(path), format_of(path)
    if known is WTHOR and path.stem.lower() == _COMMON_STEM:
        raise UsageError(f"name files called like {path} serve the games of all years; call the games otherwise")
    num_records = num_refused = 0

    def refuse(error: RecordError) -> None:
        nonlocal num_refused
        num_refused += 1
        report(error.at(str(path)), on_fault)

    def fitting() -> Iterator[Any]:
        nonlocal num_records
        first: Record | None = None
        for record in records:
            num_records += 1
            first = first or record
            try:
                _check(record, first, known)
            except RecordError as error:
                refuse(error)
            else:
                yield record

    with contextlib.ExitStack() as stack:  # which renames in reverse: the games, opened first, come last
        file = stack.enter_context(new_file(path))
        names = None
        if known is WTHOR:
            names = wthor.write(file, fitting(), refuse)
        else:
            for record in fitting():
                try:
                    file.write(_written(record, known))
                except RecordError as error:
                    refuse(error)
        if num_records and num_refused == num_records:
            raise RecordError(f"{path}: none of the records could be written")
        file.flush()  # where a disk is full no name file is replaced
        if names is not None:
            _write_names_beside(path, names, stack)
    return num_records - num_refused


def _check(record: Record, first: Record, known: Format) -> None:
    """Raises RecordError for a record that does not belong into a file of a format that begins with `first`."""
    if not isinstance(record, known.record):
        raise RecordError(f"a file of {known.name} holds {KINDS[known.record]}, not {KINDS[type(record)]}")
    if not known.says_variant and isinstance(record, GameRecord) and isinstance(first, GameRecord):
        transcript.check_alike(record.variant, first.variant)


def _written(record: Record, known: Format) -> bytes:
    """Returns a record as text; of a record that is refused in the middle nothing may reach the file."""
    buffer = io.BytesIO()
    known.write(buffer, [record])
    return buffer.getvalue()


# The name files of WTHOR


def _names_beside(path: Path, on_fault: OnFault | None) -> wthor.Names:
    """Returns the names of the files beside `path`; a damaged one is a fault, and gives no names."""
    names: dict[str, list[str]] = {}
    for suffix, read in ((_PLAYERS, wthor.read_players), (_TOURNAMENTS, wthor.read_tournaments)):
        if beside := _file_beside(path, suffix):
            try:
                with blaming(beside), open(beside, "rb") as file:
                    names[suffix] = read(file)
            except RecordError as error:
                report(error.at(str(beside)), on_fault)
    return wthor.Names(names.get(_PLAYERS, ()), names.get(_TOURNAMENTS, ()))


def _file_beside(path: Path, suffix: str) -> Path | None:
    """Returns the file with that ending, in any case, that is called like `path`, else the one called WTHOR."""
    stems = (path.stem.lower(), _COMMON_STEM)
    beside = [file for file in path.parent.iterdir() if file.suffix.lower() == suffix and file.stem.lower() in stems]
    return min(beside, key=lambda file: (stems.index(file.stem.lower()), file.stem != path.stem, file), default=None)


def _write_names_beside(path: Path, names: wthor.Names, stack: contextlib.ExitStack) -> None:
    """Writes the name files, which take their places when the stack is left.

    None is needed where nothing has a name and no file lies that a reader would take names from.
    """
    for suffix, write, known in (
        (_PLAYERS, wthor.write_players, names.players),
        (_TOURNAMENTS, wthor.write_tournaments, names.tournaments),
    ):
        read = _file_beside(path, suffix)
        if known or read:
            is_own = read is not None and read.stem.lower() == path.stem.lower()
            file = stack.enter_context(new_file(read if read and is_own else path.with_suffix(suffix)))
            write(file, known)
            file.flush()
