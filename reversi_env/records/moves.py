"""How GGF and SGF write moves: by the square's name, each for one of two colors."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import compress
from typing import NamedTuple, TypedDict

from reversi_env.geometry import SIZES
from reversi_env.notation import BLACK, parse_move, square_name
from reversi_env.records.properties import Properties
from reversi_env.records.record import RecordError, place_moves, shown
from reversi_env.variant import Variant

BLACK_MOVE, WHITE_MOVE = "B", "W"

_BLACK_FIRST = (BLACK_MOVE, WHITE_MOVE) * (SIZES[-1] ** 2 + 1)
_WHITE_FIRST = (WHITE_MOVE, BLACK_MOVE) * (SIZES[-1] ** 2 + 1)
_MOVES = frozenset((BLACK_MOVE, WHITE_MOVE))


@lru_cache
def move_names(size: int) -> tuple[str, ...]:
    """Returns the names of the squares of a board and of the pass, in the order of their numbers."""
    return tuple(square_name(move, size) for move in range(size * size + 1))


@lru_cache
def _moves_by_name(size: int) -> dict[str, int]:
    names = {name: move for move, name in enumerate(move_names(size))}
    return {**names, **{name.upper(): move for name, move in names.items()}, "": size * size}


class Told(NamedTuple):
    """The properties of a record, its moves apart: bare ones, or else any."""

    run: list[str]  # bare moves, each like "B[f5"
    colors: list[str]  # of other moves, BLACK_MOVE or WHITE_MOVE
    moves: list[str]
    nodes: Sequence[int]  # where the moves stand
    others: list[tuple[str, str, int]]  # name, value, node


def told_by(properties: Properties) -> Told:
    """Returns the properties, the moves apart from the others."""
    names, values, nodes, run = properties
    others = [entry for entry in zip(names, values, nodes, strict=False) if entry[0] not in _MOVES]
    run_nodes = range(nodes[-1], nodes[-1] + len(run))
    if len(others) == len(names):
        return Told(run, [], [], run_nodes, others)
    is_move = [name in _MOVES for name in names]
    return Told(
        [],
        [*compress(names, is_move), *(play[0] for play in run)],
        [*compress(values, is_move), *(play[2:] for play in run)],
        [*compress(nodes, is_move), *run_nodes],
        others,
    )


@lru_cache
def _plays_by_text(size: int) -> dict[str, tuple[str, int]]:
    names = enumerate(move_names(size))
    return {f"{color}[{name}": (color, move) for move, name in names for color in (BLACK_MOVE, WHITE_MOVE)}


def parse_plays(told: Told, names: Sequence[str], size: int) -> tuple[Sequence[str], Sequence[int]]:
    """Returns the colors and the moves told; `names` are those of `told.moves`. Raises RecordError as `parse_moves`."""
    if not told.run:
        return told.colors, parse_moves(names, size)
    known = _plays_by_text(size)
    try:
        colors, moves = zip(*map(known.__getitem__, told.run), strict=True)
    except KeyError:
        return (), parse_moves([play[2:] for play in told.run], size)  # which says what is wrong
    return colors, moves


def parse_moves(names: Sequence[str], size: int) -> list[int]:
    """Returns the moves of these names, an empty one being a pass; raises RecordError for the first that is none."""
    known = _moves_by_name(size)
    try:
        return list(map(known.__getitem__, names))
    except KeyError:
        return [_parse_move(name, size) for name in names]


def _parse_move(name: str, size: int) -> int:
    try:
        return parse_move(name, size) if name.strip() else size * size
    except ValueError:
        last = square_name(size * size - 1, size)
        right = f"squares are a1 to {last}, a pass is 'pass'"
        raise RecordError(f"{shown(name.strip())} is not a square of {size}×{size}; {right}") from None


def movers(variant: Variant) -> Sequence[str]:
    """Returns whose turn it is, BLACK_MOVE or WHITE_MOVE, at each ply of the longest game."""
    return _BLACK_FIRST if variant.start_board[1] == BLACK else _WHITE_FIRST


class Play(TypedDict):
    """What a `GameRecord` holds of the moves."""

    moves: tuple[int, ...]
    evaluations: tuple[float | None, ...]
    times_s: tuple[float | None, ...]


def play_from(
    variant: Variant,
    colors: Sequence[str],
    told: Sequence[int],
    evaluations: Sequence[float | None],
    times_s: Sequence[float | None],
) -> Play:
    """Returns the moves told, each by the color BLACK_MOVE or WHITE_MOVE, with the passes left out put in.

    `evaluations` and `times_s` have one entry for each move told, or none at all. Raises RecordError where a move is
    not legal or not its color's.
    """
    moves, plies = place_moves(variant, told)
    turns = movers(variant)
    expected = tuple([turns[ply] for ply in plies])
    if expected != tuple(colors[: len(expected)]):
        number = next(number for number, turn in enumerate(expected) if colors[number] != turn)
        move = f"{colors[number]}[{move_names(variant.size)[told[number]]}]"
        turn = "black" if expected[number] == BLACK_MOVE else "white"
        raise RecordError(f"move {number + 1}, {move}, is out of turn; it is {turn}'s")
    return Play(
        moves=moves,
        evaluations=_spread(evaluations, plies, len(moves)),
        times_s=_spread(times_s, plies, len(moves)),
    )


def _spread(values: Sequence[float | None], plies: Sequence[int], length: int) -> tuple[float | None, ...]:
    """Returns one value for each of `length` plies: those told at `plies`, and None at passes put in; () for none."""
    if not values:
        return ()
    spread: list[float | None] = [None] * length
    for ply, value in zip(plies, values, strict=False):
        spread[ply] = value
    return tuple(spread)
