"""The learner: gradient steps on positions from the replay."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional as F

from agents.networks.residual import ResidualNetwork, mask_logits
from experiments.training.interruption import TrainingError
from experiments.training.optimizer import check_rates, cosine_rate, diverged, is_finite
from experiments.training.replay import Replay

LARGEST_BATCH = 1 << 20  # positions; what fits the memory is less


@dataclass
class LearnerConfig:
    """How the network is fitted to the games."""

    batch_size: int = 256
    learning_rate: float = 2e-3
    final_learning_rate: float = 2e-4  # reached along a half cosine at the last iteration
    weight_decay: float = 1e-4
    value_weight: float = 1.0  # of the squared error of values beside the cross-entropy of policies
    samples_per_position: float = 8.0  # how often a position is drawn on average while it is new
    max_gradient_norm: float = 5.0

    def __post_init__(self) -> None:
        if not 2 <= self.batch_size <= LARGEST_BATCH:
            raise ValueError(
                f"batch_size must be from 2 (batch norm needs that many) to {LARGEST_BATCH:,}, got {self.batch_size}"
            )
        check_rates(self.learning_rate, self.final_learning_rate)
        for name in ("samples_per_position", "max_gradient_norm"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be above 0 and finite, got {getattr(self, name)}")
        for name in ("weight_decay", "value_weight"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be at least 0 and finite, got {getattr(self, name)}")


@dataclass(frozen=True)
class Losses:
    """Means over the steps of an iteration."""

    num_steps: int
    policy_loss: float  # cross-entropy in nats
    value_loss: float  # squared error
    gradient_norm: float
    learning_rate: float


class Learner:
    """A network and its optimizer."""

    def __init__(self, network: ResidualNetwork, config: LearnerConfig) -> None:
        self.network = network
        self.device = next(network.parameters()).device
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs leave it out
        self.config = config
        decayed = [parameter for parameter in network.parameters() if parameter.ndim > 1]
        others = [parameter for parameter in network.parameters() if parameter.ndim <= 1]  # biases and norms
        self.optimizer = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}],
            lr=config.learning_rate,
        )
        self.num_steps = 0

    def learn(
        self, replay: Replay, num_steps: int, progress: float, rng: np.random.Generator, check: Callable[[], None]
    ) -> Losses | None:
        """Takes `num_steps` steps at the learning rate that belongs to `progress`, the share of the run that is done.

        `check` is called before each step and may raise. Returns None where there is nothing to learn from. Raises
        TrainingError when the loss, its gradient, the network or the optimizer is not finite.
        """
        if not len(replay) or num_steps < 1:
            return None
        config = self.config
        rate = cosine_rate(config.learning_rate, config.final_learning_rate, progress)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.network.train()
        sums = np.zeros(3)
        for _ in range(num_steps):
            check()
            sums += self._step(replay, rng)
        if not is_finite(self.network, self.optimizer):
            raise self._diverged("the network or its optimizer has numbers that are not finite")
        policy_loss, value_loss, gradient_norm = (sums / num_steps).tolist()
        return Losses(num_steps, policy_loss, value_loss, gradient_norm, rate)

    def _step(self, replay: Replay, rng: np.random.Generator) -> np.ndarray:
        batch = replay.draw(self.config.batch_size, rng)
        planes, legal, policy, value = (
            torch.from_numpy(array).to(self.device) for array in (batch.planes, batch.legal, batch.policy, batch.value)
        )
        logits, values = self.network(planes.to(memory_format=torch.channels_last))
        policy_loss = F.cross_entropy(mask_logits(logits, legal), policy)
        value_loss = F.mse_loss(values, value)
        loss = policy_loss + self.config.value_weight * value_loss
        self.num_steps += 1
        if not torch.isfinite(loss):
            raise self._diverged(f"the loss is {loss.item()}")
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.config.max_gradient_norm)
        if not torch.isfinite(norm):
            raise self._diverged(f"the gradient's norm is {norm.item()}")
        self.optimizer.step()
        return np.array([policy_loss.item(), value_loss.item(), norm.item()])

    def _diverged(self, what: str) -> TrainingError:
        return diverged(what, self.num_steps, self.optimizer.param_groups[0]["lr"], "learner.learning_rate")
