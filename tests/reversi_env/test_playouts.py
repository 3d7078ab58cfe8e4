"""Random games: every ply and every end against the oracle, equal chances, and seeds that mean what they say."""

from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from reversi_env import Position, Variant, random_games
from reversi_env.playouts import NO_MOVE, RandomGames
from reversi_env.variant import GOALS, SCORINGS
from tests import oracle
from tests.reversi_env.strategies import positions

# Middle games with white to move; white has to pass in the one of 4×4.
GIVEN = {
    4: "---- -OXX -XX- XXXO O",
    6: "----X- --XX-O -OOXO- --XOX- ----OX ------ O",
    8: "----O--- ---XOX-- --XXXX-- OOOOOX-- -XOOXX-- -X-XXX-- --XXXXX- ------O- O",
    10: (
        "---------- ---------- --O--OX--- -XXO--O--- --OOOOOO-- "
        "-O-XXOO-O- ---XXOXO-- OOOOXXXXO- -XX-XXXXX- ---XXXXX-- O"
    ),
}


def variant_of(size: int, start: str, goal: str = "most", scoring: str = "board") -> Variant:
    return Variant(size, GIVEN[size] if start == "given" else start, goal, scoring)


def compare_games(size: int, start: str, num_games: int) -> None:
    """Plays random games through the kernel and through `Position`, and asks the oracle about every ply of them.

    The flips of a move are seen in the board after it: the oracle's part is slow enough without asking again.
    """
    variant = variant_of(size, start)
    games = random_games(Position(variant), num_games, seed=size)
    passes = 0
    for row in range(num_games):
        position, free = Position(variant), start == "free"
        board, side = list(position.board), position.side
        for move in moves_of(games, row):
            squares = oracle.legal_squares(board, side, free)
            if squares:
                assert position.legal_moves == tuple(squares)
                assert not position.must_pass
                board = oracle.play(board, side, move, free)
            else:
                assert oracle.must_pass(board, side, free)
                assert position.must_pass
                assert position.legal_moves == (move,) == (variant.pass_move,)
                passes += 1
            assert not position.is_over
            position, side = position.play(move), oracle.other(side)
            assert (position.board, position.side) == ("".join(board), side)
        assert position.is_over
        assert position.legal_moves == ()
        assert oracle.is_over(board, free)
        compare_scores(games, row, position)
    assert passes  # else the sample would prove little


def compare_scores(games: RandomGames, row: int, ended: Position) -> None:
    board, side = list(ended.board), ended.side
    assert games.black_scores[row] == oracle.score(board, oracle.BLACK)
    for goal in GOALS:
        for scoring in SCORINGS:
            position = Position.from_text(ended.text, Variant(ended.variant.size, goal=goal, scoring=scoring))
            assert position.score == oracle.score(board, side, goal, scoring)
            assert position.black_score == oracle.score(board, oracle.BLACK, goal, scoring)
            assert position.result == oracle.result(board, side, goal, scoring)


def moves_of(games: RandomGames, row: int) -> list[int]:
    length = games.lengths[row]
    assert (games.moves[row, length:] == NO_MOVE).all()
    moves: list[int] = games.moves[row, :length].tolist()
    return moves


combinations = pytest.mark.parametrize(
    ("size", "start"), [(size, start) for size in (4, 6, 8, 10) for start in ("diagonal", "parallel", "free", "given")]
)


@combinations
def test_games_agree_with_oracle_ply_by_ply(size: int, start: str) -> None:
    compare_games(size, start, num_games=80)


@pytest.mark.slow
@combinations
def test_many_games_agree_with_oracle_ply_by_ply(size: int, start: str) -> None:
    compare_games(size, start, num_games=800 if size < 10 else 300)


@combinations
def test_goal_and_scoring_change_the_scores_of_games_and_nothing_else(size: int, start: str) -> None:
    plain = random_games(Position(variant_of(size, start)), 20, seed=5)
    for goal in GOALS:
        for scoring in SCORINGS:
            variant = variant_of(size, start, goal, scoring)
            games = random_games(Position(variant), 20, seed=5)
            assert (games.moves == plain.moves).all()
            for row in range(20):
                position = Position(variant)
                for move in moves_of(games, row):
                    position = position.play(move)
                assert games.black_scores[row] == oracle.score(list(position.board), oracle.BLACK, goal, scoring)


def test_given_starts_let_white_move_first() -> None:
    assert [Position(variant_of(size, "given")).side for size in GIVEN] == [oracle.WHITE] * 4
    assert Position(variant_of(4, "given")).must_pass


# Seeds


def same(a: RandomGames, b: RandomGames) -> bool:
    return all(np.array_equal(left, right) for left, right in zip(a, b, strict=True))


@given(seed=st.integers(-(2**70), 2**70), first=st.integers(0, 2**40), position=positions())
def test_same_seed_same_games_however_many_are_asked_for(seed: int, first: int, position: Position) -> None:
    together = random_games(position, 5, seed, first)
    assert same(together, random_games(position, 5, seed, first))
    for row in range(5):
        alone = random_games(position, 1, seed, first + row)
        assert same(alone, RandomGames(*(array[row : row + 1] for array in together)))


def test_other_seeds_and_other_streams_give_other_games() -> None:
    games = [moves for seed in range(20) for moves in random_games(Position(), 50, seed).moves.tolist()]
    assert len({tuple(moves) for moves in games}) == 1000


def test_seeds_of_any_integer_type_mean_the_same() -> None:
    expected = random_games(Position(), 3, seed=7)
    for seed in (np.int64(7), np.uint64(7), np.int32(7)):
        assert same(expected, random_games(Position(), np.int64(3), seed, first=np.int32(0)))  # type: ignore[arg-type]


# Chances


@cache
def large_sample() -> RandomGames:
    return random_games(Position(), 60_000, seed=11)


def test_first_moves_are_equally_likely() -> None:
    counts = Counter(large_sample().moves[:, 0].tolist())
    assert set(counts) == set(Position().legal_moves)
    assert chisquare(list(counts.values())).pvalue > 1e-4


def test_later_moves_are_equally_likely_too() -> None:
    moves = large_sample().moves
    beginnings = Counter(map(tuple, moves[:, :3].tolist()))
    lines = {
        (first, second, third): Position().play(first).play(second).legal_moves
        for first in Position().legal_moves
        for second in Position().play(first).legal_moves
        for third in Position().play(first).play(second).legal_moves
    }
    assert set(beginnings) == set(lines)
    expected = [len(moves) / 4 / 3 / len(lines[line]) for line in lines]
    assert chisquare([beginnings[line] for line in lines], expected).pvalue > 1e-4


# Edges


def test_no_games_are_an_empty_answer() -> None:
    games = random_games(Position(), 0, seed=1)
    assert games.moves.shape[0] == games.lengths.size == games.black_scores.size == 0


def test_a_finished_game_has_no_moves_left_but_a_score() -> None:
    over = Position.from_text("XXXX XXXX XXOO OOOO O")
    games = random_games(over, 3, seed=1)
    assert games.lengths.tolist() == [0, 0, 0]
    assert games.black_scores.tolist() == [4, 4, 4]
    assert (games.moves == NO_MOVE).all()


def test_a_negative_number_of_games_is_refused() -> None:
    with pytest.raises(ValueError, match="0 or more, got -2"):
        random_games(Position(), -2, seed=1)
