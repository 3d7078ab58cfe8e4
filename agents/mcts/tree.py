"""Search trees of many games at once, in preallocated arrays, and what every search does with them.

One simulation walks from the root of a game's tree to a node without edges, has that leaf evaluated, and backs its
value up along the walk. All games walk together, so that one call of an evaluator judges the leaves of all.

The edges of a node lie side by side. Those that were taken at least once come first, and behind them the untaken one of
the greatest prior: whatever rule chooses, it looks at no other untaken edge. So a leaf costs the writing of its priors,
and no more until it is walked through.

A node whose result is certain is PROVEN: a finished or a solved game, or one of whose edges leads to a won result, or
all of whose edges are proven. Winands, Björnsson and Saito, "Monte-Carlo Tree Search Solver", Computers and Games 2008.
"""

from typing import NamedTuple

import numpy as np
from numba.cpython.unsafe.tuple import tuple_setitem

from reversi_env.bitboard import square_of
from reversi_env.geometry import Bitboard
from reversi_env.jit import kernel
from reversi_env.rules import OVER, Rules, final_score, legal_mask, play_square, status
from reversi_env.spans import span_of
from reversi_env.vectors import is_empty, lowest, no_square, without_lowest

LEAF, PENDING, EXPANDED, PROVEN = 0, 1, 2, 3  # states of a node; PENDING: an evaluator has been asked

# Room for edges by node and square: on 8×8 24 moves a node, and 15 are many. A tree that has used it up stops growing.
EDGES_PER_SQUARE = 3 / 8
MOST_EDGES = 101  # of one node, and more than any action
_MOST_EDGES_IN_ALL = (1 << 31) - 1  # as int32 counts them
LEAST_PRIOR = 1e-30  # for priors of 0, where that would not do

NODE = np.dtype(
    [
        ("value", np.float32),  # the evaluator's, or the proven result, for the side to move
        ("visits", np.int32),  # simulations that went on from here
        ("first_edge", np.int32),
        ("num_edges", np.int8),
        ("num_taken", np.int8),  # edges with a child, which come first
        ("state", np.int8),
    ],
    align=True,
)
EDGE = np.dtype(
    [
        ("total", np.float32),  # values summed, for the side to move at the upper node
        ("visits", np.int32),
        ("child", np.int32),  # its node, or −1 less that where it is proven; of an edge that was taken
        ("prior", np.float32),
    ],
    align=True,
)


class Tree(NamedTuple):
    """Trees of G games of N nodes and E edges each; those of game g begin with node g · N and edge g · E.

    Kernels that are called from Python take arrays; they hand spans on, see `reversi_env.spans`, which makes a search
    twice as fast.
    """

    nodes_per_game: int  # N
    edges_per_game: int  # E
    nodes: np.ndarray  # NODE [G * N]
    player: np.ndarray  # uint64 [G * N * W], discs of the side to move at each node
    opponent: np.ndarray  # uint64 [G * N * W]
    edges: np.ndarray  # EDGE [G * E]
    action: np.ndarray  # int8 [G * E]
    num_nodes: np.ndarray  # int32 [G], those in use; 0 for a game that is not searched
    num_edges: np.ndarray  # int32 [G]
    simulations: np.ndarray  # int32 [G], those begun
    most_simulations: np.ndarray  # int32 [G]
    is_noisy: np.ndarray  # bool [G], whether the root's priors get noise
    rng_state: np.ndarray  # uint64 [G]
    num_pending: np.ndarray  # int32 [G], leaves that wait for the evaluator
    root_key: np.ndarray  # float32 [G * MOST_EDGES], by root edge: see `gumbel`
    weights: np.ndarray  # float64 [MOST_EDGES], room for what a choice computes


class Walks(NamedTuple):
    """Walks that have ended at leaves, S at the most, and D plies long at the most."""

    plies: int  # D
    player: np.ndarray  # uint64 [S, W], the leaf's
    opponent: np.ndarray  # uint64 [S, W]
    game: np.ndarray  # int32 [S]
    leaf: np.ndarray  # int32 [S], its node
    length: np.ndarray  # int32 [S]
    edge: np.ndarray  # int32 [S * D]
    node: np.ndarray  # int32 [S * D], the upper node of each edge


