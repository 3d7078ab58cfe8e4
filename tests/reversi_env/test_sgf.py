"""SGF: the syntax of the standard, what is forgiven, every fault, and records that come back as they were."""

import io
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reversi_env import Game, Variant
from reversi_env.notation import square_name
from reversi_env.records import ggf, sgf, wthor
from reversi_env.records.properties import MAX_DEPTH, MAX_RECORD_BYTES
from reversi_env.records.record import Clock, GameRecord, RecordError, WthorFacts
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
OPENING = Game.from_transcript("f5d6c3").moves


read = partial(read_from, sgf.read)
read_with_faults = partial(read_with_faults_from, sgf.read)


def root(properties: str) -> GameRecord:
    """Returns what is read of a game with these properties in its root, and no move."""
    (record,) = read(f"(;GM[2]{properties})")
    return record


# The syntax


@pytest.mark.parametrize(
    "text",
    [
        "(;FF[4]GM[2]SZ[8];B[f5];W[d6];B[c3])",
        "(;GM[2];B[F5];W[D6];B[C3])",
        "(;gm[2];b[f5];w[d6];b[c3])",
        "(;GaMe[2]SiZe[8];Black[f5];White[d6];Black[c3])",
        "(;GM[2]B[f5];W[d6];B[c3])",
        "\ufeffsome words\r\n( ;\r\nGM [2]\r\n\r\n;B\t[f5]\r\n;W[ d6 ]\r\n;B[c3])\r\nand more",
        "(;GM[2];;B[f5];;C[well];W[d6];B[c3])",
        "(;GM[2];B[f5](;W[d6](;B[c3])(;B[d3];W[c3])))",
        "(;GM[2];B[f5](;W[d6];B[c3])(;W[f4](;B[e3])(;B[d3]))(;W[f6]))",
        "(;GM[2](;B[f5];W[d6];B[c3])(;B[d3];W[e3]C[:-) (;W\\] ]))",
        "(;GM[2]C[(;);((\\]];B[f5]BL[299.5]OB[1];W[d6]C[a[b\\]c]TE[1];B[c3]N[;B\\[a1\\]])",
    ],
)
def test_one_main_line_in_many_spellings(text: str) -> None:
    (record,) = read(text)
    assert record.moves == OPENING
    assert record.variant == TOURNAMENT
    assert record.evaluations == record.times_s == ()


def test_a_collection_is_many_games() -> None:
    text = "(;GM[2];B[f5](;W[d6])(;W[f4]))\n(;GM[2];B[d3])(;GM[2])"
    assert [len(record.moves) for record in read(text)] == [2, 1, 0]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (r"a\]b", "a]b"),
        (r"a\\b", r"a\b"),
        (r"a\b\:c", "ab:c"),
        ("[(;B[f5\\]", "[(;B[f5]"),
        ("soft\\\nbreak", "softbreak"),
        ("soft\\\r\nbreak", "softbreak"),
        ("hard\nbreak\tand tab", "hard break and tab"),
        ("hard\r\nbreak", "hard break"),
        ("\\\\\nhard", "\\ hard"),
    ],
)
def test_a_backslash_takes_the_meaning_from_what_follows_it(value: str, text: str) -> None:
    assert root(f"PB[{value}]").black == text


def test_a_comment_keeps_its_line_breaks() -> None:
    assert root("C[one\ntwo\\\nthree]").tags == {"C": "one\ntwothree"}


@pytest.mark.parametrize("spelling", ["pa", "PA", "pass", "--", ""])
def test_a_pass_is_told_in_many_ways_or_not_at_all(spelling: str) -> None:
    moves = Game.from_transcript("e6f6c4e7e8d8g6f8").moves
    told = "".join(f";{'BW'[ply % 2]}[{square_name(move, 8)}]" for ply, move in enumerate(moves))
    for black_passes in (f";B[{spelling}]", ""):
        (record,) = read(f"(;GM[2]{told}{black_passes};W[g5]V[3]TAKEN[7])")
        assert record.moves == (*moves, 64, 38)
        assert record.evaluations == (*[None] * 9, -3)
        assert record.times_s == (*[None] * 9, 7)


