"""Games of a Gymnasium vector environment as stable-baselines3 wants them: as a VecEnv."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn
from torch import Tensor

from reversi_env.batch import CALLERS
from reversi_env.encoding import NUM_PLANES, with_legal_plane
from reversi_env.opponent_pool import positions_of
from reversi_env.vector_env import ReversiVectorEnv


class PlanesVecEnv(VecEnv):
    """Games of `Reversi-v0` side by side, observed as the planes of a network, float32 [N, 3, size, size].

    The games must begin anew in the step that ends them (SAME_STEP). sb3-contrib finds the masks of legal actions, int8
    [N, size² + 1], by `env_method("action_masks")`.
    """

    def __init__(self, games: gymnasium.vector.VectorEnv[Any, Any, Any]) -> None:
        assert isinstance(games.unwrapped, ReversiVectorEnv)
        self.games = games
        self._batch = games.unwrapped.batch
        self._kept: dict[str, np.ndarray] = {}
        space = games.single_observation_space
        assert isinstance(space, gymnasium.spaces.Dict)
        self._mask = np.zeros((games.num_envs, *_shape(space["action_mask"])), np.int8)
        self._actions = np.zeros(games.num_envs, np.int64)
        planes = gymnasium.spaces.Box(0, 1, (NUM_PLANES, *_shape(space["observation"])[1:]), np.float32)
        super().__init__(games.num_envs, planes, games.single_action_space)

    def reset(self) -> np.ndarray:
        """Begins all games, seeded where `seed` was called: sb3 and Gymnasium both count up from the first one.

        After `load_tensors` it goes on with those games instead.
        """
        observation, _ = self.games.reset(seed=self._seeds[0])
        self._reset_seeds()
        if self._kept:
            for name, array in self._kept.items():
                getattr(self._batch.games, name)[:] = array
            batch, self._kept = self._batch, {}
            observation = {"observation": batch.observation.copy(), "action_mask": batch.action_mask.copy()}
        self._mask = observation["action_mask"]
        return planes_of(observation)

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        observation, rewards, terminated, truncated, info = self.games.step(self._actions)
        self._mask = observation["action_mask"]
        done = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for game in np.flatnonzero(done):
            infos[game]["terminal_observation"] = planes_of(info["final_obs"][game])
            infos[game]["TimeLimit.truncated"] = bool(truncated[game] and not terminated[game])
        return planes_of(observation), rewards.astype(np.float32), done, infos

    def tensors(self) -> dict[str, Tensor]:
        """Returns a copy of the games, by the names of `reversi_env.batch.Games`; nothing before there are any."""
        games = self._batch.games
        arrays = self._kept or (games._asdict() if (games.turn == CALLERS).all() else {})
        return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Keeps the games that `tensors` gave for the next `reset`.

        If there are more or fewer of them than here, or against more opponents, `reset` begins new ones after all.
        Raises ValueError for what are no games of this variant.
        """
        saved, here = {name: tensor.numpy() for name, tensor in tensors.items()}, self._batch.games._asdict()
        if saved.keys() != here.keys():
            missing, unknown = sorted(here.keys() - saved.keys()), sorted(saved.keys() - here.keys())
            sentence = f"its games lack {missing or 'nothing'} and have {unknown or 'nothing'} beside the right ones"
            raise ValueError(sentence)
        num_games = saved["turn"].size
        for name, array in here.items():
            shape = (len(array) // self.num_envs * num_games, *array.shape[1:])
            if saved[name].dtype != array.dtype or saved[name].shape != shape:
                raise ValueError(f"its games' {name} is {saved[name].dtype} {saved[name].shape}, not {shape}")
        positions_of(self._batch.variant, saved["boards"].reshape(num_games, 3, -1), saved["is_black"])
        if (saved["turn"] != CALLERS).any() or min(saved["opponent_row"].min(), saved["opponent_index"].min()) < 0:
            raise ValueError("its games do not await a move of the policy against an opponent")
        last_row = max(saved["opponent_row"].max(), saved["opponent_index"].max())
        if num_games == self.num_envs and last_row < len(self._batch.opponents):
            self._kept = saved

    def close(self) -> None:
        self.games.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Returns an attribute of each game; there are the two that sb3 asks for."""
        games = self._get_indices(indices)
        if attr_name == "action_masks":
            return [partial(self._mask.__getitem__, game) for game in games]
        if attr_name == "render_mode":
            return [None for _ in games]
        raise AttributeError(f"games side by side have no {attr_name} of their own")

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        raise AttributeError(f"games side by side have no {attr_name} of their own")

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        return [method(*method_args, **method_kwargs) for method in self.get_attr(method_name, indices)]

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        return [False for _ in self._get_indices(indices)]


def _shape(space: gymnasium.Space[Any]) -> tuple[int, ...]:
    assert space.shape is not None
    return space.shape


def planes_of(observation: dict[str, np.ndarray]) -> np.ndarray:
    """Returns what a network sees, float32 [..., 3, size, size]; as `reversi_env.encoding.write_planes` writes it."""
    return with_legal_plane(observation["observation"], observation["action_mask"]).astype(np.float32)
