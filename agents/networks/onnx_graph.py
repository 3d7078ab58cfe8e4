"""Residual networks as ONNX, in float32 or in eight-bit integers, written node by node.

`torch.onnx.export` and ONNX Runtime's own quantization take seconds for what takes hundredths here. Batch norms are
folded first. Only policy and result are written, since search asks for nothing else. Batch and board have any size.

Integers appear as QuantizeLinear and DequantizeLinear around what a runtime then does in integers: ONNX Runtime and
OpenVINO both know the pattern. Activations are uint8 with one scale a tensor, weights int8 with one scale an output
channel, after Jacob et al. 2018 (arXiv:1712.05877), section 2. Weights have seven bits, because processors without
VNNI add products in pairs of 16 bits, which hold two of 255 · 64 and no more.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from agents.networks.inference import NUM_RESULTS
from agents.networks.residual import ResidualNetwork
from agents.networks.runtimes import PLANES, POLICY_LOGITS, RESULT_LOGITS, optional
from reversi_env.encoding import NUM_PLANES

Ranges: TypeAlias = dict[str, tuple[float, float]]  # least and greatest of 0 and all activations, by module

_OPSET, _IR_VERSION = 17, 8  # of 2022, so that the runtimes of some years read them
_STEPS = 255  # from the least to the greatest activation
_MOST_WEIGHT = 64  # in steps, see above
_MOST_BIAS = float(1 << 30)
_MOST_BYTES = 2_000_000_000  # what a protobuf holds, and some left for the nodes


def to_onnx(network: ResidualNetwork, ranges: Ranges | None = None) -> bytes:
    """Returns a folded network as the bytes of an ONNX file; with the `ranges` of its activations, in integers.

    Planes float32 [B, 3, S, S] go in; policy logits [B, S² + 1] and result logits [B, 3] come out. Raises ValueError
    for a network that is too large.
    """
    graph = _Graph(ranges)
    features = graph.rounded(PLANES, 0.0, float(_STEPS))  # zeros and ones, which that leaves as they are
    features = graph.rectified(graph.convolution(network.stem, features), "stem")
    for index in range(len(network.tower)):
        name = f"tower.{index}"
        first, second = (network.get_submodule(f"{name}.{part}") for part in ("first", "second"))
        inner = graph.rectified(graph.convolution(first, features), f"{name}.first")
        change = graph.rounded(graph.convolution(second, inner), *graph.range_of(f"{name}.second"))
        features = graph.rectified(graph.node("Add", features, change), name)
    policy = graph.rectified(graph.convolution(network.policy_features, features), "policy_features")
    square_logits = graph.node("Flatten", graph.convolution(network.square_logits, policy))
    pass_logit = graph.linear(network.pass_logit, graph.pooled(policy))
    graph.node("Concat", square_logits, pass_logit, result=POLICY_LOGITS, axis=1)
    value = graph.rectified(graph.convolution(network.value_features, features), "value_features")
    hidden = graph.node("Relu", graph.linear(network.value_hidden, graph.pooled(value)))
    graph.linear(network.result, hidden, result=RESULT_LOGITS)
    return graph.to_bytes()


@contextlib.contextmanager
def noted_ranges(network: ResidualNetwork) -> Iterator[Ranges]:
    """Gives the ranges of what comes out of each module of a network while it is asked."""
    ranges: Ranges = {}

    def watch(name: str, module: nn.Module) -> RemovableHandle:
        def note(module: nn.Module, inputs: object, output: object) -> None:
            if isinstance(output, Tensor):
                least, greatest = ranges.get(name, (0.0, 0.0))
                ranges[name] = min(least, output.min().item()), max(greatest, output.max().item())

        return module.register_forward_hook(note)

    handles = [watch(name, module) for name, module in network.named_modules()]
    try:
        yield ranges
    finally:
        for handle in handles:
            handle.remove()


class _Graph:
    """An ONNX graph that grows; what its methods take and return are names of tensors."""

    def __init__(self, ranges: Ranges | None) -> None:
        self.onnx = optional("onnx", "a network for ONNX Runtime or OpenVINO")
        self.ranges = ranges
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.num_bytes = 0  # of the constants
        self.scales: dict[str, np.float32] = {}  # of tensors that were integers

    def node(self, kind: str, *inputs: str, result: str | None = None, **attributes: Any) -> str:
        result = result or f"{kind}.{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [result], result, **attributes))
        return result

    def constant(self, array: np.ndarray | np.generic) -> str:
        self.num_bytes += array.nbytes
        if self.num_bytes > _MOST_BYTES:
            raise ValueError("a network of more than 2 GB is too large for ONNX; backend=torch runs it")
        name = f"constant.{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(array), name))
        return name

    def range_of(self, name: str) -> tuple[float, float]:
        return self.ranges[name] if self.ranges is not None else (0.0, 0.0)

    def rounded(self, tensor: str, least: float, greatest: float) -> str:
        """Returns a tensor after it was integers, 0 standing for `least`, 255 for `greatest`; in float32 as it is."""
        if self.ranges is None:
            return tensor
        scale = np.float32((greatest - least) / _STEPS or 1.0)
        parameters = self.constant(scale), self.constant(np.uint8(round(-least / scale)))
        result = self.node("DequantizeLinear", self.node("QuantizeLinear", tensor, *parameters), *parameters)
        self.scales[result] = scale
        return result

    def rectified(self, tensor: str, name: str) -> str:
        """Returns what is above zero of a tensor, which comes out of module `name`."""
        if self.ranges is None:
            return self.node("Relu", tensor)
        return self.rounded(tensor, 0.0, self.ranges[name][1])  # where 0 is the least integer the rest is cut off

    def convolution(self, module: nn.Module, features: str) -> str:
        assert isinstance(module, nn.Conv2d)
        assert module.bias is not None
        weight, bias = (tensor.cpu().numpy() for tensor in (module.weight, module.bias))
        if features not in self.scales:
            weights, biases = self.constant(weight), self.constant(bias)
        else:
            scale = self.scales[features]  # biases are added to sums of products, so the products' scales are theirs
            scales = np.maximum(np.abs(weight).max(axis=(1, 2, 3)) / _MOST_WEIGHT, np.abs(bias) / (scale * _MOST_BIAS))
            scales[scales == 0] = 1
            weights = self.integers(weight / scales[:, None, None, None], scales, np.int8)
            biases = self.integers(bias / (scales * scale), scales * scale, np.int32)
        return self.node("Conv", features, weights, biases, pads=[module.kernel_size[0] // 2] * 4)

    def integers(self, steps: np.ndarray, scales: np.ndarray, kind: type[np.integer]) -> str:
        """Returns numbers of so many steps, the scale of one for each row, as rounding leaves them."""
        zeros = np.zeros(len(scales), kind)
        constants = (self.constant(array) for array in (np.round(steps).astype(kind), scales, zeros))
        return self.node("DequantizeLinear", *constants, axis=0)

    def pooled(self, features: str) -> str:
        kinds = ("GlobalAveragePool", "GlobalMaxPool")
        return self.node("Concat", *(self.node("Flatten", self.node(kind, features)) for kind in kinds), axis=1)

    def linear(self, module: nn.Linear, features: str, result: str | None = None) -> str:
        weight, bias = (self.constant(tensor.cpu().numpy()) for tensor in (module.weight, module.bias))
        return self.node("Gemm", features, weight, bias, result=result, transB=1)

    def to_bytes(self) -> bytes:
        helper, kind = self.onnx.helper, self.onnx.TensorProto.FLOAT
        graph = helper.make_graph(
            self.nodes,
            "residual network",
            [helper.make_tensor_value_info(PLANES, kind, ["batch", NUM_PLANES, "size", "size"])],
            [
                helper.make_tensor_value_info(POLICY_LOGITS, kind, ["batch", "actions"]),
                helper.make_tensor_value_info(RESULT_LOGITS, kind, ["batch", NUM_RESULTS]),
            ],
            self.constants,
        )
        opset = helper.make_opsetid("", _OPSET)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=_IR_VERSION, producer_name="reversi-lab")
        return bytes(model.SerializeToString())
