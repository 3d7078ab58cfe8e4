"""The classic player: principal variation search, deeper and deeper, exact near the end.

Marsland and Campbell, "Parallel Search of Strongly Ordered Game Trees", Computing Surveys 14 (1982): the first move of
a node gets the whole window, every other only has to be shown no better, with a window of one.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from threading import TIMEOUT_MAX
from typing import NamedTuple

import numpy as np

from agents.agent import Agent, Decision
from agents.endgame import NODES, solve_few
from agents.evaluation import DISC, KINDS, Evaluation, evaluate, evaluation_of
from agents.transposition import DEPTH, LOWER, MOVE, NOT_FOUND, UPPER, Table, find, make_table, remember
from reversi_env import Position
from reversi_env.bitboard import load, square_of, store
from reversi_env.geometry import Bitboard, num_words
from reversi_env.jit import kernel
from reversi_env.naming import UnknownNameError
from reversi_env.rules import OVER, Rules, final_score, legal_mask, play, status
from reversi_env.vectors import bit, count, is_empty, lowest, overlap, without_lowest

DEFAULT_DEPTH = 4
FEW_EMPTIES = 5  # from here on an exact search needs neither table nor order; 4 to 6 ran alike
FINISHED = 1 << 15  # what a disc of a final score is worth beside evaluations, which stay below ±10,000
SOLVE = None  # the depth that stands for the end of the game
LONG_DEPTH, LONG_SOLVE = 6, 12  # up to here a search takes a moment, and a thread for it is not worth while
SURE_LEAD = 16.0  # an evaluation of so many discs is a value of 0.76
STOP = 1  # entry of `progress` that stops a search when set
NO_MOVE = -1

_UNBOUNDED = 1 << 30  # beyond every value, and within int32

_CORNER_FIRST = 6  # a corner is tried as if it left the opponent so many moves fewer
_HASH_MOVE_FIRST = 1 << 10
_KEY_SHIFT = 1 << 7  # squares fit below it


class Task(NamedTuple):
    """What one search is to find out."""

    exact: bool  # the score, by playing to the end, or else an estimate some plies ahead
    generation: int  # of the table's entries


class Workspace(NamedTuple):
    """The memory of one search; P is more than the plies of any game, S = size²."""

    table: Table
    children: np.ndarray  # uint64 [2·P·S, W]: rows 2(ply·S + square) and the next are the boards after a move
    keys: np.ndarray  # int64 [P·S]: a ply's moves still to try, packed with their rank
    line: np.ndarray  # int16 [P·P]: row `ply` holds the best moves from there on, NO_MOVE after the last
    progress: np.ndarray  # int64 [2]: positions looked at, and STOP


@kernel
def most_plies(num_squares: int) -> int:
    """Returns more than the plies of any game: nobody passes twice running."""
    return 2 * num_squares + 2


def make_workspace(size: int, num_entries: int) -> Workspace:
    """Returns the memory for searches on boards of `size` columns, with a table of at most so many entries."""
    squares, words = size * size, num_words(size)
    plies = most_plies(squares)
    return Workspace(
        table=make_table(1 << (num_entries.bit_length() - 1), words),
        children=np.empty((2 * plies * squares, words), np.uint64),
        keys=np.empty(plies * squares, np.int64),
        line=np.full(plies * plies, NO_MOVE, np.int16),
        progress=np.zeros(2, np.int64),
    )


@kernel
def leaf_value(player: Bitboard, opponent: Bitboard, evaluation: Evaluation, rules: Rules) -> int:
    """Returns the score of a finished game in units of FINISHED, and the evaluation of any other."""
    if status(player, opponent, legal_mask(player, opponent, rules), rules) == OVER:
        return FINISHED * final_score(player, opponent, rules)
    return evaluate(player, opponent, evaluation, rules)


@kernel
def rank_moves(
    player: Bitboard,
    opponent: Bitboard,
    legal: Bitboard,
    good_move: int,
    ply: int,
    workspace: Workspace,
    evaluation: Evaluation,
    rules: Rules,
) -> int:
    """Fills the ply's row of `children` and `keys`, and returns the number of moves.

    The greatest key is the move to try first: `good_move`, then the move that leaves the opponent the fewest moves
    (fastest first), with corners earlier or, where the fewest discs win, later; among equals the lowest square.
    """
    num_squares = rules.size * rules.size
    corner_first = -_CORNER_FIRST if rules.fewest else _CORNER_FIRST
    num_moves = 0
    while not is_empty(legal):
        index = lowest(legal)
        move = bit(index, legal)
        square = square_of(index, rules.size, legal)
        after = play(player, opponent, move, rules)
        row = ply * num_squares + square
        store(workspace.children, 2 * row, after[0])
        store(workspace.children, 2 * row + 1, after[1])
        rank = -count(legal_mask(after[0], after[1], rules))
        if not is_empty(overlap(move, evaluation.corners)):
            rank += corner_first
        if square == good_move:
            rank += _HASH_MOVE_FIRST
        workspace.keys[ply * num_squares + num_moves] = rank * _KEY_SHIFT + (_KEY_SHIFT - 1 - square)
        num_moves += 1
        legal = without_lowest(legal)
    return num_moves


@kernel
def next_move(keys: np.ndarray, first: int, last: int) -> int:
    """Returns the square of the greatest key from `first` on and below `last`, and swaps that key to `first`."""
    greatest = first
    for place in range(first + 1, last):
        if keys[place] > keys[greatest]:
            greatest = place
    key = keys[greatest]
    keys[greatest] = keys[first]
    keys[first] = key
    return int(_KEY_SHIFT - 1 - key % _KEY_SHIFT)


@kernel
def extend_line(line: np.ndarray, ply: int, move: int, num_plies: int) -> None:
    """Writes into the ply's row of `line` the move and then the row of the next ply."""
    row, below = ply * num_plies, (ply + 1) * num_plies
    line[row] = move
    for step in range(num_plies - 1):
        line[row + step + 1] = line[below + step]
        if line[below + step] == NO_MOVE:
            break


