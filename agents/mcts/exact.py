"""Leaves near the end of the game, whose result the exact solver finds sooner than a network could guess it."""

from typing import NamedTuple

import numpy as np

from agents.evaluation import Evaluation, best_evaluation, evaluation_of
from agents.mcts.tree import PROVEN, Tree, Walks, move_walk, tree_spans, walk_spans
from agents.mcts.walking import Settings, finish_walk
from agents.search.endgame import make_marks, solve
from agents.search.memory import GENERATION, make_memory
from agents.search.transposition import make_table
from reversi_env import Variant
from reversi_env.bitboard import load
from reversi_env.geometry import Bitboard, num_words
from reversi_env.jit import kernel
from reversi_env.rules import Rules
from reversi_env.vectors import count

_TABLE_ENTRIES = 1 << 14  # half a megabyte, so it stays in the cache of a core


class ExactMemory(NamedTuple):
    """What the solver of one thread works in, see `agents.search`."""

    memory: np.ndarray
    table: np.ndarray
    marks: np.ndarray
    evaluation: Evaluation


def make_exact_memory(variant: Variant) -> ExactMemory:
    """Returns a memory for positions of one variant."""
    memory = make_memory()
    memory[GENERATION] = 1
    return ExactMemory(
        memory=memory,
        table=make_table(_TABLE_ENTRIES, num_words(variant.size)),
        marks=make_marks(1),
        evaluation=evaluation_of(best_evaluation(variant), variant),
    )


@kernel
def exact_result(player: Bitboard, opponent: Bitboard, exact: ExactMemory, rules: Rules) -> int:
    """Returns how a position ends for the side to move when both sides play perfectly: 1, 0 or −1."""
    num_empties = rules.size * rules.size - count(player) - count(opponent)
    for result in (1, 0):
        alpha = result - 1
        score = solve(
            player, opponent, alpha, num_empties, exact.memory, exact.table, exact.marks, exact.evaluation, rules
        )
        if score > alpha:
            return result
    return -1


@kernel
def solve_leaves(
    tree: Tree,
    walks: Walks,
    first_row: int,
    num_rows: int,
    most_empties: int,
    exact: ExactMemory,
    settings: Settings,
    rules: Rules,
) -> int:
    """Proves the leaves from `first_row` on that have at most so many empty squares; returns how many rows still wait.

    A root stays a leaf, whose moves are to be told apart.
    The last row takes the place of one that waits no more.
    """
    trees, ends = tree_spans(tree), walk_spans(walks)
    row = first_row
    while row < num_rows:
        player, opponent = load(walks.player, row, rules.squares), load(walks.opponent, row, rules.squares)
        is_root = ends.length[row] == 0
        if is_root or rules.size * rules.size - count(player) - count(opponent) > most_empties:
            row += 1
            continue
        leaf = int(ends.leaf[row])
        trees.nodes[leaf].value = exact_result(player, opponent, exact, rules)
        trees.nodes[leaf].state = PROVEN
        trees.num_pending[ends.game[row]] -= 1
        finish_walk(trees, ends, row, settings)
        num_rows -= 1
        move_walk(ends, num_rows, row, rules)
    return num_rows
