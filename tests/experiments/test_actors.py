"""Those who play: the same games whoever plays them, after deaths too; no process left behind; faults as sentences."""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from agents.mcts import MCTSConfig
from experiments.training.actors import (
    MOST_DEATHS,
    ActorsConfig,
    LocalActors,
    ProcessActor,
    Terms,
    make_actors,
)
from experiments.training.interruption import Interrupted, Stop, TrainingError
from experiments.training.self_play import SelfPlayConfig
from reversi_env import Variant

VARIANT = Variant.named("othello-4x4")
SEARCH = MCTSConfig(num_simulations=6, noise_fraction=0.25, temperature_moves=100)
TERMS = Terms(VARIANT, SEARCH, SelfPlayConfig(games_at_once=4, exact_empties=4))
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Guess:
    """What stands for a published network, of which every process makes the same evaluator."""

    salt: int
    fault: str = ""  # what happens to those who ask
    marks: str = ""  # a folder in which each who asks leaves its process's number
    slow_s: float = 0.0

    def evaluator(self):
        if self.marks:
            (Path(self.marks) / f"{os.getpid()}").touch()
        if self.fault == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault == "sentence":
            raise ValueError("the network's answer is not a number")
        if self.fault == "bug":
            raise KeyError("planes")
        return self

    def __call__(self, player, opponent, variant):
        time.sleep(self.slow_s)
        place = np.arange(variant.num_actions, dtype=np.uint64)
        mixed = (player[:, :1] * np.uint64(self.salt) ^ opponent[:, :1] * np.uint64(0x9E3779B97F4A7C15)) >> place
        policy = ((mixed % np.uint64(97)).astype(np.float32) + 1) / 100
        return policy, (policy[:, 0] - 0.5).astype(np.float32)


def config(**settings):
    return ActorsConfig(**{"kind": "local", "num_actors": 2} | settings)


@pytest.fixture
def started():
    """Gives a function that makes actors, which are closed at the end of the test."""
    made = []

    def start(**settings):
        made.append(make_actors(config(**settings), TERMS))
        return made[-1]

    yield start
    for actors in made:
        actors.close()


def unhurried():
    """What a learner does while it waits, when nobody wants it to stop."""


def of(played):
    """All that a round tells of its games, but for the time that they took."""
    return [array.tobytes() for array in played.samples.arrays().values()] + [played.num_plies, played.black_score]


def processes(folder, count):
    """The numbers of the processes that left a mark, when there are so many."""
    deadline = time.monotonic() + 120
    while len(list(folder.iterdir())) < count:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return {int(path.name) for path in folder.iterdir()}


def is_running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def assert_end(numbers, within_s):
    deadline = time.monotonic() + within_s
    while left := [number for number in numbers if is_running(number)]:
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(0.05)


def test_a_round_is_the_same_whoever_plays_it(started):
    asked = [(Guess(3), range(10), (7, 1)), (Guess(5), range(9), (7, 2))]
    all_rounds = []
    for settings in ({"kind": "thread", "num_actors": 1}, {"kind": "thread", "num_actors": 3}, {}):
        actors = started(**settings)
        rounds = [actors.submit(*arguments) for arguments in asked]
        all_rounds.append([of(asked_for.result(unhurried)) for asked_for in rounds])
    assert all_rounds[0] == all_rounds[1] == all_rounds[2]
    guess, _, seed = asked[0]  # ten games are three units, of which the first has games 0, 3, 6, 9
    first, *others = [TERMS.play(guess, range(unit, 10, 3), seed, unhurried) for unit in range(3)]
    games = np.concatenate([first.samples.player, *(other.samples.player for other in others)])
    assert all_rounds[0][0][0] == games.tobytes()


def test_the_games_of_one_who_is_killed_are_played_anew(started, tmp_path, caplog):
    expected = started(kind="thread").submit(Guess(3), range(8), (1,)).result(unhurried)
    asked = started().submit(Guess(3, marks=str(tmp_path), slow_s=0.02), range(8), (1,))
    victim = min(processes(tmp_path, 2))
    os.kill(victim, signal.SIGKILL)
    assert of(asked.result(unhurried)) == of(expected)
    assert len(processes(tmp_path, 3)) == 3
    assert [record.getMessage() for record in caplog.records] == [
        "an actor was killed by SIGKILL; another one plays its games anew"
    ]


