"""An outside engine: a program of somebody else's that is told lines and answers lines, each within a time."""

import contextlib
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import time
import weakref

from reversi_env.naming import UsageError

GAMES = "/usr/games"  # where Debian puts such programs; root's PATH leaves it out
GRACE_S = 1.0  # for an engine to end when it is asked to, and again when it is told to
_CHUNK = 1 << 16
_KEPT = 1000  # bytes of what an engine said last, to show


class EngineError(ValueError):
    """An outside engine did not do its part; the sentence names its command line and shows what it said."""


def find_program(command: str) -> list[str]:
    """Returns a command line as words, the first being the path of a program that is there.

    Raises UsageError where there is none, or no end to a quotation.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"the command line {command!r} cannot be split into words: {error}") from None
    if not words:
        raise UsageError("an engine needs a command line, such as 'gtp-rhino -l 3 -b 0'")
    path = shutil.which(words[0]) or shutil.which(words[0], path=GAMES)
    if path is None:
        raise UsageError(f"there is no program {words[0]!r} on the PATH or in {GAMES}, so {command!r} cannot be run")
    return [path, *words[1:]]


class EngineProcess:
    """A running engine. It ends with `close`, with its last reference or with the interpreter, whichever comes first.

    It leads a session of its own, so Ctrl-C at a terminal reaches the interpreter alone, which then ends the engine.
    """

    def __init__(self, command: str, timeout_s: float, farewell: str) -> None:
        """Starts `command`; `farewell` is the line that asks the engine to end.

        Raises UsageError where there is no such program, EngineError where it cannot be run.
        """
        self.command = command
        self._timeout_s = timeout_s
        try:
            process = subprocess.Popen(
                find_program(command),
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise EngineError(f"{command} cannot be run: {error.strerror}") from None
        self._process = process
        self._end = weakref.finalize(self, _end, process, farewell)
        assert process.stdout is not None
        assert process.stderr is not None
        self._output, self._complaints = process.stdout.fileno(), process.stderr.fileno()
        self._pipes = selectors.DefaultSelector()
        for pipe in (self._output, self._complaints):
            self._pipes.register(pipe, selectors.EVENT_READ)
        self._asked, self._deadline = "", 0.0
        self._unread = b""
        self._said = b""  # on its standard error

    def send(self, line: str) -> None:
        """Tells the engine a line, from which on its time runs. Whether it has ended is for `read` to find out."""
        assert self._process.stdin is not None
        self._asked, self._deadline = line, time.monotonic() + self._timeout_s
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{line}\n".encode())

    def read(self) -> str:
        """Returns the next line, without its end. Raises EngineError where the engine's time is over, or it has ended.

        Its time is `timeout_s` from the last line that it was told.
        """
        while b"\n" not in self._unread:
            ready = self._pipes.select(max(0.0, self._deadline - time.monotonic()))
            if time.monotonic() >= self._deadline:
                raise self._error(f"did not answer {self._asked!r} within {self._timeout_s:g} s")
            for key, _ in ready:
                self._receive(key.fd)
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode(errors="replace").rstrip()

    def close(self) -> None:
        """Asks the engine to end, then tells it to, then kills it and what it started, and returns when it is gone.

        Once is enough.
        """
        self._end()
        self._pipes.close()

    def _receive(self, pipe: int) -> None:
        chunk = os.read(pipe, _CHUNK)
        if not chunk:
            self._pipes.unregister(pipe)
        if pipe == self._complaints:
            self._said = (self._said + chunk)[-_KEPT:]
        elif chunk:
            self._unread += chunk
        else:
            raise self._ended()

    def _ended(self) -> EngineError:
        """Returns what to say of an engine that closed its output."""
        try:
            status = self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            return self._error(f"closed its output when asked {self._asked!r}")
        while self._pipes.get_map() and self._pipes.select(0) and time.monotonic() < self._deadline:
            self._receive(self._complaints)
        how = f"killed by signal {-status}" if status < 0 else f"with status {status}"
        return self._error(f"ended {how} when asked {self._asked!r}")

    def _error(self, what: str) -> EngineError:
        said = (self._said + self._unread)[-_KEPT:].decode(errors="replace")
        said = " ".join("".join(letter if letter.isprintable() else " " for letter in said).split())
        return EngineError(f"{self.command} {what}" + (f"; it said: {said}" if said else ""))


def _end(process: "subprocess.Popen[bytes]", farewell: str) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # it may have ended already
        process.stdin.write(f"{farewell}\n".encode())
    with contextlib.suppress(OSError):
        process.stdin.close()
    if not _has_ended(process):
        _send_signal(process, signal.SIGTERM)
        _has_ended(process)
    _send_signal(process, signal.SIGKILL)  # where it has ended too: what it started may be there still
    _has_ended(process)
    for pipe in (process.stdout, process.stderr):
        assert pipe is not None
        pipe.close()


def _has_ended(process: "subprocess.Popen[bytes]") -> bool:
    """Returns whether a process has ended, or does so within its grace."""
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _send_signal(process: "subprocess.Popen[bytes]", number: int) -> None:
    """Sends a signal to a process and whatever it started; does nothing where all of them have ended."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, number)
