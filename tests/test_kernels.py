"""Every kernel of all packages, compiled and loaded again: what holds of all of them, and of their folders on disk."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
NOTICE = "compiling the kernels, once on this machine"


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Exercises all kernels twice over one fresh cache, each time in new processes, one for each width of boards.

    Where REVERSI_CACHE_DIR names one without machine code it is that, so that other tests need not compile again.
    """
    cache = Path(os.environ.get("REVERSI_CACHE_DIR") or tmp_path_factory.mktemp("cache"))
    if any(cache.rglob("*.nbc")):
        cache = tmp_path_factory.mktemp("cache")

    def exercised(words: int) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "tests.kernel_exercises", str(words), "reversi_env", "agents", "experiments"],
            env={**os.environ, "REVERSI_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=900,
        )

    runs = []
    for _ in range(2):
        with ThreadPoolExecutor(2) as pool:
            both = list(pool.map(exercised, (1, 2)))
        for done in both:
            assert done.returncode == 0, f"exit status {done.returncode} (-11 is a crash)\n{done.stderr}"
        one, two = (json.loads(done.stdout) for done in both)
        runs.append(
            {
                "results": [one["results"], two["results"]],
                "kernels": [*one["kernels"].items(), *two["kernels"].items()],
                "stderr": [done.stderr for done in both],
                "cache": cache,
            }
        )
    return runs


def test_every_kernel_is_exercised(two_runs: list[dict[str, Any]]) -> None:
    kernels = two_runs[0]["kernels"]
    reached = {name for name, state in kernels if state["compiled"] or state["loaded"]}
    assert len(reached) > 10
    assert {name for name, _ in kernels} == reached, "tests/kernel_exercises.py needs an exercise that reaches these"


def test_kernels_loaded_from_the_cache_do_what_compiled_ones_did(two_runs: list[dict[str, Any]]) -> None:
    cold, warm = two_runs
    assert warm["results"] == cold["results"]
    assert sum(state["loaded"] for _, state in warm["kernels"]) > 0


def test_a_second_process_compiles_nothing(two_runs: list[dict[str, Any]]) -> None:
    again = [name for name, state in two_runs[1]["kernels"] if state["compiled"]]
    assert not again


def test_the_cache_of_each_module_lies_in_a_folder_of_its_digest(two_runs: list[dict[str, Any]]) -> None:
    for name, state in two_runs[0]["kernels"]:
        folder = Path(state["folder"])
        assert folder.parent.parent == two_runs[0]["cache"]
        stem, _, digest = folder.parent.name.rpartition("-")
        assert stem == name.split(".")[-2]
        assert len(digest) == 16


def test_compiling_is_announced_once_and_loading_is_silent(two_runs: list[dict[str, Any]]) -> None:
    cold, warm = two_runs
    assert [stderr.count(NOTICE) for stderr in cold["stderr"]] == [1, 1]
    assert all(NOTICE not in stderr for stderr in warm["stderr"])
