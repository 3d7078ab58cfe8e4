"""The indices of all features of a position at once, in LLVM vectors, and the sum of their weights.

Each four bits of a board choose a row of `parts` (see `layout`): 16 indices' share in one vector of 16-bit lanes. So
the indices of 46 features are 96 additions of vectors, half of them for discs that count twice, and nothing has to be
kept up to date from move to move. Nothing here can be called from Python.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from agents.ntuple.layout import GROUP_BITS, NUM_GROUPS, NUM_VECTORS, VECTOR_LANES, cells_at, offsets_at, starts_at
from reversi_env.geometry import WORD_BITS, Bitboard

_I16, _I32, _I64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)
_INDICES = ir.VectorType(_I16, VECTOR_LANES)
_CELLS = ir.VectorType(_I32, VECTOR_LANES)
_ROW_SHIFT = 5  # a row of `parts` is 32 bytes
_NUM_SUMS = 4  # additions that need not wait for each other


def _data(context: Any, builder: Any, array_type: Any, array: Any) -> Any:
    """Returns the pointer to the elements of an array of 16-bit integers."""
    return builder.bitcast(context.make_array(array_type)(context, builder, array).data, _I16.as_pointer())


def _load(builder: Any, data: Any, place: Any, kind: Any) -> Any:
    """Returns what lies at an element of `data`, as another type."""
    if isinstance(place, int):
        place = ir.Constant(_I64, place)
    return builder.load(builder.bitcast(builder.gep(data, [place]), kind.as_pointer()), align=2)


def _summed_parts(builder: Any, board: Any, data: Any) -> list[Any]:
    """Returns the indices as if the board's discs counted once, in vectors."""
    words = cgutils.unpack_tuple(builder, board)
    row_mask = ir.Constant(_I64, ((1 << GROUP_BITS) - 1) << _ROW_SHIFT)
    bytes_ = builder.bitcast(data, ir.IntType(8).as_pointer())
    groups, vectors = NUM_GROUPS[len(words)], NUM_VECTORS[len(words)]
    sums: list[Any] = [None] * vectors
    for group in range(groups):
        word, bit = divmod(GROUP_BITS * group, WORD_BITS)
        shift = bit - _ROW_SHIFT
        move = builder.lshr if shift >= 0 else builder.shl
        row = builder.and_(move(words[word], ir.Constant(_I64, abs(shift))), row_mask)
        for vector in range(vectors):
            table = (vector * groups + group) << (GROUP_BITS + _ROW_SHIFT)
            place = builder.gep(bytes_, [builder.add(row, ir.Constant(_I64, table))])
            part = builder.load(builder.bitcast(place, _INDICES.as_pointer()), align=2)
            sums[vector] = part if group == 0 else builder.add(sums[vector], part)
    return sums


def _cells(builder: Any, player: Any, opponent: Any, words: int, data: Any) -> list[Any]:
    """Returns the cell of each feature within a block, in vectors of 32-bit lanes."""
    once, twice = _summed_parts(builder, player, data), _summed_parts(builder, opponent, data)
    cells = []
    for vector in range(NUM_VECTORS[words]):
        index = builder.add(once[vector], builder.add(twice[vector], twice[vector]))
        offset = _load(builder, data, offsets_at(words) + 2 * VECTOR_LANES * vector, _CELLS)
        cells.append(builder.add(builder.zext(index, _CELLS), offset))
    return cells


def _load_weights(builder: Any, block: Any, cell: Any, wide: Any) -> Any:
    return builder.sext(builder.load(builder.gep(block, [cell]), align=2), wide)


def _is_typed(player: Any, opponent: Any, packed: Any) -> bool:
    boards = all(isinstance(board, types.UniTuple) and board.dtype == types.uint64 for board in (player, opponent))
    return boards and isinstance(packed, types.Array) and packed.dtype == types.int16 and packed.layout == "C"


