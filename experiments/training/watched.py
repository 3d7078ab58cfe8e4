"""Players that can be stopped: at each call they look whether the run shall end."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from agents.mcts import Evaluator
from agents.networks.inference import NetworkEvaluator
from agents.networks.residual import ResidualNetwork
from agents.networks.torch_backend import TorchBackend
from agents.registry import told
from experiments.training.interruption import Stop, TrainingError
from reversi_env import Variant
from reversi_env.opponent_pool import BatchOpponent


@dataclass
class Watched:
    """An evaluator that raises Interrupted once `stop` asks for it."""

    evaluate: Evaluator
    stop: Stop

    def __call__(self, player: np.ndarray, opponent: np.ndarray, variant: Variant) -> tuple[np.ndarray, np.ndarray]:
        self.stop.check()
        return self.evaluate(player, opponent, variant)


def watched_evaluator(network: ResidualNetwork, device: torch.device, stop: Stop) -> Watched:
    """Returns an evaluator of the network as it is now, whatever learning makes of it."""
    return Watched(NetworkEvaluator(TorchBackend(network, device)), stop)


@dataclass
class WatchedOpponent:
    """An opponent that calls `check`, which may raise, before it moves, and whose errors are TrainingErrors."""

    opponent: BatchOpponent
    check: Callable[[], None]

    @property
    def name(self) -> str:
        return self.opponent.name

    def choose(
        self, variant: Variant, boards: np.ndarray, is_black: np.ndarray, rng_state: np.ndarray, moves: np.ndarray
    ) -> None:
        """Writes a move for each game, as any `reversi_env.opponent_pool.BatchOpponent` does."""
        self.check()
        try:
            self.opponent.choose(variant, boards, is_black, rng_state, moves)
        except (Exception, SystemExit) as error:  # it may be anybody's code
            if str(error).startswith(f"opponent {self.name}"):
                raise TrainingError(str(error)) from error
            raise TrainingError(f"opponent {self.name} failed: {told(error)}") from error
