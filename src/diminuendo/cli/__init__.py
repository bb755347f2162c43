"""The command line: thin commands over the library."""

from __future__ import annotations

import sys

from rich.markup import escape

from diminuendo.cli.app import app
from diminuendo.cli.screen import errors
from diminuendo.errors import DiminuendoError


def main() -> None:
    """Run a command; errors raised on purpose are shown as one sentence, not as a traceback."""
    try:
        app()
    except DiminuendoError as error:
        errors.print(f"[bold red]error[/] {escape(str(error))}", highlight=False)
        sys.exit(2)
    except OSError as error:  # a folder that is a file, a full disk, a missing permission
        errors.print(f"[bold red]error[/] {escape(str(error))}", highlight=False)
        sys.exit(2)
