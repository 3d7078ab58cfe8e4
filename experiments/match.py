"""A match: two players, every opening twice with colors swapped, all games side by side."""

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from agents.agent import Agent, Decision
from agents.registry import told
from reversi_env import Game, IllegalMoveError, Position, Variant, random_games
from reversi_env.durable import write_file
from reversi_env.naming import UsageError

OPENING_PLIES = {4: 2, 6: 6, 8: 8, 10: 8}  # by board size: enough openings for hundreds of games, most of the game left
VALUE_DIGITS = 4  # of what is kept of a value
DRAWN_AT_ONCE = 1000  # random games; when as many bring no opening that is new, hardly any is left

Progress = Callable[[int, int], None]  # games finished, games in all


class MatchError(ValueError):
    """A player broke off the match: it failed, or its move was illegal. The sentence names player and position."""


@dataclass(frozen=True)
class PlayedGame:
    """One finished game of a match. Fields are what a line of a games file holds."""

    black: str
    white: str
    variant: str
    opening: str  # transcripts leave passes out
    moves: str  # the whole game, the opening included
    values: list[float | None]  # what its player told of each of `moves`, in [-1, 1] for itself; None: nothing, opening
    black_score: int
    black_cpu_s: float  # in a batch of positions each takes an equal share
    white_cpu_s: float


class Turn(NamedTuple):
    """A move that a player made in a game."""

    position: Position
    move: int
    value: float | None  # what the player expected, in [-1, 1]; None where it told nothing
    last_move: int | None  # the other side's, or a pass, before it; None at the start of the game


@dataclass(frozen=True)
class Match:
    """The finished games of two players. Counts and points are the first player's."""

    first: str
    second: str
    variant: Variant
    seed: int
    games: tuple[PlayedGame, ...]  # games 2k and 2k + 1 share an opening; the first player is black in game 2k

    def turns(self, number: int) -> Iterator[Turn]:
        """Yields the first player's moves in a game after its opening, without passes."""
        played = self.games[number]
        game = Game.from_transcript(played.moves, self.variant)
        num_opening = len(Game.from_transcript(played.opening, self.variant).moves)
        values = iter(played.values)
        last_move = None
        for ply, (position, move) in enumerate(zip(game.positions[:-1], game.moves, strict=True)):
            if not position.must_pass:
                value = next(values)
                if ply >= num_opening and position.is_black_to_move == (number % 2 == 0):
                    yield Turn(position, move, value, last_move)
            last_move = move

    @property
    def results(self) -> np.ndarray:
        """The first player's result in each game, -1, 0 or +1, int [num_games]."""
        signs: np.ndarray = np.array([(game.black_score > 0) - (game.black_score < 0) for game in self.games])
        signs[1::2] *= -1
        return signs

    @property
    def wins(self) -> int:
        return int((self.results == 1).sum())

    @property
    def draws(self) -> int:
        return int((self.results == 0).sum())

    @property
    def losses(self) -> int:
        return int((self.results == -1).sum())

    @property
    def pair_points(self) -> np.ndarray:
        """What the first player took of each pair, draws half: 0 to 2, float [num_games / 2]."""
        return np.asarray(((self.results + 1) / 2).reshape(-1, 2).sum(axis=1))

    @property
    def num_openings(self) -> int:
        """How many different openings there were; fewer than pairs where the board has no more."""
        return len({game.opening for game in self.games})

    @property
    def cpu_s_per_game(self) -> tuple[float, float]:
        """CPU seconds that the first and the second player thought, a game."""
        times = np.array([(game.black_cpu_s, game.white_cpu_s) for game in self.games])
        times[1::2] = times[1::2, ::-1]
        first, second = times.mean(axis=0)
        return float(first), float(second)


