"""What n-tuples know of policy and value, as tree search asks for them: arrays, in memory and as bytes.

Each cell of a `Layout` that counts moves has two weights. The sum of a position's first weights is its margin: how the
game should end for the side to move, in discs. A move's logit is the sum of the second weights of the position after
it, and so much for each disc of the margin there, for the side that moved: so a policy is of use as soon as margins
are. What a position is worth follows from the margins after its moves, in the mean that its policy gives them, which
are nearer to the game's end by a ply, and whose errors cancel: see `agents.ntuple.policy`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from agents.ntuple.layout import UNIT, Layout, layout_of
from reversi_env.geometry import SIZES

MARGIN, POLICY = 0, 1  # the two weights of a cell, by the last axis

_FIRST_LOGIT_PER_DISC = 0.25


class TupleArrays(NamedTuple):
    """A network as kernels take it; read-only."""

    packed: np.ndarray  # int16, as `Layout.packed` has it, two weights a cell
    move_cells: tuple[int, int]  # those of `Layout`
    logit_per_disc: np.ndarray  # float32 [size² + 1], by the number of empty squares
    spread: np.ndarray  # float32 [size² + 1], likewise


@dataclass(frozen=True)
class TupleNetwork:
    """A policy and a value of positions of one board size and one goal, for the side to move.

    Raises ValueError for arrays that are none.
    """

    weights: np.ndarray  # float32 [num_stages, num_weights, 2], in discs and in logits
    logit_per_disc: np.ndarray  # float32 [size² + 1], by the number of empty squares before the move
    spread: np.ndarray  # float32 [size² + 1], likewise: how far final scores lie from margins, in discs

    def __post_init__(self) -> None:
        for name, shape in _shapes(_layout_for(self.spread.size)).items():
            _check(name, getattr(self, name), shape, np.float32)
        if not (self.spread > 0).all():
            raise ValueError("spread holds a number that is not above 0")

    @classmethod
    def new(cls, size: int) -> "TupleNetwork":
        """Returns a network that knows nothing: every move is as likely as the next, every game even."""
        shapes = _shapes(layout_of(size, counts_moves=True))
        return cls(
            weights=np.zeros(shapes["weights"], np.float32),
            logit_per_disc=np.full(shapes["logit_per_disc"], _FIRST_LOGIT_PER_DISC, np.float32),
            spread=np.full(shapes["spread"], size * size / 4, np.float32),  # as of random games on 8×8
        )

    @property
    def size(self) -> int:
        return self.layout.size

    @property
    def layout(self) -> Layout:
        return _layout_for(self.spread.size)

    def copy(self) -> "TupleNetwork":
        """Returns a network that does not change with this one."""
        return TupleNetwork(self.weights.copy(), self.logit_per_disc.copy(), self.spread.copy())

    def arrays(self) -> TupleArrays:
        """Returns what kernels take, with weights rounded as `Layout.rounded` has them."""
        layout = self.layout
        by_empties = (self.logit_per_disc.copy(), self.spread.copy())
        for array in by_empties:
            array.flags.writeable = False
        return TupleArrays(layout.packed(self.weights), layout.move_cells, *by_empties)

    def to_bytes(self) -> bytes:
        """Returns the network as a file of safetensors, weights rounded to 16 bits."""
        rounded = self.layout.rounded(self.weights)
        return save({"weights": rounded, "logit_per_disc": self.logit_per_disc, "spread": self.spread})

    @staticmethod
    def from_bytes(content: bytes) -> "TupleNetwork":
        """Returns the network that `to_bytes` gave; raises ValueError for anything else."""
        try:
            found = load(content)
        except (SafetensorError, KeyError, ValueError, TypeError) as error:
            raise ValueError(f"it is no file of weights: {error}") from None
        if found.keys() != {"weights", "logit_per_disc", "spread"}:
            raise ValueError(f"it holds {', '.join(sorted(found)) or 'nothing'}, which is not what n-tuples have")
        layout = _layout_for(found["spread"].size)
        _check("weights", found["weights"], _shapes(layout)["weights"], np.int16)
        weights = found["weights"].astype(np.float32) / np.float32(UNIT)
        return TupleNetwork(weights, found["logit_per_disc"], found["spread"])


def _layout_for(num_counts: int) -> Layout:
    """Returns the layout of the board that has one square less than so many numbers of empty squares."""
    for size in SIZES:
        if size * size + 1 == num_counts:
            return layout_of(size, counts_moves=True)
    raise ValueError(f"spread has {num_counts} numbers, which fit no board of {', '.join(map(str, SIZES))} columns")


def _shapes(layout: Layout) -> dict[str, tuple[int, ...]]:
    by_empties = (layout.num_squares + 1,)
    weights = (layout.num_stages, layout.num_weights, 2)
    return {"weights": weights, "logit_per_disc": by_empties, "spread": by_empties}


def _check(name: str, array: np.ndarray, shape: tuple[int, ...], dtype: type) -> None:
    """Raises ValueError for an array of another shape or kind, or with what is no number."""
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f"{name} is {array.dtype} {list(array.shape)}, expected {np.dtype(dtype)} {list(shape)}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds a number that is not finite")
