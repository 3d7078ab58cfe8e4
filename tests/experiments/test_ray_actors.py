"""Actors on a Ray cluster of two nodes on one machine: what is lost with a node, and what is not."""

import contextlib
import os
import time
from dataclasses import dataclass, replace

import pytest

from experiments.training.interruption import TrainingError
from experiments.training.self_play import SelfPlayConfig
from reversi_env import Position
from tests.experiments.test_actors import TERMS, Guess, config, make_actors, of, unhurried

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.slow

NODE = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}


@dataclass(frozen=True)
class Watched(Guess):
    """Notes the node at which each unit begins: by its first question, which is for the start."""

    def __call__(self, player, opponent, variant):
        if (player == Position(variant).player).all():
            node = ray.get_runtime_context().get_node_id() if ray.is_initialized() else "here"
            with open(f"{self.marks}/begun", "a") as file:
                file.write(f"{node}\n")
        return super().__call__(player, opponent, variant)


def begun(folder):
    path = folder / "begun"
    return path.read_text().split() if path.exists() else []


@pytest.fixture
def cluster():
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    made = Cluster(initialize_head=True, head_node_args=NODE)
    yield made
    ray.shutdown()
    made.shutdown()


def test_a_node_that_is_killed_costs_its_unfinished_games_and_nothing_else(cluster, tmp_path, caplog, request):
    second = cluster.add_node(**NODE)
    marks, other_marks = tmp_path / "ray", tmp_path / "here"
    marks.mkdir()
    other_marks.mkdir()
    guess = Watched(3, marks=str(marks), slow_s=0.04)  # so that the node dies in the middle of games
    terms = replace(TERMS, self_play=SelfPlayConfig(games_at_once=2, exact_empties=4))
    here = make_actors(config(kind="thread"), terms)
    expected = [here.submit(Guess(3), range(24), (number,)).result(unhurried) for number in (1, 2)]
    here.close()

    actors = make_actors(config(kind="ray", num_actors=0, address=cluster.address), terms)
    request.addfinalizer(actors.close)
    asked = actors.submit(guess, range(24), (1,))
    deadline = time.monotonic() + 120
    while min(begun(marks).count(node) for node in {*begun(marks), second.node_id}) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    cluster.remove_node(second, allow_graceful=False)
    assert of(asked.result(unhurried)) == of(expected[0])
    assert len(begun(marks)) == 12 + 1
    assert [record.getMessage().partition(" (")[0] for record in caplog.records] == ["an actor on the Ray cluster died"]

    third = cluster.add_node(**NODE)  # and one that comes later takes part
    assert of(actors.submit(guess, range(24), (2,)).result(unhurried)) == of(expected[1])
    assert begun(marks).count(third.node_id)
    actors.close()
    assert not ray.is_initialized()


def test_a_fault_on_the_cluster_is_told_in_a_sentence():
    with contextlib.closing(make_actors(config(kind="ray", num_actors=0), TERMS)) as actors:
        asked = actors.submit(Guess(3, "sentence"), range(4), (1,))
        with pytest.raises(TrainingError) as raised:
            asked.result(unhurried)
        assert str(raised.value) == "an actor failed: the network's answer is not a number"
        asked = actors.submit(Guess(3, "killed"), range(4), (1,))
        with pytest.raises(TrainingError, match="3 actors died one after the other"):
            asked.result(unhurried)


def test_a_cluster_that_is_not_there_is_told_in_a_sentence():
    with pytest.raises(TrainingError, match=r"^no Ray cluster at 127\.0\.0\.1:1: "):
        make_actors(config(kind="ray", num_actors=0, address="127.0.0.1:1"), TERMS)
