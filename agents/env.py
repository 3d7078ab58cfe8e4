"""The environment against any agent of the laboratory."""

from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from agents.agent import Agent
from agents.registry import make
from reversi_env import Position
from reversi_env.opponents import BASELINES


@dataclass(frozen=True)
class AgentOpponent:
    """An agent as the environment takes an opponent: called with a position and a generator, it returns a move."""

    agent: Agent

    @property
    def name(self) -> str:
        return self.agent.name

    def __call__(self, position: Position, rng: np.random.Generator) -> int:
        return self.agent.select(position, rng).move


def make_env(opponent: str | Agent | None = "random", **settings: Any) -> gymnasium.Env[Any, Any]:
    """Returns `Reversi-v0` against an agent, as in `make_env("alphabeta:depth=2", variant="othello-6x6")`.

    Where no variant is given it is the one that the agent was made for, if any. None leaves both sides to the caller;
    `settings` go to `gymnasium.make`. Raises ValueError for an unknown agent.
    """
    if isinstance(opponent, str) and opponent not in BASELINES:  # those the environment knows, and plays faster
        opponent = make(opponent)
    if isinstance(opponent, Agent) and opponent.variant:
        settings.setdefault("variant", opponent.variant)
    player = AgentOpponent(opponent) if isinstance(opponent, Agent) else opponent
    return gymnasium.make("reversi_env:Reversi-v0", opponent=player, **settings)
