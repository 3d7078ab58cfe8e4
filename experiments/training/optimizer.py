"""What all learners want of an optimizer: a rate along half a cosine, finite numbers, its state as named tensors."""

import itertools
import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from experiments.training.interruption import TrainingError
from experiments.training.tensors import check_tensors

# What an optimizer keeps of each parameter from its first step on: a number, or as many as the parameter has.
_STATE = {
    torch.optim.Adam: ("step", "exp_avg", "exp_avg_sq"),
    torch.optim.AdamW: ("step", "exp_avg", "exp_avg_sq"),
    torch.optim.SGD: ("momentum_buffer",),
}


def check_rates(first: float, last: float) -> None:
    """Raises ValueError for learning rates that `cosine_rate` cannot lead from one to the other."""
    for name, rate in (("learning_rate", first), ("final_learning_rate", last)):
        if not 0 < rate <= 1:
            raise ValueError(f"{name} must be above 0 and at most 1, got {rate}")


def cosine_rate(first: float, last: float, progress: float) -> float:
    """Returns the learning rate from `first` down to `last` at a share of the run, `progress` in 0..1, or after it."""
    return last + (first - last) * (1 + math.cos(math.pi * min(progress, 1.0))) / 2


def diverged(what: str, num_steps: int, learning_rate: float, key: str) -> TrainingError:
    """Returns the error that says what is not finite after so many steps, and by which key of the configuration."""
    return TrainingError(f"{what} at step {num_steps} (learning rate {learning_rate:.2g}); try a lower {key}")


def is_finite(network: nn.Module, optimizer: torch.optim.Optimizer) -> bool:
    """Returns whether every number that a checkpoint would keep of them is finite."""
    tensors = itertools.chain(network.state_dict().values(), optimizer_tensors(optimizer).values())
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Returns the state of an optimizer as named tensors, not copied; none before its first step."""
    return {
        f"{index}.{name}": tensor
        for index, state in optimizer.state_dict()["state"].items()
        for name, tensor in state.items()
        if tensor is not None
    }


def load_optimizer_tensors(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], num_steps: int) -> None:
    """Takes up the state that `optimizer_tensors` gave after so many steps.

    Raises ValueError where it does not fit the parameters.
    """
    wanted = _like_state(optimizer) if num_steps else {}
    check_tensors(tensors, wanted, f"the optimizer's state after step {num_steps}")
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        index, name = key.split(".")
        # In the order in which a convolution's weights lie, so that sums are rounded as if nothing had happened.
        state.setdefault(int(index), {})[name] = wanted[key].copy_(tensor)
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def _like_state(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Returns tensors without content like those that the state has from the first step on."""
    parameters: Iterable[Tensor] = itertools.chain(*(group["params"] for group in optimizer.param_groups))
    return {
        f"{index}.{name}": torch.empty(()) if name == "step" else torch.empty_like(parameter, requires_grad=False)
        for index, parameter in enumerate(parameters)
        for name in _STATE[type(optimizer)]
    }
