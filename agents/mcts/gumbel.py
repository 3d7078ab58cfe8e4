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
from agents.mcts.tree import MOST_EDGES, Tree, mean_value, root_of, swap_edges
from reversi_env.jit import kernel

_LEAST_PRIOR = 1e-30  # whose logarithm is finite
_MOST_EXPONENT = 200.0


def halving_schedule(most_considered: int, num_simulations: int) -> np.ndarray:
    """Returns, by number of considered moves and simulation, how often the move to visit was visited before.

    int32 [most_considered + 1, num_simulations]. Every simulation goes to the best move among those with that many
    visits, which is sequential halving: while r moves are left each is visited equally often, then the better half goes
    on. Row 0 is never asked for.
    """
    schedule = np.zeros((most_considered + 1, num_simulations), np.int32)
    for num_considered in range(1, most_considered + 1):
        num_phases = max(1, int(np.ceil(np.log2(num_considered))))
        visits = np.zeros(num_considered, np.int32)
        wanted: list[int] = []
        num_left = num_considered
        while len(wanted) < num_simulations:
            for _ in range(max(1, num_simulations // (num_phases * num_left))):
                wanted += visits[:num_left].tolist()
                visits[:num_left] += 1
            num_left = max(min(2, num_considered), num_left // 2)
        schedule[num_considered] = wanted[:num_simulations]
    return schedule


@kernel
def draw_root_keys(tree: Tree, game: int, gumbel_scale: float) -> None:
    """Puts the root's edges, none of which was taken, in the order of noise + logit, the greatest first."""
    root = tree.nodes[root_of(tree, game)]
    first = int(root.first_edge)
    keys, base = tree.root_key, game * MOST_EDGES
    for index in range(root.num_edges):
        key = np.float32(np.log(max(float(tree.edges[first + index].prior), _LEAST_PRIOR)))
        if gumbel_scale > 0:
            key += np.float32(gumbel_scale * draw_gumbel(tree.rng_state, game))
        keys[base + index] = key
        place = base + index
        while place > base and keys[place - 1] < keys[place]:
            keys[place - 1], keys[place] = keys[place], keys[place - 1]
            swap_edges(tree, first + place - base - 1, first + place - base)
            place -= 1


@kernel
def _mixed_value(tree: Tree, node: int) -> tuple[float, int]:
    """Returns the value of what was not visited, and the greatest visits of an edge."""
    record = tree.nodes[node]
    prior_visited, weighted, most = 0.0, 0.0, 0
    for edge in range(record.first_edge, record.first_edge + record.num_taken):
        taken = tree.edges[edge]
        if taken.visits:
            prior_visited += taken.prior
            weighted += taken.prior * mean_value(tree, edge, record.value)
            most = max(most, taken.visits)
    value = float(record.value)
    if prior_visited > 0:
        value = (value + record.visits * (weighted / prior_visited)) / (1 + record.visits)
    return value, most


@kernel
def _weigh(tree: Tree, node: int, value_scale: float, visit_offset: float) -> float:
    """Fills `tree.weights` with prior · exp(σ(value) − σ(mixed value)) for the taken edges of a node.

    An untaken edge weighs its prior. Returns the sum of all weights.
    """
    record = tree.nodes[node]
    first = int(record.first_edge)
    mixed, most = _mixed_value(tree, node)
    scale = (visit_offset + most) * value_scale
    prior_left, total = 1.0, 0.0
    for index in range(record.num_taken):
        taken = tree.edges[first + index]
        weight = float(taken.prior)
        prior_left -= weight
        if taken.visits:
            exponent = scale * (mean_value(tree, first + index, mixed) - mixed)
            weight *= np.exp(min(max(exponent, -_MOST_EXPONENT), _MOST_EXPONENT))
        tree.weights[index] = weight
        total += weight
    return max(total + max(prior_left, 0.0), _LEAST_PRIOR)


@kernel
def best_by_improved_policy(tree: Tree, node: int, value_scale: float, visit_offset: float) -> int:
    """Returns the edge whose share of visits lacks most to the improved policy; the first of equals."""
    record = tree.nodes[node]
    first = int(record.first_edge)
    total = _weigh(tree, node, value_scale, visit_offset)
    best, best_lack = first, -np.inf
    for index in range(record.num_taken):
        lack = tree.weights[index] / total - tree.edges[first + index].visits / (1 + record.visits)
        if lack > best_lack:
            best, best_lack = first + index, lack
    if record.num_taken < record.num_edges:
        edge = first + record.num_taken
        if tree.edges[edge].prior / total > best_lack:
            best = edge
    return best


@kernel
def best_root_edge(
    tree: Tree, game: int, num_considered: int, wanted: int, value_scale: float, visit_offset: float
) -> int:
    """Returns the best of the considered root edges with `wanted` visits, by noise + logit + σ(value).

    Where none has so many, walks having been given up or proven, those with the most of fewer visits stand for them.
    """
    root = tree.nodes[root_of(tree, game)]
    first = int(root.first_edge)
    if wanted == 0 and root.num_taken < num_considered:
        return first + int(root.num_taken)  # untaken ones have one value, and lie in the order of noise + logit
    _, most = _mixed_value(tree, root_of(tree, game))
    scale = (visit_offset + most) * value_scale
    best, best_visits, best_key = first, -1, -np.inf
    for index in range(min(int(root.num_taken), num_considered)):
        taken = tree.edges[first + index]
        if taken.visits > wanted or taken.visits < best_visits:
            continue
        key = tree.root_key[game * MOST_EDGES + index] + scale * mean_value(tree, first + index, root.value)
        if taken.visits > best_visits or key > best_key:
            best, best_visits, best_key = first + index, int(taken.visits), key
    return best


@kernel
def read_improved_policy(tree: Tree, game: int, value_scale: float, visit_offset: float, policy: np.ndarray) -> None:
    """Fills `policy`, float64 by root edge, with the improved policy; it sums to one."""
    root = root_of(tree, game)
    record = tree.nodes[root]
    first = int(record.first_edge)
    _weigh(tree, root, value_scale, visit_offset)
    total = 0.0
    for index in range(record.num_edges):
        policy[index] = tree.weights[index] if index < record.num_taken else tree.edges[first + index].prior
        total += policy[index]
    for index in range(record.num_edges):
        policy[index] = policy[index] / total if total > 0 else 1 / record.num_edges
