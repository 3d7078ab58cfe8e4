"""What search asks of whatever judges positions: networks, n-tuples, evaluations, playouts."""

from typing import Protocol

import numpy as np

from reversi_env import Variant


class Evaluator(Protocol):
    """What search asks of a network."""

    def __call__(self, player: np.ndarray, opponent: np.ndarray, variant: Variant) -> tuple[np.ndarray, np.ndarray]:
        """Returns a policy float32 [B, size² + 1], zero on illegal actions and summing to one, and values float32 [B].

        The positions are bitboards uint64 [B, W] of the side to move and the other side, none of them over; a value is
        the expected result for the side to move, in [-1, 1].
        """
