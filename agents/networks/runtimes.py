"""Networks run by ONNX Runtime and by OpenVINO, which are optional: they are imported when a backend is made.

A call runs on the one thread that makes it, since processes of one thread each beat one process of many. So pools of
threads, their spinning after a call, and OpenVINO's pinning of threads to cores (two processes would share one core)
are turned off.
"""

import importlib
import importlib.util
from typing import Any

import numpy as np

from reversi_env.naming import UsageError

PLANES, POLICY_LOGITS, RESULT_LOGITS = "planes", "policy_logits", "result_logits"  # what goes in and comes out
EXTRAS = {"onnx": "fast", "onnxruntime": "fast", "openvino": "openvino"}  # what brings each library


def is_installed(library: str) -> bool:
    """Returns whether an optional library is there; does not import it."""
    return importlib.util.find_spec(library) is not None


def advice(library: str) -> str:
    """Returns an optional library's name and how it is installed."""
    return f'{library}, which an extra brings: pip install -c constraints.txt -e ".[{EXTRAS[library]}]"'


def optional(library: str, user: str) -> Any:
    """Returns an optional library, imported; raises UsageError with what brings it where it is missing."""
    if not is_installed(library):
        raise UsageError(f"{user} needs {advice(library)}")
    return importlib.import_module(library)


class OnnxBackend:
    """Runs a network from the bytes of an ONNX file in ONNX Runtime."""

    def __init__(self, name: str, model: bytes) -> None:
        self.name = name
        runtime = optional("onnxruntime", f"backend={name}")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        for pool in ("intra_op", "inter_op"):
            options.add_session_config_entry(f"session.{pool}.allow_spinning", "0")
        self._session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def __call__(self, planes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        policy_logits, result_logits = self._session.run([POLICY_LOGITS, RESULT_LOGITS], {PLANES: planes})
        return policy_logits, result_logits


class OpenVinoBackend:
    """Runs a network from the bytes of an ONNX file in OpenVINO."""

    def __init__(self, name: str, model: bytes) -> None:
        self.name = name
        openvino = optional("openvino", f"backend={name}")
        self._openvino = openvino
        self._core = openvino.Core()
        self._model = self._core.read_model(model, b"")
        self._idle = [self._request()]  # one for each thread that has asked at the same time as others

    def __call__(self, planes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        try:
            request = self._idle.pop()
        except IndexError:
            request = self._request()
        request.set_input_tensor(self._openvino.Tensor(planes, shared_memory=True))
        request.infer()
        policy_logits, result_logits = (
            np.array(request.get_tensor(name).data) for name in (POLICY_LOGITS, RESULT_LOGITS)
        )
        self._idle.append(request)
        return policy_logits, result_logits

    def _request(self) -> Any:
        """Returns what one thread at a time may ask. Requests of one compiled model would wait for each other."""
        settings = {
            "INFERENCE_NUM_THREADS": 1,
            "NUM_STREAMS": 1,
            "ENABLE_CPU_PINNING": False,
            "INFERENCE_PRECISION_HINT": "f32",  # where it is not in integers; bf16 without hardware is hopeless
        }
        return self._core.compile_model(self._model, "CPU", settings).create_infer_request()
