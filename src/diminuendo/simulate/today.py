"""Today's slate: the fixed slate that all users are shown now, to compare learners with.

A slate is given by names of items or by their numbers.
"""

from __future__ import annotations

import csv
import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from diminuendo.errors import InvalidInput
from diminuendo.streams.users import Stream
from diminuendo.types import Slate


@dataclass(frozen=True)
class Today:
    """A fixed slate, and what it earns."""

    slate: Slate
    value: float
    """Its mean reward over all users."""


def today_on(stream: Stream, given: Sequence[str | int], slots: int) -> Today:
    """Today's slate, given by names or numbers of items, and what it would have earned from these users."""
    labels = getattr(stream, "labels", None)
    slate = tuple(item_called(name, labels, stream.n_items) for name in given)
    if len(slate) != slots:
        raise InvalidInput(
            f"today names {len(slate)} {'thing' if len(slate) == 1 else 'things'}, and {slots} are shown to each "
            f"user. Name {slots}, or say with --slots that another number is shown."
        )
    for place, item in enumerate(slate):
        if item in slate[:place]:
            first = given[slate.index(item)]
            raise InvalidInput(
                f"today names one thing twice, {first!r} and {given[place]!r}; name each once."
            )
    return Today(slate, float(stream.values(slate).mean()))


def item_called(name: str | int, labels: Sequence[str] | None, n_items: int, option: str = "today") -> int:
    """The item of that name or number. Where names are numbers themselves, text is a name."""
    called = [item for item, label in enumerate(labels or ()) if label == name]
    if len(called) == 1:
        return called[0]
    if called:
        listed = " and ".join(map(str, called))
        raise InvalidInput(
            f"{option}: {name!r} is the name of items {listed}; give the number of one of them."
        )
    text = str(name)
    is_number = text.isascii() and text.isdecimal()
    if is_number and not (isinstance(name, str) and any(label.isdecimal() for label in labels or ())):
        if int(text) < n_items:
            return int(text)
        raise InvalidInput(f"{option}: items are numbered from 0 to {n_items - 1}; got {name}.")
    if not labels:
        raise InvalidInput(
            f"{option}: items of this stream have no names; give numbers from 0 to {n_items - 1}; got {name!r}."
        )
    close = difflib.get_close_matches(text, labels, n=3)
    raise InvalidInput(
        f"{option}: there is no item called {name!r}. "
        + (f"Did you mean {' or '.join(map(repr, close))}? " if close else "")
        + "Items are called as in the file, and items without ratings are not in it."
    )


def split(text: str, option: str = "--today") -> list[str]:
    """Names between commas; a name that has a comma itself stands between quotes."""
    try:
        return [name.strip() for name in next(csv.reader([text], skipinitialspace=True, strict=True), [])]
    except csv.Error:
        raise InvalidInput(
            f'{option} takes names or numbers separated by commas, as tea,soap or "tea, green",soap; got {text!r}.'
        ) from None
