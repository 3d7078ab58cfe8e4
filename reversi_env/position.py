"""A position: a board, a side to move, and the variant whose rules hold. Immutable."""

import operator
from collections.abc import Iterable
from functools import lru_cache
from typing import SupportsIndex

import numpy as np

from reversi_env.bitboard import load, store
from reversi_env.drawing.diagram import Diagram
from reversi_env.drawing.svg import to_svg  # knows no rules, and stands below: a notebook draws what it is given
from reversi_env.geometry import WORD_BITS, Bitboard, bit_indices, mask_of, mask_squares, to_bitboard, to_squares
from reversi_env.jit import kernel
from reversi_env.notation import BLACK, EMPTY, WHITE, draw_board, parse_board, parse_move, square_name
from reversi_env.rules import (
    MUST_MOVE,
    MUST_PASS,
    OVER,
    Rules,
    final_score,
    flip_mask,
    legal_mask,
    play_square,
    rules_for_moves,
    status,
)
from reversi_env.variant import Variant
from reversi_env.vectors import bit


class IllegalMoveError(ValueError):
    """A move that the rules forbid; the sentence shows the position and the legal moves."""


PLAYER, OPPONENT, LEGAL = 0, 1, 2  # rows of a position's boards


@kernel
def _examine(boards: np.ndarray, field: np.ndarray, size: int, like: Bitboard) -> int:
    """Returns the status, and writes the legal squares into row LEGAL of `boards`, uint64 [3, W].

    `field` is that of the variant.
    """
    rules = rules_for_moves(field, size, False, like)
    player, opponent = load(boards, PLAYER, like), load(boards, OPPONENT, like)
    legal = legal_mask(player, opponent, rules)
    store(boards, LEGAL, legal)
    return status(player, opponent, legal, rules)


@kernel
def _advance(boards: np.ndarray, square: int, after: np.ndarray, field: np.ndarray, size: int, like: Bitboard) -> int:
    """Fills `after`, uint64 [3, W], with the boards after a move, and returns the status there."""
    rules = rules_for_moves(field, size, False, like)
    moved = play_square(load(boards, PLAYER, like), load(boards, OPPONENT, like), square, rules)
    store(after, PLAYER, moved[0])
    store(after, OPPONENT, moved[1])
    return _examine(after, field, size, like)


# A tuple as an argument costs a call 0.6 µs, and a move from Python is one call: so the number of words is in the name.


@kernel
def _advance_one_word(boards: np.ndarray, square: int, after: np.ndarray, field: np.ndarray, size: int) -> int:
    return _advance(boards, square, after, field, size, (np.uint64(0),))


@kernel
def _advance_two_words(boards: np.ndarray, square: int, after: np.ndarray, field: np.ndarray, size: int) -> int:
    return _advance(boards, square, after, field, size, (np.uint64(0), np.uint64(0)))


@kernel
def _flips(player: Bitboard, opponent: Bitboard, bit_index: int, rules: Rules) -> Bitboard:
    return flip_mask(player, opponent, bit(bit_index, player), rules)


@kernel
def _final_score(player: Bitboard, opponent: Bitboard, rules: Rules) -> int:
    return final_score(player, opponent, rules)


