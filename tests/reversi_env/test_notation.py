"""Text: squares, transcripts and boards as people write them, and what is said of text that is none."""

import contextlib
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reversi_env import Game, IllegalMoveError, Position, Variant
from reversi_env.geometry import SIZES
from reversi_env.notation import draw_board, parse_board, parse_move, parse_transcript, square_name
from tests.reversi_env.strategies import played_positions, positions, sizes, variants

seeds = st.integers(0, 2**32)

# Squares


@pytest.mark.parametrize("size", SIZES)
def test_squares_count_row_by_row_from_a1_at_the_top_left(size: int) -> None:
    names = [f"{column}{row}" for row in range(1, size + 1) for column in "abcdefghij"[:size]]
    assert [square_name(square, size) for square in range(size * size)] == names
    assert [parse_move(name, size) for name in names] == list(range(size * size))
    assert [parse_move(f" {name.upper()}\n", size) for name in names] == list(range(size * size))


def test_j10_is_the_last_square_of_10_by_10() -> None:
    assert square_name(99, 10) == "j10"
    assert parse_move("J10", 10) == 99
    assert parse_transcript("j10j1a10", 10) == [99, 9, 90]


@pytest.mark.parametrize("spelling", ["pass", "PASS", "pa", "Ps", "--", "@@", " pass "])
def test_a_pass_has_several_spellings_and_one_number(spelling: str) -> None:
    assert parse_move(spelling, 6) == 36
    assert square_name(36, 6) == "pass"


@pytest.mark.parametrize(
    "name", ["", "i1", "a9", "a0", "h10", "e44", "4e", "é4", "a\u0661", "a", "5", "p", "f5d6", "a 1", "-1"]
)
def test_what_names_no_square_is_refused_with_the_range(name: str) -> None:
    with pytest.raises(ValueError, match="is not a square of 8×8; squares are a1 to h8, a pass is 'pass'"):
        parse_move(name, 8)


@pytest.mark.parametrize("square", [-1, 65, 2**31, -(2**63), 2**70])
def test_a_square_off_the_board_has_no_name(square: int) -> None:
    with pytest.raises(ValueError, match=f"there is no square {square} on 8×8; squares are 0 to 63"):
        square_name(square, 8)


# Transcripts


@given(played_positions(), seeds)
def test_transcripts_in_any_case_with_blanks_and_passes_or_without_tell_the_same_game(
    position: Position, seed: int
) -> None:
    dice = random.Random(seed)
    game = Game(position)
    while not game.is_over and len(game.moves) < 30:
        game.play(dice.choice(game.position.legal_moves))
    names = [position.move_name(move) for move in game.moves]
    spellings = [
        dice.choice([name.lower(), name.upper()]) if name != "pass" else dice.choice(["pass", "PA", "--", "@@", "ps"])
        for name in names
    ]
    numbered = "".join(f"{number}. {name}\n" for number, name in enumerate(spellings, start=1))
    for text in (game.transcript, "".join(spellings), " ".join(spellings), ", ".join(spellings), numbered):
        told = Game.from_transcript(text, position)
        ends_in_a_pass_left_out = text == game.transcript and names and names[-1] == "pass"
        assert told.moves == game.moves[: len(game.moves) - bool(ends_in_a_pass_left_out)]


@given(variants(), seeds)
def test_the_transcript_of_a_whole_game_leads_back_to_it(variant: Variant, seed: int) -> None:
    dice = random.Random(seed)
    game = Game(variant)
    while not game.is_over:
        game.play(dice.choice(game.position.legal_moves))
    told = Game.from_transcript(game.transcript, variant)
    assert told.moves == game.moves
    assert told.position == game.position


def test_an_illegal_move_is_named_with_its_number_the_position_and_the_legal_ones() -> None:
    with pytest.raises(IllegalMoveError) as caught:
        Game.from_transcript("f5d6c3d3c4h8f4")
    after = Game.from_transcript("f5d6c3d3c4").position
    legal = " ".join(after.move_name(move) for move in after.legal_moves)
    assert str(caught.value) == f"move 6: h8 is not legal for white in {after.text}; legal: {legal}"


def test_a_move_after_the_end_is_named_as_such() -> None:
    with pytest.raises(IllegalMoveError, match=r"move 10: a1 cannot be played: the game is over in [-XO]{64} [XO]"):
        Game.from_transcript("e6f4e3f6g5d6e7f5c5a1")


@pytest.mark.parametrize(
    ("text", "place", "found"),
    [
        ("f5 d6 z3", 7, "'z'"),
        ("f5d6c9", 5, "'c9'"),
        ("f5d6i1", 5, "'i1'"),
        ("f5d6c", 5, "'c'"),
        ("hello", 1, "'h'"),
        ("f5 – d6", 4, "'–'"),
        ("1. f5 2. q", 10, "'q'"),
        ("f5d6ﬀ", 5, "'ﬀ'"),
        ("f5d6😀", 5, "'😀'"),
        ("f5 -", 4, "'-'"),
    ],
)
def test_what_is_no_move_in_a_transcript_is_named_with_its_place(text: str, place: int, found: str) -> None:
    with pytest.raises(ValueError, match=f"character {place} of the transcript: {found} is not a square of 8×8"):
        parse_transcript(text, 8)


@pytest.mark.parametrize("text", ["", "  \n", ",", "1."])
def test_a_transcript_without_moves_is_a_game_not_yet_begun(text: str) -> None:
    assert parse_transcript(text, 8) == []


