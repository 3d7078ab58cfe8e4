"""Reversi-v0: the same game as the rule book's, from either side, with every ending, option and fault it can meet."""

import csv
import pickle
import re
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from reversi_env import Game, IllegalMoveError, Position, ReversiEnv, UnknownNameError, Variant, random_games
from reversi_env.opponent_pool import PositionOpponent
from reversi_env.opponents import BASELINES
from reversi_env.playouts import NO_MOVE
from tests import oracle

Data = Callable[[str], Path]

VARIANTS = [
    *map(Variant.named, Variant.NAMES),
    Variant(size=6, start="parallel", scoring="tournament"),
    Variant(goal="fewest", scoring="tournament"),
]
WIPE_OUT = "e6f4e3f6g5d6e7f5c5"  # black wins 13–0 on its ninth move, the board mostly empty
COLORS = ("black", "white")


def make(**arguments: Any) -> ReversiEnv:
    env = gymnasium.make("reversi_env:Reversi-v0", **arguments).unwrapped
    assert isinstance(env, ReversiEnv)
    return env


def moves_of(variant: Variant, num_games: int, seed: int = 11) -> Iterator[list[int]]:
    for game in random_games(Position(variant), num_games, seed).moves:
        yield game[game != NO_MOVE].tolist()


def game_moves(transcript: str, variant: str | Variant = "othello") -> list[int]:
    """Returns the moves of a transcript, its passes written out."""
    return list(Game.from_transcript(transcript, variant).moves)


def scripted(moves: list[int], start: Position) -> PositionOpponent:
    """Returns an opponent that plays its part of a recorded game, and is never asked for a forced pass."""
    answers = {}
    for move in moves:
        answers[start] = move
        start = start.play(move)

    def answer(position: Position, rng: np.random.Generator) -> int:
        assert not position.must_pass
        return answers[position]

    return answer


def observed(board: oracle.Board, side: str, variant: Variant) -> tuple[np.ndarray, np.ndarray]:
    """Returns the planes and the mask that `side` sees when it is to play, by the rule book."""
    free = variant.start == "free"
    legal = oracle.legal_squares(board, side, free)
    mask = [square in legal for square in range(len(board))] + [oracle.must_pass(board, side, free)]
    planes = [[cell == side for cell in board], [cell == oracle.other(side) for cell in board]]
    return np.reshape(planes, (2, variant.size, variant.size)), np.array(mask)


def assert_observed(
    observation: dict[str, np.ndarray], info: dict[str, Any], board: oracle.Board, side: str, variant: Variant
) -> None:
    planes, mask = observed(board, side, variant)
    np.testing.assert_array_equal(observation["observation"], planes)
    np.testing.assert_array_equal(observation["action_mask"], mask)
    np.testing.assert_array_equal(info["action_mask"], mask)
    assert info["to_play"] == {"X": "black", "O": "white"}[side]


def assert_ended(info: dict[str, Any], reward: SupportsFloat, board: oracle.Board, side: str, variant: Variant) -> None:
    """Asserts what the last step says, from the point of view of `side`."""
    black = oracle.result(board, "X", variant.goal, variant.scoring)
    assert info["discs"] == {"black": board.count("X"), "white": board.count("O")}
    assert info["winner"] == {1: "black", 0: "draw", -1: "white"}[black]
    assert info["score"] == oracle.score(board, side, variant.goal, variant.scoring)
    assert reward == oracle.result(board, side, variant.goal, variant.scoring)
    assert not info["action_mask"].any()


def play_by_rule_book(board: oracle.Board, side: str, move: int, variant: Variant) -> oracle.Board:
    return board if move == variant.pass_move else oracle.play(board, side, move, variant.start == "free")


