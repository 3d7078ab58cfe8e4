"""The exact solver against brute force of the rule book, published endgames, and itself under every limit."""

import csv
import functools
import itertools
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from agents.evaluation import HANDMADE, KINDS, evaluation_of
from agents.search.solver import Solution, Solver, table_entries_of
from agents.search.transposition import MOST_GENERATIONS, WAYS
from reversi_env import Position, Variant
from reversi_env.geometry import SIZES
from reversi_env.notation import BLACK, EMPTY, WHITE
from reversi_env.symmetry import NUM_SYMMETRIES, transform_position
from reversi_env.variant import GOALS, SCORINGS, STARTS
from tests import oracle

TOURNAMENT = Variant(scoring="tournament")
VARIANTS = [
    Variant(size=size, goal=goal, scoring=scoring, start=start)
    for size, goal, scoring, start in itertools.product(SIZES, GOALS, SCORINGS, STARTS)
]
each_variant = pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)

Data = Callable[[str], Path]


@functools.cache
def solver_of(variant: Variant) -> Solver:
    return Solver(variant, table_entries=1 << 12)


def arbitrary_position(variant: Variant, num_empties: int, seed: int) -> Position:
    """Returns a position, over or not, with any discs whatever; one color may have most of them, so that sides pass."""
    generator = np.random.default_rng([seed, num_empties, variant.size])
    share = generator.choice([0.15, 0.35, 0.5, 0.65, 0.85])
    cells = generator.choice([BLACK, WHITE], variant.num_squares, p=[share, 1 - share])
    cells[generator.choice(variant.num_squares, num_empties, replace=False)] = EMPTY
    return Position.from_text("".join(cells) + str(generator.choice([BLACK, WHITE])), variant)


def played_position(variant: Variant, num_empties: int, seed: int) -> Position:
    """Returns a position with so many empty squares that random play leads to, and that goes on."""
    generator = np.random.default_rng([seed, num_empties, variant.size])
    while True:
        position = Position(variant)
        while not position.is_over and position.num_empties > num_empties:
            position = position.play(int(generator.choice(position.legal_moves)))
        if not position.is_over:
            return position


KNOWN: dict[Variant, dict[tuple[str, str], int]] = {}  # scores of 4×4, which the rule book takes half a minute to find


def negamax(position: Position) -> int:
    variant = position.variant
    known = KNOWN.setdefault(variant, {}) if variant.size == 4 else None
    return oracle.negamax(
        list(position.board), position.side, variant.goal, variant.scoring, variant.start == "free", known
    )


def score_after(position: Position, moves: tuple[int, ...]) -> int:
    """Returns the score for the side to move in `position` of the game that ends with `moves`, all legal."""
    end = position
    for move in moves:
        end = end.play(move)
    assert end.is_over
    return end.score if end.is_black_to_move == position.is_black_to_move else -end.score


def check(position: Position, solution: Solution) -> None:
    """Compares a full solution with the rule book."""
    score = negamax(position)
    assert solution.is_exact
    assert solution.score == score, position.text
    assert score_after(position, solution.principal_line) == score, position.text
    if position.is_over:
        assert (solution.move, solution.principal_line) == (None, ())
    else:
        assert solution.move == solution.principal_line[0]


def check_window(position: Position, solution: Solution, window: tuple[int, int], score: int) -> None:
    """Asserts that bounds are true, and answer the question."""
    low, high = window
    assert solution.lower <= score <= solution.upper, (position.text, window)
    assert solution.upper <= low or solution.lower >= high or solution.is_exact, (position.text, window)
    if solution.move is not None:
        assert -negamax(position.play(solution.move)) >= solution.lower, (position.text, window)


def check_variant(variant: Variant, seeds: range, most_empties: int) -> None:
    solver = solver_of(variant)
    for seed in seeds:
        num_empties = 1 + seed % most_empties
        for position in (
            arbitrary_position(variant, num_empties, seed),
            played_position(variant, num_empties, seed),
        ):
            solution = solver.solve(position)
            check(position, solution)
            for window in ((-1, 1), (solution.score - 3, solution.score - 2), (solution.score + 1, solution.score + 9)):
                check_window(position, solver.solve(position, window), window, solution.score)


