"""Transcripts in files: one game a line, results behind the moves, and what is said of lines that are none."""

import csv
import io
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reversi_env import Game, Variant
from reversi_env.records import transcript
from reversi_env.records.lines import MAX_LINE_BYTES
from reversi_env.records.record import GameRecord, RecordError
from tests.reversi_env.record_strategies import EndlessFile, damaged, games, read_from, read_with_faults_from, written
from tests.reversi_env.strategies import variants

Data = Callable[[str], Path]

OPENING = Game.from_transcript("f5d6c3").moves


read = partial(read_from, transcript.read)
read_with_faults = partial(read_with_faults_from, transcript.read)


def test_games_that_break_weak_rule_code_are_read_and_written_as_they_stand(data: Data) -> None:
    with data("stress_games.tsv").open(encoding="utf-8", newline="") as file:
        lines = "".join(f"{row['transcript']}\n" for row in csv.DictReader(file, delimiter="\t"))
    records = read(lines)
    assert len(records) == 5
    assert all(record.is_over for record in records)
    assert written(transcript.write, *records).decode() == lines


@pytest.mark.parametrize(
    "line",
    [
        "f5d6c3",
        "F5D6C3",
        " f5 d6  c3 ",
        "f5,d6,c3",
        "1. f5 2. d6 3. c3",
        "1 f5 2 d6 3 c3",
        "f5-d6-c3",
        "\ufefff5d6c3\r",
        "# two players\n\n% and a remark\r\nf5d6c3\n\n",
    ],
)
def test_one_game_in_many_spellings(line: str) -> None:
    (record,) = read(line)
    assert record == GameRecord(Variant(scoring="tournament"), OPENING)


@pytest.mark.parametrize(
    ("behind", "score", "tags"),
    [
        (" +4", 4, {}),
        (": -12", -12, {}),
        (":+4", 4, {}),
        (" 0", 0, {}),
        (" 34-30", 4, {}),
        (" : 20 - 44", -24, {}),
        (" (34-30)", 4, {}),
        ("(34-30)", 4, {}),
        (" | +2", 2, {}),
        ("|-2", -2, {}),
        (" +64", 64, {}),
        (" +65", None, {"result": "+65"}),
        (" -999", None, {"result": "-999"}),
        (" 999-1", None, {"result": "999-1"}),
        (" 40-30", None, {"result": "40-30"}),
        ("; 3:61", -58, {}),
        (" 34", None, {"result": "34"}),
        (", 4", None, {"result": "4"}),
        ("\t", None, {}),
    ],
)
def test_a_line_may_end_with_a_result(behind: str, score: int | None, tags: dict[str, str]) -> None:
    (record,) = read(f"f5d6c3{behind}\n")
    assert (record.moves, record.black_score, record.tags) == (OPENING, score, tags)


def test_passes_are_told_or_left_out() -> None:
    told = Game.from_transcript("e6f6c4e7e8d8g6f8 -- g5").moves
    assert told[8] == 64
    for spelling in ("", "--", "pa", "PASS", "@@"):
        (record,) = read(f"e6f6c4e7e8d8g6f8{spelling}g5\n")
        assert record.moves == told


@settings(max_examples=50)
@given(variants().flatmap(lambda variant: st.tuples(st.just(variant), st.lists(games(variant).filter(bool)))))
def test_moves_come_back_as_they_were_for_a_reader_who_knows_the_variant(
    collection: tuple[Variant, list[tuple[int, ...]]],
) -> None:
    variant, lines = collection
    records = [GameRecord(variant, moves) for moves in lines]
    assert read(written(transcript.write, *records), variant=variant) == records


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        ([GameRecord(Variant(4, "-----OX--XO----- O"), ())], "cannot say from which board a game begins"),
        ([GameRecord(Variant(), ())], "a game without a move has no transcript"),
        (
            [GameRecord(Variant(), OPENING), GameRecord(Variant(6), (8,))],
            "a file of transcripts is of one variant; othello-6x6 comes after othello",
        ),
    ],
)
def test_what_a_transcript_cannot_say_is_not_written(records: list[GameRecord], sentence: str) -> None:
    with pytest.raises(RecordError, match=sentence):
        written(transcript.write, *records)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("f5d6z3", "character 5 of the transcript: 'z' is not a square of 8×8"),
        ("f5d6a1", "move 3: a1 is not legal for black"),
        ("hello", "character 1 of the transcript"),
        ("f5d6c3 +4000", "is not a square"),
        ("f5d6c3+4", "character 7 of the transcript: .* is not a square"),
        ("f5d6c3 " + "9" * 5000, "is not a square"),
        ("f5" * MAX_LINE_BYTES, f"the line is longer than {MAX_LINE_BYTES} bytes"),
    ],
)
def test_a_fault_costs_one_line_alone_and_names_it(line: str, sentence: str) -> None:
    records, faults = read_with_faults(f"f5d6\n# x\n{line}\nf5d6c3\n")
    assert [len(record.moves) for record in records] == [2, 3]
    assert len(faults) == 1
    with pytest.raises(RecordError, match=f"^line 3: .*{sentence}"):
        read(f"f5d6\n# x\n{line}\nf5d6c3\n")
    assert len(faults[0]) < 400


@given(st.binary(max_size=200))
def test_any_bytes_are_records_or_faults(data: bytes) -> None:
    read_with_faults(data)


@settings(max_examples=50)
@given(st.data())
def test_damaged_files_are_records_or_faults(drawn: st.DataObject) -> None:
    read_with_faults(drawn.draw(damaged(b"1. f5 d6, c3 : +4\n% c\ne6f6c4e7e8d8g6f8--g5 34-30\r\n" * 3)))


def test_a_line_of_the_greatest_length_is_read_and_a_longer_one_is_a_fault() -> None:
    for length, num_faults in ((MAX_LINE_BYTES, 0), (MAX_LINE_BYTES + 1, 1)):
        records, faults = read_with_faults("f5d6\n".rjust(length) + "f5\n")
        assert (len(records), len(faults)) == (2 - num_faults, num_faults)


@pytest.mark.parametrize("unit", ["a", "1", " ", ":", "9 - ", "f5", "\xff", "\n", "a\n"])
def test_a_file_without_end_takes_bounded_memory_and_linear_time(unit: str) -> None:
    size = 16 * MAX_LINE_BYTES if "\n" not in unit else MAX_LINE_BYTES // 8
    tracemalloc.start()
    try:
        began = time.process_time()
        file = io.BufferedReader(EndlessFile(unit.encode("latin-1"), size))
        assert list(transcript.read(file, lambda fault: None)) == []
        assert tracemalloc.get_traced_memory()[1] < 2**21
        assert time.process_time() - began < 20
    finally:
        tracemalloc.stop()
    line = (unit * MAX_LINE_BYTES)[: MAX_LINE_BYTES - 1].encode("latin-1") + b"\n"
    began = time.process_time()
    read_with_faults(line)
    assert time.process_time() - began < 20


def test_a_line_of_blanks_is_looked_through_once() -> None:
    text = b"f5" + b" " * 60_000 + b"x\n"
    began = time.process_time()
    with pytest.raises(RecordError, match="'x' is not a square"):
        list(transcript.read(io.BytesIO(text)))
    assert time.process_time() - began < 2  # looked through from each blank again it would take half a minute
