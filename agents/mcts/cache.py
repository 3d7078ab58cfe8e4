"""An evaluator that remembers: what it was asked before, in this or a mirrored or turned position, it answers itself.

Positions are kept in the one of their eight orientations whose boards are the least, and evaluated in it: so an answer
depends on the position alone, not on which of its orientations was met first. An entry holds the whole boards, so two
positions never pass for each other.
"""

import threading
import time
from functools import cache
from typing import NamedTuple

import numpy as np

from agents.mcts.evaluator import Evaluator
from reversi_env import Variant
from reversi_env.bitboard import load, store
from reversi_env.geometry import Bitboard, bit_indices, num_words, words_of
from reversi_env.jit import kernel
from reversi_env.random_bits import next_state, scramble
from reversi_env.symmetry import NUM_SYMMETRIES, square_map
from reversi_env.vectors import is_same, no_square, union

WAYS = 4  # entries that share a bucket; the one that was not of use for longest makes room

_BYTES = 8  # of a word
_VALUES = 256  # of a byte
_BYTE = np.uint64(255)
_NOBODY = -1


class Table(NamedTuple):
    """N entries for boards of W words and A actions."""

    player: np.ndarray  # uint64 [N, W]
    opponent: np.ndarray  # uint64 [N, W]
    last_use: np.ndarray  # int64 [N]  the number of a call; 0: there is no entry
    policy: np.ndarray  # float32 [N, A]
    value: np.ndarray  # float32 [N]


class Symmetries(NamedTuple):
    """The eight symmetries of a board of one size."""

    images: np.ndarray  # uint64 [8 · 8W · 256, W]  what each value of each byte of a board becomes
    actions: np.ndarray  # int32 [8, A]  what each action becomes


class Misses(NamedTuple):
    """What the table does not know of a batch of B positions, each once."""

    player: np.ndarray  # uint64 [B, W]
    opponent: np.ndarray  # uint64 [B, W]
    symmetry: np.ndarray  # int8 [B]  that leads each position of the batch to the one that is evaluated
    row: np.ndarray  # int32 [B]  of each position of the batch among these; NOBODY where the table knew it
    slots: np.ndarray  # int32 [S]  rows by hash, S a power of two above B


class CachedEvaluator:
    """An `agents.mcts.Evaluator` over another, with a table of `num_entries` of its answers. Threads may share one.

    On 8×8 an entry takes 288 bytes, on 10×10 448. The table serves one variant; it is begun anew for another.
    """

    def __init__(self, evaluate: Evaluator, num_entries: int) -> None:
        if num_entries < WAYS:
            raise ValueError(f"a cache has at least {WAYS} entries, got {num_entries}")
        self.evaluate = evaluate
        self.num_entries = num_entries // WAYS * WAYS
        self.lookups = 0  # positions asked for
        self.evaluator_s = 0.0  # CPU seconds in it
        self.hits = 0  # of these, positions that the other evaluator was not asked for
        self._lock = threading.Lock()
        self._num_calls = 0
        self._variant: Variant | None = None
        self._table = _new_table(0, 1, 1)

    def __call__(self, player: np.ndarray, opponent: np.ndarray, variant: Variant) -> tuple[np.ndarray, np.ndarray]:
        num_positions = len(player)
        symmetries = _symmetries(variant.size)
        misses = _new_misses(num_positions, player.shape[1])
        policy = np.empty((num_positions, variant.num_actions), np.float32)
        value = np.empty(num_positions, np.float32)
        with self._lock:
            if variant != self._variant:
                self._variant = variant
                self._table = _new_table(self.num_entries, player.shape[1], variant.num_actions)
            self._num_calls += 1
            call, table = self._num_calls, self._table
            num_misses = _look_up(
                player, opponent, table, symmetries, call, misses, policy, value, variant.rules.squares
            )
            self.lookups += num_positions
            self.hits += num_positions - num_misses
        if num_misses:
            began = time.thread_time()
            found = self.evaluate(misses.player[:num_misses], misses.opponent[:num_misses], variant)
            evaluator_s = time.thread_time() - began
            with self._lock:
                self.evaluator_s += evaluator_s
                _take(*found, table, symmetries, call, misses, policy, value, variant.rules.squares)
        return policy, value