def play_out(env: gymnasium.Env[Any, Any], **reset: Any) -> tuple[list[int], float, dict[str, Any]]:
    """Plays random legal actions to the end; returns them, the last reward and the last info."""
    _, info = env.reset(**reset)
    rng, actions = np.random.default_rng(2), []
    while True:
        actions.append(int(rng.choice(np.flatnonzero(info["action_mask"]))))
        _, reward, terminated, _, info = env.step(actions[-1])
        if terminated:
            return actions, float(reward), info


# The game


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_both_sides_in_the_callers_hands_play_the_game_of_position_and_oracle(variant: Variant) -> None:
    env = make(variant=variant, opponent=None)
    for moves in moves_of(variant, 3):
        observation, info = env.reset()
        board, side, position = oracle.start_board(variant.size, variant.start), "X", Position(variant)
        for ply, move in enumerate(moves, start=1):
            assert_observed(observation, info, board, side, variant)
            assert env.position == position
            observation, reward, terminated, truncated, info = env.step(move)
            board, position = play_by_rule_book(board, side, move, variant), position.play(move)
            assert (terminated, truncated) == (ply == len(moves), False)
            if terminated:
                assert_ended(info, reward, board, side, variant)
            else:
                assert reward == 0
            side = oracle.other(side)
        assert_observed(observation, info, board, side, variant)
        assert env.position == position


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
@pytest.mark.parametrize("color", COLORS)
def test_a_game_against_an_opponent_is_the_learners_part_of_it(variant: Variant, color: str) -> None:
    for moves in moves_of(variant, 3):
        compare_with_recorded(moves, variant, color)


def compare_with_recorded(moves: list[int], variant: Variant, color: str) -> int:
    """Plays the learner's part of a game, compares each step with the rule book, and returns the learner's passes."""
    env = make(variant=variant, color=color, opponent=scripted(moves, Position(variant)))
    learner = {"black": "X", "white": "O"}[color]
    observation, info = env.reset()
    board, side, num_passes = oracle.start_board(variant.size, variant.start), "X", 0
    reward: SupportsFloat = 0.0
    terminated = False
    for move in moves:
        if side == learner:
            assert (reward, terminated) == (0, False)
            assert_observed(observation, info, board, side, variant)
            observation, reward, terminated, _, info = env.step(move)
            num_passes += move == variant.pass_move
        board, side = play_by_rule_book(board, side, move, variant), oracle.other(side)
    assert terminated
    assert_ended(info, reward, board, learner, variant)
    np.testing.assert_array_equal(observation["observation"], observed(board, learner, variant)[0])
    assert info["to_play"] == color
    return num_passes


@pytest.mark.parametrize("color", COLORS)
def test_passes_are_actions_of_the_learner_and_happen_by_themselves_for_the_opponent(data: Data, color: str) -> None:
    with data("stress_games.tsv").open(encoding="utf-8", newline="") as file:
        games = {row["name"]: game_moves(row["transcript"]) for row in csv.DictReader(file, delimiter="\t")}
    num_passes = {name: compare_with_recorded(moves, Variant(), color) for name, moves in games.items()}
    for name, moves in games.items():
        of_this_color = moves[0 if color == "black" else 1 :: 2]
        assert num_passes[name] == of_this_color.count(64), name
    # White alone passes in these games: as the learner and as the opponent.
    assert sum(num_passes.values()) >= 26 if color == "white" else sum(num_passes.values()) == 0


# Rewards


@pytest.mark.parametrize(
    ("goal", "scoring", "score"),
    [("most", "board", 13), ("most", "tournament", 64), ("fewest", "board", -13), ("fewest", "tournament", -64)],
)
@pytest.mark.parametrize("color", COLORS)
@pytest.mark.parametrize("reward", ["result", "score"])
def test_a_wipe_out_is_rewarded_by_goal_scoring_and_color(
    goal: str, scoring: str, score: int, color: str, reward: str
) -> None:
    variant = Variant(goal=goal, scoring=scoring)
    moves = game_moves(WIPE_OUT)
    env = make(variant=variant, color=color, reward=reward, opponent=scripted(moves, Position(variant)))
    env.reset()
    for move in moves[0 if color == "black" else 1 :: 2]:
        _, given, terminated, _, info = env.step(move)
    assert terminated
    score = score if color == "black" else -score
    assert info["score"] == score
    assert given == (score / 64 if reward == "score" else np.sign(score))
    assert info["winner"] == ("black" if goal == "most" else "white")


