"""The truth that environments tell, against the oracle's brute force and against Gymnasium's own vector environment."""

import copy
import pickle
from functools import cache
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import agents
from agents.exact_info import UNKNOWN_REGRET, UNKNOWN_SCORE, ExactInfo, ExactScores, ExactVectorInfo
from reversi_env import Game, Position, Variant, random_games
from reversi_env.env import ReversiEnv
from reversi_env.variant import GOALS, SCORINGS
from reversi_env.vector_env import ReversiVectorEnv
from reversi_env.wrappers import CanonicalSymmetry
from tests import oracle

MODES = list(AutoresetMode)
SMALL = [Variant(4, "diagonal", goal, scoring) for goal in GOALS for scoring in SCORINGS] + [Variant(4, "parallel")]
LATE = [Variant(6), Variant(6, "parallel", "fewest", "tournament"), Variant(8, "free"), Variant(10, goal="fewest")]
NUM_ENVS = 5


@cache
def best_score(board: str, side: str, variant: Variant) -> int:
    """Returns the final score of `side` when both play perfectly: brute force, once for all tests."""
    afters = oracle.turns(list(board), side, variant.start == "free")
    if not afters:
        return oracle.score(list(board), side, variant.goal, variant.scoring)
    return max(-best_score("".join(after), oracle.other(side), variant) for after in afters)


def brute_force(position: Position) -> list[int]:
    """Returns what `exact_scores` should be."""
    variant, board, side = position.variant, list(position.board), position.side
    free = variant.start == "free"
    scores = [UNKNOWN_SCORE] * variant.num_actions
    for square in oracle.legal_squares(board, side, free):
        after = oracle.play(board, side, square, free)
        scores[square] = -best_score("".join(after), oracle.other(side), variant)
    if oracle.must_pass(board, side, free):
        scores[-1] = -best_score(position.board, oracle.other(side), variant)
    return scores


def perfect(position: Position, rng: np.random.Generator) -> int:
    """Plays a best move."""
    return int(np.argmax(brute_force(position)))


def draw(mask: np.ndarray, rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(mask)))


def late(variant: Variant, num_empties: int, seed: int) -> Position:
    """Returns a position of a random game, with so many empty squares."""
    games = random_games(Position(variant), 1, seed=seed)
    game = Game(variant)
    for move in games.moves[0].tolist():
        if game.position.num_empties == num_empties:
            break
        game.play(move)
    return game.position


# The scores


@pytest.mark.parametrize("variant", SMALL, ids=lambda variant: variant.name)
def test_whole_games_on_4x4_tell_what_brute_force_finds(variant: Variant) -> None:
    rng = np.random.default_rng(2)
    env: Any = ExactInfo(ReversiEnv(variant, opponent=None))
    _, info = env.reset(seed=1)
    terminated = False
    while not terminated:
        assert info["exact_scores"].dtype == np.int16
        assert info["optimal_mask"].dtype == np.int8
        expected = brute_force(env.unwrapped.position)
        assert info["exact_scores"].tolist() == expected
        assert info["optimal_mask"].tolist() == [score == max(expected) for score in expected]
        action = draw(info["action_mask"], rng)
        _, _, terminated, _, info = env.step(action)
        assert info["regret"] == max(expected) - expected[action]
    assert (info["exact_scores"] == UNKNOWN_SCORE).all()
    assert not info["optimal_mask"].any()


@pytest.mark.parametrize("variant", LATE, ids=lambda variant: variant.name)
@pytest.mark.parametrize("opponent", [None, "greedy"])
def test_late_positions_tell_what_brute_force_finds(variant: Variant, opponent: str | None) -> None:
    rng = np.random.default_rng(3)
    empties = 7 if variant.size == 6 else 5
    env: Any = ExactInfo(ReversiEnv(variant, opponent), empties)
    for seed in range(5):
        _, info = env.reset(seed=seed, options={"position": late(variant, empties + 1, seed)})
        terminated = False
        while not terminated:
            position = env.unwrapped.position
            if position.num_empties <= empties:
                assert info["exact_scores"].tolist() == brute_force(position)
            _, _, terminated, _, info = env.step(draw(info["action_mask"], rng))


