"""The command line: thin commands over the library."""

from __future__ import annotations

import sys
import warnings
from typing import Any, cast

from rich.markup import escape

from diminuendo.cli.app import app
from diminuendo.cli.screen import errors
from diminuendo.errors import DiminuendoError

_noted: set[str] = set()


def _note(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
    """A warning as a sentence, once, without file and line."""
    if str(message) not in _noted:
        _noted.add(str(message))
        errors.print(f"Note: {message}", highlight=False, markup=False, soft_wrap=True)


def main() -> None:
    """Run a command; errors raised on purpose are shown as one sentence, not as a traceback."""
    warnings.showwarning = cast(Any, _note)
    try:
        app()
    except DiminuendoError as error:
        errors.print(f"[bold red]error[/] {escape(str(error))}", highlight=False)
        sys.exit(2)
    except OSError as error:  # a folder that is a file, a full disk, a missing permission
        errors.print(f"[bold red]error[/] {escape(str(error))}", highlight=False)
        sys.exit(2)
