"""Measures what runs networks: positions a CPU-second of each backend that is installed, and what auto takes.

    reversi bench inference
    reversi bench inference --channels 32 --blocks 4 --batches 64 --json

The network is drawn by lot; its answers do not matter to its speed. Backends are asked bare, planes in and logits out.
CPU seconds say nothing of a CUDA device; there the wall seconds count.
"""

from dataclasses import dataclass

import numpy as np
import torch

from agents.networks.inference import Backend, planes_of
from agents.networks.published import BACKENDS, choose, is_available, publish
from agents.networks.residual import ResidualConfig, ResidualNetwork
from experiments.arguments import setting
from experiments.bench.measure import BenchSettings, Workload, measure, settings_of, show
from reversi_env import Position, Variant

SEED = 1
POSITIONS = 256  # a round, or one batch where that is more


@dataclass
class InferenceBenchSettings(BenchSettings):
    """Which network is asked, and for how many positions at a time."""

    variant: str = setting("othello", "the variant, whose board's size counts")
    channels: int = setting(64, "channels of the residual network")
    blocks: int = setting(5, "blocks of the residual network")
    batches: str = setting("1,8,64,256", "positions at a time, numbers with commas between")
    device: str = setting("cpu", "cpu or cuda")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(batch.strip().isdecimal() and int(batch) for batch in self.batches.split(",")):
            raise ValueError(f"batches are numbers of positions, with commas between, got {self.batches!r}")
        if self.device not in ("cpu", "cuda"):
            raise ValueError(f"device is cpu or cuda, got {self.device!r}")

    @property
    def batch_sizes(self) -> list[int]:
        return [int(batch) for batch in self.batches.split(",")]


def asking(backend: Backend, variant: Variant, batch: int, num_calls: int) -> Workload:
    """Returns the work of asking a backend so often for `batch` positions; it returns for how many it asked."""
    start = Position(variant)
    player, opponent = (np.array([discs] * batch, np.uint64) for discs in (start.player, start.opponent))
    planes, _ = planes_of(player, opponent, variant)

    def ask() -> int:
        for _ in range(num_calls):
            backend(planes)
        return num_calls * batch

    return ask


def main(arguments: list[str]) -> int:
    """Runs `reversi bench inference`."""
    settings = settings_of("bench inference", __doc__ or "", InferenceBenchSettings, arguments)
    variant = Variant.named(settings.variant)
    torch.manual_seed(SEED)
    network = ResidualNetwork(ResidualConfig(settings.channels, settings.blocks)).to(settings.device)
    backends = {}
    for name in BACKENDS:
        if is_available(name, settings.device):
            published = publish(network, variant, name, device=settings.device)
            backends[published.backend] = published.make_backend()
    workloads = {
        _label(name, batch): asking(backend, variant, batch, max(POSITIONS // batch, 1))
        for batch in settings.batch_sizes
        for name, backend in backends.items()
    }
    figures = measure(workloads, settings.rounds)
    rates = {figure.name: figure.per_cpu_s for figure in figures}
    choices = {batch: choose(device=settings.device, batch=batch) for batch in settings.batch_sizes}
    against_torch = {
        batch: {name: rates[_label(name, batch)] / rates[_label("torch", batch)] for name in backends}
        for batch in choices
    }
    show(
        figures,
        settings,
        against_torch=against_torch,
        auto={batch: found._asdict() for batch, found in choices.items()},
    )
    if not settings.json:
        for batch, (name, reason) in choices.items():
            print(f"auto takes {name}, {against_torch[batch][name]:.2f} times as fast as torch: {reason}")
    return 0


def _label(backend: str, batch: int) -> str:
    return f"{backend}, {batch:,} at a time"
