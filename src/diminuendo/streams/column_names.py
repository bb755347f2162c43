"""Which column of a table is what: as named, whatever its capitals and blanks; else guessed by its name, and said so.

A guess is made only where a name says it in itself, as `Customer ID`, `sku`, `created_at` or `InvoiceNo` do. Names of
columns are public; nothing here looks at rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from diminuendo.errors import InvalidInput
from diminuendo.streams.read_as import COLUMNS, ReadAs

NUMBERS = "id no nr num number code key ref uuid guid hash"
"""Endings of names of columns that hold numbers of users or things."""
LABELS = "name label title"
SUBJECTS = {
    "user": "user customer user client visitor member shopper buyer subscriber household account cust email",
    "item": "item sku product article asin isbn ean gtin upc stockcode film movie book song track title page url",
    "order": "order invoice basket cart transaction receipt purchaseid session visit",
    "value": "value rating stars score",
    "quantity": "quantity qty",
    "time": "created ordered order placed purchase purchased invoice transaction event",
}
"""Words for each, the likeliest first."""
TIMES = "at time timestamp datetime date ts day on"


def _forms() -> Iterator[tuple[str, str]]:
    """(role, name) of all that is guessed, the likeliest first."""
    yield from (("time", ending) for ending in TIMES.split()[:-1])
    for role, subjects in SUBJECTS.items():
        endings = {"value": "", "quantity": "", "time": TIMES}.get(role, NUMBERS)
        bare = [""] if role != "time" else []
        for words in (endings, LABELS if role in ("user", "item") else ""):
            each = [*(bare if words == endings else []), *words.split()]
            yield from ((role, subject + ending) for subject in subjects.split() for ending in each)


PLACES = {form: (role, place) for place, (role, form) in reversed(list(enumerate(_forms())))}
"""For each name without its capitals, blanks and marks: what it says, and how likely."""


class Roles(NamedTuple):
    """The columns that were found for each part that a column can play; None where there is none."""

    user: str
    item: str
    value: str | None
    time: str | None
    order: str | None
    quantity: str | None
    """How many were bought, where there is no value: rows with less than one are no wishes."""
    guessed: bool
    """Whether user, item or value were guessed."""

    def all(self) -> list[str]:
        """Their names, each once."""
        return [name for name in self[:6] if isinstance(name, str)]


def tidied(header: Iterable[str]) -> list[str]:
    """Names of columns as users would write them: without marks of encodings, and single blanks within."""
    return [" ".join(str(name).replace("\ufeff", "").split()) for name in header]


def squeezed(name: str) -> str:
    """A name without capitals, blanks and marks."""
    return re.sub(r"[\W_]+", "", name.casefold())


def find(name: str, header: Sequence[str], file: str) -> str | None:
    """The column of that name, or the only one that differs in capitals, blanks and marks; None if there is none."""
    name = " ".join(name.split())
    if header.count(name) > 1:
        raise InvalidInput(f"{file} has {header.count(name)} columns called {name}. Rename one of them.")
    if name in header:
        return name
    alike = [one for one in header if squeezed(one) == squeezed(name)] if squeezed(name) else []
    return alike[0] if len(alike) == 1 else None


def guesses(header: Sequence[str]) -> dict[str, str]:
    """For each part the column whose name says so, the likeliest of several."""
    best: dict[str, tuple[int, str]] = {}
    for name in header:
        role, place = PLACES.get(squeezed(name), ("", 0))
        if role and header.count(name) == 1 and (role not in best or place < best[role][0]):
            best[role] = place, name
    return {role: name for role, (_, name) in best.items()}


def roles(read_as: ReadAs, header: Sequence[str], file: str) -> Roles:
    """Which column is what; an error that names likely ones where that is not clear."""
    likely = guesses(header)
    if read_as.columns is not None:
        named = [find(name, header, file) for name in read_as.columns]
        missing = [name for name, column in zip(read_as.columns, named, strict=True) if column is None]
    else:
        named = [likely.get(role) for role in COLUMNS]
        missing = [role for role, column in zip(COLUMNS[:2], named[:2], strict=True) if column is None]
    if missing:
        raise InvalidInput(_nowhere(missing, read_as.columns or COLUMNS, header, likely, file))
    user, item, value = [*named, None][:3]
    assert user is not None
    assert item is not None
    if len({user, item, value}) < 3:
        raise InvalidInput(
            f"{file}: user, item and value are three columns; got {', '.join(map(str, named))}."
        )
    taken = (user, item, value)
    time = likely.get("time") if read_as.time is None else _named(read_as.time, "time", header, file)
    grouping = read_as.grouping
    order = likely.get("order")
    if grouping is not None and grouping.column is not None:
        order = _named(grouping.column, "orders", header, file)
    elif grouping is not None and grouping.kind == "order" and order is None:
        raise InvalidInput(
            f"{file} has no column that looks like orders. Name it, as order:COLUMN. {_there(header)}"
        )
    guessed = read_as.columns is None and [one for one in taken if one] != [
        *COLUMNS[: len(list(filter(None, taken)))]
    ]
    return Roles(
        user,
        item,
        value,
        None if time in taken else time,
        None if order in taken else order,
        likely.get("quantity") if value is None else None,
        guessed,
    )


def _named(name: str, what: str, header: Sequence[str], file: str) -> str:
    column = find(name, header, file)
    if column is None:
        raise InvalidInput(f"{file} has no column {name} of {what}.{meant(name, header)} {_there(header)}")
    return column


def meant(name: str, header: Sequence[str]) -> str:
    """A column that is spelled much like it, as a question; "" where there is none."""
    close = get_close_matches(squeezed(name), [squeezed(one) for one in header], 1)
    return "".join(f" Did you mean {one}?" for one in header if close and squeezed(one) == close[0])


def _there(header: Sequence[str]) -> str:
    return f"Its columns are: {', '.join(header)}."


def _nowhere(
    missing: Sequence[str], expected: Sequence[str], header: Sequence[str], likely: dict[str, str], file: str
) -> str:
    said = [f"{name} like the {role}" for role, name in likely.items()]
    hint = (
        f" {said[0].replace(' like', ' looks like', 1)}{''.join(f', {one}' for one in said[1:])}."
        if said
        else ""
    )
    pair = [likely.get(role, f"COLUMN_OF_{role.upper()}") for role in COLUMNS[:2]]
    pair += [likely["value"]] if "value" in likely else []
    return (
        f"{file} has no column {', '.join(missing)}; expected {','.join(expected)} and found {','.join(header)}.{hint} "
        f"Name the columns of user, item and (if there is one) value: columns={tuple(pair)!r}, or on the command "
        f"line --columns {','.join(pair)!r}."
    )
