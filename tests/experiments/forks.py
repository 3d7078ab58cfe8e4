"""Commands in processes that begin at once: forks of one that has imported what training needs, and done nothing else.

Only tests that begin dozens of processes want them; what begins by itself, as it does for people, is the truer test.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments import cli

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["experiments.train", "experiments.training.trainer"])


class Fork:
    """`reversi` with some arguments, in a process group of its own; `errors` yields what it writes to stderr."""

    def __init__(self, arguments: Sequence[str], folder: Path) -> None:
        """Begins it; the pipe for what it writes is made in `folder`."""
        pipe = folder / "stderr"
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
        self._process = _FORKS.Process(target=_run, args=(list(arguments), str(pipe)))
        self._process.start()
        self.errors = pipe.open()

    def __enter__(self) -> "Fork":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.errors.close()

    def kill(self) -> None:
        """Ends it and its children, with no notice."""
        assert self._process.pid is not None
        with contextlib.suppress(ProcessLookupError):  # it has ended, and its parent has taken note of that
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.join()


def _run(arguments: list[str], pipe: str) -> None:
    os.setsid()
    os.dup2(os.open(pipe, os.O_WRONLY), 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(cli.main(arguments))
