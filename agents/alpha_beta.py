"""The classic player: it looks deeper and deeper ahead, and near the end plays perfectly; see `agents.search`."""

import math
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, replace

import numpy as np

from agents.agent import Agent, Decision
from agents.evaluation import NTUPLE, Evaluation, check_name, error_model_of, evaluation_of, learned_evaluation
from agents.ntuple.tables import Tables
from agents.search.memory import MOST_DEPTH
from agents.search.midgame import FINISHED, Searcher, in_discs
from agents.search.probcut import MOST_SELECTIVE, margins
from agents.search.solver import Solver
from reversi_env import Position, Variant

DEFAULT_DEPTH = 4
QUICK_DEPTH, QUICK_SOLVE = 4, 12  # up to here a search takes a moment, and a thread for it is not worth while
SURE_LEAD = 16.0  # an evaluation of so many discs is a value of 0.76

# How long the solver takes for 14 empty squares of 8×8, nine times of ten, and how many times longer for two more.
_SOLVED_AT_ONCE = 14
_LEARNED_PACE, _HANDMADE_PACE = (1 / 80, 4.0), (1 / 25, 5.0)
_SOLVED_A_SECOND = 15_000_000  # positions
_MOST_SOLVED = 26  # empty squares; beyond, deeper estimates are worth more than a proof that does not come
_SHARE_BEFORE_SOLVING = 0.2  # of a move's time for the move that stands if the solver does not come to an end
_LESS_TIME_FROM = 20  # empty squares; down to none a move gets less and less of a game's time


@dataclass
class AlphaBetaConfig:
    """How far to look."""

    depth: int | None = None  # plies; None is 4, or with a limit of time or nodes as deep as that allows
    time_limit_s: float | None = None  # wall-clock time for a move; it gets at least one ply
    game_time_s: float | None = None  # the same for all moves of a game, shared out by the number of empty squares
    nodes: int | None = None  # positions to look at for a move, at most; it gets at least one ply
    exact: int = 10  # with so many empty squares or fewer, or time enough, the game is played out; 0 is never
    evaluation: str = "mobility"  # "discs", "positional", "mobility", "ntuple", or the folder of n-tuple tables
    selectivity: int = 0  # how readily to believe a shallower search: 0 is never, 5 the most
    table_entries: int = 1 << 17  # positions remembered, rounded down to a power of two; 64 bytes each, 128 on 10×10

    def __post_init__(self) -> None:
        if self.depth is not None and self.depth < 1:
            raise ValueError(f"depth must be at least 1 ply, got {self.depth}")
        for name, seconds in (("time_limit_s", self.time_limit_s), ("game_time_s", self.game_time_s)):
            if seconds is not None and not seconds > 0:
                raise ValueError(f"{name} must be more than 0 seconds, got {seconds}")
            if seconds is not None and seconds > threading.TIMEOUT_MAX:
                raise ValueError(f"{name} must be at most {threading.TIMEOUT_MAX:.0f} seconds, got {seconds}")
        if self.nodes is not None and self.nodes < 1:
            raise ValueError(f"nodes must be at least 1, got {self.nodes}")
        if self.exact < 0:
            raise ValueError(f"exact must be 0 (never) or a number of empty squares, got {self.exact}")
        if not 0 <= self.selectivity <= MOST_SELECTIVE:
            raise ValueError(f"selectivity must be 0 (nothing is left out) to {MOST_SELECTIVE}, got {self.selectivity}")
        check_name(self.evaluation)
        if self.table_entries < 2:
            raise ValueError(f"table_entries must be at least 2, got {self.table_entries}")

    @property
    def is_limited(self) -> bool:
        """Whether time or nodes end a search."""
        return not (self.time_limit_s is None and self.game_time_s is None and self.nodes is None)

    @property
    def last_depth(self) -> int | None:
        """The depth to end with, None for as deep as time or nodes allow."""
        return DEFAULT_DEPTH if self.depth is None and not self.is_limited else self.depth

    def time_for(self, position: Position) -> float:
        """Returns the seconds for a move in a position, perhaps infinite."""
        limit = math.inf if self.time_limit_s is None else self.time_limit_s
        if self.game_time_s is None:
            return limit
        # A player moves at every second number of empty squares, so the shares of all numbers add up to two.
        shares = [min(empties, _LESS_TIME_FROM) for empties in range(position.variant.num_squares + 1)]
        return min(limit, self.game_time_s * 2 * shares[position.num_empties] / sum(shares))


