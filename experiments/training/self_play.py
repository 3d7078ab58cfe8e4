"""Games that a network plays against itself, as samples for the replay and in numbers."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from agents.mcts import Evaluator, MCTSConfig, Search
from agents.mcts.config import MOST_EXACT_EMPTIES
from agents.mcts.exact import make_exact_memory
from agents.mcts.tree import new_tree
from experiments.training.diversity import diversity
from experiments.training.replay import Samples
from experiments.training.search_games import DONE, IDLE, Style, advance, begin_game, new_games, solve_games
from reversi_env import Position, Variant
from reversi_env.random_bits import stream


@dataclass
class SelfPlayConfig:
    """How games against oneself are played, beside what `MCTSConfig` says of the search."""

    games_at_once: int = 64  # that an actor takes, and plays side by side: about as many leaves a call of the network
    exact_empties: int = 10  # from so many empty squares on the solver plays; 0: never
    max_random_plies: int = 0  # at the start of a game: a number drawn from 0 to this, none of them a sample
    # Playout cap randomization (Wu 2019, arXiv:1902.10565, section 3.1): only a share of moves is searched in full, and
    # teaches the policy; the others are quick, without noise, and teach values alone.
    full_share: float = 1.0
    quick_simulations: int = 8
    reuses_tree: bool = False  # whether what was found below a move is kept when the game goes there
    # The share of a position's weight in learning policies that goes by how much search surprised the network: its
    # policy's KL divergence from the priors, over the mean of the game's positions; the rest is the same for all.
    surprise_share: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.games_at_once <= 1 << 16:
            raise ValueError(f"games_at_once must be from 1 to {1 << 16:,}, got {self.games_at_once}")
        if not 0 <= self.exact_empties <= MOST_EXACT_EMPTIES:
            raise ValueError(f"exact_empties must be from 0 to {MOST_EXACT_EMPTIES}, got {self.exact_empties}")
        if not 0 <= self.max_random_plies <= 40:
            raise ValueError(f"max_random_plies must be from 0 to 40, got {self.max_random_plies}")
        if not 0 < self.full_share <= 1:
            raise ValueError(f"full_share must be above 0 and at most 1, got {self.full_share}")
        if not 1 <= self.quick_simulations <= 1 << 20:
            raise ValueError(f"quick_simulations must be from 1 to {1 << 20:,}, got {self.quick_simulations}")
        if not 0 <= self.surprise_share <= 1:
            raise ValueError(f"surprise_share must be from 0 to 1, got {self.surprise_share}")

    def check(self, search: MCTSConfig) -> None:
        """Raises ValueError for a search that does not go with this."""
        if search.time_limit_s is not None:
            raise ValueError("search.time_limit_s is not for self-play, whose searches end by num_simulations")
        if self.reuses_tree and search.root == "gumbel":
            raise ValueError("self_play.reuses_tree is for search.root=puct; root=gumbel begins each search anew")
        if self.full_share < 1 and self.quick_simulations >= search.simulation_limit:
            raise ValueError(
                f"self_play.quick_simulations must be less than search.num_simulations = {search.simulation_limit}, "
                f"got {self.quick_simulations}"
            )


@dataclass(frozen=True)
class SelfPlay:
    """Finished games as samples, and what there is to say of them; numbers are sums over the games."""

    samples: Samples
    openings: np.ndarray  # uint64 [games, 2, W], black's and white's discs after OPENING_PLIES plies
    num_games: int
    num_plies: int  # passes included
    num_passes: int
    black_score: int
    black_result: int
    num_searched: int  # positions
    num_simulations: int
    num_evaluated: int  # positions that the evaluator was asked for
    entropy: float  # of the searches' policies, in nats
    surprise: float  # their KL divergence from the priors, in nats
    evaluator_s: float  # CPU seconds in the network
    solver_s: float  # CPU seconds in the solver
    cpu_s: float  # CPU seconds in all
    num_cached: int = 0  # of the positions evaluated, those that a cache answered

    def metrics(self, size: int) -> dict[str, float]:
        """Returns its means by the names of metrics; the board has `size` columns."""
        games, searched, cpu_s = self.num_games, max(self.num_searched, 1), max(self.cpu_s, 1e-9)
        return {
            "self_play/plies_per_game": self.num_plies / games,
            "self_play/passes_per_game": self.num_passes / games,
            "self_play/black_mean_score": self.black_score / games,
            "self_play/black_mean_result": self.black_result / games,
            "self_play/openings": diversity(self.openings[:, 0], self.openings[:, 1], size).effective,
            "self_play/policy_entropy": self.entropy / searched,
            "self_play/surprise": self.surprise / searched,
            "self_play/simulations_per_cpu_s": self.num_simulations / cpu_s,
            "self_play/games_per_cpu_s": games / cpu_s,
            "self_play/cache_hits": self.num_cached / max(self.num_evaluated, 1),
        }

    @staticmethod
    def joined(parts: "Sequence[SelfPlay]") -> "SelfPlay":
        """Returns the parts as one."""
        sums = {
            field.name: sum(getattr(part, field.name) for part in parts)
            for field in fields(SelfPlay)
            if field.name not in ("samples", "openings")
        }
        return SelfPlay(
            samples=Samples.joined([part.samples for part in parts]),
            openings=np.concatenate([part.openings for part in parts]),
            **sums,
        )


def play_games(
    variant: Variant,
    evaluate: Evaluator,
    search_config: MCTSConfig,
    config: SelfPlayConfig,
    numbers: Sequence[int],
    seed: tuple[int, ...],
    check: Callable[[], None] = lambda: None,
) -> SelfPlay:
    """Returns a game from the variant's start for each of `numbers`, which with the seed fix its random choices.

    The samples are in the order of `numbers`. `check` is called between calls of the evaluator, and may raise.
    """
    began = time.thread_time()
    actor = Playing(variant, evaluate, search_config, config, numbers, seed)
    parts: dict[int, SelfPlay] = {}
    while actor.is_playing:
        check()
        parts |= actor.step()
    return replace(
        SelfPlay.joined([parts[order] for order in range(len(numbers))]),
        num_evaluated=actor.search.num_evaluated,
        evaluator_s=actor.search.evaluator_s,
        solver_s=actor.solver_s + actor.search.solver_s,
        cpu_s=time.thread_time() - began,
    )


class Playing:
    """Plays games by their numbers, some of them side by side; where one ends the next one begins."""

    def __init__(
        self,
        variant: Variant,
        evaluate: Evaluator,
        search_config: MCTSConfig,
        config: SelfPlayConfig,
        numbers: Sequence[int],
        seed: tuple[int, ...],
    ) -> None:
        config.check(search_config)
        start = Position(variant)
        num_places = min(config.games_at_once, len(numbers))
        self.variant = variant
        self.config = config
        self.search = Search(variant, evaluate, search_config, max(num_places, 2))  # the tree of one alone would grow
        self.style = Style(
            exact_empties=config.exact_empties,
            max_random_plies=config.max_random_plies,
            full_share=float(config.full_share),
            full_simulations=search_config.simulation_limit,
            quick_simulations=config.quick_simulations,
            reuses_tree=config.reuses_tree,
            temperature=float(search_config.temperature),
            draws_above=search_config.draws_above(variant),
            final_temperature=float(search_config.final_temperature),
        )
        self._games = new_games(len(self.search.tree.num_nodes), variant)
        self.solver_s = 0.0  # CPU seconds of this thread in the games' ends; `search` counts its leaves'
        self._exact = make_exact_memory(variant)
        self._spare = new_tree(1, self.search.tree.nodes_per_game if config.reuses_tree else 1, variant.rules)
        self._start = np.array([start.player, start.opponent], np.uint64)
        self._start_is_black = start.is_black_to_move
        self._seed = np.uint64(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
        self._left = enumerate(numbers)
        self._order_at: dict[int, int] = {}  # which of the numbers is played in which place
        for place in range(num_places):
            self._fill(place)

    @property
    def is_playing(self) -> bool:
        """Whether any game goes on."""
        return bool(self._order_at)

    def step(self) -> dict[int, SelfPlay]:
        """Calls the evaluator once and plays on where searches have ended; returns games that end, by their order."""
        self.search.step()
        games, search, rules = self._games, self.search, self.variant.rules
        ended = {}
        if advance(games, search.tree, self._spare, search.settings, self.style, rules):
            began = time.thread_time()
            solve_games(games, self._exact, rules)
            self.solver_s += time.thread_time() - began
            for place in np.flatnonzero(games.state == DONE).tolist():
                ended[self._order_at.pop(place)] = self._collect(place)
                self._fill(place)
        return ended

    def _fill(self, place: int) -> None:
        """Begins the next game, if there is one, in an idle place."""
        if (following := next(self._left, None)) is None:
            return
        self._order_at[place], number = following
        begin_game(
            self._games,
            self.search.tree,
            self._spare,
            place,
            self._start,
            self._start_is_black,
            np.uint64(stream(self._seed, number)),
            self.search.settings,
            self.style,
            self.variant.rules,
        )

    def _collect(self, place: int) -> SelfPlay:
        """Returns a game that is done, and makes its place idle."""
        games = self._games
        games.state[place] = IDLE
        rows, plies = int(games.num_rows[place]), games.value.shape[1]
        words = games.boards.shape[1]
        boards = games.row_boards[2 * place * plies : 2 * (place * plies + rows)].reshape(rows, 2, words)
        is_black = games.row_is_black[place, :rows]
        black_score = int(games.black_score[place])
        scores = np.where(is_black, black_score, -black_score).astype(np.int8)
        final_black, final_white = games.boards[2 * place], games.boards[2 * place + 1]
        weight, surprise = games.policy_weight[place, :rows], games.surprise[place, :rows]
        entropy = games.entropy[place, :rows]
        is_searched = entropy >= 0
        samples = Samples(
            player=boards[:, 0].copy(),
            opponent=boards[:, 1].copy(),
            policy=games.policy[place, :rows].astype(np.float16),
            policy_weight=self._weighted(weight, surprise).astype(np.float16),
            value=games.value[place, :rows].astype(np.float16),
            result=np.sign(scores),
            score=scores,
            final_player=np.where(is_black[:, None], final_black, final_white),
            final_opponent=np.where(is_black[:, None], final_white, final_black),
        )
        return SelfPlay(
            samples=samples,
            openings=games.opening[None, 2 * place : 2 * place + 2].copy(),
            num_games=1,
            num_plies=int(games.num_plies[place]),
            num_passes=int(games.num_passes[place]),
            black_score=black_score,
            black_result=int(np.sign(black_score)),
            num_searched=int(is_searched.sum()),
            num_simulations=int(games.num_simulations[place]),
            num_evaluated=0,
            entropy=float(entropy[is_searched].sum()),
            surprise=float(surprise[is_searched].sum()),
            evaluator_s=0.0,
            solver_s=0.0,
            cpu_s=0.0,
        )

    def _weighted(self, weight: np.ndarray, surprise: np.ndarray) -> np.ndarray:
        """Returns the weights of a game's policies, by surprise in part; their sum stays."""
        share, taught = self.config.surprise_share, weight > 0
        total = float(surprise[taught].sum())
        if not share or total <= 0:
            return weight
        weighted: np.ndarray = weight * (1 - share + share * surprise * taught.sum() / total)
        return weighted
