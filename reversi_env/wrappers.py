"""What learners ask of `Reversi-v0` beside its plain observation: wrappers for `gymnasium.make` and for `ReversiEnv`.

    env = gymnasium.make("reversi_env:Reversi-v0", opponent="greedy")
    env = DiscShaping(env, gamma=0.99)         # anywhere
    env = HistoryPlanes(env, num_positions=4)  # from here on the order matters
    env = CanonicalSymmetry(env)
    env = FormatObservation(env, dtype="float32", flat=True)  # last: the others need planes

Whatever is worn, `info["action_mask"]` and `action_masks()` speak of the actions that the outermost `step` takes. They
are for one game at a time, and for `gymnasium.make_vec(…, vectorization_mode="sync", wrappers=[…])`.

What libraries that know masks want:
- sb3-contrib's MaskablePPO looks for `action_masks()`, through wrappers too. Its "MultiInputPolicy" takes the
  environment as it is, "MlpPolicy" wants `FormatObservation(env, key=None)`.
- RLlib's action-masking module: `FormatObservation(env, key="observations", dtype="float32", flat=True)`.
- TorchRL's GymWrapper and ActionMask take the environment as it is. A MaskedCategorical wants a mask of bool:
  `DTypeCastTransform(torch.int8, torch.bool, in_keys=["action_mask"])`.
"""

import contextlib
import operator
from abc import ABC, abstractmethod
from typing import Any, SupportsFloat, SupportsIndex, TypeAlias

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import DTypeLike

from reversi_env.encoding import NUM_OBSERVATION_PLANES, with_legal_plane
from reversi_env.env import ReversiEnv
from reversi_env.symmetry import NUM_SYMMETRIES, inverse, transform, transform_action, transform_policy

Step: TypeAlias = tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]
Reset: TypeAlias = tuple[Any, dict[str, Any]]
Env: TypeAlias = gymnasium.Env[Any, SupportsIndex]


class _Wrapper(gymnasium.Wrapper[Any, SupportsIndex, Any, SupportsIndex], RecordConstructorArgs):
    """A wrapper that hands on the masks, and whose `spec` can make it again."""

    def __init__(self, env: Env, **arguments: Any) -> None:
        RecordConstructorArgs.__init__(self, **arguments)
        super().__init__(env)

    def action_masks(self) -> np.ndarray:
        """Returns a new int8 array [size² + 1], one on each action that `step` takes as legal."""
        masks: np.ndarray = self.env.get_wrapper_attr("action_masks")()
        return masks


