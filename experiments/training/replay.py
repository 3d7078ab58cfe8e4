"""The positions that the learner draws from: compact, the newest of a window."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from reversi_env import Variant
from reversi_env.encoding import NUM_PLANES, write_planes
from reversi_env.symmetry import NUM_SYMMETRIES, inverse, square_map


@dataclass(frozen=True)
class Samples:
    """Positions with what search and the game's end said of them; n of them."""

    player: np.ndarray  # uint64  [n, W]
    opponent: np.ndarray  # uint64  [n, W]
    policy: np.ndarray  # float16 [n, A]  the visits' shares
    value: np.ndarray  # float32 [n]     the game's result for the side to move

    def __len__(self) -> int:
        return len(self.value)

    def at(self, rows: np.ndarray | slice) -> "Samples":
        return Samples(self.player[rows], self.opponent[rows], self.policy[rows], self.value[rows])

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns the arrays by name."""
        return {name: getattr(self, name) for name in _SAMPLE_ARRAYS}

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray], variant: Variant) -> "Samples":
        """Returns samples of arrays from a file; raises ValueError where shapes or dtypes do not fit the variant."""
        wanted = Samples.empty(variant).arrays()
        num_samples = {len(array) for array in arrays.values()}
        if arrays.keys() != wanted.keys() or len(num_samples) != 1:
            raise ValueError(f"the replay has arrays {sorted(arrays)}, expected {sorted(wanted)} of one length")
        for name, array in arrays.items():
            if array.dtype != wanted[name].dtype or array.shape[1:] != wanted[name].shape[1:]:
                raise ValueError(f"the replay's {name} is {array.dtype} {array.shape}, not of {variant.name}")
        return Samples(**arrays)

    @staticmethod
    def empty(variant: Variant) -> "Samples":
        num_words = len(variant.rules.squares)
        return Samples(
            player=np.empty((0, num_words), np.uint64),
            opponent=np.empty((0, num_words), np.uint64),
            policy=np.empty((0, variant.num_actions), np.float16),
            value=np.empty(0, np.float32),
        )

    @staticmethod
    def joined(parts: "list[Samples]") -> "Samples":
        return Samples(*(np.concatenate([getattr(part, name) for part in parts]) for name in _SAMPLE_ARRAYS))


_SAMPLE_ARRAYS = tuple(field.name for field in fields(Samples))


@dataclass(frozen=True)
class Batch:
    """What a training step takes."""

    planes: np.ndarray  # float32 [B, 3, S, S]
    legal: np.ndarray  # bool    [B, A]
    policy: np.ndarray  # float32 [B, A]
    value: np.ndarray  # float32 [B]


class Replay:
    """The newest positions of a run, `window` of them at the most, the oldest first."""

    def __init__(self, variant: Variant, window: int) -> None:
        self.variant = variant
        self.window = window
        self.samples = Samples.empty(variant)

    def __len__(self) -> int:
        return len(self.samples)

    def add(self, samples: Samples) -> None:
        """Adds new positions and drops the oldest beyond the window."""
        self.samples = Samples.joined([self.samples, samples]).at(slice(-self.window, None))

    def draw(self, batch_size: int, rng: np.random.Generator) -> Batch:
        """Returns positions drawn uniformly with replacement, each under a symmetry drawn for it."""
        drawn = self.samples.at(rng.integers(len(self), size=batch_size))
        symmetries = rng.integers(NUM_SYMMETRIES, size=batch_size)
        size = self.variant.size
        planes = np.empty((batch_size, NUM_PLANES, size, size), np.float32)
        legal = np.empty((batch_size, self.variant.num_actions), np.bool_)
        write_planes(drawn.player, drawn.opponent, planes, legal, self.variant.rules)
        comes_from = _origins(size)[symmetries]  # [B, A]
        squares = np.broadcast_to(comes_from[:, None, :-1], (batch_size, NUM_PLANES, size * size))
        return Batch(
            planes=np.take_along_axis(planes.reshape(squares.shape), squares, axis=2).reshape(planes.shape),
            legal=np.take_along_axis(legal, comes_from, axis=1),
            policy=np.take_along_axis(drawn.policy, comes_from, axis=1).astype(np.float32),
            value=drawn.value,
        )


def _origins(size: int) -> np.ndarray:
    """Returns which action each action was before each symmetry, int64 [8, A]; the pass stays."""
    squares = [square_map(inverse(symmetry), size) for symmetry in range(NUM_SYMMETRIES)]
    return np.array([[*origin, size * size] for origin in squares])