@kernel
def search(
    player: Bitboard,
    opponent: Bitboard,
    alpha: int,
    beta: int,
    depth: int,
    ply: int,
    task: Task,
    workspace: Workspace,
    evaluation: Evaluation,
    rules: Rules,
) -> int:
    """Returns the value for `player` where it lies between `alpha` and `beta`, else a bound of it.

    An exact search counts discs, and its `depth` is the number of empty squares; any other counts as `leaf_value`
    does, `depth` plies ahead, a pass being one. With an open window the ply's row of `workspace.line` is the expected
    line. Once `workspace.progress[STOP]` is set it returns at once, and then value and line mean nothing.
    """
    num_squares = rules.size * rules.size
    num_plies = most_plies(num_squares)
    is_open = beta - alpha > 1
    if is_open:
        workspace.line[ply * num_plies] = NO_MOVE
    if workspace.progress[STOP] != 0:
        return alpha
    if task.exact:
        if depth <= FEW_EMPTIES and not is_open:
            return solve_few(player, opponent, alpha, beta, depth, workspace.progress, rules)
    elif depth == 0:
        workspace.progress[NODES] += 1
        return leaf_value(player, opponent, evaluation, rules)
    workspace.progress[NODES] += 1

    legal = legal_mask(player, opponent, rules)
    if is_empty(legal):
        if is_empty(legal_mask(opponent, player, rules)):
            score = final_score(player, opponent, rules)
            return score if task.exact else FINISHED * score
        rest = depth if task.exact else depth - 1
        value = -search(opponent, player, -beta, -alpha, rest, ply + 1, task, workspace, evaluation, rules)
        if is_open:
            extend_line(workspace.line, ply, num_squares, num_plies)
        return value

    if depth == 1 and not is_open:  # a leaf costs less than a call
        best = -_UNBOUNDED
        while not is_empty(legal) and best < beta:
            after = play(player, opponent, bit(lowest(legal), legal), rules)
            best = max(best, -leaf_value(after[0], after[1], evaluation, rules))
            workspace.progress[NODES] += 1
            legal = without_lowest(legal)
        return best

    good_move = NO_MOVE
    entry = find(workspace.table, player, opponent, task.generation)
    if entry != NOT_FOUND:
        facts = workspace.table.facts[entry]
        if facts[DEPTH] == depth and not is_open:
            if facts[LOWER] >= beta:
                return int(facts[LOWER])
            if facts[UPPER] <= alpha:
                return int(facts[UPPER])
        good_move = int(facts[MOVE])

    num_moves = rank_moves(player, opponent, legal, good_move, ply, workspace, evaluation, rules)
    best, best_move = -_UNBOUNDED, NO_MOVE
    first = ply * num_squares
    for turn in range(num_moves):
        square = next_move(workspace.keys, first + turn, first + num_moves)
        row = 2 * (first + square)
        after_player = load(workspace.children, row, player)
        after_opponent = load(workspace.children, row + 1, player)
        floor = max(alpha, best)
        below = depth - 1
        ceiling = beta if turn == 0 else floor + 1
        value = -search(
            after_player, after_opponent, -ceiling, -floor, below, ply + 1, task, workspace, evaluation, rules
        )
        if turn > 0 and floor < value < beta:  # better than shown, so the whole window after all
            value = -search(
                after_player, after_opponent, -beta, -floor, below, ply + 1, task, workspace, evaluation, rules
            )
        if workspace.progress[STOP] != 0:
            return alpha
        if value > best:
            best, best_move = value, square
            if value >= beta:
                break
            if is_open and value > alpha:
                extend_line(workspace.line, ply, square, num_plies)

    lower = best if best > alpha else -_UNBOUNDED
    upper = best if best < beta else _UNBOUNDED
    remember(workspace.table, player, opponent, task.generation, depth, lower, upper, best_move)
    return best


