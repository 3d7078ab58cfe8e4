"""What happens to a run that is killed, starved, or run twice: it goes on, to the very weights of an unbroken one."""

import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from agents.checkpoint import read_checkpoint
from agents.runs import CHECKPOINTS, find_checkpoint
from experiments import cli
from tests.experiments.forks import Fork
from tests.experiments.small_runs import SMALL

ROOT = Path(__file__).parents[2]
TINY = [
    *SMALL,
    "self_play.games_at_once=3",
    "evaluation.opponents=[random]",
    "evaluation.every=4",
    "evaluation.num_games=2",
    "evaluation.final_num_games=4",
]


def arguments(*overrides, folder, name="run", actors="thread"):
    return ["train", *TINY, f"actors={actors}", f"runs={folder}", f"name={name}", *overrides]


def start(command, **options):
    """A process group of its own, its progress to be read line by line."""
    return subprocess.Popen(
        [sys.executable, "-m", "reversi_lab", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
        **options,
    )


def tensors_of(run):
    """All that a run is at its end: what plays, what learns, what the next rounds are played with."""
    checkpoint = read_checkpoint(find_checkpoint(run), with_trainer=True)
    return checkpoint.network.state_dict() | checkpoint.trainer_tensors


def assert_equal(one, two):
    assert one.keys() == two.keys()
    assert [name for name in one if not torch.equal(one[name], two[name])] == []


def iterations_of(run):
    return [json.loads(line)["iteration"] for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_a_run_that_goes_on_from_any_checkpoint_ends_as_an_unbroken_one(tmp_path):
    num_iterations = 5
    overrides = [
        f"schedule.num_iterations={num_iterations}",
        "schedule.kept_checkpoints=100",
        "evaluation.opponents=[]",
    ]
    assert cli.main(arguments(*overrides, folder=tmp_path, name="whole")) == cli.DONE
    whole = tmp_path / "whole"
    for done in range(num_iterations):
        broken = tmp_path / f"after-{done}"
        shutil.copytree(whole, broken)
        for checkpoint in (broken / CHECKPOINTS).iterdir():
            if int(checkpoint.name) > done:
                shutil.rmtree(checkpoint)  # as if it had been killed before it was written
        assert cli.main(["train", f"resume={broken}"]) == cli.DONE
        assert_equal(tensors_of(whole), tensors_of(broken))
        assert iterations_of(broken) == [1, 2, 3, 4, 5, 5]


def test_processes_and_threads_train_the_same_network(tmp_path):
    overrides = ["schedule.num_iterations=3", "evaluation.opponents=[]"]
    for actors in ("local", "thread"):
        assert cli.main(arguments(*overrides, folder=tmp_path, name=actors, actors=actors)) == cli.DONE
    assert_equal(tensors_of(tmp_path / "local"), tensors_of(tmp_path / "thread"))


def test_a_run_that_ended_before_its_first_checkpoint_begins_anew(tmp_path, capsys):
    process = start(arguments("schedule.num_iterations=2", folder=tmp_path))
    while not (tmp_path / "run" / "config.yaml").exists():
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert not (tmp_path / "run" / CHECKPOINTS).exists()
    assert cli.main(["train", f"resume={tmp_path}/run"]) == cli.DONE
    assert f"{tmp_path}/run has no checkpoint yet; beginning anew" in capsys.readouterr().err
    assert iterations_of(tmp_path / "run") == [1, 2, 2]


def test_a_second_process_is_refused(tmp_path, capsys):
    process = start(arguments("schedule.num_iterations=100000", folder=tmp_path))
    for line in process.stderr:
        if line.startswith("iteration 1 "):
            break
    assert cli.main(["train", f"resume={tmp_path}/run"]) == cli.FAILED
    printed = capsys.readouterr().err
    assert printed == f"reversi: another process is training in {tmp_path}/run; end it first, or leave it to it\n"
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert cli.main(["train", f"resume={tmp_path}/run", "schedule.num_iterations=1"]) == cli.DONE


@pytest.mark.parametrize("delay_s", [0, 0.1, 0.3, 0.6, 1, 1.5, 2, 3])
def test_ctrl_c_before_anything_has_begun_shows_no_traceback(delay_s, tmp_path):
    process = start(arguments("schedule.num_iterations=100000", folder=tmp_path, actors="local"))
    while "numpy" not in Path(f"/proc/{process.pid}/maps").read_text():  # until then Python begins, and not we
        time.sleep(0.01)
    time.sleep(delay_s)
    os.killpg(process.pid, signal.SIGINT)
    printed, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors
    assert process.returncode in (cli.INTERRUPTED, -signal.SIGINT)
    assert printed == ""


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, resource.RLIM_INFINITY))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that writing fails, as on a full disk


