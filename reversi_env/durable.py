"""Writing files so that a crash, a full disk or a killed process leaves the old file or the new one, never a half."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


def write_file(path: Path, content: bytes | str) -> None:
    """Writes a file whole: under a temporary name beside it, synced to disk, then renamed over the old one."""
    with new_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Gives a file to fill, under a temporary name beside `path`, which becomes `path` when the block ends well.

    Nothing is left behind, and the old file stays as it was, when the block raises.
    """
    with blaming(path):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=temporary_prefix(path))
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_UMASK)
        os.replace(name, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(name)
        if isinstance(error, OSError) and error.filename in (None, name):  # and not that of a file read in the block
            with blaming(path):
                raise
        raise
    _sync_folder(path.parent)


def temporary_prefix(path: Path) -> str:
    """Returns how the names of unfinished files begin that a killed process may have left beside `path`."""
    return f".{path.name}."


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Gives a temporary folder to fill; when the block ends well its files are synced and it becomes `path`.

    Raises FileExistsError where `path` is there already; nothing is left behind when the block raises.
    """
    if path.exists():
        raise FileExistsError(f"{path} is there already")
    with blaming(path), _temporary_folder(path) as temporary:
        yield temporary
        for file in temporary.iterdir():
            os.chmod(file, 0o666 & ~_UMASK)  # whatever wrote it may have kept it to itself
            with open(file, "rb") as opened:
                os.fsync(opened.fileno())
        os.chmod(temporary, 0o777 & ~_UMASK)
        _sync_folder(temporary)
        os.rename(temporary, path)
    _sync_folder(path.parent)


@contextlib.contextmanager
def _temporary_folder(path: Path) -> Iterator[Path]:
    """Gives a folder beside `path`, which is taken away when the block raises."""
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=temporary_prefix(path)))
    try:
        yield temporary
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


@contextlib.contextmanager
def blaming(path: Path) -> Iterator[None]:
    """Makes an OSError name the file that was wanted, and not a temporary one or, as a full disk does, none."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            error.filename, error.filename2 = str(path), None
        raise


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
