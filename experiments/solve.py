"""Solves positions: how the game ends when both sides play perfectly.

    reversi solve --variant othello-4x4                       the start of a variant
    reversi solve "----XXX--XX--OX- O" --moves all            a board and the side to move, the score of every move
    reversi solve b3b4e5b2a4f6e4d5b1a1 --variant othello-6x6  the moves of a game so far
    reversi solve problems.obf --time-limit-s 60 --threads 2  endgame problems, compared with what the file says
    reversi solve ffo.tsv --wld --json                        win, draw or loss only

Scores are in discs for the side to move; those of files give the empties to the winner (tournament scoring). The best
move is one of the best, all of them with `--moves best`. Where time, nodes or Ctrl-C end a search, it says what is
proven: bounds of the score, and the best move known, marked "?". Exit code 1 when a file says otherwise, 130 after
Ctrl-C. A TSV names its columns in the first line: board64 and side, and perhaps id, score and best_moves.
"""

import contextlib
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agents.evaluation import best_evaluation, evaluation_of
from agents.search.solver import Solution, Solver, table_entries_of
from experiments.arguments import UsageError, parse, setting
from experiments.cli import INTERRUPTED
from experiments.positions import read_position, start_position
from experiments.problems import SUFFIXES, Problem, read_problems
from experiments.stopping import stopped_by_signals
from experiments.tables import signed
from reversi_env import Position, Variant
from reversi_env.naming import one_of
from reversi_env.variant import SCORINGS

ONE, BEST, ALL = MOVES = ("one", "best", "all")
WIN_DRAW_LOSS = (-1, 1)

_MOST_THREADS = 256  # more than there are cores; each has memory of its own
_LONG_S = 1.0  # a search that takes longer tells how far it is
_TOLD_EVERY_S = 10.0
_WINDOW = re.compile(r"\s*([+-]?\d{1,3})\s*,\s*([+-]?\d{1,3})\s*")
_RULE = "a window is two scores LOW,HIGH, the lower first, as in --window=-1,1"


@dataclass
class SolveSettings:
    """What is asked of each position, and what may be spent on it."""

    variant: str | None = setting(None, "of positions and moves, else Othello of the board's size")
    scoring: str | None = setting(None, "of positions and moves, board or tournament, else the variant's")
    moves: str = setting(ONE, "one best move, best (all best moves), or all (the score of every move)")
    wld: bool = setting(False, "win, draw or loss only, which is faster")
    window: str | None = setting(None, "LOW,HIGH: at most LOW, at least HIGH, or which score between")
    time_limit_s: float | None = setting(None, "seconds for each position")
    nodes: int | None = setting(None, "positions that may be looked at for each")
    threads: int = setting(1, "threads that share the work")
    hash_mb: float = setting(64.0, "megabytes for the table of positions already searched")
    evaluation: str | None = setting(None, "orders moves: discs, positional, mobility, ntuple, or a folder")
    json: bool = setting(False, "print figures as JSON")

    def __post_init__(self) -> None:
        one_of("choice of moves", self.moves, MOVES)
        if self.scoring is not None:
            one_of("scoring", self.scoring, SCORINGS)
        for name in ("time_limit_s", "nodes"):
            limit = getattr(self, name)
            if limit is not None and not limit >= 0:
                raise ValueError(f"{name} is 0 or more, got {limit}")
        if not 1 <= self.threads <= _MOST_THREADS:
            raise ValueError(f"threads is 1 to {_MOST_THREADS}, got {self.threads}")
        if not 0 < self.hash_mb < float("inf"):
            raise ValueError(f"hash_mb is more than 0, got {self.hash_mb}")
        if self.score_window is not None and self.moves != ONE:
            raise ValueError(f"moves={self.moves} asks for scores; wld and window go with moves={ONE}")

    @property
    def score_window(self) -> tuple[int, int] | None:
        """The window of `wld` or `window`; raises ValueError for one that is none."""
        if self.window is None:
            return WIN_DRAW_LOSS if self.wld else None
        if self.wld:
            raise ValueError(f"wld is the window {WIN_DRAW_LOSS[0]},{WIN_DRAW_LOSS[1]}; give one of them")
        bounds = _WINDOW.fullmatch(self.window)
        if bounds is None or int(bounds[1]) >= int(bounds[2]):
            raise ValueError(f"{_RULE}; found {self.window!r}")
        return int(bounds[1]), int(bounds[2])


