"""Search that can be stopped: an evaluator that looks, at each call, whether the run shall end."""

from dataclasses import dataclass

import numpy as np
import torch

from agents.mcts import Evaluator
from agents.networks.inference import NetworkEvaluator, TorchBackend
from agents.networks.residual import ResidualNetwork
from experiments.training.interruption import Stop
from reversi_env import Variant


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
