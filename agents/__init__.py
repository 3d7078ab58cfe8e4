"""Players: baselines, alpha-beta, search with a network. `agents.make("alphabeta:depth=5")` makes one from text."""

from agents.agent import Agent, Decision
from agents.env import make_env, make_vec, opponent_of
from agents.exact_info import ExactInfo
from agents.registry import load, make

__all__ = ["Agent", "Decision", "ExactInfo", "load", "make", "make_env", "make_vec", "opponent_of"]