def test_a_draw_is_rewarded_with_nothing() -> None:
    variant = Variant(size=4)
    drawn = next(moves for moves in moves_of(variant, 500) if Game.from_moves(moves, variant).position.score == 0)
    for reward in ("result", "score"):
        env = make(variant=variant, opponent=None, reward=reward)
        env.reset()
        for move in drawn:
            _, given, terminated, _, info = env.step(move)
        assert (terminated, given, info["winner"], info["score"]) == (True, 0, "draw", 0)


def test_without_an_opponent_the_reward_is_that_of_the_side_whose_action_ended_the_game() -> None:
    seen = set()
    for moves in moves_of(Variant(size=4), 60):
        env = make(variant="othello-4x4", opponent=None)
        env.reset()
        for move in moves:
            mover = "black" if env.position.is_black_to_move else "white"
            _, reward, _, _, info = env.step(move)
        expected = 0 if info["winner"] == "draw" else 1 if info["winner"] == mover else -1
        assert reward == expected
        seen.add((mover, reward))
    assert {("black", 1), ("black", -1), ("white", 1), ("white", -1)} <= seen


# Illegal actions


@pytest.mark.parametrize("reward", ["result", "score"])
@pytest.mark.parametrize("action", [0, 27, 64, 65, -1, 10**30])
def test_an_illegal_action_loses_the_whole_board(action: int, reward: str) -> None:
    env = make(reward=reward)
    env.reset(seed=1)
    env.step(19)
    before = env.position
    observation, given, terminated, truncated, info = env.step(action)
    assert (given, terminated, truncated) == (-1, True, False)
    assert info["illegal_action"] == action
    assert (info["score"], info["winner"]) == (-64, "white")
    assert info["discs"] == {"black": before.num_black, "white": before.num_white}
    assert not observation["action_mask"].any()
    assert env.position == before
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step(19)


def test_without_an_opponent_an_illegal_action_loses_for_its_own_side() -> None:
    env = make(opponent=None)
    env.reset()
    env.step(19)
    _, reward, _, _, info = env.step(0)
    assert (reward, info["winner"]) == (-1, "black")


@pytest.mark.parametrize("action", [0, 27, 64, 65, -1])
def test_an_illegal_action_can_raise_and_leave_the_game_as_it_is(action: int) -> None:
    env = make(illegal_action="raise")
    env.reset()
    with pytest.raises(IllegalMoveError, match=r"not legal for black in .* legal: d3 c4 f5 e6"):
        env.step(action)
    assert env.position == Position()
    assert not env.step(19)[2]


@pytest.mark.parametrize("action", [19.0, "d3", None, np.array([19, 20])])
def test_an_action_that_is_no_integer_is_a_type_error(action: Any) -> None:
    env = make()
    env.reset()
    with pytest.raises(TypeError, match="an action is an integer from 0 to 64, the pass, not"):
        env.step(action)
    assert env.position == Position()


@pytest.mark.parametrize("kind", [int, np.int64, np.int32, np.uint8, np.array])
def test_any_integer_is_an_action(kind: Callable[[int], Any]) -> None:
    env = make(opponent=None)
    env.reset()
    env.step(kind(19))
    assert env.position == Position().play(19)


# Seeds


@pytest.mark.parametrize("opponent", BASELINES)
def test_equal_seeds_give_equal_episodes(opponent: str) -> None:
    env = make(opponent=opponent, color="random")
    episodes = {seed: play_out(env, seed=seed)[0] for seed in range(5)}
    assert episodes[3] == play_out(make(opponent=opponent, color="random"), seed=3)[0]
    assert len({tuple(episode) for episode in episodes.values()}) > 1