@dataclass(frozen=True)
class Answer:
    """What is proven of a problem."""

    problem: Problem
    solution: Solution
    asked: str = ONE  # one of MOVES
    window: tuple[int, int] | None = None
    moves: Mapping[int, Solution] = field(default_factory=dict)  # of each move; empty where one best move was asked for
    cpu_s: float = 0.0

    @property
    def is_proven(self) -> bool:
        """Whether what was asked for is known."""
        solution = self.solution
        if self.window is not None and (solution.upper <= self.window[0] or solution.lower >= self.window[1]):
            return True
        return solution.is_exact and all(
            of_move.is_exact or (self.asked == BEST and of_move.upper < solution.score)
            for of_move in self.moves.values()
        )

    @property
    def best_moves(self) -> tuple[int, ...]:
        """The best moves known; of more than one, and of any where the score is known, that is proven."""
        solution = self.solution
        if self.moves and solution.is_exact:
            return tuple(move for move, of_move in self.moves.items() if of_move.lower == solution.score)
        return () if solution.move is None else (solution.move,)

    @property
    def agrees(self) -> bool | None:
        """Whether all that is proven is as the file says; None where the file says nothing, or too little is proven."""
        problem, solution = self.problem, self.solution
        if problem.score is not None and not solution.lower <= problem.score <= solution.upper:
            return False
        if solution.is_exact and not problem.worse_moves.isdisjoint(self.best_moves):
            return False
        for move, of_move in self.moves.items():
            if move in problem.move_scores and not of_move.lower <= problem.move_scores[move] <= of_move.upper:
                return False
            if move in problem.best_moves and of_move.upper < solution.lower:
                return False
        is_compared = problem.score is not None or solution.is_exact
        return True if problem.is_told and is_compared and self.is_proven else None


def answer(
    solver: Solver,
    problem: Problem,
    moves: str = ONE,
    window: tuple[int, int] | None = None,
    time_limit_s: float | None = None,
    node_limit: int | None = None,
    show_progress: bool = False,
    is_unwanted: Callable[[], bool] | None = None,
) -> Answer:
    """Returns what the limits, `solver.stop` and `is_unwanted` leave time to prove; `moves` is one of MOVES."""
    position = problem.position

    def tell(about: str, solution: Solution) -> None:
        if show_progress and solution.elapsed_s > _LONG_S:
            print(f"{about}: {_progress(position, solution)}", file=sys.stderr, flush=True)

    if moves == ONE or position.is_over:
        solution = solver.solve(
            position, window, time_limit_s, node_limit, lambda solution: tell(problem.name, solution), is_unwanted
        )
        return Answer(problem, solution, moves, window)
    of_moves = solver.solve_moves(
        position,
        time_limit_s=time_limit_s,
        node_limit=node_limit,
        report=lambda move, solution: tell(f"{problem.name} {position.move_name(move)}", solution),
        is_unwanted=is_unwanted,
        best_only=moves == BEST,
    )
    return Answer(problem, _of_all(of_moves), moves, None, of_moves)


def _of_all(moves: Mapping[int, Solution]) -> Solution:
    """Returns what the solutions of all moves say of the position."""
    likely = max(moves.values(), key=lambda solution: (solution.lower, solution.upper, len(solution.principal_line)))
    upper = max(solution.upper for solution in moves.values())
    return replace(
        likely,
        upper=upper,
        principal_line=likely.principal_line if likely.lower == upper else (),
        num_nodes=max(solution.num_nodes for solution in moves.values()),  # they count on from move to move
        elapsed_s=max(solution.elapsed_s for solution in moves.values()),
    )


# Words


def _problems(words: Sequence[str], settings: SolveSettings) -> list[Problem]:
    """Returns the problems of all words, so that what is wrong in one is said before the first is solved."""
    variant = None if settings.variant is None else Variant.named(settings.variant)
    if not words:
        if variant is None:
            raise UsageError("solve what? reversi solve POSITION|FILE ..., or --variant NAME for its start")
        return [Problem("start", start_position(variant, settings.scoring))]
    problems: list[Problem] = []
    for number, word in enumerate(words, start=1):
        if Path(word).suffix.lower() in SUFFIXES or os.path.isfile(word):
            if variant is not None or settings.scoring is not None:
                raise UsageError(f"variant and scoring are for positions and moves; {word} is of tournament scoring")
            problems.extend(read_problems(word))
        else:
            problems.append(Problem(str(number), read_position(word, variant, settings.scoring)))
    return problems