def test_a_file_that_cannot_be_written_is_said_in_a_sentence_and_keeps_the_last_checkpoint(tmp_path):
    whole = arguments("schedule.num_iterations=1", folder=tmp_path)
    assert cli.main(whole) == cli.DONE
    process = start(["train", f"resume={tmp_path}/run", "schedule.num_iterations=1000"], preexec_fn=limit_files)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == cli.FAILED
    assert re.search(rf"^reversi: {tmp_path}/run/.*: File too large", errors, re.MULTILINE), errors
    assert "Traceback" not in errors
    kept = find_checkpoint(tmp_path / "run")
    assert read_checkpoint(kept, with_trainer=True).trainer_counters["iteration"] == int(kept.name)
    assert cli.main(["train", f"resume={tmp_path}/run", f"schedule.num_iterations={int(kept.name) + 1}"]) == cli.DONE


def test_actors_that_die_again_and_again_keep_the_last_checkpoint(tmp_path, monkeypatch, capsys):
    assert cli.main(arguments("schedule.num_iterations=2", folder=tmp_path)) == cli.DONE
    resumed = ["train", f"resume={tmp_path}/run", "schedule.num_iterations=3"]
    with monkeypatch.context() as patched:
        patched.setattr("experiments.training.actors.work", die)
        assert cli.main([*resumed, "actors.kind=local", "actors.num_actors=1"]) == cli.FAILED
    errors = capsys.readouterr().err
    assert "3 actors died one after the other over the same games; the last ended with exit code 9" in errors
    assert f"go on with: reversi train resume={tmp_path}/run" in errors
    assert find_checkpoint(tmp_path / "run").name == "000002"
    assert cli.main([*resumed, "actors.kind=thread"]) == cli.DONE


def die(connection, terms):
    os._exit(9)


@pytest.mark.slow
def test_a_run_that_is_killed_at_twenty_moments_ends_as_an_unbroken_one(tmp_path):
    overrides = ["schedule.num_iterations=80", "evaluation.every=10"]
    assert cli.main(arguments(*overrides, folder=tmp_path, name="whole")) == cli.DONE
    rng = random.Random(1)
    run = tmp_path / "run"
    for kill in range(20):
        actors = "thread" if kill % 3 else "local"  # processes take longer to begin
        if run.exists():
            command = ["train", f"resume={run}", f"actors.kind={actors}"]
        else:
            command = arguments(*overrides, folder=tmp_path, actors=actors)
        lines = []
        with Fork(command, tmp_path) as fork:
            if kill % 4:  # while it trains
                for line in fork.errors:
                    lines.append(line)
                    if line.startswith("iteration "):
                        break
                time.sleep(rng.uniform(0, 0.5))
            else:  # or while it begins
                time.sleep(rng.uniform(0, 3))
            fork.kill()
            lines += fork.errors
        told = [int(found[1]) for line in lines if (found := re.match(r"iteration (\d+) of", line))]
        assert "Traceback" not in "".join(lines)
        assert "damaged" not in "".join(lines)
        if told:
            assert told[-1] <= int(find_checkpoint(run).name) <= told[-1] + 1
    assert cli.main(["train", f"resume={run}"]) == cli.DONE
    assert_equal(tensors_of(tmp_path / "whole"), tensors_of(run))
    assert iterations_of(run) == [*range(1, 81), 80]
    unfinished = [path for path in run.rglob("*") if path.name.startswith(".") or path.name.endswith(".tmp")]
    assert unfinished == []
    assert sorted(path.name for path in (run / CHECKPOINTS).iterdir()) == ["000079", "000080"]
