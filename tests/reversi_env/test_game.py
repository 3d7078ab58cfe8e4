"""Games: their history, the refusal of what is not legal, and the games that break weak rule code."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reversi_env import Game, IllegalMoveError, Position, Variant
from tests import oracle
from tests.reversi_env.strategies import played_positions

Data = Callable[[str], Path]

PASS = 64


@pytest.fixture(scope="module")
def stress_games(data: Data) -> dict[str, Game]:
    with data("stress_games.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert len(rows) == 5
    return {row["name"]: Game.from_transcript(row["transcript"]) for row in rows}


def test_stress_games_agree_with_oracle_ply_by_ply(stress_games: dict[str, Game]) -> None:
    for game in stress_games.values():
        board, side = oracle.start_board(8, "diagonal"), oracle.BLACK
        for position, move in zip(game.positions, game.moves, strict=False):
            assert (list(position.board), position.side) == (board, side)
            assert not position.is_over
            if move == PASS:
                assert oracle.must_pass(board, side)
            else:
                board = oracle.play(board, side, move)
            side = oracle.other(side)
        assert list(game.position.board) == board
        assert game.is_over
        assert oracle.is_over(board)


def test_a_game_can_end_by_a_wipe_out_on_ply_9(stress_games: dict[str, Game]) -> None:
    game = stress_games["wipeout9_a"]
    assert len(game.moves) == 9
    assert (game.position.num_black, game.position.num_white, game.position.num_empties) == (13, 0, 51)
    assert game.position.black_score == 13
    tournament = Game.from_moves(game.moves, Variant(scoring="tournament"))
    assert tournament.position.black_score == 64


def test_a_game_can_end_on_ply_11_with_both_colors_alive(stress_games: dict[str, Game]) -> None:
    game = stress_games["nonwipeout_short11"]
    assert len(game.moves) == 11
    assert (game.position.num_black, game.position.num_white) == (14, 1)
    assert game.position.black_score == 13


def test_one_side_can_pass_eleven_times_running(stress_games: dict[str, Game]) -> None:
    moves = stress_games["run11"].moves
    longest = max(
        sum(1 for _ in run)
        for first in (0, 1)
        for run in ("".join("p" if move == PASS else "-" for move in moves[first::2]).split("-"))
    )
    assert longest == 11


def test_a_position_can_have_31_legal_moves(stress_games: dict[str, Game]) -> None:
    positions = stress_games["mob31"].positions
    assert len(positions[28].legal_moves) == 31
    assert max(len(position.legal_moves) for position in positions) == 31


def test_a_real_game_can_have_15_passes(stress_games: dict[str, Game]) -> None:
    assert stress_games["wthor_passes15"].moves.count(PASS) == 15


def test_passes_may_be_written_or_left_out(stress_games: dict[str, Game]) -> None:
    for game in stress_games.values():
        assert Game.from_moves(game.moves).positions == game.positions
        assert Game.from_moves(move for move in game.moves if move != PASS).positions == game.positions
        written = " ".join(game.start.move_name(move) for move in game.moves)
        assert Game.from_transcript(written).positions == game.positions


# History


@given(played_positions(), st.integers(0, 2**32))
def test_undo_leads_back_through_every_position(start: Position, seed: int) -> None:
    game = Game(start)
    seen = [game.position]
    while not game.is_over:
        legal = game.position.legal_moves
        seen.append(game.play(legal[seed % len(legal)]))
        seed = seed * 6364136223846793005 + 1442695040888963407 & 2**63 - 1
    assert game.positions == tuple(seen)
    assert game.start == start
    moves = list(game.moves)
    while game.moves:
        assert game.undo() == moves.pop()
        assert game.positions == tuple(seen[: len(moves) + 1])
    assert game.position == start
    with pytest.raises(ValueError, match="no move to take back"):
        game.undo()


def test_moves_are_numbers_or_text() -> None:
    game = Game()
    game.play("F5")
    game.play(45)
    game.play(" e6 ")
    assert game.moves == (37, 45, 44)
    assert game.transcript == "f5f6e6"


def test_a_refused_move_changes_nothing() -> None:
    game = Game.from_transcript("f5")
    before = game.positions
    for move in (0, 37, PASS, -1, 65, "a1", "pass"):
        with pytest.raises(IllegalMoveError):
            game.play(move)
    for text in ("z9", "", "5f"):
        with pytest.raises(ValueError, match="is not a square of 8×8"):
            game.play(text)
    assert game.positions == before
    assert game.moves == (37,)


def test_a_pass_must_be_played_where_it_is_due() -> None:
    game = Game(Position.from_text("OX-- X--- ---- ---- X"))
    with pytest.raises(IllegalMoveError, match=r"c1 is not legal for black in OX--X-{11} X; legal: pass"):
        game.play("c1")
    game.play("pass")
    game.play("c1")
    assert game.transcript == "c1"
    assert game.moves == (16, 2)


def test_games_begin_from_variants_names_and_positions() -> None:
    assert Game("othello-6x6").position == Position("othello-6x6")
    assert Game(Variant(start="free")).position == Position("reversi-1883")
    white_first = Position.from_text("---- -OX- -XO- ---- O")
    assert Game.from_transcript("c1", white_first).start == white_first


def test_the_number_of_an_illegal_move_counts_those_of_the_transcript() -> None:
    with pytest.raises(IllegalMoveError, match="move 2: a1 is not legal"):
        Game.from_transcript("c1 a1", Position.from_text("OX-- X--- ---- ---- X"))
