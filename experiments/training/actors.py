"""Who plays the games of self-play: processes beside this one, its threads, or a Ray cluster (`ray_actors`).

A round's games are divided into units, by a rule that knows nothing of the actors; whoever is free takes the next one.
What becomes of a unit follows from its network, numbers and seed. So a round is the same whatever the number of actors,
whichever was faster, and whichever died: its unit is played anew.
"""

import atexit
import contextlib
import logging
import multiprocessing
import os
import queue
import signal
import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import numpy as np

from agents.mcts import Evaluator, MCTSConfig
from agents.mcts.cache import WAYS, CachedEvaluator
from agents.networks.published import InferenceConfig, Published
from agents.registry import told
from experiments.training.interruption import Interrupted, Stop, TrainingError
from experiments.training.self_play import SelfPlay, SelfPlayConfig, play_games
from reversi_env import Variant
from reversi_env.encoding import NUM_PLANES, write_planes
from reversi_env.naming import UnknownNameError

KINDS = ("local", "thread", "ray")
MOST_ACTORS = 1_000
DEFAULT_CACHE_ENTRIES = 1 << 16
MOST_DEATHS = 3  # over one unit; more say that it is no accident

LOOK_EVERY_S = 0.1  # for a request to stop
_GRACE_S = 1.0  # in which a process ends by itself, when it is no longer asked for anything

_LOG = logging.getLogger(__name__)


@dataclass
class ActorsConfig:
    """Who plays the games."""

    kind: str = "local"  # processes of one thread each; "thread": threads of this one; "ray": tasks on a Ray cluster
    num_actors: int = 0  # 0: as many as there are cores; on Ray as many as fit its CPUs, and nothing else
    inference: InferenceConfig = field(default_factory=InferenceConfig)  # by what they ask the network
    # Evaluations that are remembered while a unit is played; 0: none. By default DEFAULT_CACHE_ENTRIES of a residual
    # network, and none of n-tuples, which answer sooner than a cache: without it they played 44 % more games.
    cache_entries: int | None = None
    address: str | None = None  # of the Ray cluster; by default one of this machine's own is started

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownNameError("kind of actors", self.kind, KINDS)
        if not 0 <= self.num_actors <= MOST_ACTORS:
            raise ValueError(f"num_actors must be from 0 to {MOST_ACTORS:,}, got {self.num_actors}")
        if self.cache_entries and not WAYS <= self.cache_entries <= 1 << 24:
            raise ValueError(f"cache_entries must be 0, or from {WAYS} to {1 << 24:,}, got {self.cache_entries}")
        if self.kind == "ray" and self.num_actors:
            raise ValueError(f"num_actors must be 0 with kind=ray, whose CPUs say how many, got {self.num_actors}")
        if self.kind != "ray" and self.address is not None:
            raise ValueError(f"address is that of a Ray cluster, and kind={self.kind} has none")


@dataclass(frozen=True)
class Terms:
    """What all games of a run have in common."""

    variant: Variant
    search: MCTSConfig
    self_play: SelfPlayConfig
    cache_entries: int = 0

    def play(
        self, evaluate: Evaluator, numbers: Sequence[int], seed: tuple[int, ...], check: Callable[[], None]
    ) -> SelfPlay:
        """Returns a game for each of `numbers`, see `play_games`.

        The cache is begun anew each time, so that no rounding depends on what was played before.
        """
        if not self.cache_entries:
            return play_games(self.variant, evaluate, self.search, self.self_play, numbers, seed, check)
        cached = CachedEvaluator(evaluate, self.cache_entries)
        played = play_games(self.variant, cached, self.search, self.self_play, numbers, seed, check)
        return replace(played, num_cached=cached.hits, evaluator_s=cached.evaluator_s)


@dataclass(frozen=True)
class Unit:
    """Games that one actor plays side by side."""

    published: Published
    numbers: Sequence[int]
    seed: tuple[int, ...]


class Round:
    """Games that were asked for, and are being played."""

    def __init__(self, num_units: int) -> None:
        self._played: list[SelfPlay | None] = [None] * num_units
        self._num_missing = num_units
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def result(self, check: Callable[[], None]) -> SelfPlay:
        """Waits for the games and returns them in the order of their units; `check` is called meanwhile, and may raise.

        Raises what kept an actor from playing: TrainingError where that was in another process.
        """
        while not self._ended.wait(LOOK_EVERY_S):
            check()
        if self._error is not None:
            raise self._error
        return SelfPlay.joined([part for part in self._played if part is not None])

    def take(self, place: int, played: SelfPlay) -> None:
        """Takes the games of unit `place`; may be called from any thread."""
        with self._lock:
            self._played[place] = played
            self._num_missing -= 1
            if not self._num_missing:
                self._ended.set()

    def fail(self, error: BaseException) -> None:
        """Makes `result` raise; may be called from any thread."""
        with self._lock:
            self._error = self._error or error
            self._ended.set()


