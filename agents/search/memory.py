"""The memory of one search at a time: one array, since each array that a recursion passes on costs it time.

Its elements are int64: single numbers, then rows. What a search is told, and what it tells, are the single numbers;
other threads read NODES, and write STOPPED.
"""

import numpy as np

from reversi_env.jit import kernel

MOST_DEPTH = 200  # no game has more plies: 10×10 has 100 squares, and nobody passes twice running

NODES, MOST_NODES, GENERATION = range(3)  # a search stops when it has looked at more than MOST_NODES positions
SURENESS = 3  # what searches some plies ahead write into a table as their confidence
VALUES = 4  # of the last searches to an even and to an odd depth, which evaluations tell apart
END_MARGIN = 6  # of a search that guesses how the game ends, see `endgame`; 0 proves it
MARGINS = 64  # row `depth`, by number of empty squares: see `probcut`; 0 where a shallower search shows nothing
MARGIN_DEPTHS, ROW = 32, 128  # rows of so many numbers
KEYS = MARGINS + MARGIN_DEPTHS * ROW  # row `ply`: the moves still to try, see `ordering`
LINES = KEYS + (MOST_DEPTH + 2) * ROW  # row `ply`: the best moves from there on, NO_MOVE after the last
LINE_LENGTH = MOST_DEPTH + 2
_SIZE = LINES + (MOST_DEPTH + 2) * LINE_LENGTH

UNLIMITED = 1 << 62  # nodes
STOPPED = -1  # as MOST_NODES, whoever writes it


def make_memory() -> np.ndarray:
    """Returns the memory of one search at a time, on boards of any size."""
    memory = np.zeros(_SIZE, np.int64)
    memory[MOST_NODES] = UNLIMITED
    return memory


@kernel
def is_stopped(memory: np.ndarray) -> bool:
    """Returns whether the search is to end: what it finds from then on means nothing."""
    return bool(memory[NODES] > memory[MOST_NODES])
