"""How Gumbel AlphaZero chooses: without replacement at the root, and below it as its improved policy wants.

Danihelka, Guez, Schrittwieser and Silver, "Policy improvement by planning with Gumbel", ICLR 2022: sequential halving
(section 3.4, algorithm 2), the completed values and the improved policy softmax(logits + σ(values)) (section 4,
equations 8 and 11), the deterministic rule below the root (section 5, equation 14), and the mixed value of what was
not visited (appendix D, equation 33). Here σ(value) = (visit_offset + greatest visits of an edge) · value_scale ·
value, and values are results in [−1, 1].

Priors stand for logits: prior · exp(σ) is proportional to exp(logit + σ).
"""

import numpy as np

from agents.mcts.noise import draw_gumbel
from agents.mcts.tree import LEAST_PRIOR, MOST_EDGES, Tree, is_lost, mean_value, root_of, swap_edges
from reversi_env.jit import kernel


@kernel
def wanted_visits(num_considered: int, num_simulations: int, simulation: int) -> int:
    """Returns how many visits a root move has to have had to be the one that a simulation, counted from 0, goes to.

    Going to the best of those with so many is sequential halving: while r moves are left each is visited equally often,
    then the better half goes on.
    """
    num_phases = 1
    while 1 << num_phases < num_considered:
        num_phases += 1
    num_left, visits = num_considered, 0
    while True:
        more = max(1, num_simulations // (num_phases * num_left))
        if simulation < more * num_left:
            return visits + simulation // num_left
        simulation -= more * num_left
        visits += more
        num_left = max(min(2, num_considered), num_left // 2)


@kernel
def draw_root_keys(tree: Tree, game: int, gumbel_scale: float) -> None:
    """Puts the root's edges, none of which was taken, in the order of noise + logit, the greatest first."""
    root = tree.nodes[root_of(tree, game)]
    first = int(root.first_edge)
    keys, base = tree.root_key, game * MOST_EDGES
    for index in range(root.num_edges):
        key = np.float32(np.log(max(float(tree.edges[first + index].prior), LEAST_PRIOR)))
        if gumbel_scale > 0:
            key += np.float32(gumbel_scale * draw_gumbel(tree.rng_state, game))
        keys[base + index] = key
        place = base + index
        while place > base and keys[place - 1] < keys[place]:
            keys[place - 1], keys[place] = keys[place], keys[place - 1]
            swap_edges(tree, first + place - base - 1, first + place - base)
            place -= 1


@kernel
def _weigh(tree: Tree, node: int, value_scale: float, visit_offset: float) -> tuple[float, float]:
    """Fills `tree.weights` with what the improved policy is proportional to, for the taken edges of a node.

    Returns the sum over all edges, and by what the prior of an untaken one is to be multiplied for its own weight.
    """
    record = tree.nodes[node]
    first = int(record.first_edge)
    prior_visited, weighted, most = 0.0, 0.0, 0
    for index in range(record.num_taken):
        taken = tree.edges[first + index]
        if taken.visits:
            value = mean_value(tree, first + index, 0.0)
            tree.weights[index] = value
            prior_visited += taken.prior
            weighted += taken.prior * value
            most = max(most, taken.visits)
    mixed = float(record.value)
    if prior_visited > 0:
        mixed = (mixed + record.visits * (weighted / prior_visited)) / (1 + record.visits)
    has_untaken = record.num_taken < record.num_edges
    greatest = mixed if has_untaken else -np.inf  # to which exponents are relative, so that none is above 0
    for index in range(record.num_taken):
        if not tree.edges[first + index].visits:
            tree.weights[index] = mixed
        greatest = max(greatest, tree.weights[index])
    scale = (visit_offset + most) * value_scale
    prior_left, total = 1.0, 0.0
    for index in range(record.num_taken):
        prior = float(tree.edges[first + index].prior)
        prior_left -= prior
        tree.weights[index] = prior * np.exp(scale * (tree.weights[index] - greatest))
        total += tree.weights[index]
    of_untaken = 0.0
    if has_untaken:
        of_untaken = float(np.exp(scale * (mixed - greatest)))
        total += max(prior_left, 0.0) * of_untaken
    return max(total, LEAST_PRIOR), of_untaken


@kernel
def best_by_improved_policy(tree: Tree, node: int, value_scale: float, visit_offset: float) -> int:
    """Returns the edge whose share of visits lacks most to the improved policy, the first of equals; no lost one."""
    record = tree.nodes[node]
    first = int(record.first_edge)
    total, of_untaken = _weigh(tree, node, value_scale, visit_offset)
    best, best_lack = first, -np.inf
    for index in range(record.num_taken):
        if is_lost(tree, first + index):
            continue
        lack = tree.weights[index] / total - tree.edges[first + index].visits / (1 + record.visits)
        if lack > best_lack:
            best, best_lack = first + index, lack
    if record.num_taken < record.num_edges:
        edge = first + record.num_taken
        if tree.edges[edge].prior * of_untaken / total > best_lack:
            best = edge
    return best


@kernel
def value_weight(tree: Tree, node: int, value_scale: float, visit_offset: float) -> float:
    """Returns σ of the value 1: what values count beside noise and logits."""
    record = tree.nodes[node]
    most = 0
    for edge in range(record.first_edge, record.first_edge + record.num_taken):
        most = max(most, tree.edges[edge].visits)
    return float((visit_offset + most) * value_scale)


@kernel
def key_of(tree: Tree, game: int, index: int, weight: float) -> float:
    """Returns noise + logit + σ(value) of a taken root edge; `weight` is that of values."""
    root = root_of(tree, game)
    mean = mean_value(tree, int(tree.nodes[root].first_edge) + index, tree.nodes[root].value)
    return float(tree.root_key[game * MOST_EDGES + index] + weight * mean)


@kernel
def best_root_edge(
    tree: Tree, game: int, num_considered: int, wanted: int, value_scale: float, visit_offset: float
) -> int:
    """Returns the best of the considered root edges with `wanted` visits, by noise + logit + σ(value).

    Where none has so many, walks having been given up, those with the most of fewer visits stand for them.
    """
    root = tree.nodes[root_of(tree, game)]
    first = int(root.first_edge)
    if wanted == 0 and root.num_taken < num_considered:
        return first + int(root.num_taken)  # untaken ones have one value, and lie in the order of noise + logit
    weight = value_weight(tree, root_of(tree, game), value_scale, visit_offset)
    best, best_visits, best_key = first, -1, -np.inf
    for index in range(root.num_taken):
        visits = int(tree.edges[first + index].visits)
        if visits > wanted or visits < best_visits:
            continue
        key = key_of(tree, game, index, weight)
        if visits > best_visits or key > best_key:
            best, best_visits, best_key = first + index, visits, key
    return best


@kernel
def read_improved_policy(tree: Tree, game: int, value_scale: float, visit_offset: float, policy: np.ndarray) -> None:
    """Fills `policy`, float64 by root edge, with the improved policy; it sums to one."""
    root = root_of(tree, game)
    record = tree.nodes[root]
    first = int(record.first_edge)
    _, of_untaken = _weigh(tree, root, value_scale, visit_offset)
    total = 0.0
    for index in range(record.num_edges):
        is_taken = index < record.num_taken
        policy[index] = tree.weights[index] if is_taken else tree.edges[first + index].prior * of_untaken
        total += policy[index]
    for index in range(record.num_edges):
        policy[index] = policy[index] / total if total > 0 else 1 / record.num_edges
