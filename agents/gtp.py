"""A player through an outside engine that speaks GTP for Othello, such as `gtp-rhino` of Debian's package grhino.

GTP is the Go Text Protocol, version 2 (https://www.lysator.liu.se/~gunnar/gtp/): a command is a line; an answer begins
with "=", or with "?" where the engine refuses, and ends with an empty line.
"""

import contextlib
import shlex
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agents.agent import Agent, Decision
from agents.engine_process import EngineError, EngineProcess, find_program
from agents.lines import Lines
from reversi_env import Game, Position, Variant

SET_UP = "grhino-setup_board"  # takes size² characters and a color; GTP itself knows only games
LONGEST_TIMEOUT_S = 86400.0


@dataclass
class GTPConfig:
    """Which program plays, and how long to wait for it."""

    command: str = ""  # its command line, as a shell splits one
    timeout_s: float = 120.0  # of each answer; gtp-rhino takes seconds for a move on level 4, and far longer on 5

    def __post_init__(self) -> None:
        if not 0 < self.timeout_s <= LONGEST_TIMEOUT_S:
            raise ValueError(f"timeout_s is more than 0 and at most {LONGEST_TIMEOUT_S:g}, got {self.timeout_s:g}")
        find_program(self.command)

    @property
    def name(self) -> str:
        """The text that makes the same player again, in a shell too."""
        options = "" if self.timeout_s == GTPConfig.timeout_s else f"timeout_s={self.timeout_s},command="
        return f"gtp:{options}{shlex.quote(self.command)}"


class Refusal(EngineError):
    """The engine answered that it will not, or cannot, do what it was asked."""


class GTPAgent(Agent):
    """Plays what an engine answers to `genmove`. One process, started at the first move, serves all games.

    The engine is told every position anew: by `grhino-setup_board` where it has that command, and else as a game that
    leads there (`agents.lines`), which is not found for every position. So no move depends on what was asked before,
    as far as it is ours to say; an engine's own chance is not, and takes nothing from `rng`. (gtp-rhino looks
    into its book only where it was told a game from the start, so here it plays as with `-b 0`.)

    What an engine computes is no CPU time of this process. An engine that fails is ended; the next move starts another.
    """

    def __init__(self, config: GTPConfig) -> None:
        self.config = config
        self.name = config.name
        self._engine: _Engine | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return GTPAgent, (self.config,)  # a copy, in another process perhaps, starts an engine of its own

    def select(self, position: Position, rng: np.random.Generator) -> Decision:
        """Returns the engine's move; where a pass is forced the engine is not asked.

        Raises EngineError when the engine ends, is late, refuses, or answers no legal move; another ValueError where
        the game is over, its rules are not the engine's, or it cannot be told the position.
        """
        variant = position.variant
        if position.is_over:
            raise ValueError(f"the game is over, so there is no move to choose: {position.text}")
        if variant.goal != "most" or variant.start == "free":
            raise ValueError(f"{self.name} cannot play {variant.name}: what GTP engines know is Othello")
        if position.must_pass:
            return Decision(variant.pass_move)
        try:
            if self._engine is None:
                self._engine = _Engine(self.config)
            return Decision(self._engine.move(position))
        except BaseException:  # Ctrl-C too: a late answer would be taken for that to the next question
            self.close()
            raise

    def close(self) -> None:
        """Ends the engine's process, if there is one; a later move starts another."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None


class _Engine:
    """A running engine, and how it is told a position."""

    def __init__(self, config: GTPConfig) -> None:
        self._process = EngineProcess(config.command, config.timeout_s, farewell="quit")
        self._size = 0  # of the board that it was told
        self._lines = Lines()

    def close(self) -> None:
        self._process.close()

    def move(self, position: Position) -> int:
        """Returns the engine's move in a position that has one."""
        self._tell(position)
        answer = self._ask(f"genmove {position.color_name}")
        with contextlib.suppress(ValueError):
            move = position.parse_move(answer)
            if move in position.legal_moves:
                return move
        legal = " ".join(map(position.move_name, position.legal_moves))
        raise EngineError(
            f"{self._process.command} answered {answer!r}, which is no legal move for {position.color_name} in "
            f"{position.text}; legal: {legal}"
        )

    def _tell(self, position: Position) -> None:
        if position.variant.size != self._size:
            self._ask(f"boardsize {position.variant.size}")
            self._size = position.variant.size
        if self._can_set_up:
            self._ask(f"{SET_UP} {position.board} {position.color_name}")
        else:
            self._tell_game(position)

    @cached_property
    def _can_set_up(self) -> bool:
        with contextlib.suppress(Refusal):
            return self._ask(f"known_command {SET_UP}") == "true"
        return False

    def _tell_game(self, position: Position) -> None:
        standard = Variant(position.variant.size)  # where "clear_board" begins, whatever the position's own start
        try:
            game = Game.from_moves(self._lines.to(Position.from_text(position.text, standard)), standard)
        except ValueError as error:
            raise ValueError(f"{self._process.command} has no command {SET_UP}, and {error}") from None
        self._ask("clear_board")
        for before, move in zip(game.positions, game.moves, strict=False):  # the last position has no move yet
            passing = contextlib.suppress(Refusal)  # an engine that passes by itself may not want to be told
            with passing if before.must_pass else contextlib.nullcontext():
                self._ask(f"play {before.color_name} {before.move_name(move)}")

    def _ask(self, command: str) -> str:
        """Returns the answer without its "="; raises Refusal, and EngineError where none comes or it is no GTP."""
        self._process.send(command)
        while not (line := self._process.read()):
            continue  # some engines end an answer with more than one empty line
        status, answer = line[0], line[1:]
        if status not in "=?":
            raise EngineError(f"{self._process.command} answered {line!r} to {command!r}, which is no GTP")
        while line := self._process.read():
            answer += f"\n{line}"
        if status == "?":
            raise Refusal(f"{self._process.command} refused {command!r}: {answer.strip()}")
        return answer.strip()
