"""Stable discs: the rule on plain lists, and every continuation of the game played out."""

import itertools

import numpy as np
import pytest
from hypothesis import given

from agents.search.stability import most_score, stable_discs
from reversi_env import Position, Variant
from reversi_env.geometry import SIZES, to_squares
from reversi_env.notation import BLACK, EMPTY, WHITE
from reversi_env.variant import GOALS, SCORINGS
from tests import oracle
from tests.reversi_env.strategies import positions


def stable(position: Position) -> tuple[set[int], set[int]]:
    """Returns the squares of the stable discs of the side to move and of the other, by the kernel."""
    size, rules = position.variant.size, position.variant.rules
    taken = {square for square, cell in enumerate(position.board) if cell != EMPTY}
    empties = Position.from_squares(position.variant, set(range(size * size)) - taken, ()).black
    own, other = (stable_discs(discs, empties, rules) for discs in (position.player, position.opponent))
    return set(to_squares(own, size)), set(to_squares(other, size))


def stable_on_lists(board: oracle.Board, side: str, size: int) -> set[int]:
    """Returns what the rule says, each line walked square by square until no disc more is found."""
    found: set[int] = set()
    while True:
        more = {
            square
            for square, cell in enumerate(board)
            if cell == side and all(_is_held(board, square, size, way, found) for way in oracle.DIRECTIONS[4:])
        }
        if more == found:
            return found
        found = more


def _is_held(board: oracle.Board, square: int, size: int, way: tuple[int, int], stable: set[int]) -> bool:
    """Returns whether a disc is safe in one of its four lines."""
    arms = [_arm(square, size, down, right) for down, right in (way, (-way[0], -way[1]))]
    if any(not arm or arm[0] in stable for arm in arms):
        return True
    return all(board[on_line] != EMPTY for arm in arms for on_line in arm)


def _arm(square: int, size: int, down: int, right: int) -> list[int]:
    row, column = square // size + down, square % size + right
    squares = []
    while 0 <= row < size and 0 <= column < size:
        squares.append(row * size + column)
        row, column = row + down, column + right
    return squares


@given(positions())
def test_stable_discs_are_those_of_the_rule(position: Position) -> None:
    board, size = list(position.board), position.variant.size
    own, other = stable(position)
    assert own == stable_on_lists(board, position.side, size)
    assert other == stable_on_lists(board, oracle.other(position.side), size)


def late_position(variant: Variant, num_empties: int, seed: int) -> Position:
    """Returns a position with so many empty squares, and one color in most places, so that discs are stable."""
    generator = np.random.default_rng(seed)
    share = generator.choice([0.2, 0.5, 0.8])
    cells = generator.choice([BLACK, WHITE], variant.num_squares, p=[share, 1 - share])
    cells[generator.choice(variant.num_squares, num_empties, replace=False)] = EMPTY
    return Position.from_text("".join(cells) + str(generator.choice([BLACK, WHITE])), variant)


def everything_reached(board: oracle.Board, side: str, seen: set[tuple[str, str]]) -> None:
    """Adds every board and side that play reaches, both sides moving anywhere."""
    if (key := ("".join(board), side)) in seen:
        return
    seen.add(key)
    for after in oracle.turns(board, side):
        everything_reached(after, oracle.other(side), seen)


def check_continuations(position: Position) -> int:
    """Plays every continuation, in which no stable disc may turn; returns how many discs are stable."""
    own, other = stable(position)
    reached: set[tuple[str, str]] = set()
    everything_reached(list(position.board), position.side, reached)
    for board, _ in reached:
        assert {board[square] for square in own} <= {position.side}, position.text
        assert {board[square] for square in other} <= {oracle.other(position.side)}, position.text
    return len(own) + len(other)


@pytest.mark.parametrize(("size", "num_empties", "count"), [(4, 6, 30), (6, 6, 20), (8, 5, 20), (10, 5, 8)])
def test_no_continuation_turns_a_stable_disc(size: int, num_empties: int, count: int) -> None:
    num_stable = [check_continuations(late_position(Variant(size), num_empties, seed)) for seed in range(count)]
    assert sum(num_stable) > 4 * count  # the test is not empty


@pytest.mark.slow
@pytest.mark.parametrize(("size", "num_empties", "count"), [(4, 8, 150), (6, 7, 150), (8, 7, 80), (10, 6, 60)])
def test_no_continuation_turns_a_stable_disc_of_many(size: int, num_empties: int, count: int) -> None:
    for seed in range(count):
        check_continuations(late_position(Variant(size), num_empties, 1000 + seed))


@pytest.mark.parametrize(("size", "goal", "scoring"), list(itertools.product(SIZES, GOALS, SCORINGS)))
def test_no_score_exceeds_the_bound(size: int, goal: str, scoring: str) -> None:
    variant = Variant(size, goal=goal, scoring=scoring)
    lowest = variant.num_squares
    for seed in range(25):
        position = late_position(variant, 1 + seed % 5, seed)
        empties = tuple(
            np.uint64(squares & ~(own | other))
            for squares, own, other in zip(
                map(int, variant.rules.squares), map(int, position.player), map(int, position.opponent), strict=True
            )
        )
        most = most_score(position.player, position.opponent, empties, variant.rules)
        assert oracle.negamax(list(position.board), position.side, goal, scoring) <= most, position.text
        lowest = min(lowest, most)
    assert lowest < 0  # a bound that is worth something
