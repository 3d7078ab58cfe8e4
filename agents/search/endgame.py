"""Search to the end of the game: is a score more than `alpha`? See last_squares.py for what the answer means.

Three tiers by the number of empty squares, each calling itself and the one below: `score_few` tries the squares as they
come, `solve_middle` orders the moves by the opponent's mobility and remembers positions, `solve_deep` orders them by an
evaluation as well, looks for a reply's bound in the table before it searches, can be stopped, and shares the work.

What they find is proven, unless there is an END_MARGIN in memory. Then `solve_deep` guesses: where a search some plies
ahead misses `alpha` by that margin it is believed, as in `probcut`. With a good evaluation that takes a hundredth of
the time and is seldom far from the score; and it leaves good moves in the table.

Threads that solve the same position over one table share the work by themselves: what one has found the others read
there, and a move that one is looking at the others leave for later (Weill, "The ABDADA Distributed Minimax Search
Algorithm", ICCA Journal 19, 1996, with marks in a table of their own).
"""

import numpy as np

from agents.evaluation import DISC, Evaluation, evaluate
from agents.search.last_squares import UNKNOWN, odd_quadrants, score_few
from agents.search.memory import END_MARGIN, GENERATION, KEYS, NODES, ROW, is_stopped
from agents.search.midgame import UNBOUNDED, in_hundredths, search_leaves, search_null, with_spans
from agents.search.ordering import FIRST, NO_MOVE, key_of, take_next
from agents.search.stability import most_score
from agents.search.transposition import (
    EXACT,
    GUESSED,
    bucket_of,
    confidence_of,
    facts_of,
    find,
    lower_of,
    move_of,
    remember,
    upper_of,
)
from reversi_env.geometry import Bitboard
from reversi_env.jit import kernel
from reversi_env.rules import Rules, final_score, legal_mask, play
from reversi_env.spans import span_of
from reversi_env.vectors import bit, count, is_empty, lowest, overlap, union, without, without_lowest

# The most empty squares of the lower two tiers; a FEW of 7 or 8 or a MIDDLE of 10 is a little slower, one of 8 a third.
FEW, MIDDLE = 6, 9
REMEMBERED = 9  # from so many empty squares on the table is asked; nearer the end that takes longer than it saves
LOOKING = 15  # from so many empty squares on, moves are ordered by a search one ply ahead
GUESSING = 12  # from so many empty squares on a guess may believe a search two plies ahead or more
SHARED = 13  # from so many empty squares on, threads leave each other's moves for later

_MARKS = 1 << 12
_MOST_AHEAD = 8  # plies
_REPLY = 16  # what a reply costs a move's rank; one to a corner costs as much again
_ODD = 8  # what a square in an odd quadrant is worth
_DEEP_REPLY = 400  # the same beside an evaluation, in hundredths of a disc; 200 looked at 5 % more
_DEEP_ODD = 30


def make_marks(num_threads: int) -> np.ndarray:
    """Returns the table, int64 [M], of moves being looked at; without entries for one thread, which needs none."""
    return np.zeros(_MARKS if num_threads > 1 else 0, np.int64)


@kernel
def stability_bound(player: Bitboard, opponent: Bitboard, alpha: int, empties: Bitboard, rules: Rules) -> int:
    """Returns what the score cannot exceed for stable discs, or the whole board where `alpha` is too low to ask."""
    most = rules.size * rules.size
    return most_score(player, opponent, empties, rules) if alpha >= 2 * count(empties) - 8 else most


@kernel
def answer_in(facts: np.uint64, alpha: int, confidence: int) -> int:
    """Returns a score that answers whether a position's exceeds `alpha`, where the facts do so surely, else UNKNOWN."""
    if confidence_of(facts) >= confidence:
        if lower_of(facts) > alpha:
            return lower_of(facts)
        if upper_of(facts) <= alpha:
            return upper_of(facts)
    return UNKNOWN


