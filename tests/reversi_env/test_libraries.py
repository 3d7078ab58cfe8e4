"""The environments as other libraries use them: their checkers find nothing, and their learners meet only legal moves.

A library that is absent has its tests skipped. Illegal actions raise here, so a library that lost the mask would fail.
"""

import functools
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv

import reversi_env  # noqa: F401  registers Reversi-v0
from reversi_env import Position, Variant
from reversi_env.opponents import BASELINES
from reversi_env.wrappers import CanonicalSymmetry, DiscShaping, FormatObservation, HistoryPlanes

Env = gymnasium.Env[Any, Any]


def make(**arguments: Any) -> Env:
    return gymnasium.make("reversi_env:Reversi-v0", illegal_action="raise", **arguments)


def first_legal(position: Position, rng: np.random.Generator) -> int:
    return position.legal_moves[0]


# Gymnasium


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("variant", Variant.NAMES)
@pytest.mark.parametrize("opponent", [*BASELINES, ["random", "greedy"], first_legal, None])
@pytest.mark.parametrize("reward", ["result", "score"])
def test_gymnasiums_checker_finds_nothing_in_any_render_mode(
    variant: str, opponent: Any, reward: str, capsys: pytest.CaptureFixture[str]
) -> None:
    env = gymnasium.make("reversi_env:Reversi-v0", variant=variant, opponent=opponent, reward=reward)
    check_env(env.unwrapped)


@pytest.mark.parametrize(
    "in_processes", [pytest.param(False, id="sync"), pytest.param(True, id="async", marks=pytest.mark.slow)]
)
def test_gymnasiums_own_vector_envs_play_the_games_of_single_ones(in_processes: bool) -> None:
    one = functools.partial(make, variant="othello-4x4", opponent="greedy", color="random")
    envs: VectorEnv[Any, Any, Any]
    envs = AsyncVectorEnv([one] * 2, context="spawn") if in_processes else SyncVectorEnv([one] * 2)
    singles = [one() for _ in range(2)]
    rng = np.random.default_rng(1)
    observation, _ = envs.reset(seed=[5, 6])
    expected = [env.reset(seed=seed)[0] for env, seed in zip(singles, (5, 6), strict=True)]
    is_over = np.zeros(2, np.bool_)
    for _ in range(30):
        for index in range(2):
            for key in ("observation", "action_mask"):
                np.testing.assert_array_equal(observation[key][index], expected[index][key])
        # The step after an end resets and takes no notice of its action.
        actions = np.array(
            [rng.choice(np.flatnonzero(mask)) if mask.any() else 0 for mask in observation["action_mask"]]
        )
        observation, _, terminated, _, _ = envs.step(actions)
        for index, env in enumerate(singles):
            expected[index] = env.reset()[0] if is_over[index] else env.step(actions[index])[0]
        is_over = terminated
    envs.close()


def test_a_video_shows_every_position(tmp_path: Path) -> None:
    editor = pytest.importorskip("moviepy.video.io.VideoFileClip")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of moviepy, by its version
        env = gymnasium.wrappers.RecordVideo(
            make(variant="othello-4x4", opponent=None, render_mode="rgb_array"), str(tmp_path), disable_logger=True
        )
        _, info = env.reset()
        frames = [env.render()]
        terminated = False
        while not terminated:
            _, _, terminated, _, info = env.step(int(info["action_mask"].argmax()))
            frames.append(env.render())
        env.close()
        (path,) = tmp_path.glob("*.mp4")
        with editor.VideoFileClip(str(path)) as clip:
            filmed = list(clip.iter_frames())
    assert len(filmed) == len(frames)
    for seen, drawn in zip(filmed, frames, strict=True):
        assert np.abs(seen.astype(int) - np.asarray(drawn, int)).mean() < 4  # a video is compressed


# PettingZoo


