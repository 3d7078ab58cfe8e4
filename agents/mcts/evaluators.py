"""What judges positions in a tree search without a network: random playouts, or an evaluation in discs."""

import numpy as np

from agents.evaluation import DISC, KINDS, Evaluation, evaluate, evaluation_of
from reversi_env import Variant
from reversi_env.bitboard import load, nth_bit, square_of
from reversi_env.geometry import Bitboard
from reversi_env.jit import kernel
from reversi_env.random_bits import draw_below, scramble
from reversi_env.rules import MUST_MOVE, MUST_PASS, OVER, Rules, final_score, legal_mask, play, status
from reversi_env.vectors import bit, count, is_empty, lowest, without_lowest

MOST_PLAYOUTS = 10_000

# What an evaluation in discs is as an expected result: tanh(discs / spread); and the policy is a softmax of what a move
# leaves, in discs over a temperature. Chosen by matches, see experiments/LOG.md, "Tree search without a network".
_HANDMADE_SPREAD, _LEARNED_SPREAD = 16.0, 8.0
_HANDMADE_TEMPERATURE, _LEARNED_TEMPERATURE = 4.0, 2.0


class Playouts:
    """An Evaluator: the mean result of random games from a position on; all moves are equally likely before.

    What it draws depends on the position and the seed alone.
    """

    def __init__(self, num_playouts: int = 1, seed: int = 0) -> None:
        if not 1 <= num_playouts <= MOST_PLAYOUTS:
            raise ValueError(f"playouts must be from 1 to {MOST_PLAYOUTS:,}, got {num_playouts}")
        self.num_playouts = num_playouts
        self.seed = np.uint64(seed)

    def __call__(self, player: np.ndarray, opponent: np.ndarray, variant: Variant) -> tuple[np.ndarray, np.ndarray]:
        policy = np.zeros((len(player), variant.num_actions), np.float32)
        value = np.empty(len(player), np.float32)
        _play_out(player, opponent, self.num_playouts, self.seed, policy, value, variant.rules)
        return policy, value


class InDiscs:
    """An Evaluator by an evaluation of `agents.evaluation`, which is asked for a position and for every move's."""

    def __init__(self, name: str) -> None:
        """Takes a name, or a folder of tables, as `evaluation_of` does."""
        self.name = name
        self._evaluations: dict[Variant, Evaluation] = {}
        is_handmade = name in KINDS
        self._spread = _HANDMADE_SPREAD if is_handmade else _LEARNED_SPREAD
        self._temperature = _HANDMADE_TEMPERATURE if is_handmade else _LEARNED_TEMPERATURE

    def __call__(self, player: np.ndarray, opponent: np.ndarray, variant: Variant) -> tuple[np.ndarray, np.ndarray]:
        policy = np.zeros((len(player), variant.num_actions), np.float32)
        value = np.empty(len(player), np.float32)
        if (evaluation := self._evaluations.get(variant)) is None:
            evaluation = self._evaluations[variant] = evaluation_of(self.name, variant)
        _look(player, opponent, self._spread, self._temperature, policy, value, evaluation, variant.rules)
        return policy, value


@kernel
def _random_result(player: Bitboard, opponent: Bitboard, states: np.ndarray, rules: Rules) -> int:
    """Returns the result for `player` of a game in which every legal move is equally likely."""
    sign = 1
    while True:
        legal = legal_mask(player, opponent, rules)
        if is_empty(legal):
            if status(player, opponent, legal, rules) == OVER:
                return sign * int(np.sign(final_score(player, opponent, rules)))
            player, opponent = opponent, player
        else:
            move = bit(nth_bit(legal, draw_below(states, 0, count(legal))), legal)
            player, opponent = play(player, opponent, move, rules)
        sign = -sign


@kernel
def _play_out(
    player: np.ndarray,
    opponent: np.ndarray,
    num_playouts: int,
    seed: np.uint64,
    policy: np.ndarray,
    value: np.ndarray,
    rules: Rules,
) -> None:
    """Fills what `Playouts` says of positions uint64 [n, W]; `policy` is all zero before."""
    states = np.empty(1, np.uint64)
    for row in range(value.shape[0]):
        own, other = load(player, row, rules.squares), load(opponent, row, rules.squares)
        states[0] = seed
        for word in range(len(own)):
            states[0] = scramble(scramble(states[0] ^ own[word]) ^ other[word])
        total = 0
        for _ in range(num_playouts):
            total += _random_result(own, other, states, rules)
        value[row] = total / num_playouts
        legal = legal_mask(own, other, rules)
        if is_empty(legal):
            policy[row, rules.size * rules.size] = 1
        share = 1 / max(count(legal), 1)
        while not is_empty(legal):
            policy[row, square_of(lowest(legal), rules.size, legal)] = share
            legal = without_lowest(legal)


@kernel
def _discs(player: Bitboard, opponent: Bitboard, evaluation: Evaluation, rules: Rules) -> float:
    """Returns what a position is worth in discs for `player`: the score where it is over; a pass is looked through."""
    legal = legal_mask(player, opponent, rules)
    what = status(player, opponent, legal, rules)
    if what == OVER:
        return float(final_score(player, opponent, rules))
    if what == MUST_PASS:
        return -evaluate(opponent, player, evaluation, rules) / DISC
    return evaluate(player, opponent, evaluation, rules) / DISC


@kernel
def _look(
    player: np.ndarray,
    opponent: np.ndarray,
    spread: float,
    temperature: float,
    policy: np.ndarray,
    value: np.ndarray,
    evaluation: Evaluation,
    rules: Rules,
) -> None:
    """Fills what `InDiscs` says of positions uint64 [n, W]; `policy` is all zero before."""
    for row in range(value.shape[0]):
        own, other = load(player, row, rules.squares), load(opponent, row, rules.squares)
        value[row] = np.tanh(_discs(own, other, evaluation, rules) / spread)
        legal = legal_mask(own, other, rules)
        if status(own, other, legal, rules) != MUST_MOVE:
            policy[row, rules.size * rules.size] = 1
            continue
        left, greatest = legal, -np.inf
        while not is_empty(left):
            index = lowest(left)
            after = play(own, other, bit(index, left), rules)
            worth = -_discs(after[0], after[1], evaluation, rules)
            policy[row, square_of(index, rules.size, left)] = worth
            greatest = max(greatest, worth)
            left = without_lowest(left)
        total = 0.0
        left = legal
        while not is_empty(left):
            square = square_of(lowest(left), rules.size, left)
            policy[row, square] = np.exp((policy[row, square] - greatest) / temperature)
            total += policy[row, square]
            left = without_lowest(left)
        while not is_empty(legal):
            policy[row, square_of(lowest(legal), rules.size, legal)] /= total
            legal = without_lowest(legal)
