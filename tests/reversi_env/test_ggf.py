"""GGF: real games of a server, what is forgiven, every fault, and records that come back as they were."""

import io
import re
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reversi_env import Game, Variant
from reversi_env.notation import square_name
from reversi_env.records import ggf, wthor
from reversi_env.records.properties import MAX_DEPTH, MAX_RECORD_BYTES
from reversi_env.records.record import Clock, GameRecord, RecordError, WthorFacts
from tests import oracle
from tests.reversi_env.record_strategies import (
    EndlessFile,
    damaged,
    game_records,
    read_from,
    read_with_faults_from,
    texts,
    written,
)

Data = Callable[[str], Path]

TOURNAMENT = Variant(scoring="tournament")
BOARD = "8 -------- -------- -------- ---O*--- ---*O--- -------- -------- -------- *"
OPENING = Game.from_transcript("f5d6c3").moves


read = partial(read_from, ggf.read)
read_with_faults = partial(read_with_faults_from, ggf.read)


def record_text(body: str, board: str = BOARD) -> str:
    return f"(;GM[Othello]BO[{board}]{body};)"


# Games of a server


@pytest.fixture(scope="module")
def server_games(data: Data) -> list[GameRecord]:
    return read(data("games.ggf").read_bytes())


def test_games_of_a_server_agree_with_oracle_ply_by_ply(server_games: list[GameRecord]) -> None:
    assert len(server_games) == 4
    for record in server_games:
        board, side = oracle.start_board(8, "diagonal"), oracle.BLACK
        for move in record.moves:
            if move == 64:
                assert oracle.must_pass(board, side)
            else:
                board = oracle.play(board, side, move)
            side = oracle.other(side)
        assert oracle.is_over(board)
        assert oracle.score(board, oracle.BLACK, scoring="tournament") == record.black_score == 0


def test_a_game_of_a_server_says_all_that_stands_in_the_file(server_games: list[GameRecord]) -> None:
    record = server_games[2]
    assert record.variant == TOURNAMENT
    assert (record.black, record.white) == ("black player", "white player")
    assert (record.black_rating, record.white_rating) == (2197.01, 2199.72)
    assert record.black_clock == record.white_clock == Clock(main_s=300, increment_s=0, extension_s=120)
    assert record.date == "2003.12.15_13:24:03.MST"
    assert record.tags == {"PC": "GGS/os"}
    assert record.moves[:4] == Game.from_transcript("d3c5e6d2").moves
    assert record.moves.index(64) == 58
    assert (record.times_s[26], record.times_s[37], record.times_s[58]) == (5.42, 17.38, None)
    assert record.evaluations == ()
    assert server_games[0].evaluations[7:10] == (2.39, None, 2.37)


def test_games_of_a_server_are_written_as_the_server_writes_them(data: Data, server_games: list[GameRecord]) -> None:
    theirs = data("games.ggf").read_text().replace("RE[+0.000]", "RE[+0]").replace("1 (;", "(;")
    theirs = re.sub(r"(\.\d*?)0+\]", lambda match: match[1].rstrip(".") + "]", theirs)  # 16.20 and 3.00
    assert written(ggf.write, *server_games).decode() == theirs


def test_games_of_wthor_come_back_as_they_were(data: Data) -> None:
    stored = data("wthor/WTH_1985.wtb").read_bytes()
    games = list(wthor.read(io.BytesIO(stored)))
    assert len(games) > 500
    assert read(written(ggf.write, *games)) == games


# What is forgiven