@kernel
def remember_score(
    table: np.ndarray,
    player: Bitboard,
    opponent: Bitboard,
    alpha: int,
    score: int,
    num_empties: int,
    move: int,
    confidence: int,
    memory: np.ndarray,
    rules: Rules,
) -> None:
    """Writes into the table what a search with `alpha` found."""
    most = rules.size * rules.size
    lower, upper = (score, most) if score > alpha else (-most, score)
    facts = facts_of(lower, upper, num_empties, confidence, move, memory[GENERATION])
    remember(table, player, opponent, facts)


@kernel
def count_replies(player: Bitboard, opponent: Bitboard, corners: Bitboard, rules: Rules) -> int:
    """Returns how many moves the side to move has, one to a corner counted twice: few are good for the other side."""
    replies = legal_mask(player, opponent, rules)
    return count(replies) + count(overlap(replies, corners))


@kernel
def rank_middle(
    player: Bitboard,
    opponent: Bitboard,
    legal: Bitboard,
    odd: Bitboard,
    first: int,
    memory: np.ndarray,
    corners: Bitboard,
    rules: Rules,
) -> int:
    """Writes a key for each move into `memory`, from `first` on, and returns the place after the last.

    First comes what leaves few replies.
    """
    last = first
    while not is_empty(legal):
        index = lowest(legal)
        move = bit(index, legal)
        legal = without_lowest(legal)
        after = play(player, opponent, move, rules)
        rank = -_REPLY * count_replies(after[0], after[1], corners, rules)
        if not is_empty(overlap(move, odd)):
            rank += _ODD
        memory[last] = key_of(rank, index)
        last += 1
    return last


@kernel
def solve_middle(
    player: Bitboard,
    opponent: Bitboard,
    alpha: int,
    num_empties: int,
    first: int,
    memory: np.ndarray,
    table: np.ndarray,
    corners: Bitboard,
    rules: Rules,
) -> int:
    """Returns the score as far as it matters; `first` is where in `memory` there is room for the moves."""
    occupied = union(player, opponent)
    empties = without(rules.squares, occupied)
    odd = odd_quadrants(empties, rules)
    if 3 <= num_empties <= FEW and is_empty(without(rules.center, occupied)):
        return score_few(player, opponent, alpha, empties, odd, memory, rules)
    most = stability_bound(player, opponent, alpha, empties, rules)
    if most <= alpha:
        return most
    good_move = NO_MOVE
    if num_empties >= REMEMBERED:
        facts = find(table, player, opponent, memory[GENERATION])
        answer = answer_in(facts, alpha, EXACT)
        if answer != UNKNOWN:
            return answer
        if facts != 0:
            good_move = move_of(facts)
    legal = legal_mask(player, opponent, rules)
    if is_empty(legal):
        if is_empty(legal_mask(opponent, player, rules)):
            return final_score(player, opponent, rules)
        return -solve_middle(opponent, player, -alpha - 1, num_empties, first, memory, table, corners, rules)
    best, best_move = UNKNOWN, good_move
    below = num_empties - 1
    for stage in range(2):  # the move that the table holds is tried before time is spent on putting the others in order
        last = first
        if stage == 1:
            last = rank_middle(player, opponent, legal, odd, first, memory, corners, rules)
        elif good_move != NO_MOVE:
            memory[last] = key_of(FIRST, good_move)
            last += 1
            legal = without(legal, bit(good_move, legal))
        for place in range(first, last):
            index = take_next(memory, place, last)
            memory[NODES] += 1
            after = play(player, opponent, bit(index, player), rules)
            score = -solve_middle(after[0], after[1], -alpha - 1, below, last, memory, table, corners, rules)
            if score > best:
                best, best_move = score, index
                if score > alpha:
                    break
        if best > alpha:
            break
    if num_empties >= REMEMBERED:
        remember_score(table, player, opponent, alpha, best, num_empties, best_move, EXACT, memory, rules)
    return best


