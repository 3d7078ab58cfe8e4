"""Sweeps: a run for each combination, in a folder of its own, and failures told."""

import json
import re
import signal
import time

import pytest

from agents.runs import find_checkpoint
from experiments import cli
from tests.experiments.test_reliability import TINY, arguments, start

QUICK = ["schedule.num_iterations=1", "evaluation.opponents=[]", "actors=thread"]


def sweep(*overrides, folder):
    return cli.main(["train", "--multirun", *TINY, *QUICK, f"runs={folder}", *overrides])


@pytest.mark.slow
def test_each_combination_is_a_run_of_its_own_and_one_that_fails_is_told(tmp_path, capfd):
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    launcher = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    assert sweep("seed=3", "learner.margin_weight=1,1e+38", "name=both", *launcher, folder=tmp_path) == cli.FAILED
    printed = capfd.readouterr()
    good, bad = (
        tmp_path / "both" / f"{number:03}-learner.margin_weight-1{end}" for number, end in ((0, ""), (1, "e+38"))
    )
    told = [line for line in printed.out.splitlines() if line.startswith(f"{tmp_path}/both")]
    assert told == [f"{good}: done", f"{bad}: failed with exit code 1"]
    assert re.search(r"^reversi: the .* is .*; try a lower learner.learning_rate$", printed.err, re.MULTILINE)
    assert "Traceback" not in printed.err
    assert not bad.exists()
    written = (good / "config.yaml").read_text()
    assert "\nseed: 3\n" in written
    assert "margin_weight: 1.0" in written
    assert json.loads((good / "metrics.jsonl").read_text().splitlines()[0])["iteration"] == 1


@pytest.mark.slow
def test_a_sweep_without_a_launcher_runs_one_after_the_other(tmp_path, capfd):
    assert sweep("seed=3,4", folder=tmp_path) == cli.DONE
    (folder,) = tmp_path.iterdir()
    assert folder.name.startswith("sweep-")
    seeds = [(run / "config.yaml").read_text().partition("\nseed: ")[2][0] for run in sorted(folder.glob("0*"))]
    assert seeds == ["3", "4"]
    assert capfd.readouterr().out.count(": done\n") == 2


@pytest.mark.slow
@pytest.mark.parametrize(("number", "launcher"), [(signal.SIGTERM, "basic"), (signal.SIGINT, "joblib")])
def test_a_sweep_that_is_stopped_has_its_runs_leave_a_checkpoint(number, launcher, tmp_path):
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    command = [*arguments("schedule.num_iterations=100000", "evaluation.opponents=[]", folder=tmp_path, name="both")]
    command += ["--multirun", "seed=1,2", f"hydra/launcher={launcher}"]
    process = start(command)
    first = tmp_path / "both" / "000-seed-1"
    while not (first / "metrics.jsonl").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    printed, errors = process.communicate(timeout=120)
    assert process.returncode == cli.INTERRUPTED, errors
    assert printed.count(": interrupted\n") == 2
    assert f"go on with: reversi train resume={first}" in errors
    assert "Traceback" not in errors
    assert find_checkpoint(first)
    left = {path.name for path in (tmp_path / "both").iterdir()}
    assert left <= {"multirun.yaml", "000-seed-1", "001-seed-2"}  # Hydra's own, and the second where it had begun


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["sed=1,2"], "unknown key 'sed'; did you mean seed"),
        (["network=small,medum"], "unknown choice of network 'medum'; did you mean medium"),
        (["resume=runs/x", "seed=1,2"], "a sweep begins new runs"),
        (["seed=1,2", "hydra/launcher=jobs"], "hydra/launcher"),
        (["seed=1,2", "--config"], "leave out --multirun"),
        (["name=one,two"], "a sweep has one folder, and names its runs itself"),
    ],
)
def test_what_no_sweep_can_be_is_said_in_a_sentence(overrides, sentence, tmp_path, capsys):
    assert sweep(*overrides, folder=tmp_path) == cli.WRONG_USAGE
    errors = capsys.readouterr().err
    assert sentence in errors
    assert errors.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_many_values_without_a_sweep_are_told_how(tmp_path, capsys):
    assert cli.main(["train", f"runs={tmp_path}", "seed=1,2"]) == cli.WRONG_USAGE
    assert "reversi train --multirun seed=1,2" in capsys.readouterr().err
