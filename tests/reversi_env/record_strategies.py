"""What Hypothesis draws for records: games with everything that a record may say, and files gone wrong."""

import io
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from hypothesis import strategies as st

from reversi_env import Position, Variant
from reversi_env.records.record import ENDINGS, Clock, GameRecord, RecordError, WthorFacts
from tests.reversi_env.strategies import texts as boards
from tests.reversi_env.strategies import variants

Record = TypeVar("Record")

# Letters that the formats use themselves, line breaks of all kinds, and letters of one, two and four bytes.
texts = st.text(
    st.sampled_from("];[()\\:%=/-ab \n\r\t\x00\x7f\x85\u2028éÿ😀\ufeff") | st.characters(exclude_categories=["Cs"])
)
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-64, 64).map(float)
clocks = st.builds(Clock, numbers, numbers, numbers) | st.builds(Clock, st.integers(0, 7200).map(float))
tag_names = texts | st.sampled_from(
    ["PC", "GM", "BO", "TY", "RE", "RU", "B", "W", "V", "AB", "PL", "CA", "TAG", "TEXT", "WTHOR", "RESULT", "TM", "C"]
)
tag_texts = texts | st.sampled_from(["8", "8a", "s8r20", "B+R", "W+Time", "+4:r", "start=free", "1 2 3 4 5", "5:00"])
wthor_numbers = st.integers(0, 65535)


@st.composite
def games(draw: st.DrawFn, variant: Variant) -> tuple[int, ...]:
    """Draws moves that are legal one after the other, to the end or not so far."""
    position = Position(variant)
    moves: list[int] = []
    for choice in draw(st.lists(st.integers(0, 2**16), max_size=2 * position.num_empties)):
        if position.is_over:
            break
        moves.append(position.legal_moves[choice % len(position.legal_moves)])
        position = position.play(moves[-1])
    return tuple(moves)


@st.composite
def game_records(draw: st.DrawFn) -> GameRecord:
    variant = draw(variants())
    if draw(st.booleans()):
        variant = variant.with_start(draw(boards(variant.size)))
    moves = draw(games(variant))
    of_each_move = st.lists(st.none() | numbers, min_size=len(moves), max_size=len(moves)).map(tuple)
    return GameRecord(
        variant,
        moves,
        black=draw(texts),
        white=draw(texts),
        black_score=draw(st.none() | st.integers(-100, 100)),
        ending=draw(st.sampled_from(["", *ENDINGS])),
        evaluations=draw(st.just(()) | of_each_move),
        times_s=draw(st.just(()) | of_each_move),
        black_rating=draw(st.none() | numbers),
        white_rating=draw(st.none() | numbers),
        black_clock=draw(st.none() | clocks),
        white_clock=draw(st.none() | clocks),
        date=draw(texts),
        event=draw(texts),
        wthor=draw(st.none() | st.builds(WthorFacts, *[wthor_numbers] * 5)),
        tags=draw(st.dictionaries(tag_names, tag_texts, max_size=4)),
    )


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Draws what becomes of a file whose bytes are turned, lost, doubled, cut off or joined by others."""
    damage = bytearray(data)
    for _ in range(draw(st.integers(1, 8))):
        first = draw(st.integers(0, len(damage)))
        last = first + draw(st.sampled_from([1, 4, 50, 1000]))
        kind = draw(st.sampled_from(["replace", "insert", "delete", "double", "cut"]))
        if kind == "replace":
            damage[first : first + 1] = draw(st.binary(min_size=1, max_size=1))
        elif kind == "insert":
            damage[first:first] = draw(
                st.binary(max_size=9) | st.sampled_from([b"(;", b"[", b"]", b"\\", b")", b"9" * 400])
            )
        elif kind == "delete":
            del damage[first:last]
        elif kind == "double":
            damage[first:first] = damage[first:last]
        elif draw(st.booleans()):
            del damage[first:]
    return bytes(damage)


class EndlessFile(io.RawIOBase):
    """A file that repeats some bytes up to a length, without holding it."""

    def __init__(self, unit: bytes, length: int) -> None:
        self._unit = unit
        self._rest = length

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        size = min(len(buffer), self._rest)
        buffer[:size] = (self._unit * (size // len(self._unit) + 1))[:size]
        self._rest -= size
        return size


def written(write: Callable[[io.BytesIO, Iterable[GameRecord]], None], *records: GameRecord) -> bytes:
    file = io.BytesIO()
    write(file, records)
    return file.getvalue()


def read_from(read: Callable[..., Iterator[Record]], text: str | bytes, **arguments: object) -> list[Record]:
    """Returns what a format's `read` yields of a file, and raises its first fault."""
    return list(read(io.BytesIO(text.encode() if isinstance(text, str) else text), **arguments))


def read_with_faults_from(read: Callable[..., Iterator[Record]], text: str | bytes) -> tuple[list[Record], list[str]]:
    """Returns what a format's `read` yields of a file, and the sentences of all faults."""
    faults: list[RecordError] = []
    records = read_from(read, text, on_fault=faults.append)
    return records, [str(fault) for fault in faults]
