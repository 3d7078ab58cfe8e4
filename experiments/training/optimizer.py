"""What all learners want of an optimizer: a learning rate along half a cosine, and its state as named tensors."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor


def cosine_rate(first: float, last: float, progress: float) -> float:
    """Returns the learning rate from `first` down to `last` at a share of the run, `progress` in 0..1, or after it."""
    return last + (first - last) * (1 + math.cos(math.pi * min(progress, 1.0))) / 2


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Returns the state of an Adam or AdamW as named tensors, not copied."""
    return {
        f"optimizer.{index}.{name}": tensor
        for index, state in optimizer.state_dict()["state"].items()
        for name, tensor in state.items()
    }


def load_optimizer_tensors(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Takes up the state that `optimizer_tensors` gave, among other tensors.

    Raises ValueError where it does not fit the parameters.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        if key.startswith("optimizer."):
            _, index, name = key.split(".")
            state.setdefault(int(index), {})[name] = tensor
    for number, moments in state.items():
        shape = parameters[number].shape if 0 <= number < len(parameters) else None
        wanted = {"step": torch.Size(), "exp_avg": shape, "exp_avg_sq": shape}
        found = {name: tensor.shape for name, tensor in moments.items()}
        if found != wanted or any(tensor.dtype != torch.float32 for tensor in moments.values()):
            raise ValueError(f"the optimizer's state {number} does not fit the network")
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
