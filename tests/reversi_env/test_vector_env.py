"""The vector environment against Gymnasium's own `SyncVectorEnv` of single environments, and against the oracle."""

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import reversi_env  # noqa: F401 (registers Reversi-v0)
from reversi_env.env import ReversiEnv
from reversi_env.game import Game
from reversi_env.geometry import SIZES
from reversi_env.naming import UnknownNameError
from reversi_env.opponents import BASELINES
from reversi_env.playouts import random_games
from reversi_env.position import IllegalMoveError, Position
from reversi_env.variant import GOALS, SCORINGS, STARTS, Variant
from reversi_env.vector_env import ReversiVectorEnv
from tests import oracle

NUM_ENVS = 7
MODES = list(AutoresetMode)
VARIANTS = [
    Variant(4),
    Variant(6, "parallel", "fewest", "tournament"),
    Variant(8),
    Variant(8, "free"),
    Variant(10, scoring="tournament"),
]


def last_legal(position: Position, rng: np.random.Generator) -> int:
    """Plays the last legal move: an opponent from outside that draws nothing."""
    return position.legal_moves[-1]


def any_legal(position: Position, rng: np.random.Generator) -> int:
    """Draws a legal move: an opponent from outside that draws."""
    return int(rng.choice(position.legal_moves))


def by_color(position: Position, rng: np.random.Generator) -> int:
    """Plays the first legal move as black and the last as white."""
    return position.legal_moves[0 if position.is_black_to_move else -1]


def name_of(opponent: Any) -> str:
    """Returns the same at every collection of tests, which what `str` says of a function is not."""
    if isinstance(opponent, list):
        return "+".join(map(name_of, opponent))
    return str(getattr(opponent, "__name__", opponent))


OPPONENTS: list[Any] = [*BASELINES, None, last_legal, any_legal, by_color, ["greedy", by_color, "random"], ["greedy"]]


def assert_equal(found: Any, expected: Any, where: str) -> None:
    """Compares what steps return, arrays of objects and nested dictionaries included."""
    assert type(found) is type(expected), where
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key in expected:
            assert_equal(found[key], expected[key], f"{where}.{key}")
    elif isinstance(expected, tuple) or (isinstance(expected, np.ndarray) and expected.dtype == object):
        for index, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_equal(one, other, f"{where}[{index}]")
    elif isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype, where
        np.testing.assert_array_equal(found, expected, where)
    else:
        assert found == expected, where


def choose(masks: np.ndarray, rng: np.random.Generator, share_illegal: float = 0.0) -> np.ndarray:
    """Draws a legal action for each game, now and then any action, or one off the board; zero where none is legal."""
    actions = np.array([rng.choice(np.flatnonzero(mask)) if mask.any() else 0 for mask in masks])
    strange = rng.random(len(masks)) < share_illegal
    return np.where(strange, rng.integers(-2, masks.shape[1] + 2, len(masks)), actions)


def pair(mode: AutoresetMode, **settings: Any) -> tuple[ReversiVectorEnv, SyncVectorEnv]:
    single = [lambda: ReversiEnv(**settings)] * NUM_ENVS
    return ReversiVectorEnv(NUM_ENVS, autoreset_mode=mode, **settings), SyncVectorEnv(single, autoreset_mode=mode)


