"""Values beside results: against counting by hand."""

import numpy as np
import pytest

import agents
from agents.agent import Agent, Decision
from experiments.calibration import Calibration, calibration_of
from experiments.match import play_match
from reversi_env import Position, Variant

SMALL = Variant.named("othello-6x6")


class Counting(Agent):
    """Plays at random and tells, as its value, how much of the board is empty."""

    name = "counting"

    def select(self, position: Position, rng: np.random.Generator) -> Decision:
        return Decision(int(rng.choice(position.legal_moves)), value=position.num_empties / 36)


class Sure(Agent):
    """Plays the first move and always expects the same."""

    name = "sure"

    def __init__(self, value: float) -> None:
        self.value = value

    def select(self, position: Position, rng: np.random.Generator) -> Decision:
        return Decision(position.legal_moves[0], value=self.value)


def test_values_that_come_true_have_no_error() -> None:
    expected = np.repeat([0.05, 0.25, 0.75], 20)
    actual = np.concatenate([np.arange(20) < 1, np.arange(20) < 5, np.arange(20) < 15]).astype(float)
    calibration = Calibration(expected, actual)
    assert calibration.error == pytest.approx(0)
    assert calibration.brier == pytest.approx(np.mean([p * (1 - p) for p in (0.05, 0.25, 0.75)]))


def test_error_and_brier_score_are_those_counted_by_hand() -> None:
    calibration = Calibration(np.array([0.1, 0.12, 0.9, 1.0]), np.array([0, 1, 1, 0.5]))
    assert [found.num_moves for found in calibration.bins] == [2, 2]
    assert calibration.error == pytest.approx((2 * abs(0.11 - 0.5) + 2 * abs(0.95 - 0.75)) / 4)
    assert calibration.brier == pytest.approx((0.01 + 0.88**2 + 0.01 + 0.25) / 4)
    assert calibration.table()[1][-1] == ("all", "4", "53.0", "62.5")


def test_sure_of_the_end_one_is_wrong_by_what_one_loses() -> None:
    match = play_match(Sure(1.0), agents.make("mobility"), SMALL, 20, seed=1)
    calibration = calibration_of([match])
    moves_by_game = [sum(1 for _ in match.turns(number)) for number in range(20)]
    points = np.repeat((1 + match.results) / 2, moves_by_game)
    assert len(calibration.expected) == len(points) > 150
    assert calibration.error == pytest.approx(1 - points.mean())
    assert calibration.metrics()["calibration/actual"] == pytest.approx(points.mean())


def test_a_match_keeps_each_value_beside_its_move() -> None:
    match = play_match(Counting(), Counting(), SMALL, 40, seed=3)
    assert any(turn.position.num_empties < 3 for number in range(40) for turn in match.turns(number))
    for number, game in enumerate(match.games):
        assert len(game.values) == len(game.moves) // 2
        assert game.values[:6] == [None] * 6  # of the opening nobody was asked
        for turn in match.turns(number):
            assert turn.position.is_black_to_move == (number % 2 == 0)
            assert turn.value == pytest.approx(turn.position.num_empties / 36, abs=1e-4)
            assert not turn.position.must_pass
            assert turn.move in turn.position.legal_moves


def test_players_that_tell_no_value_have_no_calibration() -> None:
    calibration = calibration_of([play_match(agents.make("random"), Counting(), SMALL, 2, seed=1)])
    assert calibration.metrics() == {}
    assert calibration.figures() is None
    assert calibration.table()[1] == []
