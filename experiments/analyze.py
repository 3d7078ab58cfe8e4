"""Says what an agent thinks of a position, and what speaks for and against every move.

    reversi analyze f5d6c3 --depth 10                        the moves of a game so far, ten plies ahead
    reversi analyze "----XXX--XX--OX- O" --json              a board and the side to move
    reversi analyze f5 alphabeta:evaluation=discs --time-limit-s 3
    reversi analyze f5d6 level:hard                          the one decision of any other agent
    reversi analyze --variant anti-reversi                   from the start, until Ctrl-C

Without an agent it is the best search there is: level:expert without its second. That, and alphabeta, look deeper and
deeper until Ctrl-C or a limit, a line for each depth, and near the end play the game out: then it says exact. A tree
search, a network's too, says what it thinks at each doubling of its visits, which --nodes limits.
Evaluations and scores are in discs, for the side to move. All moves follow, with what is good (+) and bad (-) about
them; alphabeta values them --moves-depth plies ahead, and near the end there are the exact score of each, and what it
loses.
"""

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import agents
from agents.agent import Agent
from agents.alpha_beta import AlphaBetaAgent, AlphaBetaConfig
from agents.evaluation import best_evaluation
from agents.levels import EXPERT
from agents.mcts import MCTSAgent
from agents.search.memory import MOST_DEPTH
from experiments.analysis import LIMITS, Analysis, Deepening, Move, Thought, decided, moves_of
from experiments.arguments import UsageError, parse, setting
from experiments.match_settings import AGENTS
from experiments.phrases import figures, phrase
from experiments.positions import looks_like_position, read_position, start_position
from experiments.stopping import stopped_by_signals
from experiments.tables import signed
from reversi_env import Position, Variant
from reversi_env.drawing.text import shows_color, to_ansi
from reversi_env.naming import UnknownNameError, one_of
from reversi_env.variant import SCORINGS


@dataclass
class AnalyzeSettings:
    """How far an analysis goes."""

    variant: str | None = setting(None, "the rules, else the agent's own, else Othello of the board's size")
    scoring: str | None = setting(None, "board or tournament, else the variant's")
    depth: int | None = setting(None, "plies to look ahead")
    time_limit_s: float | None = setting(None, "seconds")
    nodes: int | None = setting(None, "positions that may be looked at")
    moves_depth: int = setting(6, "plies to look ahead for the value of every move, 0 for none")
    json: bool = setting(False, "print figures as JSON, all at the end")

    def __post_init__(self) -> None:
        if self.scoring is not None:
            one_of("scoring", self.scoring, SCORINGS)
        AlphaBetaConfig(**self.limits)
        if self.moves_depth not in (0, *range(2, MOST_DEPTH + 1)):
            raise ValueError(f"moves_depth is 0 for none, or 2 to {MOST_DEPTH} plies, got {self.moves_depth}")

    @property
    def limits(self) -> dict[str, Any]:
        """Those of LIMITS that are given."""
        return {name: limit for name in LIMITS if (limit := getattr(self, name)) is not None}


def main(arguments: list[str]) -> int:
    """Runs `reversi analyze`."""
    words, settings = parse("analyze", "[POSITION] [AGENT]", AnalyzeSettings, f"{__doc__}\n{AGENTS}", arguments)
    position, agent = _position_and_agent(words, settings)
    table = None if settings.json else _Table(agent.name, position)
    found = Analysis(position) if position.is_over else _analyzed(agent, position, settings, table)
    if table is None:
        print(json.dumps({"agent": agent.name, **_figures(found)}, indent=1))
    else:
        table.print_end(found)
    return 0


def _analyzed(agent: Agent, position: Position, settings: AnalyzeSettings, table: "_Table | None") -> Analysis:
    search = Deepening(agent, position, settings.limits) if isinstance(agent, AlphaBetaAgent | MCTSAgent) else None
    thoughts: list[Thought] = []
    with contextlib.nullcontext() if search is None else stopped_by_signals(search.stop):
        for thought in search or [decided(agent, position)]:
            thoughts.append(thought)
            if table is not None:
                table.print_thought(thought)
    moves = moves_of(agent, position, thoughts[-1].decision, settings.moves_depth)
    return Analysis(position, thoughts, moves, search is not None and search.is_stopped)


