"""Going on with what was found below a move, where the game goes there."""

from agents.mcts.tree import Tree, child_of, load_board, root_of, store_board
from reversi_env.jit import kernel
from reversi_env.rules import Rules


@kernel
def descend(tree: Tree, spare: Tree, game: int, edge: int, rules: Rules) -> bool:
    """Makes the child of a root edge the root, with all below it, and returns whether there was anything to keep.

    Both trees are of spans; `spare` has room for one game of the same size. Nothing may wait for the evaluator. The
    search has then begun as many simulations as went on from the new root.
    """
    root = root_of(tree, game)
    if edge >= tree.nodes[root].first_edge + tree.nodes[root].num_taken:
        return False
    top = child_of(tree, edge)
    if tree.nodes[top].num_edges == 0:
        return False
    _copy_node(tree, top, spare, 0, rules)
    num_nodes, num_edges = 1, 0
    node = 0
    while node < num_nodes:  # the nodes that were copied, whose edges still are those of `tree`
        copied = spare.nodes[node]
        first = int(copied.first_edge)
        copied.first_edge = num_edges
        for index in range(copied.num_edges):
            old, new = first + index, num_edges + index
            spare.action[new] = tree.action[old]
            spare.edges[new].prior = tree.edges[old].prior
            if index < copied.num_taken:
                _copy_node(tree, child_of(tree, old), spare, num_nodes, rules)
                spare.edges[new].child = -1 - num_nodes if tree.edges[old].child < 0 else num_nodes
                spare.edges[new].visits = tree.edges[old].visits
                spare.edges[new].total = tree.edges[old].total
                num_nodes += 1
        num_edges += copied.num_edges
        node += 1
    first_edge = game * tree.edges_per_game
    for node in range(num_nodes):
        _copy_node(spare, node, tree, root + node, rules)
        tree.nodes[root + node].first_edge += first_edge
    for index in range(num_edges):
        edge = first_edge + index
        tree.action[edge] = spare.action[index]
        tree.edges[edge].prior = spare.edges[index].prior
        tree.edges[edge].visits = spare.edges[index].visits
        tree.edges[edge].total = spare.edges[index].total
        child = int(spare.edges[index].child)
        tree.edges[edge].child = child - root if child < 0 else child + root
    tree.num_nodes[game] = num_nodes
    tree.num_edges[game] = num_edges
    tree.simulations[game] = tree.nodes[root].visits
    return True


@kernel
def _copy_node(source: Tree, node: int, target: Tree, place: int, rules: Rules) -> None:
    old, new = source.nodes[node], target.nodes[place]
    new.value = old.value
    new.visits = old.visits
    new.first_edge = old.first_edge
    new.num_edges = old.num_edges
    new.num_taken = old.num_taken
    new.state = old.state
    store_board(target.player, place, load_board(source.player, node, rules.squares))
    store_board(target.opponent, place, load_board(source.opponent, node, rules.squares))