def test_latin_1_and_utf_8_may_stand_in_one_file() -> None:
    text = "(;GM[2]PB[Rémi])"
    assert [record.black for record in read(text.encode("latin-1") + text.encode())] == ["Rémi", "Rémi"]


@pytest.mark.parametrize("charset", ["koi8-r", "CP1251", "utf-8", "ISO-8859-5"])
def test_text_is_of_the_charset_that_the_record_states(charset: str) -> None:
    text = f"(;GM[2]CA[{charset}]PB[Борис]C[\\]]) (;GM[2]PW[é])"
    first, second = read(text.replace("é", "e").encode(charset))
    assert (first.black, first.tags, second.white) == ("Борис", {"C": "]"}, "e")


@pytest.mark.parametrize("charset", ["hex", "punycode", "utf-7", "utf-16", "unicode_escape", "nonsense", "ascii"])
def test_a_charset_that_is_none_or_not_the_text_s_is_not_believed(charset: str) -> None:
    text = f"(;GM[2]CA[{charset}]PB[Rémi +AEE-];B[f5])"
    for data in (text.encode(), text.encode("latin-1")):
        (record,) = read(data)
        assert (record.black, record.moves) == ("Rémi +AEE-", (37,))


SOUND_WITH_HEAD = r"(;GM[2]C[see (;GM[2\];B[a1\]) there];B[f5])"


def test_a_text_that_looks_like_a_record_is_text() -> None:
    long = "(;GM[2]C[a (;GM[2\\] b\n" + "x" * 10**5 + "];B[f5])"
    late = "(;GM[2]C[" + "x" * (2**16 - 14) + "(;GM[2\\]];B[f5])"  # at the end of a block
    for text in (SOUND_WITH_HEAD, f"{SOUND_WITH_HEAD}(;GM[2];B[d3])", long, late):
        assert read(text)[0].moves == (37,)
    assert [len(record.moves) for record in read(SOUND_WITH_HEAD * 50)] == [1] * 50


def test_an_unclosed_record_costs_itself_alone_also_before_texts_that_look_like_records() -> None:
    records, faults = read_with_faults(f"(;GM[2]PB[x)\n(;GM[2];B[d3])\n{SOUND_WITH_HEAD}")
    assert [record.moves for record in records] == [(19,), (37,)]
    assert [fault.partition(":")[0] for fault in faults] == ["line 1"]


# What the properties mean


@pytest.mark.parametrize(
    ("properties", "variant"),
    [
        ("SZ[4]", Variant(4, scoring="tournament")),
        ("SZ[10:10]", Variant(10, scoring="tournament")),
        ("SZ[06]", Variant(6, scoring="tournament")),
        ("SZ[6x6]", Variant(6, scoring="tournament")),
        ("SZ[4]AB[c2][b3]AW[b2][c3]", Variant(4, scoring="tournament")),
        ("SZ[4]AW[B2][C2]AB[B3:C3]PL[Black]", Variant(4, "parallel", scoring="tournament")),
        ("SZ[4]AB[c2][b3]AW[b2][c3]PL[W]", Variant(4, "-----OX--XO----- O", scoring="tournament")),
        ("SZ[4]AB[a1:d4]AE[b2:c3]AW[b2];PL[2]", Variant(4, "XXXXXO-XX--XXXXX O", scoring="tournament")),
        ("SZ[4]AW[a1]AB[b1];W[c1]", Variant(4, "OX" + "-" * 14 + " O", scoring="tournament")),
        ("SZ[4]AE[a1]PL[B]", Variant(4, "-" * 16 + " X", scoring="tournament")),
        ("SZ[4]RU[start=free goal=fewest scoring=board]", Variant(4, "free", "fewest")),
        ("SZ[4]RU[start=given]AB[c2][b3]AW[b2][c3]", Variant(4, "-----OX--XO----- X", scoring="tournament")),
        ("SZ[4]RU[goal=least]", Variant(4, scoring="tournament")),
        ("SZ[4]RU[Japanese]", Variant(4, scoring="tournament")),
    ],
)
def test_size_setup_and_rules_give_the_variant(properties: str, variant: Variant) -> None:
    assert root(properties).variant == variant


