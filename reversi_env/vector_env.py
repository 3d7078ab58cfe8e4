"""`Reversi-v0` as Gymnasium's vector environment: all games advance in one kernel call a step.

    envs = gymnasium.make_vec("reversi_env:Reversi-v0", num_envs=1024, opponent="greedy", color="random")
    observations, infos = envs.reset(seed=1)
    while True:
        actions = choose(observations["observation"], observations["action_mask"])
        observations, rewards, terminations, truncations, infos = envs.step(actions)

Game n is that of `ReversiEnv` with the seed `seed + n`, and what `step` returns is what Gymnasium's own `SyncVectorEnv`
would make of such games, and for a thousand of them about a hundred times as fast. Loops that can do with arrays filled
in place use `batch.Batch` beneath.
"""

from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from reversi_env.batch import HOLD, NOBODYS, Batch
from reversi_env.drawing.diagram import Diagram
from reversi_env.drawing.rgb import check_pixels, to_rgb
from reversi_env.drawing.text import to_ansi
from reversi_env.env import action_space, observation_space, with_last_move
from reversi_env.naming import one_of
from reversi_env.opponent_pool import Pool
from reversi_env.options import RESET_OPTIONS
from reversi_env.position import Position
from reversi_env.variant import Variant

Observations = dict[str, np.ndarray]

_COLOR_NAMES = np.array(["white", "black"], object)  # by whether it is black
_WINNER_NAMES = np.array(["draw", "black", "white"], object)  # by the sign of black's score