def test_the_rest_does_not_need_pettingzoo() -> None:
    script = """
import sys
sys.modules["pettingzoo"] = None
import reversi_env
try:
    import reversi_env.aec
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == 'reversi_env.aec needs PettingZoo: pip install "reversi-lab[rl]"'


@pytest.mark.filterwarnings("ignore:.*leaves out options")  # api_test gives an option that means nothing
@pytest.mark.parametrize("variant", Variant.NAMES)
def test_pettingzoos_tests_pass(variant: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pettingzoo")
    from pettingzoo.test import api_test, render_test, seed_test

    from reversi_env import aec

    one = functools.partial(aec.env, variant=variant)
    api_test(one(), num_cycles=200)
    api_test(aec.raw_env(variant=variant), num_cycles=50)
    seed_test(one, num_cycles=200)
    render_test(one)


@pytest.mark.slow  # 5 seconds by the clock
def test_pettingzoos_benchmark_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pettingzoo")
    from pettingzoo.test import performance_benchmark

    from reversi_env import aec

    performance_benchmark(aec.env())
    turns_per_second = float(capsys.readouterr().out.splitlines()[1].split()[0])
    assert turns_per_second > 500


# sb3-contrib

LEARNER_SETTINGS = {"n_steps": 128, "batch_size": 64, "n_epochs": 1, "seed": 1, "device": "cpu"}


@pytest.mark.parametrize(
    ("policy", "wrapper"),
    [
        ("MultiInputPolicy", None),
        ("MlpPolicy", lambda env: FormatObservation(env, dtype="float32", flat=True, key=None)),
        ("MultiInputPolicy", lambda env: CanonicalSymmetry(HistoryPlanes(DiscShaping(env, gamma=0.99)))),
    ],
    ids=["plain", "format", "canonical history shaping"],
)
def test_maskable_ppo_finds_the_masks_through_wrappers(policy: str, wrapper: Callable[[Env], Env] | None) -> None:
    contrib = pytest.importorskip("sb3_contrib")
    from sb3_contrib.common.maskable.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor

    env = make(variant="othello-6x6", opponent="greedy", color="random")
    env = Monitor(wrapper(env) if wrapper else env)
    model = contrib.MaskablePPO(policy, env, **LEARNER_SETTINGS)
    model.learn(256)
    assert model.num_timesteps == 256
    rewards, lengths = evaluate_policy(model, env, n_eval_episodes=2, return_episode_rewards=True, warn=False)
    assert min(lengths) > 1
    assert np.isfinite(rewards).all()


# TorchRL


@pytest.mark.parametrize("variant", Variant.NAMES)
@pytest.mark.parametrize("categorical", [True, False])
def test_torchrl_rolls_out_legal_moves_to_the_end(variant: str, categorical: bool) -> None:
    pytest.importorskip("torchrl")
    from torchrl.envs import ActionMask, GymWrapper, TransformedEnv

    env = GymWrapper(make(variant=variant), categorical_action_encoding=categorical)
    rollout = TransformedEnv(env, ActionMask()).rollout(200)
    assert rollout["next", "done"][-1].item()
    masks, actions = rollout["action_mask"].bool(), rollout["action"]
    chosen = masks.gather(-1, actions.unsqueeze(-1)) if categorical else masks[actions.bool()]
    assert chosen.all()
    assert not rollout["next", "action_mask"][-1].any()


def test_torchrl_policies_take_the_mask_as_bool() -> None:
    pytest.importorskip("torchrl")
    import torch
    from tensordict.nn import ProbabilisticTensorDictModule, TensorDictModule, TensorDictSequential
    from torchrl.envs import DTypeCastTransform, GymWrapper, TransformedEnv
    from torchrl.modules import MaskedCategorical

    planes = FormatObservation(make(variant="othello-4x4"), dtype="float32", flat=True)
    env = TransformedEnv(
        GymWrapper(planes, categorical_action_encoding=True),
        DTypeCastTransform(torch.int8, torch.bool, in_keys=["action_mask"]),
    )
    policy = TensorDictSequential(
        TensorDictModule(torch.nn.Linear(32, 17), in_keys=["observation"], out_keys=["logits"]),
        ProbabilisticTensorDictModule(
            in_keys={"logits": "logits", "mask": "action_mask"},
            out_keys=["action"],
            distribution_class=MaskedCategorical,
        ),
    )
    rollout = env.rollout(30, policy)
    assert rollout["next", "done"][-1].item()
    assert rollout["action_mask"].gather(-1, rollout["action"].unsqueeze(-1)).all()


def test_torchrl_plays_both_agents_of_pettingzoo() -> None:
    pytest.importorskip("torchrl")
    pytest.importorskip("pettingzoo")
    from torchrl.envs import PettingZooWrapper

    from reversi_env import aec

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # which versions of PettingZoo TorchRL was tested with
        env = PettingZooWrapper(aec.env(variant="othello-4x4"), use_mask=True, categorical_actions=True)
        rollout = env.rollout(40)
    totals = [rollout["next", agent, "reward"].sum().item() for agent in ("black_0", "white_0")]
    assert totals[0] == -totals[1]
    assert rollout["next", "done"][-1].item()


# RLlib


@pytest.mark.slow
def test_rllib_trains_with_its_own_action_masking_module() -> None:
    pytest.importorskip("ray.rllib", exc_type=ImportError)
    import ray
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
    from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
    from ray.tune.registry import register_env

    def one(_: Any) -> Env:
        env = make(variant="othello-4x4")
        return FormatObservation(env, dtype="float32", flat=True, key="observations")

    register_env("reversi", one)
    config = (
        PPOConfig()
        .environment("reversi")
        .env_runners(num_env_runners=0)
        .rl_module(rl_module_spec=RLModuleSpec(module_class=ActionMaskingTorchRLModule))
        .training(train_batch_size_per_learner=256, minibatch_size=64, num_epochs=1)
    )
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        algorithm = config.build_algo()
        results = algorithm.train()["env_runners"]
        algorithm.stop()
    finally:
        ray.shutdown()
    assert results["num_episodes"] > 10
    assert -1 <= results["episode_return_mean"] <= 1
