"""What all tests share: the way to the reference data, which lies beside the repository and is not copied into it."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported; as `experiments.cli` does

# The first example of a test may wait for a kernel to compile, so none has a deadline.
settings.register_profile("kernels", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kernels")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a script has it for what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")  # so that fixtures of any scope, and hypothesis, may use it
def data() -> Callable[[str], Path]:
    """Returns `data(name)`: the path of a file of reference data.

    Where the file is absent the test that asks is skipped, or fails if REVERSI_REQUIRE_DATA is 1.
    """

    def path_of(name: str) -> Path:
        path = SHARED_DATA / name
        if not path.exists():
            reason = f"reference data is missing: {path}"
            if os.environ.get("REVERSI_REQUIRE_DATA") == "1":
                pytest.fail(reason)
            pytest.skip(reason)
        return path

    return path_of
