"""A game in the terminal, against an agent or between two people.

    reversi play                              against the newest run under runs/, else level:medium
    reversi play alphabeta:depth=6 --color white --variant othello-6x6
    reversi play --two --moves f5d6c3         for two people, from an opening on
    reversi play greedy human                 black and white, one of them or both human

Moves are typed as f5; `help` lists the other words. Where a side cannot move it passes by itself.
"""

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import agents
from agents.agent import Agent, Decision
from experiments.arguments import UsageError, parse, setting
from experiments.match import decide
from experiments.match_settings import AGENTS
from reversi_env import Game, Position, Variant
from reversi_env.drawing.text import shows_color, to_ansi
from reversi_env.naming import UnknownNameError, one_of
from reversi_env.options import COLORS

HUMAN = "human"
OPPONENT = "level:medium"  # where nothing was trained
ADVISER = "alphabeta:depth=6"  # gives the hints where two people play
RUNS = Path("runs")
COMMANDS = {
    "hint": "what the agent would play",
    "moves": "the legal moves",
    "board": "draw the board again",
    "undo": "take your last move back",
    "resign": "give the game up",
    "quit": "leave",
    "help": "this list",
}


@dataclass
class PlaySettings:
    """What is played, and who sits where."""

    variant: str | None = setting(None, f"{', '.join(Variant.NAMES)}; else the agent's own, else othello")
    moves: str | None = setting(None, "moves that are played already, such as f5d6c3")
    color: str | None = setting(None, "your color against an agent: black, white or random (default: black)")
    two: bool = setting(False, "two people, no agent")
    hint: bool = setting(False, "give a hint before every move of yours")
    seed: int | None = setting(None, "of the agent's random choices, else a new one each time")

    def __post_init__(self) -> None:
        if self.color is not None:
            one_of("color", self.color, COLORS)
        if self.seed is not None and self.seed < 0:
            raise ValueError(f"the seed is 0 or more, got {self.seed}")


def main(arguments: list[str]) -> int:
    """Runs `reversi play`."""
    words, settings = parse("play", "[AGENT | BLACK WHITE]", PlaySettings, f"{__doc__}\n{AGENTS}", arguments)
    players = _players(words, settings)
    agent = players[0] or players[1]
    if settings.variant is not None:
        variant = Variant.named(settings.variant)
    else:
        variant = (agent and agent.variant) or Variant()
    Session(_game(settings.moves or "", variant), players, np.random.default_rng(settings.seed), settings.hint).run()
    return 0


def _game(moves: str, variant: Variant) -> Game:
    try:
        return Game.from_transcript(moves, variant)
    except ValueError as error:
        raise UsageError(f"moves: {error}") from None


def _players(words: list[str], settings: PlaySettings) -> tuple[Agent | None, Agent | None]:
    """Returns the players of black and white; None is a human."""
    match words:
        case [_, _] | [] if settings.color is not None and (words or settings.two):
            raise UsageError("the order of two players says who is black; color is for a game against one agent")
        case [black, white] if HUMAN in words and not settings.two:
            return _player(black), _player(white)
        case [_, _]:
            raise UsageError(f"one of two players is {HUMAN}; for agents alone there is reversi tournament")
        case [] if settings.two:
            return None, None
        case []:
            agent = _default_agent(settings.variant)
        case [spec] if not settings.two:
            agent = agents.make(spec)
        case _:
            raise UsageError(f"an agent, or the players of black and white, or --two; found {' '.join(words)}")
    color = random.choice(COLORS[:2]) if settings.color == "random" else settings.color
    return (agent, None) if color == "white" else (None, agent)


def _player(word: str) -> Agent | None:
    return None if word == HUMAN else agents.make(word)


def _default_agent(variant: str | None) -> Agent:
    """Returns the newest trained agent that was made for the variant, or for any where it is None, else OPPONENT."""
    for agent in _trained_agents():
        if variant is None or agent.variant == Variant.named(variant):
            return agent
    return agents.make(OPPONENT)


def _trained_agents() -> Iterator[Agent]:
    manifests = RUNS.glob("*/checkpoints/*/manifest.json")
    newest = sorted(manifests, key=lambda manifest: manifest.stat().st_mtime, reverse=True)
    runs = dict.fromkeys(manifest.parents[2] for manifest in newest)
    for run in runs:
        try:
            yield agents.make(str(run))  # a run is runs/x, so it cannot be taken for a name
        except ValueError as error:
            print(f"reversi: left out: {error}", file=sys.stderr)


class _Leave(Exception):
    """The game is broken off."""


