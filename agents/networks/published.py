"""Networks as those take them who play with them: bytes of which any process makes an evaluator.

    torch, torch-half            float32 on any device, float16 on a CUDA device
    onnx, onnx-int8              ONNX Runtime on a CPU, in float32 or eight-bit integers
    openvino, openvino-int8      OpenVINO on a CPU, likewise
    tuples                       kernels, for networks of n-tuples and for nothing else

`auto` takes the fastest of those that are installed. What is handed out of a residual network is first compared with
torch in float32, and replaced by what is closer where it strays too far.
"""

import hashlib
import logging
import math
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from agents.networks.inference import Backend, NetworkEvaluator, ask, planes_of
from agents.networks.runtimes import OnnxBackend, OpenVinoBackend, advice, is_installed
from agents.ntuple.network import TupleNetwork
from agents.ntuple.policy import TupleEvaluator
from reversi_env import Variant
from reversi_env.datasets import GameDataset, PositionDataset
from reversi_env.naming import UsageError, one_of

if TYPE_CHECKING:  # a process that plays with another backend does without torch
    import torch

    from agents.networks.residual import ResidualNetwork

AUTO = "auto"
CLOSER = {  # what takes a backend's place where it strays too far from torch in float32
    "torch-half": "torch",
    "onnx": "torch",
    "onnx-int8": "onnx",
    "openvino": "torch",
    "openvino-int8": "openvino",
}
BACKENDS = ("torch", *CLOSER)
TUPLES = "tuples"

Positions: TypeAlias = tuple[np.ndarray, np.ndarray]  # player and opponent, uint64 [n, W]

_SMALL_BATCH = 8  # OpenVINO takes a third of a millisecond for a call as such
_CALIBRATION_GAMES, _CALIBRATION_SEED = 64, 1
_CALIBRATION_POSITIONS = 512
_FLOAT32_POSITIONS = 64  # where nothing is calibrated, these show whether something is wrong
_LEAST = 1e-30  # probability that counts as more than none
_LOG = logging.getLogger(__name__)


@dataclass
class InferenceConfig:
    """What runs the network for search."""

    backend: str = AUTO  # or one of BACKENDS
    float32: bool = False  # auto leaves out eight-bit integers and half precision

    def __post_init__(self) -> None:
        one_of("backend", self.backend, (AUTO, *BACKENDS))


class Choice(NamedTuple):
    """A backend, and why it was taken."""

    backend: str
    reason: str


class Deviation(NamedTuple):
    """How far answers are from those of torch in float32."""

    policy_kl: float  # of the policies from torch's, over legal actions, in nats: the mean
    mean_value: float  # mean of the values' differences
    most_value: float  # the greatest of them

    def __str__(self) -> str:
        return f"policy {self.policy_kl:.2g} nats, value {self.mean_value:.2g}, at the most {self.most_value:.2g}"


# In eight-bit integers trained networks stray by 0.0001 nats and 0.007, at the most 0.06 (experiments/LOG.md,
# "Inference backends"). These are some times as much, and little beside what a round of learning changes.
MOST_DEVIATION = Deviation(0.002, 0.03, 0.3)


@dataclass(frozen=True)
class PublishReport:
    """How a published network came about."""

    choice: Choice
    deviation: Deviation
    strayed: tuple[str, ...]  # what was tried before and strayed too far, a sentence each
    wall_s: float


@dataclass(frozen=True)
class Published:
    """A network as bytes, for a backend."""

    backend: str
    data: bytes  # an ONNX file, or for torch and tuples a safetensors file; all are data, of which nothing is run
    device: str = "cpu"  # where torch runs it
    digest: str = ""  # SHA-256 of the data, made where none is given
    report: PublishReport | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not self.digest:
            object.__setattr__(self, "digest", hashlib.sha256(self.data).hexdigest())

    def evaluator(self) -> NetworkEvaluator | TupleEvaluator:
        """Returns an evaluator of the network.

        Raises ValueError where the bytes are not those that were published, or no network, and UsageError where this
        process lacks a library or the device.
        """
        if self.backend == TUPLES:
            self._check()
            return TupleEvaluator(TupleNetwork.from_bytes(self.data))
        return NetworkEvaluator(self.make_backend())

    def make_backend(self) -> Backend:
        """Returns what runs a residual network; raises as `evaluator`."""
        self._check()
        try:
            return self._read()
        except UsageError:  # a library or a device is missing
            raise
        except Exception as error:  # the libraries' own, which have nothing in common
            reason = str(error).strip().partition("\n")[0]
            raise ValueError(
                f"{len(self.data):,} bytes are no network that {self.backend} can run: {reason}"
            ) from error

    def _check(self) -> None:
        """Raises ValueError where the bytes are not those that were published."""
        if hashlib.sha256(self.data).hexdigest() != self.digest:
            raise ValueError(f"the {len(self.data):,} bytes of a published network are not those that were sent")

    def _read(self) -> Backend:
        if self.backend.startswith("onnx"):
            return OnnxBackend(self.backend, self.data)
        if self.backend.startswith("openvino"):
            return OpenVinoBackend(self.backend, self.data)
        from agents.networks.torch_backend import TorchBackend, from_safetensors

        return TorchBackend(from_safetensors(self.data), self.device, half=self.backend == "torch-half")


