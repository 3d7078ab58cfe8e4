"""Games from which positions are taken to be solved, as the positions of each from its start to its end."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from agents.agent import Agent
from agents.alpha_beta import AlphaBetaAgent, AlphaBetaConfig
from agents.evaluation import HANDMADE
from experiments.match import OPENING_PLIES, Progress, play_match
from reversi_env import Game, Position, Variant, random_games

# By turns: plies looked ahead, and the share of random moves after those of the opening.
STYLES = ((0, 1.0), (1, 0.2), (2, 0.1), (4, 0.05))


def mixed_games(variant: Variant, seed: int) -> Iterator[Sequence[Position]]:
    """Yields games without end, from random to good ones by turns; the seed and its number fix a game."""
    players = {
        depth: AlphaBetaAgent(AlphaBetaConfig(depth=depth, exact=0, evaluation=HANDMADE))
        for depth, _ in STYLES
        if depth
    }
    for number in itertools.count():
        depth, error_rate = STYLES[number % len(STYLES)]
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
        game = Game(variant)
        while not game.is_over:
            position = game.position
            if len(game.moves) < OPENING_PLIES[variant.size] or rng.random() < error_rate:
                game.play(int(rng.choice(position.legal_moves)))
            else:
                game.play(players[depth].select(position, rng).move)
        yield game.positions


def own_and_random_games(
    agent: Agent, variant: Variant, num_games: int, seed: int, progress: Progress | None = None
) -> Iterator[Sequence[Position]]:
    """Yields, by turns, a game of an agent against itself, from a random opening, and a random game.

    There are `num_games` of each; raises as `play_match`, which plays the former.
    """
    own = play_match(agent, agent, variant, num_games, seed, progress=progress)
    drawn = random_games(Position(variant), num_games, seed)
    for number, game in enumerate(own.games):
        yield Game.from_transcript(game.moves, variant).positions
        yield Game.from_moves(drawn.moves[number, : drawn.lengths[number]].tolist(), variant).positions
