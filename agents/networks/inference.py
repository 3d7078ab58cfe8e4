"""How search asks a network: bitboards in, policies and values out, a batch at a time.

Whatever runs the network takes planes and gives logits; masking and normalizing happen here, for all of them. Nothing
here needs torch, so a process that plays with another library does without it.
"""

from typing import Protocol

import numpy as np

from reversi_env import Variant
from reversi_env.encoding import NUM_PLANES, write_planes
from reversi_env.jit import kernel

NUM_RESULTS = 3  # win, draw and loss, in this order


class Backend(Protocol):
    """Whatever runs a network: NumPy in, NumPy out. Threads may share one."""

    name: str  # as users type it, see `agents.networks.published`

    def __call__(self, planes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns policy logits float32 [B, A], not yet masked, and logits of the mover's result float32 [B, 3].

        The result is a win, a draw or a loss. Both arrays are in C order, and the caller's. The planes are float32
        [B, 3, S, S], those of `reversi_env.encoding.write_planes`.
        """


class NetworkEvaluator:
    """An `agents.mcts.Evaluator` over a backend; plays every variant whose board its planes can show.

    A call raises ValueError where the network answers NaN.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def __call__(self, player: np.ndarray, opponent: np.ndarray, variant: Variant) -> tuple[np.ndarray, np.ndarray]:
        policy, value, is_finite = ask(self.backend, *planes_of(player, opponent, variant))
        if not is_finite:  # search would go on, by no rule at all
            raise ValueError("the network's answer is not a number, so its weights are of no use")
        return policy, value


def planes_of(player: np.ndarray, opponent: np.ndarray, variant: Variant) -> tuple[np.ndarray, np.ndarray]:
    """Returns planes float32 [B, 3, S, S] and legal actions bool [B, A] of positions uint64 [B, W]."""
    planes = np.empty((len(player), NUM_PLANES, variant.size, variant.size), np.float32)
    legal = np.empty((len(player), variant.num_actions), np.bool_)
    write_planes(player, opponent, planes, legal, variant.rules)
    return planes, legal


def ask(backend: Backend, planes: np.ndarray, legal: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
    """Returns policies float32 [B, A] over legal actions, values float32 [B], and whether all of it is finite."""
    policy, value = np.empty(legal.shape, np.float32), np.empty(len(legal), np.float32)
    is_finite = _normalize(*backend(planes), legal, policy, value)
    return policy, value, is_finite


@kernel
def _normalize(
    policy_logits: np.ndarray, result_logits: np.ndarray, legal: np.ndarray, policy: np.ndarray, value: np.ndarray
) -> bool:
    """Fills `policy` with the softmax over legal actions and `value` with P(win) − P(loss); returns if all is finite.

    policy_logits, legal, policy: float32, bool and float32 [B, A]; what is not legal is not looked at, and gets 0.
    result_logits, value: float32 [B, 3] and [B].
    """
    is_finite = True
    for row in range(policy.shape[0]):
        greatest = -np.inf
        for action in range(policy.shape[1]):
            if legal[row, action]:
                greatest = max(greatest, policy_logits[row, action])
        total = 0.0
        for action in range(policy.shape[1]):
            policy[row, action] = 0
            if legal[row, action]:
                policy[row, action] = np.exp(policy_logits[row, action] - np.float32(greatest))
                total += policy[row, action]
        for action in range(policy.shape[1]):
            if legal[row, action]:
                policy[row, action] /= total
        win, draw, loss = result_logits[row, 0], result_logits[row, 1], result_logits[row, 2]
        greatest = max(win, draw, loss)
        win, draw, loss = np.exp(win - greatest), np.exp(draw - greatest), np.exp(loss - greatest)
        value[row] = (win - loss) / (win + draw + loss)
        is_finite = is_finite and bool(np.isfinite(total) and np.isfinite(value[row]))
    return is_finite
