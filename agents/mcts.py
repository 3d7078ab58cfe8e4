"""Monte Carlo tree search with a network: many positions at once, one evaluation of a leaf of each at a time."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from agents.agent import Agent, Decision
from agents.tree import (
    Leaves,
    Tree,
    mix_root_noise,
    new_leaves,
    new_tree,
    read_line,
    read_roots,
    select_leaves,
    set_roots,
    take_evaluations,
)
from reversi_env import Position, Variant

MOST_SIMULATIONS = 1_000_000  # a tree of so many takes a gigabyte; its sums in float32 are still good to 1e-6 or so


class Evaluator(Protocol):
    """What search asks of a network."""

    def __call__(self, player: np.ndarray, opponent: np.ndarray, variant: Variant) -> tuple[np.ndarray, np.ndarray]:
        """Returns a policy float32 [B, size² + 1], zero on illegal actions and summing to one, and values float32 [B].

        The positions are bitboards uint64 [B, W] of the side to move and the other side, none of them over; a value is
        the expected result for the side to move, in [-1, 1].
        """


@dataclass
class MCTSConfig:
    """How much and how boldly to search."""

    num_simulations: int = 100
    puct_constant: float = 1.5  # higher explores more
    noise_fraction: float = 0.0  # how much of the root's prior is Dirichlet noise; self-play wants 0.25
    # The noise's α is this over the number of legal moves; AlphaZero's 0.3 in chess and 0.03 in Go are 10 over theirs.
    noise_concentration: float = 10.0
    temperature: float = 1.0  # of the draw of early moves: in proportion to visits to the power of its inverse
    temperature_plies: int = 0  # so many moves from the start are drawn; later ones are the most visited

    def __post_init__(self) -> None:
        if not 1 <= self.num_simulations <= MOST_SIMULATIONS:
            raise ValueError(f"num_simulations must be from 1 to {MOST_SIMULATIONS:,}, got {self.num_simulations}")
        for name in ("puct_constant", "noise_concentration", "temperature"):
            if not 0 < getattr(self, name) < math.inf:  # so that NaN is none either
                raise ValueError(f"{name} must be above 0 and finite, got {getattr(self, name)}")
        if not 0 <= self.noise_fraction <= 1:
            raise ValueError(f"noise_fraction must be from 0 to 1, got {self.noise_fraction}")
        if self.temperature_plies < 0:
            raise ValueError(f"temperature_plies must be at least 0, got {self.temperature_plies}")


@dataclass(frozen=True)
class Searched:
    """What a search of n positions found."""

    visit_count: np.ndarray  # int32 [n, size² + 1]
    value: np.ndarray  # float32 [n], the mean of the simulations for the side to move
    lines: Callable[[int], tuple[int, ...]]  # the principal line of position i; valid until the next search


class Search:
    """Searches positions of one variant, keeping its memory from one search to the next."""

    def __init__(self, variant: Variant, evaluate: Evaluator, config: MCTSConfig) -> None:
        self.variant = variant
        self.evaluate = evaluate
        self.config = config
        self._tree: Tree | None = None
        self._leaves: Leaves | None = None

    def run(self, player: np.ndarray, opponent: np.ndarray, rngs: Sequence[np.random.Generator]) -> Searched:
        """Returns what the search found in positions uint64 [n, W], none of them over.

        Each has a generator of its own, which root noise is drawn from.
        """
        num_games = len(player)
        rules = self.variant.rules
        tree, leaves = self._room_for(num_games)
        set_roots(tree, player, opponent, np.full(num_games, self.config.num_simulations, np.int32), rules)
        self._evaluate_leaves(tree, leaves)  # the roots
        if self.config.noise_fraction:
            for game, rng in enumerate(rngs):
                num_edges = int(tree.num_edges[game, 0])
                noise = rng.dirichlet(np.full(num_edges, self.config.noise_concentration / num_edges))
                mix_root_noise(tree, game, noise, self.config.noise_fraction)
        while self._evaluate_leaves(tree, leaves):
            pass
        visit_count = np.empty((num_games, self.variant.num_actions), np.int32)
        value = np.empty(num_games, np.float32)
        read_roots(tree, visit_count, value)

        def line(game: int) -> tuple[int, ...]:
            moves = np.empty(tree.path.shape[1], np.int32)
            return tuple(moves[: read_line(tree, game, moves)].tolist())

        return Searched(visit_count, value, line)

    def _evaluate_leaves(self, tree: Tree, leaves: Leaves) -> int:
        """Takes one step in every game that has simulations left; returns in how many."""
        rules = self.variant.rules
        num_leaves = select_leaves(tree, leaves, self.config.puct_constant, rules)
        if num_leaves:
            policy, value = self.evaluate(leaves.player[:num_leaves], leaves.opponent[:num_leaves], self.variant)
            take_evaluations(tree, leaves, num_leaves, policy, value, rules)
        return num_leaves

    def _room_for(self, num_games: int) -> tuple[Tree, Leaves]:
        if self._tree is None or self._leaves is None or self._tree.leaf.shape[0] < num_games:
            self._tree = new_tree(num_games, self.config.num_simulations + 1, self.variant.rules)
            self._leaves = new_leaves(num_games, self.variant.rules)
        return self._tree, self._leaves


class MCTSAgent(Agent):
    """Plays by search with an evaluator; draws its moves by their visits early in the game if so configured.

    A batch is divided among `num_threads` threads.
    """

    def __init__(
        self,
        evaluate: Evaluator,
        config: MCTSConfig,
        name: str,
        variant: Variant | None = None,
        num_threads: int = 1,
    ) -> None:
        self.evaluate = evaluate
        self.config = config
        self.name = name
        self.variant = variant
        self.num_threads = num_threads
        self._searches: dict[tuple[Variant, int], Search] = {}

    def select(self, position: Position, rng: np.random.Generator) -> Decision:
        return self.select_batch([position], [rng])[0]

    def analyze(self, position: Position) -> Decision:
        still = replace(self.config, noise_fraction=0.0, temperature_plies=0)
        search = Search(position.variant, self.evaluate, still)
        return self._decide(search, [position], [np.random.default_rng(0)])[0]

    def intuition(self, position: Position) -> Decision:
        """Returns what the evaluator alone says, without search: its likeliest move, its policy and its value."""
        policy, value = self.evaluate(np.array([position.player]), np.array([position.opponent]), position.variant)
        return Decision(move=int(policy[0].argmax()), value=float(value[0]), policy=policy[0], num_nodes=1)

    def select_batch(self, positions: Sequence[Position], rngs: Sequence[np.random.Generator]) -> list[Decision]:
        parts: dict[tuple[Variant, int], list[int]] = {}  # positions that one thread searches together
        for index, position in enumerate(positions):
            parts.setdefault((position.variant, index % self.num_threads), []).append(index)
        searches = [self._searches.setdefault(part, Search(part[0], self.evaluate, self.config)) for part in parts]

        def decide(search: Search, indices: list[int]) -> list[Decision]:
            return self._decide(search, [positions[index] for index in indices], [rngs[index] for index in indices])

        if len(parts) == 1:  # a thread of its own would only cost time
            return decide(searches[0], list(range(len(positions))))
        with ThreadPoolExecutor(self.num_threads) as pool:
            found = list(pool.map(decide, searches, parts.values()))
        decisions = {
            index: decision
            for indices, part in zip(parts.values(), found, strict=True)
            for index, decision in zip(indices, part, strict=True)
        }
        return [decisions[index] for index in range(len(positions))]

    def _decide(
        self, search: Search, positions: Sequence[Position], rngs: Sequence[np.random.Generator]
    ) -> list[Decision]:
        for position in positions:
            if position.is_over:
                raise ValueError(f"the game is over, so there is no move to choose: {position.text}")
        if self.variant and self.variant.goal != search.variant.goal:
            raise ValueError(
                f"{self.name} was trained to win with the {self.variant.goal} discs, "
                f"and {search.variant.name} is won with the {search.variant.goal}"
            )
        player = np.array([position.player for position in positions], np.uint64)
        opponent = np.array([position.opponent for position in positions], np.uint64)
        searched = search.run(player, opponent, rngs)
        decisions = []
        for index, (position, rng) in enumerate(zip(positions, rngs, strict=True)):
            visits = searched.visit_count[index]
            decisions.append(
                Decision(
                    move=choose_move(visits, position, search.config, rng),
                    value=float(searched.value[index]),
                    policy=(visits / visits.sum()).astype(np.float32),
                    num_nodes=search.config.num_simulations,
                    principal_line=searched.lines(index),
                )
            )
        return decisions


def choose_move(visits: np.ndarray, position: Position, config: MCTSConfig, rng: np.random.Generator) -> int:
    """Returns the action to play by visits, int32 [A]: drawn early in the game if so configured, else the most seen."""
    if Position(position.variant).num_empties - position.num_empties >= config.temperature_plies:
        return int(visits.argmax())
    weights = (visits / visits.max()) ** (1 / config.temperature)
    return int(rng.choice(len(visits), p=weights / weights.sum()))
