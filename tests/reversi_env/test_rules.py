"""The rules, against the oracle, on any board whatever: legal moves, flips, passes, the end and the scores."""

from dataclasses import replace

import pytest
from hypothesis import given

from reversi_env import Position, Variant
from reversi_env.notation import BLACK, EMPTY, WHITE
from reversi_env.symmetry import NUM_SYMMETRIES, square_map, transform, transform_action, transform_position
from reversi_env.variant import GOALS, SCORINGS
from tests import oracle
from tests.reversi_env.strategies import positions


def is_free(position: Position) -> bool:
    return position.variant.start == "free"


def board_of(position: Position) -> oracle.Board:
    return list(position.board)


@given(positions())
def test_legal_moves_agree_with_oracle(position: Position) -> None:
    board, side, free = board_of(position), position.side, is_free(position)
    squares = oracle.legal_squares(board, side, free)
    assert position.is_over == oracle.is_over(board, free)
    assert position.must_pass == oracle.must_pass(board, side, free)
    assert list(position.legal_moves) == (squares or [position.variant.pass_move] * position.must_pass)


@given(positions())
def test_flips_and_plays_agree_with_oracle(position: Position) -> None:
    board, side, free = board_of(position), position.side, is_free(position)
    for square in range(len(board)):
        flips = position.flips(square)
        assert flips.shape == (position.variant.size, position.variant.size)
        assert flips.ravel().nonzero()[0].tolist() == oracle.flips(board, side, square, free)
    for move in position.legal_moves:
        after = position.play(move)
        passed = move == position.variant.pass_move
        assert list(after.board) == (board if passed else oracle.play(board, side, move, free))
        assert after.side == oracle.other(side)
        assert list(after.legal_moves) == list(Position.from_text(after.text, after.variant).legal_moves)


@given(positions())
def test_scores_agree_with_oracle(position: Position) -> None:
    if not position.is_over:
        return
    board, side = board_of(position), position.side
    for goal in GOALS:
        for scoring in SCORINGS:
            ended = Position.from_text(position.text, replace(position.variant, goal=goal, scoring=scoring))
            assert ended.score == oracle.score(board, side, goal, scoring)
            assert ended.result == oracle.result(board, side, goal, scoring)
            assert ended.black_score == oracle.score(board, BLACK, goal, scoring)


@given(positions())
def test_a_move_turns_only_discs_of_the_other_side_and_turning_them_back_undoes_it(position: Position) -> None:
    board, side = position.board, position.side
    for move in position.legal_moves:
        if move == position.variant.pass_move:
            continue
        flipped = position.flips(move).ravel()
        assert all(board[square] == oracle.other(side) for square in flipped.nonzero()[0])
        cells = list(position.play(move).board)
        assert cells[move] == side
        cells[move] = EMPTY
        for square in flipped.nonzero()[0]:
            cells[square] = oracle.other(cells[square])
        assert "".join(cells) == board


@given(positions())
def test_a_pass_turns_nothing_but_the_side_to_move(position: Position) -> None:
    if position.must_pass:
        after = position.play(position.variant.pass_move)
        assert (after.board, after.side) == (position.board, oracle.other(position.side))
        assert not after.must_pass
        assert not after.is_over


@given(positions())
def test_the_eight_symmetries_commute_with_legal_moves_and_play(position: Position) -> None:
    size = position.variant.size
    for symmetry in range(NUM_SYMMETRIES):
        turned = transform_position(position, symmetry)
        actions = {transform_action(move, symmetry, size): move for move in position.legal_moves}
        assert turned.legal_moves == tuple(sorted(actions))
        assert (turned.is_over, turned.must_pass) == (position.is_over, position.must_pass)
        for action, move in list(actions.items())[:4]:
            assert turned.play(action) == transform_position(position.play(move), symmetry)
            if move != position.variant.pass_move:
                assert (turned.flips(action) == transform(position.flips(move), symmetry)).all()
                assert square_map(symmetry, size)[move] == action


