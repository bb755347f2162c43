"""What was typed, as values: numbers and names between commas, how tables are read, and rules; and
options that several commands have."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from diminuendo.errors import InvalidInput

if TYPE_CHECKING:
    from diminuendo.offline import SlateRules
    from diminuendo.streams import Users

Number = TypeVar("Number", int, float)

MaxRoundsPerUser = Annotated[
    int, typer.Option(help="Rounds of one user that private learners learn from; they share the budget.")
]
Retention = Annotated[
    int | None,
    typer.Option(help="Rounds after which private learners delete records of users. Default: never."),
]
Sample = Annotated[
    int,
    typer.Option(help="Private learners learn from a public sample of one in so many users, and serve all."),
]
ResponseRate = Annotated[float, typer.Option(help="The share of users who give feedback at all.")]
PrivateContext = Annotated[
    bool, typer.Option("--private-context", help="Hide contexts, too, from all but the user.")
]


def numbers_in(given: str, kind: Callable[[str], Number], option: str) -> list[Number]:
    """The numbers that were given to an option, separated by commas."""
    try:
        return [kind(part) for part in given.split(",")]
    except ValueError:
        whole = "whole numbers" if kind is int else "numbers"
        raise InvalidInput(
            f"{option} takes {whole} separated by commas, as 1 or 1,10; got {given!r}."
        ) from None


def learner_names(given: str) -> list[str]:
    """Names of learners, separated by commas: `private,bandit-dp:draw=direct,calibration=paper`.

    A comma before `key=` is one between options.
    """
    return [name.strip() for name in re.split(r",(?!\s*\w+=)", given) if name.strip()]


def how_to_read(columns: str | None, scale: str | None) -> dict[str, Any]:
    """How a table is to be read, where that is said."""
    result: dict[str, Any] = {}
    if columns is not None:
        result["columns"] = tuple(name.strip() for name in columns.split(","))
        if len(result["columns"]) not in (2, 3):
            raise InvalidInput(
                "--columns takes the columns of user, item and value, as user,film,stars, or of user and item; got "
                f"{columns!r}."
            )
    if scale is not None:
        result["scale"] = tuple(numbers_in(scale, float, "--scale"))
        if len(result["scale"]) != 2:
            raise InvalidInput(
                f"--scale takes the rating that means nothing and the one that means everything, as 1,5; got {scale!r}."
            )
    return result


def today_in(given: str | None) -> list[str] | None:
    """The names or numbers of items in `--today`, where it is given."""
    if given is None:
        return None
    from diminuendo.simulate.today import split

    return split(given)


def rules_of(pinned: str | None, caps: list[str], streams: Sequence[Users]) -> SlateRules | None:
    """What slates must keep to, by names or numbers of items; None where nothing is said."""
    if pinned is None and not caps:
        return None
    from diminuendo.offline import SlateRules
    from diminuendo.simulate.today import item_called, split

    if len(streams) > 1:
        raise InvalidInput(
            "--pinned and --cap are about the items of one stream; simulate streams one by one."
        )

    def items(text: str, option: str) -> list[int]:
        return [
            item_called(name, streams[0].labels, streams[0].n_items, option) for name in split(text, option)
        ]

    result = []
    for text in caps:
        most, colon, names = text.partition(":")
        if not (colon and most.strip().isdecimal()):
            raise InvalidInput(
                f"--cap takes how many are shown at most, and of which items, as 2:tea,soap,jam; got {text!r}."
            )
        result.append((items(names, "--cap"), int(most)))
    return SlateRules(pinned=[] if pinned is None else items(pinned, "--pinned"), caps=result)
