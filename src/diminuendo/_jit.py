"""How kernels are compiled: ahead of nobody, once per machine, and never stale.

numba keeps compiled code on disk, but looks only at the file that holds the outermost function to
decide whether that code is still good. Our kernels call each other across files, so the stamp that
numba compares is replaced by a fingerprint of every source file of the package. And numba looks for a
folder to write to when a kernel is declared, which for all of ours takes a tenth of a second; here it is
looked for when a kernel is first called. And numba loads all that it can compile before it reads what is
compiled, scipy's linear algebra among it, which takes half a second; compiled code needs none of it.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import event
from numba.core.caching import FunctionCache, NullCache
from numba.core.runtime.nrt import rtsys

from diminuendo import _compiling

Function = TypeVar("Function", bound=Callable[..., Any])

ALLOCATES = b"NRT_"
"""How the functions begin with which compiled code makes and counts arrays. Code that calls one names it."""


@cache
def fingerprint() -> tuple[str, str]:
    """A stamp that changes when any source file of the package changes."""
    digest = hashlib.sha256()
    root = Path(__file__).parent
    for folder, _, names in sorted(os.walk(root)):  # three times faster than with paths
        for source in sorted(name for name in names if name.endswith(".py")):
            digest.update(f"{folder}/{source}".removeprefix(str(root)).encode())
            with open(f"{folder}/{source}", "rb") as file:
                digest.update(file.read())
    return ("diminuendo", digest.hexdigest())


def kernel(function: Function) -> Function:
    """Compile on first call; keep the result on disk until any source of the package changes.

    A kernel works on arrays it is given and allocates nothing. So numba's reference counting is left
    out, which on tables of many arrays would cost twenty times the work itself.
    """
    return _kept(function, _nrt=False)


def allocating_kernel(function: Function) -> Function:
    """A kernel that may make arrays; for code that is not in the inner loop of a replay."""
    return _kept(function)


def inline(function: Function) -> Function:
    """Compile as part of the kernels that call it."""
    return _compiled(function, forceinline=True, _nrt=False)


def _compiled(function: Function, **options: Any) -> Function:
    return cast(Function, numba.njit(nogil=True, error_model="numpy", **options)(function))


def _kept(function: Function, **options: Any) -> Function:
    compiled: Any = _compiled(function, **options)
    compiled._cache = _Shelf(function)
    return cast(Function, compiled)


class _Shelf(NullCache):
    """One kernel's place on disk, looked for when it is first needed."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @cached_property
    def _place(self) -> Any:
        try:
            place: Any = cast(Any, _Disk)(self._function)
        except RuntimeError:  # no folder to write to, as on a read-only file system: compile in every process
            return NullCache()
        file = place._cache_file
        file._source_stamp = fingerprint()
        file._load_index = _or_nothing(file._load_index)
        return place

    @property
    def cache_path(self) -> str | None:
        """The folder."""
        return cast(str | None, self._place.cache_path)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """What was compiled for these types, or None."""
        return self._place.load_overload(signature, context)

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep what was compiled for these types."""
        self._place.save_overload(signature, compiled)


class _Disk(FunctionCache):
    """What numba keeps on disk, read without numba getting ready to compile."""

    def load_overload(self, signature: Any, context: Any) -> Any:
        """What was compiled for these types, or None; then numba compiles, and gets ready there."""
        place = cast(Any, self)
        try:
            with place._guard_against_spurious_io_errors():
                found = place._cache_file.load(place._index_key(signature, context.codegen()))
                if found is None:
                    return None
                if ALLOCATES in pickle.dumps(found[0]):  # the code itself
                    cast(Any, rtsys).initialize(context)  # else it would jump to nowhere
                return place._impl.rebuild(context, found)
        except AttributeError:  # another numba, with other names inside: then as numba does it
            return cast(Any, super()).load_overload(signature, context)


def _or_nothing(load: Callable[[], dict[Any, Any]]) -> Callable[[], dict[Any, Any]]:
    """What older sources left on disk may name types that are no more; then there is nothing to load."""

    def safely() -> dict[Any, Any]:
        try:
            return load()
        except (AttributeError, ImportError, pickle.UnpicklingError, EOFError):
            return {}

    return safely


class _Heard(event.Listener):
    """Passes on when a kernel of ours is being compiled; numba says nothing where one is found on disk."""

    def on_start(self, told: Any) -> None:
        """A kernel, or a function in it, is not on disk."""
        function = told.data["dispatcher"].py_func
        if function.__module__.startswith("diminuendo."):
            _compiling.begin(function.__qualname__)

    def on_end(self, told: Any) -> None:
        """It is compiled, or was refused."""
        if told.data["dispatcher"].py_func.__module__.startswith("diminuendo."):
            _compiling.end()


cast(Any, event.register)("numba:compile", _Heard())