@given(st.text(max_size=200) | st.text("abj019.-pS@ ,", max_size=60), sizes)
@example("1" * 5000 + ".", 8)
@example("\u01305\u01315\u017f", 8)  # relatives of i and s, which case folding takes for them
def test_any_text_is_a_transcript_or_a_value_error(text: str, size: int) -> None:
    with contextlib.suppress(ValueError):
        assert all(0 <= move <= size * size for move in parse_transcript(text, size))


# Boards


@given(positions())
def test_boards_survive_writing_and_drawing(position: Position) -> None:
    assert Position.from_text(position.text, position.variant) == position
    assert Position.from_text(str(position), position.variant) == position
    assert Position.from_text(f"{str(position).upper()}\n\n", position.variant) == position
    board, size = position.board, position.variant.size
    rows = "\n".join(board[row : row + size] for row in range(0, size * size, size))
    assert parse_board(f"{rows}\n{position.side}") == (board, position.side)


@given(positions())
def test_a_drawing_has_a_dot_on_each_legal_square_and_the_side_to_move(position: Position) -> None:
    size = position.variant.size
    lines = str(position).splitlines()
    assert lines[0].split() == list("abcdefghij"[:size])
    assert lines[-1] == f"{position.side} to move"
    assert [line.split()[0] for line in lines[1:-1]] == [str(row) for row in range(1, size + 1)]
    cells = [cell for line in lines[1:-1] for cell in line.split()[1:]]
    dots = [square for square, cell in enumerate(cells) if cell == "."]
    assert dots == ([] if position.must_pass else list(position.legal_moves))
    assert "".join(cells).replace(".", "-") == position.board


def test_the_start_is_drawn_as_in_the_books() -> None:
    assert str(Position("othello-10x10")) == "\n".join(
        [
            "   a b c d e f g h i j",
            " 1 - - - - - - - - - -",
            " 2 - - - - - - - - - -",
            " 3 - - - - - - - - - -",
            " 4 - - - - . - - - - -",
            " 5 - - - . O X - - - -",
            " 6 - - - - X O . - - -",
            " 7 - - - - - . - - - -",
            " 8 - - - - - - - - - -",
            " 9 - - - - - - - - - -",
            "10 - - - - - - - - - -",
            "X to move",
        ]
    )


@pytest.mark.parametrize(
    "text",
    [
        "-----ox--xo----- x",
        "- - - - - O X - - X O - - - - - black",
        "----|-WB-|-BW-|---- b",
        "____\n_0*_\n_*0_\n____\n*",
        "....·○●··●○·....  ● to move",
        "  a b c d\n1 - - - - 1\n2 - O X - 2\n3 - X O - 3\n4 - - - - 4\n  a b c d\nblack to move",
        "1 ----\n2 -OX-\n3 -XO-\n4 ----\nX TO MOVE",
        "---- -OX- -XO- ---- BLACK",
    ],
)
def test_one_board_in_many_spellings(text: str) -> None:
    assert parse_board(text) == ("-----OX--XO-----", "X")


@pytest.mark.parametrize(("size", "wanted"), [(None, "16 .* or 36 .* or 64 .* or 100"), (6, r"36 \(6×6\)")])
@pytest.mark.parametrize("num_squares", [0, 1, 15, 63, 65, 1000])
def test_a_board_of_the_wrong_length_is_told_how_long_it_is(num_squares: int, size: int | None, wanted: str) -> None:
    with pytest.raises(ValueError, match=f"found {num_squares} squares, expected {wanted}"):
        parse_board("-" * num_squares + "X", size)


@pytest.mark.parametrize(("square", "name"), [(0, "a1"), (7, "h1"), (8, "a2"), (63, "h8")])
@pytest.mark.parametrize("stranger", ["Z", "1", "é", "\u0301", "😀"])
def test_a_strange_character_is_named_with_its_square(square: int, name: str, stranger: str) -> None:
    cells = ["-"] * 64
    cells[square] = stranger
    with pytest.raises(ValueError, match=f"'{stranger}' at {name} is neither a black disc"):
        parse_board("".join(cells) + " X")


@pytest.mark.parametrize("side", ["Z", "-", "grey"])
def test_a_side_to_move_that_is_none_is_named(side: str) -> None:
    drawn = draw_board("-" * 16, side)
    with pytest.raises(ValueError, match=f"the side to move is X or O after the board, found {side!r}"):
        parse_board(drawn)


def test_a_drawing_without_its_side_is_refused() -> None:
    drawn = "\n".join(str(Position("othello-4x4")).splitlines()[:-1])
    with pytest.raises(ValueError, match="a drawn board needs a line 'X to move' or 'O to move'"):
        parse_board(drawn)


def test_a_drawing_with_a_short_row_names_the_row() -> None:
    drawn = str(Position("othello-4x4")).replace("O X", "O")
    with pytest.raises(ValueError, match="row 2 of the drawn board has 3 squares, expected 4"):
        parse_board(drawn)


@given(st.text(max_size=300) | st.text("XO-.1234 \n|tomvebackwhi", max_size=150), st.sampled_from([None, *SIZES]))
@example("", None)
@example("1 X\n", None)
@example("9" * 5000 + " X", 4)
def test_any_text_is_a_board_or_a_value_error(text: str, size: int | None) -> None:
    try:
        board, side = parse_board(text, size)
    except ValueError:
        return
    assert len(board) in ([size * size] if size else [columns * columns for columns in SIZES])
    assert set(board) <= set("XO-")
    assert side in "XO"


@pytest.mark.parametrize(
    "text", ["-" * 300_000, "x " * 150_000, "1 " + "x" * 300_000, "1 ----\n" + "to" + " " * 300_000, "a1" * 150_000]
)
def test_huge_text_is_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_board(text)
    with pytest.raises(ValueError, match=r"."):
        Game.from_transcript(text)
