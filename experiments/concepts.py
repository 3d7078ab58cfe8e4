"""What a player has learned, in a teacher's words: how often it does what `agents.explain` speaks of, at what cost.

Only a choice tells: a concept counts in the positions where some of the legal moves have it and others have not. There
the player's share of moves that have it stands beside that of random moves; and where few squares are empty, the discs
that its moves with it and those without it gave away, by the exact solver.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agents.explain import explain_moves
from agents.reasons import (
    FlipsDiscs,
    LosesDiscs,
    Mobility,
    OpensCorner,
    OpponentPasses,
    Parity,
    Reason,
    Replies,
    RisksCorner,
    StableDiscs,
    TakesCorner,
)
from agents.search.solver import Solver
from experiments.match import Match, Progress
from experiments.tables import Figures
from reversi_env import Position

EXACT_EMPTIES = 12  # in up to so many a solver tells all scores of 8×8 in about 0.015 s
NUM_MOVES = 1000  # that are looked at, which takes some seconds

_TABLE_ENTRIES = 1 << 16


@dataclass(frozen=True)
class Concept:
    """Something that a move does or does not do."""

    key: str  # in the names of metrics
    name: str
    holds: Callable[[Reason], bool]  # whether a reason for or against a move says so
    is_early: bool = False  # whether it is looked for in the first half of a game alone


CONCEPTS = (
    Concept("takes_corner", "takes a corner", lambda reason: isinstance(reason, TakesCorner)),
    Concept(
        "opens_corner_by_x",
        "opens a corner through its X square",
        lambda reason: isinstance(reason, OpensCorner) and reason.x_square is not None,
    ),
    Concept(
        "opens_corner_by_c",
        "opens a corner through a C square",
        lambda reason: isinstance(reason, OpensCorner) and bool(reason.c_squares),
    ),
    Concept("risks_corner", "takes an X square beside an empty corner", lambda reason: isinstance(reason, RisksCorner)),
    Concept(
        "flips_much_early",
        "flips much in the first half",
        lambda reason: isinstance(reason, FlipsDiscs) and not reason.is_good,
        is_early=True,
    ),
    Concept(
        "leaves_few_replies",
        "leaves few safe replies",
        lambda reason: isinstance(reason, Replies) and reason.is_good,
    ),
    Concept("makes_pass", "makes the opponent pass", lambda reason: isinstance(reason, OpponentPasses)),
    Concept("keeps_mobility", "keeps many moves", lambda reason: isinstance(reason, Mobility) and reason.is_good),
    Concept("gets_parity", "gets the parity of a region", lambda reason: isinstance(reason, Parity) and reason.is_good),
    Concept("makes_stable", "makes discs stable", lambda reason: isinstance(reason, StableDiscs)),
)


@dataclass(frozen=True)
class Tally:
    """How a player chose where it had the choice, at least once."""

    concept: Concept
    num_choices: int
    taken: float  # the share of them in which its move had it
    by_chance: float  # the same of random moves
    lost_with: tuple[int, ...]  # discs that each of its solved moves which had it gave away
    lost_without: tuple[int, ...]  # and each of those which had not


@dataclass(frozen=True)
class ConceptReport:
    """What `num_moves` of a player's moves in its games, those that were a choice, had in common."""

    num_moves: int
    tallies: tuple[Tally, ...]  # in the order of CONCEPTS, without those for which there was no choice
    lost: tuple[int, ...]  # discs that each of the solved moves gave away
    replies: float  # moves that it leaves the opponent, on average
    replies_by_chance: float  # likewise with random moves

    def metrics(self) -> dict[str, float]:
        """Returns the numbers by the names of metrics, such as concepts/takes_corner/taken."""
        if not self.num_moves:
            return {}
        numbers = {"concepts/replies": self.replies, "concepts/replies_by_chance": self.replies_by_chance}
        if self.lost:
            numbers["concepts/discs_lost"] = float(np.mean(self.lost))
        for tally in self.tallies:
            place = f"concepts/{tally.concept.key}"
            numbers |= {f"{place}/taken": tally.taken, f"{place}/by_chance": tally.by_chance}
            for name, lost in (("discs_lost_with", tally.lost_with), ("discs_lost_without", tally.lost_without)):
                if lost:
                    numbers[f"{place}/{name}"] = float(np.mean(lost))
        return numbers

    def figures(self) -> dict[str, Any]:
        """Returns the numbers for JSON; null is what is not known."""
        return {
            "num_moves": self.num_moves,
            "num_solved": len(self.lost),
            "discs_lost": _mean(self.lost),
            "replies": self.replies if self.num_moves else None,
            "replies_by_chance": self.replies_by_chance if self.num_moves else None,
            "concepts": [
                {
                    "concept": tally.concept.key,
                    "choices": tally.num_choices,
                    "taken": tally.taken,
                    "by_chance": tally.by_chance,
                    "discs_lost_with": _mean(tally.lost_with),
                    "discs_lost_without": _mean(tally.lost_without),
                }
                for tally in self.tallies
            ],
        }

    def table(self) -> Figures:
        """Returns a row for each concept, and one for all moves."""
        rows = [
            (
                tally.concept.name,
                str(tally.num_choices),
                f"{100 * tally.taken:.1f}",
                f"{100 * tally.by_chance:.1f}",
                _lost_text(tally.lost_with),
                _lost_text(tally.lost_without),
            )
            for tally in self.tallies
        ]
        rows.append(("any move", str(self.num_moves), "", "", _lost_text(self.lost), ""))
        return ("the move", "choices", "of its moves %", "by chance %", "then loses (of)", "else loses (of)"), rows


