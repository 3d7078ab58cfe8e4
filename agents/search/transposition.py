"""A table of positions already searched: many orders of moves meet in one position.

Two threads may share a table without locks: an entry holds its boards combined with what is known of them by
exclusive or, so one that two threads wrote at the same moment belongs to no position (Hyatt and Mann, "A Lock-less
Transposition Table Implementation for Parallel Search", ICGA Journal 25, 2002). An entry holds the whole boards, so two
positions never pass for each other. It counts only in the generation that wrote it, so a search does not depend on what
the table held before, and need not clear it.

What is known of a position is one uint64 of facts: bounds of its value, how deep and how surely that was searched, and
a good move. 0 stands for nothing known.
"""

import numpy as np
from numba.cpython.unsafe.tuple import tuple_setitem

from reversi_env.geometry import Bitboard
from reversi_env.jit import kernel
from reversi_env.vectors import is_same, no_square

MOST_GENERATIONS = 255  # generations are 1 to this; then the table must be cleared
EXACT = 255  # the confidence of proven bounds of final scores
GUESSED = 254  # of guessed ones; the bounds of any other confidence count evaluations
WAYS = 2  # entries that share a bucket, and a line of the processor's cache

_LINE_BYTES = 64
_UNLIMITED = 1 << 62
_OFFSET = 1 << 15  # bounds are kept as numbers from 0 on
_MIX_1 = np.uint64(0x9E3779B97F4A7C15)  # odd numbers without a pattern, from SplitMix64
_MIX_2 = np.uint64(0xBF58476D1CE4E5B9)
_BYTE = np.uint64(0xFF)
_TWO_BYTES = np.uint64(0xFFFF)
_HALF = np.uint64(32)


def entry_words(words: int) -> int:
    """Returns how many uint64 an entry takes for boards of so many words: a power of two, to fill whole cache lines."""
    return 4 if words == 1 else 8


def make_table(num_entries: int, words: int) -> np.ndarray:
    """Returns an empty table for boards of so many words, uint64 [N · entry_words]; N, a power of two, is given."""
    if num_entries < WAYS or num_entries & (num_entries - 1):
        raise ValueError(f"a table has a power of two of entries, at least {WAYS}, got {num_entries}")
    spare = _LINE_BYTES // 8
    memory = np.zeros(num_entries * entry_words(words) + spare, np.uint64)
    first = -memory.ctypes.data % _LINE_BYTES // 8
    return memory[first : len(memory) - spare + first]


@kernel
def _signed(bits: np.uint64) -> int:
    return np.int64(bits)  # type: ignore[return-value]  # what a kernel calls int


@kernel
def facts_of(lower: int, upper: int, depth: int, confidence: int, move: int, generation: int) -> np.uint64:
    """Returns facts in one word: bounds within ±32,767, the others within a byte."""
    return (
        np.uint64(lower + _OFFSET)
        | np.uint64(upper + _OFFSET) << np.uint64(16)
        | np.uint64(depth) << np.uint64(32)
        | np.uint64(confidence) << np.uint64(40)
        | np.uint64(move) << np.uint64(48)
        | np.uint64(generation) << np.uint64(56)
    )


@kernel
def lower_of(facts: np.uint64) -> int:
    """Returns the lower bound of the value."""
    return _signed(facts & _TWO_BYTES) - _OFFSET


@kernel
def upper_of(facts: np.uint64) -> int:
    """Returns the upper bound of the value."""
    return _signed(facts >> np.uint64(16) & _TWO_BYTES) - _OFFSET


@kernel
def depth_of(facts: np.uint64) -> int:
    """Returns how many plies the bounds look ahead."""
    return _signed(facts >> np.uint64(32) & _BYTE)


@kernel
def confidence_of(facts: np.uint64) -> int:
    """Returns how surely the bounds hold at their depth: the search's own measure, GUESSED or EXACT."""
    return _signed(facts >> np.uint64(40) & _BYTE)


@kernel
def move_of(facts: np.uint64) -> int:
    """Returns the move that the search thought best."""
    return _signed(facts >> np.uint64(48) & _BYTE)


@kernel
def generation_of(facts: np.uint64) -> int:
    """Returns the generation that wrote the facts; 0 for nothing known."""
    return _signed(facts >> np.uint64(56))


@kernel
def bucket_of(table: np.ndarray, player: Bitboard, opponent: Bitboard) -> int:
    """Returns where in `table` the bucket of a position begins."""
    mixed = np.uint64(0)
    for word in range(len(player)):
        mixed = (mixed ^ player[word]) * _MIX_1
        mixed = ((mixed ^ mixed >> _HALF) + opponent[word]) * _MIX_2
    mixed ^= mixed >> _HALF
    bucket_words = _bucket_words(player)
    return _signed(mixed & np.uint64(len(table) // bucket_words - 1)) * bucket_words


@kernel
def _bucket_words(like: Bitboard) -> int:
    return 8 if len(like) == 1 else 16  # WAYS · entry_words


@kernel
def _boards_at(table: np.ndarray, place: int, facts: np.uint64, like: Bitboard) -> tuple[Bitboard, Bitboard]:
    player, opponent = no_square(like), no_square(like)
    for word in range(len(like)):
        player = tuple_setitem(player, word, table[place + word] ^ facts)
        opponent = tuple_setitem(opponent, word, table[place + len(like) + word] ^ facts)
    return player, opponent


@kernel
def find(table: np.ndarray, player: Bitboard, opponent: Bitboard, generation: int) -> np.uint64:
    """Returns the facts that this generation wrote about a position, 0 where it wrote none."""
    place = bucket_of(table, player, opponent)
    width = _bucket_words(player) // WAYS
    for _ in range(WAYS):
        facts: np.uint64 = table[place + 2 * len(player)]
        boards = _boards_at(table, place, facts, player)
        if is_same(boards[0], player) and is_same(boards[1], opponent) and generation_of(facts) == generation:
            return facts
        place += width
    return np.uint64(0)


@kernel
def remember(table: np.ndarray, player: Bitboard, opponent: Bitboard, facts: np.uint64) -> None:
    """Writes facts about a position over its own entry, else over the least of its bucket.

    Facts of another generation are the least, then those of the shallower search. What the table knows from a deeper
    or surer search of the position stays; bounds of an equal one are brought together.
    """
    generation = generation_of(facts)
    place = bucket_of(table, player, opponent)
    width = _bucket_words(player) // WAYS
    chosen, least = place, _UNLIMITED
    for _ in range(WAYS):
        there = table[place + 2 * len(player)]
        worth = _worth(there) if generation_of(there) == generation else -1
        boards = _boards_at(table, place, there, player)
        if worth >= 0 and is_same(boards[0], player) and is_same(boards[1], opponent):
            if worth > _worth(facts):
                return
            if worth == _worth(facts):
                facts = facts_of(
                    max(lower_of(facts), lower_of(there)),
                    min(upper_of(facts), upper_of(there)),
                    depth_of(facts),
                    confidence_of(facts),
                    move_of(facts),
                    generation,
                )
            chosen = place
            break
        if worth < least:
            chosen, least = place, worth
        place += width
    for word in range(len(player)):
        table[chosen + word] = player[word] ^ facts
        table[chosen + len(player) + word] = opponent[word] ^ facts
    table[chosen + 2 * len(player)] = facts


@kernel
def _worth(facts: np.uint64) -> int:
    """Returns a number that is greater for facts of a surer search: exact, then deeper, then of more confidence."""
    is_exact = 1 if confidence_of(facts) == EXACT else 0
    return is_exact << 16 | depth_of(facts) << 8 | confidence_of(facts)
