"""OBF: the endgame suite of the French federation, what is forgiven, and what is said of lines that are none."""

import csv
import io
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reversi_env import Position, Variant
from reversi_env.geometry import SIZES
from reversi_env.records import obf
from reversi_env.records.lines import MAX_LINE_BYTES
from reversi_env.records.record import ProblemRecord, RecordError
from tests import oracle
from tests.reversi_env.record_strategies import damaged, numbers, read_from, read_with_faults_from
from tests.reversi_env.strategies import arbitrary_positions

Data = Callable[[str], Path]

TOURNAMENT = Variant(scoring="tournament")
FFO_1 = "--XXXXX--OOOXX-O-OOOXXOX-OXOXOXXOXXXOXXX--XOXOXX-XXXOOO--OOOOO-- X"


read = partial(read_from, obf.read)
read_with_faults = partial(read_with_faults_from, obf.read)


def written(*records: ProblemRecord) -> bytes:
    file = io.BytesIO()
    obf.write(file, records)
    return file.getvalue()


def test_the_suite_of_the_french_federation_is_read_and_written(data: Data) -> None:
    with data("ffo.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    lines = [
        f"{row['board64']} {row['side']}; "
        + " ".join(f"{move}:{int(row['score']):+d};" for move in row["best_moves"].split())
        + f" % FFO {row['id']}\n"
        for row in rows
    ]
    records = read("".join(lines))
    assert len(records) == 44
    for record, row in zip(records, rows, strict=True):
        assert record.position.board == row["board64"]
        assert record.position.side == row["side"]
        assert record.position.variant == TOURNAMENT
        assert record.name == f"FFO {row['id']}"
        assert set(record.scores) <= set(oracle.legal_squares(list(row["board64"]), row["side"]))
        assert set(record.scores.values()) == {int(row["score"])}
    assert written(*records).decode() == "".join(lines)


@pytest.mark.parametrize(
    "line",
    [
        f"{FFO_1}; g8:+18; a4:-2.5; % FFO 1",
        f"{FFO_1};G8:18;A4:-2.50%FFO 1",
        f"{FFO_1.lower().replace('-', '.')} ;; g8 : +18 ;\ta4:-2.5 ;% FFO 1 \r",
        f"% solved in 1992\n\n\ufeff{FFO_1.replace('X', '*')}; g8:+18; a4:-2.5; % FFO 1\n",
    ],
)
def test_one_problem_in_many_spellings(line: str) -> None:
    (record,) = read(line)
    position = Position.from_text(FFO_1, TOURNAMENT)
    assert record == ProblemRecord(position, {62: 18, 24: -2.5}, "FFO 1")


@pytest.mark.parametrize("size", SIZES)
def test_the_number_of_squares_is_the_size(size: int) -> None:
    start = Position(Variant(size, scoring="tournament"))
    assert read(start.text) == [ProblemRecord(start)]


def test_a_pass_may_have_a_score() -> None:
    (record,) = read("OX-- ---- ---- ---- X; pass:-3;")
    assert record.position.must_pass
    assert record.scores == {16: -3}
    assert read(written(record)) == [record]


@st.composite
def problems(draw: st.DrawFn) -> ProblemRecord:
    position = draw(arbitrary_positions(Variant(draw(st.sampled_from(SIZES)), scoring="tournament")))
    moves = draw(st.sets(st.sampled_from(position.legal_moves))) if position.legal_moves else set()
    name = st.text(st.characters(exclude_categories=["Cc", "Cs"]) | st.sampled_from("%;: X")).map(str.strip)
    return ProblemRecord(position, {move: draw(numbers) for move in moves}, draw(name))


@settings(max_examples=60)
@given(st.lists(problems(), max_size=3))
def test_problems_come_back_as_they_were(records: list[ProblemRecord]) -> None:
    assert read(written(*records)) == records


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (ProblemRecord(Position("othello")), "OBF is of Othello with tournament scoring, the position is of othello"),
        (ProblemRecord(Position("anti-reversi")), "the position is of anti-reversi"),
        (ProblemRecord(Position(TOURNAMENT), {0: 1.0}), "a1 has a score but is not legal; legal: d3 c4 f5 e6"),
        (ProblemRecord(Position(TOURNAMENT), {37: float("nan")}), "nan is no number that can be written"),
        (ProblemRecord(Position(TOURNAMENT), name="a\nb"), r"OBF cannot hold the name 'a\\nb'"),
        (ProblemRecord(Position(TOURNAMENT), name=" a"), "OBF cannot hold the name ' a'"),
        (ProblemRecord(Position(TOURNAMENT), name="\ud800"), "is no character that a file can hold"),
    ],
)
def test_what_obf_cannot_say_is_not_written(record: ProblemRecord, sentence: str) -> None:
    with pytest.raises(RecordError, match=sentence):
        written(record)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("XO X", "found 2 squares, expected 16"),
        ("Q" + FFO_1[1:], "'Q' at a1 is neither a black disc"),
        (FFO_1[:-1] + "-", "the side to move is X or O"),
        (f"{FFO_1}; g8", "'g8' is not a move and its score, like g8:\\+18"),
        (f"{FFO_1}; :+18", "':\\+18' is not a move and its score"),
        (f"{FFO_1}; g8:nan", "'g8:nan' is not a move and its score"),
        (f"{FFO_1}; g8:{'9' * 5000}", "is not a move and its score"),
        (f"{FFO_1}; a1:+18", "a1 has a score but is not legal; legal: "),
        (f"{FFO_1}; pass:+18", "pass has a score but is not legal"),
        (f"{FFO_1}; z9:+18", "'z9' is not a square of 8×8"),
        (f"{FFO_1}; g8:+18; G8:+2", "g8 has two scores"),
        ("X" * 64 + " X; a1:+1", "legal: none, the game is over"),
        (f"{FFO_1}{';' * MAX_LINE_BYTES}", f"the line is longer than {MAX_LINE_BYTES} bytes"),
        ("\x00" * 70, "is neither a black disc|expected 16"),
    ],
)
def test_a_fault_costs_one_line_alone_and_names_it(line: str, sentence: str) -> None:
    text = f"{FFO_1}\n% x\n{line}\n{FFO_1}\n"
    records, faults = read_with_faults(text)
    assert len(records) == 2
    assert len(faults) == 1
    with pytest.raises(RecordError, match=f"^line 3: .*{sentence}"):
        read(text)
    assert len(faults[0]) < 400


def test_a_control_character_in_a_comment_is_a_blank_of_the_name() -> None:  # found by damaging files
    (record,) = read(f"{FFO_1}; % a\x1cb\x00\n")
    assert record.name == "a b"
    assert read(written(record)) == [record]


def test_a_score_of_minus_zero_is_written_with_one_sign() -> None:  # found by damaging files
    (record,) = read(f"{FFO_1}; g8:-0; a4:+0\n")
    assert written(record).decode() == f"{FFO_1}; g8:-0; a4:+0;\n"
    assert read(written(record)) == [record]


@given(st.binary(max_size=200))
def test_any_bytes_are_problems_or_faults(data: bytes) -> None:
    read_with_faults(data)


@settings(max_examples=100)
@given(st.data())
def test_damaged_files_are_problems_or_faults_and_what_is_read_can_be_written(drawn: st.DataObject) -> None:
    records, _ = read_with_faults(drawn.draw(damaged(f"{FFO_1}; g8:+18; a4:-2.5; % FFO 1\n".encode() * 3)))
    assert read(written(*records)) == records