@kernel
def rank_deep(
    player: Bitboard,
    opponent: Bitboard,
    legal: Bitboard,
    odd: Bitboard,
    num_empties: int,
    first: int,
    memory: np.ndarray,
    evaluation: Evaluation,
    rules: Rules,
) -> int:
    """Writes a key for each move into `memory`, from `first` on, and returns the place after the last.

    First comes what leaves few replies and a bad evaluation.
    """
    last = first
    while not is_empty(legal):
        index = lowest(legal)
        move = bit(index, legal)
        legal = without_lowest(legal)
        after = play(player, opponent, move, rules)
        rank = -_DEEP_REPLY * count_replies(after[0], after[1], evaluation.corners, rules)
        if num_empties >= LOOKING:
            rank -= search_leaves(after[0], after[1], UNBOUNDED, memory, evaluation, rules)
        else:
            rank -= evaluate(after[0], after[1], evaluation, rules)
        if not is_empty(overlap(move, odd)):
            rank += _DEEP_ODD
        memory[last] = key_of(rank, index)
        last += 1
    return last


@kernel
def known_answer(
    player: Bitboard,
    opponent: Bitboard,
    alpha: int,
    legal: Bitboard,
    confidence: int,
    memory: np.ndarray,
    table: np.ndarray,
    rules: Rules,
) -> int:
    """Returns a score more than `alpha` that the table surely knows of one of the moves, else UNKNOWN."""
    while not is_empty(legal):
        after = play(player, opponent, bit(lowest(legal), legal), rules)
        legal = without_lowest(legal)
        facts = find(table, after[0], after[1], memory[GENERATION])
        if confidence_of(facts) >= confidence and -upper_of(facts) > alpha:
            return -upper_of(facts)
    return UNKNOWN


@kernel
def confidence_at(num_empties: int, memory: np.ndarray) -> int:
    """Returns how sure the score of a position is: proven or guessed."""
    return GUESSED if num_empties >= GUESSING and memory[END_MARGIN] > 0 else EXACT