def test_positions_with_more_empties_are_unknown() -> None:
    env: Any = ExactInfo(ReversiEnv("othello-6x6", opponent=None), empties=9)
    _, info = env.reset(seed=1)
    rng = np.random.default_rng(4)
    terminated = False
    assert "regret" not in info
    while not terminated:
        is_solved = env.unwrapped.position.num_empties <= 9
        assert info["optimal_mask"].any() == is_solved
        np.testing.assert_array_equal(info["exact_scores"] != UNKNOWN_SCORE, info["action_mask"] * is_solved)
        _, _, terminated, _, info = env.step(draw(info["action_mask"], rng))
        assert (info["regret"] == UNKNOWN_REGRET) == (not is_solved)


@pytest.mark.parametrize(("scoring", "black_score"), [("board", -8), ("tournament", -10)])
def test_optimal_play_on_4x4_ends_as_is_known(scoring: str, black_score: int) -> None:  # by 3 discs to 11
    rng = np.random.default_rng(5)
    env: Any = ExactInfo(ReversiEnv(Variant(4, scoring=scoring), opponent=None))
    for _ in range(20):
        _, info = env.reset()
        terminated = False
        while not terminated:
            _, _, terminated, _, info = env.step(draw(info["optimal_mask"], rng))
            assert info["regret"] == 0
        assert env.unwrapped.position.black_score == black_score


# Regret


@pytest.mark.parametrize("variant", SMALL, ids=lambda variant: variant.name)
def test_regrets_add_up_to_what_a_game_lost(variant: Variant) -> None:
    rng = np.random.default_rng(6)
    env: Any = ExactInfo(ReversiEnv(variant, opponent=None))
    expected = best_score(*variant.start_board, variant)
    for _ in range(20):
        _, info = env.reset()
        black_score, terminated = expected, False
        while not terminated:
            is_black = info["to_play"] == "black"
            _, _, terminated, _, info = env.step(draw(info["action_mask"], rng))
            black_score -= info["regret"] if is_black else -info["regret"]
        assert env.unwrapped.position.black_score == black_score


@pytest.mark.parametrize("color", ["black", "white"])
def test_against_a_perfect_opponent_a_learner_loses_what_it_regrets(color: str) -> None:
    rng = np.random.default_rng(7)
    env: Any = agents.ExactInfo(agents.make_env(perfect, variant="othello-4x4", color=color))
    for seed in range(10):
        _, info = env.reset(seed=seed)
        score, terminated = -8 if color == "black" else 8, False
        while not terminated:
            _, _, terminated, _, info = env.step(draw(info["action_mask"], rng))
            score -= info["regret"]
        assert info["score"] == score


@pytest.mark.parametrize("action", [0, -1, 10**30])
def test_an_illegal_action_loses_every_square(action: int) -> None:
    env: Any = ExactInfo(ReversiEnv("othello-4x4", opponent=None))
    env.reset()
    _, _, terminated, _, info = env.step(action)
    assert terminated
    assert info["regret"] == -8 + 16
    assert not info["optimal_mask"].any()


# Many games at once


def agree(ours: Any, theirs: Any, num_steps: int, share_illegal: float) -> None:
    """Steps both with the same actions and compares all that they return."""
    rng = np.random.default_rng(8)
    found, expected = ours.reset(seed=5), theirs.reset(seed=5)
    assert data_equivalence(found, expected, exact=True)
    for step in range(num_steps):
        masks = expected[0]["action_mask"]
        actions = np.array([draw(mask, rng) if mask.any() else 0 for mask in masks])
        actions[rng.random(len(masks)) < share_illegal] = -2
        found, expected = ours.step(actions), theirs.step(actions)
        assert data_equivalence(found, expected, exact=True), f"step {step}"
        over = expected[2]
        if ours.metadata["autoreset_mode"] is AutoresetMode.DISABLED and over.any():
            found, expected = (env.reset(options={"reset_mask": over}) for env in (ours, theirs))
            assert data_equivalence(found, expected, exact=True), f"reset after step {step}"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("opponent", [None, "random", ["greedy", "positional"]], ids=str)
