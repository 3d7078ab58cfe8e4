"""The batched games that fill arrays in place; that they are those of single games is tested in test_vector_env.py."""

import copy
import pickle
import resource
from collections.abc import Callable

import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from reversi_env import Batch, Game, IllegalMoveError, Position, Variant, random_games
from reversi_env.batch import _advance
from reversi_env.opponent_pool import PositionOpponent
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
    batch.reset(reset_mask=np.array([False, True]))
    assert batch.position(0) == Game.from_transcript("d3").position
    assert batch.position(1) == Position()
    position = Game.from_transcript("f5d6").position
    batch.reset(reset_mask=np.array([True, False]), position=position)
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
    batch.reset(reset_mask=np.array([True, False]))
    with pytest.raises(ResetNeeded):
        batch.step(np.array([19, 19]))
    batch.reset(reset_mask=np.array([False, True]))
    batch.step(np.array([19, 19]))


def test_a_first_move_of_the_opponent_that_ends_the_game_is_refused() -> None:
    variant = Variant(4, start="-OX------------- X")
    batch = Batch(2, variant, opponent="random", color="white")
    with pytest.raises(ValueError, match="the opponent's first move ends game 0"):
        batch.reset()


def test_a_later_first_move_of_the_opponent_that_ends_the_game_is_refused_too() -> None:
    variant = Variant(4, start="X----O-X--O-O--- X")
    ending, going_on = Position(variant).parse_move("d4"), Position(variant).parse_move("b4")
    answers = [going_on]

    def choose(position: Position, rng: np.random.Generator) -> int:
        return answers.pop() if answers else ending if ending in position.legal_moves else position.legal_moves[0]

    batch = Batch(1, variant, opponent=choose, color="white")
    batch.reset()

    def play_on() -> None:
        for _ in range(20):
            batch.step(batch.action_mask.argmax(axis=1))

    with pytest.raises(ValueError, match="the opponent's first move ends game 0"):
        play_on()


@pytest.mark.parametrize("action", [0, 64, -1, -2, -3, 65, 1 << 40, np.uint64((1 << 64) - 1)])
def test_an_illegal_action_says_which_game_it_is_in_first(action: int) -> None:
    batch = Batch(4)
    batch.reset()
    name = {0: "a1", 64: "pass"}.get(int(action), f"move {action}")
    with pytest.raises(IllegalMoveError, match=f"game 1: {name} is not legal for black"):
        batch.step(np.array([19, action, 19, 0], type(action) if isinstance(action, np.uint64) else None))
    assert all(batch.position(game) == Position() for game in range(4))


def test_a_league_takes_in_players_while_games_under_way_go_on() -> None:
    asked: list[str] = []

    def player(name: str) -> PositionOpponent:
        def choose(position: Position, rng: np.random.Generator) -> int:
            asked.append(name)
            return position.legal_moves[0]

        return choose

    def step() -> set[str]:
        asked.clear()
        batch.step(batch.action_mask.argmax(axis=1))
        return set(asked)

    batch = Batch(40, "othello-4x4", opponent=[player("a")])
    batch.reset(seed=1)
    assert step() == {"a"}
    batch.set_opponent([*batch.opponents, player("b")])
    assert step() == {"a"}
    batch.set_opponent([player("c")])
    assert step() == {"a"}
    seen = [step() for _ in range(30)]
    assert seen[-1] == {"c"}
    assert not any("b" in names for names in seen)
    assert len(batch._opponents) <= 3  # former pools are not kept for ever
    for other in ("random", None):
        with pytest.raises(ValueError, match="can only be given such again"):
            batch.set_opponent(other)


def test_a_game_goes_on_against_its_own_opponent_whatever_the_new_pool() -> None:
    def first(position: Position, rng: np.random.Generator) -> int:
        return position.legal_moves[0]

    def last(position: Position, rng: np.random.Generator) -> int:
        return position.legal_moves[-1]

    batch = Batch(1, opponent=[first, last])
    seeds = iter(range(100))
    while not batch.games.opponent_index[0]:
        batch.reset(next(seeds))
    batch.set_opponent([first])
    batch.step(np.array([19]))
    replies = Position().play(19).legal_moves
    assert batch.position(0) == Position().play(19).play(replies[-1])


def test_a_single_opponent_is_exchanged_at_the_next_beginning() -> None:
    batch = Batch(4, "othello-4x4", opponent="random")
    batch.reset(seed=1)
    batch.set_opponent(lambda position, rng: position.legal_moves[0])
    state = batch.games.rng_state.copy()
    batch.step(batch.action_mask.argmax(axis=1))
    assert (batch.games.rng_state != state).all()  # the random player drew
    batch.reset()
    state = batch.games.rng_state.copy()
    batch.step(batch.action_mask.argmax(axis=1))
    assert (batch.games.rng_state != state).all()  # a generator was made of the state
    assert [opponent.name for opponent in batch.opponents] != ["random"]


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


