"""Networks run by torch: on a CPU in float32, on a GPU in half precision too."""

import contextlib
import copy
import json
from collections.abc import Iterator
from dataclasses import asdict

import numpy as np
import safetensors.torch
import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from agents.networks.residual import ResidualConfig, ResidualNetwork
from reversi_env.naming import UsageError

_CONFIG = "config"  # in the header's metadata


class TorchBackend:
    """Runs a frozen copy of a network in eager torch, its batch norms folded into its convolutions, channels last.

    On a CPU that is half as fast again as the network as it stands. There a call runs on the one thread that makes it,
    whatever torch is set to: two gain a small network little on an idle machine, and cost it most of its speed on a
    busy one.
    """

    def __init__(self, network: ResidualNetwork, device: str | torch.device = "cpu", half: bool = False) -> None:
        self.name = "torch-half" if half else "torch"
        self.device = torch.device(device)
        if self.device.type == "cuda" and not torch.cuda.is_available():
            raise UsageError("the network is for a CUDA device, and torch finds none here")
        self.dtype = torch.float16 if half else torch.float32
        self.network = folded(network).to(self.device, self.dtype)
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs leave it out

    @torch.inference_mode()
    def __call__(self, planes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        inputs = torch.from_numpy(planes)
        with _one_thread() if self.device.type == "cpu" else contextlib.nullcontext():
            if (
                self.device.type == "cuda"
            ):  # from pinned memory, and in float32: a change of type would be the CPU's work
                inputs = inputs.pin_memory().to(self.device, non_blocking=True)
            heads = self.network(inputs.to(self.dtype, memory_format=torch.channels_last))
            num_actions = heads.policy_logits.shape[1]
            answer = (
                torch.cat([heads.policy_logits, heads.result_logits], dim=1).float().cpu().numpy()
            )  # one copy from the device
        return np.ascontiguousarray(answer[:, :num_actions]), np.ascontiguousarray(answer[:, num_actions:])


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Keeps torch's operations on the calling thread for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def folded(network: ResidualNetwork) -> ResidualNetwork:
    """Returns a copy in evaluation mode in which each convolution does the work of its batch norm too."""
    copied = copy.deepcopy(network).eval().requires_grad_(False)
    for module in list(copied.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Sequential) and len(child) == 2 and isinstance(child[1], nn.BatchNorm2d):
                convolution, norm = child
                assert isinstance(convolution, nn.Conv2d)
                assert isinstance(norm, nn.BatchNorm2d)
                setattr(module, name, fuse_conv_bn_eval(convolution, norm))
    return copied


def to_safetensors(network: ResidualNetwork) -> bytes:
    """Returns a network's weights and its size as the bytes of a safetensors file."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}
    return safetensors.torch.save(tensors, {_CONFIG: json.dumps(asdict(network.config))})


def from_safetensors(data: bytes) -> ResidualNetwork:
    """Returns the network of which `to_safetensors` made bytes."""
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])  # a file begins with its header's length
    with torch.device("meta"):  # shapes without memory
        network = ResidualNetwork(ResidualConfig(**json.loads(header["__metadata__"][_CONFIG])))
    network.load_state_dict(safetensors.torch.load(data), assign=True)
    return network
