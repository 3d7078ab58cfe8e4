"""The simple players: yardsticks, and sparring partners for the first hours of training."""

from collections.abc import Callable

import numpy as np

from agents.agent import Agent, Decision
from agents.evaluation import Evaluation, evaluation_of
from reversi_env import Position
from reversi_env.bitboard import nth_bit, square_of
from reversi_env.geometry import Bitboard
from reversi_env.jit import kernel
from reversi_env.opponents import BASELINES
from reversi_env.rules import Rules, legal_mask, play
from reversi_env.vectors import bit, count, is_empty, lowest, no_square, overlap, union, without_lowest

CORNER = 5  # moves of the opponent that a corner is worth

_WORST = -(1 << 30)


class FunctionAgent(Agent):
    """A player made of a function that returns a move."""

    def __init__(self, choose: Callable[[Position, np.random.Generator], int], name: str) -> None:
        self.name = name
        self._choose = choose

    def select(self, position: Position, rng: np.random.Generator) -> Decision:
        """Returns the function's move; what it raises, and whether that is a legal move, is the caller's to see."""
        return Decision(self._choose(position, rng))


def baseline(name: str) -> Agent:
    """Returns "random", "greedy" or "positional", the players of `reversi_env.opponents`."""
    return FunctionAgent(BASELINES[name], name)


class MobilityAgent(Agent):
    """Leaves the opponent as few moves as it can; among equals it draws.

    A move's rank is −(the opponent's moves after it), + CORNER if it takes a corner, − CORNER for every corner that it
    lets the opponent take; with the fewest discs as the goal, corners count the other way round. That few moves for
    the other side and corners decide the game: Rose, "Othello: A Minute to Learn... A Lifetime to Master", 2005,
    chapters 2 to 4; the weight of a corner is a round guess.
    """

    name = "mobility"

    def select(self, position: Position, rng: np.random.Generator) -> Decision:
        """Returns one of the best ranked moves; raises ValueError where the game is over."""
        if position.is_over:
            raise ValueError(f"the game is over, so there is no move to choose: {position.text}")
        if position.must_pass:
            return Decision(position.variant.pass_move)
        evaluation, rules = evaluation_of("mobility", position.variant), position.variant.rules
        return Decision(
            choose_mobility(position.player, position.opponent, position.legal, rng.random(), evaluation, rules)
        )


@kernel
def choose_mobility(
    player: Bitboard, opponent: Bitboard, legal: Bitboard, uniform: float, evaluation: Evaluation, rules: Rules
) -> int:
    """Returns one of the best ranked squares of `legal`, which has one; `uniform`, from 0 up to 1, says which."""
    corner = -CORNER if rules.fewest else CORNER
    best = no_square(legal)
    best_rank = _WORST
    while not is_empty(legal):
        index = lowest(legal)
        move = bit(index, legal)
        after = play(player, opponent, move, rules)
        replies = legal_mask(after[0], after[1], rules)
        taken, given = overlap(move, evaluation.corners), overlap(replies, evaluation.corners)
        rank = corner * (count(taken) - count(given)) - count(replies)
        if rank > best_rank:
            best, best_rank = no_square(legal), rank
        if rank == best_rank:
            best = union(best, move)
        legal = without_lowest(legal)
    return square_of(nth_bit(best, int(uniform * count(best))), rules.size, best)
