"""The command line: thin commands over the library.

Nothing heavy is loaded before a command needs it: help, the version and most refusals come at once.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any, cast

from diminuendo.cli.screen import loading

_noted: set[str] = set()


def _note(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
    """A warning as a sentence, once, without file and line."""
    from diminuendo.cli.screen import errors

    if str(message) not in _noted:
        _noted.add(str(message))
        errors.print(f"Note: {message}", highlight=False, markup=False, soft_wrap=True)


def main() -> None:
    """Run a command; errors raised on purpose are shown as one sentence, not as a traceback."""
    with loading():
        from rich.markup import escape

        from diminuendo._numba.progress import Once, reported_by
        from diminuendo.cli.app import app
        from diminuendo.cli.screen import errors, say_plainly, sentence
        from diminuendo.errors import DiminuendoError

    warnings.showwarning = cast(Any, _note)
    try:
        with reported_by(Once(say_plainly)):
            app()
    except DiminuendoError as error:
        errors.print(f"[bold red]error[/] {escape(str(error))}", highlight=False)
        sys.exit(2)
    except OSError as error:
        errors.print(f"[bold red]error[/] {escape(sentence(error))}", highlight=False)
        sys.exit(2)
