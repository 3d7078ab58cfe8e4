"""Which searches a shallower one foretells, and how surely: the margins of multi-ProbCut.

Buro, "Experiments with Multi-ProbCut and a New High-Quality Evaluation Function for Othello" (1997): the value of a
deep search is that of a shallow one and an error, whose spread is measured. Where a shallow value is beyond a bound by
enough of that spread, the deep search is spared.

An error model is five numbers, float64 [5]: the logarithm of the error's standard deviation, in hundredths of a disc,
as a sum of `_features`. An empty one stands for an evaluation that was not measured, with which nothing is left out.
"""

import numpy as np

from agents.evaluation import Evaluation
from agents.search.memory import MARGIN_DEPTHS, ROW
from agents.search.midgame import FINISHED, Searcher, shallow_depth
from reversi_env.rules import Rules

# By `selectivity`: how many standard deviations make sure enough; a normal error is within them on the one side with a
# probability of 0.999, 0.995, 0.98, 0.93 and 0.86.
CONFIDENCES = (0.0, 3.1, 2.6, 2.0, 1.5, 1.1)
MOST_SELECTIVE = len(CONFIDENCES) - 1
LEAST_DEPTH = 3  # that a shallower search can foretell

NO_MODEL = np.empty(0)
# Fitted by `fit_error_model` to LEAST_DEPTH to 8 plies of 8×8 positions of `sample_positions`.
MODELS = {
    "mobility": np.array([6.4755, 0.1955, -0.2581, -2.2925, 0.3042]),
    "positional": np.array([5.9362, 0.2006, -0.2890, -10.2280, 7.0564]),
    "discs": np.array([6.7345, 0.2012, -0.2919, -4.1879, 2.0772]),
}


def _features(depth: np.ndarray, num_empties: np.ndarray, num_squares: int) -> np.ndarray:
    """Returns what the logarithm of an error's spread is made of, float64 [..., 5]."""
    empty = num_empties / num_squares
    shallow = 2 * (depth // 4) + depth % 2
    return np.stack([np.ones_like(empty), depth + 0 * empty, shallow + 0 * empty, empty, empty**2], axis=-1)


def margins(model: np.ndarray, selectivity: int, size: int) -> np.ndarray | None:
    """Returns how far beyond a bound a shallow value must be, int64 [depth, empties], in hundredths of a disc, or None.

    None leaves nothing out: with selectivity 0, or without a model.
    """
    if selectivity == 0 or model.size == 0:
        return None
    depth, num_empties = np.meshgrid(np.arange(MARGIN_DEPTHS), np.arange(ROW), indexing="ij")
    spread = np.exp(_features(depth, np.minimum(num_empties, size * size), size * size) @ model)
    table: np.ndarray = np.ceil(CONFIDENCES[selectivity] * spread).clip(1, FINISHED).astype(np.int64)
    table[:LEAST_DEPTH] = 0
    return table


def fit_error_model(
    players: np.ndarray, opponents: np.ndarray, evaluation: Evaluation, rules: Rules, most_depth: int = 8
) -> np.ndarray:
    """Returns the error model of an evaluation from searches of positions, uint64 [N, W] as `Searcher` takes them.

    It is the most likely one if errors are normal: a regression of their squares with a logarithmic link. Searches that
    see the end of the game say nothing of the evaluation and do not count.
    """
    searcher = Searcher(rules.size, 1 << 16)
    num_squares = rules.size * rules.size
    discs = np.bitwise_count(players).sum(axis=1) + np.bitwise_count(opponents).sum(axis=1)
    num_empties = num_squares - discs.astype(np.int64)
    values = {
        depth: searcher.best_moves(players, opponents, depth, evaluation, rules)[0]
        for depth in range(1, most_depth + 1)
    }
    features, squares = [], []
    for depth in range(LEAST_DEPTH, most_depth + 1):
        deep, shallow = values[depth], values[shallow_depth(depth)]
        counts = (abs(deep) < FINISHED) & (abs(shallow) < FINISHED)
        features.append(_features(np.full(counts.sum(), depth), num_empties[counts], num_squares))
        squares.append((deep - shallow)[counts].astype(np.float64) ** 2)
    return _fit_spread(np.concatenate(features), np.concatenate(squares))


def _fit_spread(features: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Returns w for which exp(2 · features · w) is most likely the mean of `squares`, by Fisher's scoring."""
    weights = np.zeros(features.shape[1])
    weights[0] = np.log(squares.mean() + 1) / 2
    for _ in range(30):
        mean = np.exp(2 * features @ weights)
        step = np.linalg.lstsq(features, (squares / mean - 1).clip(-1, 10), rcond=None)[0]
        weights += step / 2
    return weights
