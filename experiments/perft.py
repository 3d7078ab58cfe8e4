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
from experiments.positions import read_position, start_position
from reversi_env import Position, Variant, perft

ENOUGH_CPU_S = 2.0  # runs are repeated for so long
MAX_RUNS = 99  # of the shallow depths that take microseconds


@dataclass
class PerftSettings:
    """Where leaves are counted from."""

    variant: str | None = setting(None, "the rules, else Othello of the board's size")
    position: str | None = setting(None, "a board with the side to move, or the moves of a game so far, else the start")
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


def main(arguments: list[str]) -> int:
    """Runs `reversi perft`."""
    words, settings = parse("perft", "DEPTH", PerftSettings, __doc__ or "", arguments)
    if len(words) != 1 or not words[0].isdecimal():
        raise UsageError(
            f"the depth is one whole number, such as reversi perft 8; found {' '.join(words) or 'nothing'}"
        )
    variant = None if settings.variant is None else Variant.named(settings.variant)
    position = start_position(variant) if settings.position is None else read_position(settings.position, variant)
    counted = count(position, int(words[0]))
    if settings.json:
        print(json.dumps(asdict(counted)))
        return 0
    print(
        f"{counted.leaves} leaves at depth {counted.depth} of {counted.variant}, "
        f"{counted.cpu_s:.3g} CPU s, {counted.leaves_per_cpu_s:.4g} leaves per CPU-second"
    )
    return 0
