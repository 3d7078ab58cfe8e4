"""Rates an agent in paired games against others, and its moves against perfect play.

    reversi evaluate greedy                                        the four classic opponents, 200 games each
    reversi evaluate alphabeta:depth=3 greedy --variant othello-6x6 --games 20
    reversi evaluate runs/x alphabeta:depth=4 -- games=400 seed=1
    reversi evaluate zero-6x6 --truth                              no games: positions whose exact scores are known
    reversi evaluate zero-6x6 --truth --own-positions 400          such as its own games and random ones lead to
    reversi evaluate zero-6x6 positional --concepts --calibration  what it does in the games, and what it expected

Every opening is played twice, colors swapped. Draws count half in the score. Intervals are at 95 %.

A move keeps the value of a position that was won, drawn or lost and still is, whatever the discs; a network is asked
alone, too. A decisive position has a move that gives a win or a draw away. Each position of --truth is of another game;
they are the same at every call, in experiments/truth/sets, but for --own-positions, which are solved first.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from typing import Any

import agents
from agents.agent import Agent
from experiments.arguments import UsageError, parse, setting
from experiments.calibration import Calibration, calibration_of
from experiments.concepts import ConceptReport, observe
from experiments.evaluation import CLASSIC_OPPONENTS, Row, evaluate, print_table
from experiments.match_settings import AGENTS, MatchSettings, show_progress, variant_of, warn_of_repeats
from experiments.tables import print_figures
from experiments.truth.games import own_and_random_games
from experiments.truth.report import TruthReport, measure_truth
from experiments.truth.solved import EMPTIES, Solved, held_out, pick, solve_all
from reversi_env import Variant


@dataclass
class EvaluateSettings(MatchSettings):
    """What an agent is measured by."""

    truth: bool = setting(False, "measure its moves where exact scores are known; games only if opponents are named")
    own_positions: int | None = setting(None, "so many from its own and from random games, in place of those kept here")
    concepts: bool = setting(False, "say what its moves in the games have in common, and what that costs")
    calibration: bool = setting(False, "compare the values that it tells with the results of the games")

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise ValueError(f"the seed is 0 or more, got {self.seed}")
        if self.own_positions is not None and not self.truth:
            raise ValueError("own_positions says which positions --truth takes; ask for --truth too")
        if self.own_positions is not None and self.own_positions < 1:
            raise ValueError(f"own_positions is 1 or more, got {self.own_positions}")


@dataclass(frozen=True)
class _Found:
    """What was measured; what was not asked for is None or empty."""

    rows: Sequence[Row]
    truth: TruthReport | None
    concepts: ConceptReport | None
    calibration: Calibration | None


def main(arguments: list[str]) -> int:
    """Runs `reversi evaluate`."""
    words, settings = parse("evaluate", "AGENT [OPPONENT ...]", EvaluateSettings, f"{__doc__}\n{AGENTS}", arguments)
    if not words:
        raise UsageError("evaluate whom? reversi evaluate AGENT [OPPONENT ...]")
    needs_games = not settings.truth or settings.concepts or settings.calibration
    others = words[1:] or (CLASSIC_OPPONENTS if needs_games else ())
    agent, *opponents = [agents.make(spec) for spec in (words[0], *others)]
    variant = variant_of(settings, agent)
    found = _measured(agent, opponents, variant, settings)
    if settings.json:
        print(
            json.dumps(
                {"agent": agent.name, "variant": variant.name, "seed": settings.seed, **_figures(found)}, indent=2
            )
        )
        return 0
    print(f"{agent.name} on {variant.name}, seed {settings.seed}")
    _print(found)
    return 0


def _measured(agent: Agent, opponents: Sequence[Agent], variant: Variant, settings: EvaluateSettings) -> _Found:
    rows = evaluate(agent, opponents, variant, settings.games, settings.seed, settings.opening_plies, show_progress)
    if rows:
        warn_of_repeats(rows[0].match)  # all have the same openings
    matches = [row.match for row in rows]
    show_moves = partial(show_progress, what="moves")
    truth = None
    if settings.truth:
        truth = measure_truth(agent, _positions(agent, variant, settings), settings.seed, show_moves)
    concepts = observe(matches, settings.seed, progress=show_moves) if settings.concepts else None
    return _Found(rows, truth, concepts, calibration_of(matches) if settings.calibration else None)


def _positions(agent: Agent, variant: Variant, settings: EvaluateSettings) -> list[Solved]:
    if settings.own_positions is None:
        return held_out(variant)
    num_games = 2 * -(-settings.own_positions // 3)  # half as many again as are needed, since some have nothing to take
    games = own_and_random_games(agent, variant, num_games, settings.seed, show_progress)
    positions = list(pick(games, islice(cycle(EMPTIES[variant.size]), settings.own_positions)))
    if not positions:
        raise UsageError(f"none of {2 * num_games} games has a position that can be taken; ask for more positions")
    return solve_all(positions, partial(show_progress, what="positions solved"))


def _figures(found: _Found) -> dict[str, Any]:
    figures: dict[str, Any] = {"rows": [row.figures() for row in found.rows]}
    for name in ("truth", "concepts", "calibration"):
        if (report := getattr(found, name)) is not None:
            figures[name] = report.figures()
    return figures


def _print(found: _Found) -> None:
    if found.rows:
        print_table(found.rows)
    if found.truth is not None:
        num_empties = found.truth.num_empties
        print(
            f"\nin {len(num_empties)} positions with {num_empties.min()} to {num_empties.max()} empty squares, "
            "against perfect play"
        )
        print_figures(*found.truth.table())
    if found.concepts is not None:
        print(f"\nin {found.concepts.num_moves} of its moves that were a choice")
        print_figures(*found.concepts.table())
        if found.concepts.num_moves:
            replies, by_chance = found.concepts.replies, found.concepts.replies_by_chance
            print(f"it leaves the opponent {replies:.1f} moves on average; random moves would leave {by_chance:.1f}")
    if found.calibration is not None:
        if len(found.calibration.expected):
            print("\nwhat it expected of its moves, and how the games ended")
            print_figures(*found.calibration.table())
        else:
            print("\nit tells no values that could be compared with the results")
