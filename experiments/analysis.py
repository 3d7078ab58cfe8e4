"""What an agent thinks of a position: the more the longer it looks, and of every move."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from agents.agent import Agent, Candidate, Decision
from agents.alpha_beta import AlphaBetaAgent, AlphaBetaConfig, Search
from agents.explain import EXACT_EMPTIES, explain_moves
from agents.mcts import MCTSAgent, MCTSConfig
from agents.mcts.agent import Thinking
from agents.mcts.config import MOST_SIMULATIONS
from agents.reasons import ExactScore, Reason
from agents.search.memory import UNLIMITED
from agents.search.solver import Solver
from experiments.match import decide
from reversi_env import Position

SMALL_TABLE = 1 << 16  # entries, enough for a few plies or squares
LIMITS = ("depth", "time_limit_s", "nodes")  # of a search by alpha-beta; a tree has no depth, and its nodes are visits


@dataclass(frozen=True)
class Thought:
    """What an agent thinks of a position or of a move in it, for the side to move."""

    decision: Decision
    is_win: bool = False  # whether it proved a win and no score: the evaluation is a lower bound
    elapsed_s: float = 0.0


@dataclass(frozen=True)
class Move:
    """A legal move: what the agent thinks of it, and what speaks for and against it."""

    move: int
    reasons: tuple[Reason, ...]
    thought: Thought | None = None
    share: float | None = None  # of the agent's policy
    candidate: Candidate | None = None  # what a tree search says of it

    @property
    def exact_score(self) -> int | None:
        """The score if both sides play perfectly from the move on, where the solver says it."""
        return next((reason.score for reason in self.reasons if isinstance(reason, ExactScore)), None)

    @property
    def worth(self) -> tuple[float, ...]:
        """What to put moves in order by: proof, then the agent's evaluation, then its policy."""
        evaluation = self.thought.decision.evaluation if self.thought else None
        return tuple(-math.inf if figure is None else figure for figure in (self.exact_score, evaluation, self.share))


@dataclass(frozen=True)
class Analysis:
    """All that was found of a position."""

    position: Position
    thoughts: Sequence[Thought] = ()  # the last the best; none where the game is over
    moves: Sequence[Move] = ()  # the agent's own first, then the best of the others
    is_stopped: bool = False  # by the user

    @property
    def regrets(self) -> Mapping[int, int]:
        """By how much each move's score is less than the best one's; empty where not all of them are known."""
        known = {move.move: move.exact_score for move in self.moves if move.exact_score is not None}
        return {move: max(known.values()) - known[move] for move in known} if len(known) == len(self.moves) else {}


class Deepening:
    """A search by alpha-beta or of a tree: iterates once over what it thinks, each time deeper, the last the best.

    Limits are some of LIMITS, and replace the agent's own; with none at all it ends with the game, or by `stop`. Raises
    ValueError for a position that is over.
    """

    def __init__(self, agent: AlphaBetaAgent | MCTSAgent, position: Position, limits: Mapping[str, Any]) -> None:
        self._search: Search | Thinking
        if isinstance(agent, MCTSAgent):
            self._search = agent.begin(position, _without_end(agent.config, limits))
        else:
            config = replace(agent.config, **limits)
            if config.depth is None and not config.is_limited:
                config = replace(config, nodes=UNLIMITED)
            self._search = AlphaBetaAgent(config).begin(position)
        self.is_stopped = False

    def stop(self) -> None:
        """Ends the search at once, from a signal handler or another thread; its first thought comes all the same."""
        self.is_stopped = True
        self._search.stop()

    def __iter__(self) -> Iterator[Thought]:
        began = time.monotonic()
        for decision in self._search:
            is_win = decision.evaluation is not None and decision.depth is None and not decision.is_exact
            yield Thought(decision, is_win, time.monotonic() - began)


def _without_end(config: MCTSConfig, limits: Mapping[str, Any]) -> MCTSConfig:
    """Returns a tree search's configuration for so long and so many visits; by PUCT, which need not know either."""
    return MCTSConfig(
        num_simulations=limits.get("nodes", MOST_SIMULATIONS),
        time_limit_s=limits.get("time_limit_s"),
        proves=config.proves,
        exact_empties=config.exact_empties,
        leaves_per_call=config.leaves_per_call,
        puct_constant=config.puct_constant,
        first_play_reduction=config.first_play_reduction,
    )


class _Still(Agent):
    """An agent that always plays as it analyzes."""

    def __init__(self, agent: Agent) -> None:
        self.name = agent.name
        self._agent = agent

    def select(self, position: Position, rng: np.random.Generator) -> Decision:
        return self._agent.analyze(position)


def decided(agent: Agent, position: Position) -> Thought:
    """Returns the one thought of an agent that cannot be watched; raises MatchError where it fails."""
    began = time.monotonic()
    (decision,) = decide(_Still(agent), [position], [np.random.default_rng(0)])
    return Thought(decision, elapsed_s=time.monotonic() - began)


def moves_of(agent: Agent, position: Position, chosen: Decision, depth: int) -> list[Move]:
    """Returns all legal moves, the chosen one first and then the best of the others.

    Only alpha-beta values them, all so many plies ahead, from 2 on, so that they can be compared; none where `depth` is
    0. Exact scores are there where few squares are empty.
    """
    is_late = position.num_empties <= EXACT_EMPTIES
    explanations = explain_moves(position, Solver(position.variant, SMALL_TABLE) if is_late else None)
    scout = _scout(agent.config, depth) if depth and isinstance(agent, AlphaBetaAgent) else None
    candidates = {candidate.move: candidate for candidate in chosen.candidates}
    moves = []
    for move in position.legal_moves:
        thought = None
        if scout is not None:
            decision = _decision_for(move, position, scout)
            thought = Thought(decision)
        share = None if chosen.policy is None else float(chosen.policy[move])
        moves.append(Move(move, explanations[move].reasons, thought, share, candidates.get(move)))
    return sorted(moves, key=lambda move: (move.move == chosen.move, *move.worth), reverse=True)


def _scout(config: AlphaBetaConfig, depth: int) -> AlphaBetaAgent:
    """Returns alpha-beta that looks from the position after a move to `depth` plies from the one before."""
    return AlphaBetaAgent(
        replace(
            config,
            depth=depth - 1,
            time_limit_s=None,
            game_time_s=None,
            nodes=None,
            exact=min(config.exact, EXACT_EMPTIES),
            table_entries=min(config.table_entries, SMALL_TABLE),
        )
    )


def _decision_for(move: int, position: Position, scout: AlphaBetaAgent) -> Decision:
    """Returns a move as if it had been decided for, with what alpha-beta says of the position after it."""
    after = position.play(move)
    if after.is_over:
        score = -after.score
        return Decision(move, float(np.sign(score)), score, principal_line=(move,), is_exact=True)
    reply = scout.analyze(after)
    assert reply.value is not None  # alpha-beta tells both
    assert reply.evaluation is not None
    line = (move, *reply.principal_line)
    depth = None if reply.depth is None else reply.depth + 1
    return replace(reply, move=move, value=-reply.value, evaluation=-reply.evaluation, depth=depth, principal_line=line)