@dataclass(frozen=True)
class _Observed:
    """A move, and what could have been played in its place."""

    is_early: bool
    move: int
    num_lost: int | None  # discs that the move gives away; None where the solver was not asked
    reasons: dict[int, tuple[Reason, ...]]  # of each legal move
    replies: dict[int, int]  # moves that each leaves the opponent


def observe(
    matches: Sequence[Match], seed: int = 0, num_moves: int = NUM_MOVES, progress: Progress | None = None
) -> ConceptReport:
    """Returns what the first player of matches, all of one variant, does; of many moves a sample drawn by the seed.

    `progress` hears of moves looked at.
    """
    choices = [
        turn
        for match in matches
        for number in range(len(match.games))
        for turn in match.turns(number)
        if len(turn.position.legal_moves) > 1
    ]
    if len(choices) > num_moves:
        drawn = np.random.default_rng(seed).choice(len(choices), num_moves, replace=False)
        choices = [choices[number] for number in sorted(drawn.tolist())]
    if not choices:
        return ConceptReport(0, (), (), math.nan, math.nan)
    solver = Solver(matches[0].variant, _TABLE_ENTRIES)
    observed: list[_Observed] = []
    for turn in choices:
        observed.append(_observed(turn.position, turn.move, solver))
        if progress:
            progress(len(observed), len(choices))
    return ConceptReport(
        num_moves=len(observed),
        tallies=tuple(tally for concept in CONCEPTS if (tally := _tally(concept, observed)) is not None),
        lost=_known(observed),
        replies=float(np.mean([choice.replies[choice.move] for choice in observed])),
        replies_by_chance=float(np.mean([np.mean([*choice.replies.values()]) for choice in observed])),
    )


def _observed(position: Position, move: int, solver: Solver) -> _Observed:
    explanations = explain_moves(position, solver, EXACT_EMPTIES)
    num_lost = None
    if position.num_empties <= EXACT_EMPTIES:
        losses = [reason.regret for reason in explanations[move].reasons if isinstance(reason, LosesDiscs)]
        num_lost = sum(losses)  # of one, or none
    return _Observed(
        is_early=2 * position.num_empties > Position(position.variant).num_empties,
        move=move,
        num_lost=num_lost,
        reasons={move: explanation.reasons for move, explanation in explanations.items()},
        replies={move: _num_replies(position.play(move)) for move in position.legal_moves},
    )


def _num_replies(after: Position) -> int:
    return 0 if after.must_pass else len(after.legal_moves)


def _tally(concept: Concept, observed: Sequence[_Observed]) -> Tally | None:
    """Returns how often moves had a concept where that was a choice; None where it never was."""
    with_it: list[_Observed] = []
    without: list[_Observed] = []
    shares: list[float] = []
    for choice in observed:
        having = {move for move, reasons in choice.reasons.items() if any(map(concept.holds, reasons))}
        if having and len(having) < len(choice.reasons) and (choice.is_early or not concept.is_early):
            shares.append(len(having) / len(choice.reasons))
            (with_it if choice.move in having else without).append(choice)
    if not shares:
        return None
    taken = len(with_it) / len(shares)
    return Tally(concept, len(shares), taken, float(np.mean(shares)), _known(with_it), _known(without))


def _known(observed: Sequence[_Observed]) -> tuple[int, ...]:
    """Returns the discs that moves gave away, where that is known."""
    return tuple(choice.num_lost for choice in observed if choice.num_lost is not None)


def _mean(numbers: Sequence[int]) -> float | None:
    return float(np.mean(numbers)) if numbers else None


def _lost_text(numbers: Sequence[int]) -> str:
    return f"{np.mean(numbers):.2f} ({len(numbers)})" if numbers else "-"
