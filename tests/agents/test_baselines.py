"""The simple players and what every player must do: legal moves everywhere, by the goal, the same by the same seed."""

from collections.abc import Iterator

import numpy as np
import pytest

from agents.agent import Agent
from agents.registry import make
from reversi_env import Position, Variant

SIMPLE = ("random", "greedy", "positional", "mobility")
PLAYERS = (*SIMPLE, "alphabeta:depth=2,exact=4")

# A corner, a1, is there to be taken; there are nine other moves.
CORNER = "-OX-------O-XO---XXOO---XXOXO----O-OXXX---O-OXX-------X--------- X"


def play(black: Agent, white: Agent, position: Position, rng: np.random.Generator) -> Position:
    while not position.is_over:
        agent = black if position.is_black_to_move else white
        position = position.play(agent.select(position, rng).move)
    return position


def openings(variant: Variant | str, num_openings: int, num_plies: int) -> Iterator[Position]:
    for seed in range(num_openings):
        rng = np.random.default_rng(seed)
        position = Position(variant)
        for _ in range(num_plies):
            position = position.play(int(rng.choice(position.legal_moves)))
        yield position


def points(agent: Agent, opponent: Agent, variant: Variant | str, num_openings: int) -> float:
    """Returns the share of points over each opening played twice, colors swapped; a draw is half a point."""
    rng = np.random.default_rng(0)
    total = 0.0
    for opening in openings(variant, num_openings, 6):
        total += 1 + np.sign(play(agent, opponent, opening, rng).black_score)
        total += 1 - np.sign(play(opponent, agent, opening, rng).black_score)
    return float(total / (4 * num_openings))


@pytest.mark.parametrize("variant", Variant.NAMES)
@pytest.mark.parametrize("spec", PLAYERS)
def test_every_move_is_legal(spec: str, variant: str) -> None:
    agent = make(spec)
    for seed in range(2):
        assert play(agent, make("random"), Position(variant), np.random.default_rng(seed)).is_over


@pytest.mark.parametrize("spec", PLAYERS)
def test_a_forced_pass_is_played(spec: str) -> None:
    position = Position.from_text("XXO-" + "----" * 3 + "O", Variant(size=4))
    assert make(spec).select(position, np.random.default_rng(0)).move == position.variant.pass_move


@pytest.mark.parametrize("spec", PLAYERS)
def test_a_finished_game_is_refused(spec: str) -> None:
    with pytest.raises(ValueError, match="the game is over"):
        make(spec).select(Position.from_text("X" * 16 + "O", Variant(size=4)), np.random.default_rng(0))


@pytest.mark.parametrize("spec", PLAYERS)
def test_the_same_seed_brings_the_same_game(spec: str) -> None:
    first, second = (play(make(spec), make(spec), Position("othello-6x6"), np.random.default_rng(4)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("spec", ["positional", "mobility", "alphabeta:depth=3"])
def test_a_corner_is_taken_for_most_discs_and_left_for_fewest(spec: str) -> None:
    for goal, takes in (("most", True), ("fewest", False)):
        position = Position.from_text(CORNER, Variant(goal=goal))
        moves = {make(spec).select(position, np.random.default_rng(seed)).move for seed in range(10)}
        assert (moves == {0}) if takes else (0 not in moves)


def test_mobility_leaves_the_fewest_replies() -> None:
    (position,) = openings("othello", 1, 6)  # too early for corners
    replies = {move: len(position.play(move).legal_moves) for move in position.legal_moves}
    move = make("mobility").select(position, np.random.default_rng(0)).move
    assert len(set(replies.values())) > 1
    assert replies[move] == min(replies.values())


def test_mobility_draws_between_equals() -> None:
    moves = {make("mobility").select(Position(), np.random.default_rng(seed)).move for seed in range(40)}
    assert moves == set(Position().legal_moves)


# The least share that a player could still be said to be stronger with, far below what it reaches.
@pytest.mark.parametrize("variant", ["othello-6x6", "anti-reversi", "reversi-1883"])
@pytest.mark.parametrize(
    ("spec", "num_openings", "least"),
    [("greedy", 100, 0.5), ("positional", 50, 0.6), ("mobility", 50, 0.65), ("alphabeta:depth=3,exact=6", 15, 0.85)],
)
def test_players_beat_random(spec: str, num_openings: int, least: float, variant: str) -> None:
    assert points(make(spec), make("random"), variant, num_openings) > least


def test_alpha_beta_beats_the_simple_players() -> None:
    for spec in ("greedy", "positional", "mobility"):
        assert points(make("alphabeta:depth=4"), make(spec), "othello-6x6", 15) > 0.7
