"""Gumbel roots and the rule below them, against a plain tree of Python objects."""

import math
from dataclasses import replace

import numpy as np
import pytest

from agents.mcts import MCTSConfig
from agents.mcts.gumbel import wanted_visits
from reversi_env import Position, Variant
from tests.agents.plain_trees import (
    VARIANTS,
    PlainNode,
    evaluate_by_hash,
    improved_policy,
    plain_gumbel,
    positions_of_random_games,
    search,
)

GUMBEL = MCTSConfig(root="gumbel", proves=False)


def assert_same(found, index, root, move, config, variant):
    """Compares a search's answer with a plain root and the move to play from there."""
    expected = np.zeros(variant.num_actions, np.int32)
    policy = np.zeros(variant.num_actions)
    for edge in root.edges:
        expected[edge.move] = edge.visits
    for action, share in improved_policy(root, config).items():
        policy[action] = share
    np.testing.assert_array_equal(found.visit_count[index], expected, err_msg=str(root.position))
    np.testing.assert_allclose(found.policy[index], policy, atol=1e-5, err_msg=str(root.position))
    mean = sum(float(edge.total) for edge in root.edges) / root.num_visits
    assert found.value[index] == pytest.approx(mean, abs=1e-5)
    assert found.move[index] == move


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_visits_values_and_policy_are_those_of_a_plain_tree(variant):
    positions = [position for seed in (3, 17) for position in positions_of_random_games(variant, 2, seed)]
    for num_simulations, considered_moves in ((1, 16), (7, 4), (32, 16), (90, 8)):
        config = replace(GUMBEL, num_simulations=num_simulations, considered_moves=considered_moves)
        found = search(positions, config, evaluate_by_hash)
        for index, position in enumerate(positions):
            root, move = plain_gumbel(position, config)
            assert_same(found, index, root, move, config, variant)


def test_values_that_count_much_are_still_told_apart():
    # (50 + 500) · 3 times a difference of values is beyond what an exponential can hold.
    config = replace(GUMBEL, num_simulations=1000, value_scale=3.0)
    positions = list(positions_of_random_games(Variant(4), 3, 2))
    found = search(positions, config, evaluate_by_hash)
    for index, position in enumerate(positions):
        root, move = plain_gumbel(position, config)
        assert_same(found, index, root, move, config, position.variant)


@pytest.mark.parametrize("num_considered", [1, 2, 3, 5, 8, 13, 16, 33, 64])
@pytest.mark.parametrize("num_simulations", [1, 3, 16, 32, 200, 1000])
def test_every_simulation_goes_where_sequential_halving_sends_it(num_considered, num_simulations):
    num_phases = max(1, math.ceil(math.log2(num_considered)))
    visits = [0] * num_considered  # of the moves, the best first: it stays the best
    expected = []
    num_left = num_considered
    while len(expected) < num_simulations:
        for _ in range(max(1, num_simulations // (num_phases * num_left))):
            for move in range(num_left):
                expected.append(visits[move])
                visits[move] += 1
        num_left = max(2, num_left // 2) if num_considered > 1 else 1
    wanted = [wanted_visits(num_considered, num_simulations, index) for index in range(num_simulations)]
    assert wanted == expected[:num_simulations]


def test_moves_are_sampled_without_replacement_in_proportion_to_their_priors():
    # With values of no account and a simulation for each of two moves: Gumbel's top two, which are draws in proportion
    # to the priors, the second from what the first left. Kool et al. 2019 (arXiv:1903.06059), section 3.
    position, num_games = Position("othello-4x4"), 4000
    config = replace(GUMBEL, num_simulations=2, considered_moves=2, gumbel_scale=1.0)
    root = PlainNode(position)
    root.simulate(lambda node: node.edges[0])
    prior = {edge.move: float(edge.prior) for edge in root.edges}
    found = search(
        [position] * num_games, config, evaluate_by_hash, [np.random.default_rng(n) for n in range(num_games)]
    )
    assert (found.visit_count.max(axis=1) == 1).all()
    for move, share in prior.items():
        as_second = sum(first * share / (1 - first) for other, first in prior.items() if other != move)
        expected = num_games * (share + as_second)
        drawn = found.visit_count[:, move].sum()
        assert abs(drawn - expected) <= 4 * math.sqrt(expected * (1 - expected / num_games)), move


def test_a_batch_of_leaves_leaves_the_budget_and_the_considered_moves_as_they_are():
    positions = list(positions_of_random_games(Variant(), 4, 20))
    config = replace(GUMBEL, num_simulations=64, considered_moves=4, leaves_per_call=8)
    found = search(positions, config, evaluate_by_hash)
    for index, position in enumerate(positions):
        assert found.visit_count[index].sum() == 64
        assert np.count_nonzero(found.visit_count[index]) == min(4, len(position.legal_moves))