class Session:
    """A game between two players, at least one of them a person at the keyboard."""

    def __init__(
        self, game: Game, players: tuple[Agent | None, Agent | None], rng: np.random.Generator, gives_hints: bool
    ) -> None:
        self.game = game
        self.players = players  # black, white; None is a person
        self.rng = rng
        self.gives_hints = gives_hints
        self.adviser = players[0] or players[1] or agents.make(ADVISER)

    def run(self) -> None:
        """Plays until the game is over, or until somebody resigns or leaves, and says how it ended."""
        print(f"{self._name(True)} (black) against {self._name(False)} (white), {self.game.position.variant.name}.")
        print(f"Type a square such as {self._example()}, or one of: {', '.join(COMMANDS)}.")
        try:
            while not self.game.is_over:
                self._turn(self.game.position)
            self._draw()
            print(_outcome(self.game.position))
        except (EOFError, KeyboardInterrupt):
            print()
        except _Leave as leave:
            print(leave)
        print(f"transcript: {self.game.transcript or '(no move)'}")

    def _name(self, is_black: bool) -> str:
        agent = self._agent(is_black)
        return agent.name if agent else HUMAN

    def _agent(self, is_black: bool) -> Agent | None:
        return self.players[0 if is_black else 1]

    def _example(self) -> str:
        position = self.game.position
        return position.move_name(position.legal_moves[0])

    def _turn(self, position: Position) -> None:
        agent = self._agent(position.is_black_to_move)
        if position.must_pass:
            print(f"{position.color_name} has no move and passes.")
            self.game.play(position.variant.pass_move)
        elif agent:
            (decision,) = decide(agent, [position], [self.rng])
            print(f"{agent.name} plays {position.move_name(decision.move)}.")
            self.game.play(decision.move)
        else:
            self._draw()
            if self.gives_hints:
                self._hint()
            self._ask(position)

    def _ask(self, position: Position) -> None:
        """Asks the person to move until there is a move, or one less."""
        while self.game.position is position:
            try:
                self._obey(input(f"{position.color_name}> ").strip().lower())
            except ValueError as error:
                print(error)

    def _obey(self, word: str) -> None:
        match word:
            case "":
                pass
            case "hint":
                self._hint()
            case "moves":
                print(" ".join(map(self.game.position.move_name, self.game.position.legal_moves)))
            case "board":
                self._draw()
            case "undo":
                self._undo()
            case "resign":
                raise _Leave(f"{self.game.position.color_name} resigns.")
            case "quit":
                raise _Leave("The game is broken off.")
            case "help":
                print("\n".join(f"  {name:<7} {explanation}" for name, explanation in COMMANDS.items()))
            case _ if word.isalpha() and word != "pass":
                raise UnknownNameError("command", word, COMMANDS)
            case _:
                self.game.play(word)

    def _undo(self) -> None:
        """Goes back to the last position in which a person chose a move."""
        earlier = self.game.positions[:-1]
        chosen = [
            ply
            for ply, position in enumerate(earlier)
            if self._agent(position.is_black_to_move) is None and not position.must_pass
        ]
        if not chosen:
            raise ValueError("you have not moved yet, so there is nothing to take back")
        while len(self.game.moves) > chosen[-1]:
            self.game.undo()

    def _hint(self) -> None:
        position = self.game.position
        print(f"hint: {self.adviser.name} would play {_told(position, self.adviser.analyze(position))}")

    def _draw(self) -> None:
        moves = self.game.moves
        last = moves[-1] if moves and moves[-1] < self.game.position.variant.num_squares else None
        print(to_ansi(replace(self.game.position.diagram(), last_move=last), color=shows_color()))


def _told(position: Position, decision: Decision) -> str:
    """Returns a decision in words."""
    parts = [position.move_name(decision.move)]
    if decision.evaluation is not None:
        parts.append(
            f"{decision.evaluation:+.1f} discs expected"
            if not decision.is_exact
            else f"{decision.evaluation:+.0f} discs for sure"
        )
    if decision.value is not None:
        parts.append(f"value {decision.value:+.2f}")
    if len(decision.principal_line) > 1:
        parts.append("line " + " ".join(map(position.move_name, decision.principal_line)))
    return ", ".join(parts)


def _outcome(position: Position) -> str:
    """Returns how a finished game ended, in words."""
    discs = f"black {position.num_black}, white {position.num_white}"
    score = position.black_score
    if score == 0:
        return f"{discs}: a draw."
    return f"{discs}: {'black' if score > 0 else 'white'} wins by {abs(score)}."
