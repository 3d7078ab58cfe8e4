"""How AlphaZero chooses: by the mean of an edge's values and a bonus for its prior, less for each visit.

Silver et al. 2018, "A general reinforcement learning algorithm that masters chess, shogi, and Go through self-play",
supplement, "Search". What else is here is of Wu 2019, "Accelerating Self-Play Learning in Go" (arXiv:1902.10565): an
untaken edge has its node's value less `first_play_reduction` · √(prior of the taken ones) (section 2), and forced
playouts with pruned policies (section 3.2).
"""

import numpy as np

from agents.mcts.noise import draw_gamma
from agents.mcts.tree import MOST_EDGES, Tree, bring_up_next, is_lost, mean_value, root_of
from reversi_env.jit import kernel


@kernel
def puct_bonus(tree: Tree, node: int, puct_constant: float) -> float:
    """Returns what the bonus of a node's edges has in common: c · √visits."""
    return float(puct_constant * np.sqrt(float(max(tree.nodes[node].visits, 1))))


@kernel
def best_by_puct(
    tree: Tree, node: int, puct_constant: float, first_play_reduction: float, forced_playouts: float
) -> int:
    """Returns the edge of a node to walk on by; one that is proven lost only where all are.

    With `forced_playouts` above 0 an edge goes first until it has √(that · prior · visits of the node) visits.
    """
    record = tree.nodes[node]
    first = int(record.first_edge)
    bonus = puct_bonus(tree, node, puct_constant)
    best, best_score = first, -np.inf
    prior_taken = 0.0
    for edge in range(first, first + record.num_taken):
        taken = tree.edges[edge]
        prior_taken += taken.prior
        if is_lost(tree, edge):
            continue
        mean = mean_value(tree, edge, record.value)
        score = mean + bonus * taken.prior / (1 + taken.visits)
        if forced_playouts > 0 and 0 < taken.visits < np.sqrt(forced_playouts * taken.prior * record.visits):
            score = np.inf
        if score > best_score:
            best, best_score = edge, score
    if record.num_taken < record.num_edges:
        edge = first + record.num_taken
        mean = record.value - first_play_reduction * np.sqrt(prior_taken)
        if mean + bonus * tree.edges[edge].prior > best_score:
            best = edge
    return best


@kernel
def mix_root_noise(tree: Tree, game: int, fraction: float, concentration: float) -> None:
    """Replaces `fraction` of the root's priors by Dirichlet noise, its α `concentration` over the number of moves.

    What they were stays in `tree.root_key`, by action.
    """
    root = tree.nodes[root_of(tree, game)]
    first, num_edges = int(root.first_edge), int(root.num_edges)
    total = 0.0
    for index in range(num_edges):
        tree.weights[index] = draw_gamma(tree.rng_state, game, concentration / num_edges)
        total += tree.weights[index]
    for index in range(num_edges):
        noise = tree.weights[index] / total if total > 0 else 1 / num_edges
        edge = tree.edges[first + index]
        tree.root_key[game * MOST_EDGES + tree.action[first + index]] = edge.prior
        edge.prior = (1 - fraction) * edge.prior + fraction * noise
    bring_up_next(tree, root_of(tree, game))


@kernel
def raw_prior(tree: Tree, game: int, edge: int, noise_fraction: float) -> float:
    """Returns the prior of a root edge without noise."""
    if noise_fraction > 0 and tree.is_noisy[game]:
        return float(tree.root_key[game * MOST_EDGES + tree.action[edge]])
    return float(tree.edges[edge].prior)


@kernel
def read_visits(tree: Tree, game: int, puct_constant: float, forced_playouts: float, visits: np.ndarray) -> None:
    """Fills `visits`, float64 by root edge, less those that were forced and that choice alone would not have made.

    The most visited edge keeps all its visits; from each other at most √(forced · prior · visits) are taken while its
    score stays below that of the first; one that is left with a single visit loses it.
    """
    root = root_of(tree, game)
    record = tree.nodes[root]
    first = int(record.first_edge)
    best = first
    for edge in range(first, first + record.num_taken):
        visits[edge - first] = tree.edges[edge].visits
        if tree.edges[edge].visits > tree.edges[best].visits:
            best = edge
    for edge in range(first + record.num_taken, first + record.num_edges):
        visits[edge - first] = 0
    if forced_playouts <= 0 or tree.edges[best].visits == 0:
        return
    bonus = puct_bonus(tree, root, puct_constant)
    top = tree.edges[best]
    best_score = mean_value(tree, best, record.value) + bonus * top.prior / (1 + top.visits)
    for index in range(record.num_taken):
        edge = tree.edges[first + index]
        if first + index == best or edge.visits == 0:
            continue
        mean = mean_value(tree, first + index, record.value)
        forced = int(np.sqrt(forced_playouts * edge.prior * record.visits))
        kept = int(edge.visits)
        while forced > 0 and kept > 0 and mean + bonus * edge.prior / kept < best_score:
            kept -= 1
            forced -= 1
        visits[index] = 0 if kept <= 1 else kept
