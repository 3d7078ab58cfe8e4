"""Search trees of many games at once, in preallocated arrays, and the kernels that walk them.

One simulation walks from the root of a game's tree to a node without edges, has that leaf evaluated, and backs its
value up along the walk. All games take one step together, so that one call of a network evaluates a leaf of each.
PUCT is that of AlphaZero: Silver et al. 2018, "A general reinforcement learning algorithm…", supplement, "Search".
"""

from typing import NamedTuple

import numpy as np

from reversi_env.bitboard import load, square_of, store
from reversi_env.geometry import Bitboard
from reversi_env.jit import kernel
from reversi_env.rules import MUST_PASS, OVER, Rules, final_score, legal_mask, play_square, status
from reversi_env.vectors import is_empty, lowest, without_lowest

UNVISITED = -1  # a child that is not made yet
ROOT = 0

LEAF, EXPANDED, FINISHED = 0, 1, 2  # states of a node

# The most squares that are ever legal at once are 33 or so on 8×8; a tree that has used up its edges stops growing.
EDGES_PER_NODE = 40


class Tree(NamedTuple):
    """Trees of G games; N nodes, E edges, at most D plies deep. The edges of a node lie side by side."""

    player: np.ndarray  # uint64  [G * N, W]  discs of the side to move at each node
    opponent: np.ndarray  # uint64  [G * N, W]
    state: np.ndarray  # int8    [G, N]  LEAF, EXPANDED or FINISHED
    node_value: np.ndarray  # float32 [G, N]  the evaluator's, or a finished game's result, for the side to move
    node_visits: np.ndarray  # int32   [G, N]  simulations that went on from the node
    first_edge: np.ndarray  # int32   [G, N]
    num_edges: np.ndarray  # int32   [G, N]
    action: np.ndarray  # int32   [G, E]
    prior: np.ndarray  # float32 [G, E]
    visit_count: np.ndarray  # int32   [G, E]
    total_value: np.ndarray  # float32 [G, E]  summed for the player to move at the edge's upper node
    child: np.ndarray  # int32   [G, E]  node, or UNVISITED
    nodes_used: np.ndarray  # int32   [G]
    edges_used: np.ndarray  # int32   [G]
    path: np.ndarray  # int32   [G, D]  edges of the walk under way
    path_nodes: np.ndarray  # int32   [G, D]  the upper node of each
    path_length: np.ndarray  # int32   [G]
    leaf: np.ndarray  # int32   [G]  the node that waits for its evaluation
    simulations_left: np.ndarray  # int32   [G]


class Leaves(NamedTuple):
    """Positions that wait for the evaluator, at most one of each game."""

    player: np.ndarray  # uint64 [G, W]
    opponent: np.ndarray  # uint64 [G, W]
    game: np.ndarray  # int32  [G]


def new_tree(num_games: int, num_nodes: int, rules: Rules) -> Tree:
    """Returns room for `num_games` trees of `num_nodes` nodes each; `set_roots` makes it ready."""
    num_words = len(rules.squares)
    num_squares = rules.size * rules.size
    num_edges = num_nodes * min(EDGES_PER_NODE, num_squares) + num_squares
    max_plies = 2 * num_squares  # no side passes twice running
    nodes, edges, plies = (num_games, num_nodes), (num_games, num_edges), (num_games, max_plies)
    return Tree(
        player=np.zeros((num_games * num_nodes, num_words), np.uint64),
        opponent=np.zeros((num_games * num_nodes, num_words), np.uint64),
        state=np.zeros(nodes, np.int8),
        node_value=np.zeros(nodes, np.float32),
        node_visits=np.zeros(nodes, np.int32),
        first_edge=np.zeros(nodes, np.int32),
        num_edges=np.zeros(nodes, np.int32),
        action=np.zeros(edges, np.int32),
        prior=np.zeros(edges, np.float32),
        visit_count=np.zeros(edges, np.int32),
        total_value=np.zeros(edges, np.float32),
        child=np.zeros(edges, np.int32),
        nodes_used=np.zeros(num_games, np.int32),
        edges_used=np.zeros(num_games, np.int32),
        path=np.zeros(plies, np.int32),
        path_nodes=np.zeros(plies, np.int32),
        path_length=np.zeros(num_games, np.int32),
        leaf=np.zeros(num_games, np.int32),
        simulations_left=np.zeros(num_games, np.int32),
    )


