"""Plugins in tests: what they register is forgotten afterwards."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from diminuendo import _plugins
from diminuendo._plugins import Table


@contextmanager
def plugins_forgotten() -> Iterator[None]:
    """Tables, modules and where Python looks for them are afterwards as they were before."""
    before = {kind: (dict(table._things), dict(table.origins)) for kind, table in Table.tables.items()}
    modules, path, looked = set(sys.modules), list(sys.path), _plugins._looked
    try:
        yield
    finally:
        for kind, (things, origins) in before.items():
            Table.tables[kind]._things, Table.tables[kind].origins = things, origins
        for name in set(sys.modules) - modules:
            if "pytest-" in str(
                getattr(sys.modules[name], "__file__", "")
            ):  # in a folder that a test was given
                del sys.modules[name]
        sys.path[:], _plugins._looked = path, looked
