"""The three simplest players, as kernels: random, greedy and positional. The environment and `agents` share them.

Each names the moves that it likes best and draws one of them, all equally likely. All know the goal: where the fewest
discs win, greedy takes the fewest and positional sees every weight with its sign turned.
"""

from functools import cache

import numpy as np

from reversi_env.bitboard import bit_of, load, nth_bit, square_of
from reversi_env.geometry import Bitboard
from reversi_env.jit import kernel
from reversi_env.position import LEGAL, OPPONENT, PLAYER, Position
from reversi_env.rules import Rules, flip_mask, rules_for_moves
from reversi_env.variant import Variant
from reversi_env.vectors import bit, count, is_empty, lowest, no_square, union, without_lowest

RANDOM, GREEDY, POSITIONAL = 0, 1, 2
_WORST = -(1 << 30)

# By the distances from the nearest edges, 0 to 3, of the row and of the column. The table of 8×8 is that of P. Norvig,
# "Paradigms of Artificial Intelligence Programming", 1992, section 18.4: a corner can never be turned, and the squares
# beside it give it away, whatever the size; so other boards keep the distances, and 10×10 repeats the last.
_WEIGHTS = np.array(
    [
        [120, -20, 20, 5],
        [-20, -40, -5, -5],
        [20, -5, 15, 3],
        [5, -5, 3, 3],
    ]
)


@cache
def square_weights(size: int) -> np.ndarray:
    """Returns what a disc on each square is worth when the most discs win, int64 [size²]. Read-only.

    A position is worth the mover's weights minus the other side's; turn the sign where the fewest discs win.
    """
    distances = np.minimum(np.arange(size), np.arange(size)[::-1]).clip(max=len(_WEIGHTS) - 1)
    weights: np.ndarray = _WEIGHTS[np.ix_(distances, distances)].ravel()
    weights.flags.writeable = False
    return weights


@kernel
def move_gain(player: Bitboard, opponent: Bitboard, square: int, weights: np.ndarray, rules: Rules) -> int:
    """Returns by how much a move to `square` raises the mover's weights, [size²], minus the other side's."""
    gain: int = weights[square]
    flipped = flip_mask(player, opponent, bit(bit_of(square, rules.size, player), player), rules)
    while not is_empty(flipped):
        gain += 2 * weights[square_of(lowest(flipped), rules.size, player)]
        flipped = without_lowest(flipped)
    return gain


@kernel
def favorites(
    player: Bitboard, opponent: Bitboard, legal: Bitboard, kind: int, weights: np.ndarray, rules: Rules
) -> Bitboard:
    """Returns the legal squares that a player of this kind (RANDOM, GREEDY or POSITIONAL) likes best, all alike."""
    if kind == RANDOM:
        return legal
    best = no_square(legal)
    best_value = _WORST
    while not is_empty(legal):
        index = lowest(legal)
        if kind == GREEDY:
            value = count(flip_mask(player, opponent, bit(index, player), rules))
        else:
            value = move_gain(player, opponent, square_of(index, rules.size, player), weights, rules)
        if rules.fewest:
            value = -value
        if value > best_value:
            best, best_value = no_square(legal), value
        if value == best_value:
            best = union(best, bit(index, player))
        legal = without_lowest(legal)
    return best


@kernel
def _choose(
    boards: np.ndarray,
    kind: int,
    uniform: float,
    weights: np.ndarray,
    field: np.ndarray,
    size: int,
    fewest: bool,
    like: Bitboard,
) -> int:
    rules = rules_for_moves(field, size, fewest, like)
    legal = load(boards, LEGAL, like)
    if is_empty(legal):
        return size * size
    best = favorites(load(boards, PLAYER, like), load(boards, OPPONENT, like), legal, kind, weights, rules)
    return square_of(nth_bit(best, int(uniform * count(best))), size, like)


@kernel
def _choose_one_word(
    boards: np.ndarray, kind: int, uniform: float, weights: np.ndarray, field: np.ndarray, size: int, fewest: bool
) -> int:
    return _choose(boards, kind, uniform, weights, field, size, fewest, (np.uint64(0),))


@kernel
def _choose_two_words(
    boards: np.ndarray, kind: int, uniform: float, weights: np.ndarray, field: np.ndarray, size: int, fewest: bool
) -> int:
    return _choose(boards, kind, uniform, weights, field, size, fewest, (np.uint64(0), np.uint64(0)))


class Baseline:
    """One of the three, called with a position and a generator: `BASELINES["greedy"](position, rng)` returns a move."""

    def __init__(self, name: str, kind: int) -> None:
        self.name = name
        self.kind = kind

    def __call__(self, position: Position, rng: np.random.Generator) -> int:
        """Returns the move to play: a square or the pass. Draws one number; raises ValueError when the game is over."""
        if position.is_over:
            raise ValueError(f"the game is over, so there is nothing to choose: {position.text}")
        boards = np.array([position.player, position.opponent, position.legal], np.uint64)
        return self.choose(boards, position.variant, rng.random())

    def choose(self, boards: np.ndarray, variant: Variant, uniform: float) -> int:
        """Returns the move for the side to move; no legal square means the pass.

        `boards`, uint64 [3, W], are its discs, the other side's, and its legal squares; `uniform`, from 0 up to 1,
        decides between equally good moves.
        """
        choose = _choose_one_word if boards.shape[1] == 1 else _choose_two_words
        size = variant.size
        return choose(boards, self.kind, uniform, square_weights(size), variant.field, size, variant.goal == "fewest")

    def __repr__(self) -> str:
        return f"BASELINES[{self.name!r}]"


BASELINES = {
    name: Baseline(name, kind) for name, kind in (("random", RANDOM), ("greedy", GREEDY), ("positional", POSITIONAL))
}
