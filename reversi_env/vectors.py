"""What the hardware does in one go: operations on bitboards, written as LLVM code for kernels to call.

A bitboard is a tuple of 64-bit words; inside these operations it is one integer, i64 or i128. Legal moves and flips
look along four directions at once (a row, a column, two diagonals), forwards and backwards, in vectors of four
integers; LLVM makes AVX2, SSE or NEON of them. The fill is the parallel prefix of
https://www.chessprogramming.org/Kogge-Stone_Algorithm, with the runs of one and two discs shared between steps.

Nothing here can be called from Python.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from reversi_env.geometry import Bitboard, inner_mask, stride_of

LANES = 4


def _operation(emit: Callable[..., Any], returns: str) -> Any:
    """Returns an intrinsic whose arguments and result are boards, or the scalar type that `returns` names.

    `emit(builder, *integers)` writes the code; `integers` are i64 or i128 by the number of words.
    """
    num_boards = len(inspect.signature(emit).parameters) - 1

    def typed(*boards: Any) -> Any:
        if not all(isinstance(board, types.UniTuple) and board.dtype == types.uint64 for board in boards):
            return None
        result = boards[0] if returns == "board" else getattr(types, returns)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            packed = [_pack(builder, argument) for argument in arguments]
            value = emit(builder, *packed)
            if returns == "board":
                return _unpack(context, builder, signature.return_type, value)
            if returns == "int64":
                value = _resize(builder, value, 64)
            return value

        return result(*boards), generate

    # Numba reads the number of arguments off the signature, so each arity is written out.
    if num_boards == 1:
        return intrinsic(lambda typing_context, a: typed(a))
    if num_boards == 2:
        return intrinsic(lambda typing_context, a, b: typed(a, b))
    return intrinsic(lambda typing_context, a, b, c: typed(a, b, c))


def _pack(builder: Any, board: Any) -> Any:
    words = cgutils.unpack_tuple(builder, board)
    wide = ir.IntType(64 * len(words))
    value = builder.zext(words[0], wide)
    for index, word in enumerate(words[1:], start=1):
        value = builder.or_(value, builder.shl(builder.zext(word, wide), ir.Constant(wide, 64 * index)))
    return value


def _unpack(context: Any, builder: Any, board_type: Any, value: Any) -> Any:
    word = ir.IntType(64)
    words = [
        builder.trunc(builder.lshr(value, ir.Constant(value.type, 64 * index)), word)
        for index in range(board_type.count)
    ]
    return context.make_tuple(builder, board_type, words)


def _resize(builder: Any, value: Any, bits: int) -> Any:
    if value.type.width > bits:
        return builder.trunc(value, ir.IntType(bits))
    return builder.zext(value, ir.IntType(bits)) if value.type.width < bits else value


def _splat(builder: Any, value: Any) -> Any:
    vector = ir.Constant(ir.VectorType(value.type, LANES), ir.Undefined)
    for lane in range(LANES):
        vector = builder.insert_element(vector, value, ir.Constant(ir.IntType(32), lane))
    return vector


def _any_lane(builder: Any, vector: Any) -> Any:
    lanes = [builder.extract_element(vector, ir.Constant(ir.IntType(32), lane)) for lane in range(LANES)]
    return builder.or_(builder.or_(lanes[0], lanes[1]), builder.or_(lanes[2], lanes[3]))


class _Rays:
    """Four directions of one sense: how discs shift along them, and which runs of the opponent's discs they cross."""

    def __init__(self, builder: Any, opponent: Any, forwards: bool) -> None:
        bits = opponent.type.width
        self.builder = builder
        self.move = builder.shl if forwards else builder.lshr
        self.vector = ir.VectorType(opponent.type, LANES)
        stride = stride_of(bits // 64)
        self.shifts = [1, stride, stride - 1, stride + 1]
        # A run goes neither through the left edge nor the right one, except up and down.
        inner = inner_mask(bits // 64)
        everywhere = (1 << bits) - 1
        masks = [inner, everywhere, inner, inner]
        self.crossed = builder.and_(_splat(builder, opponent), ir.Constant(self.vector, masks))

    def shift(self, discs: Any, steps: int = 1) -> Any:
        return self.move(discs, ir.Constant(self.vector, [steps * shift for shift in self.shifts]))

    def runs_from(self, discs: Any) -> Any:
        """Returns the opponent's discs in unbroken runs that begin beside `discs`: up to 6, or 8 on ten columns."""
        build = self.builder
        one = build.and_(self.crossed, self.shift(discs))
        two = build.or_(one, build.and_(self.crossed, self.shift(one)))
        pairs = build.and_(self.crossed, self.shift(self.crossed))
        four = build.or_(two, build.and_(pairs, self.shift(two, 2)))
        run = build.or_(four, build.and_(pairs, self.shift(four, 2)))
        if self.vector.element.width > 64:
            run = build.or_(run, build.and_(pairs, self.shift(run, 2)))
        return run


def _emit_line_moves(builder: Any, player: Any, opponent: Any, empties: Any) -> Any:
    ends = []
    for forwards in (True, False):
        rays = _Rays(builder, opponent, forwards)
        ends.append(rays.shift(rays.runs_from(_splat(builder, player))))
    return builder.and_(_any_lane(builder, builder.or_(*ends)), empties)


def _emit_line_flips(builder: Any, player: Any, opponent: Any, move: Any) -> Any:
    flipped = []
    for forwards in (True, False):
        rays = _Rays(builder, opponent, forwards)
        run = rays.runs_from(_splat(builder, move))
        beyond = builder.and_(rays.shift(run), _splat(builder, player))
        zero = ir.Constant(rays.vector, None)
        flipped.append(builder.select(builder.icmp_unsigned("!=", beyond, zero), run, zero))
    return _any_lane(builder, builder.or_(*flipped))


def _emit_without(builder: Any, a: Any, b: Any) -> Any:
    return builder.and_(a, builder.not_(b))


def _emit_without_lowest(builder: Any, a: Any) -> Any:
    return builder.and_(a, builder.sub(a, ir.Constant(a.type, 1)))


def _emit_is_empty(builder: Any, a: Any) -> Any:
    return builder.icmp_unsigned("==", a, ir.Constant(a.type, 0))


def _emit_is_same(builder: Any, a: Any, b: Any) -> Any:
    return builder.icmp_unsigned("==", a, b)


def _emit_lowest(builder: Any, a: Any) -> Any:
    return builder.cttz(a, ir.Constant(ir.IntType(1), 0))


def _emit_no_square(builder: Any, a: Any) -> Any:
    return ir.Constant(a.type, 0)


line_moves: Callable[[Bitboard, Bitboard, Bitboard], Bitboard] = _operation(_emit_line_moves, "board")
line_flips: Callable[[Bitboard, Bitboard, Bitboard], Bitboard] = _operation(_emit_line_flips, "board")
union: Callable[[Bitboard, Bitboard], Bitboard] = _operation(lambda builder, a, b: builder.or_(a, b), "board")
overlap: Callable[[Bitboard, Bitboard], Bitboard] = _operation(lambda builder, a, b: builder.and_(a, b), "board")
without: Callable[[Bitboard, Bitboard], Bitboard] = _operation(_emit_without, "board")
without_lowest: Callable[[Bitboard], Bitboard] = _operation(_emit_without_lowest, "board")
no_square: Callable[[Bitboard], Bitboard] = _operation(_emit_no_square, "board")
is_empty: Callable[[Bitboard], bool] = _operation(_emit_is_empty, "boolean")
is_same: Callable[[Bitboard, Bitboard], bool] = _operation(_emit_is_same, "boolean")
count: Callable[[Bitboard], int] = _operation(lambda builder, a: builder.ctpop(a), "int64")
lowest: Callable[[Bitboard], int] = _operation(_emit_lowest, "int64")


@intrinsic  # type: ignore[untyped-decorator]  # Numba has no types
def _bit(typing_context: Any, index: Any, like: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(64 * like.count)
        shift = _resize(builder, context.cast(builder, arguments[0], index, types.uint64), wide.width)
        return _unpack(context, builder, like, builder.shl(ir.Constant(wide, 1), shift))

    return like(index, like), generate


bit: Callable[[int, Bitboard], Bitboard] = _bit


def _spread(lanes: int) -> Any:
    """Returns an intrinsic that writes the lowest `lanes` bits of a word as zeros and ones, one an element."""

    def write(typing_context: Any, bits: Any, array: Any, first: Any) -> Any:
        if array.layout != "C":
            return None

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            bits, array, first = arguments
            data = context.make_array(signature.args[1])(context, builder, array).data
            lanes_of = ir.VectorType(ir.IntType(1), lanes)
            flags = builder.bitcast(builder.trunc(bits, ir.IntType(lanes)) if lanes < 64 else bits, lanes_of)
            element = data.type.pointee
            convert = builder.zext if isinstance(element, ir.IntType) else builder.uitofp
            numbers = convert(flags, ir.VectorType(element, lanes))
            place = builder.bitcast(builder.gep(data, [first]), numbers.type.as_pointer())
            builder.store(numbers, place, align=1)
            return context.get_dummy_value()

        return types.void(types.uint64, array, types.intp), generate

    return intrinsic(write)


# Of an array of any shape in C order, the elements from `first` on; sums of these make 16, 36, 64 and 100 squares.
spread_64: Callable[[np.uint64, np.ndarray, int], None] = _spread(64)
spread_32: Callable[[np.uint64, np.ndarray, int], None] = _spread(32)
spread_4: Callable[[np.uint64, np.ndarray, int], None] = _spread(4)
spread_1: Callable[[np.uint64, np.ndarray, int], None] = _spread(1)
