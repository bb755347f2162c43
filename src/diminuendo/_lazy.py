"""Names that are loaded when they are first used, so that a package opens at once (PEP 562).

    __getattr__, __dir__ = lazily(__name__, {"diminuendo.streams": ("People", "msweb")}, packages=("streams",))

Type checkers and documentation read the same names below `if TYPE_CHECKING`; a test compares the two.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any


def lazily(
    package: str, homes: Mapping[str, Collection[str]], packages: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose names live in other modules, and of the packages in it."""
    home = {name: module for module, names in homes.items() for name in names}

    def load(name: str) -> Any:
        if name in packages:
            return import_module(f"{package}.{name}")
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, found)  # so that it is looked for only once
        return found

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home, *packages})

    return load, listed