def test_episodes_after_one_seed_differ_and_repeat_as_a_whole() -> None:
    def episodes() -> list[list[int]]:
        env = make()
        env.reset(seed=9)
        return [play_out(env)[0] for _ in range(3)]

    assert episodes() == episodes()
    assert len({tuple(episode) for episode in episodes()}) > 1


class Outside:
    """A compiled opponent that environments do not know for one."""

    name = "outside"

    def __init__(self, inside: str) -> None:
        self.choose = BASELINES[inside].choose


@pytest.mark.parametrize("name", BASELINES)
def test_an_opponent_by_name_plays_as_one_that_answers_many_games(name: str) -> None:
    for seed in range(3):
        assert play_out(make(opponent=name), seed=seed)[0] == play_out(make(opponent=Outside(name)), seed=seed)[0]


def test_an_opponent_cannot_change_the_game() -> None:
    kept: list[np.ndarray] = []

    class Vandal:
        name = "vandal"

        def choose(self, variant: Variant, boards: np.ndarray, *rest: np.ndarray) -> None:
            BASELINES["greedy"].choose(variant, boards, *rest)
            boards[:] = 0
            kept.extend(rest)
            for array in kept[:-3]:
                array[:] = 0

    assert play_out(make(opponent="greedy"), seed=1)[0] == play_out(make(opponent=Vandal()), seed=1)[0]


@pytest.mark.parametrize("answer", [None, 2.0, "d3", True])
def test_an_opponents_answer_that_is_no_integer_is_refused(answer: object) -> None:
    env = make(opponent=lambda position, rng: answer)
    env.reset()
    with pytest.raises(TypeError, match="a move is an integer"):
        env.step(19)
    with pytest.raises(ResetNeeded, match="broken off by an error"):
        env.step(19)


@pytest.mark.parametrize("answer", [-1, 65, 1 << 70])
def test_an_opponents_move_off_the_board_names_it(answer: int) -> None:
    def lost(position: Position, rng: np.random.Generator) -> int:
        return answer

    lost.name = "the lost one"
    env = make(opponent=lost)
    env.reset()
    with pytest.raises(IllegalMoveError, match=f"opponent the lost one: move {answer} is not legal"):
        env.step(19)


def test_a_second_game_shows_no_move_of_the_first() -> None:
    env = make(opponent=None, render_mode="ansi")
    env.reset()
    env.step(19)
    assert "d3" in env.render()
    env.reset()
    assert "d3" not in env.render()