def new_tree(num_games: int, num_nodes: int, rules: Rules) -> Tree:
    """Returns room for `num_games` trees of `num_nodes` nodes each; `set_root` makes a game's ready.

    Raises ValueError for more than can be counted.
    """
    num_words = len(rules.squares)
    num_edges = int(num_nodes * rules.size * rules.size * EDGES_PER_SQUARE) + MOST_EDGES
    if num_games * num_edges > _MOST_EDGES_IN_ALL:
        most = _MOST_EDGES_IN_ALL // num_edges
        raise ValueError(f"at most {most:,} games are searched at once by {num_nodes - 1:,} simulations a move")
    return Tree(
        nodes_per_game=num_nodes,
        edges_per_game=num_edges,
        nodes=np.zeros(num_games * num_nodes, NODE),
        player=np.zeros(num_games * num_nodes * num_words, np.uint64),
        opponent=np.zeros(num_games * num_nodes * num_words, np.uint64),
        edges=np.zeros(num_games * num_edges, EDGE),
        action=np.zeros(num_games * num_edges, np.int8),
        num_nodes=np.zeros(num_games, np.int32),
        num_edges=np.zeros(num_games, np.int32),
        simulations=np.zeros(num_games, np.int32),
        most_simulations=np.zeros(num_games, np.int32),
        is_noisy=np.zeros(num_games, np.bool_),
        rng_state=np.zeros(num_games, np.uint64),
        num_pending=np.zeros(num_games, np.int32),
        root_key=np.zeros(num_games * MOST_EDGES, np.float32),
        weights=np.zeros(MOST_EDGES, np.float64),
    )


def grown(tree: Tree, num_nodes: int, rules: Rules) -> Tree:
    """Returns the tree of one game with room for more nodes."""
    larger = new_tree(1, num_nodes, rules)
    for old, new in zip(tree, larger, strict=True):
        if isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
            new[: len(old)] = old
    return larger


def new_walks(num_walks: int, rules: Rules) -> Walks:
    """Returns room for so many leaves."""
    num_words = len(rules.squares)
    plies = 2 * rules.size * rules.size  # no side passes twice running
    return Walks(
        plies=plies,
        player=np.zeros((num_walks, num_words), np.uint64),
        opponent=np.zeros((num_walks, num_words), np.uint64),
        game=np.zeros(num_walks, np.int32),
        leaf=np.zeros(num_walks, np.int32),
        length=np.zeros(num_walks, np.int32),
        edge=np.zeros(num_walks * plies, np.int32),
        node=np.zeros(num_walks * plies, np.int32),
    )


@kernel
def tree_spans(tree: Tree) -> Tree:
    """Returns a tree of arrays with spans in their place."""
    return Tree(
        tree.nodes_per_game,
        tree.edges_per_game,
        span_of(tree.nodes),
        span_of(tree.player),
        span_of(tree.opponent),
        span_of(tree.edges),
        span_of(tree.action),
        span_of(tree.num_nodes),
        span_of(tree.num_edges),
        span_of(tree.simulations),
        span_of(tree.most_simulations),
        span_of(tree.is_noisy),
        span_of(tree.rng_state),
        span_of(tree.num_pending),
        span_of(tree.root_key),
        span_of(tree.weights),
    )


@kernel
def walk_spans(walks: Walks) -> Walks:
    """Returns walks of arrays with spans in their place."""
    return Walks(
        walks.plies,
        span_of(walks.player.reshape(-1)),
        span_of(walks.opponent.reshape(-1)),
        span_of(walks.game),
        span_of(walks.leaf),
        span_of(walks.length),
        span_of(walks.edge),
        span_of(walks.node),
    )


@kernel
def load_board(boards: np.ndarray, row: int, like: Bitboard) -> Bitboard:
    """Returns board `row` of a span of boards; `like` has as many words."""
    board = no_square(like)
    for word in range(len(like)):
        board = tuple_setitem(board, word, boards[row * len(like) + word])
    return board


