"""Reasons for and against moves: on boards where the right ones are known, and against the oracle on any other."""

from dataclasses import fields, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agents import reasons
from agents.explain import FEW_SAFE, SPREAD, Explanation, explain
from agents.reasons import (
    IMPORTANCE,
    ExactScore,
    FlipsDiscs,
    LosesDiscs,
    Mobility,
    OnlyMove,
    OpensCorner,
    OpponentPasses,
    Parity,
    Reason,
    Replies,
    RisksCorner,
    StableDiscs,
    TakesCorner,
    WipesOut,
)
from agents.search.solver import Solver
from reversi_env import IllegalMoveError, Position, Variant, random_games
from reversi_env.geometry import SIZES
from reversi_env.symmetry import NUM_SYMMETRIES, transform_action, transform_position
from reversi_env.variant import GOALS, SCORINGS, STARTS
from tests import oracle
from tests.reversi_env.strategies import played_positions, variants

GOAL = pytest.mark.parametrize("goal", GOALS)

R = TypeVar("R", bound=Reason)


def read(drawing: str, goal: str = "most", start: str = "diagonal") -> Position:
    """Returns the position of rows without coordinates, black to move."""
    rows = drawing.split()
    return Position.from_text("".join(rows) + "X", Variant(len(rows), goal=goal, start=start))


def square(position: Position, name: str) -> int:
    return position.parse_move(name)


def said(explanation: Explanation, kind: type[R]) -> list[R]:
    return [reason for reason in explanation.reasons if isinstance(reason, kind)]


def reasons_of(position: Position, move: str, kind: type[R]) -> list[R]:
    return said(explain(position, position.parse_move(move)), kind)


def small_solver(variant: Variant) -> Solver:
    return Solver(variant, table_entries=1 << 10)


# Corners


# a1 takes the corner over b1. Nothing flips a1, nor then b1, so c1 is stable too; of c1 and b1 one was black before.
CORNER = """
    -OX-----
    --------
    --------
    ---OX---
    ---XO---
    --------
    --------
    --------
"""


@GOAL
def test_corner_is_taken_for_good(goal: str) -> None:
    position = read(CORNER, goal)
    assert reasons_of(position, "a1", TakesCorner) == [TakesCorner(goal == "most", square(position, "a1"))]
    assert reasons_of(position, "a1", StableDiscs) == [StableDiscs(goal == "most", (0, 1, 2))]
    assert not reasons_of(position, "f5", TakesCorner)
    assert not reasons_of(position, "f5", StableDiscs)


# b2 flips c3, and then a1 flips b2, c3 and d4 for white, who has no other move.
X_SQUARE = """
    --------
    --------
    --O-----
    ---X----
    ----O---
    --------
    --------
    --------
"""


@GOAL
def test_x_square_opens_its_corner(goal: str) -> None:
    position = read(X_SQUARE, goal)
    assert reasons_of(position, "b2", OpensCorner) == [
        OpensCorner(goal == "fewest", corner=0, x_square=square(position, "b2"), c_squares=())
    ]


# b1 flips c1, and then a1 flips b1, c1 and d1 for white.
C_SQUARE = """
    --OXO---
    --------
    --------
    --------
    --------
    --------
    --------
    --------
"""


@GOAL
def test_c_square_opens_its_corner(goal: str) -> None:
    position = read(C_SQUARE, goal)
    assert reasons_of(position, "b1", OpensCorner) == [
        OpensCorner(goal == "fewest", corner=0, x_square=None, c_squares=(square(position, "b1"),))
    ]


# c2 flips b2 on the X square, and then a1 flips b2 for white.
FROM_AFAR = """
    --------
    XO------
    --O-----
    --------
    ----XO--
    --------
    --------
    --------
"""


def test_corner_is_opened_from_afar() -> None:
    position = read(FROM_AFAR)
    assert reasons_of(position, "c2", OpensCorner) == [
        OpensCorner(False, corner=0, x_square=square(position, "b2"), c_squares=())
    ]


def test_corner_by_the_x_square_is_no_gift_where_the_fewest_discs_win_and_the_opponent_may_decline() -> None:
    assert reasons_of(read(FROM_AFAR, "fewest"), "c2", OpensCorner) == []


# White can take a1 over b1 as it is; so b2 does not open it, though the disc there would be flipped with b1.
OPEN_BEFORE = """
    -XO-----
    --------
    --O-----
    ---X----
    ----O---
    --------
    --------
    --------
"""


def test_corner_that_was_open_before_is_not_opened() -> None:
    assert reasons_of(read(OPEN_BEFORE), "b2", OpensCorner) == []


# b2 flips c3; white has no disc on the diagonal, and cannot take a1 yet.
X_SQUARE_UNPUNISHED = """
    --------
    --------
    --O-----
    ---X----
    --------
    ----XO--
    --------
    --------
"""