@dataclass
class AlphaBetaConfig:
    """How far to look."""

    depth: int | None = None  # plies; None is 4, or with a time limit as deep as that allows
    time_limit_s: float | None = None  # wall-clock time for a move; it gets at least one ply
    exact: int = 10  # with so many empty squares or fewer, or time enough, the game is played out; 0 is never
    evaluation: str = "mobility"  # "discs", "positional" or "mobility"
    table_entries: int = 1 << 17  # positions remembered, rounded down to a power of two; 36 bytes each, 52 on 10×10

    def __post_init__(self) -> None:
        if self.depth is not None and self.depth < 1:
            raise ValueError(f"depth must be at least 1 ply, got {self.depth}")
        if self.time_limit_s is not None and not self.time_limit_s > 0:
            raise ValueError(f"time_limit_s must be more than 0 seconds, got {self.time_limit_s}")
        if self.time_limit_s is not None and self.time_limit_s > TIMEOUT_MAX:
            raise ValueError(f"time_limit_s must be at most {TIMEOUT_MAX:.0f} seconds, got {self.time_limit_s}")
        if self.exact < 0:
            raise ValueError(f"exact must be 0 (never) or a number of empty squares, got {self.exact}")
        if self.evaluation not in KINDS:
            raise UnknownNameError("evaluation", self.evaluation, KINDS)
        if self.table_entries < 2:
            raise ValueError(f"table_entries must be at least 2, got {self.table_entries}")


