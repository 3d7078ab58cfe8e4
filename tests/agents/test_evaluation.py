"""Evaluations: values worked out by hand, and what must hold of any of them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.evaluation import DISC, KINDS, Evaluation, best_evaluation, evaluate, evaluation_of, neighbors
from reversi_env import Position, Variant
from reversi_env.geometry import SIZES, to_bitboard, to_squares
from reversi_env.naming import UnknownNameError, UsageError
from reversi_env.opponents import square_weights
from reversi_env.symmetry import NUM_SYMMETRIES, transform_position
from reversi_env.variant import GOALS


def evaluation(position: Position, kind: str) -> int:
    return evaluate(position.player, position.opponent, evaluation_of(kind, position.variant), position.variant.rules)


@st.composite
def boards(draw: st.DrawFn) -> Position:
    """Draws any discs whatever, of any size and goal."""
    variant = Variant(size=draw(st.sampled_from(SIZES)), goal=draw(st.sampled_from(GOALS)))
    cells = st.text("XO---", min_size=variant.num_squares, max_size=variant.num_squares)
    return Position.from_text(draw(cells) + draw(st.sampled_from("XO")), variant)


@settings(deadline=None)  # the first example waits for the compiler
@given(boards(), st.sampled_from(sorted(KINDS)), st.integers(0, NUM_SYMMETRIES - 1))
def test_symmetries_leave_every_evaluation_unchanged(position: Position, kind: str, symmetry: int) -> None:
    assert evaluation(transform_position(position, symmetry), kind) == evaluation(position, kind)


@settings(deadline=None)  # the first example waits for the compiler
@given(boards(), st.sampled_from(sorted(KINDS)))
def test_what_one_side_gains_the_other_loses(position: Position, kind: str) -> None:
    other = Position.from_bitboards(position.variant, position.opponent, position.player)
    assert evaluation(other, kind) == -evaluation(position, kind)


@settings(deadline=None)  # the first example waits for the compiler
@given(boards(), st.sampled_from(sorted(KINDS)))
def test_no_evaluation_is_beyond_a_whole_board(position: Position, kind: str) -> None:
    assert abs(evaluation(position, kind)) <= DISC * position.variant.num_squares


@settings(deadline=None)  # the first example waits for the compiler
@given(boards())
def test_discs_counts_the_differential(position: Position) -> None:
    sign = -1 if position.variant.goal == "fewest" else 1
    assert evaluation(position, "discs") == sign * DISC * position.disc_differential


@settings(deadline=None)  # the first example waits for the compiler
@given(boards())
def test_positional_sums_the_square_weights(position: Position) -> None:
    weights = square_weights(position.variant.size)
    size = position.variant.size
    total = sum(weights[list(to_squares(position.player, size))]) - sum(
        weights[list(to_squares(position.opponent, size))]
    )
    assert evaluation(position, "positional") == (-total if position.variant.goal == "fewest" else total)


@settings(deadline=None)  # the first example waits for the compiler
@given(boards())
def test_neighbors_are_the_squares_a_step_away(position: Position) -> None:
    size = position.variant.size
    expected = {
        row * size + column
        for square in to_squares(position.player, size)
        for row in range(max(0, square // size - 1), min(size, square // size + 2))
        for column in range(max(0, square % size - 1), min(size, square % size + 2))
    }
    beside = neighbors(position.player, evaluation_of("mobility", position.variant))
    on_board = [word & squares for word, squares in zip(beside, position.variant.rules.squares, strict=True)]
    assert set(to_squares(tuple(on_board), size)) == expected


# X has a1 and b1 against O's c1, in the first row of 4×4: X's only move is d1, O has none. Beside O's disc lie d1, b2,
# c2, d2, beside X's a2, b2, c2: one potential move more. The frontier is two discs to one, the corner is X's; no disc
# lies beside an empty corner but O's c1, a C square.
@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        ("most", 100 * 1 + 15 * 1 - 135 * (2 - 1) + 1125 * 1 - 120 * (0 - 1) + 60 * (2 - 1)),
        ("fewest", 10 * 1 + 10 * 1 + 10 * (2 - 1) - 660 * 1 + 155 * (0 - 1) - 50 * (2 - 1)),
    ],
)
def test_mobility_weighs_each_term(goal: str, expected: int) -> None:
    position = Position.from_text("XXO-" + "----" * 3 + "X", Variant(size=4, goal=goal))
    assert evaluation(position, "mobility") == expected


def test_x_square_beside_an_empty_corner_is_bad() -> None:
    lone = Position.from_text("-" * 9 + "X" + "-" * 54 + "X")  # b2: eight potential moves for O, one frontier disc
    assert evaluation(lone, "mobility") == -15 * 8 - 135 - 740 + 60


@pytest.mark.parametrize("size", SIZES)
def test_corners_and_x_squares_are_where_they_should_be(size: int) -> None:
    terms: Evaluation = evaluation_of("mobility", Variant(size=size))
    last = size - 1
    assert terms.corners == to_bitboard([0, last, size * last, size * size - 1], size)
    assert to_squares(terms.x_squares, size) == (size + 1, 2 * size - 2, size * (last - 1) + 1, size * last - 2)


def test_unknown_evaluation_gets_the_near_miss() -> None:
    with pytest.raises(UnknownNameError, match="did you mean mobility"):
        evaluation_of("mobilty", Variant())


def test_the_best_evaluation_is_the_learned_one_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def tables_for_8x8(variant: Variant) -> None:
        if variant.size != 8:
            raise UsageError("no tables")

    monkeypatch.setattr("agents.evaluation.shipped_tables", tables_for_8x8)
    assert best_evaluation(Variant(8)) == "ntuple"
    assert best_evaluation(Variant(4)) == "mobility"
