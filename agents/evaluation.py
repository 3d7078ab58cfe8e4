"""Estimates of a position that goes on, for the side to move, in hundredths of a disc.

"discs", "positional" and "mobility" are worked out by hand; "ntuple" is learned, see `agents.ntuple`. The kind is a
number, not a kernel: Numba keeps no compiled code of kernels that take kernels.
"""

import os
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba.cpython.unsafe.tuple import tuple_setitem

from agents.manifest import MANIFEST
from agents.ntuple.lanes import sum_weights
from agents.ntuple.layout import UNIT
from agents.ntuple.tables import Tables, is_tables, read_tables
from agents.runs import CHECKPOINTS, find_tables
from reversi_env import Variant
from reversi_env.bitboard import square_of
from reversi_env.geometry import WORD_BITS, Bitboard, stride_of, to_bitboard
from reversi_env.jit import kernel
from reversi_env.naming import UnknownNameError, UsageError
from reversi_env.opponents import square_weights
from reversi_env.rules import Rules, legal_mask
from reversi_env.vectors import count, is_empty, lowest, no_square, overlap, union, without, without_lowest

DISC = 100  # an evaluation of so much is one disc
DISCS, POSITIONAL, MOBILITY, NTUPLE = 0, 1, 2, 3
KINDS = {"discs": DISCS, "positional": POSITIONAL, "mobility": MOBILITY}  # those that every variant has
LEARNED = "ntuple"  # the name of the tables that come along for a size and a goal
HANDMADE = "mobility"  # the best of KINDS
WEIGHTS = Path(__file__).parent / "weights"  # where those lie

# What "mobility" counts, the side to move's less the other side's. The terms are those of Rosenbloom, "A World-
# Championship-Level Othello Program", Artificial Intelligence 19 (1982), section 3, and the discs as they lie.
MOVES, POTENTIAL_MOVES, FRONTIER, CORNERS, X_SQUARES, C_SQUARES, DIFFERENTIAL = range(7)

# Their worth in hundredths of a disc where the most and where the fewest discs win: least squares of the final score
# over 58,000 positions with 12 to 50 empty squares of each, from 1,500 games at depth 3 on 8×8 with some random moves.
# It explains 41 % and 27 % of the scores' variance.
_WORTH = np.array(
    [
        [100, 15, -135, 1125, -740, -120, 60],
        [10, 10, 10, -660, -75, 155, -50],
    ]
)

# How far searches err, see `agents.search.probcut`: its `measured_model` of 8×8 with seed 1. Spreads differ up to
# fourfold by goal, and less than twofold by size.
ERROR_MODELS = {
    "discs": {
        "most": np.array([6.6162, 0.1748, -0.2256, -3.5229, 1.3554]),
        "fewest": np.array([5.8801, 0.1979, -0.1695, -3.6816, 1.6822]),
    },
    "positional": {
        "most": np.array([5.4003, 0.1702, -0.2557, -7.2532, 4.183]),
        "fewest": np.array([4.6191, 0.106, -0.2416, -3.36, 1.6749]),
    },
    "mobility": {
        "most": np.array([6.4982, 0.1655, -0.2555, -0.7312, -1.2988]),
        "fewest": np.array([6.2259, 0.1792, -0.2649, -5.4561, 3.3022]),
    },
}

_STRIDE_1 = np.uint64(stride_of(1))
_STRIDE_2 = np.uint64(stride_of(2))
_ONE = np.uint64(1)
_WORD_BITS = np.uint64(WORD_BITS)


class Evaluation(NamedTuple):
    """An evaluation of one board size as kernels take it."""

    kind: int  # DISCS, POSITIONAL, MOBILITY or NTUPLE
    corners: Bitboard
    x_squares: Bitboard  # diagonally beside the corners
    not_first: Bitboard  # the squares that have one on their left
    not_last: Bitboard  # the squares that have one on their right
    weights: np.ndarray  # int64 [size²], by square; read-only
    tables: np.ndarray  # int16, as `Layout.packed` has it, and empty for other kinds; read-only


