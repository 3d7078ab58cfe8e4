"""The steps of a search that all its games take together: walk to leaves, take their evaluations, read the roots."""

from typing import NamedTuple

import numpy as np

from agents.mcts.gumbel import (
    best_by_improved_policy,
    best_root_edge,
    draw_root_keys,
    key_of,
    read_improved_policy,
    value_weight,
    wanted_visits,
)
from agents.mcts.puct import best_by_puct, mix_root_noise, read_visits
from agents.mcts.tree import (
    EXPANDED,
    LEAF,
    LEAST_PRIOR,
    PENDING,
    PROVEN,
    Tree,
    Walks,
    back_up,
    bring_up_next,
    child_of,
    expand,
    give_up,
    has_room,
    is_lost,
    load_board,
    prove_upward,
    proven_child,
    root_of,
    store_board,
    take_edge,
    tree_spans,
    walk_spans,
)
from reversi_env.jit import kernel
from reversi_env.rules import Rules
from reversi_env.spans import span_of

_MOST_WALKS = 1 << 12  # of a game in one go, so that a search can be stopped where no leaf needs the evaluator


class Settings(NamedTuple):
    """A search's configuration as kernels take it, see `MCTSConfig`."""

    is_gumbel: bool
    proves: bool
    virtual_loss: float  # what a walk under way counts against its edges; 0 where a game has one at a time
    leaves_per_call: int
    puct_constant: float
    first_play_reduction: float
    noise_fraction: float
    noise_concentration: float
    forced_playouts: float
    considered_moves: int
    gumbel_scale: float
    value_scale: float
    visit_offset: float


@kernel
def _next_edge(tree: Tree, game: int, node: int, settings: Settings) -> int:
    """Returns the edge to walk on by."""
    is_root = node == root_of(tree, game)
    if not settings.is_gumbel:
        forced = settings.forced_playouts if is_root and tree.is_noisy[game] else 0.0
        return best_by_puct(tree, node, settings.puct_constant, settings.first_play_reduction, forced)
    if not is_root:
        return best_by_improved_policy(tree, node, settings.value_scale, settings.visit_offset)
    num_simulations = int(tree.most_simulations[game])
    num_considered = min(int(tree.nodes[node].num_edges), settings.considered_moves, num_simulations)
    wanted = wanted_visits(num_considered, num_simulations, int(tree.simulations[game]))
    return best_root_edge(tree, game, num_considered, wanted, settings.value_scale, settings.visit_offset)


@kernel
def _walk(tree: Tree, walks: Walks, row: int, game: int, settings: Settings, rules: Rules) -> int:
    """Walks from the root to a node without edges, made if need be; returns it and leaves the walk in row `row`."""
    node = root_of(tree, game)
    length = 0
    while tree.nodes[node].state == EXPANDED:
        edge = _next_edge(tree, game, node, settings)
        record = tree.nodes[node]
        walks.edge[row * walks.plies + length] = edge
        walks.node[row * walks.plies + length] = node
        length += 1
        if edge == record.first_edge + record.num_taken:
            child = take_edge(tree, game, node, edge, rules)
            if not settings.is_gumbel or node != root_of(tree, game):
                bring_up_next(tree, node)
        else:
            child = child_of(tree, edge)
        tree.edges[edge].visits += 1
        tree.edges[edge].total -= np.float32(settings.virtual_loss)
        record.visits += 1
        node = child
    walks.length[row] = length
    walks.game[row] = game
    walks.leaf[row] = node
    tree.simulations[game] += 1
    return node


@kernel
def _may_walk(tree: Tree, game: int) -> bool:
    """Returns whether another walk may begin: from a root that neither is certain nor waits, with simulations left."""
    state = tree.nodes[root_of(tree, game)].state
    if state == EXPANDED:
        return bool(tree.simulations[game] < tree.most_simulations[game]) and has_room(tree, game)
    return bool(state == LEAF)


@kernel
def is_searched(tree: Tree, game: int) -> bool:
    """Returns whether a game's search has ended."""
    return bool(tree.num_pending[game] == 0) and not _may_walk(tree, game)