def test_an_error_while_a_board_is_drawn_does_not_hand_over_the_other_side(monkeypatch: pytest.MonkeyPatch) -> None:
    env = make(render_mode="human")
    env.reset()

    def fail(*words: object, **settings: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("builtins.print", fail)
    with pytest.raises(BrokenPipeError):
        env.step(19)
    monkeypatch.undo()
    with pytest.raises(ResetNeeded, match="broken off by an error"):
        env.step(18)


def test_errors_reach_another_process_whole() -> None:
    for error in (UnknownNameError("opponent", "gredy", ["greedy"], "advice"), IllegalMoveError("a1")):
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_pool_draws_an_opponent_for_each_game() -> None:
    asked = []

    def player(name: str) -> PositionOpponent:
        def choose(position: Position, rng: np.random.Generator) -> int:
            asked.append(name)
            return position.legal_moves[0]

        return choose

    def draw() -> list[int]:
        env = make(opponent=[player("a"), player("b"), player("c")])
        env.reset(seed=1)
        drawn = []
        for _ in range(60):
            asked.clear()
            _, info = env.reset()
            env.step(int(info["action_mask"].argmax()))
            drawn.append(info["opponent"])
            assert asked == ["abc"[info["opponent"]]]
        return drawn

    drawn = draw()
    assert min(drawn.count(index) for index in range(3)) > 8
    assert draw() == drawn


def test_a_league_takes_in_a_player_at_the_next_reset() -> None:
    env = make(opponent=["random"])
    _, info = env.reset(seed=1)
    env.unwrapped.set_opponent(["random", "greedy"])
    while not env.step(int(env.unwrapped.action_masks().argmax()))[2]:
        pass
    assert info["opponent"] == 0
    assert {env.reset()[1]["opponent"] for _ in range(20)} == {0, 1}
    for other in ("greedy", None, []):
        with pytest.raises(ValueError, match="opponent"):
            env.unwrapped.set_opponent(other)


@pytest.mark.parametrize(("opponent", "error"), [([], ValueError), ([3], TypeError), (["random", "gredy"], ValueError)])
def test_a_pool_is_checked_when_it_is_given(opponent: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        make(opponent=opponent)


def test_a_random_color_is_drawn_at_each_reset_by_the_seed() -> None:
    env = make(color="random")
    env.reset(seed=4)
    colors = [env.reset()[1]["to_play"] for _ in range(40)]
    assert 8 < colors.count("white") < 32
    env.reset(seed=4)
    assert colors == [env.reset()[1]["to_play"] for _ in range(40)]


# What reset takes


@pytest.mark.parametrize("as_text", [True, False])
def test_a_game_can_begin_anywhere(as_text: bool) -> None:
    position = Game.from_transcript("f5d6c3").position  # white to move
    env = make(opponent=None)
    _, info = env.reset(options={"position": str(position) if as_text else position})
    assert env.position == position
    assert info["to_play"] == "white"


def test_the_opponent_moves_in_reset_where_it_is_to_move() -> None:
    _, info = (env := make(color="white")).reset(seed=0)
    assert (info["to_play"], env.position.num_empties) == ("white", 59)
    position = Game.from_transcript("f5d6c3").position
    _, info = (env := make()).reset(options={"position": position})
    assert (info["to_play"], env.position.num_empties) == ("black", position.num_empties - 1)
    _, info = (env := make()).reset(options={"position": position, "color": "white"})
    assert (info["to_play"], env.position) == ("white", position)


def test_the_color_of_reset_holds_for_one_game() -> None:
    env = make()
    assert env.reset(options={"color": "white"})[1]["to_play"] == "white"
    assert env.reset()[1]["to_play"] == "black"


def test_a_blocked_mover_may_begin_and_can_only_pass() -> None:
    env = make(variant="othello-4x4")
    observation, _ = env.reset(options={"position": "OX-------------- X"})
    assert np.flatnonzero(observation["action_mask"]).tolist() == [16]
    _, _, terminated, _, info = env.step(16)  # white takes the last black disc
    assert (terminated, info["discs"]) == (True, {"black": 0, "white": 3})


def test_an_opponent_that_is_blocked_passes_in_reset() -> None:
    env = make(variant="othello-4x4", color="white")
    _, info = env.reset(options={"position": "OX-------------- X"})
    assert np.flatnonzero(info["action_mask"]).tolist() == [2]
    assert info["to_play"] == "white"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"position": "XXXX------------ X"}, "already over"),
        ({"position": "XO-------------- X"}, "first move ends the game"),
        ({"position": "XO X"}, "found 2 squares, expected 16"),
        ({"position": Position()}, "the position is one of othello, the environment of othello-4x4"),
        ({"postion": ""}, "unknown option of reset 'postion'; did you mean position?"),
        ({"color": "whit"}, "unknown color 'whit'; did you mean white?"),
    ],
)
def test_what_no_game_can_begin_with_is_refused(options: dict[str, Any], sentence: str) -> None:
    env = make(variant="othello-4x4", color="white")
    with pytest.raises(ValueError, match=re.escape(sentence)):
        env.reset(options=options)


