"""What saved folders share: a manifest that tells each file's SHA-256, read as data that anybody may have written."""

import contextlib
import hashlib
import json
import stat
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from io import BufferedReader
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"

_LARGEST_TEXT = 1 << 20  # bytes of a JSON or YAML file


class CheckpointError(ValueError):
    """A checkpoint that is not there, damaged, or not to be used; the sentence says which file and why."""


def read_manifest(folder: Path, what: str, format_version: int) -> dict[str, Any]:
    """Returns the manifest of a folder that holds `what` ("a checkpoint"), of this format version or an older one.

    Raises CheckpointError where it is missing or something else; what it tells is otherwise unchecked.
    """
    path = folder / MANIFEST
    manifest = read_json(path)
    found = manifest.get("format_version")
    if type(found) is not int or found < 1:
        raise CheckpointError(f"{path} is not the manifest of {what}: it has no format_version")
    if found > format_version:
        raise CheckpointError(
            f"{folder} has format version {found}, and this version of reversi-lab reads up to {format_version}; "
            "a newer reversi-lab wrote it, and reads it"
        )
    return manifest


def read_text(path: Path) -> str:
    """Returns a file's text; raises CheckpointError for one that is missing, too large, or no text."""
    try:
        return read_bytes(path, _LARGEST_TEXT).decode()
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from None


def read_json(path: Path) -> dict[str, Any]:
    """Returns a file's JSON object; raises CheckpointError for any other file."""
    text = read_text(path)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} holds no JSON object")
    return content


def read_bytes(path: Path, most: int) -> bytes:
    """Returns a file's content; raises CheckpointError for one that is missing or has more than so many bytes."""
    with _opened(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise CheckpointError(f"{path} has more than {most} bytes, more than any such file needs")
    return content


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    """Gives a file to read; raises CheckpointError for what is none, such as a pipe, from which reading never ends."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise CheckpointError(f"{path} is no file")
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from None


def check_digest(path: Path, content: bytes, digest: object) -> None:
    """Raises CheckpointError for content other than that of which a manifest tells the SHA-256."""
    _compare(path, digest_of(content), digest)


def check_file(path: Path, digest: object) -> None:
    """Raises CheckpointError for a file other than the one of that SHA-256, which a manifest tells."""
    _compare(path, file_digest(path), digest)


def _compare(path: Path, found: str, digest: object) -> None:
    if found != digest:
        raise CheckpointError(
            f"{path} is not the file that was saved: it was cut short or edited (its SHA-256 differs)"
        )


def file_digest(path: Path) -> str:
    """Returns a file's SHA-256 in hexadecimal digits; raises CheckpointError where it cannot be read."""
    with _opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(content: bytes) -> str:
    """Returns the SHA-256 in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def versions_of(*distributions: str) -> dict[str, str | None]:
    """Returns the version of each distribution that is installed, None for one that is not."""
    return {name: _version(name) for name in distributions}


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
