"""Write docs/reference.md from the program itself: commands, learners, objectives, streams."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from diminuendo.cli.app import app
from diminuendo.learners import ABOUT, LEARNERS, ROLES
from diminuendo.objectives import FAMILIES
from diminuendo.streams import BUILTIN


def reference() -> str:
    """The whole page as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Reference\n\nWritten by `make docs` from the program; do not edit.\n\n## Commands\n"
    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]  # a group
    for name, command in commands.items():
        yield f"### diminuendo {name}\n\n{inspect.cleandoc(command.help or '')}\n"
        for parameter in command.params:
            spelled = (
                ", ".join(parameter.opts) if parameter.param_type_name == "option" else parameter.name.upper()
            )
            default = "" if parameter.default is None else f" Default: `{parameter.default}`."
            yield f"- `{spelled}`: {getattr(parameter, 'help', '') or ''}{default}"
        yield ""
    yield "## Learners\n"
    for name, learner in LEARNERS.items():
        options = f". {learner.choices_in_words()}".replace("|", " or ") if learner.choices else ""
        yield f"- `{name}` ({', '.join(sorted(learner.reads))}): {learner.summary}{options}"
    for role, players in ROLES.items():
        plays = ", ".join(f"`{player}` ({feedback})" for feedback, player in players.items())
        yield f"- `{role}`: {ABOUT[role]}: {plays}"
    yield "\n## Objectives\n"
    for name, family in FAMILIES.items():
        yield f"- `{name}`: {_first_line(family)}"
    yield "- `oracle`: Any Python function of a set."
    yield "\n## Built-in streams\n"
    for name, make in BUILTIN.items():
        yield f"- `{name}`: {_first_line(make)}"


def _first_line(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").split("\n")[0]


if __name__ == "__main__":
    (Path(sys.argv[1]) / "reference.md").write_text(reference())
