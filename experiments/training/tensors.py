"""Groups of named tensors, as a checkpoint keeps them of what goes on from it."""

from collections.abc import Mapping

import torch
from torch import Tensor


def join_tensors(**groups: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Returns the tensors of all groups, each named `group.name`."""
    return {f"{group}.{name}": tensor for group, tensors in groups.items() for name, tensor in tensors.items()}


def split_tensors(tensors: Mapping[str, Tensor], *groups: str) -> list[dict[str, Tensor]]:
    """Returns what `join_tensors` joined, group by group; raises ValueError for a tensor of another group."""
    found: dict[str, dict[str, Tensor]] = {group: {} for group in groups}
    for key, tensor in tensors.items():
        group, _, name = key.partition(".")
        if group not in found:
            raise ValueError(f"it has {key}, which belongs neither to {' nor to '.join(groups)}; is it another run's?")
        found[group][name] = tensor
    return list(found.values())


def check_tensors(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor], what: str) -> None:
    """Raises ValueError where tensors differ in name, shape or type from those wanted, or hold what is not finite."""
    for name in sorted(wanted.keys() - found.keys()):
        raise ValueError(f"{what} has no {name}")
    for name in sorted(found.keys() - wanted.keys()):
        raise ValueError(f"{what} has {name}, which belongs to nothing there")
    for name, tensor in found.items():
        if tensor.shape != wanted[name].shape or tensor.dtype != wanted[name].dtype:
            raise ValueError(f"{what} has a {name} that does not fit the network")
        if not torch.isfinite(tensor).all():
            raise ValueError(f"{what} has a {name} that is not finite")
