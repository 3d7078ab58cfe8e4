"""The learner of policy and value by n-tuples: a step for each position, each weight at a rate of its own (AdaGrad).

Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization", Journal of
Machine Learning Research 12 (2011), as in `experiments.training.ntuple_learner`. A position moves the weights of its
own configurations towards the score that its game had, and those of the positions after its moves along the gradient of
the policy's cross-entropy. Symmetric configurations share a weight, so no position has to be turned or mirrored.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from agents.ntuple.lanes import write_cells
from agents.ntuple.layout import MOST_MOVES, NUM_VECTORS, VECTOR_LANES
from agents.ntuple.network import MARGIN, POLICY, TupleNetwork
from agents.ntuple.policy import TupleEvaluator, expected_result
from experiments.training.learner import LARGEST_BATCH, Learner
from experiments.training.optimizer import check_rates, cosine_rate, diverged
from experiments.training.replay import Replay, Samples
from experiments.training.tensors import check_tensors
from reversi_env import Position, Variant
from reversi_env.bitboard import load, square_of
from reversi_env.geometry import Bitboard, num_words
from reversi_env.jit import kernel
from reversi_env.rules import Rules, final_score, legal_mask, play_square
from reversi_env.vectors import count, is_empty, lowest, without_lowest

# What every sum of squares begins with, so that no weight takes what it sees first for the whole truth.
_FIRST_MARGIN_SQUARES = np.float32(300)  # disc²
_FIRST_POLICY_SQUARES = np.float32(3)
_FIRST_SLOPE_SQUARES = np.float32(10)

# Rates beside that of margins: 0.25, 0.5 and 1 of it left policies as good within 3 %.
_POLICY_RATE = 0.5
_SLOPE_RATE = 0.02

_SPREAD_SHARE = np.float32(0.002)  # of the newest squared error in their mean
_LEAST_SPREAD = np.float32(0.5)  # discs
_LEAST_GRADIENT = np.float32(1e-3)  # of a logit; most are smaller, and nothing is lost with them
_ROOT_HALF_PI = np.float32(math.sqrt(math.pi / 2))

# How many stages have their weights in common, up to a number of positions ever played. With 1, 2 and 4, policies that
# were fitted to a search of four plies on 8×8 had a KL divergence from it of 0.98, 0.88 and 0.84 after 60,000 positions
# and of 0.79, 0.76 and 0.74 after 240,000; from one of three plies, 0.666, 0.654 and 0.655 after 860,000.
_COMMON_STAGES = ((1_000_000, 4), (4_000_000, 2))

# What is summed up over the positions whose policy is learned, each by the weight of that.
NUM_POLICIES, POLICY_LOSS, POLICY_ENTROPY, POLICY_ACCURACY, MARGIN_ERROR, VALUE_LOSS, NUM_SUMS = range(7)


@dataclass
class TupleLearnerConfig:
    """How n-tuples are fitted to the games."""

    batch_size: int = 2048  # positions a step, each of which moves the weights on its own
    learning_rate: float = 0.5
    final_learning_rate: float = 0.1  # reached along a half cosine at the last iteration
    # Of what margins are drawn to; the rest is how the game ended. After a CPU minute of 8×8 from nothing, 0.5 scored
    # 60 % in 400 games against 0, and 64 % against 0.9.
    search_value_share: float = 0.5
    samples_per_position: float = 4.0  # how often a position is drawn on average while it is new

    def __post_init__(self) -> None:
        if not 1 <= self.batch_size <= LARGEST_BATCH:
            raise ValueError(f"batch_size must be from 1 to {LARGEST_BATCH:,}, got {self.batch_size}")
        check_rates(self.learning_rate, self.final_learning_rate)
        if not 0 <= self.search_value_share <= 1:
            raise ValueError(f"search_value_share must be from 0 to 1, got {self.search_value_share}")
        if not 0 < self.samples_per_position < math.inf:
            raise ValueError(f"samples_per_position must be above 0 and finite, got {self.samples_per_position}")


class _Drawn(NamedTuple):
    """Positions to learn from, n of them, see `Samples`."""

    player: np.ndarray  # uint64  [n, W]
    opponent: np.ndarray  # uint64  [n, W]
    policy: np.ndarray  # float32 [n, A]
    policy_weight: np.ndarray  # float32 [n]
    value: np.ndarray  # float32 [n]
    result: np.ndarray  # float32 [n]
    score: np.ndarray  # float32 [n]


class _Fitted(NamedTuple):
    """A network, and how much each of its numbers has moved: sums of squared gradients."""

    weights: np.ndarray  # float32 [num_stages, num_weights, 2]
    moved: np.ndarray  # float32, the same shape
    logit_per_disc: np.ndarray  # float32 [size² + 1]
    logit_moved: np.ndarray  # float32 [size² + 1]
    spread: np.ndarray  # float32 [size² + 1]


class _Finder(NamedTuple):
    """How the weights of a position are found, see `Layout`."""

    header: np.ndarray  # int16
    weight_of_cell: np.ndarray  # int32 [num_cells]
    stages: np.ndarray  # int64 [size² + 1]
    turn_cells: np.ndarray  # int64 [size² + 1]
    move_cells: tuple[int, int]


class _Rates(NamedTuple):
    margin: np.float32
    policy: np.float32
    slope: np.float32  # of `logit_per_disc`
    search_value_share: np.float32


class _Moves(NamedTuple):
    """Room for the moves of a position, M at the most, and for what they change; L lanes."""

    cells: np.ndarray  # int32 [L]  of the position after a move
    before: np.ndarray  # int32 [L]  of the position without it, for the same side to move
    square: np.ndarray  # int64 [M]
    margin: np.ndarray  # float32 [M]  for the side that moves
    logit: np.ndarray  # float32 [M]
    num_changed: np.ndarray  # int64 [M]
    lane: np.ndarray  # int32 [M, L]  those whose cell a move changes
    weight: np.ndarray  # int32 [M, L]  and the weight of each afterwards
    count_weights: np.ndarray  # int32 [M, 2]  those of the numbers of moves afterwards
    rest: np.ndarray  # float32 [L]  the gradient of what lies before a move on each lane


class TupleLearner(Learner):
    """A network of n-tuples, and how much each of its numbers has moved.

    What was moved fades with the positions that moved it: since targets change while the network gets better, no rate
    is to sink for good.
    """

    network: TupleNetwork
    config: TupleLearnerConfig

    def __init__(self, network: TupleNetwork, config: TupleLearnerConfig) -> None:
        self.network = network
        self.config = config
        self.num_steps = 0
        self._fitted = _Fitted(
            weights=network.weights,
            moved=np.zeros_like(network.weights),
            logit_per_disc=network.logit_per_disc,
            logit_moved=np.zeros_like(network.logit_per_disc),
            spread=network.spread,
        )

    def compile(self, variant: Variant) -> None:
        start = Position(variant)
        player, opponent = np.array([start.player], np.uint64), np.array([start.opponent], np.uint64)
        policy, value = TupleEvaluator(self.network)(player, opponent, variant)
        drawn = _Drawn(player, opponent, policy, *(value[:0] for _ in range(4)))  # no scores: no positions, no steps
        learn_samples(
            drawn,
            self._fitted,
            self._finder(1),
            _Rates(*value[[0] * 4]),
            _room_for(variant),
            np.zeros(NUM_SUMS),
            variant.rules,
        )

    def averaged(self) -> TupleNetwork:
        """Returns a copy of the network as it is: an average was better by no more than 1 % of the policy's loss."""
        return self.network.copy()

    def learn(
        self, replay: Replay, num_steps: int, progress: float, rng: np.random.Generator, check: Callable[[], None]
    ) -> dict[str, float]:
        if not len(replay) or num_steps < 1:
            return {}
        config = self.config
        rate = cosine_rate(config.learning_rate, config.final_learning_rate, progress)
        rates = _Rates(
            margin=np.float32(rate),
            policy=np.float32(_POLICY_RATE * rate),
            slope=np.float32(_SLOPE_RATE * rate),
            search_value_share=np.float32(config.search_value_share),
        )
        num_common = next((common for most, common in _COMMON_STAGES if replay.num_positions <= most), 1)
        finder = self._finder(num_common)
        room, sums = _room_for(replay.variant), np.zeros(NUM_SUMS)

        new = num_steps * config.batch_size / config.samples_per_position
        for moved in (self._fitted.moved, self._fitted.logit_moved):
            moved *= np.float32(max(1 - new / len(replay), 0))
        for _ in range(num_steps):
            check()
            drawn = _in_order(replay.draw_samples(config.batch_size, rng))
            learn_samples(drawn, self._fitted, finder, rates, room, sums, replay.variant.rules)
            self.num_steps += 1
        for array in (self._fitted.weights, self._fitted.moved):
            array[:] = array[np.arange(len(array)) // num_common * num_common]
        if not all(np.isfinite(array).all() for array in self._fitted):
            raise diverged("a weight is not finite", self.num_steps, rate, "tuples.learning_rate")
        return _metrics(sums) | {"train/learning_rate": rate, "train/steps": self.num_steps}

    def _finder(self, num_common: int) -> _Finder:
        """Returns how weights are found where so many stages have theirs in common."""
        layout = self.network.layout
        stages = layout.stages // num_common * num_common
        weight_of_cell = np.concatenate([[0], layout.weight_of_cell]).astype(np.int32)  # the cell 0 has none
        return _Finder(layout.header, weight_of_cell, stages, layout.turn_cells, layout.move_cells)

    def tensors(self) -> dict[str, Tensor]:
        return {name: torch.from_numpy(array.copy()) for name, array in self._fitted._asdict().items()}

    def load_tensors(self, tensors: Mapping[str, Tensor], num_steps: int) -> None:
        check_tensors(tensors, self.tensors(), "the learner")
        for name, least in (("spread", _LEAST_SPREAD), ("moved", 0), ("logit_moved", 0)):
            if (tensors[name] < least).any():
                raise ValueError(f"the learner has a {name} that no training leaves, below {least}")
        for name, array in self._fitted._asdict().items():
            array[:] = tensors[name].numpy()
        self.num_steps = num_steps


def _in_order(samples: Samples) -> _Drawn:
    """Returns samples as kernels take them, by their numbers of discs: so a stage's weights are fetched once."""
    num_discs = np.bitwise_count(samples.player | samples.opponent).sum(axis=1)
    samples = samples.at(np.argsort(num_discs, kind="stable"))
    policy, policy_weight, value, result, score = (
        array.astype(np.float32)
        for array in (samples.policy, samples.policy_weight, samples.value, samples.result, samples.score)
    )
    return _Drawn(samples.player, samples.opponent, policy, policy_weight, value, result, score)


def _metrics(sums: np.ndarray) -> dict[str, float]:
    means = sums / max(sums[NUM_POLICIES], 1e-6)
    return {
        "train/policy_loss": float(means[POLICY_LOSS]),  # nats
        "train/policy_entropy": float(means[POLICY_ENTROPY]),  # nats
        "train/policy_accuracy": float(means[POLICY_ACCURACY]),  # how often the likeliest move is the search's
        "train/margin_error": math.sqrt(means[MARGIN_ERROR]),  # discs
        "train/value_loss": float(means[VALUE_LOSS]),  # squared error of expected results, which nothing is fitted to
    }


def _room_for(variant: Variant) -> _Moves:
    most, lanes = variant.num_squares, NUM_VECTORS[num_words(variant.size)] * VECTOR_LANES
    return _Moves(
        cells=np.empty(lanes, np.int32),
        before=np.empty(lanes, np.int32),
        square=np.empty(most, np.int64),
        margin=np.empty(most, np.float32),
        logit=np.empty(most, np.float32),
        num_changed=np.empty(most, np.int64),
        lane=np.empty((most, lanes), np.int32),
        weight=np.empty((most, lanes), np.int32),
        count_weights=np.empty((most, 2), np.int32),
        rest=np.empty(lanes, np.float32),
    )


@kernel
def learn_samples(
    drawn: _Drawn, fitted: _Fitted, finder: _Finder, rates: _Rates, moves: _Moves, sums: np.ndarray, rules: Rules
) -> None:
    """Updates `fitted` with a step for each position, in their order, and `sums`, float64 [NUM_SUMS]."""
    for row in range(drawn.score.shape[0]):
        player, opponent = load(drawn.player, row, rules.squares), load(drawn.opponent, row, rules.squares)
        num_empties = rules.size * rules.size - count(player) - count(opponent)
        legal = legal_mask(player, opponent, rules)
        num_moves, num_replies = count(legal), count(legal_mask(opponent, player, rules))
        _learn_margin(
            player,
            opponent,
            num_empties,
            num_moves,
            num_replies,
            drawn.score[row],
            drawn.value[row],
            fitted,
            finder,
            rates,
            moves.cells,
        )
        if num_moves > 1 and drawn.policy_weight[row] > 0:
            _list_moves(player, opponent, legal, num_empties - 1, fitted, finder, moves, rules)
            _learn_policy(row, num_moves, num_empties, drawn, fitted, finder, rates, moves, sums)


@kernel
def _learn_margin(
    player: Bitboard,
    opponent: Bitboard,
    num_empties: int,
    num_moves: int,
    num_replies: int,
    score: np.float32,
    value: np.float32,
    fitted: _Fitted,
    finder: _Finder,
    rates: _Rates,
    cells: np.ndarray,
) -> None:
    """Moves the first weights of a position towards the score and, by a share, what makes the value of the search.

    The gradient of the latter is that of the loss whose link is `expected_result`, as the logistic function is that of
    cross-entropy, in units in which the two are alike about a margin of 0: so it needs no inverse, and is bounded.
    """
    stage = finder.stages[num_empties]
    weights = fitted.weights[stage]
    counts = (
        finder.weight_of_cell[finder.turn_cells[num_empties]],
        finder.weight_of_cell[finder.move_cells[0] + min(num_moves, MOST_MOVES)],
        finder.weight_of_cell[finder.move_cells[1] + min(num_replies, MOST_MOVES)],
    )
    write_cells(player, opponent, finder.header, cells)
    margin = weights[counts[0], MARGIN] + weights[counts[1], MARGIN] + weights[counts[2], MARGIN]
    for lane in range(cells.shape[0]):
        if cells[lane] != 0:
            margin += weights[finder.weight_of_cell[cells[lane]], MARGIN]
    error = score - margin
    if rates.search_value_share > 0:
        spread = fitted.spread[num_empties]
        searched = spread * _ROOT_HALF_PI * (value - expected_result(margin, spread))
        error += rates.search_value_share * (searched - error)
    for weight in counts:
        _step(fitted, stage, weight, MARGIN, error, rates.margin, _FIRST_MARGIN_SQUARES)
    for lane in range(cells.shape[0]):
        if cells[lane] != 0:
            weight = finder.weight_of_cell[cells[lane]]
            _step(fitted, stage, weight, MARGIN, error, rates.margin, _FIRST_MARGIN_SQUARES)


@kernel
def _list_moves(
    player: Bitboard,
    opponent: Bitboard,
    legal: Bitboard,
    num_empties: int,
    fitted: _Fitted,
    finder: _Finder,
    moves: _Moves,
    rules: Rules,
) -> None:
    """Fills `moves` but for the gradients, with logits yet without margins; `num_empties` are those after a move."""
    weights = fitted.weights[finder.stages[num_empties]]
    write_cells(opponent, player, finder.header, moves.before)
    first_margin = weights[finder.weight_of_cell[finder.turn_cells[num_empties]], MARGIN]
    first_logit = np.float32(0)
    for lane in range(moves.before.shape[0]):
        if moves.before[lane] != 0:
            weight = finder.weight_of_cell[moves.before[lane]]
            first_margin += weights[weight, MARGIN]
            first_logit += weights[weight, POLICY]
    number = 0
    while not is_empty(legal):
        square = square_of(lowest(legal), rules.size, legal)
        legal = without_lowest(legal)
        after = play_square(player, opponent, square, rules)
        num_replies = count(legal_mask(after[0], after[1], rules))
        num_next = count(legal_mask(after[1], after[0], rules))
        own = finder.weight_of_cell[finder.move_cells[0] + min(num_replies, MOST_MOVES)]
        other = finder.weight_of_cell[finder.move_cells[1] + min(num_next, MOST_MOVES)]
        margin = first_margin + weights[own, MARGIN] + weights[other, MARGIN]
        logit = first_logit + weights[own, POLICY] + weights[other, POLICY]
        write_cells(after[0], after[1], finder.header, moves.cells)
        num_changed = 0
        for lane in range(moves.cells.shape[0]):
            if moves.cells[lane] != moves.before[lane]:
                old, new = finder.weight_of_cell[moves.before[lane]], finder.weight_of_cell[moves.cells[lane]]
                margin += weights[new, MARGIN] - weights[old, MARGIN]
                logit += weights[new, POLICY] - weights[old, POLICY]
                moves.lane[number, num_changed], moves.weight[number, num_changed] = lane, new
                num_changed += 1
        if num_replies == 0 and num_next == 0:
            margin = np.float32(final_score(after[0], after[1], rules))
        moves.square[number], moves.margin[number], moves.logit[number] = square, -margin, logit
        moves.num_changed[number] = num_changed
        moves.count_weights[number, 0], moves.count_weights[number, 1] = own, other
        number += 1


@kernel
def _learn_policy(
    row: int,
    num_moves: int,
    num_empties: int,
    drawn: _Drawn,
    fitted: _Fitted,
    finder: _Finder,
    rates: _Rates,
    moves: _Moves,
    sums: np.ndarray,
) -> None:
    """Moves the second weights after each listed move along the gradient of the cross-entropy, and adds to `sums`."""
    stage = finder.stages[num_empties - 1]
    slope = fitted.logit_per_disc[num_empties]
    highest = np.float32(-np.inf)
    for number in range(num_moves):
        moves.logit[number] += slope * moves.margin[number]
        highest = max(highest, moves.logit[number])
    total = np.float32(0)
    for number in range(num_moves):
        total += np.exp(moves.logit[number] - highest)
    weight = drawn.policy_weight[row]
    mean = slope_gradient = np.float32(0)
    loss = entropy = 0.0
    likeliest = wanted = 0
    highest_share = highest_target = np.float32(-1)
    for number in range(num_moves):
        log_share = moves.logit[number] - highest - np.log(total)
        share, target = np.exp(log_share), drawn.policy[row, moves.square[number]]
        loss -= target * log_share
        entropy -= share * log_share
        mean += share * moves.margin[number]
        if share > highest_share:
            likeliest, highest_share = number, share
        if target > highest_target:
            wanted, highest_target = number, target
        moves.logit[number] = weight * (target - share)  # from here on the gradient
        slope_gradient += moves.logit[number] * moves.margin[number]
    error = drawn.score[row] - mean
    value_error = drawn.result[row] - expected_result(mean, fitted.spread[num_empties])
    sums[NUM_POLICIES] += weight
    sums[POLICY_LOSS] += weight * loss
    sums[POLICY_ENTROPY] += weight * entropy
    sums[POLICY_ACCURACY] += weight * (likeliest == wanted)
    sums[MARGIN_ERROR] += weight * error * error
    sums[VALUE_LOSS] += weight * value_error * value_error

    spread = fitted.spread[num_empties]
    variance = spread * spread + _SPREAD_SHARE * weight * (error * error - spread * spread)
    fitted.spread[num_empties] = max(np.sqrt(variance), _LEAST_SPREAD)
    fitted.logit_moved[num_empties] += slope_gradient * slope_gradient
    rate = rates.slope / np.sqrt(fitted.logit_moved[num_empties] + _FIRST_SLOPE_SQUARES)
    fitted.logit_per_disc[num_empties] += rate * slope_gradient

    moves.rest[:] = 0
    for number in range(num_moves):
        gradient = moves.logit[number]
        if abs(gradient) > _LEAST_GRADIENT:
            for place in range(moves.num_changed[number]):
                moves.rest[moves.lane[number, place]] -= gradient  # all gradients of a lane sum to nothing
                _step(fitted, stage, moves.weight[number, place], POLICY, gradient, rates.policy, _FIRST_POLICY_SQUARES)
            for place in range(2):
                count_weight = moves.count_weights[number, place]
                _step(fitted, stage, count_weight, POLICY, gradient, rates.policy, _FIRST_POLICY_SQUARES)
    for lane in range(moves.rest.shape[0]):
        if abs(moves.rest[lane]) > _LEAST_GRADIENT:
            old = finder.weight_of_cell[moves.before[lane]]
            _step(fitted, stage, old, POLICY, moves.rest[lane], rates.policy, _FIRST_POLICY_SQUARES)


@kernel
def _step(
    fitted: _Fitted,
    stage: int,
    weight: int,
    kind: int,
    gradient: np.float32,
    rate: np.float32,
    first_squares: np.float32,
) -> None:
    """Takes a step with one weight along a gradient."""
    fitted.moved[stage, weight, kind] += gradient * gradient
    fitted.weights[stage, weight, kind] += rate * gradient / np.sqrt(fitted.moved[stage, weight, kind] + first_squares)