def _new_table(num_entries: int, words: int, num_actions: int) -> Table:
    return Table(
        player=np.zeros((num_entries, words), np.uint64),
        opponent=np.zeros((num_entries, words), np.uint64),
        last_use=np.zeros(num_entries, np.int64),
        policy=np.zeros((num_entries, num_actions), np.float32),
        value=np.zeros(num_entries, np.float32),
    )


def _new_misses(num_positions: int, words: int) -> Misses:
    return Misses(
        player=np.empty((num_positions, words), np.uint64),
        opponent=np.empty((num_positions, words), np.uint64),
        symmetry=np.empty(num_positions, np.int8),
        row=np.empty(num_positions, np.int32),
        slots=np.full(1 << num_positions.bit_length(), _NOBODY, np.int32),
    )


@cache
def _symmetries(size: int) -> Symmetries:
    """Returns the symmetries of a board of `size` columns: 128 KB, or 512 on two words."""
    words = num_words(size)
    bits = bit_indices(size)
    images = np.zeros((NUM_SYMMETRIES, words * _BYTES, _VALUES, words), np.uint64)
    values = np.arange(_VALUES)
    for symmetry in range(NUM_SYMMETRIES):
        for square, goes_to in enumerate(square_map(symmetry, size)):
            byte, bit = divmod(bits[square], 8)
            images[symmetry, byte, values >> bit & 1 == 1] |= np.array(words_of(1 << bits[goes_to], size), np.uint64)
    actions = [[*square_map(symmetry, size), size * size] for symmetry in range(NUM_SYMMETRIES)]
    return Symmetries(images.reshape(-1, words), np.array(actions, np.int32))


@kernel
def _signed(bits: np.uint64) -> int:
    return np.int64(bits)  # type: ignore[return-value]  # what a kernel calls int


@kernel
def _image(board: Bitboard, symmetry: int, images: np.ndarray) -> Bitboard:
    image = no_square(board)
    first = symmetry * len(board) * _BYTES * _VALUES
    for word in board:
        for _ in range(_BYTES):
            image = union(image, load(images, first + _signed(word & _BYTE), board))
            word >>= np.uint64(8)
            first += _VALUES
    return image


@kernel
def _compare(one: Bitboard, other: Bitboard) -> int:
    """Returns a number below 0 where `one` is before `other`, above 0 where it is behind it, and 0 for the same."""
    for word in range(len(one)):
        if one[word] != other[word]:
            return -1 if one[word] < other[word] else 1
    return 0


@kernel
def _least(player: Bitboard, opponent: Bitboard, images: np.ndarray) -> tuple[Bitboard, Bitboard, int]:
    """Returns the least of the eight orientations of a position, and the first symmetry that leads to it."""
    own, other, chosen = player, opponent, 0
    for symmetry in range(1, NUM_SYMMETRIES):
        image = _image(player, symmetry, images)
        order = _compare(image, own)
        if order <= 0:
            other_image = _image(opponent, symmetry, images)
            if order < 0 or _compare(other_image, other) < 0:
                own, other, chosen = image, other_image, symmetry
    return own, other, chosen


@kernel
def _hash(player: Bitboard, opponent: Bitboard) -> np.uint64:
    state = np.uint64(0)
    for board in (player, opponent):
        for word in board:
            state = scramble(next_state(state ^ word))
    return state


@kernel
def _is_at(row: int, players: np.ndarray, opponents: np.ndarray, player: Bitboard, opponent: Bitboard) -> bool:
    """Returns whether a position stands in row `row` of boards uint64 [N, W]."""
    return is_same(load(players, row, player), player) and is_same(load(opponents, row, opponent), opponent)


