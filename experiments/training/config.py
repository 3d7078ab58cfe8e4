"""The configuration of a training run: what `reversi train` composes from `configs/` and its overrides."""

import math
from dataclasses import dataclass, field

import torch

from agents.mcts import MCTSConfig
from agents.networks.residual import ResidualConfig
from agents.search.memory import MOST_DEPTH
from experiments.evaluation import CLASSIC_OPPONENTS
from experiments.training.actors import ActorsConfig
from experiments.training.learner import LearnerConfig
from experiments.training.optimizer import check_rates
from experiments.training.replay import ReplayConfig
from experiments.training.self_play import SelfPlayConfig
from experiments.training.tuple_learner import TupleLearnerConfig
from reversi_env import Variant
from reversi_env.naming import one_of

MOST_GAMES, MOST_MOVES, MOST_THREADS = 1_000_000, 100_000_000, 1_000
MOST_EXACT_EMPTIES = 16  # a game is solved in a moment
MOST_REPEATS = 10_000  # of what an iteration does again and again
SEEDS = 1 << 64  # what torch's generator takes

RESIDUAL, NTUPLE = NETWORKS = ("residual", "ntuple")

_UNUSED_BY_ALGORITHM = {
    "alphazero": ("ppo", "ntuple", "schedule.replay_window", "schedule.num_threads", "evaluation.depth"),
    "maskable_ppo": (
        "search",
        "self_play",
        "learner",
        "tuples",
        "replay",
        "actors",
        "ntuple",
        "schedule.games_per_iteration",
        "schedule.replay_window",
        "schedule.num_threads",
        "evaluation.depth",
    ),
    "ntuple": (
        "network",
        "search",
        "self_play",
        "learner",
        "tuples",
        "replay",
        "actors",
        "ppo",
        "evaluation.search",
        "init_from",
        "device",
    ),
}
ALGORITHMS = tuple(_UNUSED_BY_ALGORITHM)
_UNUSED_BY_NETWORK = {
    RESIDUAL: ("tuples",),
    NTUPLE: (
        "network.num_channels",
        "network.num_blocks",
        "network.num_head_channels",
        "learner",
        "actors.inference",
    ),
}


@dataclass
class NetworkConfig(ResidualConfig):
    """What learns policy and value: a residual network of some size, or n-tuples, whose size is the board's."""

    kind: str = RESIDUAL  # or "ntuple"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("kind of network", self.kind, NETWORKS)

    @property
    def residual(self) -> ResidualConfig:
        """How large a residual network is."""
        return ResidualConfig(self.num_channels, self.num_blocks, self.num_head_channels)


@dataclass
class VariantConfig:
    """A `reversi_env.Variant`, which is frozen and so cannot be overridden itself."""

    size: int = 8
    start: str = "diagonal"
    goal: str = "most"
    scoring: str = "board"

    def __post_init__(self) -> None:
        self.to_variant()

    def to_variant(self) -> Variant:
        return Variant(size=self.size, start=self.start, goal=self.goal, scoring=self.scoring)


