"""A table of positions already searched: many orders of moves meet in one position.

An entry holds the whole boards, so two positions never pass for each other. It counts only in the generation that
wrote it, so a search does not depend on what the table held before, and need not clear it.
"""

from typing import NamedTuple

import numpy as np

from reversi_env.bitboard import load, store
from reversi_env.geometry import Bitboard
from reversi_env.jit import kernel
from reversi_env.random_bits import scramble
from reversi_env.vectors import is_same

LOWER, UPPER, DEPTH, MOVE, GENERATION = 0, 1, 2, 3, 4  # columns of `facts`
NOT_FOUND = -1


class Table(NamedTuple):
    """N entries, a power of two; entries 2n and 2n+1 are a bucket, which its positions share."""

    boards: np.ndarray  # uint64 [2N, W]: rows 2n and 2n+1 are the player and the opponent of entry n
    facts: np.ndarray  # int32 [N, 5]: bounds of the value, the depth they hold for, a good move, who wrote it when


def make_table(num_entries: int, words: int) -> Table:
    """Returns an empty table for boards of so many words; generations begin at 1."""
    return Table(np.zeros((2 * num_entries, words), np.uint64), np.zeros((num_entries, 5), np.int32))


@kernel
def bucket_of(table: Table, player: Bitboard, opponent: Bitboard) -> int:
    """Returns the first of the two entries that a position may lie in."""
    mixed = np.uint64(0)
    for word in range(len(player)):
        mixed = scramble(mixed ^ player[word])
        mixed = scramble(mixed ^ opponent[word])
    return int(mixed & np.uint64(table.facts.shape[0] - 1)) & ~1


@kernel
def find(table: Table, player: Bitboard, opponent: Bitboard, generation: int) -> int:
    """Returns the entry of a position that this generation wrote, or NOT_FOUND."""
    bucket = bucket_of(table, player, opponent)
    for entry in range(bucket, bucket + 2):
        if (
            table.facts[entry, GENERATION] == generation
            and is_same(load(table.boards, 2 * entry, player), player)
            and is_same(load(table.boards, 2 * entry + 1, opponent), opponent)
        ):
            return entry
    return NOT_FOUND


@kernel
def remember(
    table: Table,
    player: Bitboard,
    opponent: Bitboard,
    generation: int,
    depth: int,
    lower: int,
    upper: int,
    move: int,
) -> None:
    """Writes a position into its own entry, else over the other generation's or the shallower one of its bucket."""
    entry = find(table, player, opponent, generation)
    if entry == NOT_FOUND:
        entry = bucket_of(table, player, opponent)
        first, second = table.facts[entry], table.facts[entry + 1]
        if first[GENERATION] == generation and (second[GENERATION] != generation or second[DEPTH] < first[DEPTH]):
            entry += 1
        store(table.boards, 2 * entry, player)
        store(table.boards, 2 * entry + 1, opponent)
        table.facts[entry, GENERATION] = generation
    elif table.facts[entry, DEPTH] == depth:
        lower = max(lower, table.facts[entry, LOWER])
        upper = min(upper, table.facts[entry, UPPER])
    table.facts[entry, LOWER] = lower
    table.facts[entry, UPPER] = upper
    table.facts[entry, DEPTH] = depth
    table.facts[entry, MOVE] = move
