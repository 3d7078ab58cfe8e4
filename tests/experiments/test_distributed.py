"""A learner on two processes: the steps of one, but for batch norms; and a whole run, to its good or bad end."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from agents.networks.residual import ResidualConfig, ResidualNetwork
from agents.runs import CHECKPOINTS
from experiments import cli
from experiments.training.distributed import joined_ranks
from experiments.training.learner import LearnerConfig, ResidualLearner
from experiments.training.replay import Replay, ReplayConfig
from reversi_env import Variant
from tests.experiments.played import samples_of
from tests.experiments.test_reliability import arguments, iterations_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
VARIANT = Variant.named("othello-6x6")
# Not by Adam, which makes a step of any gradient, that of rounding too.
CONFIG = LearnerConfig(batch_size=15, warmup_steps=0, optimizer="sgd", learning_rate=0.05)
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def network_of(has_norms):
    torch.manual_seed(1)
    network = ResidualNetwork(ResidualConfig(8, 1, 4))
    for module in network.modules() if not has_norms else ():
        for name, child in module.named_children():
            if isinstance(child, nn.BatchNorm2d):
                setattr(module, name, nn.Identity())
    return network


def learned(has_norms, ranks=None):
    """A network after three steps, and the numbers that the learner tells."""
    replay = Replay(VARIANT, ReplayConfig())
    replay.add(samples_of(VARIANT, 4, 1)[2])
    learner = ResidualLearner(network_of(has_norms), CONFIG, ranks)
    numbers = learner.learn(replay, 3, 0.0, np.random.default_rng(1), lambda: None)
    return {name: tensor.detach() for name, tensor in learner.network.named_parameters()}, numbers


class Halves:
    """Two ranks in one process, one after the other."""

    def step(self, network, batch, compute):
        shares, sums, told = [], None, []
        for part in (batch.at(slice(0, None, 2)), batch.at(slice(1, None, 2))):
            network.zero_grad()
            told.append(compute(part))
            shares.append(len(part) / len(batch))
            gradients = [shares[-1] * parameter.grad for parameter in network.parameters()]
            sums = gradients if sums is None else [one + other for one, other in zip(sums, gradients, strict=True)]
        for parameter, gradient in zip(network.parameters(), sums, strict=True):
            parameter.grad = gradient
        return {name: sum(share * part[name] for share, part in zip(shares, told, strict=True)) for name in told[0]}


def learn_as_torchrun_says(has_norms, result):
    """What each of two processes does."""
    with joined_ranks(torch.device("cpu")) as ranks:
        if ranks.rank:
            learner = ResidualLearner(network_of(has_norms), CONFIG)
            ranks.follow(learner.network, VARIANT, learner.gradients)
        else:
            parameters, numbers = learned(has_norms, ranks)
            save_file({name: tensor.contiguous() for name, tensor in parameters.items()}, result)
            result.with_suffix(".json").write_text(json.dumps(numbers))


@pytest.mark.parametrize(("has_norms", "as_one"), [(False, None), (True, Halves())])  # norms see half a batch each
def test_two_processes_take_the_steps_of_one(has_norms, as_one, tmp_path):
    result = tmp_path / "weights.safetensors"
    command = [*TORCHRUN, __file__, str(int(has_norms)), str(result)]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    parameters, numbers = learned(has_norms, as_one)
    found, begun = load_file(result), dict(network_of(has_norms).named_parameters())
    for name, parameter in parameters.items():
        assert torch.allclose(found[name], parameter, rtol=0, atol=1e-5), name
    assert max(float((begun[name].detach() - tensor).abs().max()) for name, tensor in found.items()) > 1e-3
    assert json.loads(result.with_suffix(".json").read_text()) == pytest.approx(numbers, rel=1e-4)


def torchrun(*overrides, folder):
    command = [*TORCHRUN, "-m", "reversi_lab", *arguments(*overrides, folder=folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_a_run_on_two_processes_ends_well_and_goes_on_with_one(tmp_path):
    done = torchrun("schedule.num_iterations=2", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("checkpoint: ") == 1
    assert "Traceback" not in done.stderr
    assert iterations_of(tmp_path / "run") == [1, 2, 2]
    assert cli.main(["train", f"resume={tmp_path}/run", "schedule.num_iterations=3"]) == cli.DONE


def test_a_failure_ends_both_with_one_sentence(tmp_path):
    began = time.monotonic()
    done = torchrun("schedule.num_iterations=9", "learner.margin_weight=1e38", folder=tmp_path)
    assert time.monotonic() - began < 200
    assert done.returncode == 1
    assert len(re.findall(r"^reversi: the .* is .* try a lower learner.learning_rate$", done.stderr, re.MULTILINE)) == 1
    assert not (tmp_path / "run" / CHECKPOINTS).exists()
    done = torchrun("learner.batch_size=3", folder=tmp_path)
    assert done.returncode == 1
    assert "reversi: learner.batch_size must be at least 2 for each of 2 ranks, got 3" in done.stderr


if __name__ == "__main__":
    learn_as_torchrun_says(sys.argv[1] == "1", Path(sys.argv[2]))
