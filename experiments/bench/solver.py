"""Measures the exact solver on the FFO endgame positions 20 to 44, whose scores it checks.

    reversi bench solver --problems ffo.tsv
    reversi bench solver --json --problems ffo.obf --rounds 3

Amounts are nodes, positions looked at; CPU seconds are those of all threads. Two threads are compared with one by wall
time, which means something only while nothing else runs.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.search.solver import Solver, table_entries_of
from experiments.arguments import UsageError, setting
from experiments.bench.measure import BenchSettings, measure, settings_of, show
from experiments.problems import Problem, read_problems
from experiments.provenance import SOURCE

FFO = SOURCE.parent / "shared" / "data" / "ffo.tsv"
SETS = {"FFO 20–39": range(20, 40), "FFO 40–44": range(40, 45)}
THREADS = {1: "one thread", 2: "two threads"}


@dataclass
class SolverBenchSettings(BenchSettings):
    """What is solved, and how often."""

    rounds: int = setting(1, "rounds, of which the medians are taken")
    problems: str | None = setting(
        None,
        "the FFO positions as .tsv or .obf, named by their numbers (default: ../shared/data/ffo.tsv by this project)",
    )
    hash_mb: float = setting(64.0, "megabytes for the table of positions already searched")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.hash_mb < float("inf"):
            raise ValueError(f"hash_mb is more than 0, got {self.hash_mb}")


def solve(solver: Solver, problems: Sequence[Problem]) -> int:
    """Returns the nodes that the problems take; raises ValueError where a score is not as published."""
    num_nodes = 0
    for problem in problems:
        solution = solver.solve(problem.position)
        if problem.score is not None and solution.score != problem.score:
            raise ValueError(f"problem {problem.name}: solved to {solution.score:+d}, published {problem.score:+g}")
        num_nodes += solution.num_nodes
    return num_nodes


def main(arguments: list[str]) -> int:
    """Runs `reversi bench solver`."""
    settings = settings_of("bench solver", __doc__ or "", SolverBenchSettings, arguments)
    problems = _problems(settings.problems)
    workloads = {}
    for name, numbers in SETS.items():
        chosen = [problems[number] for number in numbers]
        for num_threads, threads in THREADS.items():
            variant = chosen[0].position.variant
            solver = Solver(variant, table_entries_of(settings.hash_mb, variant.size), num_threads=num_threads)
            solver.compile()
            workloads[f"{name}, {threads}"] = functools.partial(solve, solver, chosen)
    figures = {figure.name: figure for figure in measure(workloads, settings.rounds, warm_up=False)}
    one, two = THREADS.values()
    speedups = {name: figures[f"{name}, {one}"].wall_s / figures[f"{name}, {two}"].wall_s for name in SETS}
    show(list(figures.values()), settings, two_threads_against_one=speedups)
    if not settings.json:
        for name, speedup in speedups.items():
            print(f"{name}: two threads are {speedup:.2f} times as fast as one")
    return 0


def _problems(path: str | None) -> dict[int, Problem]:
    """Returns the FFO problems by number; raises UsageError where some that are measured are missing."""
    if path is None and not FFO.exists():
        raise UsageError("the FFO positions do not come along; give a file of them, --problems ffo.tsv or ffo.obf")
    found = {int(problem.name): problem for problem in read_problems(path or FFO) if problem.name.isdecimal()}
    missing = [str(number) for numbers in SETS.values() for number in numbers if number not in found]
    if missing:
        raise UsageError(f"{Path(path or FFO)} has no problem named {', '.join(missing)}")
    return found