@each_variant
def test_solutions_agree_with_the_rule_book(variant: Variant) -> None:
    check_variant(variant, range(5), 5)


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("size", [4, 6])
def test_every_question_is_answered_truly_whatever_was_asked_before(size: int, goal: str) -> None:
    """Ten to twelve squares before the end, where bounds in the table serve other questions, and sides pass."""
    variant = Variant(size, goal=goal, scoring="tournament")
    solver = Solver(variant, 1 << 12)
    for seed in range(40):
        position = arbitrary_position(variant, 10 + seed % 3, seed)
        if position.is_over or not is_small(position):
            continue
        score = negamax(position)
        check(position, solver.solve(position))
        solver._begin(position, None, None)
        for alpha in np.random.default_rng(seed).permutation(np.arange(score - 9, score + 9)).tolist():
            found, is_complete = solver._ask(position, alpha)
            assert is_complete
            assert (found > alpha) == (score > alpha), (position.text, alpha)
            assert (found <= score) if found > alpha else (found >= score), (position.text, alpha)


def test_what_is_known_of_a_reply_bounds_the_score_truly() -> None:
    variant = Variant(4)
    solver = Solver(variant, 1 << 12)
    for seed in range(12):
        position = arbitrary_position(variant, 11, seed)
        if position.is_over or position.must_pass or not is_small(position):
            continue
        score = negamax(position)
        solver._begin(position, None, None)
        for move in position.legal_moves:
            after = position.play(move)
            if not after.is_over:
                solver._ask(after, 2 - score)  # of good moves the answer is an upper bound
        for alpha in (score - 7, score - 4, score - 3):
            found, is_complete = solver._ask(position, alpha)
            assert is_complete
            assert alpha < found <= score, (position.text, alpha)


def is_small(position: Position, most: int = 4000) -> bool:
    """Returns whether at most so many positions follow, orders of moves that meet in one counted once."""
    reached, waiting = {position}, [position]
    while waiting and len(reached) <= most:
        at = waiting.pop()
        new = {at.play(move) for move in at.legal_moves} - reached
        reached |= new
        waiting += new
    return len(reached) <= most


@pytest.mark.slow
@each_variant
def test_thousands_of_solutions_agree_with_the_rule_book(variant: Variant) -> None:
    check_variant(variant, range(100, 142), {4: 7, 6: 7, 8: 7, 10: 6}[variant.size])


@each_variant
def test_every_move_has_the_score_of_the_rule_book(variant: Variant) -> None:
    for seed in range(2):
        position = arbitrary_position(variant, 3 + seed, seed)
        check_moves(position, solver_of(variant).solve_moves(position))


def check_moves(position: Position, solutions: dict[int, Solution]) -> None:
    assert tuple(solutions) == position.legal_moves
    for move, solution in solutions.items():
        assert solution.score == -negamax(position.play(move)), (position.text, move)
        assert solution.move == move == solution.principal_line[0]
        assert score_after(position, solution.principal_line) == solution.score


@pytest.mark.slow
@each_variant
def test_every_move_of_many_positions_has_the_score_of_the_rule_book(variant: Variant) -> None:
    for seed in range(6):
        position = played_position(variant, 2 + seed % 5, seed)
        check_moves(position, solver_of(variant).solve_moves(position))


# Solved games


@pytest.mark.parametrize(("scoring", "score"), [("board", -8), ("tournament", -10)])
def test_4x4_is_lost_for_black(scoring: str, score: int) -> None:
    position = Position(Variant(size=4, scoring=scoring))
    solution = solver_of(position.variant).solve(position)
    assert solution.score == score
    assert score_after(position, solution.principal_line) == score


@pytest.mark.slow
@pytest.mark.parametrize("variant", [variant for variant in VARIANTS if variant.size == 4], ids=lambda v: v.name)
def test_4x4_is_solved_in_every_variant(variant: Variant) -> None:
    position = Position(variant)
    check(position, solver_of(variant).solve(position))
    check_moves(position, solver_of(variant).solve_moves(position))


