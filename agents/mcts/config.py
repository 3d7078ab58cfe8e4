"""How a tree search is configured."""

import math
from dataclasses import dataclass

from reversi_env import Position, Variant

MOST_SIMULATIONS = 4_000_000  # a tree of so many takes two gigabytes; its float32 sums of like values are 4 % off
DEFAULT_SIMULATIONS = 100
MOST_EXACT_EMPTIES = 20  # a leaf is solved in a second or less
ROOTS = ("puct", "gumbel")


@dataclass
class MCTSConfig:
    """How much and how boldly to search.

    The root is searched by PUCT, with noise on its priors and moves drawn by visits where so configured, or by Gumbel
    sampling and sequential halving, where `gumbel_scale` is all of its noise.
    """

    num_simulations: int | None = None  # a move; 100 where nothing else limits a search
    time_limit_s: float | None = None  # a move; what ends first counts
    root: str = "puct"
    proves: bool = True  # whether nodes whose result is certain decide those above them
    exact_empties: int = 0  # leaves with so many empty squares or fewer are solved, the evaluator not asked
    leaves_per_call: int = 1  # of each position; with more the evaluator is quicker and the search less to the point

    puct_constant: float = 1.5  # higher explores more
    first_play_reduction: float = 0.0  # how much worse than its node an unvisited move is taken to be, see `puct`
    noise_fraction: float = 0.0  # how much of the root's prior is Dirichlet noise; self-play wants 0.25
    # The noise's α is this over the number of legal moves; AlphaZero's 0.3 in chess and 0.03 in Go are 10 over theirs.
    noise_concentration: float = 10.0
    forced_playouts: float = 0.0  # how many visits noise forces, to be taken off the policy again, see `puct`; 2 in Go
    temperature: float = 1.0  # of the draw of early moves: in proportion to visits to the power of its inverse
    temperature_moves: int = 0  # so many from the start, passes not counted, are drawn with it
    final_temperature: float = 0.0  # of later moves; 0 plays the most visited

    considered_moves: int = 16  # by a Gumbel root
    gumbel_scale: float = 0.0  # of its noise; self-play wants 1
    value_scale: float = 0.5  # how much values count beside priors, and `visit_offset`: see `gumbel`
    visit_offset: float = 50.0

    def draws_above(self, variant: Variant) -> int:
        """Returns the number of empty squares from which on moves are no longer drawn with `temperature`."""
        return Position(variant).num_empties - self.temperature_moves

    @property
    def simulation_limit(self) -> int:
        """The most simulations of a move."""
        if self.num_simulations is not None:
            return self.num_simulations
        return DEFAULT_SIMULATIONS if self.time_limit_s is None else MOST_SIMULATIONS

    def __post_init__(self) -> None:
        if self.root not in ROOTS:
            raise ValueError(f"root is {' or '.join(ROOTS)}, got {self.root!r}")
        if not 1 <= self.simulation_limit <= MOST_SIMULATIONS:
            raise ValueError(f"num_simulations must be from 1 to {MOST_SIMULATIONS:,}, got {self.num_simulations}")
        if self.time_limit_s is not None and not 0 <= self.time_limit_s < math.inf:
            raise ValueError(f"time_limit_s must be at least 0 and finite, got {self.time_limit_s}")
        for name in ("puct_constant", "noise_concentration", "temperature", "value_scale"):
            if not 0 < getattr(self, name) < math.inf:  # so that NaN is none either
                raise ValueError(f"{name} must be above 0 and finite, got {getattr(self, name)}")
        for name in ("first_play_reduction", "forced_playouts", "final_temperature", "gumbel_scale", "visit_offset"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be at least 0 and finite, got {getattr(self, name)}")
        if not 0 <= self.noise_fraction <= 1:
            raise ValueError(f"noise_fraction must be from 0 to 1, got {self.noise_fraction}")
        if self.temperature_moves < 0:
            raise ValueError(f"temperature_moves must be at least 0, got {self.temperature_moves}")
        if not 0 <= self.exact_empties <= MOST_EXACT_EMPTIES:
            raise ValueError(f"exact_empties must be from 0 to {MOST_EXACT_EMPTIES}, got {self.exact_empties}")
        if not 2 <= self.considered_moves <= 64:
            raise ValueError(f"considered_moves must be from 2 to 64, got {self.considered_moves}")
        if not 1 <= self.leaves_per_call <= 1024:
            raise ValueError(f"leaves_per_call must be from 1 to 1024, got {self.leaves_per_call}")
        self._check_root()

    def _check_root(self) -> None:
        """Raises ValueError for what the root has no use for."""
        if self.root == "puct" and self.gumbel_scale:
            raise ValueError("gumbel_scale is for root=gumbel; the noise of root=puct is noise_fraction")
        if self.root == "gumbel":
            for name in ("noise_fraction", "forced_playouts", "temperature_moves", "final_temperature"):
                if getattr(self, name):
                    raise ValueError(f"{name} is for root=puct; root=gumbel wants gumbel_scale alone")
            if self.time_limit_s is not None:
                raise ValueError("time_limit_s is for root=puct; root=gumbel must know its number of simulations")
