"""The kernel cache: nothing stale is run, nothing compiles twice, and no fault of a disk reaches a caller.

What concerns the cache alone is tried in a laboratory: a few modules of the package, copied, with a kernel of their
own.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import reversi_env
from reversi_env import Position, Variant, jit, perft, random_games

ROOT = Path(__file__).parents[2]

PROBE = '''
import numpy as np

from reversi_env import jit
from reversi_env.bitboard import nth_bit, square_of
from reversi_env.geometry import Bitboard
from reversi_env.jit import kernel


@kernel
def probe(board: Bitboard, n: int, size: int) -> int:
    return square_of(nth_bit(board, n), size, board)


def report(*higher_words):
    """Returns what the kernel says of a board, and where its machine code came from."""
    return {
        "answer": probe((np.uint64(0b1011 << 8), *higher_words), 2, 6),
        "loaded": sum(probe.stats.cache_hits.values()),
        "compiled": sum(probe.stats.cache_misses.values()),
        "root": str(jit.cache_root()),
    }
'''
ANSWER = 9  # bit 11, the third that is set, is row 1, column 3 of 6×6

REPORT = "import json; from reversi_env import probe; print(json.dumps(probe.report()))"


class Laboratory:
    """A copy of the modules on which the cache rests, with a kernel `probe` that uses them, and a cache."""

    def __init__(self, folder: Path) -> None:
        self.package = folder / "reversi_env"
        self.cache = folder / "cache"
        self.package.mkdir()
        self.cache.mkdir(mode=0o700)
        for name in ("jit", "durable", "spans", "geometry", "vectors", "bitboard"):
            shutil.copy(Path(reversi_env.__file__).with_name(f"{name}.py"), self.package)
        (self.package / "__init__.py").write_text("")
        (self.package / "probe.py").write_text(PROBE)

    def edit(self, name: str, old: str, new: str) -> None:
        source = (self.package / name).read_text()
        assert source.count(old) == 1, f"{name} no longer has one {old!r}"
        (self.package / name).write_text(source.replace(old, new))

    def run(self, code: str, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Runs code in a new process, which must not fail, in the mount namespace that `prefix` prepares."""
        environment = {**os.environ, "REVERSI_CACHE_DIR": str(self.cache), "PYTHONPATH": str(self.package.parent)}
        done = subprocess.run(
            [*prefix, sys.executable, "-c", code],
            env=environment,
            cwd=self.package.parent,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done

    def report(self, prefix: tuple[str, ...] = ()) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.run(REPORT, prefix).stdout)
        return answer


@pytest.fixture
def laboratory(tmp_path: Path) -> Laboratory:
    return Laboratory(tmp_path)


