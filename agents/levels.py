"""Levels for people, on every board and under both goals: "level:easy", "level:medium", "level:hard", "level:expert".

Each beats the one below in most games. What a mistake is, a search decides and no rule of thumb: so "easy" gives
corners away in Othello, and takes them in anti-Reversi.
"""

from dataclasses import replace

import numpy as np

from agents.agent import Agent, Decision
from agents.alpha_beta import AlphaBetaAgent, AlphaBetaConfig
from agents.evaluation import DISC, HANDMADE, LEARNED, best_evaluation, evaluation_of
from agents.search.midgame import Searcher
from reversi_env import Position
from reversi_env.naming import UnknownNameError

MISTAKE = 4 * DISC  # a move that loses as much against the best one
# How often easy makes a mistake where there is one. Tuned by 100 games of anti-Reversi each: at 0.2 it lost 83 to
# medium, too few, and at 0.5 it lost 57 to random moves, too many; at 0.35 it lost 96 and 35.
MISTAKE_RATE = 0.35

_EASY_DEPTH = 2  # the move and the reply to it: what a player sees who looks at the board
_EASY_TABLE = 1 << 8  # entries; two plies meet few positions

EXPERT = AlphaBetaConfig(time_limit_s=1.0, evaluation=LEARNED, selectivity=5, table_entries=1 << 20)
_SEARCHES = {
    "medium": AlphaBetaConfig(depth=2, exact=0, evaluation=HANDMADE),
    "hard": AlphaBetaConfig(depth=5, exact=10, evaluation=HANDMADE),
    "expert": EXPERT,
}
LEVELS = ("easy", *_SEARCHES)  # each stronger than the one before


def level(name: str) -> Agent:
    """Returns the player of LEVELS with that name; raises UnknownNameError."""
    if name not in LEVELS:
        raise UnknownNameError("level", name, LEVELS)
    return EasyAgent() if name == "easy" else LevelAgent(name, _SEARCHES[name])


class EasyAgent(Agent):
    """Sees two plies ahead, and now and then draws one of the moves that it sees to be mistakes."""

    name = "level:easy"

    def select(self, position: Position, rng: np.random.Generator) -> Decision:
        """Returns a mistake or one of the best moves; raises ValueError where the game is over."""
        lost = self._lost(position)
        mistakes = [move for move in lost if lost[move] >= MISTAKE]
        errs = rng.random() < MISTAKE_RATE and mistakes
        return Decision(int(rng.choice(mistakes if errs else _best(lost))))

    def analyze(self, position: Position) -> Decision:
        """Returns the first of the moves that it thinks best."""
        return Decision(_best(self._lost(position))[0])

    def _lost(self, position: Position) -> dict[int, int]:
        """Returns what each legal move loses against the best one, in hundredths of a disc."""
        if position.is_over:
            raise ValueError(f"the game is over, so there is no move to choose: {position.text}")
        player, opponent = (np.array([board], np.uint64) for board in (position.player, position.opponent))
        variant = position.variant
        searcher = Searcher(variant.size, _EASY_TABLE)
        (values,) = searcher.move_values(
            player, opponent, _EASY_DEPTH, evaluation_of(HANDMADE, variant), variant.rules
        ).tolist()
        best = max(values)
        return {move: best - values[move] for move in position.legal_moves}


class LevelAgent(Agent):
    """A search as `AlphaBetaAgent` makes it, with the handmade evaluation for variants that have no learned one."""

    def __init__(self, name: str, config: AlphaBetaConfig) -> None:
        self.name = f"level:{name}"
        self.config = config
        self._players: dict[str, AlphaBetaAgent] = {}  # by evaluation

    def select(self, position: Position, rng: np.random.Generator) -> Decision:
        """Returns the best move found; `rng` is not used. Raises ValueError where the game is over."""
        evaluation = self.config.evaluation
        if evaluation == LEARNED:
            evaluation = best_evaluation(position.variant)
        if evaluation not in self._players:
            self._players[evaluation] = AlphaBetaAgent(replace(self.config, evaluation=evaluation))
        return self._players[evaluation].select(position, rng)


def _best(lost: dict[int, int]) -> list[int]:
    return [move for move in lost if lost[move] == 0]
