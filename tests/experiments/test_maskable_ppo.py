"""Runs of `reversi train algorithm=maskable_ppo`, and how our games and network look to stable-baselines3."""

import copy
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import agents
from agents.checkpoint import read_checkpoint, write_checkpoint
from agents.networks.residual import ResidualConfig, ResidualNetwork
from agents.runs import CHECKPOINTS, find_checkpoint
from experiments import cli
from experiments.train import compose_config
from experiments.training.algorithms import make_algorithm
from experiments.training.interruption import Interrupted, Stop, TrainingError
from experiments.training.maskable_ppo import NetworkPolicy
from experiments.training.sb3_env import PlanesVecEnv, planes_of
from experiments.training.watched import WatchedOpponent
from reversi_env import Variant
from reversi_env.env import ReversiEnv
from tests.experiments.small_runs import metrics_of

ROOT = Path(__file__).parents[2]
TINY = [
    "algorithm=maskable_ppo",
    "variant=othello-4x4",
    "network.num_channels=4",
    "network.num_blocks=1",
    "network.num_head_channels=2",
    "ppo.num_envs=4",
    "ppo.moves_per_update=8",
    "ppo.batch_size=16",
    "schedule.num_iterations=4",
    "schedule.checkpoint_every=2",
    "evaluation.opponents=[random]",
    "evaluation.every=3",
    "evaluation.num_games=2",
    "evaluation.final_num_games=4",
    "name=run",
]