class AlphaBetaAgent(Agent):
    """Looks some plies ahead, or as far as the time allows. The same move at every call, unless time runs out."""

    def __init__(self, config: AlphaBetaConfig | None = None) -> None:
        self.config = config or AlphaBetaConfig()
        options, defaults = asdict(replace(self.config, depth=self._last_depth)), asdict(AlphaBetaConfig())
        changed = [f"{key}={value}" for key, value in options.items() if value != defaults[key]]
        self.name = f"alphabeta:{','.join(changed)}"
        self._idle: defaultdict[int, list[_Memory]] = defaultdict(list)  # by size; threads may search side by side

    @property
    def _last_depth(self) -> int | None:
        return DEFAULT_DEPTH if self.config.depth is None and self.config.time_limit_s is None else self.config.depth

    def select(self, position: Position, rng: np.random.Generator) -> Decision:
        """Returns the best move found; `rng` is not used. Raises ValueError where the game is over.

        A search that may take long runs in a thread of its own, so that Ctrl-C ends it at once.
        """
        if position.is_over:
            raise ValueError(f"the game is over, so there is no move to choose: {position.text}")
        idle = self._idle[position.variant.size]
        try:
            memory = idle.pop()
        except IndexError:
            memory = _Memory(make_workspace(position.variant.size, self.config.table_entries))
        try:
            return self._run(_Search(position, self.config.evaluation, memory))
        finally:
            idle.append(memory)

    def _run(self, attempt: "_Search") -> Decision:
        limit = self._last_depth
        num_empties = attempt.position.num_empties
        is_near_end = num_empties <= self.config.exact
        solves = is_near_end or (limit is None and self.config.exact > 0)
        if is_near_end:
            last = num_empties // 2  # enough to put the moves in order
        else:
            last = num_empties - 1 if solves else 2 * num_empties
        last = min(last, limit or last)
        steps: list[int | None] = [*range(1, last + 1), *([SOLVE] if solves else [])]
        attempt.take(steps[:1])  # whatever the time, this much; and what has to be compiled is no thinking time
        is_long = last > LONG_DEPTH or (solves and num_empties > LONG_SOLVE)
        if self.config.time_limit_s is None and not is_long:
            attempt.take(steps[1:])
        else:
            with ThreadPoolExecutor(1) as threads:
                rest = threads.submit(attempt.take, steps[1:])
                try:
                    wait([rest], self.config.time_limit_s)
                finally:
                    attempt.stop()
            rest.result()
        assert attempt.decision is not None
        return attempt.decision


@dataclass
class _Memory:
    """A workspace, and how many searches have used it."""

    workspace: Workspace
    generation: int = 0


class _Search:
    """The search for one move; each step that it finishes leaves its decision."""

    def __init__(self, position: Position, evaluation: str, memory: _Memory) -> None:
        memory.generation += 1
        self.position = position
        self.decision: Decision | None = None
        self._evaluation = evaluation_of(evaluation, position.variant)
        self._workspace = memory.workspace
        self._generation = memory.generation
        self._workspace.progress[:] = 0

    def take(self, steps: Iterable[int | None]) -> None:
        """Searches to each depth in turn, or to the end for SOLVE, until stopped.

        A solution may use the table of the depths before it: those are less than the number of empty squares, and
        no entry serves another depth than its own.
        """
        for depth in steps:
            value = search(
                self.position.player,
                self.position.opponent,
                -_UNBOUNDED,
                _UNBOUNDED,
                self.position.num_empties if depth is SOLVE else depth,
                0,
                Task(depth is SOLVE, self._generation),
                self._workspace,
                self._evaluation,
                self.position.variant.rules,
            )
            if self._workspace.progress[STOP]:
                break
            self.decision = self._decision(value, depth is SOLVE)

    def stop(self) -> None:
        """Ends the step now taken, from another thread."""
        self._workspace.progress[STOP] = 1

    def _decision(self, value: int, is_exact: bool) -> Decision:
        if is_exact:
            evaluation = float(value)
        elif abs(value) >= FINISHED:
            evaluation = value / FINISHED
        else:
            evaluation = value / DISC
        is_result = is_exact or abs(value) >= FINISHED
        line = self._workspace.line[: most_plies(self.position.variant.num_squares)].tolist()
        line = line[: line.index(NO_MOVE)]
        return Decision(
            move=line[0],
            value=float(np.sign(evaluation)) if is_result else math.tanh(evaluation / SURE_LEAD),
            evaluation=evaluation,
            num_nodes=int(self._workspace.progress[NODES]),
            principal_line=tuple(line),
            is_exact=is_exact,
        )
