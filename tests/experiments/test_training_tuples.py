"""Whole small runs with `network=ntuple`: what such a run leaves, where it goes on, what it refuses."""

import re

import numpy as np
import pytest

import agents
from agents.checkpoint import read_checkpoint
from agents.mcts import MCTSAgent
from agents.ntuple.network import TupleNetwork
from agents.runs import CHECKPOINTS
from experiments import cli
from experiments.training.alphazero import SelfPlayCounters
from experiments.training.config import ScheduleConfig
from experiments.training.trainer import forecast
from reversi_env import Position, Variant
from tests.experiments.small_runs import metrics_of

TINY = [
    "network=ntuple",
    "variant=othello-4x4",
    "search.num_simulations=4",
    "schedule.num_iterations=3",
    "schedule.games_per_iteration=20",
    "actors=thread",
    "actors.num_actors=2",
    "self_play.exact_empties=4",
    "tuples.batch_size=64",
    "evaluation.search.num_simulations=4",
    "evaluation.opponents=[random]",
    "evaluation.every=0",
    "evaluation.final_num_games=4",
]


def train(*overrides, folder):
    return cli.main(["train", *TINY, f"runs={folder}", *overrides])


def networks_of(run):
    return [read_checkpoint(folder).network for folder in sorted((run / CHECKPOINTS).iterdir())]


def same(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in vars(one))


def test_processes_and_threads_learn_the_same_n_tuples(tmp_path):
    for actors in ("local", "thread"):
        overrides = [f"name={actors}", f"actors.kind={actors}", "evaluation.opponents=[]"]
        assert train(*overrides, folder=tmp_path) == cli.DONE
    one, other = (networks_of(tmp_path / actors)[-1] for actors in ("local", "thread"))
    assert same(one, other)


def test_a_run_that_the_solver_plays_says_so(tmp_path, capsys):
    overrides = ["schedule.num_iterations=1", "schedule.games_per_iteration=2", "evaluation.opponents=[]"]
    assert train(*overrides, "name=solved", "self_play.exact_empties=12", folder=tmp_path) == cli.DONE
    assert (
        "nothing is searched: from 12 empty squares on (self_play.exact_empties) the solver plays"
        in capsys.readouterr().err
    )
    assert train(*overrides, "name=searched", "self_play.exact_empties=11", folder=tmp_path) == cli.DONE
    assert "nothing is searched" not in capsys.readouterr().err


def test_answers_are_remembered_where_that_is_asked_for(tmp_path):
    hits = {}
    for name, entries in (("none", "null"), ("some", "1024")):
        overrides = [f"name={name}", f"actors.cache_entries={entries}", "schedule.num_iterations=1"]
        assert train(*overrides, "evaluation.opponents=[]", folder=tmp_path) == cli.DONE
        hits[name] = metrics_of(tmp_path / name)[0]["self_play/cache_hits"]
    assert hits["none"] == 0 < hits["some"]


def test_a_run_leaves_n_tuples_that_play_and_goes_on_as_if_it_had_not_ended(tmp_path, capsys):
    assert train("name=whole", folder=tmp_path) == cli.DONE
    assert "policy and value by n-tuples" in capsys.readouterr().err
    *_, last = networks_of(tmp_path / "whole")
    assert isinstance(last, TupleNetwork)
    assert last.size == 4
    assert np.count_nonzero(last.weights) > 100
    agent = agents.load(tmp_path / "whole")
    assert isinstance(agent, MCTSAgent)
    start = Position(Variant(4))
    assert agent.select(start, np.random.default_rng(1)).move in start.legal_moves
    config = (tmp_path / "whole" / "config.yaml").read_text()
    assert "kind: ntuple" in config
    assert "num_channels" not in config
    assert "\nlearner:" not in config
    line = metrics_of(tmp_path / "whole")[2]
    assert {"train/policy_loss", "train/margin_error", "train/learning_rate", "self_play/cache_hits"} <= line.keys()
    shares = [line[f"time/{part}_share"] for part in ("network", "solver", "tree", "learner")]
    assert min(shares) > 0
    assert sum(shares) == pytest.approx(1)

    assert train("name=parts", "schedule.num_iterations=2", folder=tmp_path) == cli.DONE
    assert cli.main(["train", f"resume={tmp_path}/parts", "schedule.num_iterations=3"]) == cli.DONE
    # The rate follows the length of the run, so the same games give the same n-tuples only where that is the same too.
    assert not same(networks_of(tmp_path / "parts")[-1], last)
    for left in sorted((tmp_path / "whole" / CHECKPOINTS).iterdir())[1:]:
        left.rename(tmp_path / f"away-{left.name}")  # as if the run had died before
    assert cli.main(["train", f"resume={tmp_path}/whole"]) == cli.DONE
    assert same(networks_of(tmp_path / "whole")[-1], last)


