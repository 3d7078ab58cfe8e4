"""Whether a player's values come true: what it expected of its moves in a match, beside how the games ended.

Values and results are shares of a game here, from 0 for a loss to 1 for a win, a draw being half.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from experiments.match import Match
from experiments.tables import Figures

NUM_BINS = 10


class Bin(NamedTuple):
    """Moves of which about the same was expected."""

    low: float
    high: float
    num_moves: int
    expected: float  # on average
    actual: float


@dataclass(frozen=True)
class Calibration:
    """What a player expected of n moves, and the results; n may be 0."""

    expected: np.ndarray  # float64 [n], in 0..1
    actual: np.ndarray  # float64 [n], 0, ½ or 1

    @property
    def bins(self) -> Iterator[Bin]:
        """The moves by what was expected, in tenths; those with none left out."""
        numbers = np.minimum((self.expected * NUM_BINS).astype(int), NUM_BINS - 1)
        for number in range(NUM_BINS):
            mask = numbers == number
            if mask.any():
                yield Bin(
                    low=number / NUM_BINS,
                    high=(number + 1) / NUM_BINS,
                    num_moves=int(mask.sum()),
                    expected=float(self.expected[mask].mean()),
                    actual=float(self.actual[mask].mean()),
                )

    @property
    def error(self) -> float:
        """The expected calibration error: Guo et al. 2017 (arXiv:1706.04599), equation 3."""
        return sum(found.num_moves * abs(found.expected - found.actual) for found in self.bins) / len(self.expected)

    @property
    def brier(self) -> float:
        """The mean squared error: Brier 1950 (Monthly Weather Review 78(1)), halved, since he sums over outcomes."""
        return float(((self.expected - self.actual) ** 2).mean())

    def metrics(self) -> dict[str, float]:
        """Returns the numbers by the names of metrics; nothing where the player told no value."""
        if not len(self.expected):
            return {}
        return {
            "calibration/error": self.error,
            "calibration/brier": self.brier,
            "calibration/expected": float(self.expected.mean()),
            "calibration/actual": float(self.actual.mean()),
        }

    def figures(self) -> dict[str, Any] | None:
        """Returns the numbers for JSON; None where the player told no value."""
        if not len(self.expected):
            return None
        return {"error": self.error, "brier": self.brier, "bins": [found._asdict() for found in self.bins]}

    def table(self) -> Figures:
        """Returns a row for each bin, and one for all moves."""
        rows: list[tuple[str, ...]] = [
            (
                f"{100 * found.low:.0f} to {100 * found.high:.0f} %",
                str(found.num_moves),
                f"{100 * found.expected:.1f}",
                f"{100 * found.actual:.1f}",
            )
            for found in self.bins
        ]
        if len(self.expected):
            means = (f"{100 * shares.mean():.1f}" for shares in (self.expected, self.actual))
            rows.append(("all", str(len(self.expected)), *means))
        return ("expected", "moves", "expected %", "actual %"), rows


def calibration_of(matches: Sequence[Match]) -> Calibration:
    """Returns what the first player of matches expected of its moves, and what became of them."""
    expected: list[float] = []
    actual: list[float] = []
    for match in matches:
        for number, result in enumerate(match.results.tolist()):
            told = [turn.value for turn in match.turns(number) if turn.value is not None]
            expected += told
            actual += [result] * len(told)
    return Calibration((1 + np.array(expected)) / 2, (1 + np.array(actual)) / 2)