def test_rules_that_are_none_of_ours_stay_a_tag() -> None:
    assert root("RU[Japanese]").tags == {"RU": "Japanese"}
    assert root("RU[scoring=board]").tags == {}


@pytest.mark.parametrize(
    ("result", "score", "ending", "tags"),
    [
        ("B+12", 12, "", {}),
        ("w+3.0", -3, "", {}),
        ("0", 0, "", {}),
        ("0.0", 0, "", {}),
        ("Draw", 0, "", {}),
        ("B+R", None, "resignation", {"RE": "B+R"}),
        ("W+Time", None, "timeout", {"RE": "W+Time"}),
        ("W+F", None, "", {"RE": "W+F"}),
        ("B+", None, "", {"RE": "B+"}),
        ("Void", None, "", {"RE": "Void"}),
        ("?", None, "", {"RE": "?"}),
        ("B+1.5", None, "", {"RE": "B+1.5"}),
        ("B+" + "9" * 5000, None, "", {"RE": "B+" + "9" * 5000}),
        ("B+12]RESULT[+12:s", 12, "agreement", {}),
        ("B+12]RESULT[nonsense", 12, "", {"RESULT": "nonsense"}),
    ],
)
def test_a_result_is_black_s_score_and_how_the_game_ended(
    result: str, score: int | None, ending: str, tags: dict[str, str]
) -> None:
    record = root(f"RE[{result}]")
    assert (record.black_score, record.ending, record.tags) == (score, ending, tags)
    assert read(written(sgf.write, record)) == [record]


def test_a_winner_alone_is_written_as_the_standard_has_it() -> None:
    assert b"RE[W+R]" in written(sgf.write, root("RE[W+R]"))


def test_v_is_from_black_and_an_evaluation_from_the_mover() -> None:
    (record,) = read("(;GM[2];B[f5]V[2];V[3.5]W[d6];B[c3]TAKEN[1.25]V[soon];W[d3])")
    assert record.evaluations == (2, -3.5, None, None)
    assert record.times_s == (None, None, 1.25, None)


def test_of_several_moves_in_a_node_the_last_has_its_evaluation_and_time() -> None:
    (record,) = read("(;GM[2];B[f5]W[d6]V[3]TAKEN[2];B[c3]V[4])")
    assert record.evaluations == (None, -3, 4)
    assert record.times_s == (None, 2, None)


@pytest.mark.parametrize(
    ("properties", "black", "white", "tags"),
    [
        ("TM[1800]", Clock(1800), Clock(1800), {}),
        ("TM[30 min]", None, None, {"TM": "30 min"}),
        ("TM[300]CLOCKS[5:00/10 -]", Clock(300, 10), None, {}),
        ("TM[300]CLOCKS[x]", Clock(300), Clock(300), {"CLOCKS": "x"}),
        ("TM[300]OT[2x30]", Clock(300), Clock(300), {"OT": "2x30"}),
    ],
)
def test_a_clock_is_main_time_or_our_own_property(
    properties: str, black: Clock | None, white: Clock | None, tags: dict[str, str]
) -> None:
    record = root(properties)
    assert (record.black_clock, record.white_clock, record.tags) == (black, white, tags)


def test_ranks_are_ratings_where_they_are_numbers() -> None:
    record = root("BR[1720.5]WR[3 dan]")
    assert (record.black_rating, record.white_rating, record.tags) == (1720.5, None, {"WR": "3 dan"})


