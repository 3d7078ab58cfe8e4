"""Fitting the weights of n-tuples to positions whose score is known: ridge regression by conjugate gradients.

A stage's weights minimize the sum of squared errors plus `ridge` times the squared distance from the weights before, so
that what was seen seldom stays near those. The minimum is that of a sparse system of linear equations, one for each
weight; each step of the method of conjugate gradients, preconditioned by its diagonal (Hestenes and Stiefel 1952; Saad,
"Iterative Methods for Sparse Linear Systems", section 9.2), takes one pass over the positions. Whatever its step, the
error never grows, and there is no learning rate.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from agents.ntuple.lanes import write_cells
from agents.ntuple.layout import NUM_VECTORS, VECTOR_LANES, Layout
from agents.ntuple.tables import Tables
from reversi_env.bitboard import load
from reversi_env.geometry import Bitboard
from reversi_env.jit import kernel

MOST_OVERLAP = 100


@dataclass
class FitConfig:
    """How closely weights follow the positions.

    Tuned on the final scores of 127,000 games of people, with a tenth of the games held out: a ridge from 10 to 100 is
    alike, ten steps come within 0.6 % of forty, and the overlap takes 0.5 % off the error, with a tenth of the games
    1 to 3 %.
    """

    ridge: float = 30.0  # how many positions' evidence the weights before are worth
    num_steps: int = 10  # passes over the positions; fewer stop earlier on the way from the weights before
    overlap: float = 1.0  # how far into the next stages a stage looks for positions, in widths of a stage

    def __post_init__(self) -> None:
        if not 0 <= self.ridge < float("inf"):
            raise ValueError(f"ridge must be at least 0 and finite, got {self.ridge}")
        if self.num_steps < 1:
            raise ValueError(f"num_steps must be at least 1, got {self.num_steps}")
        if not 0 <= self.overlap <= MOST_OVERLAP:
            raise ValueError(f"overlap must be from 0 to {MOST_OVERLAP}, got {self.overlap}")


def fit(
    tables: Tables, boards: np.ndarray, scores: np.ndarray, config: FitConfig | None = None, num_threads: int = 1
) -> Tables:
    """Returns tables moved towards the scores of positions; those given are the weights before.

    boards: uint64 [N, 2, W], the discs of the side to move and of the other one.
    scores: float32 [N], in discs, for the side to move.
    Stages are fitted side by side in threads, each on its own, so the result does not depend on their number.
    """
    layout = tables.layout
    config = config or FitConfig()
    num_empties = count_empties(boards, layout)
    reach = round(config.overlap * layout.stage_width)
    weights = tables.weights.copy()

    def fit_stage(stage: int) -> None:
        own = np.flatnonzero(layout.stages == stage)
        rows = np.flatnonzero((own[0] - reach <= num_empties) & (num_empties <= own[-1] + reach))
        if len(rows):
            weights[stage] = _fit_stage(weights[stage], _Positions(layout, boards[rows], scores[rows]), config)

    with ThreadPoolExecutor(num_threads) as threads:
        for _ in threads.map(fit_stage, range(layout.num_stages)):
            pass
    return replace(tables, weights=weights)


def count_empties(boards: np.ndarray, layout: Layout) -> np.ndarray:
    """Returns the number of empty squares of positions, int64 [N]; `boards` is uint64 [N, 2, W]."""
    num_discs: np.ndarray = np.bitwise_count(boards).sum(axis=(1, 2), dtype=np.int64)
    return layout.num_squares - num_discs


class _Positions:
    """The positions of a stage as the sparse matrix X: a row for each, with a one (or two…) for each of its weights."""

    def __init__(self, layout: Layout, boards: np.ndarray, scores: np.ndarray) -> None:
        words = boards.shape[2]
        self.layout = layout
        self.scores = np.ascontiguousarray(scores, np.float32)
        self._boards = np.ascontiguousarray(boards).reshape(-1, words)
        self._like = tuple(np.uint64(0) for _ in range(words))
        self._lanes = np.empty(NUM_VECTORS[words] * VECTOR_LANES, np.int32)
        self._turn_cells = layout.turn_cells[count_empties(boards, layout)].astype(np.int32)

    def correlate(self, targets: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Returns Xᵀ(targets - X·weights), float64 [num_weights]."""
        cells = np.zeros(self.layout.num_cells, np.float32)
        cells[1:] = weights[self.layout.weight_of_cell]
        sums = np.zeros(self.layout.num_cells, np.float64)
        _correlate(self._boards, targets, self._turn_cells, cells, sums, self.layout.header, self._lanes, self._like)
        return np.bincount(self.layout.weight_of_cell, sums[1:], self.layout.num_weights)


def _fit_stage(before: np.ndarray, positions: _Positions, config: FitConfig) -> np.ndarray:
    """Returns the stage's weights, float32 [num_weights], fitted."""
    nothing = np.zeros_like(positions.scores)
    counts = positions.correlate(np.ones_like(positions.scores), np.zeros_like(before))
    scale = 1 / np.maximum(counts + config.ridge, 1)
    change = np.zeros(len(before))
    residual = positions.correlate(positions.scores, before)
    direction = scale * residual
    length = residual @ direction
    for _ in range(config.num_steps):
        if length <= 0:
            break
        product = config.ridge * direction - positions.correlate(nothing, direction.astype(np.float32))
        step = length / (direction @ product)
        change += step * direction
        residual -= step * product
        previous, length = length, residual @ (scale * residual)
        direction = scale * residual + length / previous * direction
    return before + change.astype(np.float32)


@kernel
def _correlate(
    boards: np.ndarray,
    targets: np.ndarray,
    turn_cells: np.ndarray,
    weights: np.ndarray,
    sums: np.ndarray,
    packed: np.ndarray,
    lanes: np.ndarray,
    like: Bitboard,
) -> None:
    """Adds to the cells of each position what its sum of weights lacks to its target.

    boards: uint64 [2N, W]. targets: float32 [N]. turn_cells: int32 [N]. weights: float32 [num_cells], the first zero.
    sums: float64 [num_cells]; its first element is what lanes without a feature get.
    """
    for row in range(targets.shape[0]):
        write_cells(load(boards, 2 * row, like), load(boards, 2 * row + 1, like), packed, lanes)
        turn = turn_cells[row]
        total = weights[turn]
        for lane in range(lanes.shape[0]):
            total += weights[lanes[lane]]
        error = targets[row] - total
        sums[turn] += error
        for lane in range(lanes.shape[0]):
            sums[lanes[lane]] += error
