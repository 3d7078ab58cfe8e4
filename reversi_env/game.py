"""A game: the positions and moves from a start to now."""

from collections.abc import Iterable
from typing import Self

from reversi_env.notation import parse_transcript, square_name
from reversi_env.position import IllegalMoveError, Position
from reversi_env.variant import Variant


class Game:
    """A game from its start to now; `Game("othello-6x6")`, or from any position.

    A pass is a move of its own, and must be played. Raises IllegalMoveError, with the position and the legal moves in
    the sentence, and stays as it was, when a move is not legal.
    """

    def __init__(self, start: Position | Variant | str = "othello") -> None:
        self._positions = [start if isinstance(start, Position) else Position(start)]
        self._moves: list[int] = []

    @classmethod
    def from_transcript(cls, text: str, start: Position | Variant | str = "othello") -> Self:
        """Returns the game that a transcript tells, its passes written or left out.

        Raises ValueError for text that is no move, IllegalMoveError for a move that is not legal, with its number.
        """
        game = cls(start)
        return game._play_all(parse_transcript(text, game.position.variant.size))

    @classmethod
    def from_moves(cls, moves: Iterable[int], start: Position | Variant | str = "othello") -> Self:
        """Returns the game of these moves, its passes given or left out; raises as `from_transcript`."""
        return cls(start)._play_all(moves)

    def _play_all(self, moves: Iterable[int]) -> Self:
        for number, move in enumerate(moves, start=1):
            if self.position.must_pass and move != self.position.variant.pass_move:
                self.play(self.position.variant.pass_move)
            try:
                self.play(move)
            except IllegalMoveError as error:
                raise IllegalMoveError(f"move {number}: {error}") from None
        return self

    @property
    def position(self) -> Position:
        """The position now."""
        return self._positions[-1]

    @property
    def start(self) -> Position:
        return self._positions[0]

    @property
    def positions(self) -> tuple[Position, ...]:
        """All positions from the start to now, one more than moves."""
        return tuple(self._positions)

    @property
    def moves(self) -> tuple[int, ...]:
        """The moves so far, passes (size²) included."""
        return tuple(self._moves)

    @property
    def is_over(self) -> bool:
        return self.position.is_over

    def play(self, move: int | str) -> Position:
        """Plays a move, as a number or as text, and returns the position after it."""
        if isinstance(move, str):
            move = self.position.parse_move(move)
        self._positions.append(self.position.play(move))
        self._moves.append(int(move))
        return self.position

    def undo(self) -> int:
        """Takes the last move back and returns it; raises ValueError at the start."""
        if not self._moves:
            raise ValueError("there is no move to take back: the game is at its start")
        self._positions.pop()
        return self._moves.pop()

    @property
    def transcript(self) -> str:
        """The moves as "f5d6c3…", passes left out."""
        size = self.position.variant.size
        return "".join(square_name(move, size) for move in self._moves if move != size * size)
