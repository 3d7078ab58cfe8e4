"""How benchmarks measure and report.

All figures are things per CPU-second. Every round measures the baseline and then each workload, so a machine that is
busy or slow for a while shows in both, and the ratio of the two moves less than either. The baseline is a chain of
SplitMix64 steps, each waiting for the one before: integer arithmetic alone, without memory, vectors or Python.
"""

import json
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

import numpy as np

from experiments.arguments import UsageError, parse, setting
from experiments.provenance import provenance
from experiments.tables import print_figures
from reversi_env.jit import kernel
from reversi_env.random_bits import next_state, scramble

BASELINE_STEPS = 20_000_000  # a twentieth of a second or more

Workload = Callable[[], int]  # does the work and returns how much it did


@dataclass
class BenchSettings:
    """How long to measure, and how to show it."""

    rounds: int = setting(7, "rounds, of which the medians are taken")
    json: bool = setting(False, "print figures as JSON")

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise ValueError(f"rounds must be at least 1, got {self.rounds}")


@dataclass(frozen=True)
class Figure:
    """How much of something a CPU-second holds."""

    name: str
    per_cpu_s: float  # median of the rounds
    per_baseline_step: float  # median of the rounds' ratios


def bench(verb: str, explanation: str, workloads: Mapping[str, Workload], arguments: list[str]) -> int:
    """Runs a benchmark verb: measures the workloads, prints the figures and the machine, and returns the exit code."""
    words, settings = parse(verb, "", BenchSettings, explanation, arguments)
    if words:
        raise UsageError(f"reversi {verb} takes no arguments, found {' '.join(words)}")
    figures = measure(workloads, settings.rounds)
    if settings.json:
        print(json.dumps({"machine": provenance(), "figures": [asdict(figure) for figure in figures]}, indent=2))
        return 0
    print(", ".join(f"{name} {value}" for name, value in provenance().items()))
    rows = [(figure.name, f"{figure.per_cpu_s:,.0f}", f"{figure.per_baseline_step:.3g}") for figure in figures]
    print_figures((f"median of {settings.rounds} rounds", "per CPU-second", "per baseline step"), rows)
    return 0


def measure(workloads: Mapping[str, Workload], rounds: int) -> list[Figure]:
    """Returns a figure for each workload, the baseline first."""
    everything = {"baseline: SplitMix64 steps": _baseline, **workloads}
    for workload in everything.values():
        workload()  # compiles kernels, fills caches
    rates = np.array([[_rate(workload) for workload in everything.values()] for _ in range(rounds)])
    ratios = rates / rates[:, :1]
    return [
        Figure(name, statistics.median(rates[:, column]), statistics.median(ratios[:, column]))
        for column, name in enumerate(everything)
    ]


def _rate(workload: Workload) -> float:
    began = time.process_time()
    amount = workload()
    return amount / (time.process_time() - began)


def _baseline() -> int:
    _chain(np.uint64(1), BASELINE_STEPS)
    return BASELINE_STEPS


@kernel
def _chain(state: np.uint64, num_steps: int) -> np.uint64:
    """Returns the state after `num_steps` steps, each of which scrambles the one before."""
    for _ in range(num_steps):
        state = scramble(next_state(state))
    return state