@kernel
def _bucket(table: Table, hashed: np.uint64) -> int:
    """Returns the first entry of the bucket of a position."""
    return WAYS * _signed(hashed % np.uint64(table.last_use.shape[0] // WAYS))


@kernel
def _find(table: Table, hashed: np.uint64, player: Bitboard, opponent: Bitboard) -> int:
    """Returns the entry of a position, or NOBODY."""
    first = _bucket(table, hashed)
    for entry in range(first, first + WAYS):
        if table.last_use[entry] and _is_at(entry, table.player, table.opponent, player, opponent):
            return entry
    return _NOBODY


@kernel
def _room(table: Table, hashed: np.uint64, player: Bitboard, opponent: Bitboard) -> int:
    """Returns the entry to be written for a position: its own, else the one whose last use is longest ago."""
    entry = _find(table, hashed, player, opponent)
    if entry == _NOBODY:
        entry = _bucket(table, hashed)
        for other in range(entry + 1, entry + WAYS):
            if table.last_use[other] < table.last_use[entry]:
                entry = other
    return entry


@kernel
def _turn_back(policy: np.ndarray, row: int, actions: np.ndarray, symmetry: int, answer: np.ndarray, to: int) -> None:
    """Writes row `row` of policies of least orientations to row `to` of `answer`, for the position as it was asked."""
    for action in range(answer.shape[1]):
        answer[to, action] = policy[row, actions[symmetry, action]]


@kernel
def _look_up(
    player: np.ndarray,
    opponent: np.ndarray,
    table: Table,
    symmetries: Symmetries,
    call: int,
    misses: Misses,
    policy: np.ndarray,
    value: np.ndarray,
    like: Bitboard,
) -> int:
    """Fills `policy` and `value` where the table knows a position, and `misses` with the others; returns how many."""
    num_misses = 0
    slot_mask = np.uint64(misses.slots.shape[0] - 1)
    for row in range(player.shape[0]):
        own, other, symmetry = _least(load(player, row, like), load(opponent, row, like), symmetries.images)
        hashed = _hash(own, other)
        misses.symmetry[row] = symmetry
        misses.row[row] = _NOBODY
        entry = _find(table, hashed, own, other)
        if entry != _NOBODY:
            table.last_use[entry] = call
            _turn_back(table.policy, entry, symmetries.actions, symmetry, policy, row)
            value[row] = table.value[entry]
            continue
        slot = hashed & slot_mask
        while misses.slots[slot] != _NOBODY and not _is_at(
            misses.slots[slot], misses.player, misses.opponent, own, other
        ):
            slot = (slot + np.uint64(1)) & slot_mask
        if misses.slots[slot] == _NOBODY:
            store(misses.player, num_misses, own)
            store(misses.opponent, num_misses, other)
            misses.slots[slot] = num_misses
            num_misses += 1
        misses.row[row] = misses.slots[slot]
    return num_misses


@kernel
def _take(
    found_policy: np.ndarray,
    found_value: np.ndarray,
    table: Table,
    symmetries: Symmetries,
    call: int,
    misses: Misses,
    policy: np.ndarray,
    value: np.ndarray,
    like: Bitboard,
) -> None:
    """Writes what was found of the misses, float32 [M, A] and [M], into the table, and fills `policy` and `value`."""
    for row in range(found_value.shape[0]):
        own, other = load(misses.player, row, like), load(misses.opponent, row, like)
        entry = _room(table, _hash(own, other), own, other)
        store(table.player, entry, own)
        store(table.opponent, entry, other)
        table.last_use[entry] = call
        table.value[entry] = found_value[row]
        for action in range(found_policy.shape[1]):
            table.policy[entry, action] = found_policy[row, action]
    for row in range(policy.shape[0]):
        miss = misses.row[row]
        if miss != _NOBODY:
            _turn_back(found_policy, miss, symmetries.actions, misses.symmetry[row], policy, row)
            value[row] = found_value[miss]
