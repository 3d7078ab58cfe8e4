"""Solving positions: how a game ends when both sides play perfectly.

The score is found by questions whether it exceeds a number (see endgame.py), each of which moves a bound of it: Plaat,
Schaeffer, Pijls and de Bruin, "Best-first fixed-depth minimax algorithms", Artificial Intelligence 87 (1996), MTD(f).
So a solution can be stopped at any moment, and then holds bounds that are proven. The fewest questions are needed from
the score itself on, so with many empty squares it is guessed first, by the same questions to a search that takes the
likely for proven; nothing of that gets into a proof.
"""

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from agents.evaluation import DISC, NTUPLE, Evaluation, best_evaluation, evaluate, evaluation_of
from agents.search.endgame import make_marks, next_alpha, solve
from agents.search.memory import END_MARGIN, GENERATION, MOST_NODES, NODES, STOPPED, UNLIMITED, is_stopped, make_memory
from agents.search.midgame import in_discs, search_depth
from agents.search.ordering import NO_MOVE
from agents.search.transposition import MOST_GENERATIONS, WAYS, entry_words, find, make_table, move_of
from reversi_env import Position, Variant
from reversi_env.bitboard import square_of
from reversi_env.geometry import num_words

DEFAULT_TABLE_ENTRIES = 1 << 20  # 32 MB, on 10×10 64
QUICK = 13  # with so many empty squares or fewer a question takes a few milliseconds, and a thread does not pay

T = TypeVar("T")

_DEPTH_LESS = 4
_LEAST_GUESSED = 16  # empty squares; with fewer a proof takes no longer than a good guess
# What a guess believes is beyond the bound by so much: tried on 8×8 with `ntuple-8x8`, whose error is half of it, and
# twice as much for evaluations that err more. A guess that is wrong costs time alone.
_LEARNED_MARGIN, _HANDMADE_MARGIN = 8 * DISC, 16 * DISC
_QUICK_DEPTH = 4  # so many plies ahead a search takes a few milliseconds
_BYTES_PER_MB = 1 << 20


@dataclass(frozen=True)
class Solution:
    """What is proven of a position, for the side to move; scores count discs under the variant's scoring and goal."""

    lower: int  # the score is at least this
    upper: int  # and at most this
    move: int | None  # gets `lower` at least, so it is best where `is_exact`; None where the game is over
    principal_line: tuple[int, ...] = ()  # perfect moves to the end, passes included; empty where it was not found
    num_nodes: int = 0  # positions looked at
    elapsed_s: float = 0.0

    @property
    def is_exact(self) -> bool:
        """Whether the score is known."""
        return self.lower == self.upper

    @property
    def score(self) -> int:
        """The score; raises ValueError where only bounds of it are known."""
        if not self.is_exact:
            raise ValueError(f"the score is from {self.lower} to {self.upper}; the search ended before it was known")
        return self.lower


def table_entries_of(megabytes: float, size: int) -> int:
    """Returns how many positions a table of at most so much memory holds, a power of two; at least two."""
    entries = int(megabytes * _BYTES_PER_MB) // (8 * entry_words(num_words(size)))
    return int(1 << max(entries, WAYS).bit_length() - 1)


