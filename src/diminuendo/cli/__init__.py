"""The command line: thin commands over the library.

Nothing heavy is loaded before a command needs it: help, the version and most refusals come at once.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any, cast

from diminuendo._extras import extra
from diminuendo.errors import DiminuendoError, MissingExtra

_noted: set[str] = set()


def main() -> None:
    """Run a command; errors raised on purpose are shown as one sentence, not as a traceback."""
    try:
        with extra("cli"):
            from rich.markup import escape

            from diminuendo._compile_progress import Once, reported_by
            from diminuendo.cli.app import app
            from diminuendo.cli.screen import errors, say_plainly, sentence
    except MissingExtra as error:
        if sys.argv[1:2] in (["check"], ["apply"], ["serve"], ["move"], ["roles"]):
            return _without_typer(*sys.argv[1:])
        print(f"error {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)

    warnings.showwarning = cast(Any, _note)
    try:
        with reported_by(Once(say_plainly)):
            app()
    except (DiminuendoError, OSError) as error:
        errors.print(f"[bold red]error[/] {escape(sentence(error))}", highlight=False)
        sys.exit(2)


def _without_typer(name: str, *words: str) -> None:
    """The commands of a server, which needs no others."""
    from diminuendo.cli.options import run
    from diminuendo.cli.serve import apply_command, check_command, serve_command
    from diminuendo.cli.store import move_command, roles_command

    commands: dict[str, Callable[..., None]] = {
        "check": check_command,
        "apply": apply_command,
        "serve": serve_command,
        "move": move_command,
        "roles": roles_command,
    }
    try:
        run(commands[name], name, words, "Other commands: pip install 'diminuendo[cli]'.")
    except (DiminuendoError, OSError) as error:
        print(f"error {error}", file=sys.stderr)
        sys.exit(2)


def _note(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
    """Print a warning as a sentence, once, without file and line."""
    from diminuendo.cli.screen import errors

    if str(message) not in _noted:
        _noted.add(str(message))
        errors.print(f"Note: {message}", highlight=False, markup=False, soft_wrap=True)
