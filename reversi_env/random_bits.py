"""Random numbers for kernels: SplitMix64, whose whole state is one uint64 that the caller keeps.

Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014, figure 17.
"""

import numpy as np

from reversi_env.jit import kernel

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@kernel
def scramble(state: np.uint64) -> np.uint64:
    """Returns 64 random bits from a state."""
    bits = (state ^ (state >> np.uint64(30))) * _MIX_1
    bits = (bits ^ (bits >> np.uint64(27))) * _MIX_2
    return bits ^ (bits >> np.uint64(31))


@kernel
def stream(seed: np.uint64, index: int) -> np.uint64:
    """Returns the first state of stream `index` of a seed; streams do not depend on how work is divided."""
    return scramble(seed + _GAMMA * np.uint64(2 * index + 1))


@kernel
def next_state(state: np.uint64) -> np.uint64:
    """Returns the state after `state`."""
    return state + _GAMMA


@kernel
def below(state: np.uint64, bound: int) -> int:
    """Returns a number in 0..bound−1 from a state; `bound` is small, so the bias (under bound / 2³²) does not show."""
    scaled = (scramble(state) >> np.uint64(32)) * np.uint64(bound)
    return np.int64(scaled >> np.uint64(32))  # type: ignore[return-value]  # what a kernel calls int


@kernel
def draw_below(states: np.ndarray, row: int, bound: int) -> int:
    """Advances row `row` of `states`, uint64 [N], and returns a number in 0..bound−1 drawn from it."""
    states[row] = next_state(states[row])
    return below(states[row], bound)


def first_state(rng: np.random.Generator) -> np.uint64:
    """Returns a state drawn from a generator."""
    return rng.integers(0, 1 << 64, dtype=np.uint64)


def generators(states: np.ndarray) -> list[np.random.Generator]:
    """Advances each of `states`, uint64 [N], and returns a generator made of each."""
    states += _GAMMA
    return [np.random.default_rng(seed) for seed in states.tolist()]
