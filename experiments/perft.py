"""Counts the leaves of the game tree, the field's test of rules and of their speed.

    reversi perft 8
    reversi perft 11 --json
    reversi perft 6 --variant reversi-1883
    reversi perft 5 --position "---------------------------OX------XO--------------------------- X"

A pass is one ply, a finished game one leaf. The time is CPU time with the kernels compiled, the median of several runs.
"""

import json
import statistics
import time
from dataclasses import asdict, dataclass

from experiments.arguments import UsageError, parse, setting
from reversi_env import Position, perft

ENOUGH_CPU_S = 2.0  # runs are repeated for so long
MAX_RUNS = 99  # of the shallow depths that take microseconds


@dataclass
class PerftSettings:
    """Where leaves are counted from."""

    variant: str | None = setting(None, "the rules, else Othello of the board's size")
    position: str | None = setting(None, "a board as text, with the side to move, else the start")
    json: bool = setting(False, "print figures as JSON")


@dataclass(frozen=True)
class Count:
    """Leaves, and how long one count of them took."""

    variant: str
    position: str
    depth: int
    leaves: int
    cpu_s: float  # the median of `runs` runs
    runs: int
    leaves_per_cpu_s: float


def count(position: Position, depth: int) -> Count:
    """Returns the leaves `depth` plies below a position, counted repeatedly; raises ValueError for a negative depth."""
    perft(position, min(depth, 2))  # compiles, or loads what was compiled
    times: list[float] = []
    while not times or (sum(times) < ENOUGH_CPU_S and len(times) < MAX_RUNS):
        began = time.process_time()
        leaves = perft(position, depth)
        times.append(time.process_time() - began)
    cpu_s = statistics.median(times)
    rate = leaves / max(cpu_s, time.get_clock_info("process_time").resolution)
    return Count(position.variant.name, position.text, depth, leaves, cpu_s, len(times), rate)


def _position(text: str, variant: str | None) -> Position:
    try:
        return Position.from_text(text, variant)
    except ValueError as error:
        raise UsageError(f"position: {error}") from None


def main(arguments: list[str]) -> int:
    """Runs `reversi perft`."""
    words, settings = parse("perft", "DEPTH", PerftSettings, __doc__ or "", arguments)
    if len(words) != 1 or not words[0].isdecimal():
        raise UsageError(
            f"the depth is one whole number, such as reversi perft 8; found {' '.join(words) or 'nothing'}"
        )
    if settings.position is None:
        position = Position("othello" if settings.variant is None else settings.variant)
    else:
        position = _position(settings.position, settings.variant)
    counted = count(position, int(words[0]))
    if settings.json:
        print(json.dumps(asdict(counted)))
        return 0
    print(
        f"{counted.leaves} leaves at depth {counted.depth} of {counted.variant}, "
        f"{counted.cpu_s:.3g} CPU s, {counted.leaves_per_cpu_s:.4g} leaves per CPU-second"
    )
    return 0
