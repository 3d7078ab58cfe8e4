"""What a record of a game or of an endgame problem holds, whatever the format."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from reversi_env.game import Game
from reversi_env.playouts import NO_MOVE
from reversi_env.position import Position
from reversi_env.replay import first_fault, replay
from reversi_env.variant import Variant

ENDINGS = ("resignation", "timeout", "agreement")
_MAX_SHOWN = 40  # characters of a file that a sentence quotes


class RecordError(ValueError):
    """Something in a file that is no record; the sentence says where, what, and what would be right."""

    def at(self, place: str) -> "RecordError":
        """Returns this error with the place where it was found."""
        return RecordError(f"{place}: {self}")


OnFault: TypeAlias = Callable[[RecordError], None]  # takes a fault, after which reading goes on with the next record


def report(fault: RecordError, on_fault: OnFault | None) -> None:
    """Hands a fault on, or raises it where nobody takes faults."""
    if on_fault is None:
        raise fault
    on_fault(fault)


def shown(text: str) -> str:
    """Returns text from a file as a sentence quotes it: its beginning, in quotation marks."""
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…")


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

    What a format does not tell is None, empty, or 0. Raises ValueError for an ending that is none of `ENDINGS`, and
    for evaluations or times that are not one for each move; where all are None they become empty.
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
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)  # what else the format says, by its own names

    def __post_init__(self) -> None:
        if self.ending and self.ending not in ENDINGS:
            raise ValueError(f"a game ends before its end by {', '.join(ENDINGS)}, not {self.ending!r}")
        for name in ("evaluations", "times_s"):
            values = getattr(self, name)
            if values and len(values) != len(self.moves):
                raise ValueError(f"{name} has {len(values)} entries for {len(self.moves)} moves")
            if values and values.count(None) == len(values):
                object.__setattr__(self, name, ())  # so that one game has one record

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
    scores: Mapping[int, float] = field(default_factory=dict, hash=False)  # by move, in discs, for the side to move
    name: str = ""


def complete_moves(variant: Variant, told: Iterable[int]) -> tuple[int, ...]:
    """Returns the moves of a game from its variant's start, passes put in where they were left out.

    Passes told after the end are dropped, as some programs write them. Raises RecordError for the first move that is
    not legal, with its number and a sentence about the position.
    """
    return place_moves(variant, told)[0]


def place_moves(variant: Variant, told: Iterable[int]) -> tuple[tuple[int, ...], Sequence[int]]:
    """Returns the moves as `complete_moves` does, and at which ply each of those told stands among them."""
    told = list(told)
    start = Position(variant)
    length = 2 * variant.num_squares + 1  # more than any game has; one array type, one kernel
    row = np.frombuffer(bytes(told[:length]).ljust(length, bytes([NO_MOVE])), np.uint8)
    games = replay(start, row.reshape(1, length))
    num_legal = games.num_legal.item(0)
    if num_legal < len(told) and not (games.is_over.item(0) and set(told[num_legal:]) == {variant.pass_move}):
        raise RecordError(str(first_fault(start, told)))
    moves = tuple(games.moves.tobytes()[: games.lengths.item(0)])
    if len(moves) == num_legal:
        return moves, range(num_legal)
    plies = []
    ply = 0
    for move in told[:num_legal]:
        ply += moves[ply] != move  # a pass that was left out
        plies.append(ply)
        ply += 1
    return moves, plies