def test_x_square_risks_its_corner() -> None:
    position = read(X_SQUARE_UNPUNISHED)
    assert reasons_of(position, "b2", RisksCorner) == [RisksCorner(False, corner=0)]
    assert reasons_of(position, "b2", OpensCorner) == []
    assert reasons_of(read(X_SQUARE_UNPUNISHED, "fewest"), "b2", RisksCorner) == []
    assert reasons_of(read(X_SQUARE), "b2", RisksCorner) == []  # it is open already


def test_x_square_beside_a_taken_corner_risks_nothing() -> None:
    taken = read("O" + X_SQUARE_UNPUNISHED.strip()[1:])
    assert reasons_of(taken, "b2", RisksCorner) == []


# The opponent's moves


# a1 flips b1, and white's last disc at d4 has no black one to flip towards a white one.
LEAVES_NOTHING = """
    -OX-
    ----
    ----
    X--O
"""


@GOAL
def test_opponent_without_a_move_passes(goal: str) -> None:
    position = read(LEAVES_NOTHING.replace("X--O", "XO--"), goal)  # black has c4 as well
    assert reasons_of(position, "a1", OpponentPasses) == [OpponentPasses(goal == "most", num_own_moves=1)]
    assert not reasons_of(position, "a1", Replies)
    assert not reasons_of(position, "a1", Mobility)


@GOAL
def test_game_that_ends_has_its_score_without_a_solver(goal: str) -> None:
    position = read(LEAVES_NOTHING, goal)  # then four black discs, and a white one that nobody can flip
    assert reasons_of(position, "a1", ExactScore) == [
        ExactScore(True, 3 if goal == "most" else -3)
    ]  # no move is better
    assert reasons_of(position, "a1", OpponentPasses) == []


@GOAL
def test_wipe_out_comes_first(goal: str) -> None:
    position = read(LEAVES_NOTHING.replace("X--O", "X---"), goal)
    only, wipes_out, exact, *_ = explain(position, 0).reasons
    score = 4 if goal == "most" else -4
    assert only == OnlyMove(True)
    assert wipes_out == WipesOut(goal == "most", num_flipped=1)
    assert exact == ExactScore(True, score)  # there is no better move, even where this one loses


# After e7, which flips e6, white has f6 over e5, and b2 over c3. But b2 opens a1 to black, over b2, c3 and d4.
X_SQUARE_FOR_WHITE = """
    --------
    --------
    --X-----
    ---O----
    ----X---
    ----O---
    --------
    --------
"""


def test_replies_that_open_a_corner_are_not_safe() -> None:
    assert reasons_of(read(X_SQUARE_FOR_WHITE), "e7", Replies) == [Replies(True, num_replies=2, num_safe=1)]


def test_replies_that_take_a_corner_are_not_safe_where_the_fewest_discs_win() -> None:
    assert reasons_of(read(C_SQUARE, "fewest"), "b1", Replies) == [Replies(True, num_replies=1, num_safe=0)]


def test_lone_reply_in_a_corner_does_not_speak_for_the_move() -> None:
    assert reasons_of(read(C_SQUARE), "b1", Replies) == []


# Regions


# The squares a1, b1 and a2 hang together; d4 is alone. After a2, white can go to b1; after b1 nowhere.
THREE = """
    --OX
    -XOX
    OOXX
    XOO-
"""

# After b1, white can go to a1, over a2.
TWO = """
    --OX
    XXOX
    OXOX
    OXXX
"""

# After b1, white can go nowhere: it has c4 left.
TWO_AND_ONE = """
    --OX
    XXOX
    XXXX
    XXO-
"""


@GOAL
@pytest.mark.parametrize(
    ("drawing", "move", "region", "is_mover_last", "is_opponent_shut_out"),
    [
        (THREE, "a2", "a1 b1 a2", True, False),
        (THREE, "b1", "a1 b1 a2", True, True),
        (THREE, "d4", "d4", True, False),
        (TWO, "b1", "a1 b1", False, False),
        (TWO_AND_ONE, "b1", "a1 b1", True, True),
    ],
)
def test_parity_says_who_moves_last_in_the_region(
    drawing: str, move: str, region: str, is_mover_last: bool, is_opponent_shut_out: bool, goal: str
) -> None:
    position = read(drawing, goal)
    squares = tuple(square(position, name) for name in region.split())
    assert reasons_of(position, move, Parity) == [
        Parity(is_mover_last == (goal == "most"), squares, is_mover_last, is_opponent_shut_out)
    ]


def test_large_region_says_nothing_of_parity() -> None:
    assert reasons_of(read(CORNER), "a1", Parity) == []


# Exact scores


