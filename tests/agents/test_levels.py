"""Levels for people: what each of them does and leaves undone; how strong they are `reversi tournament` measures."""

import time
from collections.abc import Callable

import numpy as np
import pytest

import agents
from agents.alpha_beta import AlphaBetaConfig
from agents.evaluation import evaluation_of
from agents.levels import LEVELS, MISTAKE, MISTAKE_RATE, EasyAgent, LevelAgent
from agents.search.midgame import Searcher
from reversi_env import Game, Position, Variant, random_games
from reversi_env.geometry import SIZES
from reversi_env.naming import UnknownNameError, UsageError
from reversi_env.variant import GOALS
from tests import oracle

ANTI = Variant(8, goal="fewest")
Trait = Callable[[Position, int], bool]  # of a move
VARIANTS = [Variant(size, goal=goal) for size in SIZES for goal in GOALS] + [Variant(8, "free")]


def positions(variant: Variant, num_games: int, least_empties: int, most_empties: int) -> list[Position]:
    """Returns the positions of random games in which there is something to choose."""
    games = random_games(Position(variant), num_games, seed=1)
    found = []
    for moves, length in zip(games.moves.tolist(), games.lengths.tolist(), strict=True):
        game = Game(variant)
        for move in moves[:length]:
            position = game.position
            if least_empties <= position.num_empties <= most_empties and len(position.legal_moves) > 1:
                found.append(position)
            game.play(move)
    return found


def corners(variant: Variant) -> set[int]:
    last = variant.size - 1
    return {row * variant.size + column for row in (0, last) for column in (0, last)}


def opens_a_corner(position: Position, move: int) -> bool:
    """Returns whether the opponent can take a corner after the move that it could not have taken before."""
    variant, before = position.variant, (position.opponent, position.player)
    taken = set(position.play(move).legal_moves) - set(Position.from_bitboards(variant, *before).legal_moves)
    return bool(taken & corners(variant))


def takes_a_corner(position: Position, move: int) -> bool:
    return move in corners(position.variant)


def choices(variant: Variant, is_so: Trait) -> list[Position]:
    """Returns positions in which some moves are so and others are not."""
    return [
        position
        for position in positions(variant, 60, 20, 56)
        if len({is_so(position, move) for move in position.legal_moves}) == 2
    ]


def share(name: str, variant: Variant, is_so: Trait) -> float:
    """Returns how many of a level's moves are so where there is a choice."""
    agent = agents.make(f"level:{name}")
    return float(
        np.mean(
            [
                is_so(position, agent.select(position, np.random.default_rng(seed)).move)
                for seed, position in enumerate(choices(variant, is_so))
            ]
        )
    )


# What people notice


def test_easy_gives_corners_away_in_othello() -> None:
    assert share("easy", Variant(), opens_a_corner) > 3 * share("medium", Variant(), opens_a_corner)


def test_easy_takes_corners_in_anti_reversi() -> None:
    assert share("easy", ANTI, takes_a_corner) > 3 * share("medium", ANTI, takes_a_corner)


@pytest.mark.parametrize("variant", [Variant(), ANTI], ids=lambda variant: variant.name)
def test_easy_makes_a_mistake_as_often_as_is_said(variant: Variant) -> None:
    agent, searcher = agents.make("level:easy"), Searcher(variant.size)
    evaluation = evaluation_of("mobility", variant)
    mistakes = []
    for seed, position in enumerate(positions(variant, 30, 10, 50)):
        player, opponent = (np.array([board], np.uint64) for board in (position.player, position.opponent))
        (values,) = searcher.move_values(player, opponent, 2, evaluation, variant.rules)
        lost = values.max() - values
        if (lost[list(position.legal_moves)] >= MISTAKE).any():
            mistakes.append(lost[agent.select(position, np.random.default_rng(seed)).move] >= MISTAKE)
        assert lost[agent.analyze(position).move] == 0
    assert abs(np.mean(mistakes) - MISTAKE_RATE) < 0.06  # two standard deviations of a thousand draws are 0.03


@pytest.mark.parametrize("variant", [Variant(), ANTI, Variant(6)], ids=lambda variant: variant.name)
def test_hard_plays_the_last_squares_perfectly(variant: Variant) -> None:
    agent = agents.make("level:hard")
    for position in positions(variant, 6, 3, 7)[:15]:
        score = oracle.negamax(list(position.board), position.side, variant.goal)
        decision = agent.select(position, np.random.default_rng(0))
        after = position.play(decision.move)
        assert -oracle.negamax(list(after.board), after.side, variant.goal) == score
        assert decision.is_exact
    assert all(agent.analyze(position).is_exact for position in positions(variant, 3, 8, 10))


def test_hard_thinks_for_a_moment() -> None:
    agent = agents.make("level:hard")
    found = positions(Variant(), 2, 1, 60)
    agent.analyze(found[0])  # compiles
    agent.analyze(found[-1])
    seconds = []
    for position in found:
        begun = time.process_time()
        agent.analyze(position)
        seconds.append(time.process_time() - begun)
    assert np.quantile(seconds, 0.95) < 0.3


# What holds for all


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
@pytest.mark.parametrize("name", LEVELS[:-1])
def test_every_level_plays_every_board(name: str, variant: Variant) -> None:
    agent = agents.make(f"level:{name}")
    position, rng = Position(variant), np.random.default_rng(1)
    num_plies = 200 if variant.size < 8 else 12
    while not position.is_over and num_plies:
        position = position.play(agent.select(position, rng).move)
        num_plies -= 1


@pytest.mark.parametrize("variant", [Variant(4), Variant(10, goal="fewest")], ids=lambda variant: variant.name)
def test_the_expert_plays_every_board_within_its_time(variant: Variant) -> None:
    agent = LevelAgent("expert", AlphaBetaConfig(time_limit_s=0.05, evaluation="ntuple", selectivity=3))
    agent.analyze(Position(variant))  # compiles
    began = time.monotonic()
    assert agent.analyze(Position(variant)).move in Position(variant).legal_moves
    assert time.monotonic() - began < 5  # a hundred times its time, for busy machines; unlimited it would take for ever


def test_easy_draws_its_moves_from_the_seed() -> None:
    found = positions(Variant(), 10, 10, 50)
    agent = agents.make("level:easy")

    def moves(first: int) -> list[int]:
        rngs = [np.random.default_rng(first + number) for number in range(len(found))]
        return [decision.move for decision in agent.select_batch(found, rngs)]

    assert moves(0) == moves(0) != moves(1000)


@pytest.mark.parametrize("name", LEVELS[:-1])
def test_analysis_is_the_same_at_every_call(name: str) -> None:
    position = positions(Variant(), 1, 30, 30)[0]
    analyses = [agents.make(f"level:{name}").analyze(position) for _ in range(2)]
    assert analyses[0].move == analyses[1].move


@pytest.mark.parametrize("name", LEVELS)
def test_a_finished_game_is_refused(name: str) -> None:
    over = Position.from_text("X" * 15 + "O X")
    with pytest.raises(ValueError, match="the game is over"):
        agents.make(f"level:{name}").analyze(over)


def test_levels_have_names() -> None:
    assert [agents.make(f"level: {name}").name for name in LEVELS] == [f"level:{name}" for name in LEVELS]
    assert isinstance(agents.make("level:easy"), EasyAgent)
    with pytest.raises(UnknownNameError, match="medium"):
        agents.make("level:medum")
    with pytest.raises(UsageError, match="level:easy, level:medium"):
        agents.make("level")
