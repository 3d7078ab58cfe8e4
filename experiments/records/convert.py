"""Writes records in another format, that of the last file's ending.

    reversi records convert games.ggf games.sgf
    reversi records convert WTH_2001.wtb WTH_2002.wtb both.txt --strict

A game that is no game, or that the other format cannot hold, is left out, with a sentence. WTHOR's names are read from
.jou and .trn files beside the games, called like them or WTHOR, and are written beside them. What a format has no
place for is lost. Old files are replaced when all is done, and stay as they were when something fails. Exit code 1
where games were left out.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from experiments.arguments import UsageError, parse, setting
from experiments.records.faults import Faults
from experiments.records.transcripts import variant_of_transcripts
from reversi_env import Variant
from reversi_env.records.formats import KINDS, Record, format_of, read_records, write_records
from reversi_env.records.record import OnFault, RecordError


@dataclass
class ConvertSettings:
    """What is assumed, and what happens to games with faults."""

    variant: str | None = setting(
        None, "of transcripts that are read, which do not say it (default: othello, tournament scoring)"
    )
    strict: bool = setting(False, "fail at the first fault instead of leaving the game out")


def convert(sources: list[str], target: str, on_fault: OnFault | None = None, variant: Variant | None = None) -> int:
    """Writes the records of `sources`, transcripts of `variant`, into `target`, and returns their number.

    Raises UsageError where `target` is one of the sources or of another kind, and RecordError at the first fault, or
    hands it to `on_fault`; also where there is no record to write, so that no old file is lost for nothing.
    """
    kind = format_of(target).record
    for source in sources:
        if (known := format_of(source)).record is not kind:
            raise UsageError(f"{source} holds {KINDS[known.record]}, and {target} would hold {KINDS[kind]}")
        if _is_same_file(source, target):
            raise UsageError(f"{target} is read and would be written over; name another file to write")
    records = itertools.chain.from_iterable(read_records(source, on_fault, variant) for source in sources)
    return write_records(target, _some(records, sources), on_fault)


def _some(records: Iterator[Record], sources: list[str]) -> Iterator[Record]:
    first = next(records, None)
    if first is None:
        raise RecordError(f"there is nothing to write: {', '.join(sources)} hold no record without a fault")
    yield first
    yield from records


def _is_same_file(source: str, target: str) -> bool:
    try:
        return Path(source).samefile(target)
    except FileNotFoundError:
        return False


def main(arguments: list[str]) -> int:
    """Runs `reversi records convert`."""
    files, settings = parse("records convert", "IN [IN ...] OUT", ConvertSettings, __doc__ or "", arguments)
    if len(files) < 2:
        raise UsageError("convert what into what? reversi records convert IN [IN ...] OUT")
    *sources, target = files
    faults = Faults()
    variant = variant_of_transcripts(settings.variant, sources)
    number = convert(sources, target, None if settings.strict else faults.add, variant)
    faults.print_number()
    print(f"{target}: {number} {KINDS[format_of(target).record]}")
    return 1 if faults.number else 0
