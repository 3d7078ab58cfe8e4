"""The batched games that fill arrays in place; that they are those of single games is tested in test_vector_env.py."""

import resource

import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from reversi_env import Batch, Game, IllegalMoveError, Position, Variant, random_games
from reversi_env.opponents import BASELINES
from tests import oracle


def test_arrays_stay_the_same_and_change_in_place() -> None:
    batch = Batch(3)
    batch.reset()
    arrays = [batch.observation, batch.action_mask, batch.is_black, batch.reward, batch.is_over]
    before = [array.copy() for array in arrays]
    batch.step(np.array([19, 26, 37]))
    after = [batch.observation, batch.action_mask, batch.is_black, batch.reward, batch.is_over]
    assert all(one is other or one.base is other.base for one, other in zip(arrays, after, strict=True))
    assert (arrays[0] != before[0]).any()
    assert [batch.position(game) for game in range(3)] == [
        Position().play(Position().parse_move(name)) for name in ("d3", "c4", "f5")
    ]


@pytest.mark.parametrize("variant", [Variant(8), Variant(10), Variant(6, "free", "fewest", "tournament")], ids=str)
def test_known_games_end_with_their_scores(variant: Variant) -> None:
    games = random_games(Position(variant), 20, seed=1)
    batch = Batch(20, variant, begins_anew=False, reward="score")
    batch.reset()
    for ply in range(games.lengths.max()):
        batch.step(games.moves[:, ply].astype(np.int64))
        np.testing.assert_array_equal(batch.is_over, games.lengths == ply + 1)
        for game in np.flatnonzero(batch.is_over).tolist():
            mover_is_black = not batch.games.is_black[game]
            score = games.black_scores[game] if mover_is_black else -games.black_scores[game]
            assert batch.reward[game] == score / variant.num_squares
            board = batch.position(game).board
            assert batch.games.final_black_score[game] == oracle.score(board, "X", variant.goal, variant.scoring)
            assert not batch.action_mask[game].any()


def test_a_game_that_ends_is_followed_by_another_at_once() -> None:
    (moves,) = random_games(Position("othello-4x4"), 1, seed=3).moves
    length = int(random_games(Position("othello-4x4"), 1, seed=3).lengths[0])
    batch = Batch(1, "othello-4x4")
    batch.reset()
    for _ in range(3):
        for move in moves[:length].tolist():
            assert not batch.is_over.any() or batch.position(0) == Position("othello-4x4")
            batch.step(np.array([move]))
        assert batch.is_over.all()
        assert batch.position(0) == Position("othello-4x4")


def test_some_games_begin_anew_while_others_go_on() -> None:
    batch = Batch(2)
    batch.reset()
    batch.step(np.array([19, 19]))
    batch.reset(games=np.array([False, True]))
    assert batch.position(0) == Game.from_transcript("d3").position
    assert batch.position(1) == Position()
    position = Game.from_transcript("f5d6").position
    batch.reset(games=np.array([True, False]), position=position)
    assert batch.position(0) == position


def test_a_given_position_holds_for_one_reset() -> None:
    batch = Batch(1, "othello-4x4")
    position = Position.from_text("XXXXOOOO-OOX-OXO O", "othello-4x4")  # white must pass
    batch.reset(position=position)
    np.testing.assert_array_equal(np.flatnonzero(batch.action_mask[0]), [16])
    while not batch.is_over[0]:
        batch.step(batch.action_mask.argmax(axis=1))
    assert batch.position(0) == Position("othello-4x4")


def test_a_reset_without_a_seed_goes_on_drawing() -> None:
    def colors(seeds: list[int | None]) -> list[list[bool]]:
        batch = Batch(6, opponent="random", color="random")
        drawn = []
        for seed in seeds:
            batch.reset(seed)
            drawn.append(batch.is_black.tolist())
        return drawn

    assert colors([1, None, None, None]) == colors([1, None, None, None])
    assert len(set(map(str, colors([1, None, None, None])))) > 1


def test_a_seed_for_each_game_may_be_none_for_those_that_go_on_drawing() -> None:
    batch = Batch(3, opponent="random")
    batch.reset(seed=[4, 5, 6])
    states = batch.games.rng_state.copy()
    batch.step(np.full(3, 19))
    later = batch.games.rng_state.copy()
    batch.reset(seed=[4, None, 6])
    np.testing.assert_array_equal(batch.games.rng_state, [states[0], later[1], states[2]])
    with pytest.raises(ValueError, match="seeds are one a game, 3, got 2"):
        batch.reset(seed=[1, 2])


def test_a_step_before_the_first_reset_is_refused() -> None:
    batch = Batch(2)
    for call in (lambda: batch.step(np.array([19, 19])), lambda: batch.position(0)):
        with pytest.raises(ResetNeeded):
            call()
    batch.reset(games=np.array([True, False]))
    with pytest.raises(ResetNeeded):
        batch.step(np.array([19, 19]))
    batch.reset(games=np.array([False, True]))
    batch.step(np.array([19, 19]))


def test_a_first_move_of_the_opponent_that_ends_the_game_is_refused() -> None:
    variant = Variant(4, start="-OX------------- X")
    batch = Batch(2, variant, opponent="random", color="white")
    with pytest.raises(ValueError, match="the opponent's first move ends game 0"):
        batch.reset()


def test_an_illegal_action_says_which_game_it_is_in() -> None:
    batch = Batch(3)
    batch.reset()
    for action in (0, 64, -1, -2, -3, 65, 1 << 40):
        with pytest.raises(IllegalMoveError, match=r"game 2: .* is not legal for black"):
            batch.step(np.array([19, 19, action]))
    assert all(batch.position(game) == Position() for game in range(3))


def test_a_league_grows_at_its_end() -> None:
    batch = Batch(40, "othello-4x4", opponent=["random"])
    batch.reset(seed=1)
    batch.set_opponent(["random", "greedy"])
    assert not batch.games.opponent.any()
    for _ in range(30):
        batch.step(batch.action_mask.argmax(axis=1))
    assert batch.games.opponent.any()
    with pytest.raises(ValueError, match="the first 2 of the pool are playing"):
        batch.set_opponent(["random", "positional"])
    with pytest.raises(ValueError, match="can only be given such again"):
        batch.set_opponent("random")


def test_an_opponent_cannot_change_the_games() -> None:
    class Vandal:
        name = "vandal"

        def choose(self, variant: Variant, boards: np.ndarray, *rest: np.ndarray) -> None:
            BASELINES["greedy"].choose(variant, boards, *rest)
            boards[:] = 0

    honest, spoilt = (Batch(5, opponent=opponent) for opponent in ("greedy", Vandal()))
    for batch in (honest, spoilt):
        batch.reset(seed=1)
        for _ in range(5):
            batch.step(batch.action_mask.argmax(axis=1))
    np.testing.assert_array_equal(honest.observation, spoilt.observation)


@pytest.mark.slow
def test_memory_stays_flat_over_millions_of_steps() -> None:
    batch = Batch(1024)
    batch.reset()

    def steps(number: int) -> int:
        for _ in range(number):
            batch.step(batch.action_mask.argmax(axis=1))
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = steps(1_000)
    assert steps(10_000) - before < 2_000  # kB
