"""Proximal policy optimization with masks of legal actions, by sb3-contrib's MaskablePPO: the policy plays opponents.

PPO: Schulman et al. 2017 (arXiv:1707.06347). Masks: Huang and Ontañón 2020 (arXiv:2006.14171).
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.distributions import MaskableDistribution
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.logger import Logger
from torch import Tensor

import agents
from agents.networks.residual import ResidualNetwork
from experiments.training.algorithm import Counters, NetworkAlgorithm
from experiments.training.config import TrainConfig
from experiments.training.interruption import Stop, TrainingError
from experiments.training.optimizer import (
    cosine_rate,
    diverged,
    is_finite,
    load_optimizer_tensors,
    optimizer_tensors,
)
from experiments.training.sb3_env import PlanesVecEnv
from experiments.training.tensors import join_tensors, split_tensors
from experiments.training.watched import WatchedOpponent
from reversi_env import IllegalMoveError

# Our names for the numbers of an update: sb3's names, and the signs that turn those into ours.
_UPDATE_NUMBERS = {
    # Here the clipped surrogate, near 0 by construction; under one name with AlphaZero's cross-entropy, for one plot.
    "train/policy_loss": ("train/policy_gradient_loss", 1),
    "train/value_loss": ("train/value_loss", 1),
    "train/entropy": ("train/entropy_loss", -1),
    "train/approximate_kl": ("train/approx_kl", 1),
    "train/clip_fraction": ("train/clip_fraction", 1),
    "train/explained_variance": ("train/explained_variance", 1),
}
_RATE = "ppo.learning_rate"


class NetworkPolicy(MaskableActorCriticPolicy):
    """A residual network in the place of those that sb3 would build.

    It stays in evaluation mode while it learns. PPO weighs an action by the ratio of its probabilities now and when it
    was drawn; with batch norm in training mode both would depend on the other positions of their batches, and the ratio
    would be off before the first step. So the norms keep the statistics of a new network, mean 0 and variance 1, and
    are a scale and an offset of each channel, which are learned (experiments/LOG.md, "MaskablePPO on 6×6").
    """

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        lr_schedule: Callable[[float], float],
        network: ResidualNetwork,
    ) -> None:
        super().__init__(observation_space, action_space, lr_schedule, net_arch=[])
        self.network = network
        learned = network.parameters_of_policy_and_value()
        self.optimizer = torch.optim.Adam(learned, lr=lr_schedule(1), eps=1e-5)  # the ε of PPO everywhere
        self.set_training_mode(False)

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        """Builds nothing: the network is there, with heads of its own."""

    def set_training_mode(self, mode: bool) -> None:
        self.train(False)  # see above

    def forward(
        self, obs: Tensor, deterministic: bool = False, action_masks: np.ndarray | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns actions [B], values [B, 1] and the logarithms of the actions' probabilities [B]."""
        distribution, values = self._evaluate(obs, action_masks)
        actions = distribution.get_actions(deterministic=deterministic)
        return actions, values, distribution.log_prob(actions)

    def evaluate_actions(
        self, obs: Tensor, actions: Tensor, action_masks: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Returns values [B, 1], the logarithms of the actions' probabilities [B] and the policies' entropies [B]."""
        distribution, values = self._evaluate(obs, action_masks)
        return values, distribution.log_prob(actions), distribution.entropy()

    def get_distribution(self, obs: Tensor, action_masks: np.ndarray | None = None) -> MaskableDistribution:  # type: ignore[override]  # sb3 takes dictionaries too
        return self._evaluate(obs, action_masks)[0]

    def predict_values(self, obs: Tensor) -> Tensor:  # type: ignore[override]  # as above
        return self._evaluate(obs, None)[1]

    def _evaluate(self, planes: Tensor, masks: np.ndarray | Tensor | None) -> tuple[MaskableDistribution, Tensor]:
        logits, values = self.network.policy_and_value(planes.to(memory_format=torch.channels_last))
        if not torch.isfinite(logits).all():
            raise TrainingError(f"the policy's logits are not finite; try a lower {_RATE}")
        distribution = self.action_dist.proba_distribution(action_logits=logits)
        if masks is not None:
            distribution.apply_masking(masks)
        return distribution, values.unsqueeze(1)


@dataclass
class PPOCounters(Counters):
    num_games: int = 0
    num_moves: int = 0  # of the learner
    num_steps: int = 0  # of the optimizer


class PPO(NetworkAlgorithm):
    def __init__(self, config: TrainConfig, network: ResidualNetwork) -> None:
        super().__init__(config, network)
        self.counters: PPOCounters = PPOCounters()
        ppo = config.ppo
        pool = [self._watched(agents.opponent_of(opponent)) for opponent in ppo.opponents]
        self._games = PlanesVecEnv(
            agents.make_vec(pool, ppo.num_envs, variant=self.variant, color="random", illegal_action="raise")
        )
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs leave it out
        self._model = MaskablePPO(
            NetworkPolicy,
            self._games,
            learning_rate=lambda _: self._learning_rate,
            n_steps=ppo.moves_per_update,
            batch_size=ppo.batch_size,
            n_epochs=ppo.num_epochs,
            gamma=1.0,
            gae_lambda=ppo.gae_lambda,
            clip_range=ppo.clip_range,
            ent_coef=ppo.entropy_weight,
            vf_coef=ppo.value_weight,
            max_grad_norm=math.inf,  # `_before_step` clips, and keeps the norm, which sb3 does not tell
            policy_kwargs={"network": network},
            device=self.device,
        )
        self._model.set_logger(Logger(folder=None, output_formats=[]))
        self._model.policy.optimizer.register_step_pre_hook(self._before_step)
        self._stop = Stop()
        self._gradient_norms: list[float] = []
        self._results: list[float] = []  # of an iteration's games

    def iterate(self, stop: Stop) -> dict[str, float]:
        ppo, counters, model = self.config.ppo, self.counters, self._model
        self._stop = stop
        self._gradient_norms, self._results = [], []
        seed = np.random.SeedSequence(self.config.seed, spawn_key=(2, counters.iteration))
        model.set_random_seed(int(seed.generate_state(1)[0]))  # of actions, the order in batches, and the first games
        began = time.monotonic()
        updates: list[dict[str, float]] = []
        moves_per_update = ppo.num_envs * ppo.moves_per_update
        for _ in range(ppo.num_updates):
            try:
                # False lets the games go on; sb3 begins them where there are none yet.
                model.learn(moves_per_update, callback=self._after_moves, reset_num_timesteps=False)
            except IllegalMoveError as error:  # an opponent's: those of the policy are masked
                raise TrainingError(str(error)) from None
            updates.append(dict(model.logger.name_to_value))
        if not is_finite(self.network, model.policy.optimizer):
            raise self._diverged("the network or its optimizer has numbers that are not finite")
        seconds, num_moves = time.monotonic() - began, ppo.num_updates * moves_per_update
        counters.num_games += len(self._results)
        counters.num_moves += num_moves
        numbers = {
            name: sign * float(np.mean([update[key] for update in updates]))
            for name, (key, sign) in _UPDATE_NUMBERS.items()
        }
        if self._results:
            numbers["games/score"] = (1 + float(np.mean(self._results))) / 2
        return numbers | {
            "train/gradient_norm": float(np.mean(self._gradient_norms)),
            "train/learning_rate": self._learning_rate,
            "train/steps": counters.num_steps,
            "games/finished": counters.num_games,
            "games/moves": counters.num_moves,
            "games/moves_per_s": num_moves / seconds,  # the time of learning included
            "time/iteration_s": seconds,
        }

    def tensors(self) -> dict[str, Tensor]:
        optimizer = optimizer_tensors(self._model.policy.optimizer)
        return join_tensors(
            games=self._games.tensors(), optimizer={name: tensor.clone() for name, tensor in optimizer.items()}
        )

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        games, optimizer = split_tensors(tensors, "games", "optimizer")
        load_optimizer_tensors(self._model.policy.optimizer, optimizer, self.counters.num_steps)
        if games or self.counters.iteration:
            self._games.load_tensors(games)

    @property
    def _learning_rate(self) -> float:
        return cosine_rate(self.config.ppo.learning_rate, self.config.ppo.final_learning_rate, self.progress)

    def _watched(self, opponent: Any) -> Any:
        """Returns an opponent that stops with the run, and fails with a sentence; a name is one that kernels play."""
        return opponent if isinstance(opponent, str) else WatchedOpponent(opponent, lambda: self._stop.check())

    def _after_moves(self, collected: dict[str, Any], _: dict[str, Any]) -> bool:
        """Takes the results of finished games from sb3's local variables; returns that collecting goes on."""
        self._stop.check()
        self._results += collected["rewards"][collected["dones"]].tolist()
        return True

    def _before_step(self, *_: Any) -> None:
        """Clips the gradient of a step of the optimizer."""
        self._stop.check()
        self.counters.num_steps += 1
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.config.ppo.max_gradient_norm)
        if not torch.isfinite(norm):
            raise self._diverged(f"the gradient's norm is {norm.item()}")
        self._gradient_norms.append(norm.item())

    def _diverged(self, what: str) -> TrainingError:
        return diverged(what, self.counters.num_steps, self._learning_rate, _RATE)