@settings(deadline=None, max_examples=60)  # the first example waits for the compiler
@given(st.data(), st.sampled_from(GOALS), st.sampled_from(SCORINGS))
def test_exact_scores_and_regrets_agree_with_minimax(data: st.DataObject, goal: str, scoring: str) -> None:
    variant = Variant(4, goal=goal, scoring=scoring)
    position = data.draw(played_positions(variant).filter(lambda drawn: not drawn.is_over and drawn.num_empties <= 8))
    scores = {move: -_minimax(position.play(move)) for move in position.legal_moves}
    best = max(scores.values())
    for move, score in scores.items():
        explanation = explain(position, move, small_solver(variant))
        assert said(explanation, ExactScore) == [ExactScore(score > 0 or score == best, score)]
        best_moves = tuple(other for other in scores if scores[other] == best)
        assert said(explanation, LosesDiscs) == ([LosesDiscs(False, best - score, best_moves)] if score < best else [])


def _minimax(position: Position) -> int:
    variant = position.variant
    return oracle.negamax(list(position.board), position.side, variant.goal, variant.scoring)


def test_solver_is_asked_only_near_the_end() -> None:
    position = read(THREE)
    solver = small_solver(position.variant)
    assert said(explain(position, 4, solver, exact_empties=4), ExactScore)
    assert not said(explain(position, 4, solver, exact_empties=3), ExactScore)


# Passes and errors


def test_reason_for_a_pass_is_that_there_is_no_other_move() -> None:
    position = read(TWO_AND_ONE).play(1)
    assert position.must_pass
    assert explain(position, position.variant.pass_move).reasons == (OnlyMove(True),)


def test_any_integer_is_a_move() -> None:
    position = read(THREE)
    explanation = explain(position, np.int64(4))
    assert explanation == explain(position, 4)
    assert type(explanation.move) is int


def test_illegal_move_cannot_be_explained() -> None:
    with pytest.raises(IllegalMoveError, match="a1 is not legal for black"):
        explain(Position(), 0)


def test_finished_game_has_no_move_to_explain() -> None:
    with pytest.raises(ValueError, match="the game is over"):
        explain(read("XXXX " * 4), 16)


def test_nothing_speaks_for_or_against_a_square_while_the_center_is_filled() -> None:
    position = Position("reversi-1883")
    *others, last = position.variant.center
    for move in others:
        assert explain(position, move).reasons == ()
        position = position.play(move)
    assert explain(position, last).reasons == (OnlyMove(True),)


# Any game


@st.composite
def explanations(draw: st.DrawFn) -> Explanation:
    """Draws a move of a game and what is said of it."""
    position = draw(played_positions().filter(lambda drawn: not drawn.is_over))
    return explain(position, draw(st.sampled_from(position.legal_moves)))


@st.composite
def choices(draw: st.DrawFn) -> Position:
    """Draws a position of a small board, on which moves flip discs; the oracle takes its time with large ones."""
    position = draw(st.sampled_from((4, 6)).flatmap(variants).flatmap(played_positions))
    assume(not position.is_over and not position.must_pass)
    assume(not oracle.in_placement(list(position.board), position.variant.start == "free"))
    return position


@settings(deadline=None, max_examples=60)  # the first example waits for the compiler
@given(choices())
def test_few_and_many_flips_agree_with_the_rule_book(position: Position) -> None:
    board, side = list(position.board), position.side
    flips = {move: len(oracle.flips(board, side, move)) for move in position.legal_moves}
    frontier = {move: _frontier(oracle.play(board, side, move), side) - _frontier(board, side) for move in flips}
    judged = flips if position.variant.goal == "fewest" else frontier
    for move in position.legal_moves:
        little, much = _is_low(judged, move, 1), _is_low(judged, move, -1)
        expected = [FlipsDiscs(little, flips[move], frontier[move])] if little or much else []
        assert said(explain(position, move), FlipsDiscs) == ([] if position.play(move).is_over else expected)


@settings(deadline=None, max_examples=60)  # the first example waits for the compiler
@given(choices())
def test_few_and_many_safe_replies_agree_with_the_rule_book(position: Position) -> None:
    fewest = position.variant.goal == "fewest"
    afters = {move: position.play(move) for move in position.legal_moves}
    safe = {move: _num_safe(after) for move, after in afters.items()}
    for move, after in afters.items():
        replies = oracle.legal_squares(list(after.board), after.side)
        few = safe[move] <= FEW_SAFE or _is_low(safe, move, 1)
        many = safe[move] > FEW_SAFE and _is_low(safe, move, -1)
        can_take_corner = _corners(position.variant.size) & set(replies)
        is_said = replies and (many or (few and (fewest or not can_take_corner)))
        assert said(explain(position, move), Replies) == ([Replies(few, len(replies), safe[move])] if is_said else [])


