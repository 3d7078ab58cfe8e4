"""How a run ends before its end: it is asked to, or learning cannot go on."""

import threading


class Interrupted(KeyboardInterrupt):
    """The run was asked to stop; it is in the state in which its last whole iteration left it."""


class TrainingError(ValueError):
    """Learning cannot go on; the sentence says what happened and where."""


class Stop:
    """A request to stop, which may come from a signal handler or another thread; those who work look at it often."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def request(self) -> None:
        """Makes `check` raise from now on."""
        self._event.set()

    def check(self) -> None:
        """Raises Interrupted once it is requested."""
        if self._event.is_set():
            raise Interrupted
