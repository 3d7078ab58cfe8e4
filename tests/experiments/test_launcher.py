"""The front door: packages of the same names that are not ours are noticed before anything is imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = ("agents", "configs", "experiments", "reversi_env")


def start(front_door: Path, *path: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))}
    command = [sys.executable, "-P", "-S", str(front_door), "--version"]  # -S: as if nothing were installed
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def test_it_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "reversi_lab", "--version"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert done.stdout.startswith("reversi-lab ")


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("kind", ["package", "folder", "module"])
def test_a_package_of_another_distribution_is_named(name: str, kind: str, tmp_path: Path) -> None:
    other = tmp_path / (f"{name}.py" if kind == "module" else name)
    if kind == "module":
        other.touch()
    else:
        other.mkdir()
    if kind == "package":
        (other / "__init__.py").touch()
    shadowed = kind != "folder" or not (ROOT / name / "__init__.py").exists()  # a regular package wins over a folder
    done = start(ROOT / "reversi_lab.py", tmp_path, ROOT)
    if not shadowed:
        assert done.returncode == 0
        return
    assert done.returncode == 1
    assert f"the package {name!r} is {other}, not {ROOT / name}" in done.stderr
    assert "virtual environment of its own: python3 -m venv .venv" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    front_door = tmp_path / "reversi_lab.py"
    front_door.write_bytes((ROOT / "reversi_lab.py").read_bytes())
    done = start(front_door)
    assert done.returncode == 1
    assert "the package 'agents' is missing" in done.stderr


def test_the_front_door_is_plain_python() -> None:
    code = "import sys; import reversi_lab; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert not loaded & {"numpy", "numba", "torch", "hydra", *OURS}
