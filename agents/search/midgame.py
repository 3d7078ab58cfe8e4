"""Search some plies ahead: principal variation search as kernels, and `Searcher`, their entry from Python.

Marsland and Campbell, "Parallel Search of Strongly Ordered Game Trees", Computing Surveys 14 (1982): the first move of
a node gets the whole window, every other only has to be shown no better, with a window of one. Nearly all nodes have
such a null window, so it has a kernel of its own.

Values are hundredths of a disc for the side to move; a finished game counts as `finished_value` says. Moves are bits of
the board, or PASS, inside, and squares for callers.
"""

import numpy as np

from agents.evaluation import DISC, Evaluation, evaluate
from agents.search.memory import (
    GENERATION,
    KEYS,
    LINE_LENGTH,
    LINES,
    MARGIN_DEPTHS,
    MARGINS,
    MOST_NODES,
    NODES,
    ROW,
    STOPPED,
    SURENESS,
    UNLIMITED,
    VALUES,
    is_stopped,
    make_memory,
)
from agents.search.ordering import FIRST, NO_MOVE, key_of, take_next
from agents.search.transposition import (
    GUESSED,
    MOST_GENERATIONS,
    confidence_of,
    depth_of,
    facts_of,
    find,
    lower_of,
    make_table,
    move_of,
    remember,
    upper_of,
)
from reversi_env.bitboard import load, square_of
from reversi_env.geometry import Bitboard, num_words, stride_of
from reversi_env.jit import kernel
from reversi_env.rules import OVER, Rules, final_score, legal_mask, play, status
from reversi_env.spans import span_of
from reversi_env.vectors import bit, count, is_empty, lowest, overlap, without_lowest

FINISHED = 15_000  # what a win or a loss is worth beside its discs: evaluations are at most ±10,000
UNBOUNDED = (1 << 15) - 1  # beyond every value, and within a table's bounds
NO_VALUE = -UNBOUNDED - 1
PASS = NO_MOVE - 1

_CORNER_FIRST = 300  # a corner is tried as if it were worth so much more
_MOVE_LESS = 100  # and a move of the opponent as if it cost so much
_WINDOW = 200  # of a new depth about the value of the one before


@kernel
def finished_value(player: Bitboard, opponent: Bitboard, rules: Rules) -> int:
    """Returns what a finished game is worth: beyond every evaluation, and 0 for a draw."""
    score = final_score(player, opponent, rules)
    if score == 0:
        return 0
    return DISC * score + (FINISHED if score > 0 else -FINISHED)


@kernel
def in_hundredths(value: int) -> int:
    """Returns a value as hundredths of a disc: an evaluation, or the score of a finished game."""
    if value > FINISHED:
        value -= FINISHED
    elif value < -FINISHED:
        value += FINISHED
    return value


@kernel
def in_discs(value: int) -> float:
    """Returns a value in discs: an evaluation, or the score of a finished game."""
    return in_hundredths(value) / DISC


@kernel
def leaf_value(player: Bitboard, opponent: Bitboard, evaluation: Evaluation, rules: Rules) -> int:
    """Returns the worth of a finished game, and the evaluation of any other."""
    if status(player, opponent, legal_mask(player, opponent, rules), rules) == OVER:
        return finished_value(player, opponent, rules)
    return evaluate(player, opponent, evaluation, rules)


