"""A residual policy and value network whose weights fit every board size.

Plain 3×3 residual blocks, as in AlphaZero (Silver et al. 2018). The heads are convolutions and pooled features, after
KataGo (Wu 2019, arXiv:1902.10565, sections 3.3 and 4.1), so nothing depends on the number of squares. Two of them, the
final margin and the final owner of each square, only teach the tower what a result is made of: search has no use for
them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from reversi_env.encoding import NUM_PLANES


@dataclass
class ResidualConfig:
    """How large the network is."""

    num_channels: int = 64
    num_blocks: int = 5
    num_head_channels: int = 32

    def __post_init__(self) -> None:
        for name in ("num_channels", "num_blocks", "num_head_channels"):
            number = getattr(self, name)
            if not isinstance(number, int) or not 1 <= number <= 1024:
                raise ValueError(f"{name} must be a whole number from 1 to 1024, got {number!r}")


class Heads(NamedTuple):
    """What the network says of B positions, each for its side to move."""

    policy_logits: Tensor  # [B, S * S + 1], not yet masked
    result_logits: Tensor  # [B, 3]  win, draw, loss
    margin: Tensor  # [B]  the final score, as a share of the board's squares
    owner_logits: Tensor  # [B, S * S]  see `owner`

    @property
    def value(self) -> Tensor:
        """The expected result, [B] in [-1, 1]."""
        return value_of(self.result_logits)

    @property
    def owner(self) -> Tensor:
        """Whose disc each square is expected to hold at the end, [B, S * S]: 1 the side to move's, -1 the other's."""
        return torch.tanh(self.owner_logits)


def value_of(result_logits: Tensor) -> Tensor:
    """Returns expected results [B], P(win) − P(loss), from logits [B, 3] of win, draw and loss."""
    win, _, loss = torch.softmax(result_logits, dim=1).unbind(1)
    return win - loss


class _Block(nn.Module):
    def __init__(self, num_channels: int) -> None:
        super().__init__()
        self.first = _convolution(num_channels, num_channels)
        self.second = _convolution(num_channels, num_channels)

    def forward(self, features: Tensor) -> Tensor:
        return F.relu(features + self.second(F.relu(self.first(features))))


def _convolution(num_inputs: int, num_outputs: int, width: int = 3) -> nn.Sequential:
    """Returns a convolution that keeps the board's size, and its batch norm."""
    return nn.Sequential(
        nn.Conv2d(num_inputs, num_outputs, width, padding=width // 2, bias=False), nn.BatchNorm2d(num_outputs)
    )


class ResidualNetwork(nn.Module):
    def __init__(self, config: ResidualConfig) -> None:
        super().__init__()
        channels, head = config.num_channels, config.num_head_channels
        self.config = config
        self.stem = _convolution(NUM_PLANES, channels)
        self.tower = nn.Sequential(*(_Block(channels) for _ in range(config.num_blocks)))
        self.policy_features = _convolution(channels, head, width=1)
        self.square_logits = nn.Conv2d(head, 1, 1)
        self.pass_logit = nn.Linear(2 * head, 1)
        self.value_features = _convolution(channels, head, width=1)
        self.value_hidden = nn.Linear(2 * head, 64)
        self.result = nn.Linear(64, 3)
        self.margin = nn.Linear(64, 1)
        self.owner = nn.Conv2d(head, 1, 1)

    def forward(self, planes: Tensor) -> Heads:
        """Returns what all heads say of planes [B, 3, S, S]."""
        policy_logits, values, hidden = self._features(planes)
        return Heads(policy_logits, self.result(hidden), self.margin(hidden).squeeze(1), self.owner(values).flatten(1))

    def policy_and_value(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        """Returns policy logits [B, S * S + 1], not yet masked, and values [B]: what search asks for, and no more."""
        policy_logits, _, hidden = self._features(planes)
        return policy_logits, value_of(self.result(hidden))

    def parameters_of_policy_and_value(self) -> Iterator[nn.Parameter]:
        """Yields the parameters on which `policy_and_value` depends."""
        auxiliary = {*self.margin.parameters(), *self.owner.parameters()}
        return (parameter for parameter in self.parameters() if parameter not in auxiliary)

    def _features(self, planes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns policy logits [B, S * S + 1], and the value's features: by square [B, H, S, S], of all [B, 64]."""
        features = self.tower(F.relu(self.stem(planes)))  # [B, C, S, S]
        policy = F.relu(self.policy_features(features))  # [B, H, S, S]
        logits = torch.cat([self.square_logits(policy).flatten(1), self.pass_logit(_pooled(policy))], dim=1)
        values = F.relu(self.value_features(features))
        return logits, values, F.relu(self.value_hidden(_pooled(values)))


def _pooled(features: Tensor) -> Tensor:
    """Returns the mean and the maximum of each channel, [B, 2 * C], from features [B, C, S, S]."""
    return torch.cat([features.mean(dim=(2, 3)), features.amax(dim=(2, 3))], dim=1)


def mask_logits(logits: Tensor, legal: Tensor) -> Tensor:
    """Returns the logits with illegal actions at the dtype's minimum; `legal` is bool, the same shape [B, A].

    Not −∞: a row without a legal action would become NaN.
    """
    return logits.masked_fill(~legal, torch.finfo(logits.dtype).min)
