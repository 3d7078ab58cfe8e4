"""N-tuples learn from games against themselves by shallow search, with exact ends, and are fitted to what those found.

An iteration plays games with the tables as the last one left them, and then fits these to the window of the newest
positions. What comes out depends on the seed alone, whatever the number of threads, unless the run ends by time.
"""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from agents.agent import Agent
from agents.alpha_beta import AlphaBetaAgent, AlphaBetaConfig
from agents.checkpoint import Network
from agents.evaluation import learned_evaluation
from agents.manifest import CheckpointError
from agents.ntuple.layout import layout_of
from agents.ntuple.tables import Tables
from agents.search.probcut import measured_model, sample_positions
from experiments.training.algorithm import Algorithm, Counters
from experiments.training.config import TrainConfig
from experiments.training.interruption import Stop, TrainingError
from experiments.training.ntuple_games import Positions, Style, predicted, self_play, share_of
from experiments.training.ntuple_learner import NTupleLearner
from experiments.training.optimizer import cosine_rate
from experiments.training.tensors import join_tensors, split_tensors

_LEARNER_ARRAYS = ("weights", "moved")


@dataclass
class NTupleCounters(Counters):
    num_games: int = 0
    num_positions: int = 0


class NTuple(Algorithm):
    def __init__(self, config: TrainConfig) -> None:
        super().__init__(config)
        self.counters: NTupleCounters = NTupleCounters()
        self._learner = NTupleLearner(layout_of(self.variant.size))
        self._window = Positions.empty(self.variant)

    def prepare(self) -> None:
        evaluation = learned_evaluation(self.tables)
        style = self._style()._replace(min_opening_plies=0, max_opening_plies=0)
        positions = self_play(self.variant, evaluation, style, 1, 0, 1, lambda: None).positions
        predicted(positions, evaluation, self.variant)
        sample_positions(evaluation, self.variant, 1, 0)  # searches as `measured_model` does
        NTupleLearner(self._learner.layout).learn(positions.boards, positions.target, np.arange(1), 0.1, 1.0, 1)

    def iterate(self, stop: Stop) -> dict[str, float]:
        config, schedule, counters = self.config.ntuple, self.config.schedule, self.counters
        num_threads = schedule.num_threads or os.cpu_count() or 1
        style = self._style()
        seed = np.random.SeedSequence(self.config.seed, spawn_key=(3, counters.iteration)).generate_state(1, np.uint64)
        began = time.monotonic()
        evaluation = learned_evaluation(self.tables)
        played = self_play(
            self.variant, evaluation, style, schedule.games_per_iteration, int(seed[0]), num_threads, stop.check
        )
        new = played.positions
        play_s = time.monotonic() - began
        if not len(new):
            raise TrainingError("every game ended within its random opening; try lower ntuple.max_opening_plies")
        errors = self._errors(new, predicted(new, evaluation, self.variant))
        stop.check()
        counters.num_games += played.num_games
        counters.num_positions += len(new)
        num_kept = min(schedule.replay_window, round(config.newest_share * counters.num_positions))
        self._window = window = Positions.joined([self._window, new]).at(slice(-max(num_kept, len(new)), None))
        rng = np.random.default_rng(np.random.SeedSequence(self.config.seed, spawn_key=(4, counters.iteration)))
        drawn = rng.integers(len(window), size=round(config.samples_per_position * len(new)))
        rate = cosine_rate(config.learning_rate, config.final_learning_rate, self.progress)
        keep = 1 - len(new) / len(window)
        self._learner.learn(window.boards, window.target, drawn, rate, keep, num_threads)
        seconds = time.monotonic() - began
        return errors | {
            "self_play/games": counters.num_games,
            "self_play/positions": counters.num_positions,
            "self_play/depth": style.depth,
            "self_play/plies_per_game": played.num_plies / played.num_games,
            "self_play/games_per_s": played.num_games / play_s,
            "self_play/positions_per_s": len(new) / play_s,
            "self_play/nodes_per_s": played.num_nodes / play_s,
            "replay/positions": len(window),
            "time/self_play_s": play_s,
            "time/fit_s": seconds - play_s,
            "time/iteration_s": seconds,
        }

    @property
    def tables(self) -> Tables:
        """What is learned by now, a copy."""
        return Tables(self.variant, self._learner.weights.copy())

    def copied(self) -> Network:
        counters = self.counters
        told = {"games": counters.num_games, "positions": counters.num_positions, "seconds": round(counters.elapsed_s)}
        return replace(self.tables, trained_with=told)

    def kept(self, network: Network) -> Network:
        """Returns the tables with an error model."""
        assert isinstance(network, Tables)
        if not network.weights.any():  # before the first iteration, of which there is nothing to measure
            return network
        model = measured_model(learned_evaluation(network), self.variant, self.config.seed)
        return replace(network, error_model=model)

    def take_up(self, network: Network) -> None:
        if not isinstance(network, Tables):
            raise CheckpointError("the checkpoint holds a network, the configuration asks for n-tuple tables")
        self._learner.weights = network.weights  # rounded; `load_tensors` has more digits

    @contextlib.contextmanager
    def player(self, name: str, stop: Stop) -> Iterator[Agent]:
        agent = AlphaBetaAgent(AlphaBetaConfig(depth=self.config.evaluation.depth), self.tables)
        agent.name = name
        yield agent

    def tensors(self) -> dict[str, Tensor]:
        learner = self._learner
        return join_tensors(  # the window's arrays are replaced, not changed
            learner={name: torch.from_numpy(getattr(learner, name).copy()) for name in _LEARNER_ARRAYS},
            window={name: torch.from_numpy(array) for name, array in self._window.arrays().items()},
        )

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        learned, window = split_tensors(tensors, "learner", "window")
        layout = self._learner.layout
        wanted = (layout.num_stages, layout.num_weights)
        for name in _LEARNER_ARRAYS:
            found = learned[name].numpy() if name in learned else None
            if found is None or found.shape != wanted or found.dtype != np.float32:
                raise ValueError(f"the learner's {name} are not float32 {wanted}")
            if not np.isfinite(found).all() or (name == "moved" and found.min() < 0):
                raise ValueError(f"the learner's {name} hold what no training leaves: a number not finite, or below 0")
            setattr(self._learner, name, found)
        self._window = Positions.from_arrays({name: tensor.numpy() for name, tensor in window.items()}, self.variant)

    def _style(self) -> Style:
        """Returns how games are played at this time of the run."""
        config = self.config.ntuple
        return Style(
            depth=config.depths[min(int(self.progress * len(config.depths)), len(config.depths) - 1)],
            exact_empties=config.exact_empties,
            min_opening_plies=config.min_opening_plies,
            max_opening_plies=config.max_opening_plies,
            exploration=share_of(config.exploration),
            trace=config.trace,
        )

    def _errors(self, positions: Positions, evaluations: np.ndarray) -> dict[str, float]:
        """Returns the root mean square, in discs, of what positions lack to their targets, overall and by stage."""
        layout = self._learner.layout
        stages = layout.stages[layout.count_empties(positions.boards)]
        squares = (evaluations - positions.target) ** 2
        errors = {"held_out/error": float(np.sqrt(squares.mean()))}
        for stage in np.unique(stages).tolist():
            most = (stage + 1) * layout.stage_width
            errors[f"held_out/error_to_{most}_empties"] = float(np.sqrt(squares[stages == stage].mean()))
        return errors
