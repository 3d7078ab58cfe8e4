"""The environments against agents: many games at once are those of single ones."""

from typing import Any

import numpy as np
import pytest

import agents
from agents import Agent, Decision
from reversi_env import Position, Variant


class Drawing(Agent):
    """Draws a move, and keeps the sizes of its batches."""

    name = "drawing"

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def select(self, position: Position, rng: np.random.Generator) -> Decision:
        return Decision(int(rng.choice(position.legal_moves)))

    def select_batch(self, positions: Any, rngs: Any) -> list[Decision]:
        self.sizes.append(len(positions))
        return super().select_batch(positions, rngs)


@pytest.mark.parametrize(
    "opponent",
    ["mobility", "alphabeta:depth=2", "zero-6x6:num_simulations=8", Drawing(), ["greedy", "mobility"]],
    ids=lambda opponent: opponent.name if isinstance(opponent, Drawing) else str(opponent),
)
def test_many_games_against_an_agent_are_those_of_single_environments(opponent: Any) -> None:
    settings: dict[str, Any] = {"variant": "othello-6x6", "color": "random"}
    envs = agents.make_vec(opponent, 5, autoreset_mode="Disabled", **settings)
    observations, _ = envs.reset(seed=3)
    singles = [agents.make_env(opponent, **settings) for _ in range(5)]
    shown = [env.reset(seed=3 + index)[0] for index, env in enumerate(singles)]
    for _ in range(8):
        for row, one in enumerate(shown):
            np.testing.assert_array_equal(observations["observation"][row], one["observation"])
            np.testing.assert_array_equal(observations["action_mask"][row], one["action_mask"])
        actions = observations["action_mask"].argmax(axis=1)
        observations, *_ = envs.step(actions)
        shown = [env.step(action)[0] for env, action in zip(singles, actions, strict=True)]


def test_an_agent_answers_all_its_games_in_one_call() -> None:
    agent = Drawing()
    envs = agents.make_vec([agent, "greedy"], 32)
    _, infos = envs.reset(seed=1)
    envs.step(np.full(32, 19))
    assert agent.sizes == [(infos["opponent"] == 0).sum()]


def test_the_variant_is_that_of_the_agent_where_none_is_given() -> None:
    assert agents.make_vec("zero-6x6", 2).variant == Variant(6)
    assert agents.make_vec(["random", "zero-6x6"], 2).variant == Variant(6)
    assert agents.make_env("zero-6x6").unwrapped.variant == Variant(6)


def test_without_an_opponent_both_sides_are_the_callers() -> None:
    _, infos = agents.make_vec(None, 2).reset(seed=1)
    assert infos["to_play"].tolist() == ["black", "black"]


def test_an_unknown_agent_in_a_pool_is_named() -> None:
    with pytest.raises(ValueError, match="unknown agent 'gredy'; did you mean greedy"):
        agents.make_vec(["random", "gredy"], 2)


@pytest.mark.parametrize("answer", [None, 19.5, "d3"])
def test_an_agents_answer_that_is_no_move_names_it(answer: Any) -> None:
    class Faulty(Agent):
        name = "faulty"

        def select(self, position: Position, rng: np.random.Generator) -> Decision:
            return Decision(answer)

    envs = agents.make_vec(Faulty(), 2)
    envs.reset(seed=1)
    with pytest.raises(TypeError, match=f"opponent faulty answered {answer!r} in .* a move is an integer"):
        envs.step(np.full(2, 19))


def test_an_agent_that_answers_too_few_games_is_refused() -> None:
    class Lazy(Drawing):
        def select_batch(self, positions: Any, rngs: Any) -> list[Decision]:
            return super().select_batch(positions, rngs)[:1]

    envs = agents.make_vec(Lazy(), 3)
    envs.reset(seed=1)
    with pytest.raises(ValueError, match="zip"):
        envs.step(np.full(3, 19))


def test_a_league_of_agents_grows() -> None:
    envs = agents.make_vec(["mobility"], 4, variant="othello-4x4")
    envs.reset(seed=1)
    envs.unwrapped.set_opponent([*envs.unwrapped.batch.opponents, agents.opponent_of("alphabeta:depth=1")])
    drawn: set[int] = set()
    for _ in range(20):
        *_, infos = envs.step(envs.unwrapped.action_masks().argmax(axis=1))
        drawn |= set(infos["opponent"].tolist())
    assert drawn == {0, 1}
