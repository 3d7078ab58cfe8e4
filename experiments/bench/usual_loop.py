"""Self-play as it is usually written: a tree of Python objects, and one position at a time for the network.

It is here to be measured against; nothing plays by it.
"""

import math

import numpy as np

from agents.mcts import Evaluator
from reversi_env import Position, Variant


class _Node:
    """A position, and by legal move its prior, visits and summed value."""

    def __init__(self, position: Position) -> None:
        self.position = position
        self.children: dict[int, _Node] = {}
        self.prior: dict[int, float] = {}
        self.visits: dict[int, int] = {}
        self.total: dict[int, float] = {}


class UsualLoop:
    """Plays games against itself by PUCT and the most visited move, from the variant's start."""

    def __init__(self, variant: Variant, evaluate: Evaluator, num_simulations: int, puct_constant: float = 1.5) -> None:
        self.variant = variant
        self.evaluate = evaluate
        self.num_simulations = num_simulations
        self.puct_constant = puct_constant
        self.num_evaluated = 0

    def play_moves(self, num_moves: int) -> int:
        """Plays so many searched moves, of games one after the other, and returns how many positions were evaluated."""
        before = self.num_evaluated
        position = Position(self.variant)
        while num_moves:
            if position.is_over:
                position = Position(self.variant)
            move = position.legal_moves[0]
            if len(position.legal_moves) > 1:
                move = self._search(position)
                num_moves -= 1
            position = position.play(move)
        return self.num_evaluated - before

    def _search(self, position: Position) -> int:
        root = _Node(position)
        self._simulate(root)
        for _ in range(self.num_simulations):
            self._simulate(root)
        return max(root.visits, key=lambda move: root.visits[move])

    def _simulate(self, node: _Node) -> float:
        """Returns the value of a node for its side to move, a leaf further down having been evaluated."""
        position = node.position
        if position.is_over:
            return float(position.result)
        if not node.prior:
            self.num_evaluated += 1
            policy, values = self.evaluate(np.array([position.player]), np.array([position.opponent]), position.variant)
            for move in position.legal_moves:
                node.prior[move], node.visits[move], node.total[move] = float(policy[0, move]), 0, 0.0
            return float(values[0])
        bonus = self.puct_constant * math.sqrt(1 + sum(node.visits.values()))

        def score(move: int) -> float:
            visits = node.visits[move]
            return node.total[move] / max(visits, 1) + bonus * node.prior[move] / (1 + visits)

        move = max(node.prior, key=score)
        if move not in node.children:
            node.children[move] = _Node(position.play(move))
        value = -self._simulate(node.children[move])
        node.visits[move] += 1
        node.total[move] += value
        return value
