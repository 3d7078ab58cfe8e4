"""The wrappers: what they show is what the rule book's boards say, and the masks stay those of the actions taken."""

import math
import re
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from reversi_env import IllegalMoveError, Position, ReversiEnv, Variant
from reversi_env.symmetry import transform, transform_action
from reversi_env.wrappers import CanonicalSymmetry, DiscShaping, FormatObservation, HistoryPlanes
from tests import oracle

Env = gymnasium.Env[Any, Any]

WRAPPERS: dict[str, Callable[[Env], Env]] = {
    "format": FormatObservation,
    "flat": lambda env: FormatObservation(env, flat=True, dtype="float32", key="observations"),
    "alone": lambda env: FormatObservation(env, dtype="uint8", legal_plane=True, key=None),
    "history": HistoryPlanes,
    "canonical": CanonicalSymmetry,
    "shaping": lambda env: DiscShaping(env, gamma=0.9),
    "all": lambda env: FormatObservation(
        CanonicalSymmetry(HistoryPlanes(DiscShaping(env, gamma=0.9))), legal_plane=True
    ),
}


def make(**arguments: Any) -> Env:
    return gymnasium.make("reversi_env:Reversi-v0", **arguments)


def random_action(mask: np.ndarray, rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(mask)))


def planes_of(board: oracle.Board, side: str) -> np.ndarray:
    """Returns the two planes that `side` sees, [2, size, size]."""
    size = math.isqrt(len(board))
    return np.reshape([[cell == own for cell in board] for own in (side, oracle.other(side))], (2, size, size))


def side_to_play(info: dict[str, Any]) -> str:
    return {"black": "X", "white": "O"}[info["to_play"]]


def board_of(env: Env) -> oracle.Board:
    assert isinstance(env.unwrapped, ReversiEnv)
    return list(env.unwrapped.position.board)