def new_leaves(num_games: int, rules: Rules) -> Leaves:
    """Returns room for one leaf of each game."""
    num_words = len(rules.squares)
    return Leaves(
        player=np.zeros((num_games, num_words), np.uint64),
        opponent=np.zeros((num_games, num_words), np.uint64),
        game=np.zeros(num_games, np.int32),
    )


@kernel
def _add_node(tree: Tree, game: int, player: Bitboard, opponent: Bitboard, rules: Rules) -> int:
    """Adds a node without edges, its value known if the game is over there, and returns its number."""
    node: int = tree.nodes_used[game]
    tree.nodes_used[game] = node + 1
    row = game * tree.state.shape[1] + node
    store(tree.player, row, player)
    store(tree.opponent, row, opponent)
    tree.node_visits[game, node] = 0
    tree.num_edges[game, node] = 0
    if status(player, opponent, legal_mask(player, opponent, rules), rules) == OVER:
        tree.state[game, node] = FINISHED
        tree.node_value[game, node] = np.sign(final_score(player, opponent, rules))
    else:
        tree.state[game, node] = LEAF
    return node


@kernel
def set_roots(tree: Tree, player: np.ndarray, opponent: np.ndarray, num_simulations: np.ndarray, rules: Rules) -> None:
    """Begins `tree` anew with roots uint64 [n, W] for the first n games, each with its simulations, int32 [n]."""
    for game in range(player.shape[0]):
        tree.nodes_used[game] = 0
        tree.edges_used[game] = 0
        tree.simulations_left[game] = num_simulations[game]
        _add_node(tree, game, load(player, game, rules.squares), load(opponent, game, rules.squares), rules)
    tree.simulations_left[player.shape[0] :] = 0


@kernel
def _best_edge(tree: Tree, game: int, node: int, puct_constant: float) -> int:
    """Returns the edge with the greatest PUCT score, the first of equals; an unvisited one has its node's value."""
    first: int = tree.first_edge[game, node]
    exploration = puct_constant * np.sqrt(np.float32(max(tree.node_visits[game, node], 1)))
    best, best_score = first, -np.inf
    for edge in range(first, first + tree.num_edges[game, node]):
        visits = tree.visit_count[game, edge]
        mean = tree.total_value[game, edge] / visits if visits else tree.node_value[game, node]
        score = mean + exploration * tree.prior[game, edge] / (1 + visits)
        if score > best_score:
            best, best_score = edge, score
    return best


@kernel
def _back_up(tree: Tree, game: int, value: float) -> None:
    """Adds `value`, that of the side to move at the end of the walk, to all its edges; each ply turns it round."""
    for ply in range(tree.path_length[game] - 1, -1, -1):
        value = -value
        edge = tree.path[game, ply]
        tree.visit_count[game, edge] += 1
        tree.total_value[game, edge] += value
        tree.node_visits[game, tree.path_nodes[game, ply]] += 1
    tree.simulations_left[game] -= 1


@kernel
def _walk(tree: Tree, game: int, puct_constant: float, rules: Rules) -> int:
    """Walks from the root to a node without edges, added if need be; returns it and leaves the walk in `path`."""
    node = ROOT
    length = 0
    num_nodes = tree.state.shape[1]
    while tree.state[game, node] == EXPANDED:
        edge = _best_edge(tree, game, node, puct_constant)
        tree.path[game, length] = edge
        tree.path_nodes[game, length] = node
        length += 1
        child = tree.child[game, edge]
        if child == UNVISITED:
            row = game * num_nodes + node
            player, opponent = load(tree.player, row, rules.squares), load(tree.opponent, row, rules.squares)
            after = play_square(player, opponent, tree.action[game, edge], rules)
            child = _add_node(tree, game, after[0], after[1], rules)
            tree.child[game, edge] = child
        node = child
    tree.path_length[game] = length
    return node


