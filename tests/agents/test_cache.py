"""The evaluation cache: it answers as its evaluator does, and asks it once for all orientations of a position."""

import threading

import numpy as np
import pytest

from agents.mcts.cache import WAYS, CachedEvaluator
from reversi_env import Game, Position, Variant, random_games
from reversi_env.symmetry import NUM_SYMMETRIES, inverse, transform_policy, transform_position


class Oracle:
    """Answers by numbers drawn from a position's boards, so two positions, or two orientations of one, differ."""

    def __init__(self):
        self.asked = []

    def __call__(self, player, opponent, variant):
        self.asked += [(*own.tolist(), *other.tolist()) for own, other in zip(player, opponent, strict=True)]
        policy = np.empty((len(player), variant.num_actions), np.float32)
        value = np.empty(len(player), np.float32)
        for row, (own, other) in enumerate(zip(player, opponent, strict=True)):
            policy[row], value[row] = self.answer(own, other, variant)
        return policy, value

    @staticmethod
    def answer(own, other, variant):
        rng = np.random.default_rng([*own.tolist(), *other.tolist()])
        return rng.random(variant.num_actions, np.float32), np.float32(rng.random())


def boards(positions):
    return (
        np.array([position.player for position in positions], np.uint64),
        np.array([position.opponent for position in positions], np.uint64),
    )


def some_positions(variant, num_games=3, seed=1):
    games = random_games(Position(variant), num_games, seed=seed)
    return [
        position
        for moves, length in zip(games.moves, games.lengths, strict=True)
        for position in Game.from_moves(moves[:length].tolist(), variant).positions[:-1]
    ]


def assert_is_an_orientation(position, policy, value):
    """Holds where the answer is the oracle's to one of the orientations, its policy turned back."""
    found = []
    for symmetry in range(NUM_SYMMETRIES):
        turned = transform_position(position, symmetry)
        answer, expected = Oracle.answer(*(board[0] for board in boards([turned])), position.variant)
        back = transform_policy(answer, inverse(symmetry), position.variant.size)
        found.append(np.array_equal(back, policy) and expected == value)
    assert any(found)


@pytest.mark.parametrize("name", Variant.NAMES)
def test_an_answer_is_the_evaluators_for_one_orientation(name):
    variant = Variant.named(name)
    positions = some_positions(variant)
    cached = CachedEvaluator(Oracle(), 1 << 10)
    for _ in range(2):  # the second time from the table
        for position, policy, value in zip(positions, *cached(*boards(positions), variant), strict=True):
            assert_is_an_orientation(position, policy, value)


def orientations(position):
    """Returns the boards of the eight orientations of a position, which all of them share."""
    turned = [transform_position(position, symmetry) for symmetry in range(NUM_SYMMETRIES)]
    return frozenset(tuple(map(int, (*one.player, *one.opponent))) for one in turned)


@pytest.mark.parametrize("name", ["othello-4x4", "othello-6x6", "othello", "othello-10x10"])
def test_all_orientations_of_a_position_are_evaluated_once(name):
    variant = Variant.named(name)
    positions = some_positions(variant)
    turned = [
        transform_position(position, symmetry) for position in positions for symmetry in reversed(range(NUM_SYMMETRIES))
    ]
    num_classes = len({orientations(position) for position in positions})
    oracle = Oracle()
    cached = CachedEvaluator(oracle, 1 << 12)
    policies, values = cached(*boards(turned), variant)  # within a batch
    assert len(oracle.asked) == len(set(oracle.asked)) == num_classes
    assert (cached.lookups, cached.hits) == (len(turned), len(turned) - num_classes)
    again = cached(*boards(turned[::-1]), variant)  # and from call to call
    assert len(oracle.asked) == num_classes
    assert (cached.lookups, cached.hits) == (2 * len(turned), 2 * len(turned) - num_classes)
    np.testing.assert_array_equal(again[0][::-1], policies)
    np.testing.assert_array_equal(again[1][::-1], values)
    for row in range(0, len(turned), NUM_SYMMETRIES):
        assert len(set(values[row : row + NUM_SYMMETRIES].tolist())) == 1


def test_a_position_that_is_its_own_mirror_image_is_answered():
    variant = Variant()
    start = Position(variant)
    assert len(orientations(start)) < NUM_SYMMETRIES
    cached = CachedEvaluator(Oracle(), 8)
    for _ in range(2):
        policy, value = cached(*boards([start]), variant)
        assert_is_an_orientation(start, policy[0], value[0])


def test_a_tiny_table_forgets_and_never_errs():
    variant = Variant()
    positions = some_positions(variant, num_games=6)
    oracle = Oracle()
    cached = CachedEvaluator(oracle, WAYS)
    rng = np.random.default_rng(1)
    for _ in range(30):
        asked = [positions[index] for index in rng.integers(40, size=17)]
        for position, policy, value in zip(asked, *cached(*boards(asked), variant), strict=True):
            assert_is_an_orientation(position, policy, value)
    assert cached.hits > 0
    assert (
        len(oracle.asked) == cached.lookups - cached.hits > len({orientations(position) for position in positions[:40]})
    )


def test_what_was_of_use_last_stays():
    variant = Variant()
    first, *others = some_positions(variant, num_games=1)[10:30]
    oracle = Oracle()
    cached = CachedEvaluator(oracle, WAYS)  # one bucket
    for other in others:
        cached(*boards([first]), variant)
        cached(*boards([other]), variant)
    assert len(oracle.asked) == 1 + len(others)


def test_another_variant_begins_the_table_anew():
    oracle = Oracle()
    cached = CachedEvaluator(oracle, 64)
    for name in ("othello", "anti-reversi", "othello-10x10", "othello"):
        variant = Variant.named(name)
        position = Position(variant)
        policy, value = cached(*boards([position]), variant)
        assert_is_an_orientation(position, policy[0], value[0])
    assert (len(oracle.asked), cached.hits) == (4, 0)


def test_threads_share_a_cache():
    variant = Variant()
    positions = some_positions(variant)[:60]
    cached = CachedEvaluator(Oracle(), 16)
    faults = []

    def ask(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(10):
                asked = [positions[index] for index in rng.integers(len(positions), size=5)]
                for position, policy, value in zip(asked, *cached(*boards(asked), variant), strict=True):
                    assert_is_an_orientation(position, policy, value)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert cached.lookups == 150


def test_a_cache_without_room_is_refused():
    with pytest.raises(ValueError, match=f"at least {WAYS} entries, got 3"):
        CachedEvaluator(Oracle(), 3)
