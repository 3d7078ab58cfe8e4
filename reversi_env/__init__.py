"""Reversi and Othello: rules, notation and a Gymnasium environment. Importing it registers `Reversi-v0`."""

import gymnasium

from reversi_env.batch import Batch
from reversi_env.env import ReversiEnv
from reversi_env.game import Game
from reversi_env.naming import UnknownNameError
from reversi_env.perft import perft
from reversi_env.playouts import random_games
from reversi_env.position import IllegalMoveError, Position
from reversi_env.show import show
from reversi_env.variant import Variant
from reversi_env.vector_env import ReversiVectorEnv

__all__ = [
    "Batch",
    "Game",
    "IllegalMoveError",
    "Position",
    "ReversiEnv",
    "ReversiVectorEnv",
    "UnknownNameError",
    "Variant",
    "perft",
    "random_games",
    "show",
]

gymnasium.register(
    id="Reversi-v0",
    entry_point="reversi_env.env:ReversiEnv",
    vector_entry_point="reversi_env.vector_env:ReversiVectorEnv",
)