@dataclass
class ScheduleConfig:
    """How long a run is and what it keeps."""

    num_iterations: int = 40
    duration_s: float | None = None  # the run ends with the iteration in which this is over; evaluations count
    games_per_iteration: int = 64
    replay_window: int = 50_000  # positions; a network's learner has `replay`
    checkpoint_every: int = 1  # iterations; the last one always gets a checkpoint
    kept_checkpoints: int = 2
    num_threads: int = 0  # that play games; 0: all cores

    def __post_init__(self) -> None:
        for name in ("num_iterations", "games_per_iteration", "replay_window", "checkpoint_every", "kept_checkpoints"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.duration_s is not None and not 0 < self.duration_s < math.inf:
            raise ValueError(f"duration_s must be above 0 and finite, got {self.duration_s}")
        if self.games_per_iteration > MOST_GAMES:
            raise ValueError(f"games_per_iteration must be at most {MOST_GAMES:,}, got {self.games_per_iteration}")
        if not 0 <= self.num_threads <= MOST_THREADS:
            raise ValueError(f"num_threads must be from 0 to {MOST_THREADS:,}, got {self.num_threads}")


@dataclass
class EvaluationConfig:
    """Against whom what is learned is measured, and how thoroughly."""

    opponents: list[str] = field(default_factory=lambda: list(CLASSIC_OPPONENTS))  # none: nothing is measured
    every: int = 10  # iterations; 0: only at the end
    num_games: int = 40  # a match while training goes on
    final_num_games: int = 200  # a match at the end
    search: MCTSConfig = field(default_factory=MCTSConfig)  # of a network
    depth: int = 4  # plies that alpha-beta looks ahead with the n-tuples of algorithm=ntuple

    def __post_init__(self) -> None:
        names = [str(opponent) for opponent in self.opponents]  # text or not: OmegaConf checks that later
        if len(set(names)) < len(names):  # metrics go by the names
            raise ValueError(f"opponents must be different from each other, got {', '.join(names)}")
        if self.every < 0:
            raise ValueError(f"every must be at least 0, got {self.every}")
        if self.depth < 1:
            raise ValueError(f"depth must be at least 1 ply, got {self.depth}")
        for name in ("num_games", "final_num_games"):
            number = getattr(self, name)
            if number < 2 or number % 2:
                raise ValueError(f"{name} must be even and at least 2, since openings are played twice, got {number}")


@dataclass
class PPOConfig:
    """How a policy learns from its games against opponents, by proximal policy optimization with masks.

    An iteration makes `num_updates` updates: `moves_per_update` of the policy's own moves in each game, then
    `num_epochs` passes over these moves in batches. Games go on from update to update, and where one ends another
    begins. Rewards are results, without discount.
    """

    opponents: list[str] = field(default_factory=lambda: ["random"])  # any agents; each game draws one
    num_envs: int = 64  # games side by side
    moves_per_update: int = 48  # as many as the longest games have, those on 10×10: so every update sees results
    num_updates: int = 2
    num_epochs: int = 2  # this and the batch size: experiments/LOG.md, "MaskablePPO on 6×6"
    batch_size: int = 256
    learning_rate: float = 2e-3
    final_learning_rate: float = 2e-4  # reached along a half cosine at the last iteration
    gae_lambda: float = 0.95  # of generalized advantage estimation; 1 trusts results alone, 0 the values alone
    clip_range: float = 0.2  # how far from 1 the ratio of an action's probabilities still counts
    entropy_weight: float = 0.01
    value_weight: float = 0.5  # of the squared error of values
    max_gradient_norm: float = 0.5

    def __post_init__(self) -> None:
        if not self.opponents:
            raise ValueError("opponents must name at least one")
        for name in ("num_envs", "moves_per_update"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("num_updates", "num_epochs"):
            if not 1 <= getattr(self, name) <= MOST_REPEATS:
                raise ValueError(f"{name} must be from 1 to {MOST_REPEATS:,}, got {getattr(self, name)}")
        num_moves = self.num_envs * self.moves_per_update
        if num_moves > MOST_MOVES:
            raise ValueError(f"num_envs × moves_per_update must be at most {MOST_MOVES:,}, got {num_moves}")
        if self.batch_size < 2 or num_moves % self.batch_size:  # a batch of one has no deviation to be scaled by
            raise ValueError(
                f"batch_size must be at least 2 and divide num_envs × moves_per_update = {num_moves}, "
                f"got {self.batch_size}"
            )
        check_rates(self.learning_rate, self.final_learning_rate)
        if not 0 < self.clip_range <= 1:
            raise ValueError(f"clip_range must be above 0 and at most 1, got {self.clip_range}")
        if not 0 <= self.gae_lambda <= 1:
            raise ValueError(f"gae_lambda must be from 0 to 1, got {self.gae_lambda}")
        for name in ("entropy_weight", "value_weight"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be at least 0 and finite, got {getattr(self, name)}")
        if not 0 < self.max_gradient_norm < math.inf:
            raise ValueError(f"max_gradient_norm must be above 0 and finite, got {self.max_gradient_norm}")


@dataclass
class NTupleConfig:
    """How n-tuples learn from games against themselves.

    A game begins with random moves; then each side looks some plies ahead, or now and then moves at random. Near the
    end the scores are exact. A position's target is what its search found, mixed with the target of the position after
    the best move, as in TD(λ); a random move says nothing of the positions before it.
    """

    depths: list[int] = field(default_factory=lambda: [1, 2, 3, 4])  # plies ahead; each has an equal share of the run
    exact_empties: int = 12  # with so many empty squares or fewer a position's target is its exact score
    min_opening_plies: int = 0  # random plies at the start of a game: a number drawn from here
    max_opening_plies: int = 20  # to here
    exploration: float = 0.05  # the share of random moves after those
    newest_share: float = 0.5  # of all positions so far that are learned from; at most `schedule.replay_window`
    trace: float = 0.8  # λ: 1 trusts the games' ends alone, 0 what each search found
    samples_per_position: float = 4.0  # how often a position is drawn on average while it is new
    learning_rate: float = 0.5  # of steps at the start of the run, see `NTupleLearner`
    final_learning_rate: float = 0.2  # reached along a half cosine at the end of the run

    def __post_init__(self) -> None:
        if not self.depths or min(self.depths) < 1:
            raise ValueError(f"depths must be numbers of plies, at least one, got {self.depths}")
        if not 0 <= self.exact_empties <= MOST_EXACT_EMPTIES:
            raise ValueError(f"exact_empties must be from 0 to {MOST_EXACT_EMPTIES}, got {self.exact_empties}")
        if not 0 <= self.min_opening_plies <= self.max_opening_plies:
            raise ValueError(
                f"min_opening_plies must be from 0 to max_opening_plies = {self.max_opening_plies}, "
                f"got {self.min_opening_plies}"
            )
        check_rates(self.learning_rate, self.final_learning_rate)
        if not 0 < self.samples_per_position < math.inf:
            raise ValueError(f"samples_per_position must be above 0 and finite, got {self.samples_per_position}")
        for name, number, most in (
            ("depths", max(self.depths), MOST_DEPTH),
            ("max_opening_plies", self.max_opening_plies, MOST_DEPTH),
            ("samples_per_position", self.samples_per_position, MOST_REPEATS),
        ):
            if number > most:
                raise ValueError(f"{name} must be at most {most:,}, got {number}")
        if not 0 < self.newest_share <= 1:
            raise ValueError(f"newest_share must be above 0 and at most 1, got {self.newest_share}")
        for name in ("exploration", "trace"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be from 0 to 1, got {getattr(self, name)}")


@dataclass
class TrainConfig:
    """A whole run."""

    algorithm: str = "alphazero"  # or "maskable_ppo" or "ntuple"
    variant: VariantConfig = field(default_factory=VariantConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    search: MCTSConfig = field(default_factory=MCTSConfig)  # of self-play
    self_play: SelfPlayConfig = field(default_factory=SelfPlayConfig)
    learner: LearnerConfig = field(default_factory=LearnerConfig)  # of a residual network
    tuples: TupleLearnerConfig = field(default_factory=TupleLearnerConfig)  # the learner of n-tuples
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    actors: ActorsConfig = field(default_factory=ActorsConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)
    ntuple: NTupleConfig = field(default_factory=NTupleConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    seed: int = 1
    device: str = "auto"  # "cpu", "cuda", or "auto": the first CUDA device there is; n-tuples: the CPU
    runs: str = "runs"  # the folder of run folders
    name: str | None = None  # the run's own folder; by default the experiment and the time
    init_from: str | None = None  # a run or checkpoint whose network the run begins with; residual ones fit any board
    resume: str | None = None  # a run folder to go on with

    def __post_init__(self) -> None:
        one_of("algorithm", self.algorithm, ALGORITHMS)
        if self.algorithm == "alphazero":
            self.self_play.check(self.search)
        elif self.algorithm == "maskable_ppo" and self.network.kind != RESIDUAL:
            raise ValueError(f"network.kind={self.network.kind} is for algorithm=alphazero, not {self.algorithm}")
        if not 0 <= self.seed < SEEDS:
            raise ValueError(f"seed must be at least 0 and below {SEEDS}, got {self.seed}")
        self.to_device()

    @property
    def unused_keys(self) -> dict[str, str]:
        """What a run has no use for, and by which choice.

        It is refused where somebody asks for it, and left out where the run is described.
        """
        unused = dict.fromkeys(_UNUSED_BY_ALGORITHM[self.algorithm], f"algorithm={self.algorithm}")
        if self.algorithm == "alphazero":
            unused |= dict.fromkeys(_UNUSED_BY_NETWORK[self.network.kind], f"network={self.network.kind}")
        return unused

    def to_device(self) -> torch.device:
        """Returns the device that `device` stands for; raises ValueError where it is not here."""
        if self.device not in ("auto", "cpu", "cuda"):
            raise ValueError(f"device is auto, cpu or cuda, got {self.device!r}")
        if self.algorithm == "alphazero" and self.network.kind == NTUPLE:
            if self.device == "cuda":
                raise ValueError("device=cuda is for residual networks; n-tuples learn and play on the CPU")
            return torch.device("cpu")
        has_cuda = torch.cuda.is_available()
        if self.device == "cuda" and not has_cuda:
            raise ValueError("device=cuda, but torch finds no CUDA device here; leave device=auto or say device=cpu")
        return torch.device("cuda" if has_cuda and self.device != "cpu" else "cpu")