class Solver:
    """Solves positions of one variant, one at a time. What it finds does not depend on what it solved before.

    With one thread it looks at the same positions at every call; with more only the score is sure to be the same.
    """

    def __init__(
        self,
        variant: Variant,
        table_entries: int = DEFAULT_TABLE_ENTRIES,
        evaluation: Evaluation | None = None,
        num_threads: int = 1,
    ) -> None:
        """Takes the evaluation that puts moves in order, else the best that comes along for the variant.

        Any serves, and a good one saves most of the time.
        """
        if num_threads < 1:
            raise ValueError(f"num_threads must be at least 1, got {num_threads}")
        self.variant = variant
        self._evaluation = evaluation or evaluation_of(best_evaluation(variant), variant)
        self._table = make_table(table_entries, num_words(variant.size))
        self._marks = make_marks(num_threads)
        self._memories = [make_memory() for _ in range(num_threads)]
        self._generation = 0
        self._is_stopped = False

    def solve(
        self,
        position: Position,
        window: tuple[int, int] | None = None,
        time_limit_s: float | None = None,
        node_limit: int | None = None,
        report: Callable[[Solution], None] | None = None,
        is_unwanted: Callable[[], bool] | None = None,
    ) -> Solution:
        """Returns the score of a position and a best move, or what is known when time, nodes or `stop` end the search.

        A `window` (low, high) asks only whether the score is at most low, at least high, or which one between: (-1, 1)
        for win, draw or loss. `report` hears of every bound. `is_unwanted` is asked before each question and ends the
        search, also where `stop` came before its begin. Raises ValueError for a position of another variant.
        """
        low, high = window or self._widest
        if low >= high:
            raise ValueError(f"a window's low is less than its high, got {low} and {high}")
        self._begin(position, time_limit_s, node_limit, is_unwanted)
        return self._solve(position, low, high, report)

    def solve_moves(
        self,
        position: Position,
        time_limit_s: float | None = None,
        node_limit: int | None = None,
        report: Callable[[int, Solution], None] | None = None,
        is_unwanted: Callable[[], bool] | None = None,
        best_only: bool = False,
    ) -> dict[int, Solution]:
        """Returns what is proven of every legal move, for the side to move: {move: solution}, moves in rising order.

        The line of a solution begins with its move. With `best_only` each move is asked only whether it is one of the
        best: those have the score, and of the others the upper bound is less. Empty where the game is over.
        """
        self._begin(position, time_limit_s, node_limit, is_unwanted)
        best = self._solve(position, *self._widest) if best_only and not position.is_over else None
        solutions: dict[int, Solution] = {}
        for move in position.legal_moves:
            solutions[move] = self._solve_move(position, move, best)
            if report is not None:
                report(move, solutions[move])
        return solutions

    def compile(self) -> None:
        """Compiles or loads all that a search needs, so that no time limit pays for it."""
        start = Position(self.variant)
        self.solve(start, node_limit=1)
        self._remembered(start, 0)
        last_square = "XO-" + "X" * (self.variant.num_squares - 3) + " X"
        self.solve(Position.from_text(last_square, self.variant))  # to the end of a line

    def stop(self) -> None:
        """Ends the search under way, from another thread or a signal handler."""
        self._is_stopped = True
        for memory in self._memories:
            memory[MOST_NODES] = STOPPED

    @property
    def num_nodes(self) -> int:
        """The positions looked at by the search under way, or by the last one."""
        return int(sum(memory[NODES] for memory in self._memories))

    @property
    def _widest(self) -> tuple[int, int]:
        return -self.variant.num_squares, self.variant.num_squares

    def _begin(
        self,
        position: Position,
        time_limit_s: float | None = None,
        node_limit: int | None = None,
        is_unwanted: Callable[[], bool] | None = None,
    ) -> None:
        if position.variant != self.variant:
            raise ValueError(f"this solver is for {self.variant}, and the position is of {position.variant}")
        self._began = time.monotonic()
        self._deadline = math.inf if time_limit_s is None else self._began + time_limit_s
        self._most_nodes = UNLIMITED if node_limit is None else min(node_limit, UNLIMITED)
        self._is_unwanted = is_unwanted
        self._is_stopped = False
        self._generation += 1
        if self._generation > MOST_GENERATIONS:
            self._generation = 1
            self._table[:] = 0
        for memory in self._memories:
            memory[NODES] = 0
            memory[END_MARGIN] = 0
            memory[GENERATION] = self._generation

    def _solve_move(self, position: Position, move: int, best: Solution | None) -> Solution:
        """Returns what is proven of a move, or only whether it is as good as `best`."""
        if best is not None and move == best.move:
            return best
        low, high = self._widest if best is None else (-best.upper, 1 - best.lower)
        after = self._solve(position.play(move), low, high)
        lower, upper = -after.upper, -after.lower
        if best is not None:
            upper = min(upper, best.upper)
        line: tuple[int, ...] = ()
        if after.principal_line or after.move is None:  # the game goes on to its end, or is over
            line = (move, *after.principal_line)
        elif lower == upper:
            line = self._line(position, lower, move)
        return replace(after, lower=lower, upper=upper, move=move, principal_line=line)

    def _solve(
        self, position: Position, low: int, high: int, report: Callable[[Solution], None] | None = None
    ) -> Solution:
        if position.is_over:
            return self._solution(position.score, position.score, None)
        lower, upper = self._widest
        move = position.legal_moves[0]
        guess = self._guess(position, low, high)
        while max(lower, low) < min(upper, high):
            alpha = next_alpha(guess, max(lower, low), min(upper, high))
            guess, is_answer = self._ask(position, alpha)
            if not is_answer:
                break
            if guess > alpha:
                found = self._move_for(position, guess, self._remembered(position, move))
                if found is None:  # without a move to it a bound is not told
                    break
                lower, move = guess, found
            else:
                upper = guess
            if report is not None:
                report(self._solution(lower, upper, move))
        line = self._line(position, lower, move) if lower == upper else ()
        return self._solution(lower, upper, move, line)

    def _solution(self, lower: int, upper: int, move: int | None, line: tuple[int, ...] = ()) -> Solution:
        return Solution(lower, upper, move, line, self.num_nodes, time.monotonic() - self._began)

    def _guess(self, position: Position, low: int, high: int) -> int:
        """Returns about what the score may be, as far as the window asks; good moves stay in the table."""
        value = evaluate(position.player, position.opponent, self._evaluation, self.variant.rules)
        depth = position.num_empties // 2 - _DEPTH_LESS
        for step in range(2 - depth % 2, depth + 1, 2):
            if self._is_over_limit:
                break
            (value,) = self._each(self._memories[:1], self._look_ahead, position, step, is_quick=step <= _QUICK_DEPTH)
        guess = round(in_discs(value))
        if position.num_empties < _LEAST_GUESSED:
            return guess
        is_learned = self._evaluation.kind == NTUPLE
        for memory in self._memories:
            memory[END_MARGIN] = _LEARNED_MARGIN if is_learned else _HANDMADE_MARGIN
        least, most = self._widest
        lower, upper = max(least, low), min(most, high)
        while lower < upper:
            alpha = next_alpha(guess, lower, upper)
            found, is_answer = self._ask(position, alpha)
            if not is_answer:
                break
            guess = found
            if guess > alpha:
                lower = guess
            else:
                upper = guess
        for memory in self._memories:
            memory[END_MARGIN] = 0
        return guess

    def _look_ahead(self, memory: np.ndarray, position: Position, depth: int) -> int:
        """Returns the evaluation `depth` plies ahead, and anything where the search was stopped."""
        return search_depth(
            position.player, position.opponent, depth, memory, self._table, self._evaluation, self.variant.rules
        )

    @property
    def _is_over_limit(self) -> bool:
        if self._is_unwanted is not None and self._is_unwanted():
            self._is_stopped = True
        return self._is_stopped or time.monotonic() > self._deadline

    def _ask(self, position: Position, alpha: int) -> tuple[int, bool]:
        """Returns a score that answers whether `position`'s exceeds `alpha`, and whether the search came to an end."""
        if self._is_over_limit:
            return alpha, False
        is_quick = position.num_empties <= QUICK
        memories = self._memories[:1] if is_quick else self._memories
        answers = self._each(memories, self._answer, position, alpha, is_quick=is_quick)
        return next((answer for answer in answers if answer[1]), (alpha, False))

    def _each(
        self, memories: Sequence[np.ndarray], work: Callable[..., T], position: Position, number: int, is_quick: bool
    ) -> list[T]:
        """Returns what `work(memory, position, number)` gives for each memory, in a thread each.

        The first to end stops the others, and the deadline all. Quick work is done in this thread, which costs less; no
        other would let this one hear a signal.
        """
        left = -(-(self._most_nodes - self.num_nodes) // len(memories))
        for memory in memories:
            memory[MOST_NODES] = memory[NODES] + left
        if self._is_stopped:  # meanwhile
            self.stop()
        if is_quick:
            return [work(memory, position, number) for memory in memories]
        with ThreadPoolExecutor(len(memories)) as threads:
            found = [threads.submit(work, memory, position, number) for memory in memories]
            try:
                left_s = self._deadline - time.monotonic()
                wait(found, None if left_s > threading.TIMEOUT_MAX else left_s, FIRST_COMPLETED)
            finally:
                for memory in memories:
                    memory[MOST_NODES] = STOPPED
        return [of_memory.result() for of_memory in found]

    def _answer(self, memory: np.ndarray, position: Position, alpha: int) -> tuple[int, bool]:
        value = solve(
            position.player,
            position.opponent,
            alpha,
            position.num_empties,
            memory,
            self._table,
            self._marks,
            self._evaluation,
            self.variant.rules,
        )
        return value, not is_stopped(memory)

    def _remembered(self, position: Position, otherwise: int) -> int:
        """Returns the move that the table holds for a position."""
        facts = find(self._table, position.player, position.opponent, self._generation)
        index = move_of(np.uint64(facts))  # which a kernel hands back as a plain integer
        if facts == 0 or index == NO_MOVE:
            return otherwise
        move = square_of(index, self.variant.size, position.player)
        return move if move in position.legal_moves else otherwise

    def _move_for(self, position: Position, score: int, likely: int) -> int | None:
        """Returns a move that gets `score` at least, which there is; `likely` where it does. None when stopped."""
        for move in sorted(position.legal_moves, key=lambda move: move != likely):
            after = position.play(move)
            value, is_answer = (after.score, True) if after.is_over else self._ask(after, -score)
            if not is_answer:
                return None
            if value <= -score:
                return move
        raise AssertionError(f"no move gets {score} in {position.text}")

    def _line(self, position: Position, score: int, likely: int) -> tuple[int, ...]:
        """Returns perfect moves from a position of known score to the end, `likely` if it is one; () when stopped."""
        line: list[int] = []
        while not position.is_over:
            move = self._move_for(position, score, likely)
            if move is None:
                return ()
            line.append(move)
            position, score = position.play(move), -score
            if not position.is_over:
                likely = self._remembered(position, position.legal_moves[0])
        return tuple(line)
