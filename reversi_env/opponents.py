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
from reversi_env.random_bits import below, first_state, next_state
from reversi_env.rules import Rules, flip_mask
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
def draw_favorite(
    player: Bitboard,
    opponent: Bitboard,
    legal: Bitboard,
    kind: int,
    state: np.uint64,
    weights: np.ndarray,
    rules: Rules,
) -> int:
    """Returns one of the squares that a player of this kind likes best; `state` says which."""
    best = favorites(player, opponent, legal, kind, weights, rules)
    return square_of(nth_bit(best, below(state, count(best))), rules.size, player)


@kernel
def _choose(
    boards: np.ndarray, kind: int, rng_state: np.ndarray, moves: np.ndarray, weights: np.ndarray, rules: Rules
) -> None:
    like = rules.squares
    for game in range(boards.shape[0]):
        legal = load(boards[game], LEGAL, like)
        if is_empty(legal):
            moves[game] = rules.size * rules.size
        else:
            player, opponent = load(boards[game], PLAYER, like), load(boards[game], OPPONENT, like)
            rng_state[game] = next_state(rng_state[game])
            moves[game] = draw_favorite(player, opponent, legal, kind, rng_state[game], weights, rules)


class Baseline:
    """One of the three: a function of a position and a generator, and an opponent of many games at once."""

    def __init__(self, name: str, kind: int) -> None:
        self.name = name
        self.kind = kind

    def __call__(self, position: Position, rng: np.random.Generator) -> int:
        """Returns the move to play: a square or the pass. Draws one number; raises ValueError when the game is over."""
        if position.is_over:
            raise ValueError(f"the game is over, so there is nothing to choose: {position.text}")
        boards = np.array([[position.player, position.opponent, position.legal]], np.uint64)
        moves = np.empty(1, np.int64)
        self.choose(
            position.variant, boards, np.array([position.is_black_to_move]), np.array([first_state(rng)]), moves
        )
        return int(moves[0])

    def choose(
        self, variant: Variant, boards: np.ndarray, is_black: np.ndarray, rng_state: np.ndarray, moves: np.ndarray
    ) -> None:
        """Writes a move for each game, as any `BatchOpponent` does."""
        _choose(boards, self.kind, rng_state, moves, square_weights(variant.size), variant.rules)

    def __repr__(self) -> str:
        return f"BASELINES[{self.name!r}]"


BASELINES = {
    name: Baseline(name, kind) for name, kind in (("random", RANDOM), ("greedy", GREEDY), ("positional", POSITIONAL))
}