@pytest.mark.parametrize(
    "text",
    [
        record_text("B[f5]W[d6]B[c3]"),
        record_text("B[F5]W[D6]B[C3]"),
        record_text("B[f5]W[d6]B[c3]").lower().replace("[othello]", "[OTHELLO]"),
        f"3 {record_text('B[f5//]W[d6//]B[c3//]')}",
        f"a game of last night:\n\n{record_text('B[f5]W[d6]B[c3]')}\nthat was it (not much)\n",
        record_text("B[f5]\nW[d6]\nB[c3]\n").replace(" ", "\n"),
        record_text("B[f5]\r\nW[ d6 ]\r\nB[c3\t]"),
        record_text("\tB [f5] W [d6]  B [c3] "),
        "\ufeff" + record_text("B[f5]W[d6]B[c3]"),
        record_text("B[f5]W[d6]B[c3]").replace(";)", ")"),
        record_text("B[f5]W[d6]B[c3]", BOARD.replace("*", "X").replace("-", ".")),
        record_text("B[f5](W[d6];B[c3])(W[f4];B[e3])"),
        record_text("B[f5];W[d6];B[c3]RE[]PB[]DT[]TI[]TY[]"),
    ],
)
def test_one_game_in_many_spellings(text: str) -> None:
    (record,) = read(text)
    assert record.moves == OPENING
    assert record.variant == TOURNAMENT
    assert record.evaluations == record.times_s == ()
    assert record.black == record.white == ""


@pytest.mark.parametrize("spelling", ["pass", "PASS", "PA", "pa", "--", "", "pass/1.5/2"])
def test_a_pass_is_told_in_many_ways_or_not_at_all(spelling: str) -> None:
    moves = Game.from_transcript("e6f6c4e7e8d8g6f8").moves
    told = "".join(f"{'BW'[ply % 2]}[{square_name(move, 8)}]" for ply, move in enumerate(moves))
    for black_passes in (f"B[{spelling}]", ""):
        (record,) = read(record_text(f"{told}{black_passes}W[g5/-3]"))
        assert record.moves == (*moves, 64, 38)
        assert record.evaluations[-1] == -3


def test_two_games_of_a_pair_are_two_records() -> None:
    first, second = record_text("B[f5]"), record_text("B[d3]")
    assert [record.moves for record in read(f"2 {first}{second}")] == [(37,), (19,)]


def test_latin_1_and_utf_8_may_stand_in_one_file() -> None:
    text = record_text("PB[Rémi]B[f5]")
    latin, utf = (record.black for record in read(text.encode("latin-1") + b"\n" + text.encode()))
    assert latin == utf == "Rémi"


def test_a_value_over_two_lines_is_one_text_and_a_break_in_a_tag_stays() -> None:
    (record,) = read(record_text("PB[Mr\r\nX]XX[a\nb]YY[c][d]"))
    assert record.black == "Mr X"
    assert record.tags == {"XX": "a\nb", "YY": "c\nd"}


# What the properties mean


@pytest.mark.parametrize(
    ("board", "rest", "variant"),
    [
        ("4 ---- -O*- -*O- ---- *", "TY[4]", Variant(4, scoring="tournament")),
        ("6 " + "-" * 14 + "O*----*O" + "-" * 14 + " *", "", Variant(6, scoring="tournament")),
        ("10 " + "-" * 44 + "O*" + "-" * 8 + "*O" + "-" * 44 + " *", "TY[10]", Variant(10, scoring="tournament")),
        ("4 ---- -OO- -**- ---- *", "", Variant(4, "parallel", scoring="tournament")),
        ("4 ---- -O*- -*O- ---- O", "", Variant(4, "-----OX--XO----- O", scoring="tournament")),
        ("4 *--- -O*- -*O- ---- *", "TY[4r5]", Variant(4, "X----OX--XO----- X", scoring="tournament")),
        ("4 ---- -O*- -*O- ---- *", "TY[4a]", Variant(4, goal="fewest", scoring="tournament")),
        ("4 ---- -O*- -*O- ---- *", "TY[s4ka]", Variant(4, goal="fewest", scoring="tournament")),
        ("4 ---- ---- ---- ---- *", "RU[start=free goal=fewest scoring=board]", Variant(4, "free", "fewest")),
        ("4 ---- -O*- -*O- ---- *", "RU[scoring=board]", Variant(4)),
        ("4 ---- -O*- -*O- ---- *", "RU[Japanese]", Variant(4, scoring="tournament")),
    ],
)
def test_board_type_and_rules_give_the_variant(board: str, rest: str, variant: Variant) -> None:
    (record,) = read(record_text(rest, board))
    assert record.variant == variant


