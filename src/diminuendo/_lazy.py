"""Names that are loaded when they are first used, so that a package opens at once (PEP 562).

    __getattr__, __dir__ = lazily(__name__, {"streams": "Users msweb"}, packages="streams")

Type checkers and documentation read the same names below `if TYPE_CHECKING`; a test compares the two.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(
    package: str, homes: Mapping[str, str], packages: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose names live in modules within it, and of the packages in it."""
    home = {name: f"{package}.{module}" for module, names in homes.items() for name in names.split()}
    inside = packages.split()

    def load(name: str) -> Any:
        if name in inside:
            return import_module(f"{package}.{name}")
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        result = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, result)  # so that it is looked for only once
        return result

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home, *inside})

    return load, listed