class Actors(ABC):
    """Those who play, wherever they are."""

    def __init__(self, games_per_unit: int) -> None:
        self._games_per_unit = games_per_unit  # at the most, played side by side

    def submit(self, published: Published, numbers: Sequence[int], seed: tuple[int, ...]) -> Round:
        """Has a game played for each of `numbers`, which with the seed fix its random choices; returns at once.

        Rounds are played in the order in which they are submitted.
        """
        num_units = -(-len(numbers) // self._games_per_unit)
        asked = Round(num_units)
        for place in range(num_units):
            self._submit(asked, place, Unit(published, numbers[place::num_units], seed))
        return asked

    @abstractmethod
    def _submit(self, asked: Round, place: int, unit: Unit) -> None:
        """Has a unit played, which is that at `place` of a round."""

    @abstractmethod
    def close(self) -> None:
        """Ends all actors, whatever they are playing; may be called again."""


class ActorDiedError(Exception):
    """An actor ended, or cannot be reached, before it had played its games; the text says how."""


class Deaths:
    """Counts who died over one unit."""

    def __init__(self) -> None:
        self._number = 0

    def add(self, error: ActorDiedError) -> None:
        """Says that the unit is played anew; raises TrainingError when it has been tried often enough."""
        self._number += 1
        if self._number == MOST_DEATHS:
            raise TrainingError(
                f"{self._number} actors died one after the other over the same games; the last {error}. "
                "Where memory is short, fewer actors or a lower self_play.games_at_once help"
            ) from None
        _LOG.warning("an actor %s; another one plays its games anew", error)


class Actor(ABC):
    """One that plays a unit at a time; asked from one thread only."""

    @abstractmethod
    def play(self, unit: Unit, check: Callable[[], None]) -> SelfPlay:
        """Returns the games; `check` is called meanwhile, and may raise.

        Raises ActorDiedError where it died over them, after which it can be asked again.
        """

    @abstractmethod
    def close(self) -> None: ...


class LocalActors(Actors):
    """Actors on this machine, a thread of this process to look after each."""

    def __init__(self, actors: Sequence[Actor], games_per_unit: int) -> None:
        super().__init__(games_per_unit)
        self._units: queue.SimpleQueue[tuple[Round, int, Unit] | None] = queue.SimpleQueue()
        self._stop = Stop()
        self._threads = [threading.Thread(target=self._look_after, args=(actor,), daemon=True) for actor in actors]
        for thread in self._threads:
            thread.start()
        atexit.register(self.close)  # before multiprocessing waits for its processes, which wait for us

    def _submit(self, asked: Round, place: int, unit: Unit) -> None:
        self._units.put((asked, place, unit))

    def close(self) -> None:
        atexit.unregister(self.close)
        self._stop.request()
        for _ in self._threads:
            self._units.put(None)
        for thread in self._threads:
            thread.join()

    def _look_after(self, actor: Actor) -> None:
        with contextlib.closing(actor):
            while (following := self._units.get()) is not None:
                asked, place, unit = following
                try:
                    asked.take(place, self._play(actor, unit))
                except BaseException as error:
                    asked.fail(error)

    def _play(self, actor: Actor, unit: Unit) -> SelfPlay:
        deaths = Deaths()
        while True:
            self._stop.check()
            try:
                return actor.play(unit, self._stop.check)
            except ActorDiedError as error:
                deaths.add(error)


class Worker:
    """Plays units where it is, keeping the evaluator of a network until the next one comes."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._published: Published | None = None
        self._evaluate: Evaluator | None = None

    def play(self, unit: Unit, check: Callable[[], None]) -> SelfPlay:
        if self._evaluate is None or self._published != unit.published:
            self._published, self._evaluate = unit.published, unit.published.evaluator()
        return self._terms.play(self._evaluate, unit.numbers, unit.seed, check)


class ThreadActor(Actor):
    """Plays in the thread that asks."""

    def __init__(self, terms: Terms) -> None:
        self._worker = Worker(terms)

    def play(self, unit: Unit, check: Callable[[], None]) -> SelfPlay:
        try:
            return self._worker.play(unit, check)
        except (TrainingError, Interrupted):
            raise
        except Exception as error:
            raise Failure.of(error).error() from error

    def close(self) -> None: ...


@dataclass(frozen=True)
class Failure:
    """What an exception said in another process."""

    sentence: str
    traceback: str

    @staticmethod
    def of(error: Exception) -> "Failure":
        expected = isinstance(error, ValueError | OSError) and str(error)
        return Failure(str(error) if expected else told(error), traceback.format_exc())

    def error(self) -> TrainingError:
        """Returns the error to raise; where tracebacks are shown it shows that of the other process too."""
        error = TrainingError(f"an actor failed: {self.sentence}")
        error.add_note(self.traceback)
        return error


class ProcessActor(Actor):
    """A process of its own, spawned when it is first asked and whenever it has died."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._published: Published | None = None  # the process has it

    def play(self, unit: Unit, check: Callable[[], None]) -> SelfPlay:
        try:
            connection = self._connection or self._started(check)
            is_new = unit.published != self._published
            connection.send((unit.published if is_new else None, unit.numbers, unit.seed))
            self._published = unit.published
            answer = _received(connection, check)
        except (EOFError, OSError) as error:
            raise ActorDiedError(self._ended() or f"could not be started ({error})") from None
        if isinstance(answer, Failure):
            raise answer.error()
        assert isinstance(answer, SelfPlay)
        return answer

    def close(self) -> None:
        self._ended()

    def _started(self, check: Callable[[], None]) -> Connection:
        context = multiprocessing.get_context("spawn")  # a forked child's torch hangs
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs, self._terms), daemon=True)
        # A process begins with the mask of the thread that starts it. Ctrl-C, or a SIGTERM to the whole group, is for
        # the parent: when that is gone its actors see it by themselves.
        resource_tracker.ensure_running()  # else that is started with the process, and ends by undoing the mask
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        with contextlib.closing(theirs):  # from here on theirs alone, so that its end is seen here
            process.start()
        self._connection, self._process = ours, process
        _received(ours, check)  # that it is ready; what is sent before may be more than a pipe holds
        return ours

    def _ended(self) -> str | None:
        """Ends the process, if it goes on, and returns how it ended; None where there was none."""
        connection, process = self._connection, self._process
        self._connection = self._process = self._published = None
        if connection is None or process is None:
            return None
        connection.close()
        process.join(_GRACE_S)
        if process.is_alive():
            process.kill()
            process.join()
        code = process.exitcode or 0
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _received(connection: Connection, check: Callable[[], None]) -> object:
    """Returns what comes; raises EOFError or OSError where nothing can come any more."""
    while not connection.poll(LOOK_EVERY_S):
        check()
    return connection.recv()


