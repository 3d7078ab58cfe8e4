"""Measures the rules: perft leaves of several variants.

reversi bench perft
reversi bench perft --json
"""

import functools

from experiments.bench.measure import bench
from reversi_env import Position, perft

DEPTHS = {"othello": 10, "othello-6x6": 10, "othello-10x10": 8, "reversi-1883": 9}


def count(variant: str, depth: int) -> int:
    """Counts the leaves from a variant's start and returns them."""
    return perft(Position(variant), depth)


WORKLOADS = {
    f"leaves of {variant}, depth {depth}": functools.partial(count, variant, depth) for variant, depth in DEPTHS.items()
}


def main(arguments: list[str]) -> int:
    """Runs `reversi bench perft`."""
    return bench("bench perft", __doc__ or "", WORKLOADS, arguments)
