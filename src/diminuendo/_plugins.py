"""Plugins: what comes from outside the package is known by its name, as if it were ours.

A plugin is a module that calls `diminuendo.register` when it is imported. It is imported by its users; or by
name or file, as `--plugin mylearner.py` does; or it is in a package that is installed and says so:

    [project.entry-points."diminuendo.plugins"]
    mylearner = "mypackage.mylearner"

Those that are installed are looked for when a name is not ours, or when all names are listed; never on import. Tasks
that go to other processes carry which plugins there are (`Carried`), and the worker imports them before it begins.
"""

from __future__ import annotations

import hashlib
import re
import sys
import threading
import uuid
import warnings
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

from diminuendo.errors import InvalidInput

GROUP = "diminuendo.plugins"
"""Entry points of installed packages whose modules are plugins."""
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
MAIN = "__main__"

Thing = TypeVar("Thing")


class PluginNotLoaded(UserWarning):
    """A plugin that is installed cannot be imported; everything else goes on without it."""


@dataclass(frozen=True)
class Origin:
    """The module that registered something: its name, the folder from which it is imported, and its file."""

    module: str
    folder: str = ""
    file: str = ""
    incarnation: str = field(default_factory=lambda: uuid.uuid4().hex, compare=False)

    def __str__(self) -> str:
        return f"{self.module} ({self.file})" if self.file else self.module

    def fingerprint(self) -> str:
        """A hash of its source, all files of its package included; without a file, another one in every process."""
        if not self.file:
            return self.incarnation
        packaged = "." in self.module or self.file.endswith("__init__.py")
        top = Path(self.folder, self.module.partition(".")[0])
        files = sorted(top.rglob("*.py")) if packaged else [Path(self.file)]
        return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:24]


def caller(depth: int) -> Origin:
    """The module whose code called, that many calls up from who asks."""
    known = sys._getframe(depth + 1).f_globals
    name, file = str(known.get("__name__", MAIN)), known.get("__file__")
    if name == MAIN or not file:
        return Origin(name, file=str(file or ""))
    path = Path(file).resolve()
    above = len(name.split(".")) - (path.name != "__init__.py")
    return Origin(name, str(path.parents[above]), str(path))


class Table(MutableMapping[str, Thing], Generic[Thing]):
    """Things of one kind by the names that users type: ours, and those that plugins register."""

    tables: dict[str, Table[Any]] = {}  # noqa: RUF012  all there are, by what they hold

    def __init__(self, kind: str, ours: Mapping[str, Thing]) -> None:
        self.kind, self._things, self.origins = kind, dict(ours), dict[str, Origin]()
        Table.tables[kind] = self

    def __repr__(self) -> str:
        return f"<Table of {self.kind}s: {', '.join(self)}>"

    def __getitem__(self, name: str) -> Thing:
        if name not in self._things:
            load_installed()
        return self._things[name]

    def __iter__(self) -> Iterator[str]:
        load_installed()
        return iter(list(self._things))

    def __len__(self) -> int:
        load_installed()
        return len(self._things)

    def __setitem__(self, name: str, thing: Thing) -> None:
        self._things[name] = thing

    def __delitem__(self, name: str) -> None:
        del self._things[name]
        self.origins.pop(name, None)

    def refuse(self, name: object, origin: Origin) -> None:
        """Refuse a name that is none, or that another module has; a module may register again what it registered."""
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise InvalidInput(
                f"A {self.kind} is named by small letters and digits, with hyphens between; got {name!r}."
            )
        if name in self._things and self.origins.get(name) != origin:
            who = self.origins.get(name, "diminuendo itself")
            raise InvalidInput(
                f"{origin} wants to register a {self.kind} called {name!r}, which {who} has already. Take another name."
            )

    def register(self, name: str, thing: Thing, origin: Origin) -> None:
        """From now on `thing` has that name."""
        self.refuse(name, origin)
        self._things[name], self.origins[name] = thing, origin

    def fingerprint(self, name: str) -> str:
        """A hash of the source of what has that name; "" where it is ours."""
        origin = self.origins.get(name)
        return "" if origin is None else origin.fingerprint()


