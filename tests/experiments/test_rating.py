"""Scores, Elo and their intervals: against closed forms, and against players whose strength is known."""

import math

import numpy as np
import pytest

from experiments.rating import Estimate, design_effect, elo, elo_difference, elo_text, ratings, score_interval

WON, LOST, SPLIT = 2.0, 0.0, 1.0


def drawn_pairs(rng: np.random.Generator, win: float, num_pairs: int) -> np.ndarray:
    """Points of pairs whose games are independent and never drawn."""
    return np.asarray((rng.random((num_pairs, 2)) < win).sum(axis=1), float)


def test_score_counts_draws_half() -> None:
    assert score_interval(np.array([2, 1.5, 1, 0.5, 0])).value == 0.5
    assert score_interval(np.array([1.5, 1.5])).value == 0.75


@pytest.mark.parametrize("num_pairs", [1, 5, 100])
def test_interval_at_100_percent_is_wilsons_of_the_pairs(num_pairs: int) -> None:
    score = score_interval(np.full(num_pairs, WON))
    assert (score.value, score.high) == (1, 1)
    assert score.low == pytest.approx(num_pairs / (num_pairs + 1.959964**2))


def test_loser_has_the_mirrored_interval() -> None:
    points = np.array([2, 2, 1.5, 0, 1, 2, 2])
    winner, loser = score_interval(points), score_interval(2 - points)
    assert (loser.value, loser.low, loser.high) == pytest.approx((1 - winner.value, 1 - winner.high, 1 - winner.low))


def test_pairs_that_split_tell_more_than_pairs_won_or_lost_as_a_whole() -> None:
    splits = score_interval(np.full(100, SPLIT))
    wholes = score_interval(np.array([WON, LOST] * 50))
    assert splits.value == wholes.value == 0.5
    assert splits.high - splits.low < (wholes.high - wholes.low) / 4


def test_independent_games_have_a_design_effect_of_one() -> None:
    points = drawn_pairs(np.random.default_rng(1), 0.7, 20_000)
    assert design_effect(points) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(
    "chances",  # of 0, ½, 1, 1½ and 2 points in a pair
    [
        (0.1, 0.2, 0.4, 0.2, 0.1),
        (0.25, 0, 0.5, 0, 0.25),
        (0.1, 0, 0, 0, 0.9),
        (0.01, 0.01, 0.17, 0.02, 0.79),
        (0, 0, 0.02, 0, 0.98),
        (0, 0.05, 0.9, 0.05, 0),
    ],
)
def test_interval_holds_the_true_score_19_times_in_20(chances: tuple[float, ...]) -> None:
    rng = np.random.default_rng(7)
    points = np.arange(5) / 2
    held = 0
    for counts in rng.multinomial(100, chances, size=500):
        score = score_interval(np.repeat(points, counts))
        held += score.low <= np.dot(points, chances) / 2 <= score.high
    assert held / 500 > 0.92


def test_elo_is_the_logistic_curve_backwards() -> None:
    for difference in (-400, -35, 0, 120, 800):
        assert elo(1 / (1 + 10 ** (-difference / 400))) == pytest.approx(difference)
    assert elo(1) == math.inf
    assert elo(0) == -math.inf


def test_elo_difference_takes_the_ends_of_the_score() -> None:
    assert elo_difference(Estimate(0.75, 0.5, 1)) == Estimate(elo(0.75), 0, math.inf)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (math.inf, "> +800"),
        (-math.inf, "< −800"),
        (801, "> +800"),
        (12.6, "+13"),
        (-12.6, "−13"),
        (0.0, "0"),
        (-0.3, "0"),
    ],
)
def test_elo_is_written_with_its_sign_and_within_what_matches_tell(value: float, text: str) -> None:
    assert elo_text(value) == text


def test_two_players_differ_by_the_elo_of_their_score_and_one_more_draw() -> None:
    points = np.array([WON] * 60 + [SPLIT] * 25 + [LOST] * 15)
    weak, strong = ratings(2, {(1, 0): points}, anchor=0)
    assert weak == Estimate(0, 0, 0)
    assert strong.value == pytest.approx(elo((145 + 0.5) / 201), abs=0.01)


def test_who_wins_everything_gets_a_finite_rating_and_a_wide_interval() -> None:
    _, strong = ratings(2, {(0, 1): np.full(100, LOST)}, anchor=0)
    assert strong.value == pytest.approx(elo(200.5 / 201), abs=0.5)
    assert 300 < strong.value - strong.low < math.inf


def test_ratings_without_an_anchor_have_mean_0() -> None:
    points = {(0, 1): np.array([2, 1, 0.5]), (0, 2): np.array([2, 2, 1]), (1, 2): np.array([1, 1, 1.5])}
    free, anchored = ratings(3, points), ratings(3, points, anchor=2)
    assert sum(rating.value for rating in free) == pytest.approx(0, abs=1e-6)
    assert anchored[2] == Estimate(0, 0, 0)
    assert anchored[0].value - anchored[1].value == pytest.approx(free[0].value - free[1].value)


def test_rating_intervals_hold_the_truth_19_times_in_20() -> None:
    true_ratings = np.array([0.0, 120, 200, 450])
    rng = np.random.default_rng(3)
    held = []
    for _ in range(60):
        points = {
            (i, j): drawn_pairs(rng, 1 / (1 + 10 ** ((true_ratings[j] - true_ratings[i]) / 400)), 100)
            for i in range(4)
            for j in range(i)
        }
        found = ratings(4, points, anchor=0)
        held += [found[i].low <= true_ratings[i] <= found[i].high for i in range(1, 4)]
    assert np.mean(held) > 0.9
