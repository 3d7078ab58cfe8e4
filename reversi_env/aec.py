"""The game for two learners: a PettingZoo AEC environment, whose agents are "black_0" and "white_0".

    from reversi_env import aec

    env = aec.env(variant="othello-6x6")
    env.reset(seed=1)
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, info = env.last()
        action = None if terminated else env.action_space(agent).sample(observation["action_mask"])
        env.step(action)

Importing it needs PettingZoo, which the rest of `reversi_env` does not: pip install "reversi-lab[rl]".
"""

from typing import Any, SupportsIndex

import gymnasium
import numpy as np

from reversi_env.env import Observation, ReversiEnv, action_space, observation_space
from reversi_env.variant import Variant

try:
    from pettingzoo import AECEnv
    from pettingzoo.utils.wrappers import AssertOutOfBoundsWrapper, OrderEnforcingWrapper, TerminateIllegalWrapper
except ModuleNotFoundError as error:
    raise ImportError('reversi_env.aec needs PettingZoo: pip install "reversi-lab[rl]"') from error

# PettingZoo asks for a word and a number. The word is the color, since a given position may let white begin: a name
# such as player_0 would not say whose discs the agent has.
AGENTS = {"black": "black_0", "white": "white_0"}


def env(**arguments: Any) -> AECEnv:
    """Returns a `raw_env` of these arguments in PettingZoo's usual wrappers.

    An illegal action ends the game with −1 for its agent and 0 for the other one. What is no action at all, and calls
    in an impossible order, raise AssertionError or another error of PettingZoo's.
    """
    wrapped = TerminateIllegalWrapper(raw_env(**arguments), illegal_reward=-1)
    return OrderEnforcingWrapper(AssertOutOfBoundsWrapper(wrapped))


class raw_env(AECEnv):  # type: ignore[misc]  # PettingZoo has no types; the name is the one its tools look for
    """One game at a time, both sides learners; the arguments are those of `ReversiEnv`.

    An agent observes what `ReversiEnv` shows, from its own point of view also when it is not to move: its action mask
    is then all zero, and so are both at the end. A pass is an action, the only legal one where it is legal.

    Rewards come at the end: the result or the score, of opposite signs for the two agents. Then `infos` hold `discs`,
    `winner` and the agent's own `score`. An illegal action raises IllegalMoveError and leaves the game as it is.

    `reset` takes the option `position`, as text or a `Position`; where white is to move there, white_0 begins.
    """

    metadata = {
        "name": "reversi_v0",
        "render_modes": ReversiEnv.metadata["render_modes"],
        "render_fps": ReversiEnv.metadata["render_fps"],
        "is_parallelizable": False,
    }

    def __init__(
        self,
        variant: Variant | str = "othello",
        reward: str = "result",
        render_mode: str | None = None,
        render_pixels: int = 512,
    ) -> None:
        super().__init__()
        self._game = ReversiEnv(
            variant,
            opponent=None,
            reward=reward,
            illegal_action="raise",
            render_mode=render_mode,
            render_pixels=render_pixels,
        )
        self._observation: Observation  # of the side to move
        self._to_play: str  # its agent; `agent_selection` leaves it once the game is over
        self.render_mode = render_mode
        self.possible_agents = list(AGENTS.values())
        self.agents = self.possible_agents.copy()
        self.observation_spaces = {agent: observation_space(self._game.variant) for agent in self.agents}
        self.action_spaces = {agent: action_space(self._game.variant) for agent in self.agents}

    def observation_space(self, agent: str) -> gymnasium.Space[Observation]:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.Space[SupportsIndex]:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begins a game, which needs no seed; raises ValueError for a position that no game can begin with."""
        options = dict(options or {})
        given = {name: options.pop(name) for name in ("position",) if name in options}
        if options:  # PettingZoo's api_test gives one that means nothing, so it cannot be an error
            gymnasium.logger.warn(f"reset() knows the option position alone, and leaves out {', '.join(options)}")
        self._observation, info = self._game.reset(seed=seed, options=given)
        self.agents = self.possible_agents.copy()
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self.agent_selection = self._to_play = AGENTS[info["to_play"]]

    def step(self, action: SupportsIndex | None) -> None:
        mover = self.agent_selection
        if self.terminations[mover] or self.truncations[mover]:
            self._was_dead_step(action)
            return
        # None, which only a finished agent plays, is refused there with a sentence, whatever its type says.
        self._observation, reward, is_over, _, info = self._game.step(action)  # type: ignore[arg-type]  # see above
        self.agent_selection = self._to_play = AGENTS[info["to_play"]]
        if is_over:
            self._finish(mover, float(reward), info)

    def _finish(self, mover: str, reward: float, info: dict[str, Any]) -> None:
        for agent in self.agents:
            sign = 1 if agent == mover else -1
            self.rewards[agent] = sign * reward
            self.terminations[agent] = True
            self.infos[agent] = {"discs": info["discs"], "winner": info["winner"], "score": sign * info["score"]}
        self._accumulate_rewards()

    def observe(self, agent: str) -> Observation:
        """Returns new arrays: what `agent` sees of the game, at any time and also after its end."""
        planes, mask = self._observation["observation"], self._observation["action_mask"]
        if agent != self._to_play:
            planes = planes[::-1]
        is_asked = agent == self._to_play and not self.terminations.get(agent, True)
        return {"observation": planes.copy(), "action_mask": mask.copy() if is_asked else np.zeros_like(mask)}

    def render(self) -> str | np.ndarray | None:
        """Returns what `ReversiEnv.render` does."""
        return self._game.render()

    def close(self) -> None:
        self._game.close()