@pytest.fixture(autouse=True)
def one_thread():
    """Networks this small are faster so, above all beside other work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def train(*overrides, folder):
    return cli.main(["train", *TINY, f"runs={folder}", *overrides])


def ppo_of(*overrides):
    config, _ = compose_config([*TINY, *overrides])
    return make_algorithm(config)


def weights_of(run):
    return read_checkpoint(find_checkpoint(run)).network.state_dict()


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
    assert re.search(r"iteration 4 of 4: score 0\.\d\d, entropy \d\.\d{3}, value loss", printed.err)
    assert "policy loss" not in printed.err
    assert f"reversi play {run}" in printed.out
    assert sorted(path.name for path in (run / CHECKPOINTS).iterdir()) == ["000002", "000004"]
    assert sorted(path.name for path in (run / "games").iterdir()) == ["000003.jsonl", "000004.jsonl"]
    lines = metrics_of(run)
    assert [line["iteration"] for line in lines] == [1, 2, 3, 4, 4]
    assert {"time/iteration_s", "time/elapsed_s", "games/score", "train/entropy"} <= lines[0].keys()
    assert {"train/policy_loss", "train/value_loss", "train/gradient_norm"} <= lines[0].keys()
    assert [line["train/learning_rate"] for line in lines[:4]] == pytest.approx([2e-3, 1.55e-3, 6.5e-4, 2e-4])
    assert 4 * 8 <= lines[3]["games/finished"] <= 4 * 64 / 3  # games × moves, of which one has 3 to 7
    assert lines[3]["games/moves"] == 4 * 2 * 4 * 8  # iterations × updates × games × moves
    assert lines[3]["train/steps"] == 4 * 2 * 2 * 2  # iterations × updates × epochs × batches
    assert "evaluation/random/score" in lines[2]
    assert "evaluation/random/score" in lines[4]
    board = EventAccumulator(str(run))
    board.Reload()
    assert [event.step for event in board.Scalars("train/policy_loss")] == [1, 2, 3, 4]


def test_the_same_seed_gives_the_same_weights_and_a_resumed_run_too(tmp_path):
    for name in ("one", "two"):  # games go on across iterations, and have opponents of both kinds
        pool = "ppo.opponents=[random,'alphabeta:depth=1']"
        assert train(pool, "evaluation.opponents=[]", folder=tmp_path / name) == cli.DONE
    one, two = (weights_of(tmp_path / name / "run") for name in ("one", "two"))
    assert all(torch.equal(one[name], two[name]) for name in one)
    (tmp_path / "two" / "run" / CHECKPOINTS / "000004").rename(tmp_path / "away")  # as if it had died before
    assert cli.main(["train", f"resume={tmp_path}/two/run"]) == cli.DONE
    resumed = weights_of(tmp_path / "two" / "run")
    assert all(torch.equal(one[name], resumed[name]) for name in one)
    assert [line["iteration"] for line in metrics_of(tmp_path / "two" / "run")] == [1, 2, 3, 4, 4]
    assert train("seed=2", "schedule.num_iterations=1", folder=tmp_path / "three") == cli.DONE
    three = weights_of(tmp_path / "three" / "run")
    assert any(not torch.equal(one[name], three[name]) for name in one)


def test_a_checkpoint_plays_without_search_what_the_policy_of_sb3_would(tmp_path):
    assert train("schedule.num_iterations=1", "evaluation.opponents=[]", folder=tmp_path) == cli.DONE
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


def lambda_returns(rewards, is_over, values, last_values, weight):
    """The λ-returns of Sutton and Barto (12.18) without discount, [T, N]."""
    returns, following, next_values = [], last_values, last_values
    for reward, ended, value in reversed(list(zip(rewards, is_over, values, strict=True))):
        following = reward + np.where(ended, 0, (1 - weight) * next_values + weight * following)
        next_values = value
        returns.insert(0, following)
    return np.stack(returns)


def test_an_update_is_that_of_the_paper_by_an_adam_with_its_gradient_clipped():
    num_games = num_moves = 8
    learning_rate, clip_range, entropy_weight, value_weight, max_norm, epsilon = 0.1, 1e-3, 0.3, 0.8, 1e-3, 1e-5
    ppo = ppo_of(
        *(f"ppo.num_envs={num_games}", f"ppo.moves_per_update={num_moves}", "ppo.batch_size=64"),
        *("ppo.num_updates=1", "ppo.num_epochs=2", "ppo.gae_lambda=0.7", f"ppo.clip_range={clip_range}"),
        *(f"ppo.entropy_weight={entropy_weight}", f"ppo.value_weight={value_weight}"),
        *(f"ppo.max_gradient_norm={max_norm}", f"ppo.learning_rate={learning_rate}", "seed=3"),
    )
    network = copy.deepcopy(ppo.network).eval()
    numbers = ppo.iterate(Stop())
    moves, games = ppo._model.rollout_buffer, ppo.tensors()
    planes, actions = torch.from_numpy(moves.observations), torch.from_numpy(moves.actions).long()
    masks = torch.from_numpy(moves.action_masks).reshape(64, -1).bool()
    is_over = np.concatenate([moves.episode_starts[1:], games["games.is_over"].numpy()[None]]).astype(bool)
    last = {name: games[f"games.{name}"].numpy() for name in ("observation", "action_mask")}
    with torch.no_grad():
        logits, values = network.policy_and_value(planes)
        old_log_prob = logits.masked_fill(~masks, -1e9).log_softmax(1).gather(1, actions).squeeze(1)
        values = values.reshape(num_games, num_moves).T.numpy()
        last_values = network.policy_and_value(torch.from_numpy(planes_of(last)))[1].numpy()
    targets = lambda_returns(moves.rewards, is_over, values, last_values, 0.7)
    returns, advantages = (torch.from_numpy(array.T.reshape(-1)).float() for array in (targets, targets - values))
    advantages = (advantages - advantages.mean()) / advantages.std()
    parameters = list(network.parameters_of_policy_and_value())
    means, squares = ([torch.zeros_like(parameter) for parameter in parameters] for _ in range(2))
    told = []
    for step in (1, 2):
        logits, values = network.policy_and_value(planes)
        log_policy = logits.masked_fill(~masks, -1e9).log_softmax(1)
        log_prob = log_policy.gather(1, actions).squeeze(1)
        ratio = (log_prob - old_log_prob).exp()
        surrogate = torch.min(ratio * advantages, ratio.clamp(1 - clip_range, 1 + clip_range) * advantages).mean()
        entropy = -(log_policy.exp() * log_policy).sum(1).mean()
        value_loss = (returns - values).square().mean()
        loss = -surrogate - entropy_weight * entropy + value_weight * value_loss
        gradients = torch.autograd.grad(loss, parameters)
        norm = torch.cat([gradient.flatten() for gradient in gradients]).norm()
        told.append([-surrogate.item(), value_loss.item(), entropy.item(), norm.item()])
        with torch.no_grad():
            for parameter, gradient, mean, square in zip(parameters, gradients, means, squares, strict=True):
                clipped = gradient * min(1, max_norm / norm)
                mean += 0.1 * (clipped - mean)
                square += 0.001 * (clipped**2 - square)
                unbiased, scale = mean / (1 - 0.9**step), (square / (1 - 0.999**step)).sqrt()
                parameter -= learning_rate * unbiased / (scale + epsilon)
    for ours, theirs in zip(parameters, ppo.network.parameters_of_policy_and_value(), strict=True):
        torch.testing.assert_close(theirs, ours, atol=1e-3 * learning_rate, rtol=0)
    names = ("train/policy_loss", "train/value_loss", "train/entropy", "train/gradient_norm")
    assert [numbers[name] for name in names] == pytest.approx(np.mean(told, axis=0), rel=1e-3, abs=1e-5)
    assert numbers["train/clip_fraction"] > 0
    assert numbers["train/entropy"] > 0.3
    assert numbers["games/score"] == pytest.approx(np.mean(moves.rewards[is_over] + 1) / 2)
    assert abs(numbers["games/score"] - 0.5) > 0.05


def test_games_have_both_colors_and_every_opponent_and_each_iteration_draws_anew():
    ppo = ppo_of("ppo.num_envs=16", "ppo.opponents=[greedy,'alphabeta:depth=1']")
    seeds = set()
    for iteration in range(2):
        ppo.counters.iteration = iteration
        ppo.iterate(Stop())
        seeds.add(torch.initial_seed())
    assert len(seeds) == 2
    games = ppo.tensors()
    assert set(games["games.is_learner_black"].tolist()) == {True, False}
    assert set(games["games.opponent_index"].tolist()) == {0, 1}


@pytest.mark.parametrize("variant", ["othello", pytest.param("othello-10x10", marks=pytest.mark.slow)])
def test_every_update_of_the_defaults_sees_finished_games(variant):
    kept = [text for text in TINY if not text.startswith(("ppo.", "variant"))]
    config, _ = compose_config([*kept, f"variant={variant}", "ppo.num_updates=1", "ppo.num_epochs=1"])
    ppo = make_algorithm(config)
    num_finished = [ppo.iterate(Stop())["games/finished"] for _ in range(3)]
    assert min(np.diff([0, *num_finished])) >= config.ppo.num_envs / 4


def test_a_stop_is_heard_between_the_moves_of_games_and_before_an_opponent_thinks(monkeypatch):
    num_asked = []

    class StopAtThird(Stop):
        def check(self):
            num_asked.append(1)
            if len(num_asked) == 3:
                raise Interrupted

    num_moves, step = [], PlanesVecEnv.step_wait
    monkeypatch.setattr(PlanesVecEnv, "step_wait", lambda games: num_moves.append(1) or step(games))
    with pytest.raises(Interrupted):
        ppo_of().iterate(StopAtThird())
    assert len(num_moves) == 3
    stop = Stop()
    stop.request()
    with pytest.raises(Interrupted):
        WatchedOpponent(object(), stop.check).choose(Variant(), *[None] * 4)


def test_numbers_that_are_not_finite_end_training_with_a_sentence():
    ppo = ppo_of()
    with torch.no_grad():
        ppo.network.pass_logit.bias.fill_(float("nan"))
    with pytest.raises(TrainingError, match=r"the policy's logits are not finite; try a lower ppo.learning_rate"):
        ppo.iterate(Stop())
    ppo = ppo_of("ppo.num_updates=1", "ppo.num_epochs=1", "ppo.batch_size=32")  # one step, the last
    moment = lambda: next(iter(ppo._model.policy.optimizer.state.values()))["exp_avg"]  # noqa: E731
    ppo._model.policy.optimizer.register_step_post_hook(lambda *_: moment().fill_(float("inf")))
    with pytest.raises(TrainingError, match=r"numbers that are not finite at step 1 .* try a lower ppo.learning_rate"):
        ppo.iterate(Stop())


def bot_that_fails(folder, failure):
    """A player of the first legal move that fails at its ninetieth; PPO gives it 64 moves or so in an iteration."""
    bot = folder / "bot.py"
    bot.write_text(
        "calls = []\n"
        "def play(position, rng):\n"
        "    move = position.legal_moves[0]\n"
        "    calls.append(move)\n"
        f"    if len(calls) > 90: {failure}\n"
        "    return move\n"
    )
    return f"{bot}:play"


def test_an_opponent_that_fails_costs_no_whole_iteration(tmp_path, capsys):
    bot = bot_that_fails(tmp_path, "raise RuntimeError('my memory of this is gone')")
    runs = tmp_path / "runs"
    assert train(f"ppo.opponents=['{bot}']", "evaluation.opponents=[]", folder=runs) == cli.FAILED
    errors = capsys.readouterr().err
    assert f"reversi: opponent {bot} failed: RuntimeError: my memory of this is gone\n" in errors
    assert f"stopped after iteration 1 of 4: {runs}/run/{CHECKPOINTS}/000001" in errors
    assert f"go on with: reversi train resume={runs}/run" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        ("raise KeyError(move)", " failed: KeyError: "),
        ("raise SystemExit", " failed: SystemExit"),
        ("return 99", ": move 99 is not legal for "),
        ("return 5", ": b2 is not legal for "),
        ("return None", " answered None in "),
    ],
)
def test_whatever_an_opponent_does_wrong_is_a_training_error_that_names_it(failure, sentence, tmp_path):
    bot = bot_that_fails(tmp_path, failure)
    ppo = ppo_of(f"ppo.opponents=['{bot}']")
    ppo.iterate(Stop())
    with pytest.raises(TrainingError, match=f"^opponent {bot}{sentence}"):
        ppo.iterate(Stop())


def test_a_resumed_run_may_have_other_games_and_opponents(tmp_path):
    overrides = ["schedule.num_iterations=2", "evaluation.opponents=[]", "ppo.opponents=[random,greedy]"]
    assert train(*overrides, folder=tmp_path) == cli.DONE
    resume = ["train", f"resume={tmp_path}/run", "evaluation.opponents=[]"]
    assert cli.main([*resume, "schedule.num_iterations=3", "ppo.opponents=[positional]"]) == cli.DONE
    assert cli.main([*resume, "schedule.num_iterations=4", "ppo.num_envs=8"]) == cli.DONE


def test_trainer_state_that_does_not_fit_is_refused():
    ppo = ppo_of()
    ppo.iterate(Stop())
    tensors, num_steps = ppo.tensors(), ppo.counters.num_steps
    fresh = ppo_of()
    fresh.counters = replace(ppo.counters, iteration=1)
    fresh.load_tensors(tensors)
    assert all(torch.equal(tensors[name], tensor) for name, tensor in fresh.tensors().items())
    turn, row = tensors["games.turn"], tensors["games.opponent_row"]
    for changed, sentence in (
        (
            {"optimizer.step": torch.zeros(())},
            "the optimizer's state after step 8 has step, which belongs to nothing there",
        ),
        (
            {"optimizer.0.step": torch.zeros(2)},
            "the optimizer's state after step 8 has a 0.step that does not fit the network",
        ),
        ({"replay.value": torch.zeros(9)}, "it has replay.value, which belongs neither to games nor to optimizer"),
        ({"games.more": torch.zeros(9)}, r"its games lack nothing and have \['more'\] beside"),
        ({"games.reward": torch.zeros(9)}, r"its games' reward is float32 \(9,\), not"),
        ({"games.turn": turn * 0}, "its games do not await a move"),
        ({"games.opponent_row": row - 1}, "its games do not await a move"),
        ({"games.boards": torch.from_numpy(~np.zeros((12, 1), np.uint64))}, "a bit off the board"),
    ):
        with pytest.raises(ValueError, match=sentence):
            fresh.load_tensors(tensors | changed)
    for kept, sentence in (
        ("none", f"the optimizer's state after step {num_steps} has no 0.exp_avg"),
        ("games", f"the optimizer's state after step {num_steps} has no 0.exp_avg"),
        ("optimizer", r"its games lack \['action', .*\] and have nothing beside"),
    ):
        with pytest.raises(ValueError, match=sentence):
            fresh.load_tensors({name: tensor for name, tensor in tensors.items() if name.startswith(kept)})
    del tensors["optimizer.1.exp_avg"]
    with pytest.raises(ValueError, match=f"the optimizer's state after step {num_steps} has no 1.exp_avg"):
        fresh.load_tensors(tensors)


def test_a_checkpoint_of_another_algorithm_is_called_that(tmp_path, capsys):
    assert train("schedule.num_iterations=1", "evaluation.opponents=[]", folder=tmp_path) == cli.DONE
    run = tmp_path / "run"
    saved = read_checkpoint(run / CHECKPOINTS / "000001", with_trainer=True)
    counters = saved.trainer_counters | {"num_positions": 1}
    del counters["num_moves"]
    write_checkpoint(run / CHECKPOINTS / "000002", replace(saved, trainer_counters=counters))
    assert cli.main(["train", f"resume={run}"]) == cli.FAILED
    errors = capsys.readouterr().err
    assert "the checkpoint's trainer state cannot be used" in errors
    assert "num_positions" in errors
    assert "is it another algorithm's?" in errors


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["algorithm=maskable_pp"], 2, "unknown choice of algorithm 'maskable_pp'; did you mean maskable_ppo"),
        (["ppo.num_epoch=3"], 2, "did you mean ppo.num_epochs"),
        (["ppo.num_envs=100000000000"], 2, "num_envs × moves_per_update must be at most 100,000,000"),
        (["ppo.num_epochs=0"], 2, "num_epochs must be from 1 to 10,000, got 0"),
        (["ppo.num_updates=1000000000"], 2, "num_updates must be from 1 to 10,000, got 1000000000"),
        (["ppo.moves_per_update=0"], 2, "moves_per_update must be at least 1, got 0"),
        (["ppo.opponents=random"], 2, "it is a list of agents; write ppo.opponents=[random]"),
        (["ppo.opponents=random,greedy"], 2, "it is a list of agents; write ppo.opponents=[random,greedy]"),
        (["evaluation.opponents=greedy"], 2, "it is a list of agents; write evaluation.opponents=[greedy]"),
        (["ppo.batch_size=10"], 2, "batch_size must be at least 2 and divide num_envs × moves_per_update = 32, got 10"),
        (["ppo.opponents=[]"], 2, "opponents must name at least one"),
        (["ppo.opponents=[randm]"], 2, "unknown agent 'randm'; did you mean random"),
        (["ppo.learning_rate=0"], 2, "learning_rate must be above 0 and at most 1, got 0"),
        (["search.num_simulations=9"], 2, "algorithm=maskable_ppo has no use for search.num_simulations"),
        (["search=puct"], 2, "algorithm=maskable_ppo has no use for search"),
        (["schedule.replay_window=9"], 2, "algorithm=maskable_ppo has no use for schedule.replay_window"),
        (["algorithm=alphazero", "network=small"], 2, "algorithm=alphazero has no use for ppo.num_envs"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(arguments, code, sentence, tmp_path, capsys):
    assert train(*arguments, folder=tmp_path) == code
    printed = capsys.readouterr()
    assert sentence in printed.err
    assert printed.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", ["sb3_contrib", "stable_baselines3.common.logger"])
def test_without_the_extra_a_sentence_says_how_to_get_it(missing, tmp_path, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "experiments.training.maskable_ppo")
    monkeypatch.setitem(sys.modules, missing, None)
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
    assert "\nreplay:" not in printed
    assert cli.main(["train", "--config"]) == cli.DONE
    printed = capsys.readouterr().out
    assert "\nreplay:" in printed
    assert "\nppo:" not in printed


def test_training_that_diverges_says_so_and_keeps_the_last_good_iteration(tmp_path, capsys):
    assert train("schedule.num_iterations=1", "evaluation.opponents=[]", folder=tmp_path) == cli.DONE
    run = tmp_path / "run"
    overrides = ["schedule.num_iterations=2", "ppo.value_weight=1e38"]
    assert cli.main(["train", f"resume={run}", *overrides]) == cli.FAILED
    errors = capsys.readouterr().err
    assert re.search(r"the gradient's norm is (inf|nan) at step 9 ", errors)
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
def test_a_minute_on_6x6_makes_a_policy_that_beats_random(tmp_path, capsys):
    overrides = ["algorithm=maskable_ppo", "evaluation.every=0", "evaluation.opponents=[random]", "name=run"]
    overrides += ["schedule.num_iterations=9"]
    assert cli.main(["train", *overrides, f"runs={tmp_path}"]) == cli.DONE
    lines = metrics_of(tmp_path / "run")
    assert lines[-1]["evaluation/random/score"] >= 0.7  # 200 games, without search
