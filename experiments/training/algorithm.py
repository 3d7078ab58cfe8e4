"""What an algorithm is to a run: it makes a network better, or tables of n-tuples, an iteration at a time."""

import contextlib
import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from torch import Tensor

from agents.agent import Agent
from agents.checkpoint import Network
from agents.manifest import CheckpointError
from agents.mcts import MCTSAgent
from agents.networks.residual import ResidualNetwork
from experiments.training.config import TrainConfig
from experiments.training.interruption import Stop
from experiments.training.watched import watched_evaluator


@dataclass
class Counters:
    """What a run counts; whole numbers and seconds, which a checkpoint keeps."""

    iteration: int = 0  # whole ones
    elapsed_s: float = 0.0


AnyCounters = TypeVar("AnyCounters", bound=Counters)


def counters_from(kind: type[AnyCounters], found: Mapping[str, Any]) -> AnyCounters:
    """Returns the counters of a file; raises ValueError where they are others, or one is none."""
    kinds = get_type_hints(kind)
    if found.keys() != kinds.keys():
        raise ValueError(
            f"its counters are {', '.join(sorted(found))}, and this run's {', '.join(sorted(kinds))}; "
            "is it another algorithm's?"
        )
    for name, number in found.items():
        if type(number) not in (kinds[name], int) or not 0 <= number < 1 << 53:
            raise ValueError(f"{name} is {number!r}")
    return kind(**found)


class Algorithm(ABC):
    """One way to learn. Its network, its counters and `tensors` are all that an iteration leaves to the next."""

    counters: Counters

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.variant = config.variant.to_variant()

    @property
    def progress(self) -> float:
        """The share of the run that is done, by iterations or by time; 1 from the last of several iterations on."""
        schedule, counters = self.config.schedule, self.counters
        by_time = counters.elapsed_s / schedule.duration_s if schedule.duration_s else 0.0
        return min(max(counters.iteration / max(schedule.num_iterations - 1, 1), by_time), 1.0)

    def settle(self, run: Path) -> None:  # noqa: B027 (only a replay lies there)
        """Tells the run's folder, before anything else is asked for that might belong there."""

    def prepare(self) -> None:  # noqa: B027 (some have nothing to compile)
        """Compiles what iterations need, so that the clock of a run does not begin with it."""

    def prune(self, checkpoints: Sequence[Path]) -> None:  # noqa: B027 (likewise)
        """Removes what neither the next iteration nor one of the run's checkpoints needs any more."""

    @abstractmethod
    def copied(self) -> Network:
        """Returns a copy of what is learned, which nothing changes afterwards."""

    def kept(self, network: Network) -> Network:
        """Returns what a checkpoint keeps of a copy: perhaps more, which takes some seconds to find out."""
        return network

    @abstractmethod
    def take_up(self, network: Network) -> None:
        """Learns on from what a checkpoint holds; raises CheckpointError where that is of another kind or size."""

    @abstractmethod
    def player(self, name: str, stop: Stop) -> contextlib.AbstractContextManager[Agent]:
        """Gives the agent that is rated, with what is learned by now; it may raise Interrupted when `stop` asks."""

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

    def close(self) -> None:  # noqa: B027 (most have nothing to end)
        """Ends what works for it in other threads and processes; another iteration begins that anew."""


class NetworkAlgorithm(Algorithm):
    """An algorithm that trains a residual network, rated with tree search."""

    def __init__(self, config: TrainConfig, network: ResidualNetwork) -> None:
        super().__init__(config)
        self.device = config.to_device()
        self.network = network

    def copied(self) -> Network:
        return copy.deepcopy(self.network)

    def take_up(self, network: Network) -> None:
        if not isinstance(network, ResidualNetwork):
            raise CheckpointError("the checkpoint holds n-tuples, the configuration asks for a residual network")
        if network.config != self.network.config:
            raise CheckpointError(
                f"the checkpoint's network is {network.config}, the configuration asks for {self.network.config}"
            )
        self.network.load_state_dict(network.state_dict())

    @contextlib.contextmanager
    def player(self, name: str, stop: Stop) -> Iterator[Agent]:
        evaluator = watched_evaluator(self.network, self.device, stop)
        yield MCTSAgent(evaluator, self.config.evaluation.search, name, self.variant, os.cpu_count() or 1)
