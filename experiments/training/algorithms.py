"""The algorithms by name."""

import importlib.util

import torch

from agents.networks.residual import ResidualNetwork
from experiments.training.algorithm import Algorithm
from experiments.training.alphazero import AlphaZero
from experiments.training.config import TrainConfig
from experiments.training.interruption import TrainingError


def make_algorithm(config: TrainConfig) -> Algorithm:
    """Returns the algorithm that a configuration names, at the start of a run, its network drawn by the seed.

    Raises TrainingError where a library is missing, and what `agents.make` raises for opponents.
    """
    torch.manual_seed(config.seed)
    network = ResidualNetwork(config.network).to(config.to_device())
    if config.algorithm == "alphazero":
        return AlphaZero(config, network)
    if importlib.util.find_spec("sb3_contrib") is None:
        raise TrainingError(
            'algorithm=maskable_ppo needs sb3-contrib, which is an extra: pip install -c constraints.txt -e ".[rl]"'
        )
    from experiments.training.maskable_ppo import PPO  # needs that extra

    return PPO(config, network)
