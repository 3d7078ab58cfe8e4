"""Whom an environment plays against: one opponent, or a pool of which each game draws one.

What callers give is a name ("random", "greedy", "positional"), "module:factory", a callable `(position, rng) -> move`,
a `BatchOpponent`, or a list or tuple of these. Here all of them become batch opponents.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeGuard, runtime_checkable

import numpy as np

from reversi_env.naming import UnknownNameError
from reversi_env.opponents import BASELINES
from reversi_env.position import OPPONENT, PLAYER, IllegalMoveError, Position
from reversi_env.random_bits import generators
from reversi_env.variant import Variant


@runtime_checkable
class BatchOpponent(Protocol):
    """An opponent of many games at once."""

    @property
    def name(self) -> str:
        """What messages call it."""

    def choose(
        self, variant: Variant, boards: np.ndarray, is_black: np.ndarray, rng_state: np.ndarray, moves: np.ndarray
    ) -> None:
        """Writes the move of the side to move in each of M games, none of which is over or must pass.

        boards: uint64 [M, 3, W], the discs of the side to move, those of the other side, and the legal squares
            (`geometry` says how a board lies in words).
        is_black: bool [M], whether the side to move is black.
        rng_state: uint64 [M], SplitMix64; whoever draws advances it (`random_bits`), and draws from nothing else, so
            that a game does not depend on those beside it.
        moves: int64 [M], to be filled with legal squares.
        """


PositionOpponent: TypeAlias = Callable[[Position, np.random.Generator], int]  # the move of the side to move
Opponent: TypeAlias = BatchOpponent | PositionOpponent | str
Pool: TypeAlias = Opponent | list[Opponent] | tuple[Opponent, ...] | None


@dataclass(frozen=True)
class FunctionOpponent:
    """A callable `(position, rng) -> move`, asked game by game."""

    function: PositionOpponent

    @property
    def name(self) -> str:
        function = self.function
        return str(getattr(function, "name", None) or getattr(function, "__qualname__", repr(function)))

    def choose(
        self, variant: Variant, boards: np.ndarray, is_black: np.ndarray, rng_state: np.ndarray, moves: np.ndarray
    ) -> None:
        """Writes a move for each game, as any `BatchOpponent` does; raises as `checked_move`."""
        positions = positions_of(variant, boards, is_black)
        for game, (position, rng) in enumerate(zip(positions, generators(rng_state), strict=True)):
            moves[game] = checked_move(self.function(position, rng), position, self.name)


def ask(
    opponent: BatchOpponent, variant: Variant, boards: np.ndarray, is_black: np.ndarray, rng_state: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the states after an opponent's moves and the moves, legal or not.

    Give copies, so that an opponent cannot change a game; a move that it does not write is −1.
    """
    moves = np.full(len(boards), -1)
    opponent.choose(variant, boards, is_black, rng_state, moves)
    return rng_state, moves


def checked_move(move: object, position: Position, name: str) -> int:
    """Returns what an opponent answered; raises TypeError where that is no integer, IllegalMoveError off the board."""
    if not isinstance(move, int | np.integer) or isinstance(move, bool):
        raise TypeError(f"opponent {name} answered {move!r} in {position.text}; a move is an integer")
    if not 0 <= move <= position.variant.pass_move:
        raise blame(f"opponent {name}", position, int(move))
    return int(move)


def positions_of(variant: Variant, boards: np.ndarray, is_black: np.ndarray) -> list[Position]:
    """Returns the positions of boards, uint64 [M, 3, W], with the colors of the sides to move, bool [M]."""
    return [
        Position.from_bitboards(variant, tuple(board[PLAYER]), tuple(board[OPPONENT]), black)
        for board, black in zip(boards, is_black.tolist(), strict=True)
    ]


def blame(whom: str, position: Position, move: int) -> IllegalMoveError:
    """Returns the error that says who chose the illegal `move`."""
    try:
        position.play(move)
    except IllegalMoveError as error:
        return IllegalMoveError(f"{whom}: {error}")
    raise AssertionError(f"{move} is legal in {position.text}")


def opponents_of(pool: Pool) -> tuple[BatchOpponent, ...]:
    """Returns the opponents of a pool; none where it is None: the caller moves both sides.

    Raises UnknownNameError for a name that nothing has, TypeError for what is no opponent, ValueError for what cannot
    be imported and for a pool of nobody.
    """
    if pool is None:
        return ()
    if is_pool(pool):
        if not pool:
            raise ValueError("a pool of opponents needs one opponent or more, got none")
        return tuple(_opponent(member) for member in pool)
    return (_opponent(pool),)


def is_pool(opponent: Pool) -> TypeGuard[list[Opponent] | tuple[Opponent, ...]]:
    """Returns whether games draw their opponent, be it from one."""
    return isinstance(opponent, list | tuple)


def exchanged(before: tuple[BatchOpponent, ...], pool: Pool, was_pool: bool) -> tuple[BatchOpponent, ...]:
    """Returns the opponents of a pool that takes the place of another; raises ValueError where it is of another kind.

    A pool of one is a pool: what environments say of a game depends on it, and must not change on the way.
    """
    after = opponents_of(pool)
    if is_pool(pool) != was_pool or bool(after) != bool(before):
        kind = "a list of opponents" if was_pool else "one opponent" if before else "no opponent"
        raise ValueError(f"the games were made with {kind}, and can only be given such again, not {pool!r}")
    return after


def _opponent(opponent: object) -> BatchOpponent:
    if isinstance(opponent, str):
        return _named(opponent)
    if isinstance(opponent, type):
        raise TypeError(
            f"an opponent is an object, and {opponent.__name__} is a class: make one, {opponent.__name__}()"
        )
    if isinstance(opponent, BatchOpponent):
        return opponent
    if callable(opponent):
        return FunctionOpponent(opponent)
    raise TypeError(
        f"an opponent is a name, a callable (position, rng) -> move, or a BatchOpponent, not {opponent!r}; "
        "an agent becomes one by agents.opponent_of(agent)"
    )


def _named(name: str) -> BatchOpponent:
    if ":" not in name:
        if name not in BASELINES:
            raise UnknownNameError(
                "opponent", name, BASELINES, "other agents become opponents by agents.opponent_of(name)"
            )
        return BASELINES[name]
    module_name, _, factory_name = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except (ImportError, ValueError) as error:  # ValueError for an empty name
        raise ValueError(f"opponent {name!r}: cannot import {module_name!r}: {error}") from error
    if not hasattr(module, factory_name):
        own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        raise UnknownNameError(f"factory in {module_name}", factory_name, own)
    factory = getattr(module, factory_name)
    if not callable(factory):
        raise TypeError(f"opponent {name!r}: the factory is {factory!r}, which cannot be called")
    made = factory()
    if not isinstance(made, BatchOpponent) and not callable(made):
        raise TypeError(f"opponent {name!r}: the factory made {made!r}, which cannot be called")
    return _opponent(made)
