"""The search kernels against plain minimax, and what `Searcher` promises of many positions, limits and threads."""

import itertools
import threading

import numpy as np
import pytest

from agents.evaluation import DISC, KINDS, Evaluation, evaluate, evaluation_of
from agents.search.midgame import FINISHED, NO_VALUE, Searcher
from reversi_env import Position, Variant
from reversi_env.geometry import SIZES
from reversi_env.variant import GOALS, SCORINGS, STARTS
from tests import oracle

VARIANTS = [Variant(), Variant(10, goal="fewest"), Variant(6, "free", "fewest", "tournament"), Variant(4)]


def positions(variant: Variant, number: int, seed: int) -> list[Position]:
    """Returns positions that go on, from random games, about as many of each length."""
    generator = np.random.default_rng(seed)
    found: list[Position] = []
    while len(found) < number:
        position = Position(variant)
        for _ in range(int(generator.integers(variant.num_squares - 4))):
            after = position.play(int(generator.choice(position.legal_moves)))
            if after.is_over:
                break
            position = after
        found.append(position)
    return found


def rows(some: list[Position]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([position.player for position in some]), np.array([position.opponent for position in some])


def worth(position: Position) -> int:
    return position.score * DISC + FINISHED * int(np.sign(position.score))


def minimax(position: Position, depth: int, evaluation: Evaluation) -> int:
    """Returns the value by trying everything, with `Position` for the rules."""
    if position.is_over:
        return worth(position)
    if depth == 0:
        return evaluate(position.player, position.opponent, evaluation, position.variant.rules)
    return max(-minimax(position.play(move), depth - 1, evaluation) for move in position.legal_moves)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_values_of_moves_are_those_of_minimax(variant: Variant) -> None:
    some, evaluation = positions(variant, 12, seed=1), evaluation_of("mobility", variant)
    for depth in (1, 2, 3):
        values = Searcher(variant.size).move_values(*rows(some), depth, evaluation, variant.rules)
        for position, found in zip(some, values, strict=True):
            expected = np.full(variant.num_actions, NO_VALUE)
            for move in position.legal_moves:
                expected[move] = -minimax(position.play(move), depth - 1, evaluation)
            assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_best_moves_have_the_best_values(variant: Variant) -> None:
    some, evaluation = positions(variant, 20, seed=2), evaluation_of("discs", variant)
    searcher = Searcher(variant.size, table_entries=1 << 8)
    of_moves = searcher.move_values(*rows(some), 4, evaluation, variant.rules)
    values, moves = searcher.best_moves(*rows(some), 4, evaluation, variant.rules)
    assert values.tolist() == of_moves.max(axis=1).tolist()
    assert of_moves[np.arange(len(some)), moves].tolist() == values.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_thousands_of_values_are_those_of_minimax(variant: Variant) -> None:
    some = positions(variant, 1500 if variant.size < 10 else 400, seed=3)
    for depth, kind in itertools.product((1, 2, 3, 4), sorted(KINDS)):
        evaluation = evaluation_of(kind, variant)
        some = some[: len(some) * 2 // 3]
        values, _ = Searcher(variant.size).best_moves(*rows(some), depth, evaluation, variant.rules)
        assert values.tolist() == [minimax(position, depth, evaluation) for position in some]


@pytest.mark.slow
@pytest.mark.parametrize(
    "variant",
    [Variant(*each) for each in itertools.product(SIZES, STARTS, GOALS, SCORINGS)],
    ids=lambda variant: variant.name,
)
def test_depth_beyond_the_end_is_the_rule_books_result(variant: Variant) -> None:
    searcher, evaluation = Searcher(variant.size), evaluation_of("positional", variant)
    for position in positions(variant, 400, seed=4):
        if position.num_empties <= 6:
            score = oracle.negamax(
                list(position.board), position.side, variant.goal, variant.scoring, variant.start == "free"
            )
            value, _ = searcher.search(position.player, position.opponent, 13, evaluation, variant.rules)
            assert value == score * DISC + FINISHED * int(np.sign(score))


def test_a_search_does_not_depend_on_those_before() -> None:
    variant = Variant()
    evaluation, some = evaluation_of("mobility", variant), rows(positions(variant, 300, seed=5))
    searcher = Searcher(8, table_entries=1 << 6)  # always full, and cleared once among 300 searches
    once = searcher.best_moves(*some, 3, evaluation, variant.rules)
    again = searcher.best_moves(*some, 3, evaluation, variant.rules)
    assert [array.tolist() for array in again] == [array.tolist() for array in once]


def test_limit_of_nodes_ends_a_step_at_once_and_the_next_search_is_whole() -> None:
    position, variant = positions(Variant(), 1, seed=6)[0], Variant()
    evaluation, searcher = evaluation_of("mobility", variant), Searcher(8)

    def deepen(depth: int) -> int:
        return searcher.deepen(position.player, position.opponent, depth, evaluation, variant.rules)

    searcher.begin()
    expected = deepen(5)
    line = searcher.line
    searcher.begin()
    searcher.limit(2000)
    deepen(12)
    assert searcher.is_stopped
    assert 2000 < searcher.num_nodes < 2200
    searcher.begin()
    assert deepen(5) == expected
    assert searcher.line == line
    assert not searcher.is_stopped


def test_stop_from_another_thread_ends_a_step() -> None:
    position, variant = positions(Variant(), 1, seed=6)[0], Variant()
    evaluation, searcher = evaluation_of("mobility", variant), Searcher(8)
    searcher.begin()
    searcher.deepen(position.player, position.opponent, 2, evaluation, variant.rules)
    timer = threading.Timer(0.1, searcher.stop)
    timer.start()
    searcher.deepen(position.player, position.opponent, 40, evaluation, variant.rules)  # would take years
    timer.join()
    assert searcher.is_stopped


def test_the_line_leads_to_its_value() -> None:
    for variant in VARIANTS:
        searcher, evaluation = Searcher(variant.size), evaluation_of("mobility", variant)
        for position in positions(variant, 8, seed=7):
            searcher.begin()
            value = searcher.deepen(position.player, position.opponent, 4, evaluation, variant.rules)
            end = position
            for move in searcher.line:
                end = end.play(move)
            assert end.is_over or len(searcher.line) == 4
            leaf = worth(end) if end.is_over else evaluate(end.player, end.opponent, evaluation, variant.rules)
            assert value == (leaf if len(searcher.line) % 2 == 0 else -leaf)