def evaluation_of(name: str, variant: Variant) -> Evaluation:
    """Returns an evaluation of a variant's positions: of KINDS, LEARNED, or the folder of some tables or of a run.

    A folder is known by a slash in its name, or by being there; it is read once, and again when it changes.
    Raises UnknownNameError for a name that nothing has, UsageError where there are no tables for the variant, and
    CheckpointError for a folder that cannot be used.
    """
    check_name(name)
    return _by_hand(KINDS[name], variant.size) if name in KINDS else _learned(name, variant).evaluation


def error_model_of(name: str, variant: Variant) -> np.ndarray:
    """Returns how far searches with an evaluation err, float64 [5], or [0] where nobody knows: see `search.probcut`.

    The evaluation's name and what may be wrong with it are those of `evaluation_of`.
    """
    check_name(name)
    return ERROR_MODELS[name][variant.goal] if name in KINDS else _learned(name, variant).error_model


def check_name(name: str) -> None:
    """Raises UnknownNameError for what is no evaluation's name, whatever the variant."""
    if name not in (*KINDS, LEARNED) and not ("/" in name or os.sep in name or os.path.isdir(name)):
        raise UnknownNameError("evaluation", name, (*KINDS, LEARNED), "or give the folder of some n-tuple tables")


def learned_evaluation(tables: Tables) -> Evaluation:
    """Returns the evaluation by n-tuple tables of positions of their variant's size and goal."""
    return _by_hand(NTUPLE, tables.variant.size)._replace(tables=tables.layout.packed(tables.weights))


def shipped_tables(variant: Variant) -> Path:
    """Returns the folder of the tables that come along for a variant's size and goal; raises UsageError without any."""
    goal = "" if variant.goal == "most" else f"-{variant.goal}"
    folder = WEIGHTS / f"{LEARNED}-{variant.size}x{variant.size}{goal}"
    if not is_tables(folder):
        raise UsageError(
            f"no n-tuple tables come along for {variant.name}; `reversi train experiment=ntuple "
            f"variant.size={variant.size} variant.goal={variant.goal}` learns some; their folder is an evaluation too"
        )
    return folder


def best_evaluation(variant: Variant) -> str:
    """Returns the name of the best evaluation that comes along for a variant: the learned one, where there is one."""
    try:
        shipped_tables(variant)
    except UsageError:
        return HANDMADE
    return LEARNED


def _changed_ns(place: Path) -> int:
    """Returns when tables at `place`, or a run's checkpoints, were last written; 0 where there are none."""
    return max(
        (path.stat().st_mtime_ns for name in (MANIFEST, CHECKPOINTS) if (path := place / name).exists()), default=0
    )


class _Learned(NamedTuple):
    evaluation: Evaluation
    error_model: np.ndarray


def _learned(name: str, variant: Variant) -> _Learned:
    """Returns what the tables of that name tell, see `evaluation_of`."""
    place = shipped_tables(variant) if name == LEARNED else Path(name)
    return _from_place(place, _changed_ns(place), variant.size, variant.goal)


@lru_cache(maxsize=8)  # some megabytes each
def _from_place(place: Path, changed_ns: int, size: int, goal: str) -> _Learned:
    """Returns what the tables at `place` tell, as they were written at that time."""
    tables = read_tables(find_tables(place))
    trained = tables.variant
    if (trained.size, trained.goal) != (size, goal):
        raise UsageError(
            f"the n-tuple tables in {place} are for {trained.size}×{trained.size} where the {trained.goal} discs win, "
            f"not for {size}×{size} where the {goal} win"
        )
    return _Learned(learned_evaluation(tables), tables.error_model)


@cache
def _by_hand(kind: int, size: int) -> Evaluation:
    last = size - 1
    squares = range(size * size)
    no_tables = np.empty(0, np.int16)
    no_tables.flags.writeable = False  # as the others are, which would else be another type for Numba
    return Evaluation(
        kind=kind,
        corners=to_bitboard([row * size + column for row in (0, last) for column in (0, last)], size),
        x_squares=to_bitboard([row * size + column for row in (1, last - 1) for column in (1, last - 1)], size),
        not_first=to_bitboard([square for square in squares if square % size != 0], size),
        not_last=to_bitboard([square for square in squares if square % size != last], size),
        weights=np.asarray(square_weights(size), np.int64),
        tables=no_tables,
    )


