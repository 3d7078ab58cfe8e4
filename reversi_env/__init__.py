"""Reversi and Othello: rules, notation and a Gymnasium environment. Importing it registers `Reversi-v0`."""

from reversi_env.game import Game
from reversi_env.perft import perft
from reversi_env.playouts import random_games
from reversi_env.position import IllegalMoveError, Position
from reversi_env.variant import Variant

__all__ = ["Game", "IllegalMoveError", "Position", "Variant", "perft", "random_games"]
