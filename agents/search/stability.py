"""Discs that nobody can flip any more: they bound the final score."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from reversi_env.geometry import Bitboard, stride_of
from reversi_env.jit import kernel
from reversi_env.rules import Rules
from reversi_env.vectors import (
    _any_lane,
    _operation,
    _Rays,
    _splat,
    count,
    is_same,
    no_square,
    overlap,
    union,
    without,
)


def _columns(stride: int, without_column: int) -> int:
    """Returns the bits of a whole grid but one column, as one integer."""
    row = (1 << stride) - 1 - (1 << without_column)
    return sum(row << (stride * index) for index in range(stride))


def _reachable(stride: int, forwards: bool) -> list[int]:
    """Returns for each of the four directions the squares that have one behind them to be reached from."""
    not_first, not_last = _columns(stride, 0), _columns(stride, stride - 1)
    everywhere = (1 << stride * stride) - 1
    return [not_first, everywhere, not_last, not_first] if forwards else [not_last, everywhere, not_first, not_last]


def _edges(stride: int) -> list[int]:
    """Returns for each of the four lines the squares at one of its ends on the grid."""
    everywhere = (1 << stride * stride) - 1
    columns = everywhere & ~(_columns(stride, 0) & _columns(stride, stride - 1))
    row = (1 << stride) - 1
    rows = row | row << (stride * (stride - 1))
    return [columns, rows, columns | rows, columns | rows]


def _emit_secured(builder: Any, empties: Any, support: Any) -> Any:
    """Writes the squares that in each of their four lines have no empty square, or lie beside the edge or `support`."""
    bits = empties.type.width
    stride = stride_of(bits // 64)
    held = []
    for forwards in (True, False):
        rays = _Rays(builder, support, forwards)
        reached = _splat(builder, empties)
        open_squares = ir.Constant(rays.vector, _reachable(stride, forwards))
        steps = 1
        while steps < stride:
            reached = builder.or_(reached, builder.and_(open_squares, rays.shift(reached, steps)))
            open_squares = builder.and_(open_squares, rays.shift(open_squares, steps))
            steps *= 2
        held.append((reached, rays.shift(_splat(builder, support))))
    (forth, ahead), (back, behind) = held
    full = builder.not_(builder.or_(forth, back))
    edges = ir.Constant(full.type, _edges(stride))
    unsecured = builder.not_(builder.or_(builder.or_(full, edges), builder.or_(ahead, behind)))
    return builder.not_(_any_lane(builder, unsecured))


_secured: Callable[[Bitboard, Bitboard], Bitboard] = _operation(_emit_secured, "board")


@kernel
def stable_discs(discs: Bitboard, empties: Bitboard, rules: Rules) -> Bitboard:
    """Returns discs of one side that stay as they are to the end; there may be more.

    A disc is stable if in each of its four lines no square is empty, or it lies at an end of the line or beside a
    stable disc of its own side.
    """
    outside = without(_secured(no_square(empties), no_square(empties)), rules.squares)
    stable = no_square(discs)
    while True:
        more = overlap(discs, _secured(empties, union(stable, outside)))
        if is_same(more, stable):
            return stable
        stable = more


@kernel
def most_score(player: Bitboard, opponent: Bitboard, empties: Bitboard, rules: Rules) -> int:
    """Returns a score that `player` cannot exceed."""
    discs = player if rules.fewest else opponent
    return rules.size * rules.size - 2 * count(stable_discs(discs, empties, rules))
