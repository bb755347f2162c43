"""Ask for memory before it is needed, so that several waits for it pass at the same time.

A processor that needs a number from far memory waits as long as a hundred additions take. Where compiled code knows
early which numbers it will need, it says so with `fetch`, does something else, and finds them near. That is a hint:
nothing is read, nothing changes, and a place that does not exist does no harm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

READ, KEEP, DATA = 0, 3, 1
"""What the hint says: it will be read, again and again, and is no code."""


def _fetch(typing: Any, array: Any, place: Any) -> tuple[Any, Callable[..., Any]]:
    """Array[place], of one dimension without gaps, will be needed soon."""

    def generated(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = context.make_array(signature.args[0])(context, builder, given[0]).data
        where = builder.bitcast(builder.gep(data, [given[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        hint = cast(Any, cgutils.get_or_insert_function)(builder.module, kind, "llvm.prefetch.p0")
        builder.call(hint, [where, number(READ), number(KEEP), number(DATA)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generated


fetch: Callable[..., None] = cast(Any, intrinsic)(_fetch)
