"""The player that searches a tree with an evaluator."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from agents.agent import Agent, Decision
from agents.mcts.config import MCTSConfig
from agents.mcts.evaluator import Evaluator
from agents.mcts.search import Search, Searched
from reversi_env import Position, Variant

_FIRST_REPORT = 16  # simulations; then at each doubling


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
        return list(self.begin(position, self.config))[-1]

    def begin(self, position: Position, config: MCTSConfig | None = None) -> "Thinking":
        """Returns a search of one position, without noise, that can be watched and stopped."""
        self._check(position)
        return Thinking(Search(position.variant, self.evaluate, _still(config or self.config), 1), position)

    def intuition(self, position: Position) -> Decision:
        """Returns what the evaluator alone says, without search: its likeliest move, its policy and its value."""
        policy, value = self.evaluate(np.array([position.player]), np.array([position.opponent]), position.variant)
        return Decision(move=int(policy[0].argmax()), value=float(value[0]), policy=policy[0], num_nodes=1)

    def select_batch(self, positions: Sequence[Position], rngs: Sequence[np.random.Generator]) -> list[Decision]:
        for position in positions:
            self._check(position)
        if self.config.time_limit_s is not None:  # each has a time of its own
            return [
                self._decide(self._search_of(position.variant, 0), [position], [rng])[0]
                for position, rng in zip(positions, rngs, strict=True)
            ]
        parts: dict[tuple[Variant, int], list[int]] = {}  # positions that one thread searches together
        for index, position in enumerate(positions):
            parts.setdefault((position.variant, index % self.num_threads), []).append(index)
        searches = [self._search_of(*part) for part in parts]

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

    def _search_of(self, variant: Variant, thread: int) -> Search:
        if (variant, thread) not in self._searches:
            self._searches[variant, thread] = Search(variant, self.evaluate, self.config)
        return self._searches[variant, thread]

    def _check(self, position: Position) -> None:
        """Raises ValueError for a position in which there is nothing to search."""
        if position.is_over:
            raise ValueError(f"the game is over, so there is no move to choose: {position.text}")
        if self.variant and self.variant.goal != position.variant.goal:
            raise ValueError(
                f"{self.name} was trained to win with the {self.variant.goal} discs, "
                f"and {position.variant.name} is won with the {position.variant.goal}"
            )

    def _decide(
        self, search: Search, positions: Sequence[Position], rngs: Sequence[np.random.Generator]
    ) -> list[Decision]:
        player = np.array([position.player for position in positions], np.uint64)
        opponent = np.array([position.opponent for position in positions], np.uint64)
        searched = search.run(player, opponent, rngs)
        decisions = []
        for index, (position, rng) in enumerate(zip(positions, rngs, strict=True)):
            weights = searched.policy[index]
            move = choose_move(weights, int(searched.move[index]), position, search.config, rng)
            decisions.append(_decision(searched, index, move))
        return decisions


class Thinking:
    """A search of one position: iterates once over what it has found so far, the last the best.

    It reports at each doubling of its simulations, and ends by its configuration's limits or by `stop`.
    """

    def __init__(self, search: Search, position: Position) -> None:
        self._search = search
        self._position = position
        self._is_stopped = False

    def stop(self) -> None:
        """Ends the search, from a signal handler or another thread; its first decision comes all the same."""
        self._is_stopped = True

    def __iter__(self) -> Iterator[Decision]:
        player, opponent = np.array([self._position.player]), np.array([self._position.opponent])
        told = 0
        for searched in self._search.watch(player, opponent, _FIRST_REPORT, lambda: self._is_stopped):
            if searched.num_simulations[0] != told or not told:
                told = searched.num_simulations[0]
                yield _decision(searched, 0, int(searched.move[0]))


def _decision(searched: Searched, index: int, move: int) -> Decision:
    return Decision(
        move=move,
        value=float(searched.value[index]),
        policy=searched.shares(index),
        num_nodes=int(searched.num_simulations[index]),
        principal_line=searched.lines(index, move),
        candidates=searched.candidates(index),
    )


def _still(config: MCTSConfig) -> MCTSConfig:
    """Returns the configuration without noise and drawn moves."""
    return replace(config, noise_fraction=0.0, temperature_moves=0, final_temperature=0.0, gumbel_scale=0.0)


def choose_move(
    weights: np.ndarray, best: int, position: Position, config: MCTSConfig, rng: np.random.Generator
) -> int:
    """Returns the action to play, drawn by `weights`, float [A], where that is so configured, else the best."""
    is_early = position.num_empties > config.draws_above(position.variant)
    temperature = config.temperature if is_early else config.final_temperature
    if temperature == 0:
        return best
    sharpened = (weights / weights.max()).astype(np.float64) ** (1 / temperature)
    return int(rng.choice(len(weights), p=sharpened / sharpened.sum()))