# What make takes


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"variant": "othelo"}, "unknown variant 'othelo'; did you mean othello"),
        ({"opponent": "gredy"}, "unknown opponent 'gredy'; did you mean greedy?"),
        ({"color": "red"}, "unknown color 'red'; there are: black, random, white"),
        ({"reward": "scores"}, "unknown reward 'scores'; did you mean score"),
        ({"illegal_action": "rise"}, "unknown illegal_action 'rise'; did you mean raise?"),
        ({"opponent": "collections:Countr"}, "unknown factory in collections 'Countr'; did you mean Counter?"),
    ],
)
def test_unknown_names_are_refused_with_the_near_misses(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UnknownNameError, match=re.escape(sentence)):
        make(**arguments)


def test_an_unknown_render_mode_is_refused_with_the_near_misses() -> None:
    with pytest.raises(UnknownNameError, match="unknown render mode 'rgb'; did you mean rgb_array"):
        ReversiEnv(render_mode="rgb")


def test_a_color_without_an_opponent_is_refused() -> None:
    with pytest.raises(ValueError, match="with opponent=None the caller moves both sides"):
        make(opponent=None, color="white")


def test_an_opponent_can_be_named_by_its_factory(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("a_module_of_bots")
    module.__dict__.update(first=lambda: lambda position, rng: position.legal_moves[0], nothing=lambda: None)
    monkeypatch.setitem(sys.modules, "a_module_of_bots", module)
    env = make(opponent="a_module_of_bots:first")
    env.reset()
    env.step(19)
    assert env.position == Position().play(19).play(Position().play(19).legal_moves[0])
    with pytest.raises(TypeError, match="the factory made None, which cannot be called"):
        make(opponent="a_module_of_bots:nothing")
    with pytest.raises(TypeError, match=r"the factory is 3\.14.*, which cannot be called"):
        make(opponent="math:pi")


def test_a_module_that_cannot_be_imported_is_named() -> None:
    with pytest.raises(ValueError, match="opponent 'no_such_module:bot': cannot import 'no_such_module'"):
        make(opponent="no_such_module:bot")
    with pytest.raises(ValueError, match="opponent ':bot': cannot import ''"):
        make(opponent=":bot")


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"opponent": 3}, "an opponent is a name, a callable .* or a BatchOpponent, not 3"),
        ({"variant": 8}, "a variant is a Variant or the name of one, not 8"),
    ],
)
def test_a_setting_of_a_wrong_type_is_refused_at_once(setting: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence):
        make(**setting)


def test_a_position_of_a_wrong_type_is_refused() -> None:
    with pytest.raises(TypeError, match="the option position is a Position or the text of one, not 3"):
        make().reset(options={"position": 3})


# Faults of an opponent


def test_an_opponents_illegal_move_is_told_with_its_name() -> None:
    def stubborn(position: Position, rng: np.random.Generator) -> int:
        return 0

    env = make(opponent=stubborn)
    env.reset()
    with pytest.raises(
        IllegalMoveError, match=r"opponent .*stubborn: a1 is not legal for white in .*; legal: c3 e3 c5"
    ):
        env.step(19)
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step(19)


@pytest.mark.parametrize("answer", [None, "c5", 34.0])
def test_an_opponents_answer_that_is_no_move_is_told_with_its_name(answer: Any) -> None:
    def dreamer(position: Position, rng: np.random.Generator) -> Any:
        return answer

    env = make(opponent=dreamer)
    env.reset()
    with pytest.raises(TypeError, match=rf"opponent .*dreamer answered {answer!r} in .*; a move is an integer"):
        env.step(19)


# Calls at the wrong time


@pytest.mark.parametrize(
    "call",
    [
        lambda env: env.step(19),
        lambda env: env.render(),
        lambda env: env.action_masks(),
        lambda env: env.position,
    ],
)
def test_calls_before_reset_say_so(call: Callable[[ReversiEnv], Any]) -> None:
    with pytest.raises(ResetNeeded, match=re.escape("no game has begun: call reset() first")):
        call(make(render_mode="ansi"))


