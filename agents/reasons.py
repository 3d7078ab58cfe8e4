"""What can be said for or against a move, as figures: who puts it into words needs nothing else.

Squares and moves are numbers (`Position.move_name` names them), counts are of discs, squares or moves, scores are the
mover's under the variant's goal and scoring. Where the fewest discs win the same reasons speak mostly the other way.
"""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Reason:
    """One thing that a move does; `kind` names it and is what translations are looked up by."""

    kind: ClassVar[str]

    is_good: bool  # whether it speaks for the move, or against it


@dataclass(frozen=True)
class OnlyMove(Reason):
    """There is no other move; it may be the pass."""

    kind = "only_move"


@dataclass(frozen=True)
class WipesOut(Reason):
    """The opponent has no disc left."""

    kind = "wipes_out"

    num_flipped: int


@dataclass(frozen=True)
class ExactScore(Reason):
    """How the game ends when both sides play perfectly from here on; good if it is won, or if no move does better."""

    kind = "exact_score"

    score: int


@dataclass(frozen=True)
class LosesDiscs(Reason):
    """Another move ends with a better score."""

    kind = "loses_discs"

    regret: int  # by so much; at least 1
    best_moves: tuple[int, ...]


@dataclass(frozen=True)
class TakesCorner(Reason):
    """The disc placed lies in a corner, where nothing can flip it."""

    kind = "takes_corner"

    corner: int


@dataclass(frozen=True)
class OpensCorner(Reason):
    """The opponent can take an empty corner that it could not take before.

    Where the fewest discs win, that is worth something only along the edge, or if the opponent must take a corner.
    """

    kind = "opens_corner"

    corner: int
    x_square: int | None  # diagonally beside the corner, where a disc there would be flipped from it
    c_squares: tuple[int, ...]  # the same beside it on the edge; with the X square one at least


@dataclass(frozen=True)
class RisksCorner(Reason):
    """The disc placed lies diagonally beside an empty corner, though the opponent cannot take that yet."""

    kind = "risks_corner"

    corner: int


@dataclass(frozen=True)
class OpponentPasses(Reason):
    """The opponent has no move, and the mover is on turn again."""

    kind = "opponent_passes"

    num_own_moves: int


@dataclass(frozen=True)
class Replies(Reason):
    """The opponent is left few or many moves.

    One is safe that opens no corner to the mover or, where the fewest discs win, takes none.
    """

    kind = "replies"

    num_replies: int
    num_safe: int


@dataclass(frozen=True)
class Parity(Reason):
    """The move goes into a small region, empty squares that hang together, and settles who has the last move in it.

    That is the mover where the number of squares is odd, or where the opponent cannot move there.
    """

    kind = "parity"

    region: tuple[int, ...]  # before the move
    is_mover_last: bool
    is_opponent_shut_out: bool  # of what the move leaves of the region; False if that is nothing


@dataclass(frozen=True)
class StableDiscs(Reason):
    """The mover has more discs that can never flip again."""

    kind = "stable_discs"

    gained: tuple[int, ...]  # the squares of those that were not stable, or not the mover's, before


@dataclass(frozen=True)
class Mobility(Reason):
    """The mover keeps many moves or few, after the opponent's likely reply."""

    kind = "mobility"

    num_own_moves: int


@dataclass(frozen=True)
class FlipsDiscs(Reason):
    """The move flips few or many discs, and adds few or many to those of the mover that lie beside empty squares."""

    kind = "flips_discs"

    num_flipped: int
    num_frontier: int  # added; less than 0 where some of the frontier was closed


# The most important first: proof, then what can never be undone, then what decides who must give way, then the shape of
# the position. The kinds are those of Rose, "Othello: A Minute to Learn... A Lifetime to Master", 2005, and of
# Rosenbloom, "A World-Championship-Level Othello Program", Artificial Intelligence 19 (1982), section 3. What they are
# worth in discs, measured with 12 empty squares, is in experiments/LOG.md; it falls about in this order.
IMPORTANCE: tuple[type[Reason], ...] = (
    OnlyMove,
    WipesOut,
    ExactScore,
    LosesDiscs,
    TakesCorner,
    OpensCorner,
    RisksCorner,
    OpponentPasses,
    Replies,
    Parity,
    StableDiscs,
    Mobility,
    FlipsDiscs,
)
