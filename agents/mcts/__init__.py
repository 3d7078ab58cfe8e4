"""Monte Carlo tree search with an evaluator of positions: by PUCT, or by Gumbel sampling at the root."""

from agents.mcts.agent import MCTSAgent, choose_move
from agents.mcts.config import MCTSConfig
from agents.mcts.evaluator import Evaluator
from agents.mcts.search import Search, Searched

__all__ = ["Evaluator", "MCTSAgent", "MCTSConfig", "Search", "Searched", "choose_move"]