def endgames(data: Data, numbers: range) -> list[tuple[Position, int, set[str]]]:
    """Returns published positions, their scores and all their best moves."""
    with data("ffo.tsv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if int(row["id"]) in numbers]
    assert len(rows) == len(numbers)
    return [
        (
            Position.from_text(f"{row['board64']} {row['side']}", TOURNAMENT),
            int(row["score"]),
            set(row["best_moves"].split()),
        )
        for row in rows
    ]


def check_published(position: Position, score: int, best_moves: set[str], num_threads: int = 1) -> None:
    solution = Solver(TOURNAMENT, num_threads=num_threads).solve(position)
    assert solution.score == score
    assert solution.move is not None
    assert position.move_name(solution.move) in best_moves
    assert score_after(position, solution.principal_line) == score


def test_published_endgames_1_to_19_are_solved(data: Data) -> None:
    for problem in endgames(data, range(1, 20)):
        check_published(*problem)


def test_published_endgames_have_all_their_best_moves(data: Data) -> None:
    for position, score, best_moves in endgames(data, range(1, 9)):
        solutions = solver_of(TOURNAMENT).solve_moves(position)
        assert max(solution.score for solution in solutions.values()) == score
        assert {position.move_name(move) for move, found in solutions.items() if found.score == score} == best_moves


@pytest.mark.slow
def test_published_endgames_20_to_39_are_solved(data: Data) -> None:
    for problem in endgames(data, range(20, 40)):
        check_published(*problem)


# What must not matter


def test_symmetries_leave_the_score_unchanged() -> None:
    position = played_position(TOURNAMENT, 12, seed=5)
    solver = solver_of(TOURNAMENT)
    scores = {solver.solve(transform_position(position, symmetry)).score for symmetry in range(NUM_SYMMETRIES)}
    assert len(scores) == 1


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_evaluation_changes_the_order_alone(kind: str) -> None:
    for seed, variant in enumerate((Variant(), Variant(6, goal="fewest"))):
        position = played_position(variant, 13, seed)
        solver = Solver(variant, 1 << 12, evaluation_of(kind, variant))
        assert solver.solve(position).score == solver_of(variant).solve(position).score


@each_variant
def test_a_guess_that_is_far_off_changes_no_score(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    positions = [played_position(variant, 12 if variant.size == 4 else 13, seed) for seed in range(4)]
    expected = [solver_of(variant).solve(position) for position in positions]
    monkeypatch.setattr("agents.search.solver._LEAST_GUESSED", 12)
    monkeypatch.setattr("agents.search.solver._HANDMADE_MARGIN", 1)  # 1/100 disc: nearly all searches are believed
    guessing = Solver(variant, 1 << 12, evaluation_of(HANDMADE, variant))
    guesses = []
    for position, proven in zip(positions, expected, strict=True):
        guessing._begin(position)
        guesses.append(guessing._guess(position, -variant.num_squares, variant.num_squares))
        found = guessing.solve(position)
        assert found.score == proven.score
        assert score_after(position, found.principal_line) == found.score
    if variant.size > 4:  # where only the start may be guessed
        assert guesses != [proven.score for proven in expected]


@pytest.mark.parametrize("size", [6, 8, 10])
def test_a_table_of_any_size_gives_the_score(size: int) -> None:
    variant = Variant(size)
    for seed in range(2):
        position = played_position(variant, 11 if size < 10 else 10, seed)
        expected = Solver(variant, 1 << 16).solve(position)
        for entries in (WAYS, table_entries_of(1, size)):
            found = Solver(variant, entries).solve(position)
            assert found.score == expected.score
            assert score_after(position, found.principal_line) == expected.score


def test_a_table_keeps_to_its_memory() -> None:
    assert table_entries_of(64, 8) == 2 * table_entries_of(32, 8) == 1 << 21
    assert table_entries_of(64, 10) == 1 << 20
    assert table_entries_of(47, 8) == 1 << 20
    assert table_entries_of(0, 8) == WAYS


@pytest.mark.parametrize("size", [6, 8])
def test_two_threads_give_the_score(size: int) -> None:
    variant = Variant(size, scoring="tournament")
    shared = Solver(variant, 1 << 14, num_threads=2)
    for seed in range(3):
        position = played_position(variant, 17, seed)
        found = shared.solve(position)
        assert found.score == solver_of(variant).solve(position).score
        assert score_after(position, found.principal_line) == found.score


@pytest.mark.slow
def test_two_threads_give_the_score_of_published_endgames(data: Data) -> None:
    for problem in endgames(data, range(1, 30)):
        check_published(*problem, num_threads=2)


def test_one_thread_looks_at_the_same_positions_at_every_call() -> None:
    positions = [played_position(Variant(6), 17, seed) for seed in range(3)]
    used, fresh = Solver(Variant(6), 1 << 10), Solver(Variant(6), 1 << 10)
    told = [_told(used.solve(position)) for position in [*positions, *positions]]
    assert told[:3] == told[3:]
    assert told[2] == _told(fresh.solve(positions[2]))
    used.solve(positions[0], node_limit=1000)
    assert _told(used.solve(positions[1])) == told[1]


def _told(solution: Solution) -> tuple[object, ...]:
    return solution.score, solution.move, solution.principal_line, solution.num_nodes


def test_generations_run_out_without_a_trace() -> None:
    variant = Variant(6)
    solver = Solver(variant, WAYS)
    position = played_position(variant, 10, seed=1)
    first = _told(solver.solve(position))
    for seed in range(MOST_GENERATIONS + 3):
        solver.solve(played_position(variant, 4, seed))
    assert _told(solver.solve(position)) == first


# Limits


def check_bounds(position: Position, solution: Solution, score: int) -> None:
    assert solution.lower <= score <= solution.upper
    assert solution.move in position.legal_moves
    if not solution.is_exact:
        assert solution.principal_line == ()
        with pytest.raises(ValueError, match=f"from {solution.lower} to {solution.upper}"):
            _ = solution.score


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("size", [6, 8])
def test_a_node_limit_leaves_true_bounds(size: int, num_threads: int) -> None:
    variant = Variant(size)
    solver = Solver(variant, 1 << 14, num_threads=num_threads)
    position = played_position(variant, {6: 17, 8: 15}[size], seed=3)
    complete = solver.solve(position)
    widths = []
    for limit in [0, 1, 100, 1000, *range(2000, complete.num_nodes, complete.num_nodes // 12), 1 << 40]:
        solution = solver.solve(position, node_limit=limit)
        check_bounds(position, solution, complete.score)
        assert solution.num_nodes <= limit + num_threads * 20_000  # nine empty squares are played out
        widths.append(solution.upper - solution.lower)
    assert widths[0] == 2 * variant.num_squares
    assert widths[-1] == 0
    if num_threads == 1:
        assert len(set(widths)) > 2  # some knew a bound
        assert widths == sorted(widths, reverse=True)


def test_every_bound_that_is_reported_is_true_and_a_stop_at_it_keeps_it() -> None:
    solver = Solver(TOURNAMENT, 1 << 12, evaluation_of("discs", TOURNAMENT))  # from whose guess the score is far
    position = played_position(TOURNAMENT, 15, seed=1)
    reports: list[Solution] = []
    complete = solver.solve(position, report=reports.append)
    assert len(reports) > 2
    for number, known in enumerate(reports):
        check_bounds(position, known, complete.score)
        calls = itertools.count()

        def stop(_: Solution, calls: "itertools.count[int]" = calls, number: int = number) -> None:
            if next(calls) == number:
                solver.stop()

        stopped = solver.solve(position, report=stop)
        assert (stopped.lower, stopped.upper, stopped.move) == (known.lower, known.upper, known.move)
    assert _told(solver.solve(position)) == _told(complete)  # a stop is for one search


@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_stop_from_another_thread_leaves_true_bounds(num_threads: int) -> None:
    solver = Solver(TOURNAMENT, 1 << 14, num_threads=num_threads)
    position = played_position(TOURNAMENT, 18, seed=4)
    score = solver.solve(position).score
    for delay_s in (0.0, 0.001, 0.003, 0.01, 0.03, 0.1):
        timer = threading.Timer(delay_s, solver.stop)
        timer.start()
        check_bounds(position, solver.solve(position), score)
        timer.join()
    for limit_s in (0.0, 0.0005, 0.002, 0.008, 0.03):
        check_bounds(position, solver.solve(position, time_limit_s=limit_s), score)
    assert solver.solve(position).score == score


@pytest.mark.parametrize("num_empties", [5, 10])
def test_moves_and_lines_are_proven_wherever_the_search_ends(num_empties: int) -> None:
    variant = Variant(4, goal="fewest")
    solver = solver_of(variant)
    for seed in range(6):
        position = played_position(variant, num_empties, seed)
        scores = {move: -negamax(position.play(move)) for move in position.legal_moves}
        most = list(solver.solve_moves(position).values())[-1].num_nodes
        for limit in range(0, most, most // 25 + 1):
            solution = solver.solve(position, node_limit=limit)
            assert solution.move is not None
            assert scores[solution.move] >= solution.lower, (position.text, limit)
            for best_only in (False, True):
                for move, found in solver.solve_moves(position, node_limit=limit, best_only=best_only).items():
                    assert found.lower <= scores[move] <= found.upper
                    if found.principal_line:
                        assert score_after(position, found.principal_line) == scores[move], (position.text, limit)


def test_time_ends_a_search_before_its_first_bound() -> None:
    solver = solver_of(Variant())
    solver.solve(Position(), node_limit=1)  # compiles
    began = time.monotonic()
    solution = solver.solve(Position(), time_limit_s=0.3)
    assert time.monotonic() - began < 3  # looking ahead for a first guess alone takes ages there
    assert (solution.lower, solution.upper) == (-64, 64)


def test_limits_beyond_what_a_machine_counts_are_none() -> None:
    position = played_position(TOURNAMENT, 15, seed=1)
    expected = _told(solver_of(TOURNAMENT).solve(position))
    assert _told(solver_of(TOURNAMENT).solve(position, time_limit_s=1e300, node_limit=10**30)) == expected


def test_limits_leave_true_bounds_of_every_move() -> None:
    solver = solver_of(Variant(6))
    position = played_position(Variant(6), 13, seed=2)
    complete = solver.solve_moves(position)
    for limit in (0, 1000, 20_000, 60_000):
        found = solver.solve_moves(position, node_limit=limit)
        assert found.keys() == complete.keys()
        for move, solution in found.items():
            assert solution.lower <= complete[move].score <= solution.upper
            assert solution.move == move


def test_time_and_nodes_may_be_nothing() -> None:
    position = played_position(TOURNAMENT, 20, seed=1)
    for limits in ({"time_limit_s": 0.0}, {"node_limit": 0}):
        solution = solver_of(TOURNAMENT).solve(position, **limits)  # type: ignore[arg-type]
        assert (solution.lower, solution.upper) == (-64, 64)
        assert solution.move in position.legal_moves


# Edges


@pytest.mark.parametrize("text", ["XXXXXXXXXXXXXXXXO", "XXXX------------O", "XXXXXXXXXXXXXXX-O", "-" * 16 + "X"])
def test_a_finished_game_has_its_score(text: str) -> None:
    variant = Variant(size=4, scoring="tournament")
    position = Position.from_text(text, variant)
    assert position.is_over
    solver = solver_of(variant)
    check(position, solver.solve(position, time_limit_s=0))
    assert solver.solve_moves(position) == {}


def test_a_forced_pass_is_solved() -> None:
    position = Position.from_text("XXO-" + "----" * 3 + "O", Variant(size=4))  # only black can go on, with d1
    solution = solver_of(position.variant).solve(position)
    assert (solution.score, solution.principal_line) == (-4, (16, 3))
    assert list(solver_of(position.variant).solve_moves(position)) == [16]


def test_what_cannot_be_solved_is_told() -> None:
    with pytest.raises(ValueError, match=r"solver is for .* and the position is of"):
        solver_of(TOURNAMENT).solve(Position())
    with pytest.raises(ValueError, match="a window's low is less than its high, got 3 and 3"):
        solver_of(TOURNAMENT).solve(played_position(TOURNAMENT, 5, 0), (3, 3))
    with pytest.raises(ValueError, match="num_threads must be at least 1, got 0"):
        Solver(TOURNAMENT, num_threads=0)