def test_those_who_die_again_and_again_end_the_run(started, tmp_path):
    actors = started(num_actors=1)
    asked = actors.submit(Guess(3, "killed", str(tmp_path)), range(4), (1,))
    with pytest.raises(TrainingError, match=f"{MOST_DEATHS} actors died one after .* the last was killed by SIGKILL"):
        asked.result(unhurried)
    assert len(processes(tmp_path, MOST_DEATHS)) == MOST_DEATHS


def test_a_fault_in_another_process_is_told_in_a_sentence(started):
    actors = started(num_actors=1)
    for fault, sentence in (("sentence", "the network's answer is not a number"), ("bug", "KeyError: 'planes'")):
        asked = actors.submit(Guess(3, fault), range(4), (1,))
        with pytest.raises(TrainingError) as raised:
            asked.result(unhurried)
        assert str(raised.value) == f"an actor failed: {sentence}"
        assert "in evaluator" in "".join(raised.value.__notes__)  # where somebody looks for a bug
    assert actors.submit(Guess(3), range(4), (1,)).result(unhurried).num_games == 4  # it goes on


def test_waiting_for_games_can_be_stopped_and_leaves_nobody(started, tmp_path):
    actors = started()
    asked = actors.submit(Guess(3, marks=str(tmp_path), slow_s=0.05), range(1000), (1,))
    playing = processes(tmp_path, 2)
    stop = Stop()
    stop.request()
    with pytest.raises(Interrupted):
        asked.result(stop.check)
    began = time.monotonic()
    actors.close()
    assert time.monotonic() - began < 5
    assert_end(playing, 0)


def test_one_that_hears_nothing_is_ended_all_the_same(tmp_path):
    actors = LocalActors([ProcessActor(TERMS)], 4)
    actors.submit(Guess(3, marks=str(tmp_path), slow_s=60), range(4), (1,))
    playing = processes(tmp_path, 1)
    actors.close()
    assert_end(playing, 0)


PARENT = """
import sys, time
from tests.experiments.test_actors import Guess, TERMS, config, make_actors, unhurried
if __name__ == "__main__":
    actors = make_actors(config(), TERMS)
    asked = actors.submit(Guess(3, marks=sys.argv[1], slow_s=0.05), range(1000), (1,))
    try:
        asked.result(unhurried)
    except KeyboardInterrupt:
        actors.close()
        print("closed")
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_actors_end_with_their_parent(number, tmp_path):
    marks, script = tmp_path / "marks", tmp_path / "parent.py"
    marks.mkdir()
    script.write_text(PARENT)
    parent = subprocess.Popen(
        [sys.executable, str(script), str(marks)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        playing = processes(marks, 2)
        if number == signal.SIGINT:
            os.killpg(parent.pid, number)  # as a terminal does
    finally:
        if number == signal.SIGKILL:
            parent.kill()  # alone
    printed, errors = parent.communicate(timeout=60)
    assert_end(playing, 20)
    assert errors == ""
    assert printed == ("" if number == signal.SIGKILL else "closed\n")


def test_processes_that_cannot_be_started_are_told(started, monkeypatch, caplog):
    def start(process):
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(multiprocessing.context.SpawnProcess, "start", start)
    with pytest.raises(TrainingError, match=r"3 actors died .* could not be started \(Resource temporarily"):
        started(num_actors=1).submit(Guess(1), range(2), (1,)).result(unhurried)
    assert len(caplog.records) == 2


def test_what_a_kind_of_actors_has_no_use_for_is_refused():
    for settings, sentence in (
        ({"kind": "proces"}, "unknown kind of actors 'proces'; there are: local, ray, thread"),
        ({"kind": "ray", "num_actors": 2}, "num_actors must be 0 with kind=ray"),
        ({"address": "auto"}, "kind=local has none"),
        ({"num_actors": -1}, "num_actors must be from 0 to 1,000, got -1"),
    ):
        with pytest.raises(ValueError, match=re.escape(sentence)):
            ActorsConfig(**settings)