@kernel
def likely_score(
    player: Bitboard,
    opponent: Bitboard,
    alpha: int,
    num_empties: int,
    first: int,
    memory: np.ndarray,
    table: np.ndarray,
    evaluation: Evaluation,
    rules: Rules,
) -> int:
    """Returns a score that a search some plies ahead makes likely enough, else UNKNOWN.

    It is not begun where the evaluation does not say so too.
    """
    margin, most = memory[END_MARGIN], rules.size * rules.size
    high, low = DISC * (alpha + 1) + margin, DISC * alpha - margin
    estimate = evaluate(player, opponent, evaluation, rules)
    depth = min(2 * (num_empties // 4 - 2), _MOST_AHEAD)
    ply = (first - KEYS) // ROW + 1  # whose room for moves lies behind `first`
    if estimate >= high:
        ahead = in_hundredths(search_null(player, opponent, high, depth, ply, memory, table, evaluation, rules))
        if ahead >= high:
            return min(int((ahead - margin) // DISC), most)
    elif estimate < low:
        ahead = in_hundredths(search_null(player, opponent, low, depth, ply, memory, table, evaluation, rules))
        if ahead < low:
            return max(int(-((-ahead - margin) // DISC)), -most)
    return UNKNOWN


@kernel
def solve_deep(
    player: Bitboard,
    opponent: Bitboard,
    alpha: int,
    num_empties: int,
    first: int,
    memory: np.ndarray,
    table: np.ndarray,
    marks: np.ndarray,
    evaluation: Evaluation,
    rules: Rules,
) -> int:
    """Returns the score as far as it matters, and anything at all once the search is stopped."""
    if num_empties <= MIDDLE:
        return solve_middle(player, opponent, alpha, num_empties, first, memory, table, evaluation.corners, rules)
    if is_stopped(memory):
        return alpha
    empties = without(rules.squares, union(player, opponent))
    most = stability_bound(player, opponent, alpha, empties, rules)
    if most <= alpha:
        return most
    confidence = confidence_at(num_empties, memory)
    facts = find(table, player, opponent, memory[GENERATION])
    answer = answer_in(facts, alpha, confidence)
    if answer != UNKNOWN:
        return answer
    good_move = move_of(facts) if facts != 0 else NO_MOVE
    legal = legal_mask(player, opponent, rules)
    if is_empty(legal):
        if is_empty(legal_mask(opponent, player, rules)):
            return final_score(player, opponent, rules)
        return -solve_deep(opponent, player, -alpha - 1, num_empties, first, memory, table, marks, evaluation, rules)
    below = num_empties - 1
    answer = known_answer(player, opponent, alpha, legal, confidence_at(below, memory), memory, table, rules)
    if answer == UNKNOWN and confidence == GUESSED:
        answer = likely_score(player, opponent, alpha, num_empties, first, memory, table, evaluation, rules)
    if answer != UNKNOWN:
        return answer
    odd = odd_quadrants(empties, rules)
    best, best_move = UNKNOWN, good_move
    is_shared = len(marks) > 0 and num_empties >= SHARED
    for stage in range(2):  # as in `solve_middle`
        last = first
        if stage == 1:
            last = rank_deep(player, opponent, legal, odd, num_empties, first, memory, evaluation, rules)
        elif good_move != NO_MOVE:
            memory[last] = key_of(FIRST, good_move)
            last += 1
            legal = without(legal, bit(good_move, legal))
        place, end = first, last
        num_later = 0
        while place < end:
            index = take_next(memory, place, last) if place < last else memory[place - last + first]
            after = play(player, opponent, bit(index, player), rules)
            mark, seat = 0, 0
            if is_shared:
                mark = bucket_of(table, after[0], after[1]) + 1
                seat = mark // 8 & (len(marks) - 1)
                if best > UNKNOWN and place < last and marks[seat] == mark:
                    memory[first + num_later] = index  # over a key that has been taken
                    num_later += 1
                    end += 1
                    place += 1
                    continue
                marks[seat] = mark
            memory[NODES] += 1
            score = -solve_deep(after[0], after[1], -alpha - 1, below, last, memory, table, marks, evaluation, rules)
            if is_shared:
                marks[seat] = 0
            if is_stopped(memory):
                return alpha
            if score > best:
                best, best_move = score, index
                if score > alpha:
                    break
            place += 1
        if best > alpha:
            break
    remember_score(table, player, opponent, alpha, best, num_empties, best_move, confidence, memory, rules)
    return best


@kernel
def solve(
    player: Bitboard,
    opponent: Bitboard,
    alpha: int,
    num_empties: int,
    memory: np.ndarray,
    table: np.ndarray,
    marks: np.ndarray,
    evaluation: Evaluation,
    rules: Rules,
) -> int:
    """Returns a score that says whether a position's exceeds `alpha`, and anything once the search is stopped.

    It is a guess where there is an END_MARGIN in memory.
    """
    return solve_deep(
        player,
        opponent,
        alpha,
        num_empties,
        int(np.int64(KEYS)),  # a literal would compile a second search, see `jit.kernel`
        span_of(memory),
        span_of(table),
        span_of(marks),
        with_spans(evaluation),
        rules,
    )


@kernel
def next_alpha(guess: int, lower: int, upper: int) -> int:
    """Returns what to ask next of a score that is from `lower` to `upper` and seems to be `guess`: does it exceed this?

    The answer moves a bound, whatever it is.
    """
    return min(max(guess, lower + 1), upper) - 1


@kernel
def score_of(
    player: Bitboard,
    opponent: Bitboard,
    guess: int,
    num_empties: int,
    memory: np.ndarray,
    table: np.ndarray,
    marks: np.ndarray,
    evaluation: Evaluation,
    rules: Rules,
) -> int:
    """Returns a position's score, sought from `guess` on as `Solver` does: for searches that nobody stops."""
    upper = rules.size * rules.size
    lower, score = -upper, guess
    while lower < upper:
        alpha = next_alpha(score, lower, upper)
        score = solve(player, opponent, alpha, num_empties, memory, table, marks, evaluation, rules)
        if score > alpha:
            lower = score
        else:
            upper = score
    return lower