def _emit_sums(
    builder: Any, player: Any, opponent: Any, num_empties: Any, more_cells: list[Any], data: Any, weights: int
) -> list[Any]:
    """Returns the sums of a position's weights, i64, where each cell has one or two of them, side by side."""
    words = len(cgutils.unpack_tuple(builder, player))
    element, wide = (_I16, _I32) if weights == 1 else (ir.VectorType(_I16, weights), ir.VectorType(_I32, weights))

    start_place = builder.add(builder.shl(num_empties, ir.Constant(_I64, 2)), ir.Constant(_I64, starts_at(words)))
    start = builder.sext(_load(builder, data, start_place, _I32), _I64)
    turn_cell = builder.sext(_load(builder, data, builder.add(start_place, ir.Constant(_I64, 2)), _I32), _I64)
    table = builder.bitcast(builder.gep(data, [ir.Constant(_I64, cells_at(words))]), element.as_pointer())
    block = builder.gep(table, [start])

    # Taking lanes one by one ran as fast as gathers of AVX2, and within 5 % of going through memory.
    sums = [ir.Constant(wide, None)] * _NUM_SUMS
    for number, cell in enumerate([turn_cell, *more_cells]):
        sums[number % _NUM_SUMS] = builder.add(sums[number % _NUM_SUMS], _load_weights(builder, block, cell, wide))
    for cells in _cells(builder, player, opponent, words, data):
        for lane in range(VECTOR_LANES):
            cell = builder.zext(builder.extract_element(cells, ir.Constant(_I32, lane)), _I64)
            sums[lane % _NUM_SUMS] = builder.add(sums[lane % _NUM_SUMS], _load_weights(builder, block, cell, wide))
    total = reduce(builder.add, sums)
    totals = [total] if weights == 1 else [builder.extract_element(total, _I32(place)) for place in range(weights)]
    return [builder.sext(total, _I64) for total in totals]


@intrinsic  # type: ignore[untyped-decorator]  # Numba has no types
def _sum_weights(typing_context: Any, player: Any, opponent: Any, num_empties: Any, packed: Any) -> Any:
    if not _is_typed(player, opponent, packed):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        player, opponent, num_empties, packed = arguments
        data = _data(context, builder, signature.args[3], packed)
        return _emit_sums(builder, player, opponent, num_empties, [], data, 1)[0]

    return types.int64(player, opponent, types.int64, packed), generate


@intrinsic  # type: ignore[untyped-decorator]  # Numba has no types
def _sum_pairs(typing_context: Any, player: Any, opponent: Any, num_empties: Any, more_cells: Any, packed: Any) -> Any:
    if not _is_typed(player, opponent, packed) or more_cells.dtype != types.int64:
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        player, opponent, num_empties, more_cells, packed = arguments
        more = cgutils.unpack_tuple(builder, more_cells)
        data = _data(context, builder, signature.args[4], packed)
        sums = _emit_sums(builder, player, opponent, num_empties, more, data, 2)
        return context.make_tuple(builder, signature.return_type, sums)

    return types.UniTuple(types.int64, 2)(player, opponent, types.int64, more_cells, packed), generate


@intrinsic  # type: ignore[untyped-decorator]  # Numba has no types
def _write_cells(typing_context: Any, player: Any, opponent: Any, packed: Any, cells: Any) -> Any:
    if not _is_typed(player, opponent, packed) or cells.dtype != types.int32 or cells.layout != "C":
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        player, opponent, packed, array = arguments
        data = _data(context, builder, signature.args[2], packed)
        out = context.make_array(signature.args[3])(context, builder, array).data
        for vector, cells in enumerate(_cells(builder, player, opponent, signature.args[0].count, data)):
            place = builder.gep(out, [ir.Constant(_I64, VECTOR_LANES * vector)])
            builder.store(cells, builder.bitcast(place, _CELLS.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(player, opponent, packed, cells), generate


# The sum of a position's weights, in units of 1/UNIT disc, given the number of its empty squares and the array of
# `Layout.packed`.
sum_weights: Callable[[Bitboard, Bitboard, int, np.ndarray], int] = _sum_weights

# The same where each cell has two weights, side by side: the sum of the first ones, and that of the second ones. Some
# more cells of the stage's block are told, and summed too.
sum_pairs: Callable[[Bitboard, Bitboard, int, tuple[int, int], np.ndarray], tuple[int, int]] = _sum_pairs

# Writes the cells of a position's features within a block; the array, int32, has a place for each lane, V·16.
write_cells: Callable[[Bitboard, Bitboard, np.ndarray, np.ndarray], None] = _write_cells
