"""Records of games: what they hold, and how the moves that a file tells are checked and completed."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reversi_env import Game, Position, Variant
from reversi_env.records.dates import parse_date
from reversi_env.records.record import (
    GameRecord,
    ProblemRecord,
    RecordError,
    complete_moves,
    place_moves,
    report,
    shown,
)
from tests.reversi_env.record_strategies import games
from tests.reversi_env.strategies import variants

Data = Callable[[str], Path]

WIPE_OUT = "e6f4e3f6g5d6e7f5c5"  # stress_games.tsv, wipeout9_a


@settings(max_examples=50)
@given(variants().flatmap(lambda variant: st.tuples(st.just(variant), games(variant))), st.data())
def test_passes_left_out_are_put_in_and_each_move_told_keeps_its_ply(
    game: tuple[Variant, tuple[int, ...]], data: st.DataObject
) -> None:
    variant, moves = game
    told = [move for move in moves if move != variant.pass_move or data.draw(st.booleans())]
    completed, plies = place_moves(variant, told)
    assert completed == Game.from_moves(told, variant).moves == complete_moves(variant, told)
    assert [completed[ply] for ply in plies] == told
    assert list(plies) == sorted(set(plies))
    missing = set(range(len(completed))) - set(plies)
    assert all(completed[ply] == variant.pass_move for ply in missing)


def test_a_game_of_15_passes_is_completed(data: Data) -> None:
    with data("stress_games.tsv").open(encoding="utf-8", newline="") as file:
        transcripts = {row["name"]: row["transcript"] for row in csv.DictReader(file, delimiter="\t")}
    game = Game.from_transcript(transcripts["wthor_passes15"])
    moves = complete_moves(Variant(), [move for move in game.moves if move != 64])
    assert moves == game.moves
    assert moves.count(64) == 15


def test_passes_told_after_the_end_are_dropped() -> None:
    moves = Game.from_transcript(WIPE_OUT).moves
    assert complete_moves(Variant(), [*moves, 64, 64]) == moves


@pytest.mark.parametrize(
    ("moves", "sentence"),
    [
        ([37, 43, 0], "move 3: a1 is not legal for black in .*; legal: "),
        ([64], "move 1: pass is not legal for black"),
        ([*Game.from_transcript(WIPE_OUT).moves, 64, 0], "move 10: pass cannot be played: the game is over"),
        ([37] * 1000, "move 2: f5 is not legal"),
    ],
)
def test_the_first_move_that_is_not_legal_is_named(moves: list[int], sentence: str) -> None:
    with pytest.raises(RecordError, match=f"^{sentence}"):
        complete_moves(Variant(), moves)


def test_a_record_has_one_evaluation_and_one_time_a_move_or_none_at_all() -> None:
    record = GameRecord(Variant(), (37, 43), evaluations=(None, 1.5), times_s=(None, None))
    assert record.evaluations == (None, 1.5)
    assert record.times_s == ()
    with pytest.raises(ValueError, match="times_s has 1 entries for 2 moves"):
        GameRecord(Variant(), (37, 43), times_s=(1.0,))


def test_an_ending_that_is_none_is_refused_with_those_that_are() -> None:
    with pytest.raises(ValueError, match="by resignation, timeout, agreement, not 'tea'"):
        GameRecord(Variant(), (), ending="tea")


def test_a_record_plays_its_game_anew() -> None:
    record = GameRecord(Variant(scoring="tournament"), Game.from_transcript(WIPE_OUT).moves)
    assert record.is_over
    assert record.game.position.black_score == 64
    assert not GameRecord(Variant(), (37,)).is_over


def test_records_are_keys_though_their_tags_are_not() -> None:
    record = GameRecord(Variant(), (37,), tags={"PC": "here"})
    assert {record: 1}[GameRecord(Variant(), (37,), tags={"PC": "here"})] == 1
    problem = ProblemRecord(Position("othello"), {37: 2.0})
    assert hash(problem) == hash(ProblemRecord(Position("othello"), {37: 2.0}))


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2003", "2003"),
        ("2003-12", "2003-12"),
        (" 2003-12-15 ", "2003-12-15"),
        ("2003-12-15,16", "2003-12-15"),
        ("2003-12-15T12:33", "2003-12-15"),
        ("2003.12.15_12:33:18.MST", "2003-12-15"),
        ("2000-4-16 11:13 EST", "2000-04-16"),
        ("945277754", "1999-12-15"),
        ("9999999999", "2286-11-20"),
        ("2003-13-15", "2003"),
        ("800", "0800"),
        ("15.12.2003", None),
        ("December", None),
        ("", None),
        ("123456", None),
        ("9" * 5000, None),
    ],
)
def test_a_date_is_read_in_many_spellings(text: str, date: str | None) -> None:
    found = parse_date(text)
    assert (found and str(found)) == date


def test_a_fault_is_raised_where_nobody_takes_it() -> None:
    fault = RecordError("no record").at("line 3")
    faults: list[RecordError] = []
    report(fault, faults.append)
    assert faults == [fault]
    with pytest.raises(RecordError, match=r"^line 3: no record$"):
        report(fault, None)


def test_long_text_is_shown_by_its_beginning() -> None:
    assert shown("f5") == "'f5'"
    assert shown("x" * 10**6) == repr("x" * 40 + "…")
