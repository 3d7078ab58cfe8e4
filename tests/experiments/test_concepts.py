"""What players do in their games: against the oracle's corners and brute force."""

import json

import numpy as np
import pytest

import agents
from agents.agent import Agent, Decision
from experiments import cli
from experiments.concepts import CONCEPTS, ConceptReport, observe
from experiments.match import Match, play_match
from reversi_env import Position, Variant
from tests import oracle

SMALL = Variant.named("othello-6x6")
RANDOM = agents.make("random")


def corners(size: int) -> set[int]:
    return {0, size - 1, size * (size - 1), size * size - 1}


class Corners(Agent):
    """Takes a corner where it can, or never if it can help it; else it plays at random."""

    def __init__(self, likes: bool) -> None:
        self.name = f"corners {likes}"
        self._likes = likes

    def select(self, position: Position, rng: np.random.Generator) -> Decision:
        moves = set(position.legal_moves)
        liked = moves & corners(position.variant.size) if self._likes else moves - corners(position.variant.size)
        return Decision(int(rng.choice(sorted(liked or moves))))


def row(report: ConceptReport, key: str) -> dict[str, float]:
    (found,) = [figures for figures in report.figures()["concepts"] if figures["concept"] == key]
    return found


def choices(match: Match) -> list[tuple[list[str], str, int]]:
    """The first player's moves where there were others, by the oracle: board, side and square."""
    found = []
    size = match.variant.size
    for number, game in enumerate(match.games):
        board, side = oracle.start_board(size, "diagonal"), oracle.BLACK
        for start in range(0, len(game.moves), 2):
            if oracle.must_pass(board, side):
                side = oracle.other(side)
            square = "abcdefgh".index(game.moves[start]) + size * (int(game.moves[start + 1]) - 1)
            is_mine = side == (oracle.BLACK if number % 2 == 0 else oracle.WHITE)
            if start >= len(game.opening) and is_mine and len(oracle.legal_squares(board, side)) > 1:
                found.append((board, side, square))
            board, side = oracle.play(board, side, square), oracle.other(side)
    return found


@pytest.mark.parametrize("likes", [True, False])
def test_corners_are_counted_where_there_is_a_choice(likes: bool) -> None:
    match = play_match(Corners(likes), RANDOM, SMALL, 60, seed=1)
    report = observe([match])
    of_player = choices(match)
    assert report.num_moves == len(of_player)
    shares = [
        len(corners(6) & set(legal)) / len(legal)
        for board, side, _ in of_player
        if corners(6) & set(legal := oracle.legal_squares(board, side)) and set(legal) - corners(6)
    ]
    found = row(report, "takes_corner")
    assert (found["choices"], found["taken"]) == (len(shares), likes)
    assert found["by_chance"] == pytest.approx(np.mean(shares))
    assert len(shares) > 30


@pytest.mark.parametrize("goal", ["most", "fewest"])
def test_moves_cost_what_brute_force_says(goal: str) -> None:
    variant = Variant(4, goal=goal)
    match = play_match(Corners(True), RANDOM, variant, 60, seed=2, opening_plies=5)
    lost, lost_by_corners = [], []
    for board, side, square in choices(match):
        scores = {
            move: -oracle.negamax(oracle.play(board, side, move), oracle.other(side), goal)
            for move in oracle.legal_squares(board, side)
        }
        lost.append(max(scores.values()) - scores[square])
        if corners(4) & scores.keys() and scores.keys() - corners(4):
            lost_by_corners.append(lost[-1])
    report = observe([match])
    assert list(report.lost) == lost
    found = row(report, "takes_corner")
    assert found["discs_lost_with"] == pytest.approx(np.mean(lost_by_corners))
    assert found["discs_lost_without"] is None
    assert np.mean(lost_by_corners) > 0


def test_replies_left_are_those_of_the_oracle() -> None:
    match = play_match(agents.make("mobility"), RANDOM, SMALL, 20, seed=1)
    left, by_chance = [], []
    for board, side, square in choices(match):
        counts = {
            move: len(oracle.legal_squares(oracle.play(board, side, move), oracle.other(side)))
            for move in oracle.legal_squares(board, side)
        }
        left.append(counts[square])
        by_chance.append(np.mean([*counts.values()]))
    report = observe([match])
    assert report.replies == pytest.approx(np.mean(left))
    assert report.replies_by_chance == pytest.approx(np.mean(by_chance))
    assert report.replies < 0.8 * report.replies_by_chance  # which is all that it looks at


def test_random_moves_do_everything_as_often_as_by_chance() -> None:
    match = play_match(RANDOM, RANDOM, SMALL, 100, seed=4)
    report = observe([match], num_moves=1200)
    assert {tally.concept.key for tally in report.tallies} == {concept.key for concept in CONCEPTS}
    for tally in report.tallies:
        assert tally.taken == pytest.approx(tally.by_chance, abs=4 * 0.5 / tally.num_choices**0.5)
        assert tally.num_choices > 20


def test_a_search_opens_fewer_corners_than_chance() -> None:
    report = observe([play_match(agents.make("alphabeta:depth=2"), RANDOM, Variant(), 20, seed=1)])
    for key in ("opens_corner_by_x", "opens_corner_by_c"):
        assert row(report, key)["taken"] < 0.7 * row(report, key)["by_chance"]


def test_flips_are_counted_early_only() -> None:
    match = play_match(RANDOM, RANDOM, SMALL, 20, seed=5, opening_plies=18)  # the first half is over
    assert "flips_much_early" not in {tally.concept.key for tally in observe([match]).tallies}


def test_of_many_moves_a_sample_is_drawn_by_the_seed() -> None:
    match = play_match(RANDOM, RANDOM, SMALL, 20, seed=5)
    first, again, other = (observe([match], seed, num_moves=50) for seed in (1, 1, 2))
    assert first == again != other
    assert first.num_moves == 50


def test_games_without_a_choice_tell_nothing() -> None:
    match = play_match(RANDOM, RANDOM, Variant(4), 2, seed=1, opening_plies=11)
    report = observe([match])
    assert (report.num_moves, report.metrics(), report.tallies) == (0, {}, ())
    assert json.dumps(report.figures(), allow_nan=False)


def test_evaluate_prints_concepts_and_calibration(capsys: pytest.CaptureFixture[str]) -> None:
    line = "evaluate alphabeta:depth=2 random --games 4 --variant othello-6x6 --concepts --calibration"
    assert cli.main(line.split()) == 0
    out = capsys.readouterr().out
    assert "takes a corner" in out
    assert "actual %" in out
    assert cli.main([*line.split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"rows", "concepts", "calibration"} <= found.keys()
    assert "truth" not in found
    assert sum(each["num_moves"] for each in found["calibration"]["bins"]) > 20