# Words


def _position_and_agent(words: Sequence[str], settings: AnalyzeSettings) -> tuple[Position, Agent]:
    text, spec = _told_apart(words)
    agent = None if spec is None else _agent(spec, text is None)
    if isinstance(agent, MCTSAgent) and settings.depth is not None:
        raise UsageError(f"{agent.name} searches a tree to no one depth; limit it by time_limit_s or nodes")
    if agent is not None and settings.limits and not isinstance(agent, AlphaBetaAgent | MCTSAgent):
        raise UsageError(f"{agent.name} decides once; {' and '.join(settings.limits)} would be for a search")
    variant = agent.variant if agent else None
    if settings.variant is not None:
        variant = Variant.named(settings.variant)
    if text is None:
        position = start_position(variant, settings.scoring)
    else:
        position = read_position(text, variant, settings.scoring)
    return position, agent or _best_agent(position.variant)


def _told_apart(words: Sequence[str]) -> tuple[str | None, str | None]:
    """Returns the words that say the position and the agent."""
    match words:
        case []:
            return None, None
        case [word]:
            return (word, None) if looks_like_position(word) else (None, word)
        case [text, spec]:
            return text, spec
    raise UsageError(f"a position, an agent, or first the one and then the other; found {' '.join(words)}")


def _agent(spec: str, is_alone: bool) -> Agent:
    try:
        return agents.make(spec)
    except UnknownNameError as error:
        advice = "; a position is a board with the side to move, or moves such as f5d6" if is_alone else ""
        raise UsageError(f"{error}{advice}") from None


def _best_agent(variant: Variant) -> Agent:
    """Returns level:expert without its time limit, by a name that can be typed."""
    evaluation = best_evaluation(variant)
    name = f"alphabeta:evaluation={evaluation},selectivity={EXPERT.selectivity},table_entries={EXPERT.table_entries}"
    agent = agents.make(name)
    agent.name = name
    return agent


# Showing


class _Table:
    """What is printed for people, as it comes."""

    def __init__(self, agent_name: str, position: Position) -> None:
        self._position = position
        print(to_ansi(position.diagram(), color=shows_color()))
        if not position.is_over:
            print(f"{position.variant.name}, {position.num_empties} empty squares, {agent_name}\n")
            self._print_cells("depth", "discs", "value", "nodes", "s", "line")

    def print_thought(self, thought: Thought) -> None:
        decision = thought.decision
        self._print_cells(
            _depth_text(thought) or "-",
            _discs_text(thought) or "-",
            "-" if decision.value is None else f"{decision.value:+.2f}",
            f"{decision.num_nodes:,}",
            f"{thought.elapsed_s:.3f}",
            " ".join(_line(thought, self._position)),
        )

    def print_end(self, found: Analysis) -> None:
        """Prints all moves, and the best one; or how the game ended."""
        position = self._position
        if position.is_over:
            print(f"the game is over: {signed(position.score)} for {position.color_name}")
            return
        self._print_moves(found)
        best = found.thoughts[-1]
        parts = [position.move_name(best.decision.move)]
        if discs := _discs_text(best):
            parts.append(f"{discs} discs for {position.color_name}")
        elif best.decision.value is not None:
            parts.append(f"value {best.decision.value:+.2f} for {position.color_name}")
        if depth := _depth_text(best):
            parts.append(depth if best.decision.depth is None else f"{depth} plies ahead")
        print(f"\n{'stopped; ' if found.is_stopped else ''}best: {', '.join(parts)}")

    def _print_cells(self, depth: str, discs: str, value: str, nodes: str, time_s: str, line: str) -> None:
        print(f"{depth:>5}  {discs:>7}  {value:>5}  {nodes:>15}  {time_s:>9}  {line}", flush=True)

    def _print_moves(self, found: Analysis) -> None:
        header = ("move", "discs", "depth", "share", "value", "prior", "exact", "loses", "reasons")
        columns = zip(header, *(self._cells(move, found) for move in found.moves), strict=True)
        aligned = []
        for name, *cells in columns:
            if any(cells):  # a column that says nothing is left out
                width = max(map(len, (name, *cells)))
                place = "<" if name in ("move", "reasons") else ">"
                aligned.append([f"{cell:{place}{width}}" for cell in (name, *cells)])
        print()
        for row in zip(*aligned, strict=True):
            print("  ".join(row).rstrip())

    def _cells(self, move: Move, found: Analysis) -> tuple[str, ...]:
        signs = ("-", "+")
        return (
            self._position.move_name(move.move),
            "" if move.thought is None else _discs_text(move.thought),
            "" if move.thought is None else _depth_text(move.thought),
            "" if move.share is None else f"{100 * move.share:.1f}%",
            "" if move.candidate is None else f"{move.candidate.value:+.2f}",
            "" if move.candidate is None else f"{100 * move.candidate.prior:.1f}%",
            "" if move.exact_score is None else signed(move.exact_score),
            str(found.regrets.get(move.move, "")),
            "; ".join(f"{signs[reason.is_good]} {phrase(reason, self._position)}" for reason in move.reasons),
        )