def work(connection: Connection, terms: Terms) -> None:
    """Plays what is asked for at the other end, until that is closed, or its process gone."""
    worker = Worker(terms)
    published: Published | None = None

    def check() -> None:
        if connection.poll():  # nothing is sent to one that plays
            raise Interrupted

    with contextlib.suppress(EOFError, OSError, Interrupted):
        connection.send(None)
        while True:
            new, numbers, seed = connection.recv()
            published = new or published
            assert published is not None
            try:
                answer: SelfPlay | Failure = worker.play(Unit(published, numbers, seed), check)
            except Exception as error:
                answer = Failure.of(error)
            connection.send(answer)


def make_actors(config: ActorsConfig, terms: Terms) -> Actors:
    """Returns the actors that a configuration names; raises TrainingError where a library is missing."""
    compile_kernels(terms)  # here, before many processes would do it at once
    games_per_unit = terms.self_play.games_at_once
    if config.kind == "ray":
        try:
            from experiments.training.ray_actors import RayActors  # needs an extra
        except ImportError as error:
            if error.name != "ray":
                raise
            raise TrainingError(
                'actors=ray needs ray, which an extra brings: pip install -c constraints.txt -e ".[ray]"'
            ) from None
        return RayActors(config.address, games_per_unit, terms)
    number = config.num_actors or os.cpu_count() or 1
    kind = ThreadActor if config.kind == "thread" else ProcessActor
    return LocalActors([kind(terms) for _ in range(number)], games_per_unit)


def compile_kernels(terms: Terms) -> None:
    """Plays a game without a network, so that every kernel that actors use is in the cache."""
    terms.play(_evaluate_evenly, range(1), (0,), lambda: None)


def _evaluate_evenly(player: np.ndarray, opponent: np.ndarray, variant: Variant) -> tuple[np.ndarray, np.ndarray]:
    planes = np.empty((len(player), NUM_PLANES, variant.size, variant.size), np.float32)
    legal = np.empty((len(player), variant.num_actions), np.bool_)
    write_planes(player, opponent, planes, legal, variant.rules)
    policy = legal / legal.sum(axis=1, keepdims=True)
    return policy.astype(np.float32), np.zeros(len(player), np.float32)