@kernel
def store_board(boards: np.ndarray, row: int, board: Bitboard) -> None:
    """Writes a board into place `row` of a span of boards."""
    for word in range(len(board)):
        boards[row * len(board) + word] = board[word]


@kernel
def root_of(tree: Tree, game: int) -> int:
    """Returns the node that is a game's root."""
    return game * tree.nodes_per_game


@kernel
def has_room(tree: Tree, game: int) -> bool:
    """Returns whether another node fits."""
    return bool(tree.num_nodes[game] < tree.nodes_per_game)


@kernel
def set_root(
    tree: Tree, game: int, player: Bitboard, opponent: Bitboard, most_simulations: int, is_noisy: bool, rules: Rules
) -> None:
    """Begins a game's tree anew."""
    tree.num_nodes[game] = 0
    tree.num_edges[game] = 0
    tree.simulations[game] = 0
    tree.most_simulations[game] = most_simulations
    tree.is_noisy[game] = is_noisy
    tree.num_pending[game] = 0
    add_node(tree, game, player, opponent, rules)


@kernel
def add_node(tree: Tree, game: int, player: Bitboard, opponent: Bitboard, rules: Rules) -> int:
    """Adds a node without edges, PROVEN if the game is over there, and returns it."""
    node: int = root_of(tree, game) + tree.num_nodes[game]
    tree.num_nodes[game] += 1
    store_board(tree.player, node, player)
    store_board(tree.opponent, node, opponent)
    record = tree.nodes[node]
    record.visits = 0
    record.num_edges = 0
    record.num_taken = 0
    record.state = LEAF
    legal = legal_mask(player, opponent, rules)
    if is_empty(legal) and status(player, opponent, legal, rules) == OVER:
        record.state = PROVEN
        record.value = np.sign(final_score(player, opponent, rules))
    return node


@kernel
def take_edge(tree: Tree, game: int, node: int, edge: int, rules: Rules) -> int:
    """Makes the child of the first edge that was not taken yet, and returns it."""
    player, opponent = load_board(tree.player, node, rules.squares), load_board(tree.opponent, node, rules.squares)
    after = play_square(player, opponent, int(tree.action[edge]), rules)
    child = add_node(tree, game, after[0], after[1], rules)
    record = tree.edges[edge]
    record.total = 0
    record.visits = 0
    record.child = child
    tree.nodes[node].num_taken += 1
    return child


@kernel
def swap_edges(tree: Tree, one: int, other: int) -> None:
    """Swaps two edges that were not taken yet."""
    tree.action[one], tree.action[other] = tree.action[other], tree.action[one]
    prior = tree.edges[one].prior
    tree.edges[one].prior = tree.edges[other].prior
    tree.edges[other].prior = prior


@kernel
def bring_up_next(tree: Tree, node: int) -> None:
    """Puts the edge of the greatest prior, the first of equals, before the others that were not taken yet."""
    record = tree.nodes[node]
    first = record.first_edge + record.num_taken
    best, best_prior = first, np.float32(-1)
    for edge in range(first, record.first_edge + record.num_edges):
        prior = tree.edges[edge].prior
        if prior > best_prior:
            best, best_prior = edge, prior
    if best != first:
        swap_edges(tree, first, best)


@kernel
def expand(tree: Tree, game: int, node: int, policy: np.ndarray, first_prior: int, rules: Rules) -> None:
    """Gives a node an edge for each legal move; none if the room is used up.

    Its prior is what stands in `policy` so many places after `first_prior` as its action says.
    """
    record = tree.nodes[node]
    if tree.num_edges[game] + MOST_EDGES > tree.edges_per_game:
        record.state = LEAF
        return
    first = game * tree.edges_per_game + tree.num_edges[game]
    player, opponent = load_board(tree.player, node, rules.squares), load_board(tree.opponent, node, rules.squares)
    legal = legal_mask(player, opponent, rules)
    edge = first
    best, best_prior = first, np.float32(-1)
    if is_empty(legal):
        tree.action[edge] = rules.size * rules.size
        tree.edges[edge].prior = 1
        edge += 1
    while not is_empty(legal):
        square = square_of(lowest(legal), rules.size, legal)
        legal = without_lowest(legal)
        prior = policy[first_prior + square]
        tree.action[edge] = square
        tree.edges[edge].prior = prior
        if prior > best_prior:
            best, best_prior = edge, prior
        edge += 1
    if best != first:
        swap_edges(tree, first, best)
    tree.num_edges[game] += edge - first
    record.first_edge = first
    record.num_edges = edge - first
    record.state = EXPANDED