@kernel
def shallow_depth(depth: int) -> int:
    """Returns the depth of the search that foretells one of `depth` plies: about half, and as even or odd."""
    return 2 * (depth // 4) + depth % 2


@kernel
def rank_moves(
    player: Bitboard,
    opponent: Bitboard,
    legal: Bitboard,
    good_move: int,
    depth: int,
    first: int,
    memory: np.ndarray,
    evaluation: Evaluation,
    rules: Rules,
) -> int:
    """Writes a key for each move into `memory`, from `first` on, and returns behind the last.

    First comes `good_move`, then what leaves the opponent few moves (fastest first) and, where there is time to ask, a
    bad evaluation; corners earlier or, where the fewest discs win, later.
    """
    corner_first = -_CORNER_FIRST if rules.fewest else _CORNER_FIRST
    last = first
    while not is_empty(legal):
        index = lowest(legal)
        move = bit(index, legal)
        legal = without_lowest(legal)
        rank = FIRST
        if index != good_move:
            after = play(player, opponent, move, rules)
            rank = -_MOVE_LESS * count(legal_mask(after[0], after[1], rules))
            if not is_empty(overlap(move, evaluation.corners)):
                rank += corner_first
            if depth > 2:
                rank -= evaluate(after[0], after[1], evaluation, rules)
        memory[last] = key_of(rank, index)
        last += 1
    return last


@kernel
def search_leaves(
    player: Bitboard, opponent: Bitboard, beta: int, memory: np.ndarray, evaluation: Evaluation, rules: Rules
) -> int:
    """Returns the value one ply ahead, or a bound of it that is at least `beta`."""
    legal = legal_mask(player, opponent, rules)
    if is_empty(legal):
        if is_empty(legal_mask(opponent, player, rules)):
            return finished_value(player, opponent, rules)
        memory[NODES] += 1
        return -evaluate(opponent, player, evaluation, rules)
    best = -UNBOUNDED
    while not is_empty(legal) and best < beta:
        after = play(player, opponent, bit(lowest(legal), legal), rules)
        best = max(best, -leaf_value(after[0], after[1], evaluation, rules))
        memory[NODES] += 1
        legal = without_lowest(legal)
    return best


@kernel
def search_null(
    player: Bitboard,
    opponent: Bitboard,
    beta: int,
    depth: int,
    ply: int,
    memory: np.ndarray,
    table: np.ndarray,
    evaluation: Evaluation,
    rules: Rules,
) -> int:
    """Returns a lower bound of the value `depth` > 0 plies ahead where it is at least `beta`, else an upper bound.

    With margins in memory it believes a shallower search that misses the window by as much, where the evaluation does
    so too: see `probcut`.
    """
    memory[NODES] += 1
    if depth == 1:
        return search_leaves(player, opponent, beta, memory, evaluation, rules)
    if is_stopped(memory):
        return beta
    below = depth - 1
    legal = legal_mask(player, opponent, rules)
    if is_empty(legal):
        if is_empty(legal_mask(opponent, player, rules)):
            return finished_value(player, opponent, rules)
        return -search_null(opponent, player, 1 - beta, below, ply + 1, memory, table, evaluation, rules)

    good_move = NO_MOVE
    facts = find(table, player, opponent, memory[GENERATION])
    if facts != 0:
        if depth_of(facts) == depth and memory[SURENESS] <= confidence_of(facts) < GUESSED:
            if lower_of(facts) >= beta:
                return lower_of(facts)
            if upper_of(facts) < beta:
                return upper_of(facts)
        good_move = move_of(facts)

    margin = 0
    if 2 < depth < MARGIN_DEPTHS and -FINISHED < beta < FINISHED:
        num_empties = rules.size * rules.size - count(player) - count(opponent)
        margin = memory[MARGINS + depth * ROW + num_empties]
    if margin != 0:
        shallow = shallow_depth(depth)
        high, low = beta + margin, beta - margin
        estimate = evaluate(player, opponent, evaluation, rules)
        if estimate >= high:
            value = search_null(player, opponent, high, shallow, ply, memory, table, evaluation, rules)
            if value >= high:
                return beta
        if estimate < low:
            value = search_null(player, opponent, low, shallow, ply, memory, table, evaluation, rules)
            if value < low:
                return beta - 1

    first = KEYS + ply * ROW
    last = rank_moves(player, opponent, legal, good_move, depth, first, memory, evaluation, rules)
    best, best_move = -UNBOUNDED, NO_MOVE
    while first < last:
        index = take_next(memory, first, last)
        first += 1
        after = play(player, opponent, bit(index, player), rules)
        value = -search_null(after[0], after[1], 1 - beta, below, ply + 1, memory, table, evaluation, rules)
        if value > best:
            best, best_move = value, index
            if value >= beta:
                break
    if is_stopped(memory):
        return beta
    lower, upper = (best, UNBOUNDED) if best >= beta else (-UNBOUNDED, best)
    facts = facts_of(lower, upper, depth, memory[SURENESS], best_move, memory[GENERATION])
    remember(table, player, opponent, facts)
    return best


@kernel
def extend_line(memory: np.ndarray, ply: int, move: int) -> None:
    """Writes into the ply's line the move and then the line of the next ply."""
    row = LINES + ply * LINE_LENGTH
    below = row + LINE_LENGTH
    memory[row] = move
    while memory[below] != NO_MOVE:
        row += 1
        memory[row] = memory[below]
        below += 1
    memory[row + 1] = NO_MOVE


@kernel
def search_open(
    player: Bitboard,
    opponent: Bitboard,
    alpha: int,
    beta: int,
    depth: int,
    ply: int,
    memory: np.ndarray,
    table: np.ndarray,
    evaluation: Evaluation,
    rules: Rules,
) -> int:
    """Returns the value `depth` plies ahead where it lies between `alpha` and `beta`, else a bound of it.

    The ply's line becomes the expected one. A search that is stopped returns at once, and then value and line mean
    nothing.
    """
    memory[NODES] += 1
    memory[LINES + ply * LINE_LENGTH] = NO_MOVE
    if depth == 0:
        return leaf_value(player, opponent, evaluation, rules)
    below = depth - 1
    legal = legal_mask(player, opponent, rules)
    if is_empty(legal):
        if is_empty(legal_mask(opponent, player, rules)):
            return finished_value(player, opponent, rules)
        value = -search_open(opponent, player, -beta, -alpha, below, ply + 1, memory, table, evaluation, rules)
        extend_line(memory, ply, PASS)
        return value

    facts = find(table, player, opponent, memory[GENERATION])
    good_move = move_of(facts) if facts != 0 else NO_MOVE
    start = KEYS + ply * ROW
    last = rank_moves(player, opponent, legal, good_move, depth, start, memory, evaluation, rules)
    best, best_move = -UNBOUNDED, NO_MOVE
    for first in range(start, last):
        index = take_next(memory, first, last)
        after = play(player, opponent, bit(index, player), rules)
        floor = max(alpha, best)
        value = beta
        if first > start and below > 0:
            value = -search_null(after[0], after[1], -floor, below, ply + 1, memory, table, evaluation, rules)
        if value > floor:
            value = -search_open(after[0], after[1], -beta, -floor, below, ply + 1, memory, table, evaluation, rules)
        if is_stopped(memory):
            return alpha
        if value > best:
            best, best_move = value, index
            if value > alpha:
                extend_line(memory, ply, index)
            if value >= beta:
                break

    lower = best if best > alpha else -UNBOUNDED
    upper = best if best < beta else UNBOUNDED
    facts = facts_of(lower, upper, depth, memory[SURENESS], best_move, memory[GENERATION])
    remember(table, player, opponent, facts)
    return best


@kernel
def with_spans(evaluation: Evaluation) -> Evaluation:
    """Returns the evaluation with its arrays as spans."""
    return Evaluation(
        evaluation.kind,
        evaluation.corners,
        evaluation.x_squares,
        evaluation.not_first,
        evaluation.not_last,
        span_of(evaluation.weights),
        span_of(evaluation.tables),
    )


@kernel
def search_depth(
    player: Bitboard,
    opponent: Bitboard,
    depth: int,
    memory: np.ndarray,
    table: np.ndarray,
    evaluation: Evaluation,
    rules: Rules,
) -> int:
    """Returns the value `depth` plies ahead, sought first about that of two plies less."""
    numbers, entries, terms = span_of(memory), span_of(table), with_spans(evaluation)
    last_value = VALUES + depth % 2
    alpha, beta = memory[last_value] - _WINDOW, memory[last_value] + _WINDOW
    if depth < 3:
        alpha, beta = -UNBOUNDED, UNBOUNDED
    ply = int(np.int64(0))  # a literal would compile a second search, see `jit.kernel`
    while True:
        value = search_open(player, opponent, alpha, beta, depth, ply, numbers, entries, terms, rules)
        if is_stopped(memory) or alpha < value < beta:
            break
        if value <= alpha:
            alpha = -UNBOUNDED
        else:
            beta = UNBOUNDED
    if not is_stopped(memory):
        memory[last_value] = value
    return value


@kernel
def begin(memory: np.ndarray, table: np.ndarray) -> None:
    """Prepares for a search that knows nothing of those before."""
    memory[NODES] = 0
    memory[MOST_NODES] = UNLIMITED
    memory[VALUES] = 0
    memory[VALUES + 1] = 0
    memory[GENERATION] += 1
    if memory[GENERATION] > MOST_GENERATIONS:
        memory[GENERATION] = 1
        table[:] = 0


@kernel
def search_to(
    player: Bitboard,
    opponent: Bitboard,
    depth: int,
    memory: np.ndarray,
    table: np.ndarray,
    evaluation: Evaluation,
    rules: Rules,
) -> int:
    """Returns the value `depth` > 0 plies ahead, and leaves the expected line in `memory`.

    The table puts the moves in order that the search of two plies less leaves there, which costs less than it saves.
    """
    begin(memory, table)
    value = 0
    for step in range(2 - depth % 2, depth + 1, 2):
        value = search_depth(player, opponent, step, memory, table, evaluation, rules)
    return value


@kernel
def first_move(memory: np.ndarray, rules: Rules) -> int:
    """Returns the first move of the expected line as a square or the pass (size²)."""
    index = memory[LINES]
    return rules.size * rules.size if index == PASS else square_of(index, rules.size, rules.squares)


@kernel
def best_moves(
    players: np.ndarray,
    opponents: np.ndarray,
    depth: int,
    memory: np.ndarray,
    table: np.ndarray,
    evaluation: Evaluation,
    rules: Rules,
    values: np.ndarray,
    moves: np.ndarray,
) -> None:
    """Fills `values` and `moves`, int64 [N], for the positions `players` and `opponents`, uint64 [N, W]."""
    for row in range(len(values)):
        player, opponent = load(players, row, rules.squares), load(opponents, row, rules.squares)
        values[row] = search_to(player, opponent, depth, memory, table, evaluation, rules)
        moves[row] = first_move(memory, rules)


@kernel
def move_values(
    players: np.ndarray,
    opponents: np.ndarray,
    depth: int,
    memory: np.ndarray,
    table: np.ndarray,
    evaluation: Evaluation,
    rules: Rules,
    values: np.ndarray,
) -> None:
    """Fills `values`, int64 [N, size² + 1], with the values of the moves of positions, uint64 [N, W]."""
    for row in range(len(values)):
        player, opponent = load(players, row, rules.squares), load(opponents, row, rules.squares)
        for move in range(values.shape[1]):
            values[row, move] = NO_VALUE
        legal = legal_mask(player, opponent, rules)
        if is_empty(legal):
            values[row, rules.size * rules.size] = search_to(player, opponent, depth, memory, table, evaluation, rules)
        while not is_empty(legal):
            index = lowest(legal)
            after = play(player, opponent, bit(index, legal), rules)
            if depth > 1:
                value = search_to(after[0], after[1], depth - 1, memory, table, evaluation, rules)
            else:
                value = leaf_value(after[0], after[1], evaluation, rules)
            values[row, square_of(index, rules.size, legal)] = -value
            legal = without_lowest(legal)


class Searcher:
    """The memory for searches of one board size, one at a time: each thread has its own. Kernels run without the GIL.

    `best_moves` and `move_values` take many positions a call, which costs some 10 µs whatever their number: arrays
    uint64 [N, W], a row each, of the discs of the sides to move (`players`) and of the others (`opponents`). No
    position is over. Values are for the side to move, in hundredths of a disc; beyond ±15,000 lies the score of a
    finished game. They do not depend on what was searched before.
    """

    def __init__(
        self, size: int, table_entries: int = 1 << 14, margins: np.ndarray | None = None, sureness: int = 0
    ) -> None:
        """Takes margins, int64 [MARGIN_DEPTHS, ROW], from `probcut`; without any nothing is left out."""
        self._size = size
        self._memory = make_memory()
        self._table = make_table(1 << (table_entries.bit_length() - 1), num_words(size))
        if margins is not None:
            self._memory[MARGINS : MARGINS + margins.size] = margins.ravel()
        self._memory[SURENESS] = sureness

    def best_moves(
        self, players: np.ndarray, opponents: np.ndarray, depth: int, evaluation: Evaluation, rules: Rules
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the values `depth` > 0 plies ahead and the moves to them (size² is the pass), int64 [N] both."""
        values, moves = np.empty(len(players), np.int64), np.empty(len(players), np.int64)
        best_moves(players, opponents, depth, self._memory, self._table, evaluation, rules, values, moves)
        return values, moves

    def move_values(
        self, players: np.ndarray, opponents: np.ndarray, depth: int, evaluation: Evaluation, rules: Rules
    ) -> np.ndarray:
        """Returns the value of every move `depth` > 0 plies ahead, int64 [N, size² + 1]; NO_VALUE of illegal ones."""
        values = np.empty((len(players), self._size * self._size + 1), np.int64)
        move_values(players, opponents, depth, self._memory, self._table, evaluation, rules, values)
        return values

    def search(
        self, player: Bitboard, opponent: Bitboard, depth: int, evaluation: Evaluation, rules: Rules
    ) -> tuple[int, int]:
        """Returns the value of one position and the move to it."""
        boards = np.array([player, opponent], np.uint64)
        values, moves = self.best_moves(boards[:1], boards[1:], depth, evaluation, rules)
        return int(values[0]), int(moves[0])

    def begin(self) -> None:
        """Prepares for steps of deepening about one position, as many nodes as they take."""
        begin(self._memory, self._table)

    def limit(self, num_nodes: int) -> None:
        """Ends the steps since `begin` when they have looked at so many positions."""
        self._memory[MOST_NODES] = min(num_nodes, self._memory[MOST_NODES])  # which `stop` may have set

    def deepen(self, player: Bitboard, opponent: Bitboard, depth: int, evaluation: Evaluation, rules: Rules) -> int:
        """Returns the value `depth` > 0 plies ahead, with what the steps since `begin` found; see `is_stopped`."""
        return search_depth(player, opponent, depth, self._memory, self._table, evaluation, rules)

    def stop(self) -> None:
        """Ends the step under way, from another thread, and those to come before `begin`."""
        self._memory[MOST_NODES] = STOPPED

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` or the number of nodes ended the last step, whose value and line mean nothing."""
        return bool(self._memory[NODES] > self._memory[MOST_NODES])

    @property
    def num_nodes(self) -> int:
        """The positions looked at since `begin`."""
        return int(self._memory[NODES])

    @property
    def line(self) -> tuple[int, ...]:
        """The expected moves of the last step, passes included."""
        indices = self._memory[LINES : LINES + LINE_LENGTH].tolist()
        stride, size = stride_of(num_words(self._size)), self._size
        return tuple(
            size * size if index == PASS else index // stride * size + index % stride
            for index in indices[: indices.index(NO_MOVE)]
        )
