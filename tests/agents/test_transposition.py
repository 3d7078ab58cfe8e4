"""The table of positions: what is written is found, what gives way is the least, and torn entries are nobody's."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.search import transposition
from agents.search.transposition import (
    EXACT,
    GUESSED,
    MOST_GENERATIONS,
    WAYS,
    bucket_of,
    entry_words,
    facts_of,
    make_table,
)
from reversi_env.geometry import Bitboard

Boards = tuple[Bitboard, Bitboard]

bounds = st.integers(-32_767, 32_767)
byte = st.integers(0, 255)
generations = st.integers(1, MOST_GENERATIONS)
word = st.integers(0, 2**64 - 1).map(np.uint64)


def boards(words: int) -> st.SearchStrategy[Boards]:
    board = st.tuples(*[word] * words)
    return st.tuples(board, board)


any_boards = st.sampled_from([1, 2]).flatmap(boards)


def find(table: np.ndarray, position: Boards, generation: int) -> int:
    return int(transposition.find(table, *position, generation))


def remember(table: np.ndarray, position: Boards, facts: int) -> None:
    transposition.remember(table, *position, np.uint64(facts))


@given(bounds, bounds, byte, byte, byte, byte)
def test_facts_are_unpacked_as_they_were_packed(
    lower: int, upper: int, depth: int, confidence: int, move: int, generation: int
) -> None:
    facts = np.uint64(facts_of(lower, upper, depth, confidence, move, generation))
    assert transposition.lower_of(facts) == lower
    assert transposition.upper_of(facts) == upper
    assert transposition.depth_of(facts) == depth
    assert transposition.confidence_of(facts) == confidence
    assert transposition.move_of(facts) == move
    assert transposition.generation_of(facts) == generation


@given(any_boards, any_boards, bounds, byte, generations, generations)
def test_what_is_written_is_found_in_its_generation_and_for_its_position_alone(
    position: Boards, other: Boards, score: int, depth: int, generation: int, later: int
) -> None:
    table = make_table(64, len(position[0]))
    assert find(table, position, generation) == 0
    facts = int(facts_of(score, score, depth, EXACT, 3, generation))
    remember(table, position, facts)
    assert find(table, position, generation) == facts
    if later != generation:
        assert find(table, position, later) == 0
    if len(other[0]) == len(position[0]) and other != position:
        assert find(table, other, generation) == 0
    if position[0] != position[1]:
        assert find(table, (position[1], position[0]), generation) == 0


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("num_entries", [2, 4, 1024])
def test_buckets_are_lines_of_memory_within_the_table(num_entries: int, words: int) -> None:
    table = make_table(num_entries, words)
    assert len(table) == num_entries * entry_words(words)
    assert not table.any()
    assert table.ctypes.data % 64 == 0
    generator = np.random.default_rng(0)
    places = set()
    for _ in range(40 * num_entries):
        numbers = generator.integers(0, 2**64, 2 * words, np.uint64)
        places.add(int(bucket_of(table, tuple(numbers[:words]), tuple(numbers[words:]))))
    assert places == set(range(0, len(table), WAYS * entry_words(words)))  # each, and no other


@pytest.mark.parametrize("num_entries", [0, 1, 3, 1000, -2])
def test_a_table_has_a_power_of_two_of_entries(num_entries: int) -> None:
    with pytest.raises(ValueError, match=f"power of two of entries, at least 2, got {num_entries}"):
        make_table(num_entries, 1)


class Facts(NamedTuple):
    lower: int
    upper: int
    depth: int
    confidence: int
    move: int
    generation: int


class Bucket:
    """A bucket by its documentation, in plain Python: entries are positions and facts, at first of no generation."""

    def __init__(self) -> None:
        self.entries: list[tuple[Boards | None, Facts]] = [(None, Facts(0, 0, 0, 0, 0, 0))] * WAYS

    def remember(self, position: Boards, new: Facts) -> None:
        for place, (there, old) in enumerate(self.entries):
            if there == position and old.generation == new.generation:
                if self._worth(old) == self._worth(new):
                    new = new._replace(lower=max(new.lower, old.lower), upper=min(new.upper, old.upper))
                if self._worth(old) <= self._worth(new):
                    self.entries[place] = (position, new)
                return
        worths = [self._worth(old) if old.generation == new.generation else () for _, old in self.entries]
        self.entries[worths.index(min(worths))] = (position, new)

    @staticmethod
    def _worth(facts: Facts) -> tuple[int, ...]:
        return facts.confidence == EXACT, facts.depth, facts.confidence

    def find(self, position: Boards, generation: int) -> int:
        for there, facts in self.entries:
            if there == position and facts.generation == generation:
                return int(facts_of(*facts))
        return 0


few_facts = st.builds(
    Facts,
    lower=st.integers(-9, 9),
    upper=st.integers(-9, 9),
    depth=st.integers(1, 4),
    confidence=st.sampled_from([0, GUESSED, EXACT]),
    move=byte,
    generation=st.integers(1, 2),
)


@given(st.lists(st.tuples(st.integers(0, 3), few_facts), max_size=20), st.sampled_from([1, 2]))
def test_a_bucket_keeps_what_is_documented(writes: list[tuple[int, Facts]], words: int) -> None:
    positions = [((np.uint64(number),) * words, (np.uint64(1 << 63),) * words) for number in range(4)]
    table, model = make_table(WAYS, words), Bucket()  # one bucket
    for number, facts in writes:
        remember(table, positions[number], facts_of(*facts))
        model.remember(positions[number], facts)
        for position, generation in itertools.product(positions, (1, 2)):
            assert find(table, position, generation) == model.find(position, generation)


@given(st.sampled_from([1, 2]).flatmap(lambda words: st.tuples(boards(words), boards(words))), bounds, bounds)
def test_an_entry_that_two_threads_tore_belongs_to_no_position(
    positions: tuple[Boards, Boards], score: int, other_score: int
) -> None:
    written = [
        int(facts_of(score, score, 9, EXACT, 1, 1)),
        int(facts_of(other_score, other_score, 9, EXACT, 2, 1)),
    ]
    words = len(positions[0][0])
    tables = [make_table(WAYS, words), make_table(WAYS, words)]
    for table, position, facts in zip(tables, positions, written, strict=True):
        remember(table, position, facts)
    for choice in itertools.product((0, 1), repeat=2 * words + 1):  # from which of them each word is
        torn = make_table(WAYS, words)
        for place, thread in enumerate(choice):
            torn[place] = tables[thread][place]
        is_whole = [set(choice) == {thread} for thread in (0, 1)]
        for position in positions:
            expected = [
                facts
                for facts, there, whole in zip(written, positions, is_whole, strict=True)
                if whole and there == position
            ]
            assert find(torn, position, 1) == (expected[0] if expected else 0)
