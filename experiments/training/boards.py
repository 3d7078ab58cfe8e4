"""A picture of a game: some of its positions, with what a player thinks of them."""

import numpy as np

from agents.agent import Agent
from experiments.match import Match
from reversi_env import Game, show
from reversi_env.drawing.rgb import to_rgb

NUM_BOARDS = 4  # with moves to choose from; the game's end follows

_PIXELS = 240  # of a board: enough to read the percents on 10×10


def boards_of(agent: Agent, match: Match) -> np.ndarray:
    """Returns boards of a match's last game side by side, uint8 [height, width, 3].

    They are some in which `agent`, the match's first player, had a choice, spread over the game and shaded by its
    policy, where it tells one; and the end.
    """
    number = len(match.games) - 1
    choices = [turn for turn in match.turns(number) if len(turn.position.legal_moves) > 1]
    shown = sorted({round(place) for place in np.linspace(0, len(choices) - 1, NUM_BOARDS)}) if choices else []
    drawings = [
        show(turn.position, last_move=turn.last_move, policy=agent.analyze(turn.position).policy)
        for turn in (choices[place] for place in shown)
    ]
    game = Game.from_transcript(match.games[number].moves, match.variant)
    drawings.append(show(game.position, last_move=game.moves[-1]))
    return np.concatenate([to_rgb(drawing.diagram, _PIXELS) for drawing in drawings], axis=1)
