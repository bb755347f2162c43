"""Compiled code on disk: once per machine, never stale, and compiled again only where something has changed.

numba keeps compiled code on disk, but looks only at the file that holds the outermost function to decide whether that
code is still good. Our kernels call each other across files. So the stamp that numba compares is replaced by a hash of
every source file that the kernel's file imports, and of those that they import, and so on.

numba looks for a folder to write to when a kernel is declared, which for all of ours takes a tenth of a second; here
it is looked for when a kernel is first called.
"""

from __future__ import annotations

import hashlib
import pickle
import re
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import Any, cast

from numba.core import event
from numba.core.caching import FunctionCache, NullCache

from diminuendo import _compile_progress as progress

ROOT = Path(__file__).parent.parent
"""The folder of the package."""

ALSO_IMPORTS = {ROOT / "objectives" / "family.py": ROOT / "objectives" / "__init__.py"}
"""Kernels call a family's functions through objectives/family.py and get those of the table's type: all that are
registered belong to what they build on."""

IMPORT = re.compile(r"^from (diminuendo[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
"""Imports are absolute and stand at the beginning of a line; a test says so. Those inside of functions and below
`if TYPE_CHECKING` bring nothing that compiled code could call."""


def stamp(source: Path) -> tuple[str, str]:
    """What changes when a source file changes, or one that it builds on."""
    digest = hashlib.sha256()
    for file in sorted(closure(source)):
        digest.update(f"{file.name} {_content(file)[0]}\n".encode())
    return ("diminuendo", digest.hexdigest())


def closure(source: Path) -> set[Path]:
    """A source file, and all files of this package that it imports, directly or not."""
    result, to_read = {source}, [source]
    while to_read:
        for file in _content(to_read.pop())[1]:
            if file not in result:
                result.add(file)
                to_read.append(file)
    return result


@cache
def _content(file: Path) -> tuple[str, tuple[Path, ...]]:
    """The hash of a file, and the files of this package that it imports."""
    text = file.read_bytes()
    imported = [_file(module, name) for module, name in imported_names(text.decode())]
    also = [ALSO_IMPORTS[file]] if file in ALSO_IMPORTS else []
    return hashlib.sha256(text).hexdigest(), tuple(path for path in imported + also if path is not None)


def imported_names(text: str) -> list[tuple[str, str]]:
    """Pairs of a module of this package and a name that a source text imports from it."""
    return [
        (result.group(1), name)
        for result in IMPORT.finditer(text)
        for name in re.findall(r"(\w+)(?:\s+as\s+\w+)?\s*(?:,|\)|#|$)", result.group(2))
    ]


def _file(module: str, name: str) -> Path | None:
    """Where an imported name stands: a module of that name, or the module that has it."""
    folder = ROOT.joinpath(*module.split(".")[1:])
    places = (
        folder / f"{name}.py",
        folder / name / "__init__.py",
        folder.with_suffix(".py"),
        folder / "__init__.py",
    )
    return next((place for place in places if place.exists()), None)


class LazyCache(NullCache):
    """One kernel's place on disk, looked for when it is first needed."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @cached_property
    def _place(self) -> Any:
        try:
            place = cast(Any, FunctionCache)(self._function)
        except RuntimeError:  # no folder to write to, as on a read-only file system: compile in every process
            return NullCache()
        file = place._cache_file
        file._source_stamp = stamp(Path(self._function.__code__.co_filename))
        file._load_index = _or_nothing(file._load_index)
        return place

    @property
    def cache_path(self) -> str | None:
        """The folder that holds the compiled code; None where there is no place to write."""
        return cast(str | None, self._place.cache_path)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """What was compiled for these types, or None."""
        return self._place.load_overload(signature, context)

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep what was compiled for these types."""
        self._place.save_overload(signature, compiled)


def _or_nothing(load: Callable[[], dict[Any, Any]]) -> Callable[[], dict[Any, Any]]:
    """What older sources left on disk may name types that are no more; then there is nothing to load."""

    def safely() -> dict[Any, Any]:
        try:
            return load()
        except (AttributeError, ImportError, pickle.UnpicklingError, EOFError):
            return {}

    return safely


class _Listener(event.Listener):
    """Passes on when a kernel of ours is being compiled; numba says nothing where one is found on disk."""

    def on_start(self, message: Any) -> None:
        """A kernel, or a function in it, is not on disk."""
        function = message.data["dispatcher"].py_func
        if function.__module__.startswith("diminuendo."):
            progress.begin(function.__qualname__)

    def on_end(self, message: Any) -> None:
        """It is compiled, or was refused."""
        if message.data["dispatcher"].py_func.__module__.startswith("diminuendo."):
            progress.end()


cast(Any, event.register)("numba:compile", _Listener())