class _View(_Wrapper, ABC):
    """Shows what the environment returns in another way."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        return self._begin(*self.env.reset(seed=seed, options=options))

    def step(self, action: SupportsIndex) -> Step:
        observation, reward, terminated, truncated, info = self.env.step(action)
        observation, info = self._see(observation, info)
        return observation, reward, terminated, truncated, info

    def _begin(self, observation: Any, info: dict[str, Any]) -> Reset:
        return self._see(observation, info)

    @abstractmethod
    def _see(self, observation: Any, info: dict[str, Any]) -> Reset:
        """Returns how an observation and its info are shown."""


class FormatObservation(_View):
    """The same observation in the form that a library wants.

    dtype: of the planes; they hold zeros and ones whatever it is. The mask stays int8.
    flat: whether `observation` is [P · size²] and not [P, size, size].
    legal_plane: whether one more plane, the last, holds the legal squares.
    key: the name of the planes beside `action_mask`; None for the planes alone, with no mask beside them.
    """

    def __init__(
        self,
        env: Env,
        *,
        dtype: DTypeLike = np.int8,
        flat: bool = False,
        legal_plane: bool = False,
        key: str | None = "observation",
    ) -> None:
        super().__init__(env, dtype=dtype, flat=flat, legal_plane=legal_plane, key=key)
        if key == "action_mask":
            raise ValueError("the key action_mask is the mask's; call the planes observation, or something else")
        num_planes, size, _ = _planes_space(env, self).shape
        shape = (num_planes + legal_plane, size, size)
        self._shape = (int(np.prod(shape)),) if flat else shape
        self._dtype, self._legal_plane, self._key = np.dtype(dtype), legal_plane, key
        planes = Box(0, 1, self._shape, self._dtype.type)
        self.observation_space = planes if key is None else Dict({key: planes, "action_mask": _mask_space(env)})

    def _see(self, observation: Any, info: dict[str, Any]) -> Reset:
        planes, mask = observation["observation"], observation["action_mask"]
        if self._legal_plane:
            planes = with_legal_plane(planes, mask)
        planes = planes.astype(self._dtype).reshape(self._shape)
        return planes if self._key is None else {self._key: planes, "action_mask": mask}, info


class HistoryPlanes(_View):
    """The last positions too: `observation` is int8 [2 · num_positions, size, size], the position now first.

    A position is two planes as in `ReversiEnv`, all from the point of view of the side to play now, also where the
    caller moves both sides. Planes of before the game are zero. Positions are those that `step` and `reset` returned:
    with an opponent, the ones in which the learner was to move.
    """

    def __init__(self, env: Env, num_positions: int = 4) -> None:
        super().__init__(env, num_positions=num_positions)
        if num_positions < 1:
            raise ValueError(f"num_positions must be at least 1, the position now, got {num_positions}")
        planes = _planes_space(env, self)
        if planes.shape[0] != NUM_OBSERVATION_PLANES or planes.dtype != np.int8:
            found = f"{planes.shape[0]} of {planes.dtype}"
            raise ValueError(f"HistoryPlanes stacks the two planes of int8 of Reversi-v0, but was given {found}")
        if env.has_wrapper_attr("symmetry"):
            raise ValueError("each position would lie as its own symmetry has it: put CanonicalSymmetry around this")
        self._history = np.zeros((num_positions, *planes.shape), np.int8)  # black's discs, white's discs
        stacked = Box(0, 1, (num_positions * NUM_OBSERVATION_PLANES, *planes.shape[1:]), np.int8)
        self.observation_space = Dict(observation=stacked, action_mask=_mask_space(env))

    def _begin(self, observation: Any, info: dict[str, Any]) -> Reset:
        self._history[:] = 0
        return self._see(observation, info)

    def _see(self, observation: Any, info: dict[str, Any]) -> Reset:
        side = slice(None) if info["to_play"] == "black" else slice(None, None, -1)
        self._history[1:] = self._history[:-1].copy()
        self._history[0] = observation["observation"][side]
        planes = self._history[:, side].copy().reshape(-1, *self._history.shape[2:])
        return {**observation, "observation": planes}, info


class CanonicalSymmetry(_View):
    """One board for all eight that turning and mirroring make of it, so that a learner meets an eighth of them.

    Of the eight, the one whose planes come first in the order of their bytes. The masks are turned with it, actions
    are turned back, and `info["symmetry"]` says which of `reversi_env.symmetry` led to what is shown.
    """

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._size = _planes_space(env, self).shape[-1]
        self.symmetry = 0  # of what is shown

    def step(self, action: SupportsIndex) -> Step:
        played = action  # what is no action the environment refuses, with a sentence
        with contextlib.suppress(TypeError):
            if 0 <= operator.index(action) < self._size * self._size:
                played = transform_action(operator.index(action), inverse(self.symmetry), self._size)
        observation, reward, terminated, truncated, info = super().step(played)
        if "illegal_action" in info:
            info["illegal_action"] = operator.index(action)
        return observation, reward, terminated, truncated, info

    def action_masks(self) -> np.ndarray:
        return transform_policy(super().action_masks(), self.symmetry, self._size)

    def _see(self, observation: Any, info: dict[str, Any]) -> Reset:
        turned = [
            np.ascontiguousarray(transform(observation["observation"], symmetry)) for symmetry in range(NUM_SYMMETRIES)
        ]
        self.symmetry = min(range(NUM_SYMMETRIES), key=lambda symmetry: turned[symmetry].tobytes())
        mask = transform_policy(observation["action_mask"], self.symmetry, self._size)
        return (
            {**observation, "observation": turned[self.symmetry], "action_mask": mask},
            {**info, "action_mask": mask.copy(), "symmetry": self.symmetry},
        )


class DiscShaping(_Wrapper):
    """A reward for discs at every step that leaves the best policy the best.

    Adds γ·Φ(next state) − Φ(state) to the reward, where Φ is scale · disc differential / size², seen by the side that
    the reward is for, negated where the fewest discs win, and 0 once the game is over: potential-based shaping, Ng,
    Harada & Russell 1999, "Policy invariance under reward transformations", theorem 1. With no opponent the two sides'
    rewards are shaped alike, and the best play of both stays the same. `gamma` must be the learner's own discount.
    """

    def __init__(self, env: Env, gamma: float, scale: float = 1.0) -> None:
        super().__init__(env, gamma=gamma, scale=scale)
        if not 0 <= gamma <= 1:
            raise ValueError(f"gamma is the learner's discount, from 0 to 1, got {gamma}")
        if not isinstance(env.unwrapped, ReversiEnv):
            raise TypeError(f"DiscShaping counts the discs of a ReversiEnv, not of {env.unwrapped!r}")
        self._game = env.unwrapped
        self._gamma = gamma
        goal_sign = -1 if self._game.variant.goal == "fewest" else 1
        self._disc_worth = goal_sign * scale / self._game.variant.num_squares
        self._is_black_to_play = True
        self._potential = 0.0  # black's

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        observation, info = self.env.reset(seed=seed, options=options)
        self._look(info, is_over=False)
        return observation, info

    def step(self, action: SupportsIndex) -> Step:
        was_black, before = self._is_black_to_play, self._potential
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._look(info, terminated)
        gained = self._gamma * self._potential - before
        return observation, float(reward) + (gained if was_black else -gained), terminated, truncated, info

    def _look(self, info: dict[str, Any], is_over: bool) -> None:
        position = self._game.position
        self._is_black_to_play = info["to_play"] == "black"
        self._potential = 0.0 if is_over else self._disc_worth * (position.num_black - position.num_white)


def _planes_space(env: Env, wrapper: _Wrapper) -> Box:
    """Returns the space of the planes that `env` shows; raises ValueError where it shows none."""
    space = env.observation_space
    planes = space.spaces.get("observation") if isinstance(space, Dict) else None
    if not isinstance(planes, Box) or len(planes.shape) != 3:
        raise ValueError(
            f"{type(wrapper).__name__} needs the planes of Reversi-v0, observation [P, size, size] beside action_mask; "
            f"put FormatObservation around it, not inside: {space}"
        )
    return planes


def _mask_space(env: Env) -> Box:
    space = env.observation_space
    assert isinstance(space, Dict)
    mask = space["action_mask"]
    assert isinstance(mask, Box)
    return mask