def play_match(
    first: Agent,
    second: Agent,
    variant: Variant,
    num_games: int,
    seed: int,
    opening_plies: int | None = None,
    progress: Progress | None = None,
) -> Match:
    """Returns the match of two players over `num_games` games, a pair for each opening.

    Every game has generators of its own, drawn from the seed, the game's number and the color, so no game's random
    choices depend on which games are played beside it. Where a player must pass it is not asked. Raises MatchError when
    a player fails or moves illegally, UsageError for an odd number of games or an opening that no game reaches.
    """
    if num_games < 2 or num_games % 2:
        raise UsageError(f"games come in pairs, so their number is even and at least 2, got {num_games}")
    openings = draw_openings(variant, num_games // 2, seed, opening_plies)
    tables = [
        _Table(
            Game.from_moves(openings[number // 2], variant), (first, second)[:: -1 if number % 2 else 1], seed, number
        )
        for number in range(num_games)
    ]
    for agent in (first, second):  # whatever is compiled or loaded at a first move is no thinking
        decide(agent, [Position(variant)], [np.random.default_rng(seed)])
    playing = tables
    while playing := [table for table in playing if not table.is_over()]:
        for agent in {id(agent): agent for agent in (first, second)}.values():
            _move([table for table in playing if table.agent is agent and not table.is_over()], agent)
        if progress:
            progress(sum(table.is_over() for table in tables), num_games)
    opening_texts = [Game.from_moves(opening, variant).transcript for opening in openings]
    games = tuple(table.record(opening_texts[number // 2]) for number, table in enumerate(tables))
    return Match(first.name, second.name, variant, seed, games)


def within(progress: Progress | None, num_before: int, num_games: int) -> Progress | None:
    """Returns the progress of a match that follows `num_before` games of others, `num_games` in all."""
    return None if progress is None else lambda finished, _: progress(num_before + finished, num_games)


def draw_openings(variant: Variant, num_openings: int, seed: int, plies: int | None = None) -> list[tuple[int, ...]]:
    """Returns openings of `plies` random moves, passes included, after which the game goes on.

    They lead to different positions; where the game has too few, they come round again. Raises UsageError where none
    exists, or for a negative seed.
    """
    if seed < 0:
        raise UsageError(f"the seed is 0 or more, got {seed}")
    plies = OPENING_PLIES[variant.size] if plies is None else plies
    if plies < 0:
        raise UsageError(f"an opening has 0 or more plies, got {plies}")
    found: dict[Position, tuple[int, ...]] = {}
    num_drawn = 0
    while len(found) < num_openings:
        num_before = len(found)
        games = random_games(Position(variant), DRAWN_AT_ONCE, seed, first=num_drawn)
        num_drawn += DRAWN_AT_ONCE
        for moves in games.moves[games.lengths > plies, :plies].tolist():
            found.setdefault(Game.from_moves(moves, variant).position, tuple(moves))
            if len(found) == num_openings:
                break
        if len(found) == num_before:
            break
    if not found:
        raise UsageError(f"no game of {variant.name} goes on after {plies} plies; ask for a shorter opening")
    openings = list(found.values())
    return [openings[number % len(openings)] for number in range(num_openings)]


class _Table:
    """A game in progress: who sits where, with which random numbers, and for how long each thought."""

    def __init__(self, game: Game, players: Sequence[Agent], seed: int, number: int) -> None:
        self.game = game
        self.players = players  # black, white
        self.rngs = [np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number, color))) for color in (0, 1)]
        self.cpu_s = [0.0, 0.0]
        self.values: list[float | None] = [None for move in game.moves if move != game.position.variant.pass_move]
        self._pass_where_forced()

    @property
    def color(self) -> int:
        """0 where black is to move, else 1."""
        return 0 if self.game.position.is_black_to_move else 1

    @property
    def agent(self) -> Agent:
        """The player to move."""
        return self.players[self.color]

    def is_over(self) -> bool:
        return self.game.is_over

    def play(self, decision: Decision, cpu_s: float) -> None:
        color = self.color
        self.game.play(decision.move)
        self.values.append(None if decision.value is None else round(float(decision.value), VALUE_DIGITS))
        self.cpu_s[color] += cpu_s
        self._pass_where_forced()

    def _pass_where_forced(self) -> None:
        if self.game.position.must_pass:  # never twice running: then the game is over
            self.game.play(self.game.position.variant.pass_move)

    def record(self, opening: str) -> PlayedGame:
        black, white = (player.name for player in self.players)
        position = self.game.position
        variant, moves = position.variant.name, self.game.transcript
        return PlayedGame(black, white, variant, opening, moves, self.values, position.black_score, *self.cpu_s)


def _move(tables: Sequence[_Table], agent: Agent) -> None:
    """Plays a move on each table, where `agent` is to move."""
    if not tables:
        return
    began = time.process_time()
    decisions = decide(agent, [table.game.position for table in tables], [table.rngs[table.color] for table in tables])
    cpu_s = (time.process_time() - began) / len(tables)
    for table, decision in zip(tables, decisions, strict=True):
        table.play(decision, cpu_s)


def decide(agent: Agent, positions: Sequence[Position], rngs: Sequence[np.random.Generator]) -> list[Decision]:
    """Returns an agent's decisions, all of them legal; raises MatchError, which names the agent and the position."""
    try:
        decisions = list(agent.select_batch(positions, rngs))
    except (Exception, SystemExit) as error:  # an agent may be anybody's code
        position = _first_failure(agent, positions, rngs)
        raise MatchError(f"{agent.name} failed in {position.text}: {told(error)}") from error
    if len(decisions) != len(positions):
        raise MatchError(f"{agent.name} gave {len(decisions)} decisions for {len(positions)} positions")
    for position, decision in zip(positions, decisions, strict=True):
        if not isinstance(decision, Decision):
            raise MatchError(f"{agent.name} answered {decision!r}, which is no Decision, in {position.text}")
        try:
            position.play(decision.move)
        except IllegalMoveError as error:
            raise MatchError(f"{agent.name} broke the rules: {error}") from None
        except TypeError as error:
            raise MatchError(f"{agent.name} answered no move in {position.text}: {error}") from None
    return decisions


def _first_failure(agent: Agent, positions: Sequence[Position], rngs: Sequence[np.random.Generator]) -> Position:
    """Returns the first position in which `agent` fails when asked alone; the first of all where it fails in none."""
    for position, rng in zip(positions, rngs, strict=True):
        try:
            agent.select(position, rng)
        except (Exception, SystemExit):
            return position
    return positions[0]


@contextlib.contextmanager
def claimed(path: str | os.PathLike[str]) -> Iterator[None]:
    """Makes an empty file, so that a path that cannot be written fails before hours of play.

    Where nothing was written to it in the end, the file goes again. Raises OSError where the file exists already or
    cannot be made.
    """
    Path(path).open("x").close()
    try:
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            if not Path(path).stat().st_size:
                Path(path).unlink()


def save_games(path: str | os.PathLike[str], games: Iterable[PlayedGame]) -> None:
    """Writes games as JSON, one a line; after a crash the file is as a whole, or as it was before."""
    write_file(Path(path), "".join(json.dumps(asdict(game)) + "\n" for game in games))
