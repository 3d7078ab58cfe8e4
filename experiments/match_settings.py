"""What the verbs that play matches have in common: their settings, and what they say on stderr."""

import sys
from dataclasses import dataclass

from agents import registry
from agents.agent import Agent
from experiments.arguments import setting
from experiments.match import Match
from reversi_env import Variant

AGENTS = registry.__doc__  # for the help


@dataclass
class MatchSettings:
    """How matches are played and shown."""

    games: int = setting(200, "games a match, two for each opening")
    variant: str | None = setting(None, f"{', '.join(Variant.NAMES)}; else the first agent's own, else othello")
    seed: int = setting(0, "of the openings and of all random choices")
    opening_plies: int | None = setting(None, "random plies before the players move, else by board size")
    json: bool = setting(False, "print figures as JSON")


def warn_of_repeats(match: Match) -> None:
    """Says on stderr when a match had fewer openings than pairs, which the intervals cannot see."""
    if match.num_openings < len(match.pair_points):
        print(
            f"only {match.num_openings} different openings for {len(match.pair_points)} pairs of games: "
            "players without randomness repeat games, and their intervals are too narrow",
            file=sys.stderr,
        )


def show_progress(finished: int, num_all: int, what: str = "games") -> None:
    """Writes how many are finished over the last line of stderr; nothing where that is no terminal."""
    if sys.stderr.isatty():
        print(f"\r{finished} of {num_all} {what}", end="\n" if finished == num_all else "", file=sys.stderr, flush=True)


def variant_of(settings: MatchSettings, agent: Agent) -> Variant:
    """Returns the rules that the settings name, else those that the agent was made for, else Othello's."""
    if settings.variant is not None:
        return Variant.named(settings.variant)
    return agent.variant or Variant()
