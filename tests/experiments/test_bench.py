"""Benchmarks: that they measure what they say, not how fast this machine is."""

import json

import numpy as np
import pytest

from agents.mcts import MCTSConfig
from agents.networks.published import BACKENDS, choose, is_available
from experiments import cli
from experiments.bench import env, inference, measure, selfplay, usual_loop
from experiments.bench import perft as bench_perft
from reversi_env import Position, Variant


def test_rates_are_amounts_per_cpu_second() -> None:
    def spin() -> int:
        return sum(1 for _ in range(200_000))

    def spin_and_claim_ten_times_as_much() -> int:
        return 10 * spin()

    workloads = {"honest": spin, "tenfold": spin_and_claim_ten_times_as_much}
    baseline, honest, tenfold = measure.measure(workloads, rounds=3)
    assert tenfold.per_cpu_s / honest.per_cpu_s == pytest.approx(10, rel=0.5)
    assert honest.per_baseline_step == pytest.approx(honest.per_cpu_s / baseline.per_cpu_s, rel=0.5)
    assert baseline.per_baseline_step == 1


def test_plies_and_steps_are_counted() -> None:
    assert 58 * env.PYTHON_GAMES < env.play_from_python() < 64 * env.PYTHON_GAMES
    assert 58 * env.PYTHON_GAMES < env.step_env() < 64 * env.PYTHON_GAMES


def test_steps_of_all_games_of_a_batch_are_counted() -> None:
    actions = env._known_actions()
    assert actions.shape == (env.BATCH_STEPS, env.BATCH_GAMES)
    batch = env._batch()
    batch.reset()
    num_ended = 0
    for row in actions[:130]:  # illegal actions raise
        batch.step(row)
        num_ended += batch.is_over.sum()
    assert num_ended == pytest.approx(2 * env.BATCH_GAMES, rel=0.05)  # games of about 60 plies
    assert env.step_vector_env() == env.BATCH_STEPS * env.BATCH_GAMES


def test_leaves_are_counted() -> None:
    assert bench_perft.count("othello", 6) == 8200


def test_bench_names_the_machine_and_a_baseline(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench_perft, "WORKLOADS", {"leaves": lambda: bench_perft.count("othello", 7)})
    assert cli.main(["bench", "perft", "--json", "--rounds", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"CPU", "cores", "Python", "numpy", "numba", "torch", "gymnasium", "commit"} == set(found["machine"])
    assert [figure["name"] for figure in found["figures"]] == ["baseline: SplitMix64 steps", "leaves"]
    assert cli.main(["bench", "perft", "--rounds", "1"]) == 0
    assert found["machine"]["Python"] in capsys.readouterr().out


def test_positions_are_counted_by_batches() -> None:
    asked: list[int] = []

    class Counting:
        name = "counting"

        def __call__(self, planes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            asked.append(len(planes))
            return planes, planes

    assert inference.asking(Counting(), Variant(), 64, 3)() == sum(asked) == 192
    assert set(asked) == {64}


def test_bench_inference_measures_what_is_installed_and_says_what_auto_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["bench", "inference", "--rounds", "1", "--channels", "4", "--blocks", "1", "--batches", "2,64"]
    assert cli.main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    backends = [name for name in BACKENDS if is_available(name)]
    assert [figure["name"] for figure in found["figures"][1:]] == [
        f"{name}, {batch} at a time" for batch in (2, 64) for name in backends
    ]
    assert found["against_torch"]["64"].keys() == set(backends)
    assert found["against_torch"]["64"]["torch"] == 1
    assert found["auto"]["64"]["backend"] == choose().backend
    assert cli.main(command) == 0
    assert f"auto takes {choose(batch=2).backend}, " in capsys.readouterr().out


def test_batches_that_are_no_numbers_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "inference", "--batches", "1,x"]) == 2
    assert "batches are numbers of positions, with commas between, got '1,x'" in capsys.readouterr().err


def test_the_known_games_end_where_games_end() -> None:
    for moves in env._known_games()[:5]:
        position = Position()
        for move in moves:
            position = position.play(move)
        assert position.is_over


def test_positions_of_self_play_are_counted_and_so_are_those_of_the_usual_loop() -> None:
    asked: list[int] = []

    def evaluate(player: np.ndarray, opponent: np.ndarray, variant: Variant) -> tuple[np.ndarray, np.ndarray]:
        asked.append(len(player))
        return np.full((len(player), variant.num_actions), 0.1, np.float32), np.zeros(len(player), np.float32)

    config = MCTSConfig(num_simulations=8)
    assert selfplay._Play(Variant(), evaluate, config, 5, calls=30)() == sum(asked) == 5 * 30
    asked.clear()
    loop = usual_loop.UsualLoop(Variant(), evaluate, num_simulations=8)
    assert loop.play_moves(4) == sum(asked) == 4 * (8 + 1)  # so early no game ends within a search
    assert set(asked) == {1}


def test_bench_selfplay_compares_actors_with_bare_backends_and_the_usual_loop(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(selfplay, "TREE_SEARCHES", 1)
    monkeypatch.setattr(selfplay, "PLAYOUT_CALLS", 2)
    command = ["bench", "selfplay", "--rounds", "1", "--channels", "4", "--blocks", "1", "--calls", "3", "--games", "4"]
    assert cli.main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    amounts = {figure["name"]: figure["amount"] for figure in found["figures"]}
    assert amounts["torch, bare"] == amounts["torch, self-play"] == 12
    for simulations in (32, 200):
        for root in ("gumbel", "puct"):
            assert amounts[f"tree alone, {root}, {simulations} simulations a move"] == 256 * simulations
    assert 0 < found["backends"]["torch"]["share_in_network"] < 1
    assert cli.main(command) == 0
    assert "torch: " in capsys.readouterr().out


@pytest.mark.parametrize("option", ["channels", "blocks", "games", "simulations", "iterations", "samples"])
def test_bench_training_names_the_option_that_is_too_small(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "training", f"--{option}", "0"]) == 2
    assert f"{option} must be " in capsys.readouterr().err


def test_bench_training_holds_the_whole_against_what_its_parts_allow(capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--channels", "4", "--blocks", "1", "--games", "4", "--simulations", "2", "--iterations", "1"]
    command = ["bench", "training", *small, "--samples", "3", "--backend", "torch"]
    assert cli.main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    figures = {figure["name"]: figure for figure in found["figures"]}
    assert (
        4 * 50 < figures["self-play and learning"]["amount"] <= 4 * 60
    )  # passes are no samples, and hardly any game is shorter
    rates = {name: figure["per_cpu_s"] for name, figure in figures.items()}
    cost_s = 2 / rates["torch, bare"] + 3 / rates["training steps, bare"]
    assert found["allowed_positions_per_cpu_s"] == pytest.approx(1 / cost_s)
    assert found["of_allowed"] == pytest.approx(rates["self-play and learning"] * cost_s)
    assert cli.main(command) == 0
    assert "2 simulations and 3 samples each would allow" in capsys.readouterr().out