@pytest.mark.parametrize(
    ("kind", "variant"),
    [
        ("", TOURNAMENT),
        ("TY[8]", TOURNAMENT),
        ("TY[s6]", Variant(6, scoring="tournament")),
        ("TY[10a]", Variant(10, goal="fewest", scoring="tournament")),
    ],
)
def test_without_a_board_the_type_gives_the_size(kind: str, variant: Variant) -> None:
    (record,) = read(f"(;GM[Othello]{kind};)")
    assert record.variant == variant
    assert read(written(ggf.write, record)) == [record]


@pytest.mark.parametrize("length", [100, 101])
def test_rules_are_read_up_to_a_length(length: int) -> None:
    rules = "scoring=board".ljust(length)
    assert (read(record_text(f"RU[{rules}]"))[0].variant == Variant()) == (length == 100)


@pytest.mark.parametrize("before", range(65_520, 65_537))
def test_a_record_that_begins_at_the_end_of_a_block_is_found(before: int) -> None:
    text = "x" * before + record_text("B[f5]").replace("(;", "(" + " " * 8 + ";")
    assert [record.moves for record in read(text)] == [(37,)]


def test_a_type_that_says_more_than_size_and_goal_stays_a_tag() -> None:
    assert [read(record_text(f"TY[{kind}]"))[0].tags for kind in ("8", "8a", "s8r20", "8banana!")] == [
        {},
        {},
        {"TY": "s8r20"},
        {"TY": "8banana!"},
    ]


@pytest.mark.parametrize(
    ("result", "score", "ending", "tags"),
    [
        ("+12.000", 12, "", {}),
        ("-64:r", -64, "resignation", {}),
        ("2:T", 2, "timeout", {}),
        (" 0 : s ", 0, "agreement", {}),
        (":t", None, "timeout", {}),
        ("?", None, "", {"RE": "?"}),
        ("+1.5", None, "", {"RE": "+1.5"}),
        ("nan", None, "", {"RE": "nan"}),
        ("1e999", None, "", {"RE": "1e999"}),
        ("9" * 5000, None, "", {"RE": "9" * 5000}),
        ("+3:x", None, "", {"RE": "+3:x"}),
    ],
)
def test_a_result_is_black_s_score_and_how_the_game_ended(
    result: str, score: int | None, ending: str, tags: dict[str, str]
) -> None:
    (record,) = read(record_text(f"RE[{result}]"))
    assert (record.black_score, record.ending, record.tags) == (score, ending, tags)


@pytest.mark.parametrize(
    ("text", "clock"),
    [
        ("05:00//02:00", Clock(300, 0, 120)),
        ("1:00:00/00:10/02:00", Clock(3600, 10, 120)),
        ("15:00", Clock(900)),
        ("30", Clock(30)),
        ("0.5/0.25", Clock(0.5, 0.25)),
        ("15:00,N40//02:00", None),
        ("1/2/3/4", None),
        ("-", None),
        ("inf", None),
        (":".join(["9"] * 1000), None),
    ],
)
def test_a_clock_is_main_time_increment_and_extension(text: str, clock: Clock | None) -> None:
    (record,) = read(record_text(f"TI[{text}]"))
    assert record.black_clock == record.white_clock == clock
    assert record.tags == ({} if clock else {"TI": text})


def test_each_side_may_have_a_clock_of_its_own() -> None:
    (record,) = read(record_text("TB[1:00]TI[2:00]"))
    assert (record.black_clock, record.white_clock) == (Clock(60), Clock(120))


