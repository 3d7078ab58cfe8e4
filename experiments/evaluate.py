"""Rates an agent in paired games against others.

    reversi evaluate greedy                                        the four classic opponents, 200 games each
    reversi evaluate alphabeta:depth=3 greedy --variant othello-6x6 --games 20
    reversi evaluate runs/x alphabeta:depth=4 -- games=400 seed=1

Every opening is played twice, colors swapped. Draws count half in the score. Intervals are at 95 %.
"""

import json

import agents
from experiments.arguments import UsageError, parse
from experiments.evaluation import CLASSIC_OPPONENTS, evaluate, print_table
from experiments.match_settings import AGENTS, MatchSettings, show_progress, variant_of, warn_of_repeats


def main(arguments: list[str]) -> int:
    """Runs `reversi evaluate`."""
    words, settings = parse("evaluate", "AGENT [OPPONENT ...]", MatchSettings, f"{__doc__}\n{AGENTS}", arguments)
    if not words:
        raise UsageError("evaluate whom? reversi evaluate AGENT [OPPONENT ...]")
    agent, *opponents = [agents.make(spec) for spec in (words if words[1:] else (words[0], *CLASSIC_OPPONENTS))]
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
