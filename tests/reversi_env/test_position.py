"""Positions as their users meet them: made, asked, played, compared, copied, and refused."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from reversi_env import IllegalMoveError, Position, Variant
from reversi_env.geometry import SIZES, bit_indices, mask_of, to_bitboard, to_squares, words_of
from tests import oracle
from tests.reversi_env.strategies import positions

BLOCKED = "OX-- X--- ---- ---- X"
OVER = "XXX- ---- ---- ---O O"


# Made from text, squares and bitboards


@given(positions())
def test_all_ways_to_make_a_position_agree(position: Position) -> None:
    variant, board = position.variant, position.board
    black, white = ([square for square, cell in enumerate(board) if cell == color] for color in "XO")
    assert Position.from_squares(variant, black, white, position.is_black_to_move) == position
    assert Position.from_bitboards(variant, position.player, position.opponent, position.is_black_to_move) == position
    player, opponent = (tuple(int(word) for word in discs) for discs in (position.player, position.opponent))
    assert Position.from_bitboards(variant, player, opponent, position.is_black_to_move) == position  # type: ignore[arg-type]
    assert eval(repr(position)) == position
    assert to_squares(position.black, variant.size) == tuple(black)
    assert to_squares(position.white, variant.size) == tuple(white)


def test_text_without_a_variant_is_othello_of_its_size() -> None:
    for size in SIZES:
        assert Position.from_text(f"{'-' * size * size} O").variant == Variant(size)


@pytest.mark.parametrize("size", SIZES)
def test_bits_and_squares_correspond(size: int) -> None:
    assert len(set(bit_indices(size))) == size * size
    for square in range(size * size):
        board = to_bitboard([square], size)
        assert to_squares(board, size) == (square,)
        assert words_of(mask_of(board), size) == board
        assert all(isinstance(word, np.uint64) for word in board)
    assert to_squares(to_bitboard(range(size * size), size), size) == tuple(range(size * size))


def test_squares_that_overlap_or_leave_the_board_are_refused() -> None:
    with pytest.raises(ValueError, match="both colors on c1, a2"):
        Position.from_squares(Variant(6), [2, 6, 7], [6, 2, 8])
    for square in (-1, 36, 2**70):
        with pytest.raises(ValueError, match=f"there is no square {square} on 6×6"):
            Position.from_squares(Variant(6), [0], [square])


@pytest.mark.parametrize(
    ("size", "player", "opponent", "sentence"),
    [
        (8, (3,), (2,), "overlap"),
        (4, (1 << 4,), (0,), "off the board"),
        (10, (0, 1 << 36), (0, 0), "off the board"),
        (8, (1 << 64,), (0,), "words of a bitboard have 64 bits"),
        (10, (1 << 64, 0), (0, 0), "words of a bitboard have 64 bits"),
        (8, (-1,), (0,), "words of a bitboard have 64 bits"),
        (8, (0, 0), (0, 0), "a board of 8×8 has 1 words"),
        (10, (0,), (0,), "a board of 10×10 has 2 words"),
        (10, (0, 0), (0,), "a board of 10×10 has 2 words"),
    ],
)
def test_bitboards_that_are_none_are_refused(
    size: int, player: tuple[Any, ...], opponent: tuple[Any, ...], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        Position.from_bitboards(Variant(size), player, opponent)


# Asked


@given(positions())
def test_counts_and_masks_agree_with_the_board(position: Position) -> None:
    board = position.board
    assert (position.num_black, position.num_white, position.num_empties) == tuple(map(board.count, "XO-"))
    assert position.disc_differential == board.count(position.side) - board.count(oracle.other(position.side))
    mask = position.action_mask
    assert mask.dtype == np.int8
    assert mask.shape == (position.variant.num_actions,)
    assert mask.nonzero()[0].tolist() == list(position.legal_moves)
    assert to_squares(position.legal, position.variant.size) == tuple(
        move for move in position.legal_moves if move != position.variant.pass_move
    )
    assert position.color_name == {"X": "black", "O": "white"}[position.side]


@given(positions())
def test_score_and_result_wait_for_the_end(position: Position) -> None:
    if position.is_over:
        assert position.result == np.sign(position.score)
        assert position.black_score == (position.score if position.is_black_to_move else -position.score)
        return
    for name in ("score", "result", "black_score"):
        with pytest.raises(ValueError, match="the game is not over, so it has no score yet"):
            getattr(position, name)


@given(positions())
def test_the_pass_is_legal_exactly_without_squares_while_the_game_goes_on(position: Position) -> None:
    free = position.variant.start == "free"
    board, side = list(position.board), position.side
    blocked = not oracle.legal_squares(board, side, free)
    pass_move = position.variant.pass_move
    assert position.must_pass == (pass_move in position.legal_moves) == (blocked and not oracle.is_over(board, free))
    if position.must_pass:
        assert position.legal_moves == (pass_move,)


def test_masks_are_the_callers_own() -> None:
    position = Position()
    position.action_mask[:] = 7
    position.flips(19)[:] = True
    assert position.action_mask.sum() == 4
    assert position.flips(19).sum() == 1


def test_a_position_that_is_over_has_no_moves_and_a_mask_of_zeros() -> None:
    position = Position.from_text(OVER)
    assert position.legal_moves == ()
    assert not position.action_mask.any()
    assert not position.must_pass
    assert (position.score, position.result, position.black_score) == (-2, -1, 2)


# Played


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("integer", [int, np.int64, np.int32, np.int8, np.uint8, np.uint64, np.array])
def test_moves_of_any_integer_type_are_the_same(size: int, integer: Any) -> None:
    position = Position(Variant(size))
    for move in position.legal_moves:
        assert position.play(integer(move)) == position.play(move)
        assert (position.flips(integer(move)) == position.flips(move)).all()


@pytest.mark.parametrize("move", [True, np.True_, 19.0, np.float64(19), "d3", "19", None, [19], 19 + 0j])
def test_a_move_that_is_no_integer_is_a_type_error(move: Any) -> None:
    for method in (Position().play, Position().flips):
        with pytest.raises(TypeError):
            method(move)


@pytest.mark.parametrize("move", [-1, -19, 65, 2**31, 2**32 + 19, 2**63, 2**64 + 19, -(2**63), 10**30])
def test_numbers_far_off_the_board_are_illegal_moves(move: int) -> None:
    with pytest.raises(IllegalMoveError, match=f"move {move} is not legal for black in .* X; legal: d3 c4 f5 e6"):
        Position().play(move)
    with pytest.raises(ValueError, match=f"there is no square {move} on 8×8; squares are 0 to 63"):
        Position().flips(move)


@given(positions())
def test_exactly_the_legal_moves_can_be_played(position: Position) -> None:
    for move in range(position.variant.num_actions):
        if move in position.legal_moves:
            position.play(move)
        else:
            with pytest.raises(IllegalMoveError):
                position.play(move)


@pytest.mark.parametrize(
    ("text", "move", "sentence"),
    [
        (BLOCKED, 2, r"c1 is not legal for black in OX--X-{11} X; legal: pass"),
        (OVER, 4, r"a2 cannot be played: the game is over in XXX-{12}O O"),
        (OVER, 16, r"pass cannot be played: the game is over"),
        ("---- -OX- -XO- ---- O", 16, r"pass is not legal for white in .* O; legal: c1 d2 a3 b4"),
    ],
)
def test_a_refusal_shows_the_position_and_the_legal_moves(text: str, move: int, sentence: str) -> None:
    with pytest.raises(IllegalMoveError, match=sentence):
        Position.from_text(text).play(move)


@given(positions())
def test_playing_leaves_a_position_as_it_was(position: Position) -> None:
    before = (position.text, hash(position), position.legal_moves)
    for move in position.legal_moves:
        position.play(move)
    assert (position.text, hash(position), position.legal_moves) == before


# Compared and copied


@given(positions(), positions())
def test_positions_are_equal_exactly_when_text_and_variant_are(a: Position, b: Position) -> None:
    assert (a == b) == ((a.text, a.variant) == (b.text, b.variant))
    twin = Position.from_text(a.text, a.variant)
    assert twin == a
    assert hash(twin) == hash(a)
    assert len({twin, a}) == 1


def test_the_side_to_move_and_the_variant_tell_positions_apart() -> None:
    black, white = (Position.from_text(f"---- -OX- -XO- ---- {side}") for side in "XO")
    assert black != white
    assert black != Position.from_text(black.text, Variant(4, goal="fewest"))
    assert black != black.text


@given(positions())
def test_copies_are_equal_and_play_on(position: Position) -> None:
    assert position.legal_moves is not None  # worked out before copying, and after it anew
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(position, protocol)) == position
    for twin in (copy.copy(position), copy.deepcopy(position)):
        assert twin == position
        assert twin.legal_moves == position.legal_moves
        assert [twin.play(move) for move in twin.legal_moves] == [position.play(move) for move in position.legal_moves]