# Solving


class _Session:
    """Solvers for the problems as they come, and the first Ctrl-C or SIGTERM, which ends the search under way."""

    def __init__(self, settings: SolveSettings) -> None:
        self.settings = settings
        self.is_interrupted = False
        self._solver: Solver | None = None

    def answers(self, problems: Sequence[Problem]) -> Iterator[Answer]:
        """Yields the answer to each problem, until interrupted."""
        for problem in problems:
            solver = self._solver_for(problem.position.variant)
            began = time.process_time()
            with self._stopping(solver), _telling(solver, problem.name):
                found = answer(
                    solver,
                    problem,
                    self.settings.moves,
                    self.settings.score_window,
                    self.settings.time_limit_s,
                    self.settings.nodes,
                    show_progress=True,
                    is_unwanted=lambda: self.is_interrupted,
                )
            yield replace(found, cpu_s=time.process_time() - began)
            if self.is_interrupted:
                return

    def _solver_for(self, variant: Variant) -> Solver:
        if self._solver is None or self._solver.variant != variant:
            settings = self.settings
            name = settings.evaluation or best_evaluation(variant)
            evaluation = evaluation_of(name, variant)  # whose faults are not those of the memory
            try:
                entries = table_entries_of(settings.hash_mb, variant.size)
                self._solver = Solver(variant, entries, evaluation, settings.threads)
            except (MemoryError, OverflowError, ValueError):
                raise UsageError(f"hash_mb: there is no memory for {settings.hash_mb:g} MB") from None
            self._solver.compile()
        return self._solver

    def _stopping(self, solver: Solver) -> contextlib.AbstractContextManager[None]:
        def stop() -> None:
            self.is_interrupted = True
            solver.stop()

        return stopped_by_signals(stop)


