"""The learner: gradient steps on positions from the replay."""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.optim.swa_utils import get_ema_multi_avg_fn

from agents.checkpoint import Network
from agents.networks.residual import Heads, ResidualNetwork, mask_logits
from experiments.training.distributed import Ranks
from experiments.training.interruption import TrainingError
from experiments.training.optimizer import (
    check_rates,
    cosine_rate,
    diverged,
    is_finite,
    load_optimizer_tensors,
    optimizer_tensors,
)
from experiments.training.replay import Batch, Replay
from experiments.training.tensors import check_tensors, join_tensors, split_tensors
from reversi_env import Variant
from reversi_env.naming import UnknownNameError

LARGEST_BATCH = 1 << 20  # positions; what fits the memory is less
OPTIMIZERS, COMPILE = ("adamw", "sgd"), ("auto", "always", "never")


@dataclass
class LearnerConfig:
    """How the network is fitted to the games."""

    batch_size: int = 256
    optimizer: str = "adamw"  # or "sgd"
    momentum: float = 0.9  # of SGD
    learning_rate: float = 2e-3
    final_learning_rate: float = 2e-4  # reached along a half cosine at the last iteration
    warmup_steps: int = 50  # in which the rate rises from nothing
    weight_decay: float = 1e-4
    max_gradient_norm: float = 5.0
    # Beside the cross-entropy of policies, which counts once; see `losses`.
    result_weight: float = 1.0
    margin_weight: float = 1.0
    owner_weight: float = 0.5
    search_value_share: float = 0.0  # of the target of results; the rest is how the game ended
    averaging_steps: int = 100  # over so many the weights that play are averaged; 1: they are the last ones
    samples_per_position: float = 8.0  # how often a position is drawn on average while it is new
    compile: str = "auto"  # by torch.compile: "auto" where there is a CUDA device, "always" or "never"

    def __post_init__(self) -> None:
        if not 2 <= self.batch_size <= LARGEST_BATCH:
            raise ValueError(
                f"batch_size must be from 2 (batch norm needs that many) to {LARGEST_BATCH:,}, got {self.batch_size}"
            )
        for name, chosen, choices in (
            ("optimizer", self.optimizer, OPTIMIZERS),
            ("choice of compile", self.compile, COMPILE),
        ):
            if chosen not in choices:
                raise UnknownNameError(name, chosen, choices)
        check_rates(self.learning_rate, self.final_learning_rate)
        for name in ("samples_per_position", "max_gradient_norm"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be above 0 and finite, got {getattr(self, name)}")
        for name in ("weight_decay", "result_weight", "margin_weight", "owner_weight"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be at least 0 and finite, got {getattr(self, name)}")
        if not 0 <= self.search_value_share <= 1:
            raise ValueError(f"search_value_share must be from 0 to 1, got {self.search_value_share}")
        if not 0 < self.momentum < 1:
            raise ValueError(f"momentum must be above 0 and below 1, got {self.momentum}")
        if self.warmup_steps < 0:
            raise ValueError(f"warmup_steps must be at least 0, got {self.warmup_steps}")
        if self.averaging_steps < 1:
            raise ValueError(f"averaging_steps must be at least 1, got {self.averaging_steps}")


class Sampling(Protocol):
    """How many positions a learner takes."""

    batch_size: int  # a step
    samples_per_position: float  # how often a position is drawn on average while it is new


class Learner(ABC):
    """What is fitted to the positions of a replay."""

    network: Network
    config: Sampling
    num_steps: int  # taken so far

    def compile(self, variant: Variant) -> None:  # noqa: B027 (torch has its own ways)
        """Compiles the kernels that it and its network need."""

    @abstractmethod
    def averaged(self) -> Network:
        """Returns a copy of the network with averaged weights: for self-play, evaluations and checkpoints."""

    @abstractmethod
    def learn(
        self, replay: Replay, num_steps: int, progress: float, rng: np.random.Generator, check: Callable[[], None]
    ) -> dict[str, float]:
        """Takes `num_steps` steps at the learning rate that belongs to `progress`, the share of the run that is done.

        Returns means over the steps by names of metrics, such as train/policy_loss; none where there is nothing to
        learn from. `check` is called before each step and may raise. Raises TrainingError when something is not finite.
        """

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """Returns all that the next step depends on, the network too; nothing changes it afterwards."""

    @abstractmethod
    def load_tensors(self, tensors: Mapping[str, Tensor], num_steps: int) -> None:
        """Takes up what `tensors` gave after so many steps; raises ValueError for what does not fit."""


class ResidualLearner(Learner):
    """A residual network, its optimizer, and the average of its weights over the last steps.

    The average is exponential: a step takes it towards the weights by 1 / `averaging_steps`, or while that is more than
    a tenth of the steps so far, by 10 / them. The statistics of batch norms are averaged likewise. To find those of the
    averaged weights anew, on 20 batches, changed losses on other games by 0.005 at the most, 0.001 as a rule.
    """

    network: ResidualNetwork
    config: LearnerConfig

    def __init__(self, network: ResidualNetwork, config: LearnerConfig, ranks: Ranks | None = None) -> None:
        """Begins with a network as it is; where there are `ranks`, of which this is the first, all compute."""
        self.network = network
        self._ranks = ranks
        self.num_steps = 0
        self.config = config
        self._device = next(network.parameters()).device
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs leave it out
        self._average = copy.deepcopy(network).eval().requires_grad_(False)
        self._averaged_pairs = [
            pair
            for pair in zip(self._average.state_dict().values(), network.state_dict().values(), strict=True)
            if pair[0].is_floating_point()  # and no count of batches
        ]
        self._optimizer = _optimizer_of(network, config)
        is_compiled = config.compile == "always" or (config.compile == "auto" and self._device.type == "cuda")
        self._forward: Callable[[Tensor], Heads] = torch.compile(network) if is_compiled else network

    def averaged(self) -> ResidualNetwork:
        return copy.deepcopy(self._average)

    def learn(
        self, replay: Replay, num_steps: int, progress: float, rng: np.random.Generator, check: Callable[[], None]
    ) -> dict[str, float]:
        if not len(replay) or num_steps < 1:
            return {}
        rate = cosine_rate(self.config.learning_rate, self.config.final_learning_rate, progress)
        self.network.train()
        sums: dict[str, float] = {}
        batches = replay.batches(self.config.batch_size, num_steps, rng)
        batch = next(batches, None)
        while batch is not None:
            check()
            numbers = self._step(batch, rate)
            batch = next(batches, None)  # while a GPU is still at the step
            for name, number in zip(numbers, torch.stack(list(numbers.values())).tolist(), strict=True):
                if not math.isfinite(number):
                    raise self._diverged(f"the {name} is {number}")
                sums[name] = sums.get(name, 0.0) + number
        if not is_finite(self.network, self._optimizer):
            raise self._diverged("the network or its optimizer has numbers that are not finite")
        means = {f"train/{name.replace(' ', '_')}": total / num_steps for name, total in sums.items()}
        return means | {"train/learning_rate": self._learning_rate, "train/steps": self.num_steps}

    def tensors(self) -> dict[str, Tensor]:
        groups = {
            "network": self.network.state_dict(),
            "average": self._average.state_dict(),
            "optimizer": optimizer_tensors(self._optimizer),
        }
        return {name: tensor.clone() for name, tensor in join_tensors(**groups).items()}

    def load_tensors(self, tensors: Mapping[str, Tensor], num_steps: int) -> None:
        network, average, optimizer = split_tensors(tensors, "network", "average", "optimizer")
        for found, module, what in ((network, self.network, "network"), (average, self._average, "average")):
            check_tensors(found, module.state_dict(), f"the learner's {what}")
            module.load_state_dict(found)
        load_optimizer_tensors(self._optimizer, optimizer, num_steps)
        self.num_steps = num_steps

    def gradients(self, batch: Batch) -> dict[str, Tensor]:
        """Adds a batch's gradients to the network's, and returns what there is to say of it by what it is."""
        targets = targets_of(batch, self.config.search_value_share, self._device)
        with torch.autocast("cuda", torch.bfloat16, enabled=self._device.type == "cuda"):
            heads = self._forward(targets.planes)
        loss, numbers = losses(Heads(*(head.float() for head in heads)), targets, self.config)
        loss.backward()
        return {"loss": loss.detach(), **numbers}

    @property
    def _learning_rate(self) -> float:
        return float(self._optimizer.param_groups[0]["lr"])

    def _step(self, batch: Batch, rate: float) -> dict[str, Tensor]:
        """Takes a step and returns what there is to say of it, numbers by what they are."""
        config = self.config
        self.num_steps += 1
        for group in self._optimizer.param_groups:
            group["lr"] = rate * min(self.num_steps / config.warmup_steps, 1.0) if config.warmup_steps else rate
        self._optimizer.zero_grad(set_to_none=True)
        numbers = self._ranks.step(self.network, batch, self.gradients) if self._ranks else self.gradients(batch)
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), config.max_gradient_norm)
        self._optimizer.step()
        self._take_average()
        return {**numbers, "gradient norm": norm}

    @torch.no_grad()
    def _take_average(self) -> None:
        share = 1 / min(self.config.averaging_steps, 1 + (self.num_steps - 1) / 10)
        means, new = zip(*self._averaged_pairs, strict=True)
        get_ema_multi_avg_fn(1 - share)(means, new, self.num_steps)

    def _diverged(self, what: str) -> TrainingError:
        return diverged(what, self.num_steps, self._learning_rate, "learner.learning_rate")


