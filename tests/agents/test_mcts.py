"""Search by PUCT against a plain tree of Python objects, and the player that searches."""

import math
from dataclasses import replace

import numpy as np
import pytest

from agents.mcts import MCTSAgent, MCTSConfig, choose_move
from agents.mcts.walking import select_leaves
from reversi_env import Position, Variant
from tests.agents.plain_trees import (
    VARIANTS,
    evaluate_as_even,
    evaluate_by_hash,
    plain_puct,
    positions_of_random_games,
    pruned_visits,
    search,
)


def visits_of(root, variant):
    visits = np.zeros(variant.num_actions, np.int32)
    for edge in root.edges:
        visits[edge.move] = edge.visits
    return visits


@pytest.mark.parametrize("first_play_reduction", [0.0, 0.4])
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_visits_are_those_of_a_plain_tree(variant, first_play_reduction):
    positions = [position for seed in (3, 17, 40) for position in positions_of_random_games(variant, 2, seed)]
    config = MCTSConfig(num_simulations=120, puct_constant=1.7, first_play_reduction=first_play_reduction, proves=False)
    found = search(positions, config, evaluate_by_hash)
    for index, position in enumerate(positions):
        root = plain_puct(position, config)
        expected = visits_of(root, variant)
        np.testing.assert_array_equal(found.visit_count[index], expected, err_msg=str(position))
        np.testing.assert_allclose(found.policy[index], expected / expected.sum(), atol=1e-6)
        mean = sum(float(edge.total) for edge in root.edges) / config.num_simulations
        assert found.value[index] == pytest.approx(mean, abs=1e-5)


@pytest.mark.parametrize("forced_playouts", [2.0, 30.0])
def test_playouts_are_forced_and_taken_off_the_policy_as_in_a_plain_tree(forced_playouts):
    num_fewer = 0
    for variant in VARIANTS:
        positions = list(positions_of_random_games(variant, 3, 9))
        config = MCTSConfig(num_simulations=150, forced_playouts=forced_playouts, proves=False)
        rngs = [np.random.default_rng(0) for _ in positions]  # where a search has noise, be it of no weight
        found = search(positions, config, evaluate_by_hash, rngs)
        for index, position in enumerate(positions):
            root = plain_puct(position, config)
            expected, kept = visits_of(root, variant), np.zeros(variant.num_actions)
            kept[list(pruned_visits(root, config))] = list(pruned_visits(root, config).values())
            np.testing.assert_array_equal(found.visit_count[index], expected, err_msg=str(position))
            np.testing.assert_allclose(found.policy[index], kept / kept.sum(), atol=1e-6, err_msg=str(position))
            num_fewer += expected.sum() > kept.sum()
        unforced = search(positions, config, evaluate_by_hash)
        np.testing.assert_array_equal(
            unforced.visit_count, search(positions, replace(config, forced_playouts=0.0), evaluate_by_hash).visit_count
        )
    assert num_fewer > 5


def test_whole_numbers_in_a_configuration_compile_no_kernel_anew():
    search([Position("othello-4x4")], MCTSConfig(num_simulations=2), evaluate_as_even)
    signatures = list(select_leaves.signatures)
    search([Position("othello-4x4")], MCTSConfig(num_simulations=2, puct_constant=2, visit_offset=9), evaluate_as_even)
    assert select_leaves.signatures == signatures


def test_a_position_is_searched_alike_alone_and_among_others():
    positions = list(positions_of_random_games(Variant(), 8, 5))
    config = MCTSConfig(num_simulations=60)
    together = search(positions, config, evaluate_by_hash)
    for index, position in enumerate(positions):
        alone = search([position], config, evaluate_by_hash)
        np.testing.assert_array_equal(alone.visit_count[0], together.visit_count[index])


