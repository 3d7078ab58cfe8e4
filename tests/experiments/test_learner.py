"""The learner: what it makes smaller, how its average and its rate go, and that it goes on as if never stopped."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from agents.networks.residual import Heads, ResidualConfig, ResidualNetwork
from experiments.training.interruption import TrainingError
from experiments.training.learner import LearnerConfig, ResidualLearner, losses, targets_of
from experiments.training.replay import Replay, ReplayConfig
from reversi_env import Variant
from tests.experiments.played import samples_of

CPU = torch.device("cpu")
SMALL = ResidualConfig(4, 1, 2)
BRIEF = LearnerConfig(batch_size=8, warmup_steps=0)


def filled_replay(name="othello-4x4", num_games=4):
    variant = Variant.named(name)
    _, _, samples = samples_of(variant, num_games, seed=1)
    rng = np.random.default_rng(2)
    samples = replace(
        samples,
        value=rng.uniform(-1, 1, len(samples)).astype(np.float16),
        policy_weight=rng.choice([0, 0.25, 1], len(samples)).astype(np.float16),
    )
    replay = Replay(variant, ReplayConfig())
    replay.add(samples)
    return replay


def learner_of(config=BRIEF, sizes=SMALL):
    torch.manual_seed(0)
    return ResidualLearner(ResidualNetwork(sizes), config)


def learn(learner, replay, num_steps, seed, progress=0.0):
    return learner.learn(replay, num_steps, progress, np.random.default_rng(seed), lambda: None)


# What is made smaller


def random_heads(batch, rng):
    num_rows, num_actions = batch.legal.shape
    shapes = [(num_rows, num_actions), (num_rows, 3), (num_rows,), (num_rows, num_actions - 1)]
    return [rng.normal(size=shape) * 2 for shape in shapes]


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_losses_are_those_of_the_formulas(share):
    rng = np.random.default_rng(3)
    batch = filled_replay("othello-6x6").draw(40, rng)
    policy_logits, result_logits, margin, owner_logits = random_heads(batch, rng)
    config = LearnerConfig(search_value_share=share, result_weight=0.5, margin_weight=3, owner_weight=0.25)
    heads = Heads(*(torch.tensor(head) for head in (policy_logits, result_logits, margin, owner_logits)))
    loss, numbers = losses(heads, targets_of(batch, share, CPU), config)
    # By hand, a position at a time.
    policy_terms, entropies, result_terms, errors, margin_terms, owner_terms = [], [], [], [], [], []
    for row in range(40):
        legal = np.flatnonzero(batch.legal[row])
        odds = np.exp(policy_logits[row, legal])
        chances = odds / odds.sum()
        policy_terms.append(-np.sum(batch.policy[row, legal].astype(float) * np.log(chances)))
        entropies.append(-np.sum(chances * np.log(chances)))
        win, draw, loss_ = np.exp(result_logits[row]) / np.exp(result_logits[row]).sum()
        result, value = int(batch.result[row]), float(batch.value[row])
        target = (1 - share) * np.array([result == 1, result == 0, result == -1]) + share * np.array(
            [(1 + value) / 2, 0, (1 - value) / 2]
        )
        result_terms.append(-np.sum(target * np.log([win, draw, loss_])))
        errors.append((win - loss_ - (1 - share) * result - share * value) ** 2)
        margin_terms.append((margin[row] - batch.score[row] / 36) ** 2)
        is_ours = (1 + np.tanh(owner_logits[row])) / 2
        ours = np.array([{1: 1.0, -1: 0.0, 0: 0.5}[owner] for owner in batch.owner[row].tolist()])
        owner_terms.append(np.mean(-ours * np.log(is_ours) - (1 - ours) * np.log(1 - is_ours)))
    weights = batch.policy_weight.astype(float)
    expected = {
        "policy loss": np.average(policy_terms, weights=weights),
        "policy entropy": np.mean(entropies),
        "result loss": np.mean(result_terms),
        "value loss": np.mean(errors),
        "margin loss": np.mean(margin_terms),
        "owner loss": np.mean(owner_terms),
    }
    for name, number in expected.items():
        assert numbers[name].item() == pytest.approx(number, rel=1e-3), name  # the targets are float16
    assert loss.item() == pytest.approx(
        expected["policy loss"]
        + 0.5 * expected["result loss"]
        + 3 * expected["margin loss"]
        + 0.25 * expected["owner loss"],
        rel=1e-3,
    )


def test_a_policy_without_weight_teaches_no_policy():
    batch = filled_replay().draw(32, np.random.default_rng(3))
    heads = [torch.tensor(head, requires_grad=True) for head in random_heads(batch, np.random.default_rng(4))]
    loss, numbers = losses(
        Heads(*heads),
        targets_of(replace(batch, policy_weight=np.zeros(32, np.float16)), 0.0, CPU),
        LearnerConfig(result_weight=0, margin_weight=0, owner_weight=0),
    )
    loss.backward()
    assert numbers["policy loss"].item() == 0
    assert all((head.grad == 0).all() for head in heads)


def test_the_learner_fits_what_it_is_shown():
    config = LearnerConfig(batch_size=64, learning_rate=0.01, averaging_steps=10)
    learner = learner_of(config, ResidualConfig(16, 2, 8))
    replay = filled_replay()
    first = learn(learner, replay, 5, seed=1)
    for seed in range(10):
        last = learn(learner, replay, 20, seed)
    policies, weights = (array.astype(float) for part in replay.parts() for array in (part.policy, part.policy_weight))
    entropies = -np.sum(policies * np.log(np.where(policies > 0, policies, 1)), axis=1)
    least = np.average(entropies, weights=weights)
    assert least - 0.05 < last["train/policy_loss"] < least + 0.5 * (first["train/policy_loss"] - least)
    for head in ("value", "result", "margin", "owner"):
        assert last[f"train/{head}_loss"] < 0.7 * first[f"train/{head}_loss"], head
    assert last["train/steps"] == learner.num_steps == 205


def test_sgd_fits_too():
    learner = learner_of(LearnerConfig(batch_size=64, optimizer="sgd", learning_rate=0.1), ResidualConfig(16, 2, 8))
    replay = filled_replay()
    first, *_, last = (learn(learner, replay, 20, seed) for seed in range(6))
    assert last["train/loss"] < 0.8 * first["train/loss"]


def test_the_gradient_is_clipped():
    replay, config = filled_replay(), replace(BRIEF, optimizer="sgd", learning_rate=1.0, weight_decay=0.0)
    before = learner_of().network.state_dict()
    for most, is_near in ((1e-6, True), (1e6, False)):
        learner = learner_of(replace(config, max_gradient_norm=most))
        norm = learn(learner, replay, 1, seed=0)["train/gradient_norm"]
        assert norm > 1e-3  # told as it was before
        after = learner.network.state_dict()
        moved = max((after[name] - before[name]).abs().max().item() for name, _ in learner.network.named_parameters())
        assert (moved < 3e-6) == is_near  # Nesterov's first step is 1.9 times the gradient


# Rates


def test_the_learning_rate_follows_half_a_cosine_after_a_warm_up():
    replay = filled_replay()
    learner = learner_of()
    rates = [learn(learner, replay, 1, 0, progress)["train/learning_rate"] for progress in (0, 0.5, 1)]
    assert rates == pytest.approx([2e-3, 1.1e-3, 2e-4])
    learner = learner_of(replace(BRIEF, warmup_steps=4))
    rates = [learn(learner, replay, 1, 0)["train/learning_rate"] for _ in range(6)]
    assert rates == pytest.approx([0.5e-3, 1e-3, 1.5e-3, 2e-3, 2e-3, 2e-3])


# The average


def test_the_average_is_that_of_the_formula_statistics_of_batch_norms_included():
    replay, config = filled_replay(), replace(BRIEF, averaging_steps=3)
    learner = learner_of(config)
    expected = {}
    for step in range(1, 41):
        learn(learner, replay, 1, seed=step)
        share = max(1 / 3, 10 / (step + 9))
        for name, tensor in learner.network.state_dict().items():
            new = tensor.double()
            expected[name] = new if step == 1 else (1 - share) * expected[name] + share * new
    averaged, last = learner.averaged().state_dict(), learner.network.state_dict()
    for name in last:
        if not name.endswith("num_batches_tracked"):  # which matters to nobody
            torch.testing.assert_close(averaged[name].double(), expected[name], rtol=1e-5, atol=1e-7)
    assert any((averaged[name] != last[name]).any() for name in last)


def test_an_average_over_one_step_is_the_network():
    learner = learner_of(replace(BRIEF, averaging_steps=1))
    before = learner.averaged()
    for name, tensor in learner.network.state_dict().items():
        assert torch.equal(before.state_dict()[name], tensor)
    learn(learner, filled_replay(), 3, seed=0)
    for name, tensor in learner.averaged().state_dict().items():
        if not name.endswith("num_batches_tracked"):
            assert torch.equal(learner.network.state_dict()[name], tensor), name


def test_learning_changes_no_network_that_was_handed_out():
    learner, replay = learner_of(), filled_replay()
    learn(learner, replay, 2, seed=0)
    handed, tensors = learner.averaged(), learner.tensors()
    before = {name: tensor.clone() for name, tensor in {**handed.state_dict(), **tensors}.items()}
    learn(learner, replay, 2, seed=0)
    for name, tensor in {**handed.state_dict(), **tensors}.items():
        assert torch.equal(tensor, before[name])
    assert not handed.training
    assert not any(parameter.requires_grad for parameter in handed.parameters())


# Going on


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_a_learner_that_was_saved_goes_on_bit_by_bit(optimizer):
    config = replace(BRIEF, optimizer=optimizer, warmup_steps=6, averaging_steps=2)
    sizes = ResidualConfig(12, 2, 6)  # wide enough for arithmetic in vectors, and some numbers left over
    replay = filled_replay("othello-6x6")
    one = learner_of(config, sizes)
    for seed in range(4):
        if seed == 2:
            torch.manual_seed(99)
            two = ResidualLearner(ResidualNetwork(sizes), config)
            two.load_tensors(load(save({name: tensor.contiguous() for name, tensor in one.tensors().items()})), 6)
        if seed >= 2:
            learn(two, replay, 3, seed)
        learn(one, replay, 3, seed)
    assert one.num_steps == two.num_steps == 12
    tensors = one.tensors()
    for name, tensor in two.tensors().items():
        assert torch.equal(tensor, tensors[name]), name
    for name, tensor in two.averaged().state_dict().items():
        assert torch.equal(tensor, one.averaged().state_dict()[name])


@pytest.mark.parametrize(
    ("name", "tensor", "sentence"),
    [
        ("optimizer.0.exp_avg", torch.zeros(1), r"the optimizer's state after step 2 has a 0\.exp_avg that does not"),
        ("optimizer.99.step", torch.zeros(()), r"the optimizer's state after step 2 has 99\.step, which belongs to"),
        ("optimizer.0.step", None, r"the optimizer's state after step 2 has no 0\.step"),
        ("network.result.bias", torch.zeros(2), r"the learner's network has a result\.bias that does not fit"),
        ("network.result.bias", torch.full((3,), torch.nan), r"a result\.bias that is not finite"),
        (
            "network.result.bias",
            torch.zeros(3, dtype=torch.double),
            r"a result\.bias that does not fit",
        ),
        ("average.result.bias", None, r"the learner's average has no result\.bias"),
        ("replay.rounds", torch.zeros(1), "which belongs neither to network nor to average nor to optimizer"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(name, tensor, sentence):
    learner = learner_of()
    learn(learner, filled_replay(), 2, seed=0)
    tensors = learner.tensors()
    if tensor is None:
        del tensors[name]
    else:
        tensors[name] = tensor
    with pytest.raises(ValueError, match=sentence):
        learner_of().load_tensors(tensors, 2)


def test_nothing_is_learned_from_nothing():
    variant = Variant.named("othello-4x4")
    learner = learner_of()
    assert learn(learner, Replay(variant, ReplayConfig()), 3, seed=0) == {}
    assert learn(learner, filled_replay(), 0, seed=0) == {}
    assert learner.num_steps == 0


def test_it_is_looked_before_each_step_whether_to_stop():
    class StopError(Exception):
        pass

    def check():
        if learner.num_steps == 3:
            raise StopError

    learner = learner_of()
    with pytest.raises(StopError):
        learner.learn(filled_replay(), 10, 0.0, np.random.default_rng(0), check)
    assert learner.num_steps == 3


# What fails


def test_numbers_that_are_none_end_training_with_a_sentence():
    replay = filled_replay()
    learner = learner_of()
    with torch.no_grad():
        learner.network.pass_logit.bias.fill_(float("nan"))  # which no loss sees where nobody must pass
    with pytest.raises(TrainingError, match=r"finite at step 1 |the loss is nan at step 1 "):
        learn(learner, replay, 1, seed=0)
    learner = learner_of()
    with torch.no_grad():
        learner.network.result.bias.fill_(float("nan"))
    with pytest.raises(TrainingError, match=r"the loss is nan at step 1 .* lower learner.learning_rate"):
        learn(learner, replay, 1, seed=0)
    learner = learner_of(replace(BRIEF, margin_weight=1e38))
    with pytest.raises(TrainingError, match=r"the gradient norm is inf at step 1 "):
        learn(learner, replay, 1, seed=0)


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ({"batch_size": 1}, "batch_size must be from 2"),
        ({"optimizer": "adam"}, "unknown optimizer 'adam'; did you mean adamw"),
        ({"compile": "sometimes"}, "unknown choice of compile 'sometimes'"),
        ({"learning_rate": 2}, "learning_rate must be above 0 and at most 1"),
        ({"momentum": 1}, "momentum must be above 0 and below 1"),
        ({"owner_weight": -1}, "owner_weight must be at least 0"),
        ({"search_value_share": 1.5}, "search_value_share must be from 0 to 1"),
        ({"averaging_steps": 0}, "averaging_steps must be at least 1"),
        ({"warmup_steps": -1}, "warmup_steps must be at least 0"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused(fault, sentence):
    with pytest.raises(ValueError, match=sentence):
        LearnerConfig(**fault)


# Devices


def test_a_learner_takes_its_batches_to_where_its_network_is():
    # No device but the CPU can be counted on; "meta", which computes nothing, still refuses tensors of another device.
    learner = ResidualLearner(ResidualNetwork(SMALL).to("meta"), BRIEF)
    with pytest.raises(RuntimeError, match=r"meta tensor"):  # at the first number that is read back, not before
        learn(learner, filled_replay(), 1, seed=0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device here")
@pytest.mark.parametrize("compiled", ["auto", "never"])
def test_a_gpu_learns_what_the_cpu_learns(compiled):
    replay = filled_replay("othello-6x6", 20)
    config, sizes = replace(BRIEF, batch_size=64, compile=compiled), ResidualConfig(16, 2, 8)
    slow = learner_of(config, sizes)
    fast = ResidualLearner(learner_of(config, sizes).network.to("cuda"), config)
    for seed in range(2):
        one, two = (learn(learner, replay, 5, seed) for learner in (slow, fast))
        for name in one:
            assert two[name] == pytest.approx(one[name], rel=0.05), name  # bfloat16 has eight bits
    again = ResidualLearner(learner_of(config, sizes).network.to("cuda"), config)
    again.load_tensors({name: tensor.cpu() for name, tensor in fast.tensors().items()}, fast.num_steps)
    assert learn(again, replay, 5, 7)["train/loss"] == pytest.approx(learn(fast, replay, 5, 7)["train/loss"], rel=1e-3)
    assert fast.averaged().result.bias.device.type == "cuda"
