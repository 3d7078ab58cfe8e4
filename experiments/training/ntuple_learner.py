"""The learner of n-tuples: steps along the error of single positions, each weight at a rate of its own (AdaGrad).

Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization", Journal of
Machine Learning Research 12 (2011): a weight moves the less the more it has moved, so those of rare configurations
learn faster than those of common ones, which settle. Here the sums that say how much fade with their positions, since
targets change while the tables get better.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from agents.ntuple.lanes import write_cells
from agents.ntuple.layout import NUM_VECTORS, VECTOR_LANES, Layout
from reversi_env.bitboard import load
from reversi_env.geometry import Bitboard, num_words
from reversi_env.jit import kernel
from reversi_env.vectors import count

# What every sum begins with, disc²: the errors of some eight positions. With none each of some 47 weights goes half a
# disc at its first sight, and one that is seldom seen keeps most of that. 3,000 learns as well, 1 worse.
_FIRST_SQUARES = np.float32(300)


class NTupleLearner:
    """Weights and how much each has moved."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.weights = np.zeros((layout.num_stages, layout.num_weights), np.float32)
        self.moved = np.zeros_like(self.weights)  # sums of squared errors

    def learn(
        self, boards: np.ndarray, target: np.ndarray, order: np.ndarray, rate: float, keep: float, num_threads: int
    ) -> None:
        """Takes a step for each position of `order`, int64, rows of `boards` and `target` as `Positions` has them.

        `keep` is the share that is kept of the sums before. Threads take different stages, so the result does not
        depend on their number.
        """
        layout = self.layout
        words = num_words(layout.size)
        stages = layout.stages[layout.count_empties(boards[order])]
        self.moved *= np.float32(keep)
        header = layout.header
        weight_of_cell = np.concatenate([[0], layout.weight_of_cell]).astype(np.int32)  # cell 0 has none
        rows = np.ascontiguousarray(boards).reshape(-1, words)

        def learn_stage(stage: int) -> None:
            _learn_stage(
                rows,
                target,
                order[stages == stage],
                rate,
                layout.num_squares,
                layout.turn_cells,
                weight_of_cell,
                self.weights[stage],
                self.moved[stage],
                header,
                np.empty(NUM_VECTORS[words] * VECTOR_LANES, np.int32),
                tuple(np.uint64(0) for _ in range(words)),
            )

        with ThreadPoolExecutor(num_threads) as threads:
            for _ in threads.map(learn_stage, range(layout.num_stages)):
                pass


@kernel
def _learn_stage(
    boards: np.ndarray,
    target: np.ndarray,
    order: np.ndarray,
    rate: float,
    num_squares: int,
    turn_cells: np.ndarray,
    weight_of_cell: np.ndarray,
    weights: np.ndarray,
    moved: np.ndarray,
    header: np.ndarray,
    lanes: np.ndarray,
    like: Bitboard,
) -> None:
    """Updates `weights` and `moved`, float32 [num_weights], with a step for each position of `order`.

    boards: uint64 [2N, W]. target: float32 [N]. header: that of Layout.
    """
    for row in order:
        player, opponent = load(boards, 2 * row, like), load(boards, 2 * row + 1, like)
        write_cells(player, opponent, header, lanes)
        turn = weight_of_cell[turn_cells[num_squares - count(player) - count(opponent)]]
        total = weights[turn]
        for lane in range(lanes.shape[0]):
            if lanes[lane] != 0:
                total += weights[weight_of_cell[lanes[lane]]]
        error = target[row] - total
        step, square = rate * error, error * error
        moved[turn] += square
        weights[turn] += step / np.sqrt(moved[turn] + _FIRST_SQUARES)
        for lane in range(lanes.shape[0]):
            if lanes[lane] != 0:
                place = weight_of_cell[lanes[lane]]
                moved[place] += square
                weights[place] += step / np.sqrt(moved[place] + _FIRST_SQUARES)
