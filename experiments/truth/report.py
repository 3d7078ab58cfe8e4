"""A player's moves in solved positions: how often they keep a win or a draw, and how many discs they give away.

A network, or what else guides a tree search, is measured twice: alone, by its likeliest move, and with the search.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agents.agent import Agent, Decision
from agents.mcts import MCTSAgent
from experiments.evaluation import figures_of, percent_text
from experiments.match import Progress, decide
from experiments.rating import Estimate, share_interval
from experiments.tables import Figures
from experiments.truth.solved import Solved

NETWORK, SEARCH = "network", "search"  # whose moves they are: a network's alone, or the player's own
BAND = 4  # numbers of empty squares that are counted together

_CHUNK = 128  # positions that a player is asked at once


@dataclass(frozen=True)
class Choices:
    """What one player made of n solved positions."""

    player: str  # NETWORK or SEARCH
    is_kept: np.ndarray  # bool [n], whether its move keeps win, draw or loss
    num_lost: np.ndarray  # int64 [n], discs that its move gives away
    value_error: np.ndarray  # float64 [n], how far its value lies from the true one; NaN where it tells none

    def kept(self, mask: np.ndarray) -> Estimate:
        """Returns the share of moves that keep win, draw or loss in some of the positions, bool [n], at least one."""
        return share_interval(float(self.is_kept[mask].mean()), int(mask.sum()))

    def mean_lost(self, mask: np.ndarray) -> float:
        """Returns how many discs a move gives away on average, likewise."""
        return float(self.num_lost[mask].mean())


@dataclass(frozen=True)
class Group:
    """Positions that are counted together, at least one."""

    name: str
    key: str  # behind the names of metrics
    mask: np.ndarray  # bool [n]


@dataclass(frozen=True)
class TruthReport:
    """How a player did in n solved positions."""

    num_empties: np.ndarray  # int64 [n]
    is_decisive: np.ndarray  # bool [n], whether some move gives a win or a draw away
    choices: tuple[Choices, ...]  # of its network first, where there is one

    @property
    def groups(self) -> Iterator[Group]:
        """All positions, the decisive ones, and bands of empty squares from the most down."""
        yield Group("all", "", np.ones(len(self.num_empties), np.bool_))
        if self.is_decisive.any():
            yield Group("decisive", "_decisive", self.is_decisive)
        least, most = int(self.num_empties.min()), int(self.num_empties.max())
        for high in range(most, least - 1, -BAND):
            low = max(high - BAND + 1, least)
            mask = (low <= self.num_empties) & (self.num_empties <= high)
            if mask.any():
                yield Group(f"{low} to {high} empty", f"_{low:02}_to_{high:02}", mask)

    def metrics(self) -> dict[str, float]:
        """Returns the numbers by the names of metrics, such as truth/search/kept."""
        numbers: dict[str, float] = {}
        for choices in self.choices:
            place = f"truth/{choices.player}"
            for group in self.groups:
                kept = choices.kept(group.mask)
                numbers[f"{place}/kept{group.key}"] = kept.value
                numbers[f"{place}/discs_lost{group.key}"] = choices.mean_lost(group.mask)
                if not group.key:
                    numbers |= {f"{place}/kept_low": kept.low, f"{place}/kept_high": kept.high}
            if not np.isnan(choices.value_error).all():
                numbers[f"{place}/value_error"] = float(np.nanmean(choices.value_error))
        return numbers

    def figures(self) -> dict[str, Any]:
        """Returns the numbers for JSON."""
        return {
            choices.player: [
                {
                    "positions": group.name,
                    "num_positions": int(group.mask.sum()),
                    "kept": figures_of(choices.kept(group.mask)),
                    "discs_lost": choices.mean_lost(group.mask),
                }
                for group in self.groups
            ]
            for choices in self.choices
        }

    def table(self) -> Figures:
        """Returns a row for each group of positions."""
        header = ["positions", "number"]
        for choices in self.choices:
            whose = "alone " if choices.player == NETWORK else ""
            header += [f"{whose}keeps % (95 %)", "loses discs"]
        rows = [
            [
                group.name,
                str(group.mask.sum()),
                *(
                    cell
                    for choices in self.choices
                    for cell in (percent_text(choices.kept(group.mask)), f"{choices.mean_lost(group.mask):.2f}")
                ),
            ]
            for group in self.groups
        ]
        return header, rows


def measure_truth(
    agent: Agent, positions: Sequence[Solved], seed: int = 0, progress: Progress | None = None
) -> TruthReport:
    """Returns how an agent's moves do in solved positions, and those of its network alone where it has one.

    Random choices are drawn from the seed and a position's number. `progress` hears of positions decided. Raises
    MatchError where the agent fails.
    """
    decisions: list[Decision] = []
    for first in range(0, len(positions), _CHUNK):
        chunk = [solved.position for solved in positions[first : first + _CHUNK]]
        seeds = [np.random.SeedSequence(seed, spawn_key=(first + number,)) for number in range(len(chunk))]
        decisions += decide(agent, chunk, [np.random.default_rng(chosen) for chosen in seeds])
        if progress:
            progress(len(decisions), len(positions))
    choices = [_choices(SEARCH, positions, decisions)]
    if isinstance(agent, MCTSAgent):
        alone = [agent.intuition(solved.position) for solved in positions]
        choices.insert(0, _choices(NETWORK, positions, alone))
    return TruthReport(
        np.array([solved.position.num_empties for solved in positions]),
        np.array([solved.is_decisive for solved in positions]),
        tuple(choices),
    )


def _choices(player: str, positions: Sequence[Solved], decisions: Sequence[Decision]) -> Choices:
    pairs = list(zip(positions, decisions, strict=True))
    values = np.array([np.nan if decision.value is None else decision.value for decision in decisions], np.float64)
    return Choices(
        player,
        np.array([solved.keeps_value(decision.move) for solved, decision in pairs]),
        np.array([solved.regret(decision.move) for solved, decision in pairs]),
        np.abs(values - [solved.value for solved in positions]),
    )
