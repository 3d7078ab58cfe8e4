"""How search asks a network: bitboards in, policies and values out, a batch at a time."""

import contextlib
import copy
from collections.abc import Iterator
from typing import Protocol

import numpy as np
import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from agents.networks.residual import ResidualNetwork, mask_logits
from reversi_env import Variant
from reversi_env.encoding import NUM_PLANES, write_planes


class Backend(Protocol):
    """Whatever runs a network: NumPy in, NumPy out."""

    def __call__(self, planes: np.ndarray, legal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns policies float32 [B, A] over legal actions and values float32 [B].

        The planes are float32 [B, 3, S, S], `legal` is bool [B, A].
        """


class TorchBackend:
    """Runs a frozen copy of a network in eager torch, its batch norms folded into its convolutions, channels last.

    On a CPU that is half as fast again as the network as it stands. There a call runs on the one thread that makes it,
    whatever torch is set to: two gain a small network little on an idle machine, and cost it most of its speed on a
    busy one.
    """

    def __init__(self, network: ResidualNetwork, device: torch.device) -> None:
        self.device = device
        self.network = _folded(network).to(device)
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs leave it out

    @torch.inference_mode()
    def __call__(self, planes: np.ndarray, legal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with _one_thread():
            inputs = torch.from_numpy(planes).to(self.device, memory_format=torch.channels_last)
            logits, values = self.network.policy_and_value(inputs)
            policy = torch.softmax(mask_logits(logits, torch.from_numpy(legal).to(self.device)), dim=1)
            return policy.cpu().numpy(), values.cpu().numpy()


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Keeps torch's operations on the calling thread for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _folded(network: ResidualNetwork) -> ResidualNetwork:
    """Returns a copy in evaluation mode in which each convolution does the work of its batch norm too."""
    folded = copy.deepcopy(network).eval().requires_grad_(False)
    for module in list(folded.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Sequential) and len(child) == 2 and isinstance(child[1], nn.BatchNorm2d):
                convolution, norm = child
                assert isinstance(convolution, nn.Conv2d)
                assert isinstance(norm, nn.BatchNorm2d)
                setattr(module, name, fuse_conv_bn_eval(convolution, norm))
    return folded


class NetworkEvaluator:
    """An `agents.mcts.Evaluator` over a backend; plays every variant whose board its planes can show.

    A call raises ValueError where the network answers NaN.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def __call__(self, player: np.ndarray, opponent: np.ndarray, variant: Variant) -> tuple[np.ndarray, np.ndarray]:
        planes = np.empty((len(player), NUM_PLANES, variant.size, variant.size), np.float32)
        legal = np.empty((len(player), variant.num_actions), np.bool_)
        write_planes(player, opponent, planes, legal, variant.rules)
        policy, value = self.backend(planes, legal)
        if not (np.isfinite(policy).all() and np.isfinite(value).all()):  # search would go on, by no rule at all
            raise ValueError("the network's answer is not a number, so its weights are of no use")
        return policy, value