@pytest.mark.parametrize("variant", [Variant(4), Variant(6, "parallel", "fewest", "tournament")], ids=str)
def test_many_games_tell_what_single_ones_do(variant: Variant, opponent: Any, mode: AutoresetMode) -> None:
    settings: dict[str, Any] = {"variant": variant, "opponent": opponent}
    if opponent is not None:
        settings["color"] = "random"
    single = [lambda: ExactInfo(ReversiEnv(**settings), empties=9)] * NUM_ENVS
    many: Any = ReversiVectorEnv(NUM_ENVS, autoreset_mode=mode, **settings)
    agree(ExactInfo(many, empties=9), SyncVectorEnv(single, autoreset_mode=mode), 60, share_illegal=0.05)


def test_the_truth_is_told_of_games_against_agents() -> None:
    many: Any = agents.make_vec("mobility", 3, variant="othello-4x4")
    envs: Any = agents.ExactInfo(many)
    rng = np.random.default_rng(9)
    _, infos = envs.reset(seed=1)
    for _ in range(12):
        for game in range(3):
            assert infos["exact_scores"][game].tolist() == brute_force(envs.unwrapped.position(game))
        np.testing.assert_array_equal(envs.action_masks(), infos["action_mask"])
        *_, infos = envs.step(np.array([draw(mask, rng) for mask in infos["optimal_mask"]]))
        assert not infos.get("regret", np.zeros(1)).any()
    assert type(envs) is ExactVectorInfo


# As wrappers go


@pytest.mark.parametrize("opponent", ["random", None])
@pytest.mark.parametrize("variant", ["othello", "othello-4x4"])
@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version.*")
def test_gymnasiums_checker_finds_nothing(
    variant: str, opponent: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    check_env(ExactInfo(agents.make_env(opponent, variant=variant)))


def test_around_a_symmetry_the_board_is_meant_that_is_shown() -> None:
    rng = np.random.default_rng(10)
    env: Any = ExactInfo(CanonicalSymmetry(agents.make_env(None, variant="othello-4x4")))
    for _ in range(5):
        _, info = env.reset()
        terminated = False
        while not terminated:
            np.testing.assert_array_equal(info["exact_scores"] != UNKNOWN_SCORE, info["action_mask"])
            _, _, terminated, _, info = env.step(draw(info["optimal_mask"], rng))
            assert info["regret"] == 0
        assert env.unwrapped.position.black_score == -8


def test_a_spec_makes_it_again() -> None:
    env: Any = ExactInfo(agents.make_env(variant="othello-6x6"), empties=8)
    again = gymnasium.make(env.spec)
    assert str(again) == str(env)
    assert isinstance(again, ExactInfo)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_go_on_alike(duplicate: Any) -> None:
    env: Any = ExactInfo(ReversiEnv("othello-4x4"))
    _, info = env.reset(seed=1)
    other = duplicate(env)
    action = draw(info["action_mask"], np.random.default_rng(11))
    assert data_equivalence(env.step(action), other.step(action), exact=True)


def test_what_is_told_is_the_callers() -> None:
    env: Any = ExactInfo(ReversiEnv("othello-4x4"))
    _, info = env.reset(seed=1)
    scores = info["exact_scores"].copy()
    info["exact_scores"][:] = 99
    _, info = env.reset(seed=1)
    np.testing.assert_array_equal(info["exact_scores"], scores)


def test_what_is_remembered_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.exact_info._MOST_REMEMBERED", 2)
    exact = ExactScores(Variant(6), empties=6)
    positions = [late(Variant(6), 6, seed) for seed in range(5)]
    first = [exact.of(position).tolist() for position in positions]
    assert [exact.of(position).tolist() for position in positions] == first
    assert len(exact._remembered) <= 2


def test_what_cannot_be_solved_is_refused() -> None:
    with pytest.raises(TypeError, match="positions of Reversi-v0"):
        ExactInfo(gymnasium.make("CartPole-v1"))
    many: Any = SyncVectorEnv([ReversiEnv])
    with pytest.raises(TypeError, match="wrappers="):
        ExactInfo(many)
    with pytest.raises(ValueError, match="empties is a number of squares"):
        ExactInfo(ReversiEnv(), empties=-1)