@kernel
def child_of(tree: Tree, edge: int) -> int:
    """Returns the node that a taken edge leads to."""
    child = int(tree.edges[edge].child)
    return -1 - child if child < 0 else child


@kernel
def proven_child(tree: Tree, edge: int) -> int:
    """Returns the child of an edge if it is proven, else −1."""
    child: int = tree.edges[edge].child
    return -1 - child if child < 0 else -1


@kernel
def is_lost(tree: Tree, edge: int) -> bool:
    """Returns whether a taken edge is proven to lose."""
    child = proven_child(tree, edge)
    return child >= 0 and bool(tree.nodes[child].value > 0)


@kernel
def mean_value(tree: Tree, edge: int, otherwise: float) -> float:
    """Returns what a taken edge is worth to the side to move: certain, or the mean of its visits, if it has any."""
    record = tree.edges[edge]
    if record.child < 0:
        return float(-tree.nodes[-1 - record.child].value)
    return float(record.total / record.visits) if record.visits else float(otherwise)


@kernel
def back_up(tree: Tree, walks: Walks, row: int, value: float, virtual_loss: float) -> None:
    """Adds `value`, that of the side to move at the end of the walk, to all its edges; each ply turns it round.

    Takes back the loss that the walk has left on them.
    """
    for ply in range(walks.length[row] - 1, -1, -1):
        value = -value
        tree.edges[walks.edge[row * walks.plies + ply]].total += np.float32(value + virtual_loss)


@kernel
def give_up(tree: Tree, walks: Walks, row: int, virtual_loss: float) -> None:
    """Takes a walk back, as if it had not been begun."""
    for ply in range(walks.length[row]):
        edge = tree.edges[walks.edge[row * walks.plies + ply]]
        edge.visits -= 1
        edge.total += np.float32(virtual_loss)
        tree.nodes[walks.node[row * walks.plies + ply]].visits -= 1
    tree.simulations[walks.game[row]] -= 1


@kernel
def prove_upward(tree: Tree, walks: Walks, row: int) -> None:
    """Marks the last edge of a walk that has ended at a proven node, and what follows from it further up."""
    for ply in range(walks.length[row] - 1, -1, -1):
        edge = tree.edges[walks.edge[row * walks.plies + ply]]
        node = tree.nodes[walks.node[row * walks.plies + ply]]
        if edge.child >= 0:
            edge.child = -1 - edge.child
        value = -tree.nodes[-1 - edge.child].value
        if value < 1:
            if node.num_taken < node.num_edges:
                return
            for other in range(node.first_edge, node.first_edge + node.num_edges):
                child = proven_child(tree, other)
                if child < 0:
                    return
                value = max(value, -tree.nodes[child].value)
        node.value = value
        node.state = PROVEN


@kernel
def move_walk(walks: Walks, row: int, place: int, rules: Rules) -> None:
    """Writes a walk over another."""
    store_board(walks.player, place, load_board(walks.player, row, rules.squares))
    store_board(walks.opponent, place, load_board(walks.opponent, row, rules.squares))
    walks.game[place] = walks.game[row]
    walks.leaf[place] = walks.leaf[row]
    walks.length[place] = walks.length[row]
    for ply in range(walks.length[row]):
        walks.edge[place * walks.plies + ply] = walks.edge[row * walks.plies + ply]
        walks.node[place * walks.plies + ply] = walks.node[row * walks.plies + ply]
