"""How benchmarks measure and report.

All figures are things per CPU-second. Every round measures the baseline and then each workload, so a machine that is
busy or slow for a while shows in both, and the ratio of the two moves less than either. The baseline is a chain of
SplitMix64 steps, each waiting for the one before: integer arithmetic alone, without memory, vectors or Python.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np

from experiments.arguments import UsageError, parse, setting
from experiments.provenance import provenance
from experiments.tables import print_figures
from reversi_env.jit import kernel
from reversi_env.random_bits import next_state, scramble

BASELINE = "baseline: SplitMix64 steps"
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


S = TypeVar("S", bound=BenchSettings)


@dataclass(frozen=True)
class Figure:
    """How much of something a CPU-second holds; medians of the rounds."""

    name: str
    amount: int  # done in a round
    cpu_s: float  # that a round took, of all threads
    wall_s: float
    per_cpu_s: float
    per_baseline_step: float  # of the rounds' ratios


def bench(verb: str, explanation: str, workloads: Mapping[str, Workload], arguments: list[str]) -> int:
    """Runs a benchmark verb: measures the workloads, prints the figures and the machine, and returns the exit code."""
    settings = settings_of(verb, explanation, BenchSettings, arguments)
    show(measure(workloads, settings.rounds), settings)
    return 0


def settings_of(verb: str, explanation: str, settings: type[S], arguments: list[str]) -> S:
    """Returns the settings of a benchmark verb's command line; raises as `parse`, and UsageError for words."""
    words, found = parse(verb, "", settings, explanation, arguments)
    if words:
        raise UsageError(f"reversi {verb} takes no arguments, found {' '.join(words)}")
    return found


def show(figures: Sequence[Figure], settings: BenchSettings, **more: Any) -> None:
    """Prints the machine and the figures; JSON has `more` beside them."""
    if settings.json:
        found = {"machine": provenance(), "figures": [asdict(figure) for figure in figures], **more}
        print(json.dumps(found, indent=2))
        return
    print(", ".join(f"{name} {value}" for name, value in provenance().items()))
    print_figures(
        (f"median of {settings.rounds} rounds", "amount", "CPU s", "wall s", "per CPU-second", "per baseline step"),
        [
            (
                figure.name,
                f"{figure.amount:,}",
                f"{figure.cpu_s:.3g}",
                f"{figure.wall_s:.3g}",
                f"{figure.per_cpu_s:,.0f}",
                f"{figure.per_baseline_step:.3g}",
            )
            for figure in figures
        ],
    )


def measure(workloads: Mapping[str, Workload], rounds: int, warm_up: bool = True) -> list[Figure]:
    """Returns a figure for each workload, the baseline first.

    Each is done once before the first round, to compile kernels and fill caches, unless it has been warmed up.
    """
    everything = {BASELINE: _baseline, **workloads}
    for workload in everything.values() if warm_up else [_baseline]:
        workload()
    taken = np.array([[_taken(workload) for workload in everything.values()] for _ in range(rounds)])
    rates = taken[:, :, 0] / taken[:, :, 1]
    ratios = rates / rates[:, :1]
    amounts, cpu_s, wall_s = np.median(taken, axis=0).T.tolist()
    return [
        Figure(name, *of_workload)
        for name, *of_workload in zip(
            everything,
            map(round, amounts),
            cpu_s,
            wall_s,
            np.median(rates, axis=0).tolist(),
            np.median(ratios, axis=0).tolist(),
            strict=True,
        )
    ]


def _taken(workload: Workload) -> tuple[int, float, float]:
    """Returns how much a workload did, and the CPU and wall seconds that it took."""
    began, cpu_began = time.perf_counter(), time.process_time()
    amount = workload()
    return amount, time.process_time() - cpu_began, time.perf_counter() - began


def _baseline() -> int:
    _chain(np.uint64(1), BASELINE_STEPS)
    return BASELINE_STEPS


@kernel
def _chain(state: np.uint64, num_steps: int) -> np.uint64:
    """Returns the state after `num_steps` steps, each of which scrambles the one before."""
    for _ in range(num_steps):
        state = scramble(next_state(state))
    return state
