"""Going on with what was found below a move: nothing is lost on the way, and nothing else comes along."""

from dataclasses import replace

import numpy as np
import pytest

from agents.mcts import MCTSConfig, Search
from agents.mcts.reuse import descend
from agents.mcts.tree import new_tree
from reversi_env import Position, Variant
from tests.agents.plain_trees import VARIANTS, boards_of, evaluate_by_hash, late_positions
from tests.agents.tree_reading import check_tree, check_trees, read_tree

GAME = 1  # of two, so that its nodes and edges do not begin with 0


def searched(position: Position, config: MCTSConfig) -> Search:
    searching = Search(position.variant, evaluate_by_hash, config, 2)
    searching.run(*boards_of([Position(position.variant), position]), [np.random.default_rng(n) for n in (1, 2)])
    return searching


def go_down(searching: Search, index: int) -> bool:
    """Makes the child of a root edge the root of the second game."""
    tree, rules = searching.tree, searching.variant.rules
    edge = int(tree.nodes[GAME * tree.nodes_per_game]["first_edge"]) + index
    return descend(tree, new_tree(1, tree.nodes_per_game, rules), GAME, edge, rules)


@pytest.mark.parametrize("leaves_per_call", [1, 6])
@pytest.mark.parametrize("proves", [True, False])
def test_what_was_below_a_move_is_the_new_tree(proves, leaves_per_call):
    config = MCTSConfig(
        num_simulations=200, proves=proves, leaves_per_call=leaves_per_call, noise_fraction=0.25, exact_empties=4
    )
    num_proven = 0
    for variant in VARIANTS:
        for position in [*late_positions(variant, 1, 20, 14), *late_positions(variant, 1, 9, 4)]:
            searching = searched(position, config)
            tree = searching.tree
            before, other = read_tree(tree, GAME), read_tree(tree, 0)
            taken = [index for index, edge in enumerate(before.edges) if edge.child is not None]
            index = max(taken, key=lambda index: before.edges[index].visits)
            expected = before.edges[index].child
            is_kept = go_down(searching, index)
            assert is_kept == bool(expected.edges)
            assert read_tree(tree, 0) == other
            if not is_kept:
                assert read_tree(tree, GAME) == before
                continue
            now = read_tree(tree, GAME)
            assert now == expected
            check_tree(now, variant, evaluate_by_hash, config)
            assert tree.num_nodes[GAME] == sum(1 for _ in now.nodes())
            assert tree.num_edges[GAME] == sum(len(node.edges) for node in now.nodes())
            assert tree.simulations[GAME] == now.visits
            num_proven += sum(edge.is_proven for node in now.nodes() for edge in node.edges)
    assert (num_proven > 20) == proves


def test_a_search_goes_on_in_what_was_kept():
    config = MCTSConfig(num_simulations=200)
    variant = Variant()
    (position,) = late_positions(variant, 1, 30, 4)
    searching = searched(position, config)
    tree = searching.tree
    for ply in range(6):
        root = read_tree(tree, GAME)
        index = int(np.argmax([edge.visits for edge in root.edges]))
        assert go_down(searching, index)
        kept = int(tree.simulations[GAME])
        asked = searching.num_evaluated
        while searching.step():
            pass
        check_trees(searching, evaluate_by_hash)
        assert tree.simulations[GAME] == 200, ply
        assert 0 < searching.num_evaluated - asked <= 200 - kept


def test_nothing_is_kept_of_a_move_that_was_not_taken_or_ends_the_game():
    position = Position.from_text("XXXXXXXXXXXXXXO- X", "othello-4x4")
    searching = searched(position, MCTSConfig(num_simulations=20, proves=False))
    before = read_tree(searching.tree, GAME)
    assert not go_down(searching, 0)
    searching = searched(Position("othello-4x4"), replace(MCTSConfig(), num_simulations=1))
    before = read_tree(searching.tree, GAME)
    untaken = [edge.child for edge in before.edges].index(None)
    assert not go_down(searching, untaken)
    assert read_tree(searching.tree, GAME) == before
