"""What every search keeps: its budget, its sums, its room and its time, however its leaves are gathered."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from agents.mcts import MCTSAgent, MCTSConfig, Search
from agents.mcts.tree import new_tree
from reversi_env import Position, Variant
from tests.agents.plain_trees import (
    VARIANTS,
    boards_of,
    evaluate_as_even,
    evaluate_by_hash,
    late_positions,
    positions_of_random_games,
    search,
)
from tests.agents.tree_reading import check_trees

ROOTS = (MCTSConfig(), MCTSConfig(first_play_reduction=0.2, proves=False), MCTSConfig(root="gumbel"))


@pytest.mark.parametrize("leaves_per_call", [1, 3, 32])
@pytest.mark.parametrize("config", ROOTS, ids=["puct", "puct without proofs", "gumbel"])
def test_a_tree_agrees_with_itself_the_rules_and_the_evaluator(config, leaves_per_call):
    config = replace(config, num_simulations=70, leaves_per_call=leaves_per_call, exact_empties=4)
    for variant in VARIANTS:
        positions = [*positions_of_random_games(variant, 2, 23), *late_positions(variant, 1, 8, 5)]
        searching = Search(variant, evaluate_by_hash, config, len(positions))
        searching.run(*boards_of(positions))
        check_trees(searching, evaluate_by_hash)


@pytest.mark.parametrize("root", ["puct", "gumbel"])
def test_every_simulation_is_a_visit_and_noise_changes_no_sum(root):
    positions = list(positions_of_random_games(Variant(), 6, 12))
    noise = {"noise_fraction": 0.5} if root == "puct" else {"gumbel_scale": 1.0}
    for leaves_per_call in (1, 8):
        config = MCTSConfig(root=root, num_simulations=100, proves=False, leaves_per_call=leaves_per_call, **noise)
        searching = Search(Variant(), evaluate_by_hash, config)
        found = searching.run(*boards_of(positions), [np.random.default_rng(n) for n in range(len(positions))])
        assert (found.visit_count.sum(axis=1) == 100).all()
        assert (found.num_simulations == 100).all()
        check_trees(searching, evaluate_by_hash)


def test_leaves_that_are_asked_for_together_are_different_ones():
    asked = []

    def evaluate(player, opponent, variant):
        asked.append({own.tobytes() + other.tobytes() for own, other in zip(player, opponent, strict=True)})
        assert len(asked[-1]) == len(player)
        return evaluate_by_hash(player, opponent, variant)

    search([Position()], MCTSConfig(num_simulations=200, leaves_per_call=16), evaluate)
    assert len(asked[0]) == 1
    assert np.mean([len(leaves) for leaves in asked[1:]]) > 8


@pytest.mark.parametrize("config", ROOTS, ids=["puct", "puct without proofs", "gumbel"])
def test_a_tree_that_grows_finds_what_one_with_room_at_once_does(config, monkeypatch):
    positions = [Position(), *late_positions(Variant(), 3, 9, 1)]
    for leaves_per_call, exact_empties in ((1, 0), (5, 0), (1, 6)):
        told = replace(config, num_simulations=900, leaves_per_call=leaves_per_call, exact_empties=exact_empties)
        for position in positions:
            whole = search([position], told, evaluate_by_hash)
            with monkeypatch.context() as patched:
                patched.setattr("agents.mcts.search._FIRST_NODES", 8)
                grown = search([position], told, evaluate_by_hash)
            assert grown.num_simulations == whole.num_simulations
            np.testing.assert_array_equal(grown.visit_count, whole.visit_count)
            assert grown.value == whole.value
            assert grown.lines(0, int(grown.move[0])) == whole.lines(0, int(whole.move[0]))


def test_a_tree_that_has_used_up_its_edges_stops_growing_and_goes_on(monkeypatch):
    monkeypatch.setattr("agents.mcts.tree.EDGES_PER_SQUARE", 1 / 64)
    found = search([Position()], MCTSConfig(num_simulations=500), evaluate_by_hash)
    assert found.visit_count.sum() == 500


def test_more_games_than_can_be_counted_are_refused_before_there_is_room_for_them():
    with pytest.raises(ValueError, match=r"at most 22 games are searched at once by 4,000,000 simulations"):
        new_tree(1000, 4_000_001, Variant().rules)


@pytest.mark.parametrize("time_limit_s", [0, 0.02])
def test_time_ends_a_search_with_a_legal_move(time_limit_s):
    config = MCTSConfig(time_limit_s=time_limit_s)
    for variant in VARIANTS:
        agent = MCTSAgent(evaluate_as_even, config, "mcts")
        for position in [*positions_of_random_games(variant, 1, 8), *late_positions(variant, 1, 5, 8)]:
            for leaves_per_call, exact_empties, proves in itertools.product((1, 4), (0, 6), (True, False)):
                agent.config = replace(
                    config, leaves_per_call=leaves_per_call, exact_empties=exact_empties, proves=proves
                )
                (decision,) = agent.select_batch([position], [np.random.default_rng(1)])
                assert decision.move in position.legal_moves
                assert decision.policy.sum() == pytest.approx(1, abs=1e-5)
                assert agent.analyze(position).move in position.legal_moves


def test_a_search_in_which_no_leaf_needs_the_evaluator_can_be_stopped():
    position = Position.from_text("XXXXXXXXXXXXXXO- X", "othello-4x4")  # a single move, and the game is over
    config = MCTSConfig(num_simulations=1_000_000, proves=False)
    is_stopped = iter([False, False, True]).__next__
    *_, last = Search(position.variant, evaluate_as_even, config, 1).watch(*boards_of([position]), 1, is_stopped)
    assert 0 < last.num_simulations[0] < 100_000
    assert last.value[0] == 1