class ReversiVectorEnv(VectorEnv[Observations, np.ndarray, np.ndarray]):
    """N games. variant, opponent, color, reward, illegal_action, render_pixels and the spaces are `ReversiEnv`'s.

    autoreset_mode: "SameStep" (a game that ends is followed by the next within the step, and `infos` holds `final_obs`
        and `final_info`), "NextStep" (the next step's action is ignored and begins a game) or "Disabled" (`reset` with
        the option `reset_mask`, bool [N], begins those marked), or an `AutoresetMode`.
    render_mode: "ansi" or "rgb_array"; `render` returns a picture of each game.

    `reset` takes the option `reset_mask` beside those of `ReversiEnv`, and a seed or one for each game. All arrays that
    are returned are new. `set_opponent` exchanges the opponents.
    """

    def __init__(
        self,
        num_envs: int = 1,
        variant: Variant | str = "othello",
        opponent: Pool = "random",
        color: str = "black",
        reward: str = "result",
        illegal_action: str = "terminate",
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        render_mode: str | None = None,
        render_pixels: int = 512,
    ) -> None:
        if not isinstance(autoreset_mode, AutoresetMode):
            one_of("autoreset mode", autoreset_mode, [mode.value for mode in AutoresetMode])
        self._autoreset = AutoresetMode(autoreset_mode)
        self.batch = Batch(
            num_envs,
            variant,
            opponent,
            color,
            reward,
            illegal_action,
            begins_anew=self._autoreset is AutoresetMode.SAME_STEP,
        )
        self.num_envs = self.batch.num_games
        self._everywhere = np.ones(self.num_envs, np.bool_)
        self.variant = self.batch.variant
        self.metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 2, "autoreset_mode": self._autoreset}
        self.render_mode = None if render_mode is None else one_of("render mode", render_mode, ["ansi", "rgb_array"])
        check_pixels(self.variant.size, render_pixels)
        self._render_pixels = render_pixels
        self.single_action_space = action_space(self.variant)
        self.single_observation_space = observation_space(self.variant)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Begins all games, or those of the option `reset_mask`; raises ValueError for what no game can begin with."""
        super().reset(seed=seed if isinstance(seed, int) else None)
        options = options or {}
        for option in options:
            one_of("option of reset", option, (*RESET_OPTIONS, "reset_mask"))
        reset_mask = options.get("reset_mask")
        self.batch.reset(seed, reset_mask, options.get("position"), options.get("color"))
        return self._observations(), self._infos(self._everywhere if reset_mask is None else reset_mask)

    def step(self, actions: np.ndarray) -> tuple[Observations, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Plays an action in each game, and the opponents' replies; raises as `Batch.step` does."""
        batch = self.batch
        resting_mask = batch.games.turn == NOBODYS
        if self._autoreset is AutoresetMode.DISABLED and resting_mask.any():
            games = np.flatnonzero(resting_mask)
            named = ", ".join(map(str, games[:10])) + (" …" if len(games) > 10 else "")
            raise ResetNeeded(f'these games have ended: {named}; call reset(options={{"reset_mask": …}}) before step()')
        batch.step(actions)
        if resting_mask.any():
            batch.reset(reset_mask=resting_mask)
        infos = self._infos(self._everywhere)
        if batch.is_over.any():
            infos |= self._final_infos() if self._autoreset is AutoresetMode.SAME_STEP else self._results()
        is_over = batch.is_over.copy()
        return self._observations(), batch.reward.copy(), is_over, np.zeros_like(is_over), infos

    def action_masks(self) -> np.ndarray:
        """Returns a new int8 array [N, size² + 1], one on each legal action."""
        return self.batch.action_mask.copy()

    def set_opponent(self, opponent: Pool) -> None:
        """Changes whom games are played against from their next beginning on; see `Batch.set_opponent`."""
        self.batch.set_opponent(opponent)

    def position(self, game: int) -> Position:
        """Returns the position of a game now."""
        return self.batch.position(game)

    def render(self) -> tuple[Any, ...] | None:
        """Returns the board of each game, as text or as uint8 [P, P, 3]; None without a render mode."""
        if self.render_mode is None:
            return None
        diagrams = [self._diagram(game) for game in range(self.num_envs)]
        if self.render_mode == "ansi":
            return tuple(to_ansi(diagram, color=True) for diagram in diagrams)
        return tuple(to_rgb(diagram, self._render_pixels) for diagram in diagrams)

    def _diagram(self, game: int) -> Diagram:
        last_move = int(self.batch.games.last_move[game])
        return with_last_move(self.batch.position(game), None if last_move == HOLD else last_move)

    def _observations(self) -> Observations:
        return {"observation": self.batch.observation.copy(), "action_mask": self.batch.action_mask.copy()}

    def _infos(self, told_mask: np.ndarray) -> dict[str, Any]:
        """Returns what is told of the games now that `told_mask`, bool [N], marks."""
        games, has_opponent = self.batch.games, bool(self.batch.opponents)
        # A game that rests shows the side that its last observation belongs to.
        is_black = (
            games.is_learner_black
            if has_opponent
            else np.where(games.turn == NOBODYS, games.final_is_black, games.is_black)
        )
        infos = {"action_mask": self.batch.action_mask.copy(), "to_play": _COLOR_NAMES[is_black.view(np.int8)]}
        if self.batch.has_pool:
            infos["opponent"] = games.opponent_index.copy()
        return _masked(infos, told_mask)

    def _final_infos(self) -> dict[str, Any]:
        """Returns `final_obs` and `final_info` of the games that the last step ended."""
        games, ended_mask = self.batch.games, self.batch.is_over.copy()
        rows = np.flatnonzero(ended_mask)
        final_obs = np.full(self.num_envs, None, object)
        planes = games.final_observation[rows]
        masks = np.zeros((len(rows), self.variant.num_actions), np.int8)
        for row, plane, mask in zip(rows.tolist(), planes, masks, strict=True):
            final_obs[row] = {"observation": plane, "action_mask": mask}
        info = {
            "action_mask": np.zeros((self.num_envs, self.variant.num_actions), np.int8),
            "to_play": _COLOR_NAMES[games.final_is_black.view(np.int8)],
        }
        if self.batch.has_pool:
            info["opponent"] = games.final_opponent_index.copy()
        final_info = _masked(info, ended_mask) | self._results()
        return {
            "final_obs": final_obs,
            "_final_obs": ended_mask,
            "final_info": final_info,
            "_final_info": ended_mask.copy(),
        }

    def _results(self) -> dict[str, Any]:
        """Returns what is told beside of the games that the last step ended: discs, winner, score, illegal action."""
        games, ended_mask = self.batch.games, self.batch.is_over.copy()
        discs = {"black": games.final_discs[:, 0].copy(), "white": games.final_discs[:, 1].copy()}
        results: dict[str, Any] = {
            "discs": _masked(discs, ended_mask),
            "winner": _WINNER_NAMES[np.sign(games.final_black_score)],
            "score": games.final_score.copy(),
        }
        results = _masked(results, ended_mask)
        if games.is_forfeited.any():
            results |= _masked({"illegal_action": games.action.copy()}, games.is_forfeited)
        return results


def _masked(infos: dict[str, Any], told_mask: np.ndarray) -> dict[str, Any]:
    """Returns infos as Gymnasium's vector environments give them: `_name` says which games have a `name`.

    Arrays lose, in place, what they hold of other games: zeros and None stand there.
    """
    masked = {}
    for name, value in infos.items():
        if isinstance(value, np.ndarray):
            value[~told_mask] = None if value.dtype == object else 0
        masked[name], masked[f"_{name}"] = value, told_mask.copy()
    return masked
