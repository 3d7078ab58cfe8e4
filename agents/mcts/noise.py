"""Random numbers of other kinds than whole ones, for kernels; the state is that of `reversi_env.random_bits`."""

import numpy as np

from reversi_env.jit import kernel
from reversi_env.random_bits import next_state, scramble

_UNIT = 2.0**-52


@kernel
def draw_uniform(states: np.ndarray, row: int) -> float:
    """Advances row `row` of `states`, uint64 [N], and returns a number strictly between 0 and 1."""
    states[row] = next_state(states[row])
    return (float(scramble(states[row]) >> np.uint64(12)) + 0.5) * _UNIT  # of one bit more the half would be rounded


@kernel
def draw_gumbel(states: np.ndarray, row: int) -> float:
    """Returns a number of the standard Gumbel distribution."""
    return float(-np.log(-np.log(draw_uniform(states, row))))


@kernel
def draw_normal(states: np.ndarray, row: int) -> float:
    """Returns a number of the standard normal distribution.

    Box and Muller, "A Note on the Generation of Random Normal Deviates", Annals of Mathematical Statistics 29 (1958).
    """
    radius = np.sqrt(-2 * np.log(draw_uniform(states, row)))
    return float(radius * np.cos(2 * np.pi * draw_uniform(states, row)))


@kernel
def draw_gamma(states: np.ndarray, row: int, shape: float) -> float:
    """Returns a number of the gamma distribution of a shape above 0 and scale 1.

    Marsaglia and Tsang, "A Simple Method for Generating Gamma Variables", ACM Transactions on Mathematical Software 26
    (2000), sections 2 and 6.
    """
    raised = shape if shape >= 1 else shape + 1
    d = raised - 1 / 3
    c = 1 / np.sqrt(9 * d)
    while True:
        normal = draw_normal(states, row)
        v = (1 + c * normal) ** 3
        if v > 0 and np.log(draw_uniform(states, row)) < 0.5 * normal * normal + d - d * v + d * np.log(v):
            break
    drawn = float(d * v)
    return drawn if shape >= 1 else float(drawn * draw_uniform(states, row) ** (1 / shape))