_lock = threading.RLock()
_looked = False


def load_installed() -> None:
    """Import the plugins of installed packages, once; one that cannot be imported is a warning that names it."""
    global _looked
    with _lock:
        if _looked:
            return
        from importlib import metadata  # here: few ask, and it takes its time to load

        _looked = True  # before: a plugin may ask for names while it is imported
        for entry in metadata.entry_points(group=GROUP):
            try:
                entry.load()
            except Exception as error:
                of = "" if entry.dist is None else f" of the installed package {entry.dist.name}"
                warnings.warn(
                    f"The plugin {entry.name!r} ({entry.value}){of} cannot be loaded, and is left out: "
                    f"{type(error).__name__}: {error}",
                    PluginNotLoaded,
                    stacklevel=2,
                )


def load(said: str) -> list[str]:
    """Import a plugin by its file, its folder or the name of its module; says under which names it registered what.

    A module is looked for where Python looks, and then in the present folder.
    """
    path = _path_of(said)
    if path is None:
        module = _imported(said, said)
    else:
        parts, folder = [path.stem], path.parent
        while (folder / "__init__.py").exists():
            parts, folder = [folder.name, *parts], folder.parent
        name = ".".join(parts)
        _reach(str(folder))
        module = _imported(name, said)
        result = Path(str(module.__file__)).resolve()
        if path not in (result, result.parent):
            raise InvalidInput(
                f"The plugin {said} would be the module {name!r}, and there is another one of that name: {result}. "
                "Rename the file."
            )
    top = module.__name__.partition(".")[0]
    mine = [name for (_, name), origin in _names().items() if origin.module.partition(".")[0] == top]
    if not mine:
        raise InvalidInput(f"The plugin {said} registers nothing: it is to call diminuendo.register(...).")
    return mine


def _path_of(said: str) -> Path | None:
    """The file or folder of a plugin; None for the name of a module, also of one in the present folder."""
    path = Path(said).resolve()
    if said.endswith(".py") or "/" in said or "\\" in said:
        path = path.parent if path.name == "__init__.py" else path
        if not (path.is_file() or (path / "__init__.py").is_file()):
            raise InvalidInput(
                f"There is no plugin at {said}. Give a file, a folder with __init__.py, or a module."
            )
        return path
    _reach(str(Path().resolve()))
    return None


def _imported(name: str, said: str) -> Any:
    try:
        return import_module(name)
    except Exception as error:
        raise InvalidInput(f"The plugin {said} cannot be loaded: {type(error).__name__}: {error}") from error


def _reach(folder: str) -> None:
    if folder not in sys.path:
        sys.path.append(folder)  # behind all others: it hides nothing


def _names() -> dict[tuple[str, str], Origin]:
    return {
        (kind, name): origin for kind, table in Table.tables.items() for name, origin in table.origins.items()
    }


@dataclass(frozen=True)
class Carried:
    """Which plugins there are in this process, for another one that is to do the same."""

    modules: tuple[tuple[str, str], ...]
    """Names, and the folders from which they are imported."""
    of_main: tuple[tuple[str, str, Any, Origin], ...]
    """What a script or a notebook registered by itself: kind, name, and the thing, which travels as it is."""

    @classmethod
    def packed(cls) -> Carried:
        """All that was registered here."""
        result = _names()
        modules = dict.fromkeys((each.module, each.folder) for each in result.values() if each.module != MAIN)
        of_main = tuple(
            (kind, name, Table.tables[kind]._things[name], origin)
            for (kind, name), origin in result.items()
            if origin.module == MAIN
        )
        return cls(tuple(modules), of_main)

    def unpack(self) -> None:
        """Import them here, and register the rest."""
        for module, folder in self.modules:
            if folder:
                _reach(folder)
            _imported(module, module)
        for kind, name, thing, origin in self.of_main:
            Table.tables[kind].register(name, thing, origin)
