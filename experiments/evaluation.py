"""Paired matches of one agent against others, as rows of a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.agent import Agent
from experiments.match import Match, Progress, play_match, within
from experiments.rating import Estimate, elo_difference, elo_text, score_interval
from experiments.tables import print_figures
from reversi_env import Variant

CLASSIC_OPPONENTS = ("random", "greedy", "positional", "alphabeta:depth=2")


@dataclass(frozen=True)
class Row:
    """What a match tells about its first player."""

    match: Match

    @property
    def score(self) -> Estimate:
        """In 0..1, draws half."""
        return score_interval(self.match.pair_points)

    @property
    def elo(self) -> Estimate:
        """The difference to the opponent; infinite at 0 and 100 %."""
        return elo_difference(self.score)

    def metrics(self) -> dict[str, float]:
        """Returns score and Elo with their intervals by the names of metrics, such as evaluation/random/elo_low."""
        return {
            f"evaluation/{self.match.second}/{name}{suffix}": bound
            for name, estimate in (("score", self.score), ("elo", self.elo))
            for suffix, bound in (("", estimate.value), ("_low", estimate.low), ("_high", estimate.high))
        }

    def figures(self) -> dict[str, Any]:
        """Returns the row for JSON, which has no infinity: an Elo without a bound is None."""
        match, (cpu_s, opponent_cpu_s) = self.match, self.match.cpu_s_per_game
        return {
            "opponent": match.second,
            "games": len(match.games),
            "openings": match.num_openings,
            "wins": match.wins,
            "draws": match.draws,
            "losses": match.losses,
            "score": figures_of(self.score),
            "elo": figures_of(self.elo),
            "cpu_s_per_game": cpu_s,
            "opponent_cpu_s_per_game": opponent_cpu_s,
        }


def evaluate(
    agent: Agent,
    opponents: Sequence[Agent],
    variant: Variant,
    num_games: int = 200,
    seed: int = 0,
    opening_plies: int | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """Returns a row for each opponent, `num_games` paired games each; raises as `play_match`.

    `progress` is told the finished games and all games, of all matches together.
    """
    rows: list[Row] = []
    for opponent in opponents:
        told = within(progress, len(rows) * num_games, len(opponents) * num_games)
        rows.append(Row(play_match(agent, opponent, variant, num_games, seed, opening_plies, told)))
    return rows


def figures_of(estimate: Estimate) -> dict[str, float | None]:
    """Returns an estimate for JSON; what is infinite is None."""
    bounds = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    return {name: bound if abs(bound) < float("inf") else None for name, bound in bounds.items()}


def interval_text(estimate: Estimate) -> str:
    """Returns Elo as "+120 (+80 to +165)", and what is fixed without an interval."""
    if estimate.low == estimate.high:
        return elo_text(estimate.value)
    return f"{elo_text(estimate.value)} ({elo_text(estimate.low)} to {elo_text(estimate.high)})"


def percent_text(share: Estimate) -> str:
    """Returns a share as "95.1 (92.4 to 96.9)", in percent."""
    return f"{100 * share.value:.1f} ({100 * share.low:.1f} to {100 * share.high:.1f})"


def print_table(rows: Sequence[Row]) -> None:
    """Prints the table of an evaluation to stdout."""
    header = ("opponent", "games", "W/D/L", "score % (95 %)", "Elo difference (95 %)", "CPU s/game")
    print_figures(header, [_cells(row) for row in rows])


def _cells(row: Row) -> tuple[str, ...]:
    match = row.match
    return (
        match.second,
        str(len(match.games)),
        f"{match.wins}/{match.draws}/{match.losses}",
        percent_text(row.score),
        interval_text(row.elo),
        f"{match.cpu_s_per_game[0]:.2g}",
    )
