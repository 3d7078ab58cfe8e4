"""What a record of a game or of an endgame problem holds, whatever the format."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from reversi_env.game import Game
from reversi_env.playouts import NO_MOVE
from reversi_env.position import IllegalMoveError, Position
from reversi_env.replay import replay
from reversi_env.variant import Variant


class RecordError(ValueError):
    """Something in a file that is no record; the sentence says where, what, and what would be right."""


OnFault: TypeAlias = Callable[[RecordError], None]  # takes a fault, after which reading goes on with the next record


@dataclass(frozen=True)
class Clock:
    """What a player may use, in seconds."""

    main_s: float
    increment_s: float = 0.0  # for each move
    extension_s: float = 0.0  # once, when the main time is used up


@dataclass(frozen=True)
class WthorFacts:
    """What WTHOR alone says of a game; other formats carry it along."""

    tournament: int  # the numbers of the tournament and of the players in the name files
    black: int
    white: int
    theoretical_discs: int  # black's best discs at `theoretical_depth` empties
    theoretical_depth: int


@dataclass(frozen=True)
class GameRecord:
    """A game as it was played: its moves are legal one after the other, passes included where a move follows them.

    What a format does not tell is None, empty, or 0.
    """

    variant: Variant  # its `start` is the game's
    moves: tuple[int, ...]
    black: str = ""  # names
    white: str = ""
    black_score: int | None = None  # as stated, under the variant's scoring and goal; resigned games may have any
    ending: str = ""  # how it ended before its end: "resignation", "timeout" or "agreement"
    evaluations: tuple[float | None, ...] = ()  # of each move, in discs, for its mover; empty where none is told
    times_s: tuple[float | None, ...] = ()  # taken for each move; empty where none is told
    black_rating: float | None = None
    white_rating: float | None = None
    black_clock: Clock | None = None
    white_clock: Clock | None = None
    date: str = ""  # as told: 2003-12-15, or with a time of day
    event: str = ""
    wthor: WthorFacts | None = None
    tags: Mapping[str, str] = field(default_factory=dict)  # what else the format says, by its own names

    @property
    def is_over(self) -> bool:
        """Whether the moves lead to the end of the game. Plays them."""
        return self.game.is_over

    @property
    def game(self) -> Game:
        """The game, played anew."""
        return Game.from_moves(self.moves, Position(self.variant))


@dataclass(frozen=True)
class ProblemRecord:
    """A position and what its moves are worth."""

    position: Position
    scores: Mapping[int, float] = field(default_factory=dict)  # by move, in discs, for the side to move
    name: str = ""


def complete_moves(variant: Variant, told: Iterable[int]) -> tuple[int, ...]:
    """Returns the moves of a game from its variant's start, passes put in where they were left out.

    Raises RecordError for the first that is not legal, with its number and a sentence about the position.
    """
    told = list(told)
    start = Position(variant)
    length = 2 * variant.num_squares + 1  # more than any game has; one array type, one kernel
    row = np.full((1, length), NO_MOVE, np.uint8)
    row[0, : len(told)] = told[:length]
    games = replay(start, row)
    if games.num_legal[0] < len(told):
        try:
            Game.from_moves(told, start)
        except IllegalMoveError as error:
            raise RecordError(str(error)) from None
        raise AssertionError("the replay stopped at a move that the game takes")
    moves: list[int] = games.moves[0, : games.lengths[0]].tolist()
    return tuple(moves)