@contextlib.contextmanager
def _telling(solver: Solver, about: str) -> Iterator[None]:
    """Tells from time to time on stderr how far a long search is, of which nothing else is heard for minutes."""
    began, is_done = time.monotonic(), threading.Event()

    def tell() -> None:
        while not is_done.wait(_TOLD_EVERY_S):
            spent = f"{solver.num_nodes:,} nodes in {time.monotonic() - began:.0f} s"
            print(f"{about}: {spent} so far", file=sys.stderr, flush=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        is_done.set()
        teller.join()


def main(arguments: list[str]) -> int:
    """Runs `reversi solve`."""
    words, settings = parse("solve", "POSITION|FILE ...", SolveSettings, __doc__ or "", arguments)
    problems = _problems(words, settings)
    session = _Session(settings)
    table = None if settings.json else _Table(problems)
    answers: list[Answer] = []
    for found in session.answers(problems):
        answers.append(found)
        if table is not None:
            table.print_row(found)
    total = _total(answers, len(problems), session.is_interrupted)
    if table is None:
        print(json.dumps({"positions": [_figures(found) for found in answers], "total": total}, indent=1))
    else:
        _print_total(total)
    return INTERRUPTED if session.is_interrupted else int(total["disagreeing"] > 0)


# Showing


class _Table:
    """Rows on stdout, each printed when its position is solved."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self._name_width = max((len(problem.name) for problem in problems), default=0)
        self._is_comparing = any(problem.is_told for problem in problems)
        self._has_header = False

    def print_row(self, found: Answer) -> None:
        problem, solution = found.problem, found.solution
        if not self._has_header:
            self._print("", "empties", "score", "move", "nodes", "s", "nodes/s", "the file", "line")
            self._has_header = True
        self._print(
            problem.name,
            str(problem.position.num_empties),
            _score_text(solution, problem.position),
            _moves_text(found),
            f"{solution.num_nodes:,}",
            f"{solution.elapsed_s:.3f}",
            f"{_rate(solution):,.0f}",
            _verdict_text(found),
            _names(problem.position, solution.principal_line),
        )
        if found.asked == ALL:
            for move, of_move in sorted(found.moves.items(), key=lambda entry: -entry[1].lower):
                name, line = problem.position.move_name(move), _names(problem.position, of_move.principal_line)
                self._print("", "", _score_text(of_move, problem.position), name, "", "", "", "", line)

    def _print(
        self, name: str, empties: str, score: str, moves: str, nodes: str, time_s: str, rate: str, told: str, line: str
    ) -> None:
        cells = [f"{name:<{self._name_width}}", f"{empties:>7} {score:>11}", f"{moves:<11}"]
        cells += [f"{nodes:>14} {time_s:>9} {rate:>13}", *([f"{told:<8}"] if self._is_comparing else []), line]
        print("  ".join(cells).rstrip(), flush=True)


def _score_text(solution: Solution, position: Position) -> str:
    """Returns the score or its bounds."""
    if solution.is_exact:
        return signed(solution.lower)
    most = position.variant.num_squares
    match solution.lower > -most, solution.upper < most:
        case True, True:
            return f"{signed(solution.lower)} to {signed(solution.upper)}"
        case True, False:
            return f"≥ {signed(solution.lower)}"
        case False, True:
            return f"≤ {signed(solution.upper)}"
    return "?"


def _moves_text(found: Answer) -> str:
    if not found.best_moves:
        return "-"
    return _names(found.problem.position, found.best_moves) + ("" if found.is_proven else "?")


def _verdict_text(found: Answer) -> str:
    if found.agrees is None:
        return ""
    return "agrees" if found.agrees else f"says {_expected_text(found.problem)}"


def _expected_text(problem: Problem) -> str:
    score = [] if problem.score is None else [signed(problem.score)]
    return " ".join([*score, *map(problem.position.move_name, sorted(problem.best_moves))])


def _progress(position: Position, solution: Solution) -> str:
    move = "" if solution.move is None else f" with {position.move_name(solution.move)}"
    spent = f"{solution.num_nodes:,} nodes in {solution.elapsed_s:.1f} s"
    return f"{_score_text(solution, position)}{move}, {spent}"


def _names(position: Position, moves: Sequence[int]) -> str:
    return " ".join(map(position.move_name, moves))


def _rate(solution: Solution) -> float:
    return solution.num_nodes / solution.elapsed_s if solution.elapsed_s else 0.0


def _figures(found: Answer) -> dict[str, Any]:
    """Returns what `--json` prints of a position; the score is null where it is not known."""
    problem, solution = found.problem, found.solution
    position = problem.position
    return {
        "name": problem.name,
        "position": position.text,
        "variant": position.variant.name,
        "empties": position.num_empties,
        **_proven(position, solution),
        "is_proven": found.is_proven,
        "best_moves": [position.move_name(move) for move in found.best_moves],
        "moves": {position.move_name(move): _proven(position, of_move) for move, of_move in found.moves.items()},
        "nodes": solution.num_nodes,
        "elapsed_s": solution.elapsed_s,
        "cpu_s": found.cpu_s,
        "nodes_per_s": _rate(solution),
        "expected_score": problem.score,
        "expected_moves": [position.move_name(move) for move in sorted(problem.best_moves)],
        "agrees": found.agrees,
    }


def _proven(position: Position, solution: Solution) -> dict[str, Any]:
    return {
        "score": solution.lower if solution.is_exact else None,
        "lower": solution.lower,
        "upper": solution.upper,
        "principal_line": [position.move_name(move) for move in solution.principal_line],
    }


def _total(answers: Sequence[Answer], num_problems: int, is_interrupted: bool) -> dict[str, Any]:
    return {
        "positions": num_problems,
        "proven": sum(found.is_proven for found in answers),
        "agreeing": sum(found.agrees is True for found in answers),
        "disagreeing": sum(found.agrees is False for found in answers),
        "nodes": sum(found.solution.num_nodes for found in answers),
        "elapsed_s": sum(found.solution.elapsed_s for found in answers),
        "cpu_s": sum(found.cpu_s for found in answers),
        "is_interrupted": is_interrupted,
    }


def _print_total(total: Mapping[str, Any]) -> None:
    """Prints what holds of all positions, as far as one row does not say it."""
    if total["positions"] > 1:
        print(
            f"{total['positions']} positions, {total['nodes']:,} nodes in {total['elapsed_s']:.3f} s "
            f"({total['cpu_s']:.3f} CPU s)"
        )
    if compared := total["agreeing"] + total["disagreeing"]:
        print(f"{total['agreeing']} of {compared} agree with the file")
    if unproven := total["positions"] - total["proven"]:
        why = "interrupted" if total["is_interrupted"] else "the limits were reached"
        print(f"{why}: {unproven} of {total['positions']} not proven; scores are bounds, moves marked ? the best known")