def follow(ours: Any, theirs: Any, num_steps: int, share_illegal: float = 0.0) -> None:
    """Steps both with the same actions and compares all that they return."""
    assert_equal(ours.reset(seed=5), theirs.reset(seed=5), "reset")
    masks = theirs.reset(seed=5)[0]["action_mask"]
    ours.reset(seed=5)
    rng = np.random.default_rng(6)
    for step in range(num_steps):
        actions = choose(masks, rng, share_illegal)
        found, expected = ours.step(actions), theirs.step(actions)
        assert_equal(found, expected, f"step {step}")
        masks, over = expected[0]["action_mask"], expected[2]
        if ours.metadata["autoreset_mode"] is AutoresetMode.DISABLED and over.any():
            found, expected = (env.reset(options={"reset_mask": over}) for env in (ours, theirs))
            assert_equal(found, expected, f"reset after step {step}")
            masks = expected[0]["action_mask"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_games_are_those_of_single_environments(variant: Variant, mode: AutoresetMode) -> None:
    follow(*pair(mode, variant=variant, opponent="random", color="random", reward="score"), 3 * variant.size**2)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("opponent", OPPONENTS, ids=name_of)
def test_opponents_play_as_in_single_environments(opponent: Any, mode: AutoresetMode) -> None:
    color = "black" if opponent is None else "random"
    follow(*pair(mode, variant=Variant(6), opponent=opponent, color=color), 80)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("opponent", ["greedy", by_color, None], ids=name_of)
def test_resets_in_the_middle_are_those_of_single_environments(opponent: Any, mode: AutoresetMode) -> None:
    variant = Variant(6, "free")
    ours, theirs = pair(mode, variant=variant, opponent=opponent)
    rng = np.random.default_rng(4)
    assert_equal(ours.reset(seed=3), theirs.reset(seed=3), "the first reset")
    for _ in range(20):
        options: dict[str, Any] = {}
        if rng.random() < 0.5:
            options["reset_mask"] = rng.random(NUM_ENVS) < 0.6
            options["reset_mask"][0] = True
        if rng.random() < 0.5:
            moves = random_games(Position(variant), 1, seed=int(rng.integers(1000))).moves[0, : rng.integers(20)]
            options["position"] = Game.from_moves(moves.tolist(), variant).position
        if rng.random() < 0.6 and opponent is not None:
            options["color"] = str(rng.choice(["black", "white", "random"]))
        seed = [None if rng.random() < 0.3 else int(rng.integers(1000)) for _ in range(NUM_ENVS)]
        found, expected = (env.reset(seed=seed, options=dict(options)) for env in (ours, theirs))
        assert_equal(found, expected, f"reset with {options}")
        for step in range(rng.integers(1, 6)):
            masks = ours.action_masks()
            if mode is AutoresetMode.DISABLED and not masks.any(axis=1).all():
                over = ~masks.any(axis=1)
                resets = (env.reset(options={"reset_mask": over}) for env in (ours, theirs))
                assert_equal(*resets, "reset of those that ended")
                masks = ours.action_masks()
            actions = choose(masks, rng)
            assert_equal(ours.step(actions), theirs.step(actions), f"step {step}")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("opponent", ["positional", any_legal, None], ids=name_of)
def test_illegal_actions_end_games_as_in_single_environments(opponent: Any, mode: AutoresetMode) -> None:
    follow(*pair(mode, variant=Variant(4), opponent=opponent, reward="score"), 60, share_illegal=0.2)


class Outside:
    """A compiled opponent that kernels do not know for one."""

    def __init__(self, inside: str) -> None:
        self.name = f"{inside} from outside"
        self.choose = BASELINES[inside].choose


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_an_opponent_in_the_kernel_plays_as_the_same_one_outside(variant: Variant, name: str) -> None:
    inside, outside = (
        ReversiVectorEnv(50, variant=variant, opponent=opponent, color="random") for opponent in (name, Outside(name))
    )
    rng = np.random.default_rng(2)
    assert_equal(inside.reset(seed=1), outside.reset(seed=1), "reset")
    masks = inside.action_masks()
    for step in range(60):
        actions = choose(masks, rng)
        found = inside.step(actions)
        assert_equal(found, outside.step(actions), f"step {step}")
        masks = found[0]["action_mask"]


def test_an_opponent_from_outside_answers_all_its_games_at_once() -> None:
    sizes = []

    class Counting:
        name = "counting"

        def choose(self, variant: Variant, boards: np.ndarray, *rest: np.ndarray) -> None:
            sizes.append(len(boards))
            BASELINES["random"].choose(variant, boards, *rest)

    envs = ReversiVectorEnv(64, opponent=["greedy", Counting()])
    _, infos = envs.reset(seed=3)
    for _ in range(4):
        envs.step(envs.action_masks().argmax(axis=1))
    assert sizes == [(infos["opponent"] == 1).sum()] * 4


@pytest.mark.parametrize("mode", MODES)
def test_seeds_of_single_games_and_their_later_games_repeat(mode: AutoresetMode) -> None:
    seeds = [7, 3, 7, 9]
    envs = ReversiVectorEnv(4, variant="othello-4x4", autoreset_mode=mode, color="random")

    def run() -> list[np.ndarray]:
        observations, _ = envs.reset(seed=seeds)
        seen = [observations["observation"]]
        for _ in range(30):
            observations, _, over, _, _ = envs.step(observations["action_mask"].argmax(axis=1))
            if mode is AutoresetMode.DISABLED and over.any():
                observations, _ = envs.reset(options={"reset_mask": over})
            seen.append(observations["observation"])
        return seen

    first, second = run(), run()
    envs.reset(seed=7)
    assert envs.np_random_seed == 7
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(np.array(first)[:, 0], np.array(first)[:, 2])
    assert (np.array(first)[:, 0] != np.array(first)[:, 3]).any()


def test_nothing_that_is_returned_is_changed_later() -> None:
    envs = ReversiVectorEnv(8, variant="othello-4x4")
    returned = [envs.reset(seed=1)]
    for _ in range(20):
        returned.append(envs.step(envs.action_masks().argmax(axis=1)))
    copies = [repr(one) for one in returned]
    for _ in range(20):
        envs.step(envs.action_masks().argmax(axis=1))
    assert [repr(one) for one in returned] == copies


def test_an_ended_game_awaits_its_reset_where_autoreset_is_off() -> None:
    envs = ReversiVectorEnv(2, opponent=None, autoreset_mode="Disabled", illegal_action="terminate")
    envs.reset(seed=1)
    envs.step(np.array([19, 0]))
    with pytest.raises(ResetNeeded, match="these games have ended: 1;"):
        envs.step(np.array([18, 0]))
    with pytest.raises(ValueError, match="reset_mask is a bool array"):
        envs.reset(options={"reset_mask": [True, False]})
    envs.reset(options={"reset_mask": np.array([False, True])})
    observations, *_ = envs.step(np.array([18, 19]))
    assert observations["observation"][0].sum() == 6
    assert observations["observation"][1].sum() == 5


def test_an_illegal_action_that_raises_leaves_all_games_as_they_are() -> None:
    envs = ReversiVectorEnv(3, opponent=None, illegal_action="raise")
    envs.reset(seed=1)
    before = envs.batch.observation.copy()
    with pytest.raises(IllegalMoveError, match="game 1: a1 is not legal"):
        envs.step(np.array([19, 0, 19]))
    np.testing.assert_array_equal(envs.batch.observation, before)
    envs.step(np.array([19, 19, 19]))


def test_an_opponent_that_breaks_off_a_step_makes_a_reset_necessary() -> None:
    def broken(position: Position, rng: np.random.Generator) -> int:
        raise RuntimeError("out of order")

    envs = ReversiVectorEnv(2, opponent=broken)
    envs.reset(seed=1)
    with pytest.raises(RuntimeError, match="out of order"):
        envs.step(np.array([19, 19]))
    with pytest.raises(ResetNeeded):
        envs.step(np.array([19, 19]))


def test_an_opponents_illegal_move_names_it() -> None:
    envs = ReversiVectorEnv(2, opponent=lambda position, rng: 0)
    envs.reset(seed=1)
    with pytest.raises(IllegalMoveError, match=r"opponent .*lambda.*: a1 is not legal for white"):
        envs.step(np.array([19, 19]))


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"num_envs": 0}, ValueError),
        ({"autoreset_mode": "samestep"}, UnknownNameError),
        ({"render_mode": "human"}, UnknownNameError),
        ({"opponent": None, "color": "white"}, ValueError),
        ({"variant": "othelo"}, UnknownNameError),
        ({"render_pixels": 3}, ValueError),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        gymnasium.make_vec("Reversi-v0", **{"num_envs": 2, **settings})


