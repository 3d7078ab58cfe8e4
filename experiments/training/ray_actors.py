"""Actors on a Ray cluster, as tasks: whatever worker has a free CPU plays the next unit.

A network goes to Ray's object store once a round and reaches each node from there; games come back as they end. A unit
whose worker or node dies is played anew, elsewhere or where a new node comes up; nothing else is lost. Every node needs
this version of Reversi Lab. Ray pickles what it sends: who can reach its ports can run code, as on any Ray cluster.
"""

import logging
import os
import signal
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import ray
from ray import exceptions

from agents.networks.published import Published
from experiments.training.actors import (
    LOOK_EVERY_S,
    ActorDiedError,
    Actors,
    Deaths,
    Failure,
    Round,
    Terms,
    Unit,
    Worker,
)
from experiments.training.interruption import TrainingError
from experiments.training.self_play import SelfPlay

_REACHED_WITHIN_S = 10.0
_LOSSES = (  # of a worker, a node, or of what they had played
    exceptions.WorkerCrashedError,
    exceptions.NodeDiedError,
    exceptions.OutOfMemoryError,
    exceptions.ObjectLostError,
    exceptions.LocalRayletDiedError,
)
_LOG = logging.getLogger(__name__)


@dataclass
class _Asked:
    """A unit that was asked for."""

    round: Round
    place: int
    arguments: tuple[object, ...]  # of `_play`
    deaths: Deaths = field(default_factory=Deaths)


class RayActors(Actors):
    """The CPUs of a Ray cluster: of that at `address`, or of one on this machine, which ends with it."""

    def __init__(self, address: str | None, games_per_unit: int, terms: Terms) -> None:
        super().__init__(games_per_unit)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        handler = signal.getsignal(signal.SIGTERM)
        try:
            _reach(address or "")
            ray.init(address or "local", include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, ValueError, RuntimeError, exceptions.RayError) as error:
            raise TrainingError(f"no Ray cluster at {address or 'this machine'}: {_first_line(error)}") from None
        finally:
            signal.signal(signal.SIGTERM, handler)  # Ray's own would end the run without a checkpoint
        if not ray.cluster_resources().get("CPU"):
            _LOG.warning("the Ray cluster has no CPU yet; games wait for a node that has")
        self._task = ray.remote(num_cpus=1, max_retries=0)(_play)  # what is lost is asked for anew here
        self._terms = ray.put(terms)
        self._shared: tuple[Published, ray.ObjectRef[Published]] | None = None  # the newest network
        self._asked: dict[ray.ObjectRef[SelfPlay | Failure], _Asked] = {}
        self._lock = threading.Lock()
        self._is_closing = threading.Event()
        self._collector = threading.Thread(target=self._collect, daemon=True)
        self._collector.start()

    def close(self) -> None:
        if not self._is_closing.is_set():
            self._is_closing.set()
            self._collector.join()
            ray.shutdown()  # which ends the tasks too

    def _submit(self, asked: Round, place: int, unit: Unit) -> None:
        if self._shared is None or self._shared[0] != unit.published:
            self._shared = unit.published, ray.put(unit.published)
        self._start(_Asked(asked, place, (self._shared[1], self._terms, unit.numbers, unit.seed)))

    def _start(self, asked: _Asked) -> None:
        reference = self._task.remote(*asked.arguments)
        with self._lock:
            self._asked[reference] = asked

    def _collect(self) -> None:
        """Hands out what has been played, until everything is closed, or Ray fails."""
        try:
            self._hand_out()
        except Exception as error:
            _LOG.debug("Ray failed", exc_info=True)
            with self._lock:
                left = list(self._asked.values())
            for asked in left:
                asked.round.fail(TrainingError(f"Ray cannot have games played: {_first_line(error)}"))

    def _hand_out(self) -> None:
        while not self._is_closing.is_set():
            with self._lock:
                references = list(self._asked)
            if not references:
                self._is_closing.wait(LOOK_EVERY_S)
                continue
            for reference in ray.wait(references, timeout=LOOK_EVERY_S)[0]:
                with self._lock:
                    asked = self._asked.pop(reference)
                try:
                    self._take(reference, asked)
                except BaseException as error:
                    asked.round.fail(error)

    def _take(self, reference: "ray.ObjectRef[SelfPlay | Failure]", asked: _Asked) -> None:
        try:
            answer = ray.get(reference)
        except _LOSSES as error:
            died = ActorDiedError(f"on the Ray cluster died ({type(error).__name__})")
            if isinstance(error, exceptions.NodeDiedError):  # no fault of the games, and nodes come and go
                _LOG.warning("an actor %s; its games are played anew", died)
            else:
                asked.deaths.add(died)
            self._start(asked)
        except exceptions.RayError as error:  # such as that of a node without Reversi Lab
            raise TrainingError(f"Ray cannot have games played: {_first_line(error)}") from None
        else:
            if isinstance(answer, Failure):
                raise answer.error()
            asked.round.take(asked.place, answer)


_workers: list[Worker] = []  # of this worker's process: one, since a worker serves a single run


def _play(published: Published, terms: Terms, numbers: Sequence[int], seed: tuple[int, ...]) -> SelfPlay | Failure:
    """Plays a unit in a worker of Ray's."""
    if not _workers:
        _workers.append(Worker(terms))
    try:
        return _workers[0].play(Unit(published, numbers, seed), lambda: None)
    except Exception as error:
        return Failure.of(error)


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _reach(address: str) -> None:
    """Raises OSError where nobody answers at a host and port; Ray itself would go on trying for ten minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if port.isdecimal():
        with socket.create_connection((host, int(port)), timeout=_REACHED_WITHIN_S):
            pass