@given(positions())
def test_swapped_colors_have_the_same_moves(position: Position) -> None:
    swapped = Position.from_squares(
        position.variant,
        black=[square for square, cell in enumerate(position.board) if cell == WHITE],
        white=[square for square, cell in enumerate(position.board) if cell == BLACK],
        is_black_to_move=not position.is_black_to_move,
    )
    assert swapped.legal_moves == position.legal_moves
    assert (swapped.player, swapped.opponent) == (position.player, position.opponent)
    if position.is_over:
        assert swapped.score == position.score


@pytest.mark.parametrize("size", [4, 6, 8, 10])
def test_lines_of_every_length_turn_in_every_direction(size: int) -> None:
    variant = Variant(size)
    for row in range(size):
        for column in range(size):
            for down, right in oracle.DIRECTIONS:
                line = [(row + step * down, column + step * right) for step in range(size)]
                line = [square for square in line if min(square) >= 0 and max(square) < size]
                squares = [square_row * size + square_column for square_row, square_column in line]
                for end in range(2, len(squares)):
                    position = Position.from_squares(variant, [squares[end]], squares[1:end])
                    assert position.flips(squares[0]).ravel().nonzero()[0].tolist() == sorted(squares[1:end])
                # Without a disc at its far end a line turns nothing, even when the next row begins with one.
                wrapped = [square for square in range(size * size) if square not in squares][:1]
                open_line = Position.from_squares(variant, wrapped, squares[1:])
                assert open_line.flips(squares[0]).ravel().nonzero()[0].tolist() == oracle.flips(
                    board_of(open_line), BLACK, squares[0]
                )


@pytest.mark.parametrize("size", [4, 6, 8, 10])
@pytest.mark.parametrize("start", ["diagonal", "parallel", "free"])
def test_starts_agree_with_oracle(size: int, start: str) -> None:
    position = Position(Variant(size, start))
    assert list(position.board) == oracle.start_board(size, start)
    assert position.side == BLACK


def test_the_start_of_othello_is_white_d4_e5_and_black_d5_e4() -> None:
    position = Position()
    discs = {position.move_name(square): cell for square, cell in enumerate(position.board) if cell != EMPTY}
    assert discs == {"d4": WHITE, "e5": WHITE, "d5": BLACK, "e4": BLACK}
    assert [position.move_name(move) for move in position.legal_moves] == ["d3", "c4", "f5", "e6"]


@pytest.mark.parametrize("size", [4, 6, 8, 10])
def test_in_placement_colors_alternate_and_nothing_flips_passes_or_ends(size: int) -> None:
    variant = Variant(size, "free")
    position = Position(variant)
    for num_placed, square in enumerate(variant.center):
        assert position.legal_moves == variant.center[num_placed:]
        assert position.is_black_to_move == (num_placed % 2 == 0)
        assert not any(position.flips(move).any() for move in position.legal_moves)
        position = position.play(square)
    assert position.board.count(BLACK) == position.board.count(WHITE) == 2
    assert list(position.legal_moves) == oracle.legal_squares(board_of(position), BLACK)


@pytest.mark.parametrize(
    ("scoring", "goal", "black_score"),
    [("board", "most", 13), ("tournament", "most", 64), ("board", "fewest", -13), ("tournament", "fewest", -64)],
)
def test_a_wipe_out_wins_othello_and_loses_anti_reversi(scoring: str, goal: str, black_score: int) -> None:
    board = "X" * 13 + EMPTY * 51
    for side, sign in ((BLACK, 1), (WHITE, -1)):
        position = Position.from_text(f"{board} {side}", Variant(goal=goal, scoring=scoring))
        assert position.is_over
        assert position.score == sign * black_score
        assert position.result == (1 if sign * black_score > 0 else -1)
        assert position.black_score == black_score