def _optimizer_of(network: ResidualNetwork, config: LearnerConfig) -> torch.optim.Optimizer:
    """Returns an optimizer under which biases and norms do not decay."""
    groups: list[dict[str, Any]] = [
        {"params": [parameter for parameter in network.parameters() if parameter.ndim > 1]},
        {"params": [parameter for parameter in network.parameters() if parameter.ndim <= 1], "weight_decay": 0.0},
    ]
    if config.optimizer == "adamw":
        return torch.optim.AdamW(groups, lr=config.learning_rate, weight_decay=config.weight_decay)
    return torch.optim.SGD(
        groups, lr=config.learning_rate, weight_decay=config.weight_decay, momentum=config.momentum, nesterov=True
    )


class Targets(NamedTuple):
    """What the network sees of B positions, and what it should say of them."""

    planes: Tensor  # float32 [B, 3, S, S], channels last
    legal: Tensor  # bool [B, A]
    policy: Tensor  # float32 [B, A]
    policy_weight: Tensor  # float32 [B]
    result: Tensor  # float32 [B, 3]  the probabilities of win, draw and loss
    margin: Tensor  # float32 [B]  the final score, as a share of the board's squares
    owner: Tensor  # float32 [B, S * S]  1, −1 or 0


def targets_of(batch: Batch, search_value_share: float, device: torch.device) -> Targets:
    """Returns a batch as tensors.

    A search's value v, which knows nothing of draws, is taken for a win with probability (1 + v) / 2, else a loss: so
    the expected result is a mean of the game's and the search's, and draws are held for too rare by the share.
    """
    legal, policy, weight, value, result, score, owner = (
        torch.from_numpy(array).to(device)
        for array in (
            batch.legal,
            batch.policy,
            batch.policy_weight,
            batch.value,
            batch.result,
            batch.score,
            batch.owner,
        )
    )
    played = F.one_hot(1 - result.long(), 3).float()
    wins = (1 + value.float()) / 2
    searched = torch.stack([wins, torch.zeros_like(wins), 1 - wins], dim=1)
    return Targets(
        planes=torch.from_numpy(batch.planes).to(device, memory_format=torch.channels_last),
        legal=legal,
        policy=policy.float(),
        policy_weight=weight.float(),
        result=torch.lerp(played, searched, search_value_share),
        margin=score.float() / owner.shape[1],
        owner=owner.float(),
    )


