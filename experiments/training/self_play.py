"""Games that a network plays against itself: many side by side in kernels, each going on as soon as it can.

A move that is the only one is played without search and is no sample. From `exact_empties` empty squares on the solver
plays both sides to the end, so results and final boards are those of perfect play from there on.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np

from agents.mcts import Evaluator, MCTSConfig, Search
from agents.mcts.config import MOST_EXACT_EMPTIES
from agents.mcts.exact import ExactMemory, make_exact_memory
from agents.mcts.noise import draw_uniform
from agents.mcts.puct import raw_prior
from agents.mcts.reuse import descend
from agents.mcts.tree import MOST_EDGES, Tree, new_tree, root_of, set_root, tree_spans
from agents.mcts.walking import Settings, best_edge, is_searched, prepare_root, read_policy, root_value
from agents.search.endgame import score_of, solve
from experiments.training.diversity import diversity
from experiments.training.replay import Samples
from reversi_env import Position, Variant
from reversi_env.bitboard import load, nth_bit, square_of, store
from reversi_env.geometry import Bitboard, num_words
from reversi_env.jit import kernel
from reversi_env.random_bits import draw_below, next_state, scramble, stream
from reversi_env.rules import MUST_MOVE, OVER, Rules, final_score, legal_mask, play_square, status
from reversi_env.vectors import count, is_empty, lowest, without_lowest

IDLE, PLAYING, SOLVABLE, DONE = range(4)  # states of a place for a game

OPENING_PLIES = 8  # after so many plies the diversity of games is told


@dataclass
class SelfPlayConfig:
    """How games against oneself are played, beside what `MCTSConfig` says of the search."""

    games_at_once: int = (
        64  # of one actor, and so about as many leaves a call of the network; also what it takes at a time
    )
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


class Style(NamedTuple):
    """How games are played, as kernels take it."""

    exact_empties: int
    max_random_plies: int
    full_share: float
    full_simulations: int
    quick_simulations: int
    reuses_tree: bool
    temperature: float
    draws_above: int  # empty squares; with more moves are drawn with `temperature`
    final_temperature: float


class Games(NamedTuple):
    """The games under way in G places, of P plies at the most; a row of what has P of them is a sample."""

    state: np.ndarray  # int8 [G]: IDLE, PLAYING, SOLVABLE where the solver is to play the rest, or DONE
    boards: np.ndarray  # uint64 [G * 2, W], the discs of the side to move and of the other one; of a game that is DONE
    #   black's and white's
    is_black: np.ndarray  # bool [G], whose move it is
    num_plies: np.ndarray  # int32 [G], passes included
    num_passes: np.ndarray  # int32 [G]
    black_score: np.ndarray  # int32 [G], once it is DONE
    rng_state: np.ndarray  # uint64 [G]
    num_simulations: np.ndarray  # int64 [G]
    opening: np.ndarray  # uint64 [G * 2, W], black's and white's discs after OPENING_PLIES plies, or at an earlier end
    num_rows: np.ndarray  # int32 [G]
    row_boards: np.ndarray  # uint64 [G * P * 2, W]
    row_is_black: np.ndarray  # bool [G, P]
    policy: np.ndarray  # float32 [G, P, A]
    policy_weight: np.ndarray  # float32 [G, P]
    value: np.ndarray  # float32 [G, P]
    surprise: np.ndarray  # float32 [G, P], the KL divergence of the policy from the priors, in nats
    entropy: np.ndarray  # float32 [G, P], the policy's, in nats; less than 0 where it is not of a search
    room: np.ndarray  # float64 [MOST_EDGES], for what a choice computes


def new_games(num_games: int, variant: Variant) -> Games:
    """Returns places for so many games, all idle."""
    words, plies = num_words(variant.size), 2 * variant.num_squares
    return Games(
        state=np.zeros(num_games, np.int8),
        boards=np.zeros((num_games * 2, words), np.uint64),
        is_black=np.zeros(num_games, np.bool_),
        num_plies=np.zeros(num_games, np.int32),
        num_passes=np.zeros(num_games, np.int32),
        black_score=np.zeros(num_games, np.int32),
        rng_state=np.zeros(num_games, np.uint64),
        num_simulations=np.zeros(num_games, np.int64),
        opening=np.zeros((num_games * 2, words), np.uint64),
        num_rows=np.zeros(num_games, np.int32),
        row_boards=np.zeros((num_games * plies * 2, words), np.uint64),
        row_is_black=np.zeros((num_games, plies), np.bool_),
        policy=np.zeros((num_games, plies, variant.num_actions), np.float32),
        policy_weight=np.zeros((num_games, plies), np.float32),
        value=np.zeros((num_games, plies), np.float32),
        surprise=np.zeros((num_games, plies), np.float32),
        entropy=np.zeros((num_games, plies), np.float32),
        room=np.zeros(MOST_EDGES, np.float64),
    )


@kernel
def begin_game(
    games: Games,
    tree: Tree,
    spare: Tree,
    place: int,
    start: np.ndarray,
    is_black: bool,
    rng_state: np.uint64,
    settings: Settings,
    style: Style,
    rules: Rules,
) -> None:
    """Begins a game in an idle place, from the boards in `start`, uint64 [2, W]."""
    games.state[place] = PLAYING
    games.is_black[place] = is_black
    games.num_plies[place] = 0
    games.num_passes[place] = 0
    games.num_simulations[place] = 0
    games.num_rows[place] = 0
    games.rng_state[place] = rng_state
    player, opponent = load(start, 0, rules.squares), load(start, 1, rules.squares)
    for _ in range(draw_below(games.rng_state, place, style.max_random_plies + 1)):
        legal = legal_mask(player, opponent, rules)
        what = status(player, opponent, legal, rules)
        if what == OVER:
            break
        move = rules.size * rules.size
        if what == MUST_MOVE:
            move = square_of(nth_bit(legal, draw_below(games.rng_state, place, count(legal))), rules.size, legal)
        player, opponent = _played(games, place, player, opponent, move, rules)
    trees, spares = tree_spans(tree), tree_spans(spare)
    _go_on(games, trees, spares, place, player, opponent, False, settings, style, rules)


@kernel
def _played(
    games: Games, place: int, player: Bitboard, opponent: Bitboard, move: int, rules: Rules
) -> tuple[Bitboard, Bitboard]:
    """Returns the boards after a move of a game, which is counted."""
    if move == rules.size * rules.size:
        games.num_passes[place] += 1
    after = play_square(player, opponent, move, rules)
    games.is_black[place] = not games.is_black[place]
    games.num_plies[place] += 1
    if games.num_plies[place] == OPENING_PLIES:
        _store_by_color(games.opening, place, games.is_black[place], after[0], after[1])
    return after


@kernel
def _store_by_color(boards: np.ndarray, place: int, is_black: bool, player: Bitboard, opponent: Bitboard) -> None:
    """Writes black's discs and white's into the rows of a place; `is_black`: the player."""
    store(boards, 2 * place, player if is_black else opponent)
    store(boards, 2 * place + 1, opponent if is_black else player)


@kernel
def _end(games: Games, place: int, player: Bitboard, opponent: Bitboard, rules: Rules) -> None:
    """Ends a game, whose tree nobody looks at any more."""
    score = final_score(player, opponent, rules)
    games.black_score[place] = score if games.is_black[place] else -score
    _store_by_color(games.boards, place, games.is_black[place], player, opponent)
    if games.num_plies[place] < OPENING_PLIES:
        _store_by_color(games.opening, place, games.is_black[place], player, opponent)
    games.state[place] = DONE


@kernel
def _go_on(
    games: Games,
    tree: Tree,
    spare: Tree,
    place: int,
    player: Bitboard,
    opponent: Bitboard,
    is_in_tree: bool,
    settings: Settings,
    style: Style,
    rules: Rules,
) -> None:
    """Plays moves that need no search, then begins a search, or leaves the game to the solver, or ends it.

    `is_in_tree`: whether the position is the root of its tree.
    """
    while True:
        legal = legal_mask(player, opponent, rules)
        what = status(player, opponent, legal, rules)
        if what == OVER:
            tree.num_nodes[place] = 0
            _end(games, place, player, opponent, rules)
            return
        num_empties = rules.size * rules.size - count(player) - count(opponent)
        is_solvable = what == MUST_MOVE and num_empties <= style.exact_empties
        if is_solvable:
            tree.num_nodes[place] = 0
            games.state[place] = SOLVABLE
            break
        if what == MUST_MOVE and count(legal) > 1:
            break
        move = square_of(lowest(legal), rules.size, legal) if what == MUST_MOVE else rules.size * rules.size
        is_in_tree = is_in_tree and descend(tree, spare, place, int(tree.nodes[root_of(tree, place)].first_edge), rules)
        player, opponent = _played(games, place, player, opponent, move, rules)
    store(games.boards, 2 * place, player)
    store(games.boards, 2 * place + 1, opponent)
    if is_solvable:
        return
    is_full = draw_uniform(games.rng_state, place) < style.full_share
    most = style.full_simulations if is_full else style.quick_simulations
    if not is_in_tree:
        games.rng_state[place] = next_state(games.rng_state[place])
        tree.rng_state[place] = scramble(games.rng_state[place])
        set_root(tree, place, player, opponent, most, is_full, rules)
        return
    games.num_simulations[place] -= tree.simulations[place]  # which were counted with an earlier search
    tree.most_simulations[place] = most
    tree.is_noisy[place] = is_full
    prepare_root(tree, place, settings)


@kernel
def solve_games(games: Games, exact: ExactMemory, rules: Rules) -> None:
    """Plays every game that is SOLVABLE to its end, each side its first best move, and records the positions."""
    for place in range(games.state.shape[0]):
        if games.state[place] != SOLVABLE:
            continue
        player, opponent = (
            load(games.boards, 2 * place, rules.squares),
            load(games.boards, 2 * place + 1, rules.squares),
        )
        num_empties = rules.size * rules.size - count(player) - count(opponent)
        score = score_of(
            player, opponent, 0, num_empties, exact.memory, exact.table, exact.marks, exact.evaluation, rules
        )
        while True:
            legal = legal_mask(player, opponent, rules)
            what = status(player, opponent, legal, rules)
            if what == OVER:
                break
            move = rules.size * rules.size
            if what == MUST_MOVE:
                left = legal
                num_empties -= 1
                while True:
                    move = square_of(lowest(left), rules.size, left)
                    left = without_lowest(left)
                    if is_empty(left):  # as none of the others is
                        break
                    after = play_square(player, opponent, move, rules)
                    answer = solve(
                        after[0],
                        after[1],
                        -score,
                        num_empties,
                        exact.memory,
                        exact.table,
                        exact.marks,
                        exact.evaluation,
                        rules,
                    )
                    if answer <= -score:
                        break
                if count(legal) > 1:
                    row = _record(games, place, player, opponent, float(np.sign(score)), 1.0)
                    games.policy[place, row, move] = 1
                    games.entropy[place, row] = -1
            player, opponent = _played(games, place, player, opponent, move, rules)
            score = -score
        _end(games, place, player, opponent, rules)


@kernel
def _record(games: Games, place: int, player: Bitboard, opponent: Bitboard, value: float, policy_weight: float) -> int:
    """Adds a sample to a game, its policy all zero, and returns its row."""
    row: int = games.num_rows[place]
    games.num_rows[place] += 1
    boards = 2 * (place * games.value.shape[1] + row)
    store(games.row_boards, boards, player)
    store(games.row_boards, boards + 1, opponent)
    games.row_is_black[place, row] = games.is_black[place]
    games.policy[place, row, :] = 0
    games.policy_weight[place, row] = policy_weight
    games.value[place, row] = value
    games.surprise[place, row] = 0
    games.entropy[place, row] = 0
    return row


@kernel
def _record_search(
    games: Games, tree: Tree, place: int, player: Bitboard, opponent: Bitboard, settings: Settings
) -> None:
    """Adds the position that was searched, and leaves its policy by root edge in `games.room`."""
    policy_weight = 1.0 if tree.is_noisy[place] else 0.0  # quick searches are those without noise
    row = _record(games, place, player, opponent, root_value(tree, place), policy_weight)
    games.num_simulations[place] += tree.simulations[place]
    read_policy(tree, place, settings, games.room)
    root = tree.nodes[root_of(tree, place)]
    for index in range(root.num_edges):
        edge = int(root.first_edge) + index
        share = games.room[index]
        games.policy[place, row, tree.action[edge]] = share
        if share > 0:
            prior = max(raw_prior(tree, place, edge, settings.noise_fraction), 1e-9)
            games.surprise[place, row] += share * np.log(share / prior)
            games.entropy[place, row] -= share * np.log(share)


@kernel
def _chosen_edge(games: Games, tree: Tree, place: int, num_empties: int, settings: Settings, style: Style) -> int:
    """Returns the root edge to play, drawn by the policy in `games.room` where that is so configured."""
    temperature = style.temperature if num_empties > style.draws_above else style.final_temperature
    if settings.is_gumbel or temperature == 0:
        return best_edge(tree, place, settings)
    root = tree.nodes[root_of(tree, place)]
    greatest = 0.0
    for index in range(root.num_edges):
        greatest = max(greatest, games.room[index])
    total = 0.0
    for index in range(root.num_edges):
        games.room[index] = (games.room[index] / greatest) ** (1 / temperature)
        total += games.room[index]
    left = total * draw_uniform(games.rng_state, place)
    chosen = 0
    for index in range(root.num_edges):
        if games.room[index] > 0:
            chosen = index
            left -= games.room[index]
            if left < 0:
                break
    return int(root.first_edge) + chosen


@kernel
def advance(games: Games, tree: Tree, spare: Tree, settings: Settings, style: Style, rules: Rules) -> int:
    """Plays a move in every game whose search has ended, up to the next search; returns how many need no more."""
    trees, spares = tree_spans(tree), tree_spans(spare)
    num_ended = 0
    for place in range(games.state.shape[0]):
        if games.state[place] == PLAYING and is_searched(trees, place):
            player, opponent = (
                load(games.boards, 2 * place, rules.squares),
                load(games.boards, 2 * place + 1, rules.squares),
            )
            _record_search(games, trees, place, player, opponent, settings)
            num_empties = rules.size * rules.size - count(player) - count(opponent)
            edge = _chosen_edge(games, trees, place, num_empties, settings, style)
            move = int(trees.action[edge])
            is_in_tree = style.reuses_tree and descend(trees, spares, place, edge, rules)
            player, opponent = _played(games, place, player, opponent, move, rules)
            _go_on(games, trees, spares, place, player, opponent, is_in_tree, settings, style, rules)
        num_ended += games.state[place] == SOLVABLE or games.state[place] == DONE
    return num_ended


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
