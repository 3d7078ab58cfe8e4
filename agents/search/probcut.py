"""Which searches a shallower one foretells, and how surely: the margins of multi-ProbCut.

Buro, "Experiments with Multi-ProbCut and a New High-Quality Evaluation Function for Othello" (1997): the value of a
deep search is that of a shallow one and an error, whose spread is measured. Where a shallow value is beyond a bound by
enough of that spread, the deep search is spared; and the shallow one is not begun where the evaluation itself is not as
far beyond. With learned n-tuples of 8×8 that looks at 5 to 8 % fewer positions at depths of 8 to 12, and misses fewer
moves. Shallow searches of half the depth, a third of it and one or two plies, and two of them one after the other,
differ by less than a tenth.

An error model is five numbers, float64 [5]: the logarithm of the error's standard deviation, in hundredths of a disc,
as a sum of `_features`. An empty one stands for an evaluation that was not measured, with which nothing is left out.
"""

import numpy as np

from agents.evaluation import Evaluation
from agents.ntuple.tables import NO_MODEL
from agents.search.memory import MARGIN_DEPTHS, ROW
from agents.search.midgame import FINISHED, Searcher, shallow_depth
from reversi_env import Position, Variant

# By `selectivity`: how many standard deviations make sure enough; a normal error is within them on the one side with a
# probability of 0.999, 0.995, 0.98, 0.93 and 0.86.
CONFIDENCES = (0.0, 3.1, 2.6, 2.0, 1.5, 1.1)
MOST_SELECTIVE = len(CONFIDENCES) - 1
LEAST_DEPTH = 3  # that a shallower search can foretell

_FEWEST_ERRORS = 200  # to fit a model to
_RANDOM_MOVES, _TAKEN = 0.1, 0.1  # shares of the moves and of the positions of sampled games
_NUM_DIGITS = 4  # of a model's numbers: more would differ from machine to machine


def _features(depth: np.ndarray, shallow: np.ndarray, num_empties: np.ndarray, num_squares: int) -> np.ndarray:
    """Returns what the logarithm of an error's spread is made of, float64 [N, 5]."""
    empty = num_empties / num_squares
    return np.stack([np.ones_like(empty), depth, shallow, empty, empty**2], axis=-1)


def margins(model: np.ndarray, selectivity: int, size: int) -> np.ndarray | None:
    """Returns how far beyond a bound a shallow value must be, int64 [depth, empties], in hundredths of a disc, or None.

    None leaves nothing out: with selectivity 0, or without a model.
    """
    if selectivity == 0 or model.size == 0:
        return None
    depth, num_empties = (grid.ravel() for grid in np.indices((MARGIN_DEPTHS, ROW)))
    shallow = np.array([shallow_depth(depth) for depth in range(MARGIN_DEPTHS)])[depth]
    log_spread = _features(depth, shallow, np.minimum(num_empties, size * size), size * size) @ model
    spread = np.exp(log_spread.clip(0, np.log(FINISHED)))
    enough = np.ceil(CONFIDENCES[selectivity] * spread).clip(1, FINISHED)
    table: np.ndarray = enough.astype(np.int64).reshape(MARGIN_DEPTHS, ROW)
    table[:LEAST_DEPTH] = 0
    table[(num_empties <= depth).reshape(table.shape)] = 0  # such a search sees the end, of which no evaluation tells
    return table


def measured_model(
    evaluation: Evaluation, variant: Variant, seed: int, num_positions: int = 400, most_depth: int = 7
) -> np.ndarray:
    """Returns the error model of an evaluation of a variant's positions, from those of its own games."""
    return fit_error_model(*sample_positions(evaluation, variant, num_positions, seed), evaluation, variant, most_depth)


def sample_positions(evaluation: Evaluation, variant: Variant, number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns positions, uint64 [number, W] as `Searcher` takes them, of games of an evaluation against itself.

    Both sides look two plies ahead, and move at random now and then. Of each game only some positions are taken.
    """
    generator = np.random.default_rng(seed)
    searcher = Searcher(variant.size)
    found: list[Position] = []
    while len(found) < number:
        position = Position(variant)
        while not position.is_over:
            if generator.random() < _TAKEN:
                found.append(position)
            if generator.random() < _RANDOM_MOVES:
                move = int(generator.choice(position.legal_moves))
            else:
                _, move = searcher.search(position.player, position.opponent, 2, evaluation, variant.rules)
            position = position.play(move)
    boards = np.array([(position.player, position.opponent) for position in found[:number]], np.uint64)
    return np.ascontiguousarray(boards[:, 0]), np.ascontiguousarray(boards[:, 1])


def fit_error_model(
    players: np.ndarray, opponents: np.ndarray, evaluation: Evaluation, variant: Variant, most_depth: int
) -> np.ndarray:
    """Returns the error model of an evaluation from searches of positions, uint64 [N, W] as `Searcher` takes them.

    It is the most likely one if errors are normal: a regression of their squares with a logarithmic link. Each depth
    from LEAST_DEPTH to `most_depth` is compared with all shallower ones that are as even or odd: the others err by more
    than an evaluation has to, since it tells apart who moved last. Searches that see the end of the game say nothing of
    the evaluation and do not count; where too few are left the model is empty.
    """
    searcher = Searcher(variant.size, 1 << 16)
    discs = np.bitwise_count(players).sum(axis=1) + np.bitwise_count(opponents).sum(axis=1)
    num_empties = variant.num_squares - discs.astype(np.int64)
    values = {
        depth: searcher.best_moves(players, opponents, depth, evaluation, variant.rules)[0]
        for depth in range(1, most_depth + 1)
    }
    features, squares = [], []
    for depth in range(LEAST_DEPTH, most_depth + 1):
        for shallow in range(2 - depth % 2, depth, 2):
            counts = (abs(values[depth]) < FINISHED) & (abs(values[shallow]) < FINISHED)
            rows = np.ones(np.count_nonzero(counts))
            features.append(_features(depth * rows, shallow * rows, num_empties[counts], variant.num_squares))
            squares.append((values[depth] - values[shallow])[counts].astype(np.float64) ** 2)
    if sum(map(len, squares)) < _FEWEST_ERRORS:
        return NO_MODEL
    return _fit_spread(np.concatenate(features), np.concatenate(squares)).round(_NUM_DIGITS)


def _fit_spread(features: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Returns w for which exp(2 · features · w) is most likely the mean of `squares`, by Fisher's scoring."""
    weights = np.zeros(features.shape[1])
    weights[0] = np.log(squares.mean() + 1) / 2
    for _ in range(30):
        mean = np.exp(2 * features @ weights)
        step = np.linalg.lstsq(features, (squares / mean - 1).clip(-1, 10), rcond=None)[0]
        weights += step / 2
    return weights
