"""Where the weights of an n-tuple evaluation lie: stages, cells, and the one array that kernels take.

A stage is a few numbers of empty squares; it has a block of cells, one for each index of each pattern, and before them
a cell that stays zero and one for each number of empty squares of the stage (whose turn comes last matters). Where the
layout counts moves, there follow cells for each number of the mover's moves and of the other side's. Cells that share a
weight are places of one number, so the weights of a stage are an array of fewer entries than the block has.

Kernels take one array, since each costs a recursive kernel seven machine words a call. Its elements are 16 bits wide:

    parts    [V, G, 16, 16] uint16: what the four squares of group g add to the indices of 16 features, by which of
             them hold a disc of the side to move
    offsets  [V·16] int32: the first cell of each feature's pattern within a block; for lanes without a feature cell 0
    starts   [stride² + 1, 2] int32: by the number of empty squares, the first cell of the stage's block, and within
             the block the cell for that number
    cells    [stages, cells of a block] int16: weights in units of 1/UNIT disc

V vectors of 16 lanes hold the features, G groups of four bits the board.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from agents.ntuple.patterns import Pattern, patterns_of
from reversi_env.geometry import bit_indices, num_words, stride_of

UNIT = 256  # the weight of a disc: so ±128 discs fit 16 bits, and rounding 46 weights costs some 1/100 disc
VECTOR_LANES = 16  # 16 indices of 16 bits
GROUP_BITS = 4
NUM_VECTORS = {1: 3, 2: 4}  # by the number of words
NUM_GROUPS = {1: 16, 2: 25}

MOST_MOVES = 31  # more of them count as so many

_NUM_STAGES = 16  # about: 4 empty squares a stage on 8×8


def offsets_at(words: int) -> int:
    """Returns the place of `offsets` in the array that kernels take, in elements of 16 bits."""
    return NUM_VECTORS[words] * NUM_GROUPS[words] * (1 << GROUP_BITS) * VECTOR_LANES


def starts_at(words: int) -> int:
    """Returns the place of `starts`."""
    return offsets_at(words) + 2 * NUM_VECTORS[words] * VECTOR_LANES


def cells_at(words: int) -> int:
    """Returns the place of `cells`."""
    return starts_at(words) + 4 * (stride_of(words) ** 2 + 1)


@dataclass(frozen=True)
class Layout:
    """The cells of a board of `size` columns."""

    size: int
    counts_moves: bool = False

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        return patterns_of(self.size)

    @property
    def num_squares(self) -> int:
        return self.size * self.size

    @property
    def stage_width(self) -> int:
        """How many numbers of empty squares make a stage: an even number."""
        return max(2, self.num_squares // _NUM_STAGES)

    @property
    def num_stages(self) -> int:
        return int(self.stages[-1]) + 1

    @cached_property
    def stages(self) -> np.ndarray:
        """The stage by the number of empty squares, int64 [size² + 1]; 0 to `stage_width` are stage 0."""
        return self._counted // self.stage_width

    @cached_property
    def turn_cells(self) -> np.ndarray:
        """The cell of a block for the number of empty squares, int64 [size² + 1]."""
        return 1 + self._counted % self.stage_width

    def count_empties(self, boards: np.ndarray) -> np.ndarray:
        """Returns the number of empty squares of positions, int64 [N]; `boards`, uint64 [N, 2, W], holds both sides."""
        num_discs: np.ndarray = np.bitwise_count(boards).sum(axis=(1, 2), dtype=np.int64)
        return self.num_squares - num_discs

    @property
    def move_cells(self) -> tuple[int, int]:
        """The cells of a block for no moves of the mover and of the other side; behind each are up to MOST_MOVES."""
        return 1 + self.stage_width, 1 + self.stage_width + MOST_MOVES + 1

    @property
    def _num_counts(self) -> int:
        """The cells of a block, but the first, that stand before those of patterns."""
        return self.stage_width + (2 * (MOST_MOVES + 1) if self.counts_moves else 0)

    @property
    def _counted(self) -> np.ndarray:
        return np.maximum(np.arange(self.num_squares + 1) - 1, 0)

    @cached_property
    def pattern_starts(self) -> tuple[int, ...]:
        """The first cell of each pattern within a block, and the number of cells of a block."""
        starts = [1 + self._num_counts]
        for pattern in self.patterns:
            starts.append(starts[-1] + pattern.num_indices)
        return tuple(starts)

    @property
    def num_cells(self) -> int:
        """The number of cells of a block."""
        return self.pattern_starts[-1]

    @cached_property
    def weight_of_cell(self) -> np.ndarray:
        """The weight of each cell of a block but the first, int64 [num_cells - 1], in 0..num_weights - 1."""
        first = np.arange(self._num_counts)
        least = [
            start - 1 + pattern.least_indices
            for pattern, start in zip(self.patterns, self.pattern_starts, strict=False)
        ]
        _, numbers = np.unique(np.concatenate([first, *least]), return_inverse=True)
        return numbers

    @property
    def num_weights(self) -> int:
        """The number of weights of a stage."""
        return int(self.weight_of_cell.max()) + 1

    @property
    def described(self) -> dict[str, Any]:
        """What a manifest tells of the layout: where it differs, weights are others."""
        return {
            "patterns": {pattern.name: list(pattern.squares) for pattern in self.patterns},
            "stage_width": self.stage_width,
        }

    @staticmethod
    def rounded(weights: np.ndarray) -> np.ndarray:
        """Returns weights in discs in units of 1/UNIT, int16; one beyond ±128 discs is cut to that."""
        limits = np.iinfo(np.int16)
        rounded: np.ndarray = np.clip(np.rint(weights * UNIT), limits.min, limits.max).astype(np.int16)
        return rounded

    def packed(self, weights: np.ndarray) -> np.ndarray:
        """Returns the array that kernels take, int16, read-only, of weights in discs [num_stages, num_weights].

        They are rounded as by `rounded`. A last axis of two gives each cell two weights, side by side.
        """
        cells = np.zeros((self.num_stages, self.num_cells, *weights.shape[2:]), np.int16)
        cells[:, 1:] = self.rounded(weights)[:, self.weight_of_cell]
        packed = np.concatenate([self.header, cells.ravel()])
        packed.flags.writeable = False
        return packed

    @cached_property
    def header(self) -> np.ndarray:
        """The array that kernels take, int16, up to `cells`, which is enough to find a position's cells."""
        words = num_words(self.size)
        vectors, groups = NUM_VECTORS[words], NUM_GROUPS[words]
        parts = np.zeros((vectors, groups, 1 << GROUP_BITS, VECTOR_LANES), np.uint16)
        offsets = np.zeros((vectors, VECTOR_LANES), np.int32)
        features = [
            (start, squares)
            for pattern, start in zip(self.patterns, self.pattern_starts, strict=False)
            for squares in pattern.features
        ]
        for number, (start, squares) in enumerate(features):
            vector, lane = divmod(number, VECTOR_LANES)
            offsets[vector, lane] = start
            for place, square in enumerate(squares):
                group, bit = divmod(bit_indices(self.size)[square], GROUP_BITS)
                held = np.arange(1 << GROUP_BITS) >> bit & 1
                parts[vector, group, :, lane] += (held * 3**place).astype(np.uint16)
        starts = np.zeros((stride_of(words) ** 2 + 1, 2), np.int32)
        starts[: self.num_squares + 1, 0] = self.stages * self.num_cells
        starts[: self.num_squares + 1, 1] = self.turn_cells
        header = np.concatenate([array.ravel().view(np.int16) for array in (parts, offsets, starts)])
        header.flags.writeable = False
        return header


@cache
def layout_of(size: int, counts_moves: bool = False) -> Layout:
    """Returns the layout of boards of `size` columns; its arrays are made once."""
    return Layout(size, counts_moves)
