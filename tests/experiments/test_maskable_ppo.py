"""Runs of `reversi train algorithm=maskable_ppo`, and how our games and network look to stable-baselines3."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import agents
from agents.checkpoint import CHECKPOINTS, find_checkpoint, read_checkpoint
from agents.networks.residual import ResidualConfig, ResidualNetwork
from experiments import cli
from experiments.training.maskable_ppo import NetworkPolicy
from experiments.training.sb3_env import PlanesVecEnv, planes_of
from reversi_env.env import ReversiEnv

ROOT = Path(__file__).parents[2]
TINY = [
    "algorithm=maskable_ppo",
    "variant=othello-4x4",
    "network.num_channels=4",
    "network.num_blocks=1",
    "network.num_head_channels=2",
    "ppo.num_envs=4",
    "ppo.num_steps=8",
    "ppo.batch_size=16",
    "schedule.num_iterations=4",
    "schedule.checkpoint_every=2",
    "evaluation.opponents=[random]",
    "evaluation.every=3",
    "evaluation.num_games=2",
    "evaluation.final_num_games=4",
    "name=run",
]


def train(*overrides, folder):
    return cli.main(["train", *TINY, f"runs={folder}", *overrides])


def weights_of(run):
    return read_checkpoint(find_checkpoint(run)).network.state_dict()


def metrics_of(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def games_of(num_envs, variant="othello-4x4", **settings):
    return PlanesVecEnv(agents.make_vec(num_envs=num_envs, variant=variant, color="random", **settings))


def policy_of(network, games):
    return NetworkPolicy(games.observation_space, games.action_space, lambda _: 1e-3, network)


def drawn(masks, rng):
    return np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])


def test_a_run_leaves_the_folder_and_the_numbers_of_any_run(tmp_path, capsys):
    assert train(folder=tmp_path) == cli.DONE  # its games raise on an illegal move
    run = tmp_path / "run"
    printed = capsys.readouterr()
    assert "iteration 4 of 4: policy loss" in printed.err
    assert f"reversi play {run}" in printed.out
    assert sorted(path.name for path in (run / CHECKPOINTS).iterdir()) == ["000002", "000004"]
    assert sorted(path.name for path in (run / "games").iterdir()) == ["000003.jsonl", "000004.jsonl"]
    lines = metrics_of(run)
    assert [line["iteration"] for line in lines] == [1, 2, 3, 4, 4]
    assert {"time/iteration_s", "time/elapsed_s", "rollout/score", "train/entropy"} <= lines[0].keys()
    assert {"train/policy_loss", "train/value_loss", "train/gradient_norm"} <= lines[0].keys()
    assert [line["train/learning_rate"] for line in lines[:4]] == pytest.approx([2e-3, 1.55e-3, 6.5e-4, 2e-4])
    assert lines[3]["rollout/moves"] == 4 * 2 * 4 * 8  # iterations × updates × games × moves
    assert lines[3]["train/steps"] == 4 * 2 * 2 * 2  # iterations × updates × epochs × batches
    assert "evaluation/random/score" in lines[2]
    assert "evaluation/random/score" in lines[4]
    board = EventAccumulator(str(run))
    board.Reload()
    assert [event.step for event in board.Scalars("train/policy_loss")] == [1, 2, 3, 4]


def test_the_same_seed_gives_the_same_weights_and_a_resumed_run_too(tmp_path):
    for name in ("one", "two"):
        assert train(folder=tmp_path / name) == cli.DONE
    one, two = (weights_of(tmp_path / name / "run") for name in ("one", "two"))
    assert all(torch.equal(one[name], two[name]) for name in one)
    (tmp_path / "two" / "run" / CHECKPOINTS / "000004").rename(tmp_path / "away")  # as if it had died before
    assert cli.main(["train", f"resume={tmp_path}/two/run"]) == cli.DONE
    resumed = weights_of(tmp_path / "two" / "run")
    assert all(torch.equal(one[name], resumed[name]) for name in one)
    assert [line["iteration"] for line in metrics_of(tmp_path / "two" / "run")] == [1, 2, 3, 4, 4]
    assert train("seed=2", folder=tmp_path / "three") == cli.DONE
    three = weights_of(tmp_path / "three" / "run")
    assert any(not torch.equal(one[name], three[name]) for name in one)


def test_a_checkpoint_plays_without_search_what_the_policy_of_sb3_would(tmp_path):
    assert train(folder=tmp_path) == cli.DONE
    agent = agents.make(f"{tmp_path}/run:num_simulations=1")
    policy = policy_of(read_checkpoint(find_checkpoint(tmp_path / "run")).network, games_of(1))
    env, rng = ReversiEnv(variant="othello-4x4", color="random"), np.random.default_rng(0)
    num_choices = 0
    for seed in range(10):
        observation, _ = env.reset(seed=seed)
        terminated = False
        while not terminated:
            mask = observation["action_mask"]
            action, _ = policy.predict(planes_of(observation), deterministic=True, action_masks=mask)
            assert agent.select(env.position, rng).move == action
            num_choices += mask.sum() > 1
            observation, _, terminated, _, _ = env.step(rng.choice(np.flatnonzero(mask)))
    assert num_choices > 20


def test_games_side_by_side_are_the_single_games_as_sb3_wants_them():
    vectorized = games_of(3, opponent="greedy")
    singles = [ReversiEnv(variant="othello-4x4", color="random", opponent="greedy") for _ in range(3)]
    vectorized.seed(5)
    planes = vectorized.reset()
    observations = [env.reset(seed=5 + game)[0] for game, env in enumerate(singles)]
    rng, num_ended = np.random.default_rng(0), 0
    for _ in range(40):
        assert vectorized.observation_space.contains(planes[0])
        assert vectorized.has_attr("action_masks")
        masks = np.stack(vectorized.env_method("action_masks"))
        for game, observation in enumerate(observations):
            assert (planes[game, :2] == observation["observation"]).all()
            assert (planes[game, 2].ravel() == observation["action_mask"][:-1]).all()
            assert (masks[game] == observation["action_mask"]).all()
        actions = drawn(masks, rng)
        planes, rewards, dones, infos = vectorized.step(actions)
        for game, env in enumerate(singles):
            observations[game], reward, terminated, _, _ = env.step(actions[game])
            assert (rewards[game], dones[game]) == (reward, terminated)
            assert ("terminal_observation" in infos[game]) == terminated
            if terminated:
                assert (infos[game]["terminal_observation"][:2] == observations[game]["observation"]).all()
                assert not infos[game]["TimeLimit.truncated"]
                observations[game], _ = env.reset()
                num_ended += 1
    assert num_ended > 9


def test_an_action_is_as_likely_in_any_batch_while_the_policy_learns():
    torch.manual_seed(0)
    games = games_of(8, "othello-6x6")
    policy = policy_of(ResidualNetwork(ResidualConfig(8, 2, 4)), games)
    planes, masks = torch.from_numpy(games.reset()), np.stack(games.env_method("action_masks"))
    policy.set_training_mode(False)
    with torch.no_grad():
        actions, values, before = policy(planes, action_masks=masks)
    policy.set_training_mode(True)
    again, after, _ = policy.evaluate_actions(planes[:3], actions[:3], torch.from_numpy(masks[:3]))
    torch.testing.assert_close(after, before[:3])
    torch.testing.assert_close(again, values[:3])
    assert masks[np.arange(8), actions].all()


def test_a_pool_of_any_agents_can_be_learned_from(tmp_path):
    assert train("ppo.opponents=[random,greedy,'alphabeta:depth=1']", folder=tmp_path) == cli.DONE
    assert metrics_of(tmp_path / "run")[3]["rollout/games"] > 8


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["algorithm=maskable_pp"], 2, "unknown choice of algorithm 'maskable_pp'; did you mean maskable_ppo"),
        (["ppo.num_epoch=3"], 2, "did you mean ppo.num_epochs"),
        (["ppo.num_envs=100000000000"], 2, "num_envs × num_steps must be at most 100,000,000"),
        (["ppo.num_epochs=0"], 2, "num_epochs must be at least 1, got 0"),
        (["ppo.batch_size=10"], 2, "batch_size must be at least 2 and divide num_envs × num_steps = 32, got 10"),
        (["ppo.opponents=[]"], 2, "opponents must name at least one"),
        (["ppo.opponents=[randm]"], 2, "unknown agent 'randm'; did you mean random"),
        (["ppo.learning_rate=0"], 2, "learning_rate must be above 0 and at most 1, got 0"),
        (["search.num_simulations=9"], 2, "algorithm=maskable_ppo has no use for search.num_simulations"),
        (["search=self_play"], 2, "algorithm=maskable_ppo has no use for search"),
        (["schedule.replay_window=9"], 2, "algorithm=maskable_ppo has no use for schedule.replay_window"),
        (["algorithm=alphazero"], 2, "algorithm=alphazero has no use for ppo.num_envs"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(arguments, code, sentence, tmp_path, capsys):
    assert train(*arguments, folder=tmp_path) == code
    printed = capsys.readouterr()
    assert sentence in printed.err
    assert printed.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_without_the_extra_a_sentence_says_how_to_get_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "sb3_contrib", None)
    assert train(folder=tmp_path) == cli.FAILED
    errors = capsys.readouterr().err
    assert 'pip install -c constraints.txt -e ".[rl]"' in errors
    assert errors.count("\n") == 1
    assert cli.main(["train", "--config", *TINY]) == cli.DONE
    assert list(tmp_path.iterdir()) == []


def test_the_printed_configuration_holds_what_the_algorithm_uses(capsys):
    assert cli.main(["train", "--config", "algorithm=maskable_ppo", "ppo.clip_range=0.3"]) == cli.DONE
    printed = capsys.readouterr().out
    assert "algorithm: maskable_ppo" in printed
    assert "clip_range: 0.3" in printed
    assert "\nsearch:" not in printed
    assert "replay_window" not in printed
    assert cli.main(["train", "--config"]) == cli.DONE
    printed = capsys.readouterr().out
    assert "replay_window" in printed
    assert "\nppo:" not in printed


def test_training_that_diverges_says_so_and_keeps_the_last_good_iteration(tmp_path, capsys):
    assert train("schedule.num_iterations=1", folder=tmp_path) == cli.DONE
    run = tmp_path / "run"
    overrides = ["schedule.num_iterations=2", "ppo.value_weight=1e38"]
    assert cli.main(["train", f"resume={run}", *overrides]) == cli.FAILED
    errors = capsys.readouterr().err
    assert "the gradient's norm is not finite at step 9 " in errors
    assert "lower ppo.learning_rate" in errors
    assert f"stopped after iteration 1 of 2: {run}/{CHECKPOINTS}/000001" in errors
    assert all(torch.isfinite(tensor).all() for tensor in weights_of(run).values())


def test_ctrl_c_leaves_a_checkpoint_from_which_the_run_goes_on(tmp_path):
    endless = ["schedule.num_iterations=100000", "schedule.checkpoint_every=100000", "evaluation.every=0"]
    command = [sys.executable, "-m", "reversi_lab", "train", *TINY, f"runs={tmp_path}", *endless]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        for line in process.stderr:
            if line.startswith("iteration 3 "):
                break
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == cli.INTERRUPTED, errors
    assert f"go on with: reversi train resume={tmp_path}/run" in errors
    assert "Traceback" not in errors
    assert "Warning" not in errors
    done = int(find_checkpoint(tmp_path / "run").name)
    assert done >= 3
    assert cli.main(["train", f"resume={tmp_path}/run", f"schedule.num_iterations={done + 1}"]) == cli.DONE


def test_what_trains_by_self_play_does_without_the_extra():
    code = "import sys, experiments.train, experiments.training.trainer; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "experiments.training.alphazero" in loaded
    assert not {"sb3_contrib", "stable_baselines3"} & set(loaded.split())


@pytest.mark.slow
def test_three_minutes_on_6x6_make_a_policy_that_beats_random(tmp_path, capsys):
    overrides = ["algorithm=maskable_ppo", "evaluation.every=0", "evaluation.opponents=[random]", "name=run"]
    assert cli.main(["train", *overrides, f"runs={tmp_path}"]) == cli.DONE
    lines = metrics_of(tmp_path / "run")
    assert lines[-1]["evaluation/random/score"] >= 0.7  # 200 games, without search
