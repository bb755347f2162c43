"""Options of a command that runs without typer too: said once, read by typer where it is there, else by argparse."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints


class Argument(NamedTuple):
    """What is named without an option."""

    help: str


class Option(NamedTuple):
    """What is said by an option of the parameter's name."""

    help: str


def for_typer(command: Callable[..., None]) -> Callable[..., None]:
    """The same command, as typer reads it."""
    import typer

    hints: dict[str, Any] = {}
    for name, kind, said in _parameters(command):
        named = () if kind is not bool else (_flag(name),)
        made: Any = typer.Argument if isinstance(said, Argument) else typer.Option
        hints[name] = Annotated[kind, made(*named, help=said.help)]

    @wraps(command)
    def typed(**given: Any) -> None:
        command(**given)

    result = inspect.signature(command)
    typed.__signature__ = result.replace(  # type: ignore[attr-defined]
        parameters=[each.replace(annotation=hints[name]) for name, each in result.parameters.items()]
    )
    typed.__annotations__ = hints
    return typed


def run(command: Callable[..., None], name: str, words: Sequence[str], more: str) -> None:
    """Read what was typed after the name of a command, and do it; `more`: said below its help."""
    parser = argparse.ArgumentParser(prog=f"diminuendo {name}", description=command.__doc__, epilog=more)
    defaults = inspect.signature(command).parameters
    for each, kind, said in _parameters(command):
        default = defaults[each].default
        given: dict[str, Any] = {"help": said.help, "default": default}
        types = [one for one in get_args(kind) or (kind,) if one is not type(None)]
        if kind is bool:
            parser.add_argument(_flag(each), action="store_true", **given)
        elif isinstance(said, Argument):
            many = None if default is inspect.Parameter.empty else "?"
            parser.add_argument(each, nargs=many, type=types[0], **given)
        else:
            parser.add_argument(_flag(each), type=types[0], metavar=_METAVARS[types[0]], **given)
    command(**vars(parser.parse_args(words)))


_METAVARS = {str: "TEXT", int: "INTEGER", Path: "PATH"}


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _parameters(command: Callable[..., None]) -> list[tuple[str, Any, Argument | Option]]:
    """Of each parameter its name, its type and what is said of it."""
    hints = get_type_hints(command, include_extras=True)
    return [(name, *get_args(hints[name])) for name in inspect.signature(command).parameters]