def mounted(script: str, folder: Path) -> tuple[str, ...]:
    """Returns the beginning of a command that runs in a mount namespace of its own, prepared by a shell script.

    Permissions alone would not do: they do not hold for root. Skips where such namespaces are forbidden.
    """
    unshare = ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--map-root-user", "--mount")
    prefix = (*unshare, "sh", "-ec", f'{script}; shift; exec "$@"', "sh", str(folder))
    try:
        subprocess.run([*prefix, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"cannot prepare a file system ({error})")
    return prefix


def read_only(folder: Path) -> tuple[str, ...]:
    return mounted('mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"', folder)


def tiny_disk(folder: Path, taken_kib: int) -> tuple[str, ...]:
    """Mounts a disk of 1 MiB, of which so many KiB are taken."""
    fill = f'{{ head -c {taken_kib}K /dev/zero >"$1/taken" || true; }} 2>/dev/null'
    return mounted(f'mount -t tmpfs -o size=1m,mode=700 tmpfs "$1" && {fill}', folder)


# Imports


@pytest.mark.parametrize("package", ["reversi_env", "agents"])
def test_nothing_compiles_at_import(package: str, tmp_path: Path) -> None:
    code = f"""
from tests.kernel_exercises import kernels
found = kernels({package!r})
assert found
print(*[name for name, kernel in found.items() if kernel.overloads or kernel.stats.cache_hits])
"""
    environment = {**os.environ, "REVERSI_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


# Edits


def test_no_import_of_ours_is_overlooked() -> None:
    for path in ROOT.rglob("*.py"):
        if path.relative_to(ROOT).parts[0] in ("reversi_env", "agents", "experiments"):
            names = set()
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    names.update(alias.name for alias in node.names)
                elif isinstance(node, ast.ImportFrom):
                    assert node.module, f"{path}: a relative import"
                    names.update(f"{node.module}.{alias.name}" for alias in node.names)
                    names.add(node.module)
            files = {ROOT.joinpath(*name.split(".")).with_suffix(".py") for name in names}
            assert {file for file in files if file.is_file()} <= jit._imports(path), path


def test_an_edit_in_a_kernel_an_intrinsic_or_a_constant_of_another_module_is_seen(laboratory: Laboratory) -> None:
    first = laboratory.report()
    assert (first["answer"], first["compiled"], first["loaded"]) == (ANSWER, 1, 0)

    (laboratory.package / "unrelated.py").write_text("")  # no module imports it
    second = laboratory.report()
    assert (second["answer"], second["compiled"], second["loaded"]) == (ANSWER, 0, 1)

    laboratory.edit("bitboard.py", "for _ in range(n):", "for _ in range(n - 1):")
    assert laboratory.report()["answer"] == 7  # the bit before, 9
    laboratory.edit("vectors.py", "builder.cttz(a", "builder.ctlz(a")
    assert laboratory.report()["answer"] == 40  # 52 zeros stand above bit 11: row 6, column 4
    laboratory.edit("geometry.py", "return 8 if words == 1", "return 16 if words == 1")
    assert laboratory.report()["answer"] == 22  # row 3, column 4


def test_a_module_is_keyed_by_all_that_it_imports_through_packages_too() -> None:
    package = Path(reversi_env.__file__).parent
    found = jit._with_imports(package / "position.py")
    assert {package / f"{name}.py" for name in ("position", "rules", "vectors", "geometry", "jit")} <= found
    assert package / "playouts.py" not in found
    assert package / "playouts.py" in jit._with_imports(package / "__init__.py")
    assert package / "__init__.py" in jit._with_imports(ROOT / "agents" / "agent.py")


def test_old_digests_are_pruned_and_others_left_alone(tmp_path: Path) -> None:
    for age in range(6):
        folder = tmp_path / f"search-{age:016x}"
        folder.mkdir()
        os.utime(folder, (1_000_000 - age, 1_000_000 - age))
    others = ["search_tree-0000000000000000", "search-notes", "rules-0000000000000000"]
    for other in others:
        (tmp_path / other).mkdir()
    jit._prune(tmp_path, "search")
    kept = [f"search-{age:016x}" for age in range(jit.KEPT_DIGESTS)]
    assert sorted(folder.name for folder in tmp_path.iterdir()) == sorted(kept + others)


# Where the cache lies


def test_the_cache_lies_where_the_variables_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    root_of: Any = jit._writable_root.__wrapped__  # without its memory
    assert root_of(None, None) == tmp_path / "home" / ".cache" / "reversi-lab"
    assert root_of("", "") == tmp_path / "home" / ".cache" / "reversi-lab"
    assert root_of(None, str(tmp_path / "xdg")) == tmp_path / "xdg" / "reversi-lab"
    assert root_of(str(tmp_path / "chosen"), str(tmp_path / "xdg")) == tmp_path / "chosen"
    assert root_of("nearby", None) == tmp_path / "nearby"  # and stays there when the process goes elsewhere
    assert (tmp_path / "home" / ".cache" / "reversi-lab").stat().st_mode & 0o777 == 0o700


PRIVATE = """
import json, multiprocessing, os, sys
from pathlib import Path
from reversi_env import probe

if __name__ == "__main__":
    own = probe.report()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        spawned = pool.apply(probe.report)
    if os.fork() == 0:
        sys.exit()
    os.wait()
    is_there = Path(own["root"]).is_dir()
    print(json.dumps({"own": own, "spawned": spawned, "is_there": is_there}))
"""


def check_private_folder(laboratory: Laboratory, prefix: tuple[str, ...] = ()) -> None:
    """Checks that a process compiles into a private folder, lends it to those that it spawns, and clears it away."""
    done = laboratory.run(PRIVATE, prefix)
    told = json.loads(done.stdout)
    own, spawned = told["own"], told["spawned"]
    assert own["answer"] == spawned["answer"] == ANSWER
    assert own["root"] == spawned["root"] != str(laboratory.cache)
    assert (own["compiled"], spawned["compiled"], spawned["loaded"]) == (1, 0, 1)
    assert told["is_there"]  # a forked child has ended before
    assert not Path(own["root"]).exists()
    assert done.stderr.count(f"cannot keep compiled code in {laboratory.cache}") == 1
    assert list(laboratory.cache.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_replaced_by_a_private_one(laboratory: Laboratory) -> None:
    check_private_folder(laboratory, read_only(laboratory.cache))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_cache_that_belongs_to_someone_else_is_not_trusted(laboratory: Laboratory) -> None:
    os.chown(laboratory.cache, 54321, -1)
    check_private_folder(laboratory)


@pytest.mark.parametrize("taken_kib", [pytest.param(700, marks=pytest.mark.slow), 960, 1024])
def test_a_full_disk_is_survived(laboratory: Laboratory, taken_kib: int) -> None:
    assert laboratory.report(tiny_disk(laboratory.cache, taken_kib))["answer"] == ANSWER
    assert not list(laboratory.package.rglob("*.nb?"))  # nor was another folder taken, which knows of no digest


# Damage


def test_damaged_files_cost_a_compilation_and_are_mended(laboratory: Laboratory) -> None:
    laboratory.report()
    for pattern, kept in [("probe-*/*/*.nbi", 0.5), ("probe-*/*/*.nbc", 0.5), ("*/*/*.nb?", 0.0)]:
        paths = list(laboratory.cache.glob(pattern))
        assert paths
        for path in paths:
            content = path.read_bytes()
            path.write_bytes(content[: int(kept * len(content))])
        report = laboratory.report()
        assert (report["answer"], report["compiled"]) == (ANSWER, 1)
    report = laboratory.report()
    assert (report["answer"], report["compiled"]) == (ANSWER, 0)


def test_machine_code_of_another_signature_is_not_run(laboratory: Laboratory) -> None:
    both = "from reversi_env.probe import *; print(report()['answer'], report(np.uint64(1))['answer'])"
    expected = laboratory.run(both).stdout
    one, two = sorted(laboratory.cache.glob("probe-*/*/*.nbc"))
    content = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(content)
    done = laboratory.run(both)
    assert done.stdout == expected
    assert "it was compiled for" in done.stderr


def test_processes_that_save_at_one_moment_keep_what_both_compiled(laboratory: Laboratory) -> None:
    slow = """
import time
from numba.core.caching import IndexDataCacheFile as Files
load = Files._load_index
def load_and_wait(files):
    found = load(files)
    if "probe." in files._index_name:
        time.sleep(2)  # in which the other process would write
    return found
Files._load_index = load_and_wait
from reversi_env.probe import *
report({})
"""
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(laboratory.run, (slow.format(""), slow.format("np.uint64(1)"))))
    done = laboratory.run("from reversi_env.probe import *; report(); print(report(np.uint64(1))['compiled'])")
    assert (done.stdout, done.stderr) == ("0\n", "")


# Threads, and functions without a file


def test_threads_that_call_at_once_compile_once_and_agree(laboratory: Laboratory) -> None:
    code = """
import json
from concurrent.futures import ThreadPoolExecutor
from reversi_env import probe
with ThreadPoolExecutor(8) as pool:
    print(json.dumps([future.result() for future in [pool.submit(probe.report) for _ in range(16)]]))
"""
    reports = json.loads(laboratory.run(code).stdout)
    assert all(report["answer"] == ANSWER for report in reports)
    assert reports[-1]["compiled"] == 1


def test_threads_do_not_disturb_each_other() -> None:
    positions = [Position(Variant(size)) for size in (4, 6, 8, 10)] * 4

    def work(position: Position) -> tuple[int, list[int]]:
        return perft(position, 7), random_games(position, 200, seed=3).black_scores.tolist()

    expected = [work(position) for position in positions]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, positions)) == expected


def test_a_function_typed_into_a_session_is_compiled_and_not_kept(laboratory: Laboratory) -> None:
    code = """
from reversi_env.jit import cache_root, kernel
source = "@kernel\\ndef double(x: int) -> int:\\n    return 2 * x\\n"
for name in ("<stdin>", "<ipython-input-1-0123456789ab>"):
    exec(compile(source, name, "exec"))
    assert double(21) == 42
print(*[folder.name for folder in cache_root().iterdir() if not folder.name.startswith(("jit", "bitboard", "probe"))])
"""
    assert laboratory.run(code).stdout.split() == []
