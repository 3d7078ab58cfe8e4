"""The one decorator for compiled code, and the place on disk where compiled code is kept.

Numba's own file cache looks only at the file in which a function stands: an edit in a helper, an intrinsic or a
constant of another file leaves the old machine code running. Here every module's kernels lie in a folder named by a
digest of that module, of all modules of ours that it imports, and of `spans`, whose type it may be given without an
import: so any edit leads to a new folder.

The cache is `$REVERSI_CACHE_DIR`, else `$XDG_CACHE_HOME/reversi-lab`, else `~/.cache/reversi-lab`; where that cannot
be written, or belongs to somebody else (compiled code is unpickled), a private temporary folder serves the process and
those that it spawns.
"""

import atexit
import contextlib
import functools
import hashlib
import logging
import os
import platform
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import llvmlite
import numba
from numba.core import event
from numba.core.caching import FunctionCache
from numba.core.sigutils import normalize_signature

from reversi_env.durable import alone_in

P = ParamSpec("P")
R = TypeVar("R")

NOTICE_AFTER_S = 1.0
KEPT_DIGESTS = 4  # of each module: enough for a few checkouts or versions side by side

_DIGEST_LENGTH = 16
# `from a import b`, with `(b, c)` over several lines perhaps, or `import a, b`; no comment stands within the brackets.
_IMPORT = re.compile(
    r"^[^\S\n]*(?:from\s+([\w.]+)\s+import\s+(?:\(([^()]*)\)|((?:[^\n#;\\]|\\\n)+))|import\s+((?:[^\n#;\\]|\\\n)+))",
    re.M,
)
_DISPATCHERS: set[Any] = set()  # all kernels
_LOG = logging.getLogger(__name__)
_ROOT = Path(__file__).resolve().parent.parent
_SPANS = _ROOT / "reversi_env" / "spans.py"
_PACKAGES = ("reversi_env", "agents", "experiments")
_VARIABLE = "REVERSI_CACHE_DIR"
_LOCK = threading.Lock()


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Returns `function` as machine code: compiled at its first call, cached on disk, run without the GIL.

    It accepts whatever Numba accepts, with one more rule: no two kernels may call each other, and a recursive call
    passes variables, not literals (both crash Numba 0.68 when the cache is loaded).
    """
    with _LOCK:
        dispatcher: Any = numba.njit(nogil=True)(function)
        dispatcher.get_call_template = functools.partial(_call_template, dispatcher.get_call_template)
        if cache := _cache_of(function):
            dispatcher._cache = cache
        _DISPATCHERS.add(dispatcher)
    return dispatcher  # type: ignore[no-any-return]  # Numba has no types; a kernel is called as its Python source is


def _call_template(call_template: Callable[..., Any], args: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """Returns how one kernel calls another: its constants by their types, else each would have machine code made."""
    plain = tuple(map(numba.types.unliteral, args))
    return call_template(plain, {name: numba.types.unliteral(kind) for name, kind in keywords.items()})


def cache_root() -> Path:
    """Returns the folder under which all compiled code lies; it exists and can be written."""
    return _writable_root(os.environ.get(_VARIABLE), os.environ.get("XDG_CACHE_HOME"))


@functools.cache
def _writable_root(chosen: str | None, xdg: str | None) -> Path:
    if chosen:
        root = Path(chosen).absolute()  # the working directory may change before something is compiled
    elif xdg:
        root = Path(xdg) / "reversi-lab"
    else:
        # expanduser leaves "~" as it is where there is no home at all; such a folder must not be made
        home = os.path.expanduser("~")
        root = Path(home if os.path.isabs(home) else os.devnull) / ".cache" / "reversi-lab"
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        if hasattr(os, "getuid") and root.stat().st_uid != os.getuid():
            raise PermissionError("it belongs to another user")
        with tempfile.TemporaryFile(dir=root) as probe:
            probe.write(b"writable")
        return root
    except OSError as error:
        private = Path(tempfile.mkdtemp(prefix="reversi-lab-"))
        atexit.register(_remove, private, os.getpid())
        os.environ[_VARIABLE] = str(private)  # spawned processes share it instead of compiling again
        _LOG.warning("cannot keep compiled code in %s (%s); this run compiles into %s", root, error, private)
        return private


def _remove(private: Path, owner: int) -> None:
    if os.getpid() == owner:  # and not a forked child that ends first
        shutil.rmtree(private, ignore_errors=True)


@functools.cache
def _module_cache(path: Path) -> Path:
    root = cache_root()
    folder = root / f"{path.stem}-{_digest(path)}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        os.utime(folder)  # the newest are kept
        _prune(root, path.stem)
    except OSError as error:
        _LOG.warning("cannot prepare %s: %s", folder, error)
    return folder


def _prune(root: Path, stem: str) -> None:
    def age(folder: Path) -> float:
        try:
            return folder.stat().st_mtime
        except OSError:
            return 0.0  # another process pruned it

    length = len(stem) + 1 + _DIGEST_LENGTH
    folders = [folder for folder in root.glob(f"{stem}-*") if len(folder.name) == length]
    for folder in sorted(folders, key=age, reverse=True)[KEPT_DIGESTS:]:
        shutil.rmtree(folder, ignore_errors=True)


def _digest(path: Path) -> str:
    """Returns a digest of the file, of every file of ours that it imports, of spans, and of the compiler's versions."""
    digest = hashlib.sha256()
    digest.update(f"{platform.python_version()} {numba.__version__} {llvmlite.__version__}".encode())
    for source in sorted(_with_imports(path) | {_SPANS}):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:_DIGEST_LENGTH]


