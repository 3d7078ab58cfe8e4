"""Why a move is good or bad: the reasons that a teacher would give, with figures.

They are those of Rose, "Othello: A Minute to Learn... A Lifetime to Master", 2005: corners, the squares beside them and
stable discs (chapter 2), the frontier (chapter 3), mobility, safe moves, and parity by regions. A count for which there
is no natural measure is judged beside those of the other legal moves. What each reason is worth, where the most discs
win and where the fewest do, was measured against exact scores, see experiments/LOG.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import index
from typing import SupportsIndex

import numpy as np

from agents.evaluation import Evaluation, evaluate, evaluation_of, neighbors
from agents.reasons import (
    IMPORTANCE,
    ExactScore,
    FlipsDiscs,
    LosesDiscs,
    Mobility,
    OnlyMove,
    OpensCorner,
    OpponentPasses,
    Parity,
    Reason,
    Replies,
    RisksCorner,
    StableDiscs,
    TakesCorner,
    WipesOut,
)
from agents.search.solver import Solver
from agents.search.stability import stable_discs
from reversi_env import Position
from reversi_env.geometry import Bitboard, to_bitboard, to_squares
from reversi_env.jit import kernel
from reversi_env.rules import Rules, legal_mask, play
from reversi_env.vectors import bit, count, is_empty, lowest, overlap, union, without, without_lowest

EXACT_EMPTIES = 14  # a solver tells the scores of all moves of such a position of 8×8 in about 0.03 s
LARGEST_REGION = 4  # whether a larger one is odd or even tells nothing of the score, see experiments/LOG.md
SPREAD = 3  # counts of all moves that lie closer together tell nothing
FEW_SAFE = 1  # so few safe replies are few beside any others

NUM_REPLIES, NUM_SAFE, NUM_OWN_MOVES, NUM_FLIPPED, NUM_FRONTIER = range(5)  # columns of the figures
_NUM_FIGURES = 5


@dataclass(frozen=True)
class Explanation:
    """What speaks for and against a move, the most important first; perhaps nothing."""

    position: Position
    move: int
    reasons: tuple[Reason, ...]


def explain(
    position: Position, move: SupportsIndex, solver: Solver | None = None, exact_empties: int = EXACT_EMPTIES
) -> Explanation:
    """Returns the reasons for and against a legal move, for the side to move.

    A solver of the variant adds the exact score where at most `exact_empties` squares are empty; without one only moves
    that end the game have it. Raises IllegalMoveError for a move that is not legal, ValueError where the game is over.
    """
    if position.is_over:
        raise ValueError(f"the game is over, so there is no move to explain: {position.text}")
    position.play(move)  # raises where it is not legal
    return _explanation(position, index(move), _exact_scores(position, solver, exact_empties))


def explain_moves(
    position: Position, solver: Solver | None = None, exact_empties: int = EXACT_EMPTIES
) -> dict[int, Explanation]:
    """Returns what `explain` tells of every legal move, {move: explanation}, with the position solved once for all."""
    scores = _exact_scores(position, solver, exact_empties)
    return {move: _explanation(position, move, scores) for move in position.legal_moves}


def _explanation(position: Position, move: int, scores: Mapping[int, int]) -> Explanation:
    after = position.play(move)
    reasons = [*_exact_reasons(position, move, scores)]
    if position.must_pass:
        reasons.append(OnlyMove(True))
    else:
        reasons += _reasons(position, move, after)
    return Explanation(position, move, tuple(sorted(reasons, key=lambda reason: IMPORTANCE.index(type(reason)))))


def _reasons(position: Position, move: int, after: Position) -> Iterator[Reason]:
    """Yields all but the exact ones for a move to a square, those of one kind in rising order of corners."""
    fewest = position.variant.goal == "fewest"
    figures = _figures(position)
    mine = figures[position.legal_moves.index(move)].tolist()
    if len(position.legal_moves) == 1:
        yield OnlyMove(True)
    if mine[NUM_FLIPPED] == 0:  # the center is being filled, where one square is as good as another
        return
    if not any(after.player):
        yield WipesOut(not fewest, mine[NUM_FLIPPED])
    yield from _corner_reasons(position, move, after)
    if region := _region(position, move):
        yield _parity(region, move, after)
    yield from _stable_reasons(position, after)
    if after.is_over:
        return
    if after.must_pass:
        yield OpponentPasses(not fewest, mine[NUM_OWN_MOVES])
    else:
        standing = -1 if mine[NUM_SAFE] <= FEW_SAFE else _standing(figures, mine, NUM_SAFE)
        has_corner = not fewest and any(reply in _x_squares(position.variant.size) for reply in after.legal_moves)
        if standing > 0 or (standing < 0 and not has_corner):  # who can take a corner needs no other move
            yield Replies(standing < 0, mine[NUM_REPLIES], mine[NUM_SAFE])
        if standing := _standing(figures, mine, NUM_OWN_MOVES):
            yield Mobility(standing > 0, mine[NUM_OWN_MOVES])
    if standing := _standing(figures, mine, NUM_FLIPPED if fewest else NUM_FRONTIER):
        yield FlipsDiscs(standing < 0, mine[NUM_FLIPPED], mine[NUM_FRONTIER])


def _exact_reasons(position: Position, move: int, scores: Mapping[int, int]) -> Iterator[Reason]:
    if move not in scores:
        return
    best = max(scores.values()) if len(scores) == len(position.legal_moves) else None
    yield ExactScore(scores[move] > 0 or scores[move] == best, scores[move])
    if best is not None and best > scores[move]:
        yield LosesDiscs(False, best - scores[move], tuple(move for move in scores if scores[move] == best))


def _exact_scores(position: Position, solver: Solver | None, exact_empties: int) -> dict[int, int]:
    """Returns the score of each move for which it is known, the moves in rising order."""
    if solver is not None and position.num_empties <= exact_empties:
        return {move: solution.score for move, solution in solver.solve_moves(position).items() if solution.is_exact}
    afters = {move: position.play(move) for move in position.legal_moves}
    return {move: -after.score for move, after in afters.items() if after.is_over}


def _corner_reasons(position: Position, move: int, after: Position) -> Iterator[Reason]:
    fewest = position.variant.goal == "fewest"
    size = position.variant.size
    x_squares, empties = _x_squares(size), _empties(after)
    could_take = to_squares(legal_mask(position.opponent, position.player, position.variant.rules), size)
    must_take = not after.must_pass and x_squares.keys() >= set(after.legal_moves)
    for corner, x_square in x_squares.items():
        if move == corner:
            yield TakesCorner(not fewest, corner)
        elif corner in after.legal_moves and corner not in could_take:
            flipped = after.flips(corner).ravel()
            through = {square for square in _around(size)[corner] if flipped[square]}
            is_by_x_square = x_square in through
            if must_take or not (fewest and is_by_x_square):
                c_squares = tuple(sorted(through - {x_square}))
                yield OpensCorner(fewest, corner, x_square if is_by_x_square else None, c_squares)
        # Where the fewest discs win such a disc is worth next to nothing, see the weights in agents/evaluation.py.
        elif move == x_square and corner in empties and corner not in after.legal_moves and not fewest:
            yield RisksCorner(False, corner)


def _parity(region: tuple[int, ...], move: int, after: Position) -> Parity:
    rest = set(region) - {move}
    is_shut_out = bool(rest) and rest.isdisjoint(after.legal_moves)
    is_mover_last = len(region) % 2 == 1 or is_shut_out
    return Parity(is_mover_last == (after.variant.goal == "most"), region, is_mover_last, is_shut_out)


def _region(position: Position, square: int) -> tuple[int, ...]:
    """Returns the empty squares that hang together with an empty one, diagonals too; () where they are too many."""
    empties, around = _empties(position), _around(position.variant.size)
    region = {square}
    waiting = [square]
    while waiting:
        found = around[waiting.pop()] & empties - region
        region |= found
        waiting += found
        if len(region) > LARGEST_REGION:
            return ()
    return tuple(sorted(region))


def _stable_reasons(position: Position, after: Position) -> Iterator[Reason]:
    before = _stable(position, position.player)
    gained = tuple(square for square in _stable(after, after.opponent) if square not in before)
    if gained:
        yield StableDiscs(position.variant.goal == "most", gained)


def _stable(position: Position, discs: Bitboard) -> tuple[int, ...]:
    """Returns the squares of those discs of one side that never flip again, in rising order."""
    size = position.variant.size
    empties = to_bitboard(_empties(position), size)
    return to_squares(stable_discs(discs, empties, position.variant.rules), size)


def _empties(position: Position) -> set[int]:
    size = position.variant.size
    discs = {*to_squares(position.player, size), *to_squares(position.opponent, size)}
    return set(range(size * size)) - discs


def _standing(figures: np.ndarray, mine: Sequence[int], column: int) -> int:
    """Returns 1 where a move's count lies in the upper third of all moves' range, -1 in the lower, else 0."""
    least, most = int(figures[:, column].min()), int(figures[:, column].max())
    if most - least < SPREAD:
        return 0
    return (3 * mine[column] >= least + 2 * most) - (3 * mine[column] <= 2 * least + most)


def _figures(position: Position) -> np.ndarray:
    """Returns the counts of every legal square, int64 [squares, figures], the squares in rising order."""
    figures = np.empty((len(position.legal_moves), _NUM_FIGURES), np.int64)
    variant = position.variant
    evaluation = evaluation_of("mobility", variant)
    survey(position.player, position.opponent, position.legal, figures, evaluation, variant.rules)
    return figures


@cache
def _x_squares(size: int) -> dict[int, int]:
    """Returns for each corner the square diagonally beside it."""
    ends = (0, size - 1)
    return {row * size + column: abs(row - 1) * size + abs(column - 1) for row in ends for column in ends}


@cache
def _around(size: int) -> tuple[frozenset[int], ...]:
    """Returns for each square those a step away."""
    return tuple(
        frozenset(
            row * size + column
            for row in range(max(0, square // size - 1), min(size, square // size + 2))
            for column in range(max(0, square % size - 1), min(size, square % size + 2))
        )
        - {square}
        for square in range(size * size)
    )


@kernel
def is_safe(player: Bitboard, opponent: Bitboard, move: Bitboard, evaluation: Evaluation, rules: Rules) -> bool:
    """Returns whether a move (one bit set) opens no corner to the other side or, for the fewest discs, takes none."""
    if not is_empty(overlap(move, evaluation.corners)):
        return not rules.fewest
    after = play(player, opponent, move, rules)
    opened = without(legal_mask(after[0], after[1], rules), legal_mask(opponent, player, rules))
    return rules.fewest or is_empty(overlap(opened, evaluation.corners))


@kernel
def count_safe(player: Bitboard, opponent: Bitboard, legal: Bitboard, evaluation: Evaluation, rules: Rules) -> int:
    """Returns how many of the `legal` moves are safe."""
    num_safe = 0
    while not is_empty(legal):
        if is_safe(player, opponent, bit(lowest(legal), legal), evaluation, rules):
            num_safe += 1
        legal = without_lowest(legal)
    return num_safe


@kernel
def count_moves_after_reply(
    player: Bitboard, opponent: Bitboard, legal: Bitboard, evaluation: Evaluation, rules: Rules
) -> int:
    """Returns how many moves `opponent` has once `player` played the best of `legal`, by evaluation, or passed."""
    if is_empty(legal):
        return count(legal_mask(opponent, player, rules))
    least_value, num_moves = 1 << 30, 0
    while not is_empty(legal):
        after = play(player, opponent, bit(lowest(legal), legal), rules)
        value = evaluate(after[0], after[1], evaluation, rules)
        left = count(legal_mask(after[0], after[1], rules))
        if value < least_value or (value == least_value and left < num_moves):
            least_value, num_moves = value, left
        legal = without_lowest(legal)
    return num_moves


@kernel
def count_frontier(discs: Bitboard, other_discs: Bitboard, evaluation: Evaluation, rules: Rules) -> int:
    """Returns how many of `discs` lie beside empty squares."""
    empties = without(rules.squares, union(discs, other_discs))
    return count(overlap(discs, neighbors(empties, evaluation)))


@kernel
def survey(
    player: Bitboard,
    opponent: Bitboard,
    legal: Bitboard,
    figures: np.ndarray,
    evaluation: Evaluation,
    rules: Rules,
) -> None:
    """Fills `figures`, int64 [legal squares, _NUM_FIGURES], with the counts of each move."""
    num_frontier = count_frontier(player, opponent, evaluation, rules)
    row = 0
    while not is_empty(legal):
        theirs, mine = play(player, opponent, bit(lowest(legal), legal), rules)
        replies = legal_mask(theirs, mine, rules)
        figures[row, NUM_REPLIES] = count(replies)
        figures[row, NUM_SAFE] = count_safe(theirs, mine, replies, evaluation, rules)
        figures[row, NUM_OWN_MOVES] = count_moves_after_reply(theirs, mine, replies, evaluation, rules)
        figures[row, NUM_FLIPPED] = count(mine) - count(player) - 1
        figures[row, NUM_FRONTIER] = count_frontier(mine, theirs, evaluation, rules) - num_frontier
        legal = without_lowest(legal)
        row += 1