def test_a_step_after_the_end_says_so() -> None:
    env = make(variant="othello-4x4")
    play_out(env, seed=1)
    with pytest.raises(ResetNeeded, match=re.escape("the game has ended: call reset() before step()")):
        env.step(0)
    assert env.position.is_over
    assert not env.action_masks().any()


# Arrays


def test_arrays_handed_out_are_new_each_time_and_the_callers_own() -> None:
    env = make(opponent=None)
    handed_out = []
    observation, info = env.reset()
    for move in game_moves("f5d6c3d3"):
        handed_out += [observation["observation"], observation["action_mask"], env.action_masks()]
        for array in (*handed_out, info["action_mask"]):
            array[...] = 7
        observation, _, _, _, info = env.step(move)
        assert not any(np.shares_memory(old, new) for old in handed_out for new in observation.values())
    planes, mask = observed(list(env.position.board), env.position.side, env.variant)
    np.testing.assert_array_equal(observation["observation"], planes)
    np.testing.assert_array_equal(env.action_masks(), mask)


def test_masks_drive_gymnasiums_own_sampling_through_wrappers() -> None:
    env = gymnasium.make("reversi_env:Reversi-v0", variant="reversi-1883", illegal_action="raise")
    _, info = env.reset(seed=2)
    terminated = False
    while not terminated:
        np.testing.assert_array_equal(env.get_wrapper_attr("action_masks")(), info["action_mask"])
        _, _, terminated, _, info = env.step(env.action_space.sample(mask=info["action_mask"]))


def test_gymnasiums_vectors_of_environments_carry_the_masks() -> None:
    envs = gymnasium.make_vec("reversi_env:Reversi-v0", num_envs=3, variant="othello-4x4", opponent="greedy")
    observations, infos = envs.reset(seed=5)
    for _ in range(30):
        assert observations["observation"].shape == (3, 2, 4, 4)
        np.testing.assert_array_equal(infos["action_mask"], observations["action_mask"])
        actions = observations["action_mask"].argmax(axis=1)
        observations, _, _, _, infos = envs.step(actions)
    envs.close()


# Pictures


def test_ansi_returns_the_board_in_colors() -> None:
    env = make(render_mode="ansi", opponent=None)
    env.reset()
    env.step(19)
    drawing = env.render()
    assert isinstance(drawing, str)
    assert drawing.count("●") == 5
    assert "\x1b[" in drawing
    assert "black d3, white to move" in drawing


def test_human_prints_each_position_where_it_is_reached(capsys: pytest.CaptureFixture[str]) -> None:
    env = make(render_mode="human", opponent=scripted(game_moves("d3c3"), Position()))
    env.reset()
    env.step(19)
    assert env.render() is None
    printed = capsys.readouterr().out
    assert "\x1b" not in printed  # since the output is no terminal
    after = [Position(), Position().play(19), Position().play(19).play(18)]
    assert [Position.from_text(board) for board in printed.split("\n\n")[:-1]] == after


def test_rgb_array_is_a_picture_of_the_position() -> None:
    env = make(render_mode="rgb_array", opponent=None)
    env.reset()
    before = env.render()
    env.step(19)
    after = env.render()
    assert isinstance(before, np.ndarray)
    assert isinstance(after, np.ndarray)
    assert before.shape == (512, 512, 3)
    assert before.dtype == np.uint8
    assert (before != after).any()


def test_a_finished_game_and_a_pass_can_be_drawn() -> None:
    env = make(variant="othello-4x4", render_mode="ansi", opponent=None)
    env.reset(options={"position": "OX-------------- X"})
    env.step(16)
    assert "black pass, white to move" in str(env.render())
    env.step(2)
    assert "white c1, the game is over" in str(env.render())


def test_rendering_without_a_mode_warns_and_returns_nothing() -> None:
    env = make()
    env.reset()
    with pytest.warns(UserWarning, match="without a render mode"):
        assert env.render() is None