def choose(backend: str = AUTO, device: str = "cpu", batch: int = 64, float32: bool = False) -> Choice:
    """Returns the backend that a name stands for where about `batch` positions are asked for at once.

    Raises UsageError where it cannot run on `device`, "cpu" or "cuda".
    """
    if backend == "torch-half" and device != "cuda":
        raise UsageError("backend=torch-half needs a CUDA device; on a CPU backend=auto takes what is fast")
    if backend != AUTO:
        return Choice(one_of("backend", backend, BACKENDS), "asked for")
    if device == "cuda":
        return Choice("torch" if float32 else "torch-half", "the fastest on a CUDA device")
    faster = ""
    for name in _ranking(batch, float32):
        if is_available(name):
            break
        faster = faster or f"; {name} would be faster, and needs {advice(_missing(name)[0])}"
    return Choice(name, f"the fastest that is installed for batches of {batch}{faster}")


def _ranking(batch: int, float32: bool) -> tuple[str, ...]:
    """Returns backends for a CPU, the fastest first (experiments/LOG.md, "Inference backends")."""
    runtimes = ("onnx", "openvino") if batch < _SMALL_BATCH else ("openvino", "onnx")
    integers = () if float32 else tuple(f"{runtime}-int8" for runtime in runtimes)
    return (*integers, "onnx", "openvino", "torch")


def is_available(backend: str, device: str = "cpu") -> bool:
    """Returns whether a backend can run here on `device`, "cpu" or "cuda"; imports no library to find out."""
    if device == "cuda":
        return backend.startswith("torch")
    return backend != "torch-half" and not _missing(backend)


def _missing(backend: str) -> list[str]:
    """Returns the libraries that a backend needs and that are not installed."""
    runtime = backend.removesuffix("-int8")
    needed = {"onnx": ("onnx", "onnxruntime"), "openvino": ("onnx", "openvino")}.get(runtime, ())
    return [library for library in needed if not is_installed(library)]


def publish(
    network: "ResidualNetwork | TupleNetwork",
    variant: Variant,
    backend: str = AUTO,
    calibration: Positions | None = None,
    device: "str | torch.device" = "cpu",
    batch: int = 64,
    float32: bool = False,
) -> Published:
    """Returns the network as it is now for a backend, see `choose`, whose answers are close to torch's in float32.

    They are compared on the calibration positions, by default some of random games, which also tell the range of
    integers. What strays too far is replaced, logged and reported. N-tuples are only rounded. Raises ValueError where
    the network's answer is not a number, and UsageError where a library is missing, or n-tuples shall run on a backend.
    """
    if isinstance(network, TupleNetwork):
        return _publish_tuples(network, backend)
    from agents.networks.onnx_graph import noted_ranges, to_onnx
    from agents.networks.torch_backend import TorchBackend, to_safetensors

    began = time.perf_counter()
    reference = TorchBackend(network, device)
    choice = choose(backend, reference.device.type, batch, float32)
    name = choice.backend
    if calibration is None:
        planes, legal = _random_positions(variant, _CALIBRATION_POSITIONS if _rounds(name) else _FLOAT32_POSITIONS)
    else:
        planes, legal = planes_of(*calibration, variant)
    with noted_ranges(reference.network) as ranges:
        policy, value, is_finite = ask(reference, planes, legal)
    if not is_finite:
        raise ValueError("the network's answer is not a number, so its weights are of no use")
    strayed: list[str] = []
    while True:
        if name.startswith("torch"):
            data = to_safetensors(network)
        else:
            data = to_onnx(reference.network, ranges if name.endswith("int8") else None)
        published = Published(name, data, reference.device.type)
        if name == "torch":  # the reference itself
            deviation = Deviation(0.0, 0.0, 0.0)
            break
        deviation = _deviation(policy, value, *ask(published.make_backend(), planes, legal))
        if all(error <= most for error, most in zip(deviation, MOST_DEVIATION, strict=True)):
            break
        strayed.append(f"{name} strays too far from float32 ({deviation}), so {CLOSER[name]} takes its place")
        _LOG.warning("%s", strayed[-1])
        name = CLOSER[name]
    return replace(published, report=PublishReport(choice, deviation, tuple(strayed), time.perf_counter() - began))


def _publish_tuples(network: TupleNetwork, backend: str) -> Published:
    if backend != AUTO:
        raise UsageError(f"n-tuples run in kernels and on no backend; leave out backend={backend}")
    began = time.perf_counter()
    published = Published(TUPLES, network.to_bytes())
    choice = Choice(TUPLES, "n-tuples run in kernels")
    return replace(published, report=PublishReport(choice, Deviation(0.0, 0.0, 0.0), (), time.perf_counter() - began))


def _deviation(
    policy: np.ndarray, value: np.ndarray, other_policy: np.ndarray, other_value: np.ndarray, is_finite: bool
) -> Deviation:
    """Returns how far the other policies [B, A] and values [B] are; infinitely far where they are not finite."""
    if not is_finite:
        return Deviation(math.inf, math.inf, math.inf)
    possible = policy > 0
    ratio = np.divide(policy, np.maximum(other_policy, _LEAST), where=possible, out=np.ones_like(policy))
    kl = np.sum(policy * np.log(ratio), axis=1, dtype=np.float64)
    difference = np.abs(value - other_value)
    return Deviation(float(kl.mean()), float(difference.mean()), float(difference.max()))


def _rounds(backend: str) -> bool:
    return backend.endswith(("-int8", "-half"))


def _random_positions(variant: Variant, num_positions: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns planes and legal actions of positions of random games."""
    positions = PositionDataset(GameDataset.random(variant, _CALIBRATION_GAMES, _CALIBRATION_SEED))
    drawn = np.random.default_rng(_CALIBRATION_SEED).integers(len(positions), size=num_positions)
    batch = positions.batch(drawn)
    return batch["planes"], batch["action_mask"].astype(np.bool_)
