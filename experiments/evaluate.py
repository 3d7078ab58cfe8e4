"""Rates an agent in paired games against others.

    reversi evaluate greedy                                        the four classic opponents, 200 games each
    reversi evaluate alphabeta:depth=3 greedy --variant othello-6x6 --games 20
    reversi evaluate runs/x alphabeta:depth=4 -- games=400 seed=1

Every opening is played twice, colors swapped. Draws count half in the score. Intervals are at 95 %.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import agents
from agents.agent import Agent
from experiments.arguments import UsageError, parse, setting
from experiments.match import Match, Progress, play_match, within
from experiments.rating import Estimate, elo_difference, elo_text, score_interval
from experiments.tables import print_figures
from reversi_env import Variant

DEFAULT_OPPONENTS = ("random", "greedy", "positional", "alphabeta:depth=2")


@dataclass
class MatchSettings:
    """How matches are played and shown."""

    games: int = setting(200, "games a match, two for each opening")
    variant: str | None = setting(None, "rules to play by, else the first agent's own, else othello")
    seed: int = setting(0, "of the openings and of all random choices")
    opening_plies: int | None = setting(None, "random plies before the players move, else by board size")
    json: bool = setting(False, "print figures as JSON")


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


def print_table(rows: Sequence[Row]) -> None:
    """Prints the table of an evaluation to stdout."""
    header = ("opponent", "games", "W/D/L", "score % (95 %)", "Elo difference (95 %)", "CPU s/game")
    print_figures(header, [_cells(row) for row in rows])


def _cells(row: Row) -> tuple[str, ...]:
    match, score = row.match, row.score
    return (
        match.second,
        str(len(match.games)),
        f"{match.wins}/{match.draws}/{match.losses}",
        f"{100 * score.value:.1f} ({100 * score.low:.1f} to {100 * score.high:.1f})",
        interval_text(row.elo),
        f"{match.cpu_s_per_game[0]:.2g}",
    )


def warn_of_repeats(match: Match) -> None:
    """Says on stderr when a match had fewer openings than pairs, which the intervals cannot see."""
    if match.num_openings < len(match.pair_points):
        print(
            f"only {match.num_openings} different openings for {len(match.pair_points)} pairs of games: "
            "players without randomness repeat games, and their intervals are too narrow",
            file=sys.stderr,
        )


def show_progress(finished: int, num_games: int) -> None:
    """Writes the finished games over the last line of stderr; nothing where that is no terminal."""
    if sys.stderr.isatty():
        print(
            f"\r{finished} of {num_games} games", end="\n" if finished == num_games else "", file=sys.stderr, flush=True
        )


def variant_of(settings: MatchSettings, agent: Agent) -> Variant:
    """Returns the rules that the settings name, else those that the agent was made for, else Othello's."""
    if settings.variant is not None:
        return Variant.named(settings.variant)
    return agent.variant or Variant()


def main(arguments: list[str]) -> int:
    """Runs `reversi evaluate`."""
    words, settings = parse("evaluate", "AGENT [OPPONENT ...]", MatchSettings, __doc__ or "", arguments)
    if not words:
        raise UsageError("evaluate whom? reversi evaluate AGENT [OPPONENT ...]")
    agent, *opponents = [agents.make(spec) for spec in (words if words[1:] else (words[0], *DEFAULT_OPPONENTS))]
    variant = variant_of(settings, agent)
    rows = evaluate(agent, opponents, variant, settings.games, settings.seed, settings.opening_plies, show_progress)
    warn_of_repeats(rows[0].match)  # all have the same openings
    if settings.json:
        figures = [row.figures() for row in rows]
        print(
            json.dumps({"agent": agent.name, "variant": variant.name, "seed": settings.seed, "rows": figures}, indent=2)
        )
        return 0
    print(f"{agent.name} on {variant.name}, seed {settings.seed}")
    print_table(rows)
    return 0
