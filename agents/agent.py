"""What every player is: a position in, a move out, and what the player can tell of it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reversi_env import Position, Variant


@dataclass(frozen=True)
class Candidate:
    """A move that a tree search looked at."""

    move: int
    visits: int
    value: float  # expected result for the side to move, in [-1, 1]
    prior: float  # what was thought of it before


@dataclass(frozen=True)
class Decision:
    """A move and what its player can tell of it; what it cannot tell is None, 0 or empty."""

    move: int  # a square or the pass
    value: float | None = None  # expected result for the side to move, in [-1, 1]
    evaluation: float | None = None  # expected score for the side to move, in discs
    policy: np.ndarray | None = None  # float32 [size² + 1], sums to one over the legal actions
    num_nodes: int = 0  # positions looked at
    depth: int | None = None  # plies looked ahead; None for what was played out, too
    principal_line: tuple[int, ...] = ()  # the expected moves, this one first
    is_exact: bool = False  # whether `evaluation` is the proven score
    candidates: tuple[Candidate, ...] = ()  # of a tree search, the most visited first


class Agent(ABC):
    """A player. What it keeps from one call to the next may not change a move: a position and a generator decide."""

    name: str = "agent"
    variant: Variant | None = None  # what it was made for; None plays every variant alike

    @abstractmethod
    def select(self, position: Position, rng: np.random.Generator) -> Decision:
        """Returns the move to play in a position that is not over; every random choice comes from `rng`."""

    def select_batch(self, positions: Sequence[Position], rngs: Sequence[np.random.Generator]) -> list[Decision]:
        """Returns a decision for each position, each with a generator of its own: what `select` would.

        A network's sums may differ in the last digit with the size of the batch.
        """
        return [self.select(position, rng) for position, rng in zip(positions, rngs, strict=True)]

    def analyze(self, position: Position) -> Decision:
        """Returns what the player thinks of a position, at its best: without noise, the same at every call."""
        return self.select(position, np.random.default_rng(0))