def _depth_text(thought: Thought) -> str:
    """Returns how far the agent looked ahead; nothing where it does not say."""
    if thought.decision.is_exact:
        return "exact"
    if thought.is_win:
        return "win"
    return "" if thought.decision.depth is None else str(thought.decision.depth)


def _discs_text(thought: Thought) -> str:
    """Returns the evaluation, with decimals where it is none that is proven; nothing where there is none."""
    evaluation = thought.decision.evaluation
    if evaluation is None:
        return ""
    if thought.decision.is_exact or thought.is_win:
        return ("≥ " if thought.is_win else "") + signed(evaluation)
    return f"{evaluation:+z.1f}"


def _line(thought: Thought, position: Position) -> list[str]:
    decision = thought.decision
    return [position.move_name(move) for move in decision.principal_line or (decision.move,)]


def _figures(found: Analysis) -> dict[str, Any]:
    """Returns what `--json` prints; null is what is not known."""
    position, thoughts = found.position, found.thoughts
    return {
        "variant": position.variant.name,
        "position": position.text,
        "to_move": position.color_name,
        "empties": position.num_empties,
        "is_over": position.is_over,
        "score": position.score if position.is_over else None,
        "best_move": position.move_name(thoughts[-1].decision.move) if thoughts else None,
        "lines": [_thought_figures(thought, position) for thought in thoughts],
        "moves": [_move_figures(move, found) for move in found.moves],
        "is_stopped": found.is_stopped,
    }


def _thought_figures(thought: Thought, position: Position) -> dict[str, Any]:
    decision = thought.decision
    return {
        "depth": decision.depth,
        "evaluation": None if decision.evaluation is None else float(decision.evaluation),
        "value": None if decision.value is None else float(decision.value),
        "is_exact": decision.is_exact,
        "is_win": thought.is_win,
        "principal_line": _line(thought, position),
        "nodes": decision.num_nodes,
        "elapsed_s": thought.elapsed_s,
    }


def _move_figures(move: Move, found: Analysis) -> dict[str, Any]:
    position = found.position
    return {
        "move": position.move_name(move.move),
        "thought": None if move.thought is None else _thought_figures(move.thought, position),
        "share": move.share,
        "visits": None if move.candidate is None else move.candidate.visits,
        "value": None if move.candidate is None else move.candidate.value,
        "prior": None if move.candidate is None else move.candidate.prior,
        "exact_score": move.exact_score,
        "regret": found.regrets.get(move.move),
        "reasons": [
            {"kind": reason.kind, **figures(reason, position), "text": phrase(reason, position)}
            for reason in move.reasons
        ],
    }