def test_a_run_with_a_duration_foretells_its_end(tmp_path, capsys):
    endless = ["schedule.num_iterations=1000000", "schedule.duration_s=3", "evaluation.opponents=[]"]
    assert train("name=run", *endless, folder=tmp_path) == cli.DONE
    *_, last, _ = metrics_of(tmp_path / "run")
    foretold = re.findall(
        r"a tenth of the time is over; .* ([\d,]+) iterations, ([\d,]+) games", capsys.readouterr().err
    )
    assert len(foretold) == 1
    iterations, games = (int(number.replace(",", "")) for number in foretold[0])
    assert games / iterations == pytest.approx(20, rel=0.1)  # of an iteration
    assert 0.1 < iterations / last["iteration"] < 10
    counters = SelfPlayCounters(iteration=3, elapsed_s=30.0, num_games=60, num_positions=1000, num_steps=7)
    assert forecast(counters, ScheduleConfig(num_iterations=1000, duration_s=300.0)) == {
        "iterations": 30,
        "games": 600,
        "positions": 10000,
        "steps": 70,
    }
    assert forecast(counters, ScheduleConfig(num_iterations=6, duration_s=300.0))["games"] == 120


def test_a_run_may_begin_with_the_n_tuples_of_another(tmp_path, capsys):
    assert train("name=first", folder=tmp_path) == cli.DONE
    assert train("name=second", f"init_from={tmp_path}/first", "schedule.num_iterations=1", folder=tmp_path) == cli.DONE
    (first, second) = (networks_of(tmp_path / name)[-1] for name in ("first", "second"))
    assert np.count_nonzero(second.weights) > np.count_nonzero(first.weights)
    for overrides, sentence in (
        (["variant=othello-6x6"], f"the n-tuples of init_from={tmp_path}/first are of 4×4, and fit no other board"),
        (["variant.goal=fewest"], "first was trained to win with the most discs, and the run's variant is won with"),
        (
            ["init_from=zero-6x6"],
            "init_from=zero-6x6 holds a ResidualNetwork, network.kind=ntuple is a TupleNetwork; say experiment=quick",
        ),
    ):
        capsys.readouterr()
        assert train("name=refused", f"init_from={tmp_path}/first", *overrides, folder=tmp_path) == cli.FAILED
        errors = capsys.readouterr().err
        assert sentence in errors
        assert errors.count("\n") == 1
        assert not (tmp_path / "refused").exists()
    capsys.readouterr()
    assert cli.main(["train", f"resume={tmp_path}/first", "network.kind=residual"]) == cli.FAILED
    assert (
        "the checkpoint holds a TupleNetwork, the configuration asks for a ResidualNetwork" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("network.num_blocks=3", "network=ntuple has no use for network.num_blocks"),
        ("learner.batch_size=64", "network=ntuple has no use for learner.batch_size"),
        ("learner=sgd", "network=ntuple has no use for learner"),
        ("actors.inference.backend=onnx", "network=ntuple has no use for actors.inference.backend"),
        ("tuples.batch_size=0", "batch_size must be from 1 to"),
        ("algorithm=maskable_ppo", "is for algorithm=alphazero, not maskable_ppo"),
        ("network=medium", "network=residual has no use for tuples.batch_size"),
    ],
)
def test_what_n_tuples_have_no_use_for_is_refused(override, sentence, tmp_path, capsys):
    assert train(override, folder=tmp_path) == 2
    errors = capsys.readouterr().err
    assert sentence in errors
    assert errors.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