def test_the_writing_is_exact() -> None:
    record = GameRecord(
        Variant(4, "-----OO--XX----- O", scoring="board"),
        (),
        black="[A] \\ (;B",
        white="Zoë\n",
        black_score=-3,
        ending="timeout",
        black_rating=2200.0,
        black_clock=Clock(3600, 10),
        date="2003",
        event="Open",
        wthor=WthorFacts(1, 2, 3, 4, 5),
        tags={"GC": "two\nlines", "PB": "x y"},
    )
    assert written(sgf.write, record).decode() == (
        "(;FF[4]GM[2]CA[UTF-8]SZ[4]GC[two\nlines]TAG[PB:x%20y]DT[2003]EV[Open]PB[[A\\] \\\\ (\\;B]PW[Zoë ]"
        "TEXT[PW:Zo%C3%AB%0A]BR[2200]CLOCKS[01:00:00/00:10/00:00 -]RE[W+3]RESULT[-3:t]WTHOR[1 2 3 4 5]"
        "RU[start=given goal=most scoring=board]AB[b3][c3]AW[b2][c2]PL[W])\n"
    )
    moves = replace(
        GameRecord(TOURNAMENT, OPENING, evaluations=(0.5, None, -2.0), times_s=(None, 1.25, 10.0)),
        black_clock=Clock(60),
        white_clock=Clock(60),
    )
    assert written(sgf.write, moves).decode() == (
        "(;FF[4]GM[2]CA[UTF-8]SZ[8]TM[60];B[f5]V[0.5];W[d6]TAKEN[1.25];B[c3]V[-2]TAKEN[10])\n"
    )


@settings(max_examples=40)
@given(st.lists(game_records(), max_size=3))
@example([GameRecord(Variant(4, "-" * 16 + " X"), ())])
def test_records_come_back_as_they_were(records: list[GameRecord]) -> None:
    assert read(written(sgf.write, *records)) == records


@settings(max_examples=30)
@given(game_records())
def test_records_survive_both_formats(record: GameRecord) -> None:
    (from_ggf,) = ggf.read(io.BytesIO(written(ggf.write, record)))
    (from_sgf,) = sgf.read(io.BytesIO(written(sgf.write, from_ggf)))
    assert from_sgf == record


@given(texts)
def test_any_text_stands_in_any_property(text: str) -> None:
    names = ("PB", "(;GM[", "XX", "TAG", "TEXT", text)
    record = GameRecord(TOURNAMENT, OPENING, black=text, event=text, tags=dict.fromkeys(names, text))
    assert read(written(sgf.write, record)) == [record]


def test_games_of_wthor_survive_ggf_and_sgf_byte_for_byte(data: Data) -> None:
    games = list(wthor.read(io.BytesIO(data("wthor/WTH_1985.wtb").read_bytes())))
    assert len(games) > 500
    from_ggf = ggf.read(io.BytesIO(written(ggf.write, *games)))
    from_sgf = read(written(sgf.write, *from_ggf))
    assert from_sgf == games


@pytest.mark.parametrize(
    "changes", [{"black_rating": float("nan")}, {"times_s": (float("inf"), 1.0, 1.0)}, {"black": "\ud800"}]
)
def test_what_no_file_can_hold_is_not_written(changes: dict[str, object]) -> None:
    record = replace(GameRecord(TOURNAMENT, OPENING), **changes)  # type: ignore[arg-type]
    with pytest.raises(RecordError, match=r"number that can be written|no character that a file can hold"):
        written(sgf.write, record)