@kernel
def count_searching(tree: Tree) -> int:
    """Returns in how many games the search goes on."""
    trees = tree_spans(tree)
    number = 0
    for game in range(len(trees.num_nodes)):
        number += trees.num_nodes[game] > 0 and not is_searched(trees, game)
    return number


@kernel
def select_leaves(tree: Tree, walks: Walks, num_rows: int, settings: Settings, rules: Rules) -> int:
    """Walks in each game that goes on until a leaf needs the evaluator; returns how many rows of `walks` then wait.

    Rows up to `num_rows` wait already. A walk to a proven node is backed up at once and the next one begins, up to
    _MOST_WALKS; one to a leaf that waits already is given up, and its game waits for the evaluator.
    """
    trees, ends = tree_spans(tree), walk_spans(walks)
    for game in range(len(trees.num_nodes)):
        root = root_of(trees, game)
        if trees.num_nodes[game] == 0:
            continue
        for _ in range(_MOST_WALKS):
            if trees.num_pending[game] >= settings.leaves_per_call or not _may_walk(trees, game):
                break
            node = _walk(trees, ends, num_rows, game, settings, rules)
            state = trees.nodes[node].state
            if state == PROVEN:
                finish_walk(trees, ends, num_rows, settings)
                continue
            if state == PENDING:
                give_up(trees, ends, num_rows, settings.virtual_loss)
                break
            trees.nodes[node].state = PENDING
            trees.num_pending[game] += 1
            player, opponent = (
                load_board(trees.player, node, rules.squares),
                load_board(trees.opponent, node, rules.squares),
            )
            store_board(ends.player, num_rows, player)
            store_board(ends.opponent, num_rows, opponent)
            if node == root:
                trees.simulations[game] -= 1  # the evaluation of a root is no simulation
            num_rows += 1
    return num_rows


@kernel
def finish_walk(tree: Tree, walks: Walks, row: int, settings: Settings) -> None:
    """Backs the value of a leaf that is proven up, and what follows from its being so."""
    back_up(tree, walks, row, tree.nodes[walks.leaf[row]].value, settings.virtual_loss)
    if settings.proves:
        prove_upward(tree, walks, row)


@kernel
def take_evaluations(
    tree: Tree, walks: Walks, num_rows: int, policy: np.ndarray, value: np.ndarray, settings: Settings, rules: Rules
) -> None:
    """Expands the leaves that wait, with priors from `policy`, float32 [n, A], and backs `value`, float32 [n], up."""
    trees, ends = tree_spans(tree), walk_spans(walks)
    priors = span_of(policy.reshape(-1))
    for row in range(num_rows):
        game, node = int(ends.game[row]), int(ends.leaf[row])
        trees.num_pending[game] -= 1
        trees.nodes[node].value = value[row]
        expand(trees, game, node, priors, row * policy.shape[1], rules)
        if node == root_of(trees, game):
            prepare_root(trees, game, settings)
        back_up(trees, ends, row, float(value[row]), settings.virtual_loss)


@kernel
def prepare_root(tree: Tree, game: int, settings: Settings) -> None:
    """Gives the root of a game its noise."""
    if settings.is_gumbel:
        draw_root_keys(tree, game, settings.gumbel_scale if tree.is_noisy[game] else 0.0)
    elif tree.is_noisy[game] and settings.noise_fraction > 0:
        mix_root_noise(tree, game, settings.noise_fraction, settings.noise_concentration)


@kernel
def _may_be_best(tree: Tree, game: int, edge: int) -> bool:
    """Returns whether a taken root edge is proven to reach the root's result, or, where that is open, is not lost."""
    root = tree.nodes[root_of(tree, game)]
    if root.state != PROVEN:
        return not is_lost(tree, edge)
    child = proven_child(tree, edge)
    return child >= 0 and bool(-tree.nodes[child].value == root.value)