class AlphaBetaAgent(Agent):
    """Looks some plies ahead, or as far as the time allows. The same move at every call, unless time runs out."""

    def __init__(self, config: AlphaBetaConfig | None = None, tables: Tables | None = None) -> None:
        """Takes n-tuple tables that are in no folder in the place of the evaluation that the configuration names."""
        self.config = config or AlphaBetaConfig()
        self._tables = tables
        options, defaults = asdict(replace(self.config, depth=self.config.last_depth)), asdict(AlphaBetaConfig())
        changed = [f"{key}={value}" for key, value in options.items() if value != defaults[key]]
        self.name = f"alphabeta:{','.join(changed)}"
        self._idle: defaultdict[Variant, list[_Memory]] = defaultdict(list)  # threads may search side by side

    def select(self, position: Position, rng: np.random.Generator) -> Decision:
        """Returns the best move found; `rng` is not used. Raises ValueError where the game is over.

        A search that may take long runs in a thread of its own, so that Ctrl-C ends it at once.
        """
        for decision in self.begin(position):
            best = decision
        return best

    def begin(self, position: Position) -> "Search":
        """Returns a search to iterate over: a decision after each depth. Raises ValueError where the game is over."""
        if position.is_over:
            raise ValueError(f"the game is over, so there is no move to choose: {position.text}")
        idle = self._idle[position.variant]
        try:
            memory = idle.pop()
        except IndexError:
            memory = self._memory(position.variant)
        return Search(position, self.config, memory, idle)

    def _memory(self, variant: Variant) -> "_Memory":
        if self._tables is not None:
            return _Memory(variant, self.config, learned_evaluation(self._tables), self._tables.error_model)
        name = self.config.evaluation
        return _Memory(variant, self.config, evaluation_of(name, variant), error_model_of(name, variant))


class _Memory:
    """What a search needs, to be used again by the next."""

    def __init__(
        self, variant: Variant, config: AlphaBetaConfig, evaluation: Evaluation, error_model: np.ndarray
    ) -> None:
        self.evaluation = evaluation
        self.searcher = Searcher(
            variant.size,
            config.table_entries,
            margins(error_model, config.selectivity, variant.size),
            MOST_SELECTIVE - config.selectivity,
        )
        self.solver = Solver(variant, 1 << (config.table_entries.bit_length() - 1), self.evaluation)