def test_games_that_begin_apart_are_seeded_apart() -> None:
    batch = Batch(4, opponent="random", color="random")
    batch.reset(seed=5, reset_mask=np.array([True, False, False, False]))
    batch.reset(reset_mask=np.array([False, True, True, True]))
    assert len(set(batch.games.rng_state.tolist())) == 4


def test_a_reset_of_some_games_leaves_the_others_alone() -> None:
    batch = Batch(3, "othello-4x4", opponent="random", begins_anew=False, reward="score")
    batch.reset(seed=1)
    while not batch.is_over.all():
        batch.step(batch.action_mask.argmax(axis=1))
    states, rewards = batch.games.rng_state.copy(), batch.reward.copy()
    assert rewards.all()
    batch.reset(seed=7, reset_mask=np.array([False, True, False]))
    assert batch.is_over.tolist() == [True, False, True]
    assert batch.reward.tolist() == [rewards[0], 0, rewards[2]]
    assert (batch.games.rng_state == states).tolist() == [True, False, True]
    assert batch.action_mask.any(axis=1).tolist() == [False, True, False]
    assert batch.is_black.all()
    assert batch.games.last_move.tolist()[1] < 0


@pytest.mark.parametrize("reset_mask", [True, [True, False], np.array([True]), np.array([0, 1]), "xy"])
def test_a_reset_mask_of_another_kind_is_refused(reset_mask: object) -> None:
    batch = Batch(2)
    batch.reset()
    batch.step(np.array([19, 19]))
    with pytest.raises(ValueError, match=r"reset_mask is a bool array \[2\]"):
        batch.reset(reset_mask=reset_mask)
    assert batch.position(0) != Position()


def test_seeds_of_any_integer_type_are_the_same_and_others_change_nothing() -> None:
    batch = Batch(2, opponent="random")
    batch.reset(seed=[3, 4])
    states = batch.games.rng_state.copy()
    for seed in (3, np.int64(3), np.array([3, 4]), (np.uint8(3), 4)):
        batch.reset(seed=seed)
        np.testing.assert_array_equal(batch.games.rng_state, states)
    for seed in (1.5, "a", [3, "a"]):
        with pytest.raises(TypeError, match="a seed is a whole number"):
            batch.reset(seed=seed)
    with pytest.raises(ValueError, match="a seed is 0 or more, got -1"):
        batch.reset(seed=[7, -1])
    np.testing.assert_array_equal(batch.games.rng_state, states)


def test_what_was_broken_off_begins_anew_and_nothing_goes_on_by_itself() -> None:
    fails = True

    def choose(position: Position, rng: np.random.Generator) -> int:
        if fails:
            raise KeyboardInterrupt
        return position.legal_moves[0]

    batch = Batch(3, "othello-4x4", opponent=choose)
    batch.reset()
    with pytest.raises(KeyboardInterrupt):
        batch.step(batch.action_mask.argmax(axis=1))
    fails = False
    for _ in range(2):
        batch.reset(reset_mask=np.array([True, False, False]), color="white")  # so that the opponent is asked
        with pytest.raises(ResetNeeded, match="broken off by an error"):
            batch.step(batch.action_mask.argmax(axis=1))
    batch.reset()
    batch.step(batch.action_mask.argmax(axis=1))


@pytest.mark.parametrize("made", [copy.deepcopy, lambda batch: pickle.loads(pickle.dumps(batch))])
def test_a_copy_plays_the_same_games_by_the_same_machine_code(made: Callable[[Batch], Batch]) -> None:
    batch = Batch(5, "othello-4x4", opponent=["random", "greedy"], color="random")
    batch.reset(seed=2)
    batch.step(batch.action_mask.argmax(axis=1))
    num_compiled = len(_advance.signatures)
    copied = made(batch)
    for _ in range(20):
        for one in (batch, copied):
            one.step(one.action_mask.argmax(axis=1))
        np.testing.assert_array_equal(batch.observation, copied.observation)
    assert len(_advance.signatures) == num_compiled


@pytest.mark.parametrize("num_games", [0, -1, 2.0, "3", None])
def test_a_number_of_games_that_is_none_is_refused(num_games: object) -> None:
    with pytest.raises((ValueError, TypeError), match=r"games? or more|number of games"):
        Batch(num_games)


@pytest.mark.parametrize("game", [-1, 2])
def test_a_game_that_is_not_there_has_no_position(game: int) -> None:
    batch = Batch(2)
    batch.reset()
    with pytest.raises(ValueError, match=f"there is no game {game}; games are 0 to 1"):
        batch.position(game)


def test_against_an_opponent_the_side_to_play_is_the_learner_however_a_game_ended() -> None:
    batch = Batch(30, "othello-4x4", opponent="random", begins_anew=False)
    batch.reset(seed=1)
    while batch.action_mask.any():
        batch.step(batch.action_mask.argmax(axis=1))
    assert batch.is_black.all()
    assert not batch.games.is_black.all()