@pytest.mark.parametrize("actions", [[19], [[19, 19]], [19.0, 19.0], ["d3", "d3"]])
def test_actions_of_another_shape_or_type_are_refused(actions: list[Any]) -> None:
    envs = ReversiVectorEnv(2, opponent=None)
    envs.reset(seed=1)
    with pytest.raises(ValueError, match="actions are one integer a game"):
        envs.step(np.array(actions))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_actions_of_any_integer_type_are_the_same(dtype: type) -> None:
    envs = ReversiVectorEnv(2, opponent=None)
    envs.reset(seed=1)
    observations, *_ = envs.step(np.array([19, 26], dtype))
    assert (observations["observation"].sum(axis=(1, 2, 3)) == 5).all()


def test_render_shows_every_game_with_its_last_move() -> None:
    envs = gymnasium.make_vec("Reversi-v0", num_envs=2, opponent=None, render_mode="ansi")
    envs.reset(seed=1)
    envs.step(np.array([19, 26]))
    first, second = envs.render()
    assert "black d3" in first
    assert "black c4" in second
    envs.reset(options={"reset_mask": np.array([True, False])})
    first, second = envs.render()
    assert "d3" not in first
    assert "black c4" in second
    pictures = gymnasium.make_vec("Reversi-v0", num_envs=2, render_mode="rgb_array", render_pixels=96)
    pictures.reset(seed=1)
    assert [picture.shape for picture in pictures.render()] == [(96, 96, 3)] * 2


