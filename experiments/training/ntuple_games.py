"""Games that an evaluation plays against itself by shallow search, many in a kernel call, and targets to learn from."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from agents.evaluation import DISC, Evaluation, evaluate
from agents.search.endgame import make_marks, score_of
from agents.search.memory import GENERATION, NODES, make_memory
from agents.search.midgame import first_move, in_discs, search_to
from agents.search.transposition import MOST_GENERATIONS, make_table
from reversi_env import Position, Variant
from reversi_env.bitboard import load, nth_bit, square_of, store
from reversi_env.geometry import Bitboard, num_words
from reversi_env.jit import kernel
from reversi_env.random_bits import draw_below, stream
from reversi_env.rules import MUST_MOVE, OVER, Rules, final_score, legal_mask, play_square, status
from reversi_env.vectors import count

GAMES_A_CALL = 16  # of the kernel: few enough that a stop is heard at once

_TABLE_ENTRIES = 1 << 12
_SOLVER_TABLE_ENTRIES = 1 << 12
_SHARES = 1 << 16  # what a share of random moves is counted in


class Style(NamedTuple):
    """How games are played."""

    depth: int  # plies that a search looks ahead
    exact_empties: int
    min_opening_plies: int
    max_opening_plies: int
    exploration: int  # the share of random moves, in parts of _SHARES
    trace: float


class Records(NamedTuple):
    """Positions of games, N of them, for the side to move."""

    boards: np.ndarray  # uint64 [2N, W]: rows 2n and 2n + 1 are the player and the opponent of position n
    target: np.ndarray  # float32 [N], how the game should end, in discs


class Memories(NamedTuple):
    """What the searches of one thread work in, see `agents.search`."""

    search: np.ndarray
    table: np.ndarray
    solver: np.ndarray
    solver_table: np.ndarray
    marks: np.ndarray
    num_nodes: np.ndarray  # int64 [1], of all searches


@kernel
def play_games(
    player: Bitboard,
    opponent: Bitboard,
    first_game: int,
    seed: np.uint64,
    style: Style,
    records: Records,
    lengths: np.ndarray,
    memories: Memories,
    evaluation: Evaluation,
    rules: Rules,
) -> int:
    """Plays a game for each of `lengths`, int64 [G], and fills it with the games' plies, passes included.

    Fills `records` from row 0 on and returns the number of its rows; positions of random openings are left out. Game n
    draws from stream `first_game + n` of the seed.
    """
    memories.search[GENERATION] = MOST_GENERATIONS  # so the table is cleared: no call depends on another
    state = np.empty(1, np.uint64)
    row = 0
    for game in range(lengths.shape[0]):
        for place in range(len(memories.solver_table)):
            memories.solver_table[place] = 0
        state[0] = stream(seed, first_game + game)
        row = _play_game(player, opponent, game, row, state, style, records, lengths, memories, evaluation, rules)
    return row


@kernel
def _play_game(
    player: Bitboard,
    opponent: Bitboard,
    game: int,
    first_row: int,
    state: np.ndarray,
    style: Style,
    records: Records,
    lengths: np.ndarray,
    memories: Memories,
    evaluation: Evaluation,
    rules: Rules,
) -> int:
    """Plays one game, fills `records` from `first_row` on, and returns the row behind the last."""
    num_random = style.min_opening_plies + draw_below(state, 0, style.max_opening_plies - style.min_opening_plies + 1)
    num_plies, row = 0, first_row
    reaches_on = np.empty(2 * rules.size * rules.size, np.bool_)  # whether a row's target depends on the next one's
    while True:
        legal = legal_mask(player, opponent, rules)
        what = status(player, opponent, legal, rules)
        if what == OVER:
            break
        move = rules.size * rules.size
        if what == MUST_MOVE:
            move = square_of(nth_bit(legal, draw_below(state, 0, count(legal))), rules.size, legal)
        if num_plies >= num_random:
            explores = count(legal) > 1 and draw_below(state, 0, _SHARES) < style.exploration
            num_empties = rules.size * rules.size - count(player) - count(opponent)
            is_exact = num_empties <= style.exact_empties
            value = search_to(player, opponent, style.depth, memories.search, memories.table, evaluation, rules)
            memories.num_nodes[0] += memories.search[NODES]
            if not explores:
                move = first_move(memories.search, rules)
            store(records.boards, 2 * row, player)
            store(records.boards, 2 * row + 1, opponent)
            records.target[row] = in_discs(value)
            if is_exact:
                records.target[row] = score_of(
                    player,
                    opponent,
                    round(in_discs(value) / 2) * 2,
                    num_empties,
                    memories.solver,
                    memories.solver_table,
                    memories.marks,
                    evaluation,
                    rules,
                )
                memories.num_nodes[0] += memories.solver[NODES]
                memories.solver[NODES] = 0
            reaches_on[row - first_row] = not explores and not is_exact
            row += 1
        player, opponent = play_square(player, opponent, move, rules)
        num_plies += 1
    lengths[game] = num_plies
    target = float(-final_score(player, opponent, rules))
    for place in range(row - 1, first_row - 1, -1):
        if reaches_on[place - first_row]:
            target = (1 - style.trace) * records.target[place] + style.trace * target
        else:
            target = records.target[place]
        records.target[place] = target
        target = -target
    return row


@kernel
def _predict(boards: np.ndarray, out: np.ndarray, like: Bitboard, evaluation: Evaluation, rules: Rules) -> None:
    """Fills `out`, float32 [N], with evaluations in discs; `boards` is that of Records."""
    for row in range(out.shape[0]):
        out[row] = evaluate(load(boards, 2 * row, like), load(boards, 2 * row + 1, like), evaluation, rules) / DISC


@dataclass(frozen=True)
class Positions:
    """Positions with what is to be learned of them, the oldest first; n of them."""

    boards: np.ndarray  # uint64  [n, 2, W], the discs of the side to move and of the other one
    target: np.ndarray  # float32 [n], how the game should end for the side to move, in discs

    def __len__(self) -> int:
        return len(self.target)

    def at(self, rows: slice) -> "Positions":
        return Positions(self.boards[rows], self.target[rows])

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns the arrays by name."""
        return {"boards": self.boards, "target": self.target}

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray], variant: Variant) -> "Positions":
        """Returns positions of arrays from a file; raises ValueError where they do not fit the variant."""
        wanted = Positions.empty(variant).arrays()
        if arrays.keys() != wanted.keys() or len({len(array) for array in arrays.values()}) != 1:
            raise ValueError(f"the window has arrays {sorted(arrays)}, expected {sorted(wanted)} of one length")
        for name, array in arrays.items():
            if array.dtype != wanted[name].dtype or array.shape[1:] != wanted[name].shape[1:]:
                raise ValueError(f"the window's {name} is {array.dtype} {array.shape}, not of {variant.name}")
        boards, squares = arrays["boards"], variant.field[0]
        if (boards[:, 0] & boards[:, 1]).any() or (boards & ~squares).any() or not np.isfinite(arrays["target"]).all():
            raise ValueError(f"the window holds what is no position of {variant.name}")
        return Positions(**arrays)

    @staticmethod
    def empty(variant: Variant) -> "Positions":
        return Positions(np.empty((0, 2, num_words(variant.size)), np.uint64), np.empty(0, np.float32))

    @staticmethod
    def joined(parts: "Sequence[Positions]") -> "Positions":
        boards, target = zip(*((part.boards, part.target) for part in parts), strict=True)
        return Positions(np.concatenate(boards), np.concatenate(target))