def _with_imports(path: Path) -> set[Path]:
    found: set[Path] = set()
    waiting = [path]
    while waiting:
        source = waiting.pop()
        if source not in found and source.is_file():
            found.add(source)
            waiting.extend(_imports(source))
    return found


@functools.cache
def _imports(source: Path) -> frozenset[Path]:
    """Returns the files of ours that a file's import statements name, wherever those stand.

    They are found by their look, in a tenth of a parser's time; what only looks like one does no harm.
    """
    names: set[str] = set()
    for from_module, several, one, plain in _IMPORT.findall(source.read_bytes().decode("utf-8", "replace")):
        listed = (several or one or plain).replace("\\", " ").split(",")
        words = [name.split()[0] for name in listed if name.split()]
        names.update(f"{from_module}.{name}" if from_module else name for name in words)
        names.add(from_module)
    modules = (_ROOT.joinpath(*name.split(".")) for name in names if name.split(".")[0] in _PACKAGES)
    files = (file for module in modules for file in (module.with_suffix(".py"), module / "__init__.py"))
    return frozenset(file for file in files if file.is_file())


def _cache_of(function: Callable[..., Any]) -> FunctionCache | None:
    """Returns where the compiled function is kept; None where it cannot be, or was typed into a notebook."""
    source = Path(function.__code__.co_filename).resolve()
    if not source.is_file():
        return None
    folder = _module_cache(source)
    try:
        with _numba_cache_at(folder):
            cache = _ForgivingCache(function)
    except RuntimeError:  # there is no folder that Numba could write
        return None
    # Where it cannot write (on a full disk, say) Numba quietly takes another folder, which knows of no digest.
    return cache if folder in Path(cache.cache_path).parents else None


@contextlib.contextmanager
def _numba_cache_at(folder: Path) -> Iterator[None]:
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


class _ForgivingCache(FunctionCache):  # type: ignore[misc]  # Numba has no types
    """A cache whose faults (a full disk, a damaged file) cost a compilation, never the call."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            loaded = super().load_overload(sig, target_context)
            # Where files cannot be locked, two processes that save at one moment can give two signatures the same file.
            if loaded is not None and loaded.signature.args != normalize_signature(sig)[0]:
                raise ValueError(f"it was compiled for {loaded.signature}")
            return loaded
        except Exception as error:  # unpickling a damaged file can raise anything
            _LOG.warning("compiled code in %s cannot be read (%s); compiling anew", self.cache_path, error)
            with contextlib.suppress(OSError), _writing(Path(self.cache_path)):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            with _writing(Path(self.cache_path)):
                super().save_overload(sig, data)
        except (OSError, EOFError) as error:
            _LOG.warning("compiled code cannot be kept in %s: %s", self.cache_path, error)


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Has other processes wait that would write in a folder: Numba reads an index, adds to it and writes it anew."""
    folder.mkdir(parents=True, exist_ok=True)  # another process may have pruned it
    with alone_in(folder):
        yield


class _Notice(event.Listener):  # type: ignore[misc]  # Numba has no types
    """Says on stderr, once a process, that kernels are being compiled, when that takes longer than a moment."""

    def __init__(self) -> None:
        self._depth = 0
        self._said = False
        self._timer: threading.Timer | None = None

    def on_start(self, event: Any) -> None:
        self._depth += 1
        if self._depth == 1 and not self._said and event.data["dispatcher"] in _DISPATCHERS:
            self._timer = threading.Timer(NOTICE_AFTER_S, self._say)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0 and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _say(self) -> None:
        self._said = True
        print("reversi: compiling the kernels, once on this machine …", file=sys.stderr, flush=True)


event.register("numba:compile", _Notice())