def all_variants() -> Iterator[Variant]:
    """Gives every size × start, with goals and scorings in turn."""
    for size in SIZES:
        for index, start in enumerate(STARTS):
            yield Variant(size, start, GOALS[(index + size // 2) % 2], SCORINGS[index % 2])


def shown(board: oracle.Board, side: str) -> list[list[list[bool]]]:
    size = round(len(board) ** 0.5)
    planes = [[cell == color for cell in board] for color in (side, oracle.other(side))]
    return [[plane[row * size : (row + 1) * size] for row in range(size)] for plane in planes]


@pytest.mark.parametrize("variant", list(all_variants()), ids=lambda variant: variant.name)
def test_random_games_are_those_of_the_oracle(variant: Variant) -> None:
    free = variant.start == "free"
    start = oracle.start_board(variant.size, variant.start)
    envs = ReversiVectorEnv(3, variant=variant, opponent=None)
    observations, _ = envs.reset(seed=1)
    rng = np.random.default_rng(variant.size)
    games = [(start, "X")] * 3
    num_ended = 0
    while num_ended < 4:
        masks = observations["action_mask"]
        for (board, side), planes, mask in zip(games, observations["observation"], masks, strict=True):
            legal = oracle.legal_squares(board, side, free)
            assert np.flatnonzero(mask).tolist() == (legal or [variant.pass_move])
            assert planes.tolist() == shown(board, side)
        actions = choose(masks, rng)
        observations, rewards, terminations, _, infos = envs.step(actions)
        for index, ((board, side), action) in enumerate(zip(games, actions.tolist(), strict=True)):
            if action != variant.pass_move:
                board = oracle.play(board, side, action, free)
            is_over = oracle.is_over(board, free)
            assert terminations[index] == is_over
            games[index] = (start, "X") if is_over else (board, oracle.other(side))
            if is_over:
                num_ended += 1
                info = infos["final_info"]
                assert rewards[index] == oracle.result(board, side, variant.goal, variant.scoring)
                assert info["score"][index] == oracle.score(board, side, variant.goal, variant.scoring)
                black = oracle.result(board, "X", variant.goal, variant.scoring)
                assert info["winner"][index] == ("draw", "black", "white")[black]
                assert [info["discs"][color][index] for color in ("black", "white")] == [board.count(x) for x in "XO"]
                final = infos["final_obs"][index]
                assert final["observation"].tolist() == shown(board, oracle.other(side))
                assert not final["action_mask"].any()
            else:
                assert rewards[index] == 0
