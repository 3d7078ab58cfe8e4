"""Many runs by one command: Hydra's sweeper says which, and its launcher runs them, one by one or side by side.

Each is a `reversi train` of its own, in a process of its own, with a run folder inside the sweep's. A file in that
folder stops them, whatever launcher has started them, and wherever. This goes through the same Hydra object that
composes a single configuration: `hydra.main` would want the command line for itself, and would show a failed run as a
traceback.
"""

import functools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hydra import initialize_config_module
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from experiments.cli import INTERRUPTED
from experiments.stopping import stopped_by_signals

_STOP = ".stop"
_LOOK_EVERY_S = 0.2
_LONGEST_NAME = 100
_HYDRA = (  # the runs keep their own configurations and logs
    "hydra.output_subdir=null",
    "hydra.sweep.subdir=.",
    "hydra/job_logging=none",
    "hydra/hydra_logging=none",
)


@dataclass(frozen=True)
class SweptRun:
    """A run of a sweep, and the exit code with which it ended."""

    folder: Path
    exit_code: int


def sweep(overrides: Sequence[str], swept: Sequence[str], folder: Path) -> list[SweptRun]:
    """Trains once for each combination of the values that `overrides` name, in folders inside `folder`.

    Their names tell the values of the keys in `swept`. The first Ctrl-C or SIGTERM has the runs under way leave a
    checkpoint, and no others begin. Raises what Hydra raises for overrides that make no configuration, or a launcher
    that is not installed.
    """
    with initialize_config_module("configs", version_base="1.3"), stopped_by_signals((folder / _STOP).touch):
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        batches = hydra.multirun(
            config_name="train",
            task_function=functools.partial(_train, swept, os.getpid()),
            overrides=[*overrides, *_HYDRA, f"hydra.sweep.dir='{folder}'"],
            with_log_configuration=False,
        )
    (folder / _STOP).unlink(missing_ok=True)
    return [SweptRun(*job.return_value) for batch in batches for job in batch]


def _train(swept: Sequence[str], sweeps_process: int, config: DictConfig) -> tuple[Path, int]:
    """Runs one combination, perhaps in another process than the sweep, and returns its folder and exit code."""
    job = HydraConfig.get()
    folder = Path(job.sweep.dir)
    overrides = list(job.overrides.task)
    values = "-".join(override for override in overrides if override.partition("=")[0] in swept)
    name = f"{job.job.num:03}-" + re.sub(r"[^\w.+]+", "-", values)[:_LONGEST_NAME].strip("-")
    command = [sys.executable, "-m", "reversi_lab", "train", *overrides, f"runs='{folder}'", f"name='{name}'"]
    if os.getpid() != sweeps_process:  # a launcher's, which hears a terminal's Ctrl-C too
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if (folder / _STOP).exists():
        return folder / name, INTERRUPTED
    with subprocess.Popen(command, start_new_session=True) as process:  # so that it hears of signals from here alone
        is_told = False
        try:
            while process.poll() is None:
                time.sleep(_LOOK_EVERY_S)
                if not is_told and (folder / _STOP).exists():
                    process.send_signal(signal.SIGINT)
                    is_told = True
        except BaseException:
            process.kill()
            raise
    return folder / name, process.returncode