def test_the_writing_is_exact() -> None:
    record = GameRecord(
        replace(TOURNAMENT, goal="fewest"),
        OPENING,
        black="[A] \\ (;B",
        white="Zoë\n",
        black_score=-3,
        ending="timeout",
        evaluations=(0.5, None, -2.0),
        times_s=(None, 1.25, 10.0),
        black_rating=2200.0,
        black_clock=Clock(3600, 10),
        date="2003",
        wthor=WthorFacts(1, 2, 3, 4, 5),
        tags={"PC": "here", "PB": "x y", "place": "Köln"},
    )
    assert written(ggf.write, record).decode() == (
        "(;GM[Othello]PC[here]TAG[PB:x%20y][place:K%C3%B6ln]DT[2003]PB[[A\\] \\\\ (\\;B]PW[Zoë ]TEXT[PW:Zo%C3%AB%0A]"
        f"RB[2200]TB[01:00:00/00:10/00:00]TY[8a]RE[-3:t]WTHOR[1 2 3 4 5]BO[{BOARD}]"
        "B[f5/0.5]W[d6//1.25]B[c3/-2/10];)\n"
    )


@settings(max_examples=40)
@given(st.lists(game_records(), max_size=3))
@example([GameRecord(Variant(4, "-" * 16 + " X"), ())])
def test_records_come_back_as_they_were(records: list[GameRecord]) -> None:
    assert read(written(ggf.write, *records)) == records


@given(texts)
def test_any_text_stands_in_any_property(text: str) -> None:
    names = ("PB", "(;GM[", "XX", "TAG", "TEXT", text)
    record = GameRecord(TOURNAMENT, OPENING, black=text, event=text, tags=dict.fromkeys(names, text))
    assert read(written(ggf.write, record)) == [record]


@pytest.mark.parametrize(
    "changes",
    [
        {"black_rating": float("nan")},
        {"black_rating": 10**5000},
        {"black_rating": 2**53 + 1},
        {"times_s": (float("inf"), 1.0, 1.0)},
        {"black": "\ud800"},
    ],
)
def test_what_no_file_can_hold_is_not_written(changes: dict[str, object]) -> None:
    record = replace(GameRecord(TOURNAMENT, OPENING), **changes)  # type: ignore[arg-type]
    with pytest.raises(RecordError, match=r"number that can be written|no character that a file can hold"):
        written(ggf.write, record)


# Faults


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("(;GM[Chess]B[e4];)", r"the game is 'Chess'; GGF of Othello says GM\[Othello\]"),
        ("(;PB[x];)", "the game is ''"),
        ("(;GM[Othello]TY[8r20]B[f5];)", r"the record has no board; BO\[8 … \*\]"),
        ("(;GM[Othello]TY[88]B[f5];)", r"the record has no board; BO\[8 … \*\]"),
        (record_text("", BOARD.replace("- *", "? *")), r"BO: the board lacks the squares that are '\?'"),
        (record_text("", "12 - *"), "BO begins with the number of columns, 4, 6, 8, 10, not with '12'"),
        (record_text("", ""), "BO begins with the number of columns"),
        (record_text("", "8 --- *"), "BO: .* found 3 squares, expected 64"),
        (record_text("", BOARD[:-1] + "?"), "BO: the side to move is X or O"),
        (record_text("", BOARD.replace("O*", "Q*")), "BO: 'Q' at d4"),
        (record_text("B[f5]W[a1]"), "move 2: a1 is not legal for white"),
        (record_text("B[f5]W[i9]"), "'i9' is not a square of 8×8; squares are a1 to h8, a pass is 'pass'"),
        (record_text("B[f5]B[d6]"), r"move 2, B\[d6\], is out of turn; it is white's"),
        (record_text("W[f5]"), r"move 1, W\[f5\], is out of turn; it is black's"),
        (record_text("B[f5/x]"), "'x' is not a number; a move is square/evaluation/seconds"),
        (record_text("B[f5//nan]"), "'nan' is not a number"),
        (record_text("B[f5/1/2/3]"), "'2/3' is not a number"),
        (record_text(f"B[f5/{'1' * 5000}]"), "is not a number"),
        (record_text("B[f5]?W[d6]"), r"'\?W\[d6\];' is not a property; one looks like NAME\[value\]"),
        (record_text("[f5]").replace("GM[Othello]", ""), r"'\[8 |is not a property|the game is ''"),
        (record_text("B[f5]")[:-1], "the record is not closed"),
        (record_text("PB[x"), "the record is not closed"),
        ("no record at all", "the file has no record in brackets"),
        ("(;" * (MAX_DEPTH + 1), f"the record has variations more than {MAX_DEPTH} deep"),
        ("(;GM[Othello]C[" + "x" * MAX_RECORD_BYTES + "];)", f"the record is longer than {MAX_RECORD_BYTES} bytes"),
    ],
)
def test_a_fault_says_where_what_and_what_would_be_right(text: str, sentence: str) -> None:
    records, faults = read_with_faults(text)
    assert records == []
    assert len(faults) == 1
    with pytest.raises(RecordError, match=f"^line 1: .*{sentence}"):
        read(text)
    assert len(faults[0]) < 400


