"""The learner of n-tuples: gradients against finite differences, symmetries, sets learned by heart, going on."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import norm

from agents.ntuple.network import MARGIN, POLICY, TupleNetwork
from agents.ntuple.policy import TupleEvaluator
from experiments.training.interruption import Interrupted
from experiments.training.replay import Replay, ReplayConfig, Samples
from experiments.training.tuple_learner import TupleLearner, TupleLearnerConfig
from reversi_env import Position, Variant
from reversi_env.symmetry import square_map, transform_policy, transform_position
from tests.agents.tuples_by_hand import Numbers, answer_by_hand, random_network, sums_by_hand, weights_by_hand
from tests.experiments.played import samples_of

COMMON = 4  # stages that share their weights at first
SMALL, OTHERS = Variant(4), [Variant(6, goal="fewest"), Variant(8), Variant(10)]


def replay_of(samples: Samples, variant: Variant) -> Replay:
    replay = Replay(variant, ReplayConfig())
    replay.add(samples)
    return replay


def learner_of(network: TupleNetwork, **changes: float) -> TupleLearner:
    return TupleLearner(network, TupleLearnerConfig(**{"batch_size": 1, "samples_per_position": 1e9} | changes))


def learn(learner: TupleLearner, replay: Replay, num_steps: int = 1, seed: int = 0) -> dict[str, float]:
    return learner.learn(replay, num_steps, 0.0, np.random.default_rng(seed), lambda: None)


def common(weights: np.ndarray) -> np.ndarray:
    """Returns weights by stage that are those of the first of each few stages."""
    return weights[np.arange(len(weights)) // COMMON * COMMON]


def common_network(size: int) -> TupleNetwork:
    network = random_network(size).copy()
    network.weights[:] = common(network.weights)
    return network


def slow(network: TupleNetwork, margins: float, policies: float, **changes: float) -> TupleLearner:
    """Returns a learner whose weights have moved so much that a step is a small one in proportion to the gradient."""
    learner = learner_of(network, learning_rate=0.5, **changes)
    tensors = learner.tensors()
    tensors["moved"][..., MARGIN] = margins
    tensors["moved"][..., POLICY] = policies
    tensors["logit_moved"][:] = policies
    learner.load_tensors(tensors, 0)
    return learner


def one(variant: Variant, num_plies: int, **changes: object) -> tuple[Position, Samples]:
    """Returns the next position of a game, after so many plies, that has a choice, and a sample of it."""
    positions, _, samples = samples_of(variant, 1, seed=3)
    row = next(row for row in range(num_plies, len(positions)) if len(positions[row].legal_moves) > 1)
    return positions[row], Samples(**{**samples.at(slice(row, row + 1)).arrays(), **changes})


# Gradients


@pytest.mark.parametrize("variant", [SMALL, *OTHERS])
def test_a_policy_moves_along_the_gradient_of_its_cross_entropy(variant: Variant) -> None:
    weight = 0.5
    position, sample = one(variant, 7, policy_weight=np.array([weight], np.float16))
    network = common_network(variant.size)
    before = network.copy()
    learn(slow(network, 1e12, 1e4), replay_of(sample, variant))
    change = (network.weights - before.weights)[..., POLICY]

    def loss(weights: np.ndarray, slopes: np.ndarray) -> float:
        policy, _, _ = answer_by_hand(position, Numbers(common(weights), slopes, before.spread))
        legal = list(position.legal_moves)
        return float(-weight * sample.policy[0, legal].astype(np.float64) @ np.log(policy[legal]))

    weights, slopes = before.weights.astype(np.float64), before.logit_per_disc.astype(np.float64)
    stage, first = weights_by_hand(position.play(position.legal_moves[0]))
    base = stage // COMMON * COMMON
    touched = np.flatnonzero(change[base])
    assert set(first[3:]) & set(touched)
    rng = np.random.default_rng(0)
    for place in {*rng.choice(touched, 12).tolist(), *rng.integers(weights.shape[1], size=3).tolist()}:
        gradient = slope_at(lambda x, place=place: loss(moved(weights, (base, place, POLICY), x), slopes))
        assert change[base, place] == pytest.approx(-0.25 * gradient / 100, rel=0.02, abs=4e-6)
    gradient = slope_at(lambda x: loss(weights, moved(slopes, (position.num_empties,), x)))
    change_of_slope = network.logit_per_disc - before.logit_per_disc
    assert change_of_slope[position.num_empties] == pytest.approx(-0.01 * gradient / 100, rel=0.02)
    assert np.count_nonzero(change_of_slope) == 1


def moved(array: np.ndarray, place: tuple[int, ...], by: float) -> np.ndarray:
    array = array.copy()
    array[place] += by
    return array


def slope_at(function: Callable[[float], float], step: float = 1e-3) -> float:
    return (function(step) - function(-step)) / (2 * step)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("variant", [SMALL, *OTHERS])
def test_a_margin_moves_towards_the_score_and_the_value_of_the_search(variant: Variant, share: float) -> None:
    position, sample = one(variant, 7, value=np.array([-0.75], np.float16), policy_weight=np.zeros(1, np.float16))
    network = common_network(variant.size)
    before = network.copy()
    learn(slow(network, 1e8, 1e8, search_value_share=share), replay_of(sample, variant))

    margin, spread = sums_by_hand(position, before)[MARGIN], float(before.spread[position.num_empties])
    value = norm.sf(1, margin, spread) - norm.cdf(-1, margin, spread)
    error = (1 - share) * (float(sample.score[0]) - margin) + share * spread * np.sqrt(np.pi / 2) * (-0.75 - value)
    stage, places = weights_by_hand(position)
    times = np.bincount(places, minlength=before.weights.shape[1])
    change = (network.weights - before.weights)[stage]
    np.testing.assert_allclose(change[:, MARGIN], times * 0.5 * error / 1e4, rtol=0.01, atol=1e-6)
    assert not change[:, POLICY].any()
    assert (network.logit_per_disc == before.logit_per_disc).all()
    assert (network.spread == before.spread).all()


@pytest.mark.parametrize("variant", [SMALL, *OTHERS])
def test_a_turned_position_teaches_the_same(variant: Variant) -> None:
    positions, _, samples = samples_of(variant, 1, seed=4)
    size = variant.size
    turned = [transform_position(position, 5) for position in positions]
    other = Samples(
        **{
            **samples.arrays(),
            "player": np.array([position.player for position in turned]),
            "opponent": np.array([position.opponent for position in turned]),
            "policy": transform_policy(samples.policy, 5, size),
        }
    )
    assert square_map(5, size)[1] != 1
    learned = [TupleNetwork.new(size), TupleNetwork.new(size)]
    for network, some in zip(learned, (samples, other), strict=True):
        learn(slow(network, 1e4, 1e4, batch_size=64), replay_of(some, variant), num_steps=3)
    assert np.abs(learned[0].weights).max(axis=(0, 1)).min() > 1e-3
    for name in ("weights", "logit_per_disc", "spread"):  # moves come in another order, which rounds otherwise
        np.testing.assert_allclose(getattr(learned[0], name), getattr(learned[1], name), atol=1e-5, err_msg=name)


# Learning


def test_a_few_positions_are_learned_by_heart() -> None:
    positions, _, samples = samples_of(Variant(6), 2, seed=1)
    learned = [row for row, position in enumerate(positions) if position.num_empties < 28]  # before, moves are images
    samples = samples.at(np.array(learned))
    policy = (samples.policy == samples.policy.max(axis=1, keepdims=True)).astype(np.float16)
    samples = Samples(**{**samples.arrays(), "policy": policy})
    network = TupleNetwork.new(6)
    learner = learner_of(network, batch_size=256, search_value_share=0.0)
    first = learn(learner, replay_of(samples, Variant(6)))
    for seed in range(20):
        last = learn(learner, replay_of(samples, Variant(6)), 5, seed)
    assert last["train/policy_loss"] < min(0.05, 0.1 * first["train/policy_loss"])
    assert last["train/policy_accuracy"] > 0.99
    assert last["train/steps"] == learner.num_steps == 101

    policies, _ = TupleEvaluator(learner.averaged())(samples.player, samples.opponent, Variant(6))
    assert np.log((policy * policies).sum(axis=1)).mean() > -0.05
    margins = [sums_by_hand(positions[row], network)[MARGIN] for row in learned]
    assert np.sqrt(np.mean((samples.score - margins) ** 2)) < 0.1


def test_metrics_tell_what_the_network_says_of_the_positions() -> None:
    variant = Variant(6)
    positions, _, samples = samples_of(variant, 4, seed=2)
    replay = replay_of(samples, variant)
    network = common_network(6)
    learner = learner_of(network.copy(), batch_size=40, learning_rate=1e-12, final_learning_rate=1e-12)
    metrics = learn(learner, replay, seed=5)
    drawn = replay.draw_samples(40, np.random.default_rng(5))
    by_boards = {(tuple(p.player), tuple(p.opponent)): p for p in positions}
    numbers = []
    for row in range(40):
        position = by_boards[tuple(drawn.player[row].tolist()), tuple(drawn.opponent[row].tolist())]
        if len(position.legal_moves) > 1:
            policy, value, margin = answer_by_hand(position, network)
            legal = list(position.legal_moves)
            target = drawn.policy[row, legal].astype(np.float64)
            numbers.append(
                [
                    -target @ np.log(policy[legal]),
                    -policy[legal] @ np.log(policy[legal]),
                    policy[legal].argmax() == target.argmax(),
                    (drawn.score[row] - margin) ** 2,
                    (drawn.result[row] - value) ** 2,
                ]
            )
    loss, entropy, accuracy, square, value_loss = np.mean(numbers, axis=0)
    assert metrics["train/policy_loss"] == pytest.approx(loss, rel=1e-3)
    assert metrics["train/policy_entropy"] == pytest.approx(entropy, rel=1e-3)
    assert metrics["train/policy_accuracy"] == pytest.approx(accuracy)
    assert metrics["train/margin_error"] == pytest.approx(np.sqrt(square), rel=1e-3)
    assert metrics["train/value_loss"] == pytest.approx(value_loss, rel=0.02)  # the spreads move meanwhile


def test_the_spread_is_a_running_mean_of_squared_errors() -> None:
    position, sample = one(Variant(4), 5)
    assert len(position.legal_moves) > 1
    network = common_network(4)
    first, margin = float(network.spread[position.num_empties]), answer_by_hand(position, network)[2]
    learn(slow(network, 1e20, 1e20), replay_of(sample, Variant(4)), num_steps=300)
    error = float(sample.score[0]) - margin
    expected = np.sqrt(error**2 + (first**2 - error**2) * 0.998**300)
    assert network.spread[position.num_empties] == pytest.approx(expected, rel=1e-3)


def test_stages_go_their_own_ways_once_there_is_enough_to_learn_from() -> None:
    variant = Variant(6)
    replay = replay_of(samples_of(variant, 8, seed=1)[2], variant)
    network = TupleNetwork.new(6)
    learner = learner_of(network, batch_size=256)
    learn(learner, replay)
    assert (network.weights == common(network.weights)).all()
    assert (network.weights[0] != network.weights[COMMON]).any()
    replay.num_positions = 10_000_000
    learn(learner, replay)
    assert (network.weights[0] != network.weights[1]).any()


def test_what_was_moved_fades_with_its_positions() -> None:
    _, sample = one(Variant(4), 5)
    learner = learner_of(TupleNetwork.new(4), samples_per_position=4.0)
    tensors = learner.tensors()
    tensors["moved"][:] = 1000
    learner.load_tensors(tensors, 0)
    learn(learner, replay_of(sample, Variant(4)), num_steps=3)  # three of four draws of the only position
    assert learner.tensors()["moved"].min() == pytest.approx(250)


def test_without_positions_nothing_is_learned() -> None:
    learner = learner_of(TupleNetwork.new(4))
    assert learn(learner, Replay(Variant(4), ReplayConfig())) == {}
    assert learn(learner, replay_of(one(Variant(4), 5)[1], Variant(4)), num_steps=0) == {}
    assert learner.num_steps == 0


def test_a_stop_is_heard_before_each_step() -> None:
    learner = learner_of(TupleNetwork.new(4))
    calls = iter([None, None, Interrupted()])

    def check() -> None:
        if (error := next(calls)) is not None:
            raise error

    with pytest.raises(Interrupted):
        learner.learn(replay_of(one(Variant(4), 5)[1], Variant(4)), 9, 0.0, np.random.default_rng(0), check)
    assert learner.num_steps == 2


# Going on


def test_a_learner_goes_on_as_if_it_had_never_stopped() -> None:
    replay = replay_of(samples_of(Variant(6), 4, seed=1)[2], Variant(6))
    unbroken = learner_of(TupleNetwork.new(6), batch_size=100)
    learn(unbroken, replay, 2, seed=1)
    saved = unbroken.tensors()
    learn(unbroken, replay, 2, seed=2)
    resumed = learner_of(TupleNetwork.new(6), batch_size=100)
    resumed.load_tensors(saved, 2)
    learn(resumed, replay, 2, seed=2)
    assert resumed.num_steps == unbroken.num_steps == 4
    assert resumed.averaged().to_bytes() == unbroken.averaged().to_bytes()
    for name, tensor in unbroken.tensors().items():
        assert (tensor == resumed.tensors()[name]).all(), name


@pytest.mark.parametrize(
    ("name", "change", "fault"),
    [
        ("weights", lambda tensor: tensor[:1], "has a weights that does not fit"),
        ("moved", lambda tensor: tensor.double(), "has a moved that does not fit"),
        ("moved", lambda tensor: tensor - 1, "has a moved that no training leaves, below 0"),
        ("logit_moved", lambda tensor: tensor - 1, "has a logit_moved that no training leaves, below 0"),
        ("spread", lambda tensor: tensor * 0, "has a spread that no training leaves, below 0.5"),
        ("logit_per_disc", lambda tensor: tensor * float("nan"), "has a logit_per_disc that is not finite"),
    ],
)
def test_tensors_that_no_learner_left_are_refused(name: str, change: Callable, fault: str) -> None:
    learner = learner_of(TupleNetwork.new(4))
    tensors = learner.tensors()
    with pytest.raises(ValueError, match=fault):
        learner.load_tensors(tensors | {name: change(tensors[name])}, 3)
    with pytest.raises(ValueError, match=f"has no {name}"):
        learner.load_tensors({key: tensor for key, tensor in tensors.items() if key != name}, 3)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"batch_size": 0}, "batch_size must be from 1"),
        ({"learning_rate": 2.0}, "learning_rate must be above 0"),
        ({"search_value_share": 1.5}, "search_value_share must be from 0 to 1"),
        ({"samples_per_position": float("inf")}, "samples_per_position must be above 0 and finite"),
    ],
)
def test_a_configuration_that_makes_no_sense_says_so(changes: dict[str, float], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        TupleLearnerConfig(**changes)