# All


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version.*")
@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.parametrize("opponent", ["random", None])
def test_gymnasiums_checker_finds_nothing(name: str, opponent: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    check_env(WRAPPERS[name](make(variant="othello-6x6", opponent=opponent)))


@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.parametrize("variant", Variant.NAMES)
@pytest.mark.parametrize("opponent", ["random", None])
def test_the_masks_hold_the_legal_actions_until_the_end(name: str, variant: str, opponent: str | None) -> None:
    env = WRAPPERS[name](make(variant=variant, opponent=opponent, color="black" if opponent is None else "random"))
    rng = np.random.default_rng(1)
    observation, info = env.reset(seed=1)
    terminated = False
    while not terminated:
        assert env.observation_space.contains(observation)
        masks = [info["action_mask"], env.get_wrapper_attr("action_masks")()]
        if isinstance(observation, dict):
            masks.append(observation["action_mask"])
        for mask in masks:
            assert mask.dtype == np.int8
            np.testing.assert_array_equal(mask, masks[0])
        num_legal = len(env.unwrapped.position.legal_moves)
        assert masks[0].sum() == num_legal
        observation, _, terminated, _, info = env.step(random_action(masks[0], rng))
        assert "illegal_action" not in info
    assert env.observation_space.contains(observation)
    assert not env.get_wrapper_attr("action_masks")().any()


@pytest.mark.parametrize("name", WRAPPERS)
def test_the_last_wrapper_hands_its_masks_to_whoever_asks(name: str) -> None:
    env = WRAPPERS[name](make())
    _, info = env.reset()
    np.testing.assert_array_equal(env.action_masks(), info["action_mask"])
    env.action_masks()[:] = 0
    assert env.action_masks().any()


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_spec_makes_the_wrappers_again(name: str) -> None:
    env = WRAPPERS[name](make(variant="othello-6x6"))
    assert env.spec is not None
    again = gymnasium.make(env.spec)
    assert again.observation_space == env.observation_space
    assert str(again) == str(env)


def test_many_games_can_wear_them() -> None:
    wrappers = [HistoryPlanes, CanonicalSymmetry, lambda env: FormatObservation(env, dtype="float32", flat=True)]
    envs = gymnasium.make_vec(
        "reversi_env:Reversi-v0", num_envs=3, vectorization_mode="sync", wrappers=wrappers, variant="othello-4x4"
    )
    observation, info = envs.reset(seed=1)
    assert observation["observation"].shape == (3, 8 * 16)
    assert observation["observation"].dtype == np.float32
    np.testing.assert_array_equal(info["action_mask"], observation["action_mask"])


@pytest.mark.parametrize("wrapper", [FormatObservation, HistoryPlanes, CanonicalSymmetry])
def test_a_wrapper_that_finds_no_planes_says_where_it_belongs(wrapper: Callable[[Env], Env]) -> None:
    for inner in (FormatObservation(make(), flat=True), FormatObservation(make(), key=None)):
        with pytest.raises(ValueError, match=r"needs the planes of Reversi-v0, .* put FormatObservation around it"):
            wrapper(inner)


# FormatObservation


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32", np.float64])
@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("legal_plane", [True, False])
@pytest.mark.parametrize("key", ["observation", "observations", None])
def test_each_form_holds_the_same_board(dtype: Any, flat: bool, legal_plane: bool, key: str | None) -> None:
    env = FormatObservation(make(variant="othello-6x6"), dtype=dtype, flat=flat, legal_plane=legal_plane, key=key)
    observation, info = env.reset(seed=3)
    rng = np.random.default_rng(3)
    for _ in range(5):
        board, side = board_of(env), side_to_play(info)
        legal = oracle.legal_squares(board, side)
        expected = planes_of(board, side)
        if legal_plane:
            expected = np.concatenate([expected, np.isin(np.arange(36), legal).reshape(1, 6, 6)])
        shown = observation if key is None else observation[key]
        assert shown.dtype == dtype
        np.testing.assert_array_equal(shown, expected.ravel() if flat else expected)
        if key is not None:
            assert set(observation) == {key, "action_mask"}
            assert np.flatnonzero(observation["action_mask"]).tolist() == legal
        observation, _, _, _, info = env.step(random_action(info["action_mask"], rng))


def test_a_pass_and_the_end_have_no_legal_squares() -> None:
    env = FormatObservation(make(variant="othello-4x4", opponent=None), legal_plane=True)
    observation, _ = env.reset(options={"position": "OX-------------- X"})
    assert (observation["observation"][2].sum(), observation["action_mask"].sum()) == (0, 1)
    env.step(16)
    observation, _, terminated, _, _ = env.step(2)
    assert terminated
    assert observation["observation"].sum() == 3


def test_the_masks_own_key_is_refused() -> None:
    with pytest.raises(ValueError, match="the key action_mask is the mask's"):
        FormatObservation(make(), key="action_mask")


# HistoryPlanes


@pytest.mark.parametrize("opponent", ["random", None])
@pytest.mark.parametrize("variant", ["othello-4x4", "reversi-1883"])
def test_history_is_seen_from_the_side_to_play_and_empty_before_the_game(variant: str, opponent: str | None) -> None:
    env = HistoryPlanes(make(variant=variant, opponent=opponent), num_positions=3)
    size, rng = Variant.named(variant).size, np.random.default_rng(4)
    for seed in range(3):
        observation, info = env.reset(seed=seed)
        seen = [np.zeros((2, size, size))] * 2
        boards, terminated = [board_of(env)], False
        while not terminated:
            observation, _, terminated, _, info = env.step(random_action(info["action_mask"], rng))
            boards.append(board_of(env))
            last = [planes_of(board, side_to_play(info)) for board in boards[::-1]]
            np.testing.assert_array_equal(observation["observation"], np.concatenate([*last, *seen][:3]))


def test_one_position_is_what_the_environment_shows() -> None:
    plain, stacked = make(), HistoryPlanes(make(), num_positions=1)
    np.testing.assert_array_equal(stacked.reset()[0]["observation"], plain.reset()[0]["observation"])


def test_earlier_observations_stay_as_they_were() -> None:
    env = HistoryPlanes(make(opponent=None))
    first, _ = env.reset()
    kept = first["observation"].copy()
    env.step(19)
    np.testing.assert_array_equal(first["observation"], kept)


def test_history_refuses_what_it_cannot_stack() -> None:
    with pytest.raises(ValueError, match="num_positions must be at least 1, the position now, got 0"):
        HistoryPlanes(make(), num_positions=0)
    with pytest.raises(ValueError, match="stacks the two planes of int8 of Reversi-v0, but was given 3 of int8"):
        HistoryPlanes(FormatObservation(make(), legal_plane=True))


# CanonicalSymmetry


@pytest.mark.parametrize("size", [4, 6, 8, 10])
@pytest.mark.parametrize("num_positions", [None, 2])
def test_all_eight_boards_are_shown_and_played_as_one(size: int, num_positions: int | None) -> None:
    start = Position(Variant(size=size))
    rng = np.random.default_rng(6)
    for _ in range(size // 2 + 3):  # away from the start, which has symmetries of its own
        if not start.is_over:
            start = start.play(random_action(start.action_mask, rng))
    games = []
    for k in range(8):
        env = make(variant=start.variant, opponent=None)
        env = CanonicalSymmetry(env if num_positions is None else HistoryPlanes(env, num_positions))
        board = "".join(oracle.symmetry(list(start.board), k))
        games.append((env, *env.reset(options={"position": f"{board} {start.text[-1]}"})))
    terminated = False
    while not terminated:
        _, shown, info = games[0]
        for env, observation, own_info in games:
            for key, array in shown.items():
                np.testing.assert_array_equal(observation[key], array)
            planes = planes_of(board_of(env), side_to_play(own_info))
            np.testing.assert_array_equal(transform(planes, own_info["symmetry"]), observation["observation"][:2])
        action = random_action(info["action_mask"], rng)
        steps = [env.step(action) for env, *_ in games]
        games = [(game[0], step[0], step[4]) for game, step in zip(games, steps, strict=True)]
        assert len({step[1:3] for step in steps}) == 1
        terminated = steps[0][2]


def test_an_action_is_played_on_the_square_that_it_was_shown_for() -> None:
    env = CanonicalSymmetry(make(opponent=None))
    _, info = env.reset()
    rng = np.random.default_rng(8)
    for _ in range(30):
        action = random_action(info["action_mask"], rng)
        before, symmetry = board_of(env), info["symmetry"]
        _, _, _, _, info = env.step(action)
        played = [square for square in range(64) if before[square] == "-" != board_of(env)[square]]
        assert [transform_action(square, symmetry, 8) for square in played] == [action][: len(played)]


def test_an_illegal_action_is_reported_as_it_was_given() -> None:
    env, rng = CanonicalSymmetry(make(opponent=None, disable_env_checker=True)), np.random.default_rng(8)
    symmetries = set()
    for action in (*range(9), 64, 65, -1, 10**30):
        _, info = env.reset()
        for _ in range(4):
            _, _, _, _, info = env.step(random_action(info["action_mask"], rng))
        if action not in np.flatnonzero(info["action_mask"]):
            symmetries.add(info["symmetry"])
            assert env.step(action)[4]["illegal_action"] == action
    assert len(symmetries) > 2


def test_what_is_no_action_is_refused() -> None:
    env = CanonicalSymmetry(make(illegal_action="raise", disable_env_checker=True))
    env.reset()
    with pytest.raises(TypeError, match=r"an action is an integer from 0 to 64, the pass, not 19\.0"):
        env.step(19.0)
    with pytest.raises(IllegalMoveError):
        env.step(0)


# DiscShaping


def potential(board: oracle.Board, side: str, variant: Variant, scale: float) -> float:
    differential = board.count(side) - board.count(oracle.other(side))
    return scale * {"most": 1, "fewest": -1}[variant.goal] * differential / len(board)


@pytest.mark.parametrize("variant", ["othello-4x4", "anti-reversi"])
@pytest.mark.parametrize("opponent", ["random", None])
@pytest.mark.parametrize("color", ["black", "white"])
def test_each_step_adds_the_difference_of_potentials(variant: str, opponent: str | None, color: str) -> None:
    gamma, scale, rng = 0.9, 2.0, np.random.default_rng(7)
    arguments = {"variant": variant, "opponent": opponent, **({"color": color} if opponent else {})}
    env, plain = DiscShaping(make(**arguments), gamma, scale), make(**arguments)
    for seed in range(4):
        _, info = env.reset(seed=seed)
        plain.reset(seed=seed)
        terminated, total, discount = False, 0.0, 1.0
        first = potential(board_of(env), side_to_play(info), Variant.named(variant), scale)
        while not terminated:
            side, before = side_to_play(info), board_of(env)
            action = random_action(info["action_mask"], rng)
            _, shaped, terminated, _, info = env.step(action)
            _, reward, *_ = plain.step(action)
            after = 0 if terminated else potential(board_of(env), side, Variant.named(variant), scale)
            added = gamma * after - potential(before, side, Variant.named(variant), scale)
            assert shaped == pytest.approx(reward + added)
            total += discount * added
            discount *= gamma
        if opponent is not None:  # one learner's terms cancel one another, but for the first
            assert total == pytest.approx(-first)


@pytest.mark.parametrize("goal", ["most", "fewest"])
def test_shaping_leaves_the_best_moves_of_both_sides_the_best(goal: str) -> None:
    variant, gamma, scale = Variant(size=4, goal=goal), 0.8, 3.0
    plain = make(variant=variant, opponent=None, reward="score")
    shaped = DiscShaping(make(variant=variant, opponent=None, reward="score"), gamma, scale)

    def values(env: Env, position: Position) -> dict[int, float]:
        """Returns the value of each move for the mover, when both play to the end for these rewards."""
        found = {}
        for move in position.legal_moves:
            env.reset(options={"position": position})
            _, reward, terminated, _, _ = env.step(move)
            rest = 0.0 if terminated else max(values(env, position.play(move)).values())
            found[move] = float(reward) - gamma * rest
        return found

    rng = np.random.default_rng(9)
    for _ in range(8):
        position = Position(variant)
        while position.num_empties > 6 and not position.is_over:
            position = position.play(random_action(position.action_mask, rng))
        if position.is_over:
            continue
        side = position.text[-1]
        ahead = potential(list(position.board), side, variant, scale)
        expected = {move: value - ahead for move, value in values(plain, position).items()}
        assert values(shaped, position) == pytest.approx(expected)


def test_shaping_refuses_what_it_cannot_shape() -> None:
    with pytest.raises(ValueError, match=re.escape("gamma is the learner's discount, from 0 to 1, got 1.5")):
        DiscShaping(make(), gamma=1.5)
    with pytest.raises(TypeError, match="counts the discs of a ReversiEnv"):
        DiscShaping(gymnasium.make("CartPole-v1"), gamma=0.9)


def test_history_is_of_positions_as_they_lie() -> None:
    with pytest.raises(ValueError, match="put CanonicalSymmetry around this"):
        HistoryPlanes(CanonicalSymmetry(gymnasium.make("Reversi-v0")))
    with pytest.raises(ValueError, match="2 of float32"):
        HistoryPlanes(FormatObservation(gymnasium.make("Reversi-v0"), dtype="float32"))
