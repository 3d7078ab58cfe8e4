"""The environment, one game or many, against any agent of the laboratory."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from agents.agent import Agent
from agents.registry import make
from reversi_env import Variant
from reversi_env.opponent_pool import BatchOpponent, PositionOpponent, checked_move, positions_of
from reversi_env.opponents import BASELINES
from reversi_env.random_bits import generators

Opponent: TypeAlias = str | Agent | PositionOpponent | BatchOpponent
Pool: TypeAlias = Opponent | list[Any] | tuple[Any, ...] | None


@dataclass(frozen=True)
class AgentOpponent:
    """An agent as the environment takes an opponent: it answers many games in one call of `select_batch`."""

    agent: Agent

    @property
    def name(self) -> str:
        return self.agent.name

    def choose(
        self, variant: Variant, boards: np.ndarray, is_black: np.ndarray, rng_state: np.ndarray, moves: np.ndarray
    ) -> None:
        """Writes a move for each game, as any `reversi_env.opponent_pool.BatchOpponent` does."""
        positions = positions_of(variant, boards, is_black)
        decisions = self.agent.select_batch(positions, generators(rng_state))
        moves[:] = [
            checked_move(decision.move, position, self.name)
            for decision, position in zip(decisions, positions, strict=True)
        ]


def make_env(opponent: Pool = "random", **settings: Any) -> gymnasium.Env[Any, Any]:
    """Returns `Reversi-v0` against an agent, as in `make_env("alphabeta:depth=2", variant="othello-6x6")`.

    A list of agents is a pool, of which each game draws one. Where no variant is given it is the one that an agent was
    made for, if any. None leaves both sides to the caller; `settings` go to `gymnasium.make`. Raises ValueError for an
    unknown agent.
    """
    return gymnasium.make("reversi_env:Reversi-v0", **_with_opponents(opponent, settings))


def make_vec(opponent: Pool = "random", num_envs: int = 1, **settings: Any) -> VectorEnv[Any, Any, Any]:
    """Returns `num_envs` games of `Reversi-v0` at once, against agents as `make_env` takes them.

    An agent answers all its games in one call, so a network reads them in batches. A league grows by
    `envs.set_opponent([*envs.batch.opponents, opponent_of("runs/x")])`.
    """
    return gymnasium.make_vec("reversi_env:Reversi-v0", num_envs=num_envs, **_with_opponents(opponent, settings))


def opponent_of(agent: Opponent) -> Any:
    """Returns an agent, or the text of one, as the environments take it: those that they know stay names."""
    if isinstance(agent, str) and agent not in BASELINES:  # those the environment plays faster
        agent = make(agent)
    return AgentOpponent(agent) if isinstance(agent, Agent) else agent


def _with_opponents(given: Pool, settings: dict[str, Any]) -> dict[str, Any]:
    opponent: Any
    if isinstance(given, list | tuple):
        opponents = opponent = [opponent_of(member) for member in given]
    else:
        opponent = None if given is None else opponent_of(given)
        opponents = [opponent]
    for one in opponents:
        if isinstance(one, AgentOpponent) and one.agent.variant:
            settings.setdefault("variant", one.agent.variant)
    return settings | {"opponent": opponent}
