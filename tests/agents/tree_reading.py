"""Compiled search trees as Python objects, and what must hold in every one of them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from agents.mcts import Evaluator, MCTSConfig, Search
from agents.mcts.tree import EXPANDED, PROVEN, Tree
from reversi_env import Position, Variant


@dataclass
class ReadEdge:
    action: int
    prior: float
    visits: int
    total: float
    is_proven: bool
    child: "ReadNode | None"  # None where it was not taken yet


@dataclass
class ReadNode:
    boards: tuple[tuple[int, ...], tuple[int, ...]]
    value: float
    visits: int
    state: int
    edges: list[ReadEdge]

    def nodes(self) -> "Iterator[ReadNode]":
        """Gives this node and all below."""
        yield self
        for edge in self.edges:
            if edge.child is not None:
                yield from edge.child.nodes()


def read_tree(tree: Tree, game: int) -> ReadNode:
    return _read_node(tree, game * tree.nodes_per_game)


def _read_node(tree: Tree, place: int) -> ReadNode:
    node = tree.nodes[place]
    words = len(tree.player) // len(tree.nodes)
    boards = tuple(tuple(board[place * words : (place + 1) * words].tolist()) for board in (tree.player, tree.opponent))
    edges = []
    for index in range(node["num_edges"]):
        at = node["first_edge"] + index
        edge, is_taken = tree.edges[at], index < node["num_taken"]
        child = int(edge["child"])
        edges.append(
            ReadEdge(
                action=int(tree.action[at]),
                prior=float(edge["prior"]),
                visits=int(edge["visits"]) if is_taken else 0,
                total=float(edge["total"]) if is_taken else 0.0,
                is_proven=is_taken and child < 0,
                child=_read_node(tree, -1 - child if child < 0 else child) if is_taken else None,
            )
        )
    return ReadNode(boards, float(node["value"]), int(node["visits"]), int(node["state"]), edges)


def check_trees(search: Search, evaluate: Evaluator) -> None:
    """Asserts for the trees of all games, between two steps, what `check_tree` does, and that nothing is left over."""
    tree = search.tree
    assert not tree.num_pending.any()
    for game in np.flatnonzero(tree.num_nodes).tolist():
        root = read_tree(tree, game)
        if not root.edges:  # the evaluator has not seen it yet
            assert (root.state, tree.num_nodes[game], tree.simulations[game]) == (0, 1, 0)
            continue
        assert sum(1 for _ in root.nodes()) == tree.num_nodes[game]
        assert sum(len(node.edges) for node in root.nodes()) <= tree.num_edges[game]
        assert root.visits == tree.simulations[game]
        is_noisy = bool(tree.is_noisy[game])
        check_tree(root, search.variant, evaluate, search.config, is_noisy)


def check_tree(
    root: ReadNode, variant: Variant, evaluate: Evaluator, config: MCTSConfig, is_noisy: bool = False
) -> None:
    """Asserts that visits, sums, priors, boards and proofs agree with each other, with the rules and the evaluator.

    The tree has had room for all its edges, and no leaf waits in it.
    """
    for node in root.nodes():
        position = Position.from_bitboards(variant, *node.boards)
        if not node.edges:
            assert node.state == PROVEN
            if position.is_over:
                assert node.value == position.result
            else:
                assert position.num_empties <= config.exact_empties
                assert node.value in (-1, 0, 1)
            continue
        assert sorted(edge.action for edge in node.edges) == list(position.legal_moves)
        policy, value = evaluate(*(np.array([board], np.uint64) for board in node.boards), variant)
        if node is not root or not is_noisy:
            assert all(edge.prior == policy[0, edge.action] for edge in node.edges)
        assert sum(edge.prior for edge in node.edges) == pytest.approx(1, abs=1e-5)
        assert node.visits == sum(edge.visits for edge in node.edges)
        is_by_noise = node is root and config.root == "gumbel"
        _check_edges(node, position, evaluate, config, is_by_noise)
        untaken = [edge.prior for edge in node.edges if edge.child is None]
        assert not untaken or untaken[0] == max(untaken) or is_by_noise
        _check_proof(node, float(value[0]), config)


def _check_edges(
    node: ReadNode, position: Position, evaluate: Evaluator, config: MCTSConfig, is_by_schedule: bool
) -> None:
    is_taken = [edge.child is not None for edge in node.edges]
    assert is_taken == sorted(is_taken, reverse=True)
    for edge in node.edges:
        if (child := edge.child) is None:
            continue
        after = position.play(edge.action)
        assert child.boards == (after.player, after.opponent)
        assert edge.is_proven == (config.proves and child.state == PROVEN)
        if child.edges:
            # The first walk ended at the child, which the evaluator judged; others went on, until it was proven.
            num_ended = edge.visits - 1 - child.visits
            assert num_ended >= 0 if child.state == PROVEN else num_ended == 0
            _, value = evaluate(*(np.array([board], np.uint64) for board in child.boards), position.variant)
            total = -float(value[0]) - sum(beyond.total for beyond in child.edges) - num_ended * child.value
        else:
            num_ended = edge.visits - 1
            assert num_ended >= 0
            total = -child.value * edge.visits
        if edge.is_proven and child.value == 1 and not is_by_schedule:
            assert num_ended == 0  # nothing is to be found in what is lost for certain
        assert edge.total == pytest.approx(total, abs=1e-3 + 1e-5 * edge.visits)


def _check_proof(node: ReadNode, value: float, config: MCTSConfig) -> None:
    proven = [-edge.child.value for edge in node.edges if edge.child is not None and edge.child.state == PROVEN]
    is_certain = config.proves and (1.0 in proven or len(proven) == len(node.edges))
    assert node.state == (PROVEN if is_certain else EXPANDED)
    assert node.value == (max(proven) if is_certain else pytest.approx(value))