def test_a_forced_pass_turns_the_value_round():
    # White (O) has no move at the right of the row; black then takes the last square: won for black, the side to wait.
    position = Position.from_text("XXXXXXXXXXXXXXO- O", "othello-4x4")
    assert position.must_pass
    decision = MCTSAgent(evaluate_as_even, MCTSConfig(num_simulations=50), "mcts").select(
        position, np.random.default_rng(0)
    )
    assert decision.move == position.variant.pass_move
    assert decision.value == pytest.approx(-1, abs=0.05)
    assert decision.principal_line == (16, 15)


def test_early_moves_are_drawn_by_their_visits_and_later_ones_are_the_most_visited():
    config = MCTSConfig(temperature_moves=2, temperature=0.5)
    start = Position()
    visits = np.zeros(65, np.int32)
    visits[list(start.legal_moves)] = (10, 20, 30, 40)
    rng = np.random.default_rng(0)
    drawn = np.bincount([choose_move(visits, 0, start, config, rng) for _ in range(4000)], minlength=65)
    expected = 4000 * np.square(visits / 10.0) / 30
    assert (np.abs(drawn - expected) <= 4 * np.sqrt(expected + 1)).all()
    later = start.play(19).play(18)
    later_visits = np.zeros(65, np.int32)
    later_visits[list(later.legal_moves)] = range(1, len(later.legal_moves) + 1)
    assert {choose_move(later_visits, 7, later, config, rng) for _ in range(50)} == {7}


def test_the_principal_line_is_a_legal_line():
    for position in positions_of_random_games(Variant.named("othello-6x6"), 5, 9):
        decision = MCTSAgent(evaluate_by_hash, MCTSConfig(num_simulations=200), "mcts").analyze(position)
        assert decision.principal_line[0] == decision.move
        for move in decision.principal_line:
            position = position.play(move)


def test_one_agent_plays_several_variants_in_one_batch():
    positions = [Position(variant) for variant in VARIANTS] + [Position("othello-6x6").play(8)]
    agent = MCTSAgent(evaluate_by_hash, MCTSConfig(num_simulations=20), "mcts")
    rngs = [np.random.default_rng(0) for _ in positions]
    decisions = agent.select_batch(positions, rngs)
    for position, decision in zip(positions, decisions, strict=True):
        assert decision.move == agent.select(position, np.random.default_rng(0)).move
        assert decision.move in position.legal_moves
        assert math.isclose(decision.policy.sum(), 1, abs_tol=1e-6)


def test_analysis_is_without_noise_and_without_draws():
    position = Position()
    noisy = MCTSAgent(
        evaluate_by_hash, MCTSConfig(num_simulations=40, noise_fraction=1.0, temperature_moves=60), "mcts"
    )
    still = MCTSAgent(evaluate_by_hash, MCTSConfig(num_simulations=40), "mcts")
    assert (noisy.analyze(position).policy == still.select(position, np.random.default_rng(3)).policy).all()
    assert noisy.analyze(position).move == still.analyze(position).move


def test_what_an_agent_cannot_play_is_said_in_a_sentence():
    agent = MCTSAgent(evaluate_as_even, MCTSConfig(num_simulations=4), "mcts", Variant.named("othello-6x6"))
    rng = np.random.default_rng(0)
    assert agent.select(Position(), rng).move in Position().legal_moves  # another size is no matter
    with pytest.raises(ValueError, match="trained to win with the most discs, and anti-reversi is won with the fewest"):
        agent.select(Position("anti-reversi"), rng)
    over = Position.from_text("XXXXXXXXXXXXXXXX O", "othello-4x4")
    with pytest.raises(ValueError, match="the game is over, so there is no move to choose: XXXX"):
        agent.select(over, rng)


@pytest.mark.parametrize(
    "fault",
    [
        {"num_simulations": 0},
        {"num_simulations": 10**12},
        {"puct_constant": 0},
        {"puct_constant": math.nan},
        {"noise_fraction": 1.5},
        {"noise_concentration": math.inf},
        {"temperature": 0},
        {"temperature": math.inf},
    ],
)
def test_a_config_that_means_nothing_says_what_would(fault):
    with pytest.raises(ValueError, match=next(iter(fault))):
        replace(MCTSConfig(), **fault)
