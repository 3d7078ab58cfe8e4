"""What an algorithm is to a run: it makes a network better, an iteration at a time."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from torch import Tensor

from agents.networks.residual import ResidualNetwork
from experiments.training.config import TrainConfig
from experiments.training.interruption import Stop


@dataclass
class Counters:
    """What a run counts; whole numbers and seconds, which a checkpoint keeps."""

    iteration: int = 0  # whole ones
    elapsed_s: float = 0.0


AnyCounters = TypeVar("AnyCounters", bound=Counters)


def counters_from(kind: type[AnyCounters], found: Mapping[str, Any]) -> AnyCounters:
    """Returns the counters of a file; raises KeyError, TypeError or ValueError where one is none."""
    for entry in fields(kind):
        number = found[entry.name]
        if type(number) not in (entry.type, int) or not 0 <= number < 1 << 53:
            raise ValueError(f"{entry.name} is {number!r}")
    return kind(**found)


class Algorithm(ABC):
    """One way to learn. Its network, its counters and `tensors` are all that an iteration leaves to the next."""

    counters: Counters

    def __init__(self, config: TrainConfig, network: ResidualNetwork) -> None:
        self.config = config
        self.variant = config.variant.to_variant()
        self.device = config.to_device()
        self.network = network

    @property
    def progress(self) -> float:
        """The share of the run that is done, 1 from the last iteration on."""
        return min(self.counters.iteration / max(self.config.schedule.num_iterations - 1, 1), 1.0)

    @abstractmethod
    def iterate(self, stop: Stop) -> dict[str, float]:
        """Changes the network by an iteration and returns its numbers, by the names of metrics.

        It is that after `counters.iteration`, which the caller counts. Raises Interrupted where `stop` asks for it, and
        TrainingError where learning fails: then nothing here is of use any more.
        """

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """Returns what the next iteration begins with, beside network and counters; nothing changes it afterwards."""

    @abstractmethod
    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Takes up what `tensors` gave, network and counters being there; raises ValueError for what does not fit."""
