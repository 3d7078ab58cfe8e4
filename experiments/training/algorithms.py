"""The algorithms by name."""

from pathlib import Path

import torch

from agents.checkpoint import read_checkpoint
from agents.manifest import CheckpointError
from agents.networks.residual import ResidualNetwork
from agents.runs import find_checkpoint
from experiments.training.algorithm import Algorithm
from experiments.training.alphazero import AlphaZero
from experiments.training.config import TrainConfig
from experiments.training.distributed import Ranks
from experiments.training.interruption import TrainingError
from experiments.training.learner import ResidualLearner
from experiments.training.ntuple import NTuple

_EXTRA = ("sb3_contrib", "stable_baselines3")


def make_algorithm(config: TrainConfig, begins: bool = True, ranks: Ranks | None = None) -> Algorithm:
    """Returns the algorithm that a configuration names, at the start of a run.

    Its network is drawn by the seed, or is that of `init_from` where the run `begins` with it. Where there are `ranks`,
    of which this is the first, all compute its gradients. Raises TrainingError where a library is missing,
    CheckpointError where that network cannot be used, and what `agents.make` raises for opponents.
    """
    if config.algorithm == "ntuple":
        return NTuple(config)
    torch.manual_seed(config.seed)
    network = ResidualNetwork(config.network)
    if config.init_from is not None and begins:
        _begin_from(network, Path(config.init_from))
    network.to(config.to_device())
    if config.algorithm == "alphazero":
        return AlphaZero(config, ResidualLearner(network, config.learner, ranks))
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


def follow(config: TrainConfig, ranks: Ranks) -> None:
    """Computes gradients for the first of `ranks`, in any other one, until that ends."""
    learner = ResidualLearner(ResidualNetwork(config.network).to(config.to_device()), config.learner)
    ranks.follow(learner.network, config.variant.to_variant(), learner.gradients)


def _begin_from(network: ResidualNetwork, path: Path) -> None:
    """Takes the weights of a run or checkpoint, of whatever board; raises CheckpointError where they do not fit."""
    found = read_checkpoint(find_checkpoint(path)).network
    if not isinstance(found, ResidualNetwork):
        raise CheckpointError(f"init_from={path} holds n-tuple tables, the configuration asks for a network")
    if found.config != network.config:
        raise CheckpointError(
            f"the network of init_from={path} is {found.config}, the configuration asks for {network.config}"
        )
    network.load_state_dict(found.state_dict())
