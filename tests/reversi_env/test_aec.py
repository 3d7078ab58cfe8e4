"""The PettingZoo environment: the rule book's game for two learners, each seeing it from its own side."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pettingzoo")

from reversi_env import Game, IllegalMoveError, Position, UnknownNameError, Variant, aec
from reversi_env.geometry import SIZES
from reversi_env.variant import STARTS
from tests import oracle

SIDES = {"black_0": "X", "white_0": "O"}
VARIANTS = [
    *(Variant(size=size, start=start) for size in SIZES for start in STARTS),
    Variant(goal="fewest", scoring="tournament"),
]
WIPE_OUT = "e6f4e3f6g5d6e7f5c5"  # black wins 13–0 on its ninth move


def play(env: Any, moves: list[int]) -> None:
    for move in moves:
        env.step(move)


def wipe_out() -> list[int]:
    return list(Game.from_transcript(WIPE_OUT).moves)


def assert_sees(env: Any, board: oracle.Board, side: str | None, variant: Variant) -> None:
    """Asserts what each agent sees when `side` is to play; None says that the game is over."""
    free = variant.start == "free"
    for agent, own in SIDES.items():
        observation = env.observe(agent)
        planes = [[cell == own for cell in board], [cell == oracle.other(own) for cell in board]]
        mask = [False] * variant.num_actions
        if own == side:
            legal = oracle.legal_squares(board, own, free)
            mask = [square in legal for square in range(len(board))] + [oracle.must_pass(board, own, free)]
        np.testing.assert_array_equal(observation["observation"], np.reshape(planes, (2, variant.size, variant.size)))
        np.testing.assert_array_equal(observation["action_mask"], mask)
        assert env.observation_space(agent).contains(observation)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_random_games_are_those_of_the_rule_book(variant: Variant) -> None:
    env, rng = aec.env(variant=variant), np.random.default_rng(5)
    num_games = 20 if variant.size == 4 else 2
    for _ in range(num_games):
        env.reset()
        board, side = oracle.start_board(variant.size, variant.start), "X"
        while not oracle.is_over(board, variant.start == "free"):
            assert SIDES[env.agent_selection] == side
            assert_sees(env, board, side, variant)
            observation, *rest, info = env.last()
            assert (rest, info) == ([0, False, False], {})
            action = int(rng.choice(np.flatnonzero(observation["action_mask"])))
            env.step(action)
            if action != variant.pass_move:
                board = oracle.play(board, side, action, variant.start == "free")
            side = oracle.other(side)
        assert_sees(env, board, None, variant)
        assert_ended(env, board, variant)


def assert_ended(env: Any, board: oracle.Board, variant: Variant) -> None:
    """Lets each agent see the end, step out of the game, and leave it empty."""
    results = {agent: oracle.result(board, side, variant.goal, variant.scoring) for agent, side in SIDES.items()}
    seen = set()
    for agent in env.agent_iter():
        _, reward, terminated, truncated, info = env.last()
        assert (reward, terminated, truncated) == (results[agent], True, False)
        assert info["discs"] == {"black": board.count("X"), "white": board.count("O")}
        assert info["winner"] == {1: "black", 0: "draw", -1: "white"}[results["black_0"]]
        assert info["score"] == oracle.score(board, SIDES[agent], variant.goal, variant.scoring)
        seen.add(agent)
        env.step(None)
        assert_sees(env, board, None, variant)
    assert seen == set(SIDES)
    assert not env.agents


@pytest.mark.parametrize(
    ("goal", "scoring", "score"),
    [("most", "board", 13), ("most", "tournament", 64), ("fewest", "board", -13), ("fewest", "tournament", -64)],
)
def test_the_score_as_reward_is_a_share_of_the_board_with_opposite_signs(goal: str, scoring: str, score: int) -> None:
    env = aec.env(variant=Variant(goal=goal, scoring=scoring), reward="score")
    env.reset()
    play(env, wipe_out())
    assert env.rewards == {"black_0": score / 64, "white_0": -score / 64}
    assert [env.infos[agent]["score"] for agent in SIDES] == [score, -score]


def test_a_pass_is_the_only_action_of_a_blocked_agent() -> None:
    env = aec.env(variant="othello-4x4")
    env.reset(options={"position": "OX-------------- X"})
    assert np.flatnonzero(env.last()[0]["action_mask"]).tolist() == [16]
    env.step(16)
    assert env.agent_selection == "white_0"
    assert np.flatnonzero(env.last()[0]["action_mask"]).tolist() == [2]


@pytest.mark.parametrize("action", [0, 27, 64])
def test_an_illegal_action_ends_the_game_with_a_loss_for_its_agent_alone(action: int) -> None:
    env = aec.env()
    env.reset()
    play(env, [19])
    env.step(action)
    assert env.rewards == {"black_0": 0, "white_0": -1}
    board = list(Position().play(19).board)
    assert_sees(env, board, None, Variant())
    for _ in env.agent_iter():
        assert env.last()[2]
        env.step(None)
    env.reset()
    assert_sees(env, oracle.start_board(8, "diagonal"), "X", Variant())


def test_the_raw_environment_raises_for_an_illegal_action_and_stays_as_it_is() -> None:
    env = aec.raw_env()
    env.reset()
    with pytest.raises(IllegalMoveError, match=r"a1 is not legal for black in .* legal: d3 c4 f5 e6"):
        env.step(0)
    with pytest.raises(TypeError, match="an action is an integer from 0 to 64, the pass, not None"):
        env.step(None)
    env.step(19)
    assert env.agent_selection == "white_0"


@pytest.mark.parametrize("as_text", [True, False])
def test_a_game_can_begin_anywhere_with_either_side(as_text: bool) -> None:
    position = Game.from_transcript("f5d6c3").position
    env = aec.env()
    env.reset(options={"position": str(position) if as_text else position})
    assert env.agent_selection == "white_0"
    assert_sees(env, list(position.board), "O", Variant())
    env.reset()
    assert env.agent_selection == "black_0"


def test_a_game_broken_off_leaves_nothing_behind() -> None:
    env = aec.env()
    env.reset()
    play(env, [*wipe_out(), None])  # one agent has stepped out, the other has not
    env.reset()
    play(env, wipe_out())
    board = list(Game.from_transcript(WIPE_OUT).position.board)
    assert_ended(env, board, Variant())


def test_an_unknown_option_is_left_out_with_a_warning() -> None:
    env = aec.env()
    with pytest.warns(UserWarning, match="knows the option position alone, and leaves out positon"):
        env.reset(options={"positon": "OX-------------- X"})


def test_what_cannot_be_is_refused_as_in_the_single_environment() -> None:
    with pytest.raises(UnknownNameError, match="unknown variant 'otello'; did you mean othello"):
        aec.env(variant="otello")
    with pytest.raises(UnknownNameError, match="unknown reward 'points'"):
        aec.env(reward="points")
    env = aec.env(variant="othello-4x4")
    with pytest.raises(ValueError, match="the game is already over"):
        env.reset(options={"position": "XXXX------------ X"})


def test_observations_are_the_callers_to_change() -> None:
    env = aec.env()
    env.reset()
    for agent in SIDES:
        for array in env.observe(agent).values():
            array[:] = 1
    assert_sees(env, oracle.start_board(8, "diagonal"), "X", Variant())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_goes_on_by_itself(copied: Any) -> None:
    env = aec.raw_env(variant="othello-6x6")
    env.reset()
    twin = copied(env)
    env.step(8)
    assert twin.agent_selection == "black_0"
    twin.step(8)
    for agent in SIDES:
        np.testing.assert_array_equal(twin.observe(agent)["observation"], env.observe(agent)["observation"])


def test_each_agent_has_spaces_of_its_own_always_the_same() -> None:
    env = aec.env(variant="othello-10x10")
    assert env.possible_agents == list(SIDES)
    black, white = (env.action_space(agent) for agent in SIDES)
    assert black == white
    assert black is not white
    assert black is env.action_space("black_0")
    assert env.observation_space("white_0")["observation"].shape == (2, 10, 10)


def test_the_board_is_drawn_as_in_the_single_environment(capsys: pytest.CaptureFixture[str]) -> None:
    env = aec.env(render_mode="rgb_array", render_pixels=200)
    env.reset()
    assert env.render().shape == (200, 200, 3)
    env = aec.env(render_mode="human")
    env.reset()
    play(env, [19])
    assert capsys.readouterr().out.count("to move") == 2
    env.close()