# Faults


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("(;FF[4]GM[1];B[aa])", r"the game is '1'; SGF of Othello says GM\[2\]"),
        ("(;FF[4];B[f5])", "the game is ''"),
        ("(;GM[2]SZ[19])", "SZ is the number of columns, 4, 6, 8, 10, not '19'"),
        ("(;GM[2]SZ[" + "8" * 5000 + "])", "SZ is the number of columns"),
        ("(;GM[2]SZ[8:10])", "SZ is the number of columns"),
        ("(;GM[2]AB[k5])", "'k5' is not a square of 8×8"),
        ("(;GM[2]AB[])", "'' is neither a square nor a rectangle like a1:c2"),
        ("(;GM[2]AB[a1:b2:c3])", "'b2:c3' is not a square|is neither a square nor a rectangle"),
        ("(;GM[2]PL[green])", "PL is the side to move, B or W, not 'green'"),
        ("(;GM[2];B[f5];AB[a1])", r"AB\[a1\] after a move; a board is set up before the first"),
        ("(;GM[2];B[f5];W[a1])", "move 2: a1 is not legal for white"),
        ("(;GM[2];B[f5];W[zz])", "'zz' is not a square of 8×8; squares are a1 to h8, a pass is 'pass'"),
        ("(;GM[2];B[f5];B[d6])", r"move 2, B\[d6\], is out of turn; it is white's"),
        ("(;GM[2];W[d3])", r"move 1, W\[d3\], is out of turn; it is black's"),
        ("(;GM[2];B[f5][d6])", r"move 2, B\[d6\], is out of turn"),
        ("(;GM[2];B[f5]?)", r"'\?' is not a property; one looks like NAME\[value\]"),
        ("(;GM[2];B)", "'B' is not a property"),
        ("(;[2])", r"'\[2\]' is not a property"),
        ("(;GM[2]", "the record is not closed"),
        ("(;GM[2]C[\\])", "the record is not closed"),
        ("(;GM[2](;B[f5])", "the record is not closed"),
        ("(;GM[2]" + "(;B[f5]" * (MAX_DEPTH + 1), f"the record has variations more than {MAX_DEPTH} deep"),
        ("(;GM[2]C[" + "x" * MAX_RECORD_BYTES + "])", f"the record is longer than {MAX_RECORD_BYTES} bytes"),
        ("Dear Sir,", "the file has no record in brackets"),
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
    "broken", ["(;GM[2];B[a1])", "(;GM[2]", "(;GM[2]PB[x)", "(;FF[4](;B[f5)", "(;GM[1];B[aa](;W[bb]))"]
)
def test_a_fault_costs_one_record_alone(broken: str) -> None:
    records, faults = read_with_faults(f"(;GM[2];B[f5])\n\n\n{broken}\n(;FF[4]GM[2];B[d3])\n")
    assert [record.moves for record in records] == [(37,), (19,)]
    assert len(faults) == 1
    assert faults[0].startswith("line 4: ")


@given(st.binary(max_size=200))
def test_any_bytes_are_records_or_faults(data: bytes) -> None:
    read_with_faults(data)


@settings(max_examples=100)
@given(st.data())
def test_damaged_files_are_records_or_faults_and_what_is_read_can_be_written(drawn: st.DataObject) -> None:
    good = "(;GM[2]PB[a\\]]RE[B+2]AB[d5][e4]AW[d4:d4][e5]C[x];B[f5]V[2](;W[d6]TAKEN[3];B[c3])(;W[f4]))\n"
    records, _ = read_with_faults(drawn.draw(damaged(3 * good.encode())))
    assert read(written(sgf.write, *records)) == records


@pytest.mark.parametrize(
    "unit",
    ["(;GM[2](", r"(;GM[2](;GM[2\]", "(;GM[]", "(;GM[2])", "(;GM[2]AB[a1:h8])", "(;GM[2]C[\\", "(;B[f5])"],
)
def test_many_small_faults_take_linear_time(unit: str) -> None:
    began = time.process_time()
    faults = 0

    def count(fault: RecordError) -> None:
        nonlocal faults
        faults += 1

    records = sum(1 for _ in sgf.read(io.BufferedReader(EndlessFile(unit.encode(), 100_000)), count))
    assert records + faults > 5_000
    assert time.process_time() - began < 20


@pytest.mark.parametrize("unit", ["[]", "[a]", "XX[y]", "AB[a1]", ";B[f5]", ";V[1]", "[%00:%00]", "(;N[])", "[\\\\]"])
def test_a_record_of_many_values_takes_linear_time(unit: str) -> None:
    began = time.process_time()
    read_with_faults(f"(;GM[2]TAG[a:b]{unit * (500_000 // len(unit))})")
    assert time.process_time() - began < 10
