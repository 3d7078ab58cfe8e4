"""How many different openings there are in games."""

from typing import NamedTuple

import numpy as np

from reversi_env.geometry import bit_indices
from reversi_env.symmetry import NUM_SYMMETRIES, transform


class Diversity(NamedTuple):
    """Of how many kinds positions are, symmetric ones being of one kind."""

    num_kinds: int
    effective: float  # so many equally frequent kinds would be as diverse: e to the entropy (Hill 1973, Ecology 54(2))


def diversity(player: np.ndarray, opponent: np.ndarray, size: int) -> Diversity:
    """Returns how diverse positions are, such as those of some games after the same number of plies.

    They are bitboards uint64 [N, W] of the side to move and of the other side, at least one.
    """
    planes = np.stack([_squares(player, size), _squares(opponent, size)], axis=1)  # [N, 2, S, S]
    images = [transform(planes, symmetry).reshape(len(planes), -1) for symmetry in range(NUM_SYMMETRIES)]
    _, numbers = np.unique(np.packbits(np.concatenate(images), axis=1), axis=0, return_inverse=True)
    kinds = numbers.reshape(NUM_SYMMETRIES, -1).min(axis=0)  # [N]
    shares = np.unique(kinds, return_counts=True)[1] / len(kinds)
    return Diversity(len(shares), float(np.exp(-(shares * np.log(shares)).sum())))


def _squares(boards: np.ndarray, size: int) -> np.ndarray:
    """Returns bitboards uint64 [N, W] as one bit a square, uint8 [N, size, size]."""
    octets = np.ascontiguousarray(boards, "<u8").view(np.uint8)
    bits = np.unpackbits(octets, axis=1, bitorder="little")
    return bits[:, list(bit_indices(size))].reshape(-1, size, size)