@kernel
def evaluate(player: Bitboard, opponent: Bitboard, evaluation: Evaluation, rules: Rules) -> int:
    """Returns how the game seems to end for `player`, in hundredths of a disc, at most a whole board of them.

    "discs" is the differential as it lies, "positional" the sum of a weight for each square held, each signed by
    the goal; "mobility" weighs moves, potential moves, frontier discs, corners, squares beside empty ones, and discs.
    N-tuples are learned for one goal, and sum a weight for what lies on each of some small patterns of squares.
    """
    if evaluation.kind == NTUPLE:
        num_empties = rules.size * rules.size - count(player) - count(opponent)
        total = (sum_weights(player, opponent, num_empties, evaluation.tables) * DISC + UNIT // 2) // UNIT
    elif evaluation.kind == MOBILITY:
        total = _mobility(player, opponent, evaluation, rules)
    else:
        if evaluation.kind == DISCS:
            total = DISC * (count(player) - count(opponent))
        else:
            total = weight(player, evaluation.weights, rules) - weight(opponent, evaluation.weights, rules)
        if rules.fewest:
            total = -total
    most = DISC * rules.size * rules.size
    return max(-most, min(most, total))


@kernel
def weight(discs: Bitboard, weights: np.ndarray, rules: Rules) -> int:
    """Returns the sum of `weights`, int64 [size²], over the squares of `discs`."""
    total = 0
    while not is_empty(discs):
        total += weights[square_of(lowest(discs), rules.size, discs)]
        discs = without_lowest(discs)
    return total


@kernel
def _mobility(player: Bitboard, opponent: Bitboard, evaluation: Evaluation, rules: Rules) -> int:
    empties = without(rules.squares, union(player, opponent))
    beside_open_corners = neighbors(overlap(evaluation.corners, empties), evaluation)
    potential = count(overlap(empties, neighbors(opponent, evaluation)))
    potential -= count(overlap(empties, neighbors(player, evaluation)))
    worth = _WORTH[1 if rules.fewest else 0]
    return int(
        worth[MOVES] * (count(legal_mask(player, opponent, rules)) - count(legal_mask(opponent, player, rules)))
        + worth[POTENTIAL_MOVES] * potential
        + worth[FRONTIER] * _lead(player, opponent, neighbors(empties, evaluation))
        + worth[CORNERS] * _lead(player, opponent, evaluation.corners)
        + worth[X_SQUARES] * _lead(player, opponent, overlap(beside_open_corners, evaluation.x_squares))
        + worth[C_SQUARES] * _lead(player, opponent, without(beside_open_corners, evaluation.x_squares))
        + worth[DIFFERENTIAL] * _lead(player, opponent, rules.squares)
    )


@kernel
def _lead(player: Bitboard, opponent: Bitboard, squares: Bitboard) -> int:
    return count(overlap(player, squares)) - count(overlap(opponent, squares))


@kernel
def neighbors(board: Bitboard, evaluation: Evaluation) -> Bitboard:
    """Returns the squares of `board` and around it, and perhaps bits off the board."""
    stride = _STRIDE_1 if len(board) == 1 else _STRIDE_2
    row = union(
        board,
        union(_raised(overlap(board, evaluation.not_last), _ONE), _lowered(overlap(board, evaluation.not_first), _ONE)),
    )
    return union(row, union(_raised(row, stride), _lowered(row, stride)))


@kernel
def _raised(board: Bitboard, steps: np.uint64) -> Bitboard:
    """Returns `board` with every bit moved up by `steps`, 1 to 63."""
    moved = no_square(board)
    carry = np.uint64(0)
    for word in range(len(board)):
        moved = tuple_setitem(moved, word, board[word] << steps | carry)
        carry = board[word] >> (_WORD_BITS - steps)
    return moved


@kernel
def _lowered(board: Bitboard, steps: np.uint64) -> Bitboard:
    """Returns `board` with every bit moved down by `steps`, 1 to 63."""
    moved = no_square(board)
    carry = np.uint64(0)
    for word in range(len(board) - 1, -1, -1):
        moved = tuple_setitem(moved, word, board[word] >> steps | carry)
        carry = board[word] << (_WORD_BITS - steps)
    return moved