def losses(heads: Heads, targets: Targets, config: LearnerConfig) -> tuple[Tensor, dict[str, Tensor]]:
    """Returns what is made smaller, and numbers that tell of it, each a scalar by its name.

    That is the sum of the cross-entropy of policies, a mean by their weights; of the cross-entropy of results; of the
    squared error of margins, which are bounded, so that no outlier asks for a softer loss; and of the mean over squares
    of the cross-entropy of owners (Wu 2019, arXiv:1902.10565, section 4.1), an empty square being half of either's.
    """
    logits = mask_logits(heads.policy_logits, targets.legal)
    weight = targets.policy_weight
    cross_entropy = F.cross_entropy(logits, targets.policy, reduction="none")
    policy_loss = (weight * cross_entropy).sum() / weight.sum().clamp(min=1e-6)
    result_loss = F.cross_entropy(heads.result_logits, targets.result)
    margin_loss = F.mse_loss(heads.margin, targets.margin)
    # (1 + tanh x) / 2 is the logistic function of 2 x.
    owner_loss = F.binary_cross_entropy_with_logits(2 * heads.owner_logits, (1 + targets.owner) / 2)
    loss = (
        policy_loss
        + config.result_weight * result_loss
        + config.margin_weight * margin_loss
        + config.owner_weight * owner_loss
    )
    with torch.no_grad():
        entropy = -(torch.softmax(logits, dim=1) * torch.log_softmax(logits, dim=1)).sum(dim=1).mean()
        value_loss = F.mse_loss(heads.value, targets.result[:, 0] - targets.result[:, 2])
    return loss, {
        "policy loss": policy_loss.detach(),  # nats
        "policy entropy": entropy,  # nats, of the network's own policies
        "result loss": result_loss.detach(),  # nats
        "value loss": value_loss,  # squared error of expected results, which nothing is fitted to
        "margin loss": margin_loss.detach(),  # squared error
        "owner loss": owner_loss.detach(),  # nats a square
    }
