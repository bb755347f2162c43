"""How kernels are compiled: ahead of nobody, once per machine, and never stale.

numba keeps compiled code on disk, but looks only at the file that holds the outermost function to
decide whether that code is still good. Our kernels call each other across files, so the stamp that
numba compares is replaced by a fingerprint of every source file of the package.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


@cache
def fingerprint() -> tuple[str, str]:
    """A stamp that changes when any source file of the package changes."""
    digest = hashlib.sha256()
    root = Path(__file__).parent
    for source in sorted(root.rglob("*.py")):
        digest.update(str(source.relative_to(root)).encode())
        digest.update(source.read_bytes())
    return ("diminuendo", digest.hexdigest())


def kernel(function: Function) -> Function:
    """Compile on first call; keep the result on disk until any source of the package changes.

    A kernel works on arrays it is given and allocates nothing. So numba's reference counting is left
    out, which on tables of many arrays would cost twenty times the work itself.
    """
    return _cached(function, _nrt=False)


def allocating_kernel(function: Function) -> Function:
    """A kernel that may make arrays; for code that is not in the inner loop of a replay."""
    return _cached(function)


def inline(function: Function) -> Function:
    """Compile as part of the kernels that call it."""
    return _compiled(function, forceinline=True, _nrt=False)


def _cached(function: Function, **options: Any) -> Function:
    try:
        compiled: Any = _compiled(function, cache=True, **options)
    except RuntimeError:  # no folder to write to, as on a read-only file system: compile in every process
        return _compiled(function, **options)
    file = compiled._cache._cache_file
    file._source_stamp = fingerprint()
    file._load_index = _or_nothing(file._load_index)
    return cast(Function, compiled)


def _or_nothing(load: Callable[[], dict[Any, Any]]) -> Callable[[], dict[Any, Any]]:
    """What older sources left on disk may name types that are no more; then there is nothing to load."""

    def safely() -> dict[Any, Any]:
        try:
            return load()
        except (AttributeError, ImportError, pickle.UnpicklingError, EOFError):
            return {}

    return safely


def _compiled(function: Function, **options: Any) -> Function:
    return cast(Function, numba.njit(nogil=True, error_model="numpy", **options)(function))
