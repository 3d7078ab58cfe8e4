"""Plays a round robin and rates everyone: Elo by maximum likelihood, `random` at 0 where it takes part.

    reversi tournament random greedy positional --games 20
    reversi tournament random alphabeta:depth=5,exact=10 runs/x -- games=400 variant=othello-6x6
    reversi tournament random greedy --save games.jsonl --json

Every opening is played twice, colors swapped, and every match has the same openings. Intervals are at 95 %.
"""

import contextlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import agents
from agents.agent import Agent
from experiments.arguments import UsageError, parse, setting
from experiments.evaluation import figures_of, interval_text
from experiments.match import Match, Progress, claimed, play_match, save_games, within
from experiments.match_settings import AGENTS, MatchSettings, show_progress, variant_of, warn_of_repeats
from experiments.rating import Estimate, ratings
from experiments.tables import print_figures
from reversi_env import Variant

ANCHOR = "random"


@dataclass
class TournamentSettings(MatchSettings):
    """How a tournament is played, shown and kept."""

    save: str | None = setting(None, "a new file for the games, as lines of JSON")


@dataclass(frozen=True)
class Tournament:
    """The matches of a round robin: `matches[i, j]` of players i < j, i first."""

    players: tuple[str, ...]
    matches: dict[tuple[int, int], Match]

    def ratings(self) -> list[Estimate]:
        """Returns each player's Elo, `random` at 0 where it plays, else the mean."""
        points = {seats: match.pair_points for seats, match in self.matches.items()}
        anchor = self.players.index(ANCHOR) if ANCHOR in self.players else None
        return ratings(len(self.players), points, anchor)

    def score(self, player: int, opponent: int) -> float:
        """Returns the share of points that a player took from another, draws half."""
        if player > opponent:
            return 1 - self.score(opponent, player)
        return float(self.matches[player, opponent].pair_points.mean()) / 2

    def mean_score(self, player: int) -> float:
        """Returns the share of points that a player took in all its matches."""
        others = [opponent for opponent in range(len(self.players)) if opponent != player]
        return sum(self.score(player, opponent) for opponent in others) / len(others)

    def cpu_s_per_game(self, player: int) -> float:
        """Returns the CPU seconds that a player thought, a game."""
        times = [match.cpu_s_per_game[seats.index(player)] for seats, match in self.matches.items() if player in seats]
        return sum(times) / len(times)

    def ranking(self) -> list[tuple[int, Estimate]]:
        """Returns the players' numbers and ratings, the strongest first."""
        return sorted(enumerate(self.ratings()), key=lambda entry: -entry[1].value)


def play_tournament(
    players: Sequence[Agent],
    variant: Variant,
    num_games: int,
    seed: int,
    opening_plies: int | None = None,
    progress: Progress | None = None,
    games_path: str | None = None,
) -> Tournament:
    """Returns the round robin of two or more players, `num_games` paired games a match; raises as `play_match`.

    The games are written to `games_path` after each match.
    """
    matches: dict[tuple[int, int], Match] = {}
    seats = list(itertools.combinations(range(len(players)), 2))
    for i, j in seats:
        told = within(progress, len(matches) * num_games, len(seats) * num_games)
        matches[i, j] = play_match(players[i], players[j], variant, num_games, seed, opening_plies, told)
        if games_path is not None:
            save_games(games_path, (game for match in matches.values() for game in match.games))
    return Tournament(tuple(player.name for player in players), matches)


def print_tournament(tournament: Tournament) -> None:
    """Prints the ratings and the cross table, the strongest first, to stdout."""
    ranking = [player for player, _ in tournament.ranking()]
    print_figures(
        ("player", "Elo (95 %)", "score %", "CPU s/game"),
        [
            (
                tournament.players[player],
                interval_text(rating),
                f"{100 * tournament.mean_score(player):.1f}",
                f"{tournament.cpu_s_per_game(player):.3g}",
            )
            for player, rating in tournament.ranking()
        ],
    )
    print("\nscore % of the row against the column")
    print_figures(
        ("", *(str(place) for place in range(1, len(ranking) + 1))),
        [
            (
                f"{place} {tournament.players[player]}",
                *(
                    "·" if player == opponent else f"{100 * tournament.score(player, opponent):.1f}"
                    for opponent in ranking
                ),
            )
            for place, player in enumerate(ranking, start=1)
        ],
    )


def _figures(tournament: Tournament) -> list[dict[str, Any]]:
    return [
        {
            "player": tournament.players[player],
            "elo": figures_of(rating),
            "score": tournament.mean_score(player),
            "against": [
                {"opponent": tournament.players[opponent], "score": tournament.score(player, opponent)}
                for opponent, _ in tournament.ranking()
                if opponent != player
            ],
            "cpu_s_per_game": tournament.cpu_s_per_game(player),
        }
        for player, rating in tournament.ranking()
    ]


def _check_names(specs: Sequence[str], players: Sequence[Agent]) -> None:
    """Raises UsageError where two players have one name, by which tables and games tell them apart."""
    for (spec, player), (other_spec, other) in itertools.combinations(zip(specs, players, strict=True), 2):
        if spec == other_spec:
            raise UsageError(f"{spec} takes part twice")
        if player.name == other.name:
            raise UsageError(f"{spec} and {other_spec} have the same name, {player.name}")


def main(arguments: list[str]) -> int:
    """Runs `reversi tournament`."""
    specs, settings = parse(
        "tournament", "AGENT AGENT [AGENT ...]", TournamentSettings, f"{__doc__}\n{AGENTS}", arguments
    )
    if len(specs) < 2:
        raise UsageError("a tournament has two players or more: reversi tournament AGENT AGENT [AGENT ...]")
    players = [agents.make(spec) for spec in specs]
    _check_names(specs, players)
    variant = variant_of(settings, players[0])
    with claimed(settings.save) if settings.save is not None else contextlib.nullcontext():
        tournament = play_tournament(
            players, variant, settings.games, settings.seed, settings.opening_plies, show_progress, settings.save
        )
    warn_of_repeats(tournament.matches[0, 1])  # all have the same openings
    if settings.json:
        ranking = _figures(tournament)
        print(
            json.dumps(
                {"variant": variant.name, "seed": settings.seed, "games": settings.games, "ranking": ranking}, indent=2
            )
        )
        return 0
    print(f"{variant.name}, {settings.games} games a match, seed {settings.seed}")
    print_tournament(tournament)
    return 0
