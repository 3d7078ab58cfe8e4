"""Networks of n-tuples: answers against plain sums over features, symmetries, bytes that come back or are refused."""

import math
import pickle
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save
from scipy.stats import norm

from agents.networks.published import Published, publish
from agents.ntuple.network import TupleNetwork
from agents.ntuple.policy import TupleEvaluator, expected_result
from reversi_env import Position, Variant, random_games
from reversi_env.geometry import SIZES
from reversi_env.symmetry import NUM_SYMMETRIES, transform_policy, transform_position
from tests.agents.tuples_by_hand import answer_by_hand, random_network
from tests.reversi_env.strategies import positions


@cache
def random_evaluator(size: int) -> TupleEvaluator:
    return TupleEvaluator(random_network(size))


def ask(evaluator: TupleEvaluator, position: Position) -> tuple[np.ndarray, float]:
    player, opponent = np.array([position.player]), np.array([position.opponent])
    policy, value = evaluator(player, opponent, position.variant)
    return policy[0], float(value[0])


@settings(max_examples=60, deadline=None)  # plain Python is slow
@given(positions())
def test_an_answer_is_that_of_plain_sums(position: Position) -> None:
    assume(not position.is_over)
    size = position.variant.size
    policy, value = ask(random_evaluator(size), position)
    policy_by_hand, value_by_hand, _ = answer_by_hand(position, random_network(size))
    np.testing.assert_allclose(policy, policy_by_hand, atol=2e-4)
    assert value == pytest.approx(value_by_hand, abs=2e-4)


def test_a_forced_pass_is_certain() -> None:
    position = Position.from_text("XO-XXXXXXXXXXXX- O", Variant(4))
    assert position.must_pass
    policy, _ = ask(random_evaluator(4), position)
    assert policy.tolist() == [0.0] * 16 + [1.0]


def test_the_last_move_tells_the_result() -> None:
    position = Position.from_text("OX-XXXXXXXXXXXXX O", Variant(4))  # 4 to 12
    policy, value = ask(random_evaluator(4), position)
    assert policy[2] == 1
    assert value < 0


@settings(deadline=None)  # a network of some megabytes is made
@given(positions(), st.integers(0, NUM_SYMMETRIES - 1))
def test_a_turned_position_has_the_turned_policy_and_the_same_value(position: Position, symmetry: int) -> None:
    assume(not position.is_over and position.variant.start != "free")
    size = position.variant.size
    policy, value = ask(random_evaluator(size), position)
    turned_policy, turned_value = ask(random_evaluator(size), transform_position(position, symmetry))
    np.testing.assert_allclose(turned_policy, transform_policy(policy, symmetry, size), atol=1e-5)
    assert turned_value == pytest.approx(value, abs=1e-5)


@pytest.mark.parametrize("size", SIZES)
def test_a_new_network_finds_all_moves_alike_and_games_even(size: int) -> None:
    position = Position(Variant(size))
    policy, value = ask(TupleEvaluator(TupleNetwork.new(size)), position)
    assert policy[list(position.legal_moves)].tolist() == [0.25] * 4
    assert policy.sum() == 1
    assert value == 0


def test_a_batch_is_answered_as_its_positions_are() -> None:
    variant = Variant(8)
    games = random_games(Position(variant), 1, seed=1)
    some = [Position(variant)]
    for move in games.moves[0, : games.lengths[0] - 1].tolist():
        some.append(some[-1].play(move))
    policies, values = random_evaluator(8)(
        np.array([position.player for position in some]), np.array([position.opponent for position in some]), variant
    )
    assert policies.dtype == values.dtype == np.float32
    for position, policy, value in zip(some, policies, values, strict=True):
        alone = ask(random_evaluator(8), position)
        assert (policy == alone[0]).all()
        assert value == alone[1]


def test_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="trained on 6×6, and othello has 8 columns"):
        ask(random_evaluator(6), Position(Variant(8)))


@given(st.floats(-64, 64), st.floats(0.5, 30))
def test_an_expected_result_counts_scores_from_minus_one_to_one_as_draws(margin: float, spread: float) -> None:
    found = expected_result(np.float32(margin), np.float32(spread))
    assert found == pytest.approx(norm.sf(1, margin, spread) - norm.cdf(-1, margin, spread), abs=1e-5)


# Bytes


@pytest.mark.parametrize("size", SIZES)
def test_bytes_bring_a_network_back(size: int) -> None:
    network = random_network(size)
    again = TupleNetwork.from_bytes(network.to_bytes())
    assert again.size == size
    for name in ("weights", "logit_per_disc", "spread"):
        assert (getattr(again, name) == getattr(network, name)).all(), name


def test_a_copy_does_not_change_with_its_original() -> None:
    network = TupleNetwork.new(4)
    copy = network.copy()
    for array in (network.weights, network.logit_per_disc, network.spread):
        array += 1
    assert (copy.weights == 0).all()
    assert copy.spread[0] == network.spread[0] - 1
    assert copy.logit_per_disc[0] == network.logit_per_disc[0] - 1


def changed(**arrays: np.ndarray) -> bytes:
    """Returns the bytes of a 4×4 network with other arrays."""
    return save(load(random_network(4).to_bytes()) | arrays)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"nothing of the kind", "is no file of weights"),
        (random_network(4).to_bytes()[:-1], "is no file of weights"),
        (save({"weights": np.zeros(3, np.int16)}), "it holds weights, which is not what n-tuples have"),
        (changed(more=np.zeros(3)), "which is not what n-tuples have"),
        (changed(spread=np.ones(50, np.float32)), "spread has 50 numbers, which fit no board"),
        (changed(spread=np.ones(37, np.float32)), r"weights is int16 \[8, \d+, 2\], expected int16 \[18, \d+, 2\]"),
        (changed(spread=np.zeros(17, np.float32)), "spread holds a number that is not above 0"),
        (changed(spread=np.full(17, np.nan, np.float32)), "spread holds a number that is not finite"),
        (changed(logit_per_disc=np.zeros(17)), r"logit_per_disc is float64 \[17\], expected float32 \[17\]"),
        (changed(weights=np.zeros((2, 3, 2), np.float32)), r"weights is float32 \[2, 3, 2\], expected int16"),
    ],
)
def test_other_bytes_are_refused_with_the_fault(content: bytes, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        TupleNetwork.from_bytes(content)


def test_weights_that_are_not_finite_are_no_network() -> None:
    weights = np.full_like(random_network(4).weights, math.inf)
    with pytest.raises(ValueError, match="weights holds a number that is not finite"):
        TupleNetwork(weights, random_network(4).logit_per_disc, random_network(4).spread)


def test_what_is_published_answers_as_the_network_does() -> None:
    position = Position(Variant(6))
    published = publish(random_network(6), position.variant)
    assert (published.backend, published.data) == ("tuples", random_network(6).to_bytes())
    sent = pickle.loads(pickle.dumps(published))
    player, opponent = np.array([position.player]), np.array([position.opponent])
    policy, value = sent.evaluator()(player, opponent, position.variant)
    assert (policy[0] == ask(random_evaluator(6), position)[0]).all()
    assert value[0] == ask(random_evaluator(6), position)[1]
    with pytest.raises(ValueError, match="are not those that were sent"):
        Published(published.backend, published.data[:-1], digest=published.digest).evaluator()
