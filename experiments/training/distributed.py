"""One learner on many processes, where one core or GPU is too slow; torchrun begins them, each with the same command.

    torchrun --nproc-per-node 2 -m reversi_lab train experiment=quick_network variant=othello network=medium

Rank 0 is the run: the folder, the actors, the replay and the optimizer are its own. With each step it sends the others
its weights and the batch, each computes the gradients of its part, and rank 0 takes their mean. So the others keep
nothing, and a checkpoint is that of one process.

A step is that of one process but for what looks at a batch as a whole: batch norms take the statistics of a part, and
keep those of rank 0's, as in torch's DistributedDataParallel; and the weights of policies are shares of a part's sum.
"""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from datetime import timedelta
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor, distributed, nn

from experiments.training.interruption import TrainingError
from experiments.training.replay import Batch
from reversi_env import Variant

Compute: TypeAlias = Callable[[Batch], dict[str, Tensor]]  # adds a batch's gradients to a network's, and tells of them

_END = 0  # in the place of a number of positions
_PATIENCE = timedelta(days=365)  # rank 0 may be at an evaluation for hours; a lost connection is noticed at once


class Ranks:
    """All processes of one learner, seen from one of them."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        self._is_in_step = False

    def step(self, network: nn.Module, batch: Batch, compute: Compute) -> dict[str, Tensor]:
        """Fills the network's gradients, which are none yet, with the mean of all ranks; returns that of their numbers.

        For rank 0. Raises TrainingError where another rank is gone.
        """
        self._is_in_step = True
        _broadcast(torch.tensor(len(batch)))
        _share(network, batch)
        numbers = self._compute(network, batch, compute)
        self._is_in_step = False
        return numbers

    def follow(self, network: nn.Module, variant: Variant, compute: Compute) -> None:
        """Computes what rank 0 asks for, until that ends; for all other ranks."""
        network.train()
        num_positions = torch.tensor(_END)
        with contextlib.suppress(TrainingError):  # rank 0 is gone, and has said why
            while True:
                _broadcast(num_positions)
                if num_positions == _END:
                    break
                batch = Batch.empty(int(num_positions), variant)
                _share(network, batch)
                network.zero_grad(set_to_none=True)
                self._compute(network, batch, compute)

    def close(self) -> None:
        """Ends the other ranks where they wait for a step; in the middle of one they see that this one is gone."""
        if self.rank == 0 and not self._is_in_step:
            with contextlib.suppress(TrainingError):
                _broadcast(torch.tensor(_END))
        distributed.destroy_process_group()

    def _compute(self, network: nn.Module, batch: Batch, compute: Compute) -> dict[str, Tensor]:
        part = batch.at(slice(self.rank, None, self.size))
        numbers = compute(part)
        gradients = [parameter.grad for parameter in network.parameters() if parameter.grad is not None]
        tensors = [*gradients, *numbers.values()]
        flat = _flat(tensors) * (len(part) / len(batch))
        with _lost_ranks_told():
            distributed.reduce(flat, 0)
        if self.rank == 0:
            _fill(tensors, flat)
        return numbers


def num_ranks() -> int:
    """Returns how many processes torchrun has begun with this one; 1 where it has not."""
    return int(os.environ.get("WORLD_SIZE", "1")) if distributed.is_torchelastic_launched() else 1


@contextlib.contextmanager
def joined_ranks(device: torch.device) -> Iterator[Ranks | None]:
    """Joins the processes that torchrun has begun with this one; gives None where it has not, or this one alone."""
    size = num_ranks()
    if size == 1:
        yield None
        return
    backend = "gloo"
    if device.type == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        backend = "cpu:gloo,cuda:nccl"
    distributed.init_process_group(backend, timeout=_PATIENCE)
    ranks = Ranks(distributed.get_rank(), size)
    if ranks.rank:  # rank 0 decides when it is over
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    with contextlib.closing(ranks):
        yield ranks


def _share(network: nn.Module, batch: Batch) -> None:
    """Sends weights and a batch from rank 0, or fills them with what it sends."""
    parameters = [parameter.detach() for parameter in network.parameters()]
    flat = _flat(parameters)
    _broadcast(flat)
    _fill(parameters, flat)
    for field in fields(batch):
        array = np.ascontiguousarray(getattr(batch, field.name))
        _broadcast(torch.from_numpy(array.view(np.uint8)))


def _broadcast(tensor: Tensor) -> None:
    with _lost_ranks_told():
        distributed.broadcast(tensor, 0)


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def _fill(tensors: Sequence[Tensor], flat: Tensor) -> None:
    """Fills tensors with what `_flat` made of some of their shapes."""
    for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(part.view(tensor.shape))


@contextlib.contextmanager
def _lost_ranks_told() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # gloo has no type for it
        raise TrainingError(f"another rank is gone: {str(error).splitlines()[0]}") from None
