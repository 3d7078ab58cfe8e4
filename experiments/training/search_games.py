"""The games of self-play by tree search, as kernels have them: many side by side, each going on as soon as it can.

A move that is the only one is played without search and is no sample. From `exact_empties` empty squares on the solver
plays both sides to the end, so results and final boards are those of perfect play from there on.
"""

from typing import NamedTuple

import numpy as np

from agents.mcts.exact import ExactMemory
from agents.mcts.noise import draw_uniform
from agents.mcts.puct import raw_prior
from agents.mcts.reuse import descend
from agents.mcts.tree import MOST_EDGES, Tree, root_of, set_root, tree_spans
from agents.mcts.walking import Settings, best_edge, is_searched, prepare_root, read_policy, root_value
from agents.search.endgame import score_of, solve
from reversi_env import Variant
from reversi_env.bitboard import load, nth_bit, square_of, store
from reversi_env.geometry import Bitboard, num_words
from reversi_env.jit import kernel
from reversi_env.random_bits import draw_below, next_state, scramble
from reversi_env.rules import MUST_MOVE, OVER, Rules, final_score, legal_mask, play_square, status
from reversi_env.vectors import count, is_empty, lowest, without_lowest

IDLE, PLAYING, SOLVABLE, DONE = range(4)  # states of a place for a game

OPENING_PLIES = 8  # after so many plies the diversity of games is told


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
