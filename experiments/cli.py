"""The command `reversi`: finds the verb, runs it, and turns what went wrong into a sentence and an exit code.

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted. `REVERSI_DEBUG=1` shows the traceback instead. Nothing is
imported before a verb is known, so that the help is there at once.
"""

import contextlib
import importlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

DONE, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130


class Verb(NamedTuple):
    """A verb's module, whose `main(arguments)` returns the exit code, and what it does."""

    module: str
    summary: str
    handles_signals: bool = False  # else SIGTERM interrupts it


MAIN_VERBS = {
    "train": Verb("experiments.train", "train a network or n-tuples, by self-play or against opponents", True),
    "evaluate": Verb("experiments.evaluate", "rate an agent against others"),
    "tournament": Verb("experiments.tournament", "rate agents against each other, everyone against everyone"),
    "play": Verb("experiments.play", "play in the terminal, against an agent or a friend"),
    "analyze": Verb("experiments.analyze", "say what an agent thinks of a position, and why of each move"),
    "solve": Verb("experiments.solve", "say how positions end when both sides play perfectly"),
}
OTHER_VERBS = {
    "bench env": Verb("experiments.bench.env", "measure the environment"),
    "bench inference": Verb("experiments.bench.inference", "measure what runs networks"),
    "bench perft": Verb("experiments.bench.perft", "measure the rules"),
    "bench selfplay": Verb("experiments.bench.selfplay", "measure self-play and its tree"),
    "bench solver": Verb("experiments.bench.solver", "measure the exact solver"),
    "bench training": Verb("experiments.bench.training", "measure self-play and learning together"),
    "perft": Verb("experiments.perft", "count the leaves of the game tree"),
    "records convert": Verb("experiments.records.convert", "write records of games in another format"),
    "records dataset": Verb("experiments.records.dataset", "write random or recorded games for learners"),
    "records info": Verb("experiments.records.info", "say what files of records hold, and what is wrong"),
}
VERBS = MAIN_VERBS | OTHER_VERBS
NAME_WIDTH = max(map(len, VERBS)) + 1

USAGE = """\
usage: reversi VERB [ARGUMENT ...]

{main}

Beside them:
{others}

`reversi VERB --help` explains a verb. AGENT is a name such as random or alphabeta:depth=5, a run folder such as runs/x,
a checkpoint, or my_bot.py:Bot."""


def main(arguments: list[str]) -> int:
    """Runs a command line without its first word and returns the exit code."""
    _mend_streams()
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()  # a full disk or a closed pipe shows here, not while Python shuts down
    except BrokenPipeError:
        _drop_what_cannot_be_written()
        return DONE  # nobody reads on, and that is no fault
    except KeyboardInterrupt:
        if _is_debugging():
            raise
        print("reversi: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (ValueError, OSError) as error:
        if _is_debugging():
            raise
        _drop_what_cannot_be_written()
        print(f"reversi: {_sentence(error)}", file=sys.stderr)
        return WRONG_USAGE if _is_wrong_usage(error) else FAILED


def _run(arguments: list[str]) -> int:
    first, second = (*arguments, "", "")[:2]
    members = {name: verb for name, verb in VERBS.items() if name.startswith(f"{first} ")}
    if first in ("", "-h", "--help", "help"):
        print(USAGE.format(main=_listing(MAIN_VERBS), others=_listing(OTHER_VERBS)))
    elif first == "--version":
        print(f"reversi-lab {_version()}")
    elif members and second in ("", "-h", "--help"):
        print(f"usage: reversi {first} VERB [ARGUMENT ...]\n\n{_listing(members)}")
    elif f"{first} {second}" in members:
        return _call(members[f"{first} {second}"], arguments[2:])
    elif first in VERBS:
        return _call(VERBS[first], arguments[1:])
    else:
        _complain(first, second, [name.removeprefix(f"{first} ") for name in members])
    return DONE


def _call(verb: Verb, arguments: list[str]) -> int:
    # Torch asks at import. Our networks are small: two threads in one call gain little on an idle machine and lose most
    # of their speed on a busy one, and training keeps its cores at work by threads of its own.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    run = importlib.import_module(verb.module).main
    with contextlib.nullcontext() if verb.handles_signals else _interrupted_by_sigterm():
        return int(run(arguments))


@contextlib.contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """Makes SIGTERM do what Ctrl-C does, so that nothing unfinished is left behind."""
    if threading.current_thread() is not threading.main_thread():
        yield  # a handler may only be set in the main thread
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def _complain(first: str, second: str, members: list[str]) -> NoReturn:
    from reversi_env.naming import UnknownNameError  # brings in Numba, which the help does without

    if members:
        raise UnknownNameError(f"verb after {first}", second, members)
    if first.startswith("-"):
        raise UnknownNameError("option", first, ("--help", "--version"))
    raise UnknownNameError("verb", first, (name.split()[0] for name in VERBS))


def _listing(verbs: dict[str, Verb]) -> str:
    return "\n".join(f"  {name:<{NAME_WIDTH}} {verb.summary}" for name, verb in verbs.items())


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("reversi-lab")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _mend_streams() -> None:
    """Leads streams that are closed, which Python holds for None, into nothing, and shows "?" for what has no letter.

    The last line of a long run must not fail, as on a terminal that knows no minus sign.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (open as long as the process is)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _drop_what_cannot_be_written() -> None:
    """Turns stdout into nothing where it takes no more, or Python would try again, and fail, while it shuts down."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:  # str() would begin with a number
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def _is_wrong_usage(error: Exception) -> bool:
    from reversi_env.naming import UsageError

    return isinstance(error, UsageError)


def _is_debugging() -> bool:
    return os.environ.get("REVERSI_DEBUG") == "1"
