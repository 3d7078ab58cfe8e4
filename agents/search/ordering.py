"""Which move to try first: an early cutoff spares the others.

A move to try is a key, int64: its rank, and in the lowest byte its bit, so that the greatest key is the best move and
the lowest bit among equals. The keys of a node lie side by side in an array of the caller's.
"""

import numpy as np

from reversi_env.jit import kernel

NO_MOVE = 255  # in a byte; bits, and the pass, are less
FIRST = 1 << 30  # a rank above all others

_KEY_SHIFT = 256


@kernel
def key_of(rank: int, index: int) -> int:
    """Returns the key of the move to the bit `index`."""
    return rank * _KEY_SHIFT + (NO_MOVE - index)


@kernel
def take_next(keys: np.ndarray, first: int, last: int) -> int:
    """Returns the bit of the greatest key from `first` on and below `last`, and moves that key to `first`."""
    greatest = first
    for place in range(first + 1, last):
        if keys[place] > keys[greatest]:
            greatest = place
    key = keys[greatest]
    keys[greatest] = keys[first]
    keys[first] = key
    return NO_MOVE - (key & NO_MOVE)  # type: ignore[no-any-return]  # an element of an array, whose type nobody knows