class Search:
    """The search for one move: iterates once over the decisions that it comes to, at least one, the last the best.

    Steps that may take long run in a thread of their own, so that Ctrl-C ends them at once.
    """

    def __init__(self, position: Position, config: AlphaBetaConfig, memory: _Memory, idle: list[_Memory]) -> None:
        """Works in `memory`, and leaves it in `idle` for the next search."""
        self._position = position
        self._config = config
        self._idle = idle
        self._memory = memory
        self._time_s = config.time_for(position)
        self._is_stopped = False
        self._is_over = False
        self._lock = threading.RLock()  # held while it is decided whose the memory is; a signal may find it held

    def stop(self) -> None:
        """Ends the search at once, from another thread or a signal handler; its first decision comes all the same."""
        with self._lock:
            self._is_stopped = True
            if not self._is_over:
                self._memory.searcher.stop()
                self._memory.solver.stop()

    def __iter__(self) -> Iterator[Decision]:
        try:
            yield from self._decisions()
        finally:
            with self._lock:
                self._is_over = True
            self._idle.append(self._memory)

    def _decisions(self) -> Iterator[Decision]:
        searcher, solves = self._memory.searcher, self._solves()
        searcher.begin()
        if solves and not self._config.is_limited and (decision := self._solution(math.inf)):
            yield decision
            return
        depths = iter(self._depths(solves))
        first = next(depths)
        while (decision := self._step(first)) is None:  # whatever the limits, and even where it is stopped
            searcher.begin()
        yield decision
        if self._is_stopped:
            return
        begun = time.monotonic()  # what had to be compiled was no thinking time
        if self._config.nodes is not None:
            searcher.limit(self._config.nodes)
        estimates_end = begun + self._time_s * (_SHARE_BEFORE_SOLVING if solves else 1)
        for depth in depths:
            decision = self._step_until(depth, estimates_end)
            if decision is None:
                break
            yield decision
        if solves and not self._is_stopped and (decision := self._solution(begun + self._time_s - time.monotonic())):
            yield decision

    def _solves(self) -> bool:
        """Returns whether to play the game out: near the end, or where there is time for it."""
        num_empties = self._position.num_empties
        if self._config.exact == 0 or num_empties <= self._config.exact or self._config.last_depth is not None:
            return 0 < num_empties <= self._config.exact
        nodes_s = math.inf if self._config.nodes is None else self._config.nodes / _SOLVED_A_SECOND
        at_once_s, two_more = _LEARNED_PACE if self._memory.evaluation.kind == NTUPLE else _HANDMADE_PACE
        within_time = _SOLVED_AT_ONCE + 2 * math.log(min(self._time_s, nodes_s) / at_once_s, two_more)
        return num_empties <= min(within_time, _MOST_SOLVED)

    def _depths(self, solves: bool) -> Iterable[int]:
        """Returns the depths to look ahead; two plies more at a time cost less where the last one is known."""
        num_empties, last = self._position.num_empties, self._config.last_depth
        if last is None:
            return range(1, min(max(1, num_empties // 2 if solves else 2 * num_empties), MOST_DEPTH) + 1)
        last = min(last, 2 * num_empties, MOST_DEPTH)  # nobody passes twice running
        return range(2 - last % 2, last + 1, 2)

    def _step(self, depth: int) -> Decision | None:
        """Returns the decision at a depth; None where the search was stopped before."""
        position, memory = self._position, self._memory
        value = memory.searcher.deepen(
            position.player, position.opponent, depth, memory.evaluation, position.variant.rules
        )
        if memory.searcher.is_stopped:
            return None
        is_result = abs(value) >= FINISHED
        evaluation = in_discs(value)
        line = memory.searcher.line
        return Decision(
            move=line[0],
            value=float(np.sign(evaluation)) if is_result else math.tanh(evaluation / SURE_LEAD),
            evaluation=evaluation,
            num_nodes=memory.searcher.num_nodes,
            depth=depth,
            principal_line=line,
        )

    def _step_until(self, depth: int, end: float) -> Decision | None:
        """Returns the decision of a step; None where it did not come to an end before `end`, or was stopped."""
        searcher = self._memory.searcher
        if self._is_stopped or searcher.is_stopped or time.monotonic() >= end:
            return None
        if depth <= QUICK_DEPTH:
            return self._step(depth)
        with ThreadPoolExecutor(1) as threads:
            step = threads.submit(self._step, depth)
            try:
                wait([step], None if end == math.inf else end - time.monotonic())
            finally:
                if not step.done():
                    searcher.stop()
        return step.result()

    def _solution(self, time_s: float) -> Decision | None:
        """Returns the decision of perfect play; None where it was not proven in time to be that, or to win."""
        num_nodes = self._memory.searcher.num_nodes
        left = None if self._config.nodes is None else max(1, self._config.nodes - num_nodes)
        solution = self._memory.solver.solve(
            self._position,
            time_limit_s=None if time_s == math.inf else time_s,
            node_limit=left,
            is_unwanted=lambda: self._is_stopped,
        )
        if not solution.is_exact and solution.lower <= 0:
            return None
        assert solution.move is not None  # the game goes on
        return Decision(
            move=solution.move,
            value=float(np.sign(solution.lower)),
            evaluation=float(solution.lower),
            num_nodes=num_nodes + solution.num_nodes,
            principal_line=solution.principal_line or (solution.move,),
            is_exact=solution.is_exact,
        )
