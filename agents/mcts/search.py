"""Searches: many positions at once, each with a tree of its own, or one for as long as time allows."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from agents.agent import Candidate
from agents.mcts.config import MCTSConfig
from agents.mcts.evaluator import Evaluator
from agents.mcts.exact import make_exact_memory, solve_leaves
from agents.mcts.tree import MOST_EDGES, Tree, grown, mean_value, new_tree, new_walks, root_of, set_root, tree_spans
from agents.mcts.walking import Settings, count_searching, read_line, read_roots, select_leaves, take_evaluations
from reversi_env import Variant
from reversi_env.bitboard import load
from reversi_env.jit import kernel
from reversi_env.random_bits import first_state
from reversi_env.rules import Rules

_FIRST_NODES = 1 << 12  # of the tree of a single position, which grows


@dataclass(frozen=True)
class Searched:
    """What a search of n positions found."""

    move: np.ndarray  # int32 [n], the best
    value: np.ndarray  # float32 [n], the mean of the simulations for the side to move, or the certain result
    is_certain: np.ndarray  # bool [n], whether the value is proven
    visit_count: np.ndarray  # int32 [n, size² + 1]
    policy: np.ndarray  # float32 [n, size² + 1], what a network should learn of it, see `walking.read_policy`
    num_simulations: np.ndarray  # int32 [n]
    lines: Callable[[int, int], tuple[int, ...]]  # of position i the line from a move on; valid until the next step
    candidates: Callable[[int], tuple[Candidate, ...]]  # of position i, the most visited first; likewise

    def shares(self, index: int) -> np.ndarray:
        """Returns the share of each action in the visits of a position, float32 [A]; without visits, the priors."""
        visits = self.visit_count[index]
        shares: np.ndarray = visits / max(visits.sum(), 1) if visits.any() else self.policy[index]
        return shares.astype(np.float32)


def settings_of(config: MCTSConfig) -> Settings:
    """Returns a configuration as kernels take it: a whole number where a fraction may be would compile them anew."""
    return Settings(
        is_gumbel=config.root == "gumbel",
        proves=config.proves,
        virtual_loss=1.0 if config.leaves_per_call > 1 else 0.0,
        leaves_per_call=config.leaves_per_call,
        puct_constant=float(config.puct_constant),
        first_play_reduction=float(config.first_play_reduction),
        noise_fraction=float(config.noise_fraction),
        noise_concentration=float(config.noise_concentration),
        forced_playouts=float(config.forced_playouts),
        considered_moves=config.considered_moves,
        gumbel_scale=float(config.gumbel_scale),
        value_scale=float(config.value_scale),
        visit_offset=float(config.visit_offset),
    )


class Search:
    """Searches positions of one variant, keeping its memory from one search to the next.

    `tree` is what `agents.mcts.walking` works on; those who play whole games set its roots themselves and call `step`.
    """

    def __init__(self, variant: Variant, evaluate: Evaluator, config: MCTSConfig, num_games: int = 0) -> None:
        self.variant = variant
        self.evaluate = evaluate
        self.config = config
        self.settings = settings_of(config)
        self.evaluator_s = 0.0  # CPU seconds of this thread in the evaluator
        self.solver_s = 0.0  # in exact leaves
        self.num_evaluated = 0  # positions
        self._exact = make_exact_memory(variant) if config.exact_empties else None
        self._make_room(num_games)

    def _make_room(self, num_games: int) -> None:
        num_nodes = self.config.simulation_limit + 1  # the root, and at most one for each simulation
        if num_games == 1:
            num_nodes = min(num_nodes, _FIRST_NODES)
        self.tree = new_tree(num_games, num_nodes, self.variant.rules)
        self.walks = new_walks(num_games * self.config.leaves_per_call + 1, self.variant.rules)

    @property
    def _is_single(self) -> bool:
        return len(self.tree.num_nodes) == 1

    def run(self, player: np.ndarray, opponent: np.ndarray, rngs: Sequence[np.random.Generator] = ()) -> Searched:
        """Returns what the search found in positions uint64 [n, W], none of them over.

        Each has a generator of its own, which noise is drawn from; without generators there is none.
        """
        deadline = self._begin(player, opponent, rngs)
        while self.step() and not _is_past(deadline):
            pass
        return self._read(len(player))

    def watch(
        self, player: np.ndarray, opponent: np.ndarray, first_report: int, is_stopped: Callable[[], bool]
    ) -> Iterator[Searched]:
        """Gives what the search of one position has found after so many simulations, at each doubling, and at its end.

        It ends as `run` does, or when `is_stopped` says so, which is asked after every step.
        """
        deadline = self._begin(player, opponent, ())
        wanted = first_report
        while self.step() and not is_stopped() and not _is_past(deadline):
            if self.tree.simulations[0] >= wanted:
                wanted = 2 * int(self.tree.simulations[0])
                yield self._read(1)
        yield self._read(1)

    def _begin(self, player: np.ndarray, opponent: np.ndarray, rngs: Sequence[np.random.Generator]) -> float | None:
        """Sets the roots, and returns when to end."""
        deadline = None if self.config.time_limit_s is None else time.monotonic() + self.config.time_limit_s
        if len(self.tree.num_nodes) < len(player) or self._is_single != (len(player) == 1):
            self._make_room(len(player))
        states = np.array([first_state(rng) for rng in rngs], np.uint64)
        _set_roots(self.tree, player, opponent, self.config.simulation_limit, states, self.variant.rules)
        return deadline

    def step(self) -> bool:
        """Walks in every game that goes on, has the leaves evaluated, and takes the values up.

        Returns whether there may be more to do.
        """
        walks, num_rows = self.walks, self._find_leaves()
        if num_rows:
            began = time.thread_time()
            policy, value = self.evaluate(walks.player[:num_rows], walks.opponent[:num_rows], self.variant)
            self.evaluator_s += time.thread_time() - began
            self.num_evaluated += num_rows
            take_evaluations(self.tree, walks, num_rows, policy, value, self.settings, self.variant.rules)
        return num_rows > 0 or count_searching(self.tree) > 0

    def _find_leaves(self) -> int:
        """Walks to leaves that wait for the evaluator, and returns how many."""
        num_rows = self._walk(0)
        if self._exact is None:
            return num_rows
        first_row, most_empties, rules = 0, self.config.exact_empties, self.variant.rules
        while True:
            began = time.thread_time()
            num_left = solve_leaves(
                self.tree, self.walks, first_row, num_rows, most_empties, self._exact, self.settings, rules
            )
            self.solver_s += time.thread_time() - began
            # A single game is asked meanwhile whether to stop; of others, those with solved leaves walk on to join in.
            if num_left == num_rows or self._is_single:
                return num_left
            first_row, num_rows = num_left, self._walk(num_left)

    def _walk(self, num_rows: int) -> int:
        """Walks behind so many rows that wait already, and returns how many then wait; a single tree grows with it."""
        while True:
            tree, rules = self.tree, self.variant.rules
            num_rows = select_leaves(tree, self.walks, num_rows, self.settings, rules)
            is_full = self._is_single and tree.num_nodes[0] == tree.nodes_per_game
            if not is_full or tree.simulations[0] == tree.most_simulations[0]:
                return num_rows
            self.tree = grown(tree, 2 * tree.nodes_per_game, rules)

    def _read(self, num_games: int) -> Searched:
        visit_count = np.empty((num_games, self.variant.num_actions), np.int32)
        policy = np.empty((num_games, self.variant.num_actions), np.float32)
        value = np.empty(num_games, np.float32)
        move = np.empty(num_games, np.int32)
        is_certain = np.empty(num_games, np.bool_)
        read_roots(self.tree, self.settings, visit_count, policy, value, move, is_certain)

        def line(game: int, first_move: int) -> tuple[int, ...]:
            moves = np.empty(self.walks.plies, np.int32)
            return tuple(moves[: _read_line_from(self.tree, game, first_move, moves)].tolist())

        def candidates(game: int) -> tuple[Candidate, ...]:
            moves, figures = np.empty(MOST_EDGES, np.int64), np.empty((MOST_EDGES, 3))
            number = _read_candidates(self.tree, game, moves, figures)
            found = [
                Candidate(move, int(visits), value, prior)
                for move, (visits, value, prior) in zip(moves[:number].tolist(), figures.tolist(), strict=False)
            ]
            return tuple(sorted(found, key=lambda candidate: -candidate.visits))

        simulations = self.tree.simulations[:num_games].copy()
        return Searched(move, value, is_certain, visit_count, policy, simulations, line, candidates)


def _is_past(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline


@kernel
def _set_roots(
    tree: Tree,
    player: np.ndarray,
    opponent: np.ndarray,
    num_simulations: int,
    states: np.ndarray,
    rules: Rules,
) -> None:
    """Begins the first n games anew at roots uint64 [n, W], with noise from `states` if there are any."""
    tree.num_nodes[:] = 0
    trees = tree_spans(tree)
    for game in range(player.shape[0]):
        is_noisy = states.shape[0] > 0
        if is_noisy:
            tree.rng_state[game] = states[game]
        own, other = load(player, game, rules.squares), load(opponent, game, rules.squares)
        set_root(trees, game, own, other, num_simulations, is_noisy, rules)


@kernel
def _read_line_from(tree: Tree, game: int, move: int, line: np.ndarray) -> int:
    """Fills `line`, int32 [D], with a root move that was taken and the most visited ones from there on."""
    trees = tree_spans(tree)
    root = trees.nodes[root_of(trees, game)]
    for edge in range(root.first_edge, root.first_edge + root.num_taken):
        if trees.action[edge] == move:
            return read_line(trees, edge, line)
    return 0


@kernel
def _read_candidates(tree: Tree, game: int, moves: np.ndarray, figures: np.ndarray) -> int:
    """Fills `moves`, int64 [E], and visits, value and prior, float64 [E, 3], of the root's edges; returns how many.

    Only those that were visited.
    """
    trees = tree_spans(tree)
    root = trees.nodes[root_of(trees, game)]
    number = 0
    for edge in range(root.first_edge, root.first_edge + root.num_taken):
        if trees.edges[edge].visits:
            moves[number] = trees.action[edge]
            figures[number, 0] = trees.edges[edge].visits
            figures[number, 1] = mean_value(trees, edge, root.value)
            figures[number, 2] = trees.edges[edge].prior
            number += 1
    return number
