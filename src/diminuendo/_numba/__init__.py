"""How functions become compiled code: `kernel`, `allocating_kernel`, `inline` and `as_kernel`.

Everything that knows numba's insides is in this package: cache.py keeps compiled code on disk. Messages
while it compiles are in _compile_progress.py, which is loaded without numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from diminuendo._numba.cache import LazyCache

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile on first call; keep the result on disk until a source that the function builds on changes.

    A kernel works on arrays it is given and allocates nothing. So numba's reference counting is left
    out, which on tables of many arrays would cost twenty times the work itself.
    """
    return _kept_on_disk(function, _nrt=False)


def allocating_kernel(function: Function) -> Function:
    """A kernel that may make arrays; for code that is not in the inner loop of a replay."""
    return _kept_on_disk(function)


def inline(function: Function) -> Function:
    """Compile as part of the kernels that call it."""
    return _compiled(function, forceinline=True, _nrt=False)


def as_kernel(function: Function) -> Function:
    """A kernel that does what this `inline` function does, so that Python can call it too."""
    return cast(Function, kernel(cast(Any, function).py_func))


def _compiled(function: Function, **options: Any) -> Function:
    return cast(Function, numba.njit(nogil=True, error_model="numpy", **options)(function))


def _kept_on_disk(function: Function, **options: Any) -> Function:
    compiled: Any = _compiled(function, **options)
    compiled._cache = LazyCache(function)
    return cast(Function, compiled)
