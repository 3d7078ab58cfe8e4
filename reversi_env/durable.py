"""Writing files so that a crash, a full disk or a killed process leaves the old file or the new one, never a half.

What is unfinished lies beside its place under a temporary name, and is locked by the process that writes it: so the
next one that writes there can take away what a killed process has left. Where a system has no such locks it stays.
"""

import contextlib
import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_HAS_LOCKS = os.name == "posix"
if _HAS_LOCKS:
    import fcntl

_SUFFIX = ".tmp"
_RANDOM = re.compile(rf"[a-z0-9_]{{8}}{re.escape(_SUFFIX)}")  # what `tempfile` puts behind a prefix


def write_file(path: Path, content: bytes | str) -> None:
    """Writes a file whole: under a temporary name beside it, synced to disk, then renamed over the old one."""
    with new_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Gives a file to fill, under a temporary name beside `path`, which becomes `path` when the block ends well.

    Nothing is left behind, and the old file stays as it was, when the block raises. The new file has the old one's
    mode; a link stays, and what it leads to is replaced.
    """
    target = Path(os.path.realpath(path))
    with blaming(path):
        mode = _mode_of(target)
        _clear_abandoned(target)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=_prefix(target), suffix=_SUFFIX)
    with _held(name):
        try:
            with blaming(path, Path(name)):
                with os.fdopen(handle, "wb") as file:
                    yield file
                    file.flush()
                    os.fsync(file.fileno())
                os.chmod(name, mode)
                os.replace(name, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
    _sync_folder(target.parent)


def _mode_of(path: Path) -> int:
    """Returns the mode of a file that is written: the old one's, where there is one. Raises IsADirectoryError."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return 0o666 & ~_UMASK
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return stat.S_IMODE(mode)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Gives a temporary folder to fill; when the block ends well its files are synced and it becomes `path`.

    A folder inside it is one that `new_folder` has made. Raises FileExistsError where `path` is there already; nothing
    is left behind when the block raises.
    """
    check_free(path)
    with blaming(path):
        _clear_abandoned(path)
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=_prefix(path), suffix=_SUFFIX))
    with _held(temporary):
        try:
            with blaming(path, temporary):
                yield temporary
                for file in (entry for entry in temporary.iterdir() if entry.is_file()):
                    os.chmod(file, 0o666 & ~_UMASK)  # whatever wrote it may have kept it to itself
                    with open(file, "rb") as opened:
                        os.fsync(opened.fileno())
                os.chmod(temporary, 0o777 & ~_UMASK)
                _sync_folder(temporary)
                os.rename(temporary, path)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    _sync_folder(path.parent)


def check_free(path: Path) -> None:
    """Raises FileExistsError where a new folder could not be made, since something is there."""
    if path.exists():
        raise FileExistsError(f"{path} is there already")


@contextlib.contextmanager
def blaming(path: Path, temporary: Path | None = None) -> Iterator[None]:
    """Makes an OSError name the file that was wanted, and not a temporary one or, as a full disk does, none.

    Where `temporary` is given, an error that names a file elsewhere goes on naming it.
    """
    try:
        yield
    except OSError as error:
        is_ours = temporary is None or error.filename is None or Path(str(error.filename)).is_relative_to(temporary)
        if error.errno is not None and is_ours:
            error.filename, error.filename2 = str(path), None
        raise


# Temporary names and locks


def _prefix(path: Path) -> str:
    return f".{path.name}."


def is_unfinished(name: str, target: Path) -> bool:
    """Returns whether that is the name of an unfinished `target`."""
    prefix = _prefix(target)
    return name.startswith(prefix) and _RANDOM.fullmatch(name, len(prefix)) is not None


def _clear_abandoned(target: Path) -> None:
    """Takes away unfinished files and folders that were to become `target` and that nobody writes any more."""
    for name in os.listdir(target.parent):
        if _HAS_LOCKS and is_unfinished(name, target):
            path = target.parent / name
            with contextlib.suppress(OSError), locked(path):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()


@contextlib.contextmanager
def locked(path: Path, waits: bool = False) -> Iterator[None]:
    """Keeps a file or folder locked; where another process has locked it, it waits or raises BlockingIOError."""
    if not _HAS_LOCKS:
        yield
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def alone_in(folder: Path, refused: Exception | None = None) -> Iterator[None]:
    """Keeps a folder locked, where its file system can.

    Where another process has locked it, raises `refused`, or waits if there is none.
    """
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(folder, waits=refused is None))
        except BlockingIOError:
            if refused is not None:
                raise refused from None
        except OSError:
            pass  # a file system without locks
        yield


@contextlib.contextmanager
def _held(name: str | Path) -> Iterator[None]:
    """Keeps what was just made locked, where the file system can."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            stack.enter_context(locked(Path(name)))
        yield


def _sync_folder(path: Path) -> None:
    """Makes a renaming in a folder last; a system that cannot sync folders keeps its own promises."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _umask() -> int:
    mask = os.umask(0)  # there is no way to read it but to set it
    os.umask(mask)
    return mask


_UMASK = _umask()
