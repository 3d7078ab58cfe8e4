"""What a search calls certain, against brute force: from near the end to the last square, for every kind of game."""

import itertools

import numpy as np
import pytest

from agents.mcts import MCTSAgent, MCTSConfig
from reversi_env import Position, Variant
from reversi_env.variant import GOALS, SCORINGS, STARTS
from tests import oracle
from tests.agents.plain_trees import VARIANTS, evaluate_as_even, evaluate_by_hash, late_positions, search

KINDS = [
    Variant(size, start, goal, scoring)
    for size, start, goal, scoring in itertools.product((4, 6), STARTS, GOALS, SCORINGS)
]
ROOTS = (MCTSConfig(), MCTSConfig(root="gumbel"))


def result_of(position: Position) -> int:
    """Returns by brute force how a game ends for the side to move; it may be over."""
    variant = position.variant
    score = oracle.negamax(list(position.board), position.side, variant.goal, variant.scoring, variant.start == "free")
    return (score > 0) - (score < 0)


def assert_sound(found, positions, results):
    """Asserts of all that is said to be certain that it is so, and that the move played does not give it away."""
    for index, position in enumerate(positions):
        if found.is_certain[index]:
            assert found.value[index] == results[index], str(position)
            assert -result_of(position.play(int(found.move[index]))) == results[index], str(position)


@pytest.mark.parametrize("size", [4, 6])
def test_what_is_certain_is_true_and_enough_simulations_make_everything_certain(size):
    num_early, num_positions = 0, 0
    for variant in KINDS:
        if variant.size != size:
            continue
        positions = late_positions(variant, 12, {4: 6, 6: 5}[size], seed=size)
        results = [result_of(position) for position in positions]
        for config, evaluate in itertools.product(ROOTS, (evaluate_as_even, evaluate_by_hash)):
            for num_simulations, leaves_per_call in ((30, 1), (150, 4)):
                told = replace_limits(config, num_simulations, leaves_per_call)
                found = search(positions, told, evaluate)
                assert_sound(found, positions, results)
                num_early += found.is_certain.sum()
                num_positions += len(positions)
        # A prior that is small enough keeps PUCT from looking beyond a draw, and a Gumbel root drops moves for good.
        found = search(positions, MCTSConfig(num_simulations=20_000), evaluate_as_even)
        assert found.is_certain.all()
        assert (found.num_simulations < 20_000).all()
        assert_sound(found, positions, results)
    assert 0.1 < num_early / num_positions < 0.9


def replace_limits(config, num_simulations, leaves_per_call=1, exact_empties=0):
    return MCTSConfig(
        root=config.root,
        num_simulations=num_simulations,
        leaves_per_call=leaves_per_call,
        exact_empties=exact_empties,
    )


@pytest.mark.parametrize("config", ROOTS, ids=["puct", "gumbel"])
def test_solved_leaves_agree_with_brute_force_and_a_root_among_them_still_gives_a_move(config):
    for variant in KINDS:
        positions = late_positions(variant, 8, {4: 6, 6: 5}[variant.size], seed=7)
        results = [result_of(position) for position in positions]
        asked = []

        def evaluate(player, opponent, variant, asked=asked):
            asked.extend((player | opponent)[:, 0].tolist())
            return evaluate_as_even(player, opponent, variant)

        for leaves_per_call in (1, 3):
            found = search(positions, replace_limits(config, 40, leaves_per_call, exact_empties=6), evaluate)
            assert found.is_certain.all()
            assert_sound(found, positions, results)
        assert len(asked) == 2 * len(positions)  # for the roots alone, whose moves are to be told apart
        found = search(positions, replace_limits(config, 40, 1, exact_empties=3), evaluate_by_hash)
        assert_sound(found, positions, results)


def test_solved_leaves_of_every_board_end_a_search_of_many_games():
    for variant in VARIANTS:
        positions = late_positions(variant, 4, 7, seed=3)
        found = search(positions, MCTSConfig(num_simulations=200, exact_empties=7), evaluate_as_even)
        assert found.is_certain.all()
        whole = search(positions, MCTSConfig(num_simulations=50_000), evaluate_as_even)
        np.testing.assert_array_equal(whole.value, found.value)


def test_a_move_that_is_lost_for_certain_is_played_only_where_all_are():
    num_most_visited_lost = 0
    for variant in KINDS:
        positions = late_positions(variant, 8, 7, seed=1)
        for config, num_simulations in itertools.product(ROOTS, (5, 12, 30)):
            found = search(positions, replace_limits(config, num_simulations), evaluate_by_hash)
            for index, position in enumerate(positions):
                candidates = {candidate.move: candidate for candidate in found.candidates(index)}
                # No mean of what the evaluator says is -1, only what is proven.
                lost = [move for move, candidate in candidates.items() if candidate.value == -1]
                if found.is_certain[index]:
                    continue
                assert len(lost) < len(position.legal_moves)
                assert found.move[index] not in lost
                num_most_visited_lost += found.candidates(index)[0].move in lost
                if config.root == "puct":
                    assert not found.policy[index][lost].any()
                assert found.policy[index].sum() == pytest.approx(1, abs=1e-5)
    assert num_most_visited_lost > 3


def test_nothing_is_certain_where_nothing_is_to_be_proven():
    positions = late_positions(Variant(4), 10, 4, seed=2)
    for root in ("puct", "gumbel"):
        found = search(positions, MCTSConfig(root=root, num_simulations=300, proves=False), evaluate_by_hash)
        assert not found.is_certain.any()
        assert (found.visit_count.sum(axis=1) == 300).all()


@pytest.mark.parametrize("goal", GOALS)
def test_an_agent_keeps_the_result_of_a_game_half_played(goal):
    variant = Variant(size=4, goal=goal)
    agent = MCTSAgent(evaluate_as_even, MCTSConfig(num_simulations=3000), "mcts")
    positions = late_positions(variant, 30, 7, seed=2)
    for position in positions:
        decision = agent.select(position, np.random.default_rng(0))
        assert -result_of(position.play(decision.move)) == result_of(position), str(position)
