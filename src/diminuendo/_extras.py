"""Packages that only some parts need: where one is missing, the error says which extra brings it.

Choosing and learning need numpy, scipy and numba alone. Whatever needs more imports it below `extra`:

    with extra("simulate"):
        import duckdb
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from diminuendo.errors import MissingExtra

EXTRAS = {
    "cli": ("typer", "rich"),
    "serve": ("starlette", "msgspec", "uvicorn", "uvloop", "httptools", "prometheus_client", "nacl"),
    "postgres": ("asyncpg",),
    "dp-accounting": ("dp_accounting",),
    "simulate": ("matplotlib", "joblib", "cloudpickle", "duckdb"),
}
"""The packages that each extra brings, as in pyproject.toml."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Import in here what the extra of that name brings."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS[name]:
            raise
        raise MissingExtra(f"{package} is not installed; try `pip install 'diminuendo[{name}]'`.") from error