@kernel
def best_edge(tree: Tree, game: int, settings: Settings) -> int:
    """Returns the root edge to play: the most visited of those that may be best, or an untaken one if none may.

    Of equals a Gumbel root takes the best by noise, prior and value, PUCT the one that was taken first.
    """
    root = tree.nodes[root_of(tree, game)]
    first = int(root.first_edge)
    weight = value_weight(tree, root_of(tree, game), settings.value_scale, settings.visit_offset)
    best = first + root.num_taken if root.num_taken < root.num_edges else first
    best_visits, best_key = -1, -np.inf
    for index in range(root.num_taken):
        if not _may_be_best(tree, game, first + index):
            continue
        visits = int(tree.edges[first + index].visits)
        key = key_of(tree, game, index, weight) if settings.is_gumbel else 0.0
        if visits > best_visits or (visits == best_visits and key > best_key):
            best, best_visits, best_key = first + index, visits, key
    return best


@kernel
def read_policy(tree: Tree, game: int, settings: Settings, policy: np.ndarray) -> None:
    """Fills `policy`, float64 by root edge, with what a network should learn of the root; it sums to one.

    The improved policy of a Gumbel root. By PUCT the shares in the visits of those edges that may be best; before any
    of these was visited, in the priors.
    """
    root = tree.nodes[root_of(tree, game)]
    first = int(root.first_edge)
    if settings.is_gumbel:
        read_improved_policy(tree, game, settings.value_scale, settings.visit_offset, policy)
        return
    is_forced = tree.is_noisy[game] and root.state != PROVEN
    read_visits(tree, game, settings.puct_constant, settings.forced_playouts if is_forced else 0.0, policy)
    total = 0.0
    for index in range(root.num_taken):
        if not _may_be_best(tree, game, first + index):
            policy[index] = 0
        total += policy[index]
    if total == 0:
        for index in range(root.num_edges):
            if index >= root.num_taken or _may_be_best(tree, game, first + index):
                policy[index] = max(float(tree.edges[first + index].prior), LEAST_PRIOR)
                total += policy[index]
    for index in range(root.num_edges):
        policy[index] /= total


@kernel
def root_value(tree: Tree, game: int) -> float:
    """Returns the mean value of the simulations for the side to move, or the certain one.

    Before any simulation it is the evaluator's.
    """
    root = tree.nodes[root_of(tree, game)]
    if root.state == PROVEN or root.visits == 0:
        return float(root.value)
    total = 0.0
    for edge in range(root.first_edge, root.first_edge + root.num_taken):
        total += tree.edges[edge].total
    return float(total / root.visits)


@kernel
def read_roots(
    tree: Tree,
    settings: Settings,
    visit_count: np.ndarray,
    policy: np.ndarray,
    value: np.ndarray,
    move: np.ndarray,
    is_certain: np.ndarray,
) -> None:
    """Fills, for the first n games, all that a search says of its roots.

    visit_count: int32 [n, A]. policy: float32 [n, A], see `read_policy`. value: float32 [n], the mover's. move: int32
    [n], see `best_edge`. is_certain: bool [n], whether the value is proven.
    """
    trees = tree_spans(tree)
    visit_count[:] = 0
    policy[:] = 0
    for game in range(value.shape[0]):
        root = trees.nodes[root_of(trees, game)]
        first = int(root.first_edge)
        read_policy(trees, game, settings, trees.weights)
        for index in range(root.num_edges):
            action = trees.action[first + index]
            policy[game, action] = trees.weights[index]
            if index < root.num_taken:
                visit_count[game, action] = trees.edges[first + index].visits
        value[game] = root_value(trees, game)
        move[game] = trees.action[best_edge(trees, game, settings)]
        is_certain[game] = root.state == PROVEN


@kernel
def read_line(tree: Tree, first_edge: int, line: np.ndarray) -> int:
    """Fills `line`, int32 [D], with an edge's move and the most visited ones from there on; returns how many."""
    edge = int(first_edge)
    length = 0
    while True:
        line[length] = tree.action[edge]
        length += 1
        node = tree.nodes[child_of(tree, edge)]
        if node.num_taken == 0 or length == len(line):
            return length
        edge = int(node.first_edge)
        for other in range(edge, edge + node.num_taken):
            if tree.edges[other].visits > tree.edges[edge].visits:
                edge = other
