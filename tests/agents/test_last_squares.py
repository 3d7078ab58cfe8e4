"""The last few squares: every answer against the rule book's minimax, whatever is asked."""

import functools
import itertools
from collections.abc import Iterable

import numpy as np
import pytest

from agents.search import last_squares
from agents.search.last_squares import NODES
from reversi_env import Position, Variant
from reversi_env.geometry import SIZES, Bitboard, bit_indices, to_bitboard, to_squares
from reversi_env.notation import BLACK, EMPTY, WHITE
from reversi_env.variant import GOALS, SCORINGS
from tests import oracle

VARIANTS = [
    Variant(size, goal=goal, scoring=scoring) for size, goal, scoring in itertools.product(SIZES, GOALS, SCORINGS)
]
each_variant = pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)


def arbitrary_position(variant: Variant, num_empties: int, seed: int) -> Position:
    """Returns a position with any discs whatever; one color has most of them, or none, so that sides pass."""
    generator = np.random.default_rng([seed, num_empties, variant.size])
    share = generator.choice([0.1, 0.3, 0.5, 0.7, 0.9])
    cells = generator.choice([BLACK, WHITE], variant.num_squares, p=[share, 1 - share])
    cells[generator.choice(variant.num_squares, num_empties, replace=False)] = EMPTY
    return Position.from_text("".join(cells) + str(generator.choice([BLACK, WHITE])), variant)


def empty_squares(position: Position) -> list[int]:
    return [square for square, cell in enumerate(position.board) if cell == EMPTY]


def bit_index(square: int, variant: Variant) -> int:
    return bit_indices(variant.size)[square]


def board_of(squares: Iterable[int], variant: Variant) -> Bitboard:
    return to_bitboard(squares, variant.size)


def negamax(position: Position) -> int:
    return oracle.negamax(list(position.board), position.side, position.variant.goal, position.variant.scoring)


def quadrant(square: int, size: int) -> set[int]:
    """Returns the squares of the same quarter of the board."""
    half = size // 2
    place = (square // size // half, square % size // half)
    return {other for other in range(size * size) if (other // size // half, other % size // half) == place}


def odd_squares(position: Position) -> set[int]:
    """Returns the squares of the quadrants with an odd number of empty squares."""
    size, empties = position.variant.size, set(empty_squares(position))
    return {square for square in range(size * size) if len(quadrant(square, size) & empties) % 2}


@pytest.mark.parametrize("size", SIZES)
def test_neighbors_and_quadrants_are_where_they_lie(size: int) -> None:
    variant = Variant(size)
    like, rules = variant.rules.squares, variant.rules
    for square, index in enumerate(bit_indices(size)):
        around = {
            other
            for other in range(size * size)
            if max(abs(other // size - square // size), abs(other % size - square % size)) == 1
        }
        # On boards that lie in the corner of a greater grid some neighbors are off the board, and empty for ever.
        assert around <= set(_squares_on_board(last_squares.neighbors_of(index, like), variant))
        assert set(to_squares(last_squares.quadrant_of(index, like, rules), size)) == quadrant(square, size)


def _squares_on_board(board: Bitboard, variant: Variant) -> tuple[int, ...]:
    on_board = tuple(
        np.uint64(int(word) & int(valid)) for word, valid in zip(board, variant.rules.squares, strict=True)
    )
    return to_squares(on_board, variant.size)


@pytest.mark.parametrize("size", SIZES)
def test_odd_quadrants_are_counted(size: int) -> None:
    variant = Variant(size)
    for seed in range(40):
        position = arbitrary_position(variant, seed % 9, seed)
        empties = board_of(empty_squares(position), variant)
        odd = last_squares.odd_quadrants(empties, variant.rules)
        assert set(to_squares(odd, size)) == odd_squares(position)


@pytest.mark.parametrize("size", SIZES)
def test_the_last_move_flips_what_the_rule_book_says(size: int) -> None:
    variant = Variant(size)
    for seed in range(150):
        position = arbitrary_position(variant, 1, seed)
        (square,) = empty_squares(position)
        index = bit_index(square, variant)
        for side, discs in ((BLACK, position.black), (WHITE, position.white)):
            expected = len(oracle.flips(list(position.board), side, square))
            assert last_squares.last_flips(discs, index, variant.rules) == expected, (position.text, side)


@each_variant
def test_one_square_is_scored_as_the_rule_book_does(variant: Variant) -> None:
    for seed in range(60):
        position = arbitrary_position(variant, 1, seed)
        index = bit_index(empty_squares(position)[0], variant)
        assert last_squares.score_1(position.player, index, variant.rules) == negamax(position), position.text


def check_answers(position: Position) -> None:
    """Asks of every score near the true one, and of far ones, whether there is more."""
    variant, score = position.variant, negamax(position)
    progress = np.zeros(1, np.int64)
    squares = empty_squares(position)
    empties, odd = board_of(squares, variant), board_of(odd_squares(position), variant)
    most = variant.num_squares
    if len(squares) == 2:
        ask = functools.partial(_ask_two, position, [bit_index(square, variant) for square in squares], progress)
    else:
        ask = functools.partial(_ask_few, position, empties, odd, progress)
    for alpha in {-most, score - 7, score - 2, score - 1, score, score + 1, score + 6, most}:
        found = ask(alpha)
        assert (found > alpha) == (score > alpha), (position.text, alpha)
        assert (found <= score) if found > alpha else (found >= score), (position.text, alpha)


def _ask_two(position: Position, squares: list[int], progress: np.ndarray, alpha: int) -> int:
    found = [
        last_squares.score_2(position.player, position.opponent, alpha, *order, progress, position.variant.rules)
        for order in (squares, squares[::-1])
    ]
    assert [answer > alpha for answer in found] in ([True, True], [False, False])
    return int(found[0])


def _ask_few(position: Position, empties: Bitboard, odd: Bitboard, progress: np.ndarray, alpha: int) -> int:
    return int(
        last_squares.score_few(
            position.player, position.opponent, alpha, empties, odd, progress, position.variant.rules
        )
    )


@each_variant
def test_few_squares_are_answered_as_by_minimax(variant: Variant) -> None:
    for seed in range(12):
        for num_empties in (2, 3, 4):
            check_answers(arbitrary_position(variant, num_empties, seed))
    for seed in range(2):
        check_answers(arbitrary_position(variant, 5, seed))


@pytest.mark.slow
@each_variant
def test_few_squares_are_answered_as_by_minimax_of_thousands(variant: Variant) -> None:
    for seed in range(60):
        for num_empties in (2, 3, 4, 5, 6):
            check_answers(arbitrary_position(variant, num_empties, 1000 + seed))


def test_squares_in_odd_quadrants_come_first_and_spare_positions() -> None:
    num_nodes = {"told": 0, "untold": 0}
    for seed in range(200):
        position = played_position(6, seed)
        variant = position.variant
        empties = board_of(empty_squares(position), variant)
        for name, odd in (("told", odd_squares(position)), ("untold", set[int]())):
            progress = np.zeros(1, np.int64)
            _ask_few(position, empties, board_of(odd, variant), progress, 0)
            num_nodes[name] += int(progress[NODES])
    assert num_nodes["told"] < 0.9 * num_nodes["untold"]


def played_position(num_empties: int, seed: int) -> Position:
    """Returns a position of Othello that random play leads to, with a move for the side to move."""
    generator = np.random.default_rng(seed)
    while True:
        position = Position()
        while not position.is_over and position.num_empties > num_empties:
            position = position.play(int(generator.choice(position.legal_moves)))
        if not position.is_over and not position.must_pass:
            return position
