"""What the README prints runs as printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.evaluation import CLASSIC_OPPONENTS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
BOT = next(block for block in BLOCKS if block.startswith("# my_bot.py"))


@pytest.mark.parametrize("block", [block for block in BLOCKS if block is not BOT], ids=lambda block: block.split()[1])
def test_a_block_of_python_runs_as_printed(block: str, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", block]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_bot_plays_as_printed(tmp_path: Path) -> None:
    (tmp_path / "my_bot.py").write_text(BOT)
    command = [sys.executable, "-m", "reversi_lab", "evaluate", f"{tmp_path}/my_bot.py:Bot", "random", "--games", "10"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^random +10 ", done.stdout, flags=re.MULTILINE)


def test_the_opponents_of_the_printed_training_are_those_of_the_configuration() -> None:
    printed = README.split("$ make train")[1].split("$ ")[0]
    rows = re.findall(r"^(\S+) +200 ", printed, flags=re.MULTILINE)
    assert tuple(rows) == CLASSIC_OPPONENTS


def test_every_file_and_room_that_is_named_is_there() -> None:
    for name in re.findall(r"^    (\w+/) ", README, flags=re.MULTILINE):
        assert (ROOT / name).is_dir(), name
    for link in re.findall(r'\]\(([^)#:]+)\)|src="([^"]+)"', README):
        assert (ROOT / (link[0] or link[1])).exists(), link