@kernel
def select_leaves(tree: Tree, leaves: Leaves, puct_constant: float, rules: Rules) -> int:
    """Walks in each game with simulations left until a leaf needs the evaluator; fills `leaves`, returns how many.

    A walk that ends in a finished game is backed up at once, and the next one begins.
    """
    num_leaves = 0
    for game in range(tree.simulations_left.shape[0]):
        while tree.simulations_left[game] > 0:
            node = _walk(tree, game, puct_constant, rules)
            if tree.state[game, node] == FINISHED:
                _back_up(tree, game, tree.node_value[game, node])
                continue
            row = game * tree.state.shape[1] + node
            store(leaves.player, num_leaves, load(tree.player, row, rules.squares))
            store(leaves.opponent, num_leaves, load(tree.opponent, row, rules.squares))
            leaves.game[num_leaves] = game
            tree.leaf[game] = node
            num_leaves += 1
            break
    return num_leaves


@kernel
def _expand(tree: Tree, game: int, node: int, policy: np.ndarray, row: int, rules: Rules) -> None:
    """Gives a node an edge for each legal move, with priors from row `row` of `policy`; none if the room is used up."""
    board = game * tree.state.shape[1] + node
    player, opponent = load(tree.player, board, rules.squares), load(tree.opponent, board, rules.squares)
    legal = legal_mask(player, opponent, rules)
    first = tree.edges_used[game]
    edge = first
    if edge + rules.size * rules.size > tree.action.shape[1]:
        return
    if status(player, opponent, legal, rules) == MUST_PASS:
        tree.action[game, edge] = rules.size * rules.size
        edge += 1
    while not is_empty(legal):
        tree.action[game, edge] = square_of(lowest(legal), rules.size, legal)
        legal = without_lowest(legal)
        edge += 1
    for new in range(first, edge):
        tree.prior[game, new] = policy[row, tree.action[game, new]]
        tree.visit_count[game, new] = 0
        tree.total_value[game, new] = 0
        tree.child[game, new] = UNVISITED
    tree.edges_used[game] = edge
    tree.first_edge[game, node] = first
    tree.num_edges[game, node] = edge - first
    tree.state[game, node] = EXPANDED


@kernel
def take_evaluations(
    tree: Tree, leaves: Leaves, num_leaves: int, policy: np.ndarray, value: np.ndarray, rules: Rules
) -> None:
    """Expands the leaves and backs their values up; the evaluation of a root is not a simulation.

    `policy` is float32 [n, A] over legal actions, `value` float32 [n], both the mover's.
    """
    for row in range(num_leaves):
        game = leaves.game[row]
        node = tree.leaf[game]
        tree.node_value[game, node] = value[row]
        _expand(tree, game, node, policy, row, rules)
        if node == ROOT:
            tree.simulations_left[game] += 1
        _back_up(tree, game, value[row])


@kernel
def mix_root_noise(tree: Tree, game: int, noise: np.ndarray, fraction: float) -> None:
    """Replaces `fraction` of the root's priors by `noise`, float64 [number of root edges], which sums to one."""
    first = tree.first_edge[game, ROOT]
    for index in range(tree.num_edges[game, ROOT]):
        edge = first + index
        tree.prior[game, edge] = (1 - fraction) * tree.prior[game, edge] + fraction * noise[index]


@kernel
def read_roots(tree: Tree, visit_count: np.ndarray, value: np.ndarray) -> None:
    """Fills, for the first n games, the visits of each action, int32 [n, A], and the root's value, float32 [n].

    The value is the mover's, averaged over the simulations; without any it is the evaluator's.
    """
    visit_count[:] = 0
    for game in range(visit_count.shape[0]):
        first = tree.first_edge[game, ROOT]
        total = 0.0
        for edge in range(first, first + tree.num_edges[game, ROOT]):
            visit_count[game, tree.action[game, edge]] = tree.visit_count[game, edge]
            total += tree.total_value[game, edge]
        visits = tree.node_visits[game, ROOT]
        value[game] = total / visits if visits else tree.node_value[game, ROOT]


@kernel
def read_line(tree: Tree, game: int, line: np.ndarray) -> int:
    """Fills `line`, int32 [D], with the most visited moves from the root on, and returns how many there are."""
    node = ROOT
    length = 0
    while tree.state[game, node] == EXPANDED and length < line.shape[0]:
        first = tree.first_edge[game, node]
        best = first
        for edge in range(first, first + tree.num_edges[game, node]):
            if tree.visit_count[game, edge] > tree.visit_count[game, best]:
                best = edge
        if tree.visit_count[game, best] == 0:
            break
        line[length] = tree.action[game, best]
        length += 1
        node = tree.child[game, best]
    return length