@pytest.mark.parametrize(
    "broken",
    [
        record_text("B[a1]"),
        record_text("B[f5]")[:-2],
        record_text("PB[x"),
        record_text("B[f5")[:-2],
        record_text("(B[f5]"),
        "(;GM[",
        "(;GM[Othello](((((",
        record_text("C[" + "y" * (MAX_RECORD_BYTES + 100)),
        "(;PB[Othello",
    ],
)
def test_a_fault_costs_one_record_alone(broken: str) -> None:
    good = record_text("B[f5]\n")
    records, faults = read_with_faults(f"{good}\n\n{broken}\n{good}")
    assert [record.moves for record in records] == [(37,), (37,)]
    assert len(faults) == 1
    assert faults[0].startswith("line 4: ")


def test_records_come_before_the_fault_that_follows_them() -> None:
    records = ggf.read(io.BytesIO((record_text("B[f5]") + record_text("B[a1]")).encode()))
    assert next(records).moves == (37,)
    with pytest.raises(RecordError, match="a1 is not legal"):
        next(records)


@given(st.binary(max_size=200))
def test_any_bytes_are_records_or_faults(data: bytes) -> None:
    read_with_faults(data)


@settings(max_examples=100)
@given(st.data())
def test_damaged_files_are_records_or_faults_and_what_is_read_can_be_written(drawn: st.DataObject) -> None:
    good = record_text("PB[a]RE[+2:r]TI[05:00//02:00]B[f5/1.5/2]W[d6//3]B[c3]") + "\n"
    records, _ = read_with_faults(drawn.draw(damaged(3 * good.encode())))
    assert read(written(ggf.write, *records)) == records


@pytest.mark.parametrize("unit", ["(", ")", "[", "]", ";", "\\", "\n", "a", "(;", "(;A[", "(;A[]", "(;A[]("])
def test_a_file_that_never_ends_its_record_takes_bounded_memory_and_linear_time(unit: str) -> None:
    tracemalloc.start()
    try:
        began = time.process_time()
        faults = 0
        file = io.BufferedReader(EndlessFile(unit.encode(), 8 * MAX_RECORD_BYTES))

        def count(fault: RecordError) -> None:
            nonlocal faults
            faults += 1

        assert list(ggf.read(file, count)) == []
        assert faults >= (unit != "\n")
        assert tracemalloc.get_traced_memory()[1] < 8 * MAX_RECORD_BYTES
        assert time.process_time() - began < 20
    finally:
        tracemalloc.stop()
