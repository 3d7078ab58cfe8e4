"""The algorithms by name."""

from pathlib import Path
from typing import TypeVar

import torch

from agents.checkpoint import read_checkpoint
from agents.evaluation import WEIGHTS
from agents.manifest import CheckpointError
from agents.networks.residual import ResidualNetwork
from agents.ntuple.network import TupleNetwork
from agents.registry import shipped
from agents.runs import find_checkpoint
from experiments.training.algorithm import Algorithm
from experiments.training.alphazero import AlphaZero
from experiments.training.config import NTUPLE, TrainConfig
from experiments.training.distributed import Ranks
from experiments.training.interruption import TrainingError
from experiments.training.learner import ResidualLearner
from experiments.training.ntuple import NTuple
from experiments.training.tuple_learner import TupleLearner

_EXTRA = ("sb3_contrib", "stable_baselines3")

_Kind = TypeVar("_Kind", ResidualNetwork, TupleNetwork)


def make_algorithm(config: TrainConfig, begins: bool = True, ranks: Ranks | None = None) -> Algorithm:
    """Returns the algorithm that a configuration names, at the start of a run.

    Its network is drawn by the seed, or is that of `init_from` where the run `begins` with it. Where there are `ranks`,
    of which this is the first, all compute its gradients. Raises TrainingError where a library is missing,
    CheckpointError where that network cannot be used, and what `agents.make` raises for opponents.
    """
    if config.algorithm == "ntuple":
        return NTuple(config)
    if config.network.kind == NTUPLE:
        return AlphaZero(config, TupleLearner(_tuples(config, begins), config.tuples))
    torch.manual_seed(config.seed)
    network = ResidualNetwork(config.network.residual)
    if begins and config.init_from is not None:
        _take_weights(network, _network_of(config, config.init_from, ResidualNetwork), config.init_from)
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
    learner = ResidualLearner(ResidualNetwork(config.network.residual).to(config.to_device()), config.learner)
    ranks.follow(learner.network, config.variant.to_variant(), learner.gradients)


def _tuples(config: TrainConfig, begins: bool) -> TupleNetwork:
    """Returns the n-tuples that a run begins with."""
    size = config.variant.size
    if not begins or config.init_from is None:
        return TupleNetwork.new(size)
    found = _network_of(config, config.init_from, TupleNetwork)
    if found.size != size:
        raise CheckpointError(
            f"the n-tuples of init_from={config.init_from} are of {found.size}×{found.size}, and fit no other board"
        )
    return found


def _network_of(config: TrainConfig, init_from: str, kind: type[_Kind]) -> _Kind:
    """Returns the network of a run, a checkpoint or a name of `shipped`, which must be of a kind and of the goal."""
    folder = WEIGHTS / init_from if init_from in shipped() else find_checkpoint(Path(init_from))
    found = read_checkpoint(folder)
    if not isinstance(found.network, kind):
        cures = {
            ResidualNetwork: "; say experiment=quick_network, or network=small and fewer games",
            TupleNetwork: "; say network=ntuple",
        }
        cure = cures.get(type(found.network), "") if config.algorithm == "alphazero" else ""
        raise CheckpointError(
            f"init_from={init_from} holds a {type(found.network).__name__}, "
            f"network.kind={config.network.kind} is a {kind.__name__}{cure}"
        )
    if found.variant.goal != config.variant.goal:
        raise CheckpointError(
            f"init_from={init_from} was trained to win with the {found.variant.goal} discs, "
            f"and the run's variant is won with the {config.variant.goal}"
        )
    return found.network


def _take_weights(network: ResidualNetwork, found: ResidualNetwork, init_from: str) -> None:
    """Takes the weights of another network, of whatever board; raises CheckpointError where they do not fit."""
    if found.config != network.config:
        raise CheckpointError(
            f"the network of init_from={init_from} is {found.config}, the configuration asks for {network.config}"
        )
    network.load_state_dict(found.state_dict())