def predicted(positions: Positions, evaluation: Evaluation, variant: Variant) -> np.ndarray:
    """Returns what an evaluation says of positions, float32 [n], in discs."""
    evaluations = np.empty(len(positions), np.float32)
    words = num_words(variant.size)
    boards = np.ascontiguousarray(positions.boards).reshape(-1, words)
    _predict(boards, evaluations, Position(variant).player, evaluation, variant.rules)
    return evaluations


@dataclass(frozen=True)
class Played:
    """What games left."""

    positions: Positions
    num_games: int
    num_plies: int  # passes included
    num_nodes: int  # of the searches


def share_of(share: float) -> int:
    """Returns a share in 0..1 as `Style` has it."""
    return round(share * _SHARES)


def self_play(
    variant: Variant,
    evaluation: Evaluation,
    style: Style,
    num_games: int,
    seed: int,
    num_threads: int,
    check: Callable[[], None],
) -> Played:
    """Returns the positions of games from the variant's start, the same for any number of threads.

    `check` is called between some games and the next, and may raise.
    """
    calls = [range(first, min(first + GAMES_A_CALL, num_games)) for first in range(0, num_games, GAMES_A_CALL)]
    with ThreadPoolExecutor(num_threads) as threads:
        shares = threads.map(
            lambda share: _play_share(variant, evaluation, style, share, np.uint64(seed), check),
            [calls[number::num_threads] for number in range(num_threads)],
        )
        by_thread = list(shares)
    parts = [by_thread[number % num_threads][number // num_threads] for number in range(len(calls))]
    return Played(
        positions=Positions.joined([part.positions for part in parts]),
        num_games=num_games,
        num_plies=sum(part.num_plies for part in parts),
        num_nodes=sum(part.num_nodes for part in parts),
    )


def _play_share(
    variant: Variant,
    evaluation: Evaluation,
    style: Style,
    calls: Sequence[range],
    seed: np.uint64,
    check: Callable[[], None],
) -> list[Played]:
    """Returns what each call left, one after the other in this thread."""
    start, words = Position(variant), num_words(variant.size)
    solver = make_memory()
    solver[GENERATION] = 1
    memories = Memories(
        search=make_memory(),
        table=make_table(_TABLE_ENTRIES, words),
        solver=solver,
        solver_table=make_table(_SOLVER_TABLE_ENTRIES, words),
        marks=make_marks(1),
        num_nodes=np.zeros(1, np.int64),
    )
    most = GAMES_A_CALL * 2 * variant.num_squares
    records = Records(np.empty((2 * most, words), np.uint64), np.empty(most, np.float32))
    played = []
    for games in calls:
        check()
        lengths = np.empty(len(games), np.int64)
        memories.num_nodes[0] = 0
        num_records = play_games(
            start.player,
            start.opponent,
            games.start,
            seed,
            style,
            records,
            lengths,
            memories,
            evaluation,
            variant.rules,
        )
        positions = Positions(
            records.boards[: 2 * num_records].reshape(-1, 2, words).copy(), records.target[:num_records].copy()
        )
        played.append(Played(positions, len(games), int(lengths.sum()), int(memories.num_nodes[0])))
    return played