def _is_low(counts: dict[int, int], move: int, sign: int) -> bool:
    """Returns whether a move's count lies in the lower third of all or, with sign -1, in the upper."""
    signed = [sign * count for count in counts.values()]
    spread = max(signed) - min(signed)
    return spread >= SPREAD and 3 * (sign * counts[move] - min(signed)) <= spread


def _frontier(board: oracle.Board, side: str) -> int:
    size = round(len(board) ** 0.5)
    return sum(
        board[square] == side
        and any(
            0 <= square // size + down < size
            and 0 <= square % size + right < size
            and board[square + down * size + right] == oracle.EMPTY
            for down, right in oracle.DIRECTIONS
        )
        for square in range(size * size)
    )


def _corners(size: int) -> set[int]:
    return {0, size - 1, size * (size - 1), size * size - 1}


def _num_safe(position: Position) -> int:
    """Returns how many moves open no corner to the other side or, where the fewest discs win, take none."""
    board, side, other = list(position.board), position.side, oracle.other(position.side)
    corners = _corners(position.variant.size)
    replies = oracle.legal_squares(board, side)
    if position.variant.goal == "fewest":
        return len(set(replies) - corners)
    could_take = corners & set(oracle.legal_squares(board, other))
    can_take = {reply: corners & set(oracle.legal_squares(oracle.play(board, side, reply), other)) for reply in replies}
    return sum(reply in corners or can_take[reply] <= could_take for reply in replies)


@settings(deadline=None, max_examples=100)  # the first example waits for the compiler
@given(explanations())
def test_mobility_is_that_after_some_reply(explanation: Explanation) -> None:
    after = explanation.position.play(explanation.move)
    for reason in said(explanation, Mobility):
        assert reason.num_own_moves in {_num_moves(after.play(reply)) for reply in after.legal_moves}
    for passes in said(explanation, OpponentPasses):
        assert passes.num_own_moves == _num_moves(after.play(after.variant.pass_move))


def _num_moves(position: Position) -> int:
    return len(oracle.legal_squares(list(position.board), position.side, position.variant.start == "free"))


@settings(deadline=None, max_examples=100)  # the first example waits for the compiler
@given(explanations(), st.integers(0, 2**32 - 1))
def test_stable_discs_never_flip(explanation: Explanation, seed: int) -> None:
    position = explanation.position
    gained = [disc for reason in said(explanation, StableDiscs) for disc in reason.gained]
    after = position.play(explanation.move)
    if gained and not after.is_over:
        for moves in random_games(after, 3, seed).moves:
            end = after
            for move in moves[moves <= after.variant.pass_move].tolist():
                end = end.play(move)
            assert all(end.board[disc] == position.side for disc in gained)


@settings(deadline=None, max_examples=100)  # the first example waits for the compiler
@given(explanations(), st.integers(0, NUM_SYMMETRIES - 1))
def test_symmetries_turn_the_reasons_with_the_board(explanation: Explanation, symmetry: int) -> None:
    position, size = explanation.position, explanation.position.variant.size
    turned = explain(transform_position(position, symmetry), transform_action(explanation.move, symmetry, size))
    assert set(turned.reasons) == {_turned(reason, symmetry, size) for reason in explanation.reasons}


SQUARES = {"corner", "x_square", "c_squares", "region", "gained", "best_moves"}  # fields that hold squares


def _turned(reason: Reason, symmetry: int, size: int) -> Reason:
    changes: dict[str, Any] = {}
    for field in fields(reason):
        value = getattr(reason, field.name)
        if field.name in SQUARES and value is not None:
            if isinstance(value, tuple):
                changes[field.name] = tuple(sorted(transform_action(square, symmetry, size) for square in value))
            else:
                changes[field.name] = transform_action(value, symmetry, size)
    return replace(reason, **changes)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("start", STARTS)
@GOAL
def test_every_variant_is_explained_in_order_of_importance(size: int, start: str, goal: str) -> None:
    position = Position(Variant(size, start, goal))
    rng = np.random.default_rng(size)
    kinds = set()
    while not position.is_over:
        move = int(rng.choice(position.legal_moves))
        explanation = explain(position, move)
        ranks = [IMPORTANCE.index(type(reason)) for reason in explanation.reasons]
        assert all(before <= after for before, after in pairwise(ranks))
        kinds |= {reason.kind for reason in explanation.reasons}
        position = position.play(move)
    assert "exact_score" in kinds  # of the last move at least


def test_each_kind_has_a_name_and_a_rank() -> None:
    defined = [kind for kind in vars(reasons).values() if isinstance(kind, type) and issubclass(kind, Reason)]
    assert set(IMPORTANCE) == set(defined) - {Reason}
    assert len({kind.kind for kind in IMPORTANCE}) == len(IMPORTANCE)
