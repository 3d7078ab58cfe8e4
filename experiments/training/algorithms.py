"""The algorithms by name."""

import torch

from agents.networks.residual import ResidualNetwork
from experiments.training.algorithm import Algorithm
from experiments.training.alphazero import AlphaZero
from experiments.training.config import TrainConfig
from experiments.training.interruption import TrainingError
from experiments.training.ntuple import NTuple

_EXTRA = ("sb3_contrib", "stable_baselines3")


def make_algorithm(config: TrainConfig) -> Algorithm:
    """Returns the algorithm that a configuration names, at the start of a run, its network drawn by the seed.

    Raises TrainingError where a library is missing, and what `agents.make` raises for opponents.
    """
    if config.algorithm == "ntuple":
        return NTuple(config)
    torch.manual_seed(config.seed)
    network = ResidualNetwork(config.network).to(config.to_device())
    if config.algorithm == "alphazero":
        return AlphaZero(config, network)
    try:
        from experiments.training.maskable_ppo import PPO  # needs an extra
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        raise TrainingError(
            f"algorithm=maskable_ppo needs {error.name}, which an extra brings: "
            'pip install -c constraints.txt -e ".[rl]"'
        ) from None
    return PPO(config, network)
