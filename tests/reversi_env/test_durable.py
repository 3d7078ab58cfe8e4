"""Durable files: what stays when writing fails, what a killed process leaves, and whom an error blames."""

import errno
import multiprocessing
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from reversi_env.durable import locked, new_file, new_folder, write_file

MODE = 0o666 & ~(umask := os.umask(0))
os.umask(umask)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_has_the_mode_of_any_new_file_and_keeps_that_of_an_old_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_file(path, "new")
    assert mode_of(path) == MODE
    path.chmod(0o604)
    write_file(path, "newer")
    assert (mode_of(path), path.read_text()) == (0o604, "newer")


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "file")
    for content in ("new", "newer"):
        write_file(tmp_path / "link", content)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "there" / "file").read_text() == content
    assert len(os.listdir(tmp_path)) + len(os.listdir(tmp_path / "there")) == 3


def no_space(filename: str | None = None) -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), filename)


def fill_file(path: Path, error: BaseException) -> None:
    with new_file(path):
        raise error


def fill_folder(path: Path, error: BaseException) -> None:
    with new_folder(path) as temporary:
        if isinstance(error, OSError) and error.filename == "own":
            error.filename = str(temporary / "own")
        raise error


@pytest.mark.parametrize("fill", [fill_file, fill_folder])
def test_an_error_names_what_was_wanted_unless_it_is_of_another_file(
    tmp_path: Path, fill: Callable[[Path, BaseException], None]
) -> None:
    with pytest.raises(OSError, match="No space left") as raised:
        fill(tmp_path / "new", no_space())
    assert raised.value.filename == str(tmp_path / "new")
    with pytest.raises(OSError, match="No space left") as raised:
        fill(tmp_path / "new", no_space(str(tmp_path / "other")))
    assert raised.value.filename == str(tmp_path / "other")
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "new", KeyboardInterrupt())
    assert not list(tmp_path.iterdir())


def test_an_error_within_a_temporary_folder_names_the_folder_that_was_wanted(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left") as raised:
        fill_folder(tmp_path / "new", no_space("own"))
    assert raised.value.filename == str(tmp_path / "new")
    with pytest.raises(FileNotFoundError) as missing:
        write_file(tmp_path / "none" / "file", "")
    assert missing.value.filename == str(tmp_path / "none" / "file")


def die_while_writing(path: Path) -> None:
    with new_file(path), new_folder(path.with_name("folder")) as temporary:
        (temporary / "part").write_text("half")
        os._exit(9)


def test_what_a_killed_process_left_goes_with_the_next_writing_and_nothing_else(tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=die_while_writing, args=(tmp_path / "file",))
    process.start()
    process.join()
    assert process.exitcode == 9
    for name in (".file.swp", ".file.x1y2z3_4", ".file.x1y2z3_4.tmp.swp", ".file.json.x1y2z3_4.tmp"):
        (tmp_path / name).write_text("an editor's")
    assert len(list(tmp_path.iterdir())) == 6
    write_file(tmp_path / "file", "new")
    with new_folder(tmp_path / "folder"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".file.json.x1y2z3_4.tmp",
        ".file.swp",
        ".file.x1y2z3_4",
        ".file.x1y2z3_4.tmp.swp",
        "file",
        "folder",
    ]


def test_names_of_temporary_files_are_as_they_are_looked_for(tmp_path: Path) -> None:
    with new_file(tmp_path / "file"):
        (name,) = os.listdir(tmp_path)
    assert len(name) == len(".file.") + len(next(tempfile._RandomNameSequence())) + len(".tmp")  # type: ignore[attr-defined]


def test_two_who_write_one_file_do_not_take_each_other_s(tmp_path: Path) -> None:
    with new_file(tmp_path / "file") as first, new_file(tmp_path / "file") as second:
        first.write(b"first")
        second.write(b"second")
    assert (tmp_path / "file").read_bytes() == b"first"  # the last to end
    with locked(tmp_path), pytest.raises(BlockingIOError), locked(tmp_path):
        pass


def test_a_folder_that_is_there_stays(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError, match="is there already"), new_folder(tmp_path):
        raise AssertionError("the block was entered")
    with pytest.raises(IsADirectoryError) as raised:
        write_file(tmp_path, "")
    assert raised.value.filename == str(tmp_path)