class Position:
    """A position of a variant: `Position()` is the start of Othello, `Position("anti-reversi")` of another variant.

    `player` and `opponent` are the bitboards of the side to move and of the other side. Equal positions have equal
    discs, side to move and variant, and equal hashes.
    """

    __slots__ = ("_boards", "_moves", "_status", "is_black_to_move", "variant")

    variant: Variant
    is_black_to_move: bool
    _boards: np.ndarray  # uint64 [3, W]: rows PLAYER, OPPONENT and LEGAL; never changed once made
    _moves: tuple[int, ...] | None  # worked out when first asked for
    _status: int

    def __init__(self, variant: Variant | str = "othello") -> None:
        start = _start(variant)
        for name in Position.__slots__:
            setattr(self, name, getattr(start, name))  # nothing of a position changes, so its parts can be shared

    @classmethod
    def from_text(cls, text: str, variant: Variant | str | None = None) -> "Position":
        """Returns the position that `text` shows: size² characters and the side to move, or a drawing.

        The variant is Othello of the board's size where none is given; the placement of 1883 needs its variant, since
        an empty center square means nothing else. Raises ValueError.
        """
        given = None if variant is None else Variant.of(variant)
        board, side = parse_board(text, given.size if given else None)
        variant = given or Variant(size=round(len(board) ** 0.5))
        black, white = (_discs(board, color, variant.size) for color in (BLACK, WHITE))
        return cls._make(variant, black, white, side == BLACK)

    @classmethod
    def from_squares(
        cls, variant: Variant, black: Iterable[int], white: Iterable[int], is_black_to_move: bool = True
    ) -> "Position":
        """Returns the position with discs on the given squares.

        Raises ValueError where they overlap or leave the board.
        """
        black, white = set(black), set(white)
        if both := black & white:
            raise ValueError(
                f"both colors on {', '.join(square_name(square, variant.size) for square in sorted(both))}"
            )
        for square in black | white:
            if not 0 <= square < variant.num_squares:
                raise ValueError(f"there is no square {square} on {variant.size}×{variant.size}")
        return cls._make(variant, to_bitboard(black, variant.size), to_bitboard(white, variant.size), is_black_to_move)

    @classmethod
    def from_bitboards(
        cls, variant: Variant, player: Bitboard, opponent: Bitboard, is_black_to_move: bool = True
    ) -> "Position":
        """Returns the position with the bitboards of the side to move and the other one, W words each (`geometry`).

        Raises ValueError where they overlap or have a bit that is no square.
        """
        squares = mask_of(variant.rules.squares)
        if len(player) != len(variant.rules.squares) or len(opponent) != len(player):
            raise ValueError(f"a board of {variant.size}×{variant.size} has {len(variant.rules.squares)} words")
        if any(not 0 <= word < 1 << WORD_BITS for word in (*player, *opponent)):
            raise ValueError(f"the words of a bitboard have {WORD_BITS} bits")
        if mask_of(player) & mask_of(opponent) or (mask_of(player) | mask_of(opponent)) & ~squares:
            raise ValueError("the bitboards overlap, or have a bit off the board")
        black, white = (player, opponent) if is_black_to_move else (opponent, player)
        return cls._make(variant, black, white, is_black_to_move)

    @classmethod
    def _make(cls, variant: Variant, black: Bitboard, white: Bitboard, is_black_to_move: bool) -> "Position":
        position = Position.__new__(Position)
        position._set(variant, black, white, is_black_to_move)
        return position

    def _set(self, variant: Variant, black: Bitboard, white: Bitboard, is_black_to_move: bool) -> None:
        self.variant = variant
        self.is_black_to_move = is_black_to_move
        rules = variant.rules
        self._boards = np.zeros((3, len(rules.squares)), np.uint64)
        self._boards[PLAYER], self._boards[OPPONENT] = (black, white) if is_black_to_move else (white, black)
        self._status = _examine(self._boards, variant.field, variant.size, rules.squares)
        self._moves = None

    @property
    def legal_moves(self) -> tuple[int, ...]:
        """The legal moves in rising order: squares, or the pass alone, or nothing when the game is over."""
        if self._moves is None:
            if self._status == MUST_MOVE:
                self._moves = mask_squares(self._mask(LEGAL), self.variant.size)
            else:
                self._moves = (self.variant.pass_move,) if self._status == MUST_PASS else ()
        return self._moves

    def _mask(self, row: int) -> int:
        boards = self._boards
        mask: int
        if boards.size == 3:
            mask = boards.item(row)
        else:
            mask = boards.item(2 * row) | boards.item(2 * row + 1) << WORD_BITS
        return mask

    @property
    def player(self) -> Bitboard:
        """The discs of the side to move."""
        return tuple(self._boards[PLAYER])

    @property
    def opponent(self) -> Bitboard:
        """The discs of the other side."""
        return tuple(self._boards[OPPONENT])

    @property
    def legal(self) -> Bitboard:
        """The squares of the legal moves; empty when the side to move passes or the game is over."""
        return tuple(self._boards[LEGAL])

    @property
    def action_mask(self) -> np.ndarray:
        """A new int8 array [size² + 1], one on each legal move; all zero when the game is over."""
        mask = np.zeros(self.variant.num_actions, np.int8)
        mask[list(self.legal_moves)] = 1
        return mask

    @property
    def must_pass(self) -> bool:
        """Whether the side to move has no square and the game goes on."""
        return self._status == MUST_PASS

    @property
    def is_over(self) -> bool:
        """Whether neither side has a move."""
        return self._status == OVER

    def play(self, move: SupportsIndex) -> "Position":
        """Returns the position after `move`, a square or the pass; raises IllegalMoveError where it is not legal.

        Any integer will do, of NumPy's types too; raises TypeError for what is none.
        """
        if type(move) is not int:
            move = _integer(move)
        moves = self._moves
        if move not in (self.legal_moves if moves is None else moves):
            raise IllegalMoveError(self._why_illegal(move))
        variant, boards = self.variant, self._boards
        advance = _advance_one_word if boards.size == 3 else _advance_two_words
        after = Position.__new__(Position)
        after.variant = variant
        after.is_black_to_move = not self.is_black_to_move
        after._boards = np.empty_like(boards)
        after._status = advance(boards, move, after._boards, variant.field, variant.size)
        after._moves = None
        return after

    def _why_illegal(self, move: int) -> str:
        size = self.variant.size
        name = square_name(move, size) if 0 <= move <= self.variant.pass_move else f"move {move}"
        if self.is_over:
            return f"{name} cannot be played: the game is over in {self.text}"
        legal = " ".join(square_name(square, size) for square in self.legal_moves)
        return f"{name} is not legal for {self.color_name} in {self.text}; legal: {legal}"

    def parse_move(self, name: str) -> int:
        """Returns the move that "f5" or "pass" names, legal or not; raises ValueError where it names none."""
        return parse_move(name, self.variant.size)

    def move_name(self, move: int) -> str:
        """Returns "f5" or "pass"."""
        return square_name(move, self.variant.size)

    def flips(self, square: SupportsIndex) -> np.ndarray:
        """Returns which discs a move to `square` would turn, bool [size, size], row 0 on top.

        All False where the move is not legal. Raises ValueError for a square off the board.
        """
        size = self.variant.size
        square = _integer(square)
        if not 0 <= square < self.variant.num_squares:
            raise ValueError(f"there is no square {square} on {size}×{size}; squares are 0 to {size * size - 1}")
        turned: tuple[int, ...] = ()
        if square in self.legal_moves:
            mask = _flips(self.player, self.opponent, bit_indices(size)[square], self.variant.rules)
            turned = to_squares(mask, size)
        board = np.zeros(self.variant.num_squares, np.bool_)
        board[list(turned)] = True
        return board.reshape(size, size)

    @property
    def black(self) -> Bitboard:
        return self.player if self.is_black_to_move else self.opponent

    @property
    def white(self) -> Bitboard:
        return self.opponent if self.is_black_to_move else self.player

    @property
    def color_name(self) -> str:
        """The side to move, "black" or "white"."""
        return "black" if self.is_black_to_move else "white"

    @property
    def num_black(self) -> int:
        return self._mask(PLAYER if self.is_black_to_move else OPPONENT).bit_count()

    @property
    def num_white(self) -> int:
        return self._mask(OPPONENT if self.is_black_to_move else PLAYER).bit_count()

    @property
    def num_empties(self) -> int:
        return self.variant.num_squares - (self._mask(PLAYER) | self._mask(OPPONENT)).bit_count()

    @property
    def disc_differential(self) -> int:
        """The side to move's discs minus the other side's, as they lie, at any time."""
        return self._mask(PLAYER).bit_count() - self._mask(OPPONENT).bit_count()

    @property
    def score(self) -> int:
        """The finished game's score for the side to move, under the variant's scoring and goal.

        Raises ValueError while the game goes on; `disc_differential` is there at any time.
        """
        if not self.is_over:
            raise ValueError(f"the game is not over, so it has no score yet: {self.text}")
        return _final_score(self.player, self.opponent, self.variant.rules)

    @property
    def black_score(self) -> int:
        """The finished game's score for black; raises ValueError while the game goes on."""
        return self.score if self.is_black_to_move else -self.score

    @property
    def result(self) -> int:
        """-1, 0 or +1 for the side to move when the game is over; raises ValueError while it goes on."""
        return (self.score > 0) - (self.score < 0)

    @property
    def board(self) -> str:
        """size² characters row by row: X black, O white, - empty."""
        size = self.variant.size
        cells = [EMPTY] * self.variant.num_squares
        for color, discs in ((BLACK, self.black), (WHITE, self.white)):
            for square in to_squares(discs, size):
                cells[square] = color
        return "".join(cells)

    @property
    def side(self) -> str:
        """The side to move as text, X or O."""
        return BLACK if self.is_black_to_move else WHITE

    @property
    def text(self) -> str:
        """The board and the side to move, as `from_text` reads them."""
        return f"{self.board} {self.side}"

    def diagram(self) -> Diagram:
        """Returns what a drawing shows of the position: discs, legal moves, side to move; add to it with `replace`."""
        size = self.variant.size
        return Diagram(
            size=size,
            black=to_squares(self.black, size),
            white=to_squares(self.white, size),
            dots=() if self.must_pass else self.legal_moves,
            caption="the game is over" if self.is_over else f"{self.color_name} to move",
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Position) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[bytes, bool, Variant]:
        return self._boards.tobytes(), self.is_black_to_move, self.variant

    def __str__(self) -> str:
        return draw_board(self.board, self.side, () if self.must_pass else self.legal_moves)

    def __repr__(self) -> str:
        return f"Position.from_text({self.text!r}, {self.variant!r})"

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Position.from_bitboards, (self.variant, self.player, self.opponent, self.is_black_to_move)

    def _repr_html_(self) -> str:
        return to_svg(self.diagram())


@lru_cache(maxsize=64)
def _start(variant: Variant | str) -> Position:
    variant = Variant.of(variant)
    return Position.from_text(" ".join(variant.start_board), variant)


def _integer(move: SupportsIndex) -> int:
    try:
        if not isinstance(move, bool | np.bool_):  # an integer to early NumPy 2
            return operator.index(move)  # a kernel would be compiled anew for each type of integer
    except TypeError:
        pass
    raise TypeError(f"a move is the number of a square or of the pass, not {move!r}; `parse_move` reads text")


def _discs(board: str, color: str, size: int) -> Bitboard:
    return to_bitboard([square for square, cell in enumerate(board) if cell == color], size)
