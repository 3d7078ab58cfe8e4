"""Arrays as deep recursions pass them on: where the elements lie and how many there are, and nothing else.

An array takes seven machine words of every call, and each kernel that holds one adds itself to the count of its
holders and takes itself off again, with a lock that threads wait for: a third of the time of a search. A span takes two
words and is counted nowhere. Kernels read and write its elements and ask for its length as they do with an array, and
nothing else; whoever makes a span keeps the array alive. Indices are not negative.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.core.boxing import unbox_unsupported
from numba.extending import box, intrinsic, lower_builtin, models, register_model, unbox


class SpanType(types.Array):  # type: ignore[misc]  # Numba has no types
    """An array of one dimension without gaps, for the compiler; what is kept of it in memory is less."""

    def __init__(self, dtype: Any) -> None:
        super().__init__(dtype, 1, "C", name=f"Span({dtype})")


@register_model(SpanType)
class _SpanModel(models.StructModel):  # type: ignore[misc]  # Numba has no types
    def __init__(self, manager: Any, span: SpanType) -> None:
        super().__init__(manager, span, [("data", types.CPointer(span.dtype)), ("nitems", types.intp)])


unbox(SpanType)(unbox_unsupported)  # Python has arrays; a kernel makes the spans


@box(SpanType)  # type: ignore[untyped-decorator]  # Numba has no types
def _nothing_for_python(span: SpanType, value: Any, compiler: Any) -> Any:
    """Hands a caller in Python None; Numba would take the span for an array, and crash."""
    return compiler.pyapi.make_none()


def _fields(context: Any, builder: Any, array: Any, value: Any) -> Any:
    return context.make_array(array)(context, builder, value)


@intrinsic  # type: ignore[untyped-decorator]  # Numba has no types
def _span_of(typing_context: Any, array: Any) -> Any:
    if not isinstance(array, types.Array) or array.ndim != 1 or array.layout != "C":
        return None

    def generate(context: Any, builder: Any, typed: Any, arguments: Any) -> Any:
        whole = _fields(context, builder, array, arguments[0])
        span = _fields(context, builder, typed.return_type, None)
        span.data, span.nitems = whole.data, whole.nitems
        return span._getvalue()

    return SpanType(array.dtype)(array), generate


@lower_builtin(len, SpanType)  # type: ignore[untyped-decorator]  # Numba has no types
def _length(context: Any, builder: Any, typed: Any, arguments: Any) -> Any:
    return _fields(context, builder, typed.args[0], arguments[0]).nitems


@lower_builtin(operator.getitem, SpanType, types.Integer)  # type: ignore[untyped-decorator]  # Numba has no types
def _read(context: Any, builder: Any, typed: Any, arguments: Any) -> Any:
    span, index = arguments
    place = builder.gep(_fields(context, builder, typed.args[0], span).data, [index])
    return context.unpack_value(builder, typed.args[0].dtype, place)


@lower_builtin(operator.setitem, SpanType, types.Integer, types.Any)  # type: ignore[untyped-decorator]  # Numba has no types
def _write(context: Any, builder: Any, typed: Any, arguments: Any) -> Any:
    span, index, value = arguments
    dtype = typed.args[0].dtype
    place = builder.gep(_fields(context, builder, typed.args[0], span).data, [index])
    context.pack_value(builder, dtype, context.cast(builder, value, typed.args[2], dtype), place)
    return context.get_dummy_value()


span_of: Callable[[np.ndarray], np.ndarray] = _span_of  # of an array of one dimension, or a span as it is
