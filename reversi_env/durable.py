"""Writing files so that a crash, a full disk or a killed process leaves the old file or the new one, never a half."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


def write_file(path: Path, content: bytes | str) -> None:
    """Writes a file whole: under a temporary name beside it, synced to disk, then renamed over the old one."""
    with blaming(path):
        _write_file(path, content.encode() if isinstance(content, str) else content)


def _write_file(path: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_UMASK)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    _sync_folder(path.parent)


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
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
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
