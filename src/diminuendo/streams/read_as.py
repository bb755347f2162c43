"""What a table is read as: which columns are what, what a value means, which rows count, and what a round is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, TypeAlias, TypedDict

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.streams.contexts import names_of

COLUMNS = ("person", "item", "value")
"""What the columns are called where nobody says otherwise."""
Scale: TypeAlias = tuple[float, float]
"""The value that means nothing, and the value that means everything: (1, 5) for one to five stars."""
UNIT: Scale = (0.0, 1.0)
ROUNDS = ("person", "order", "session", "day")
"""What a round may be."""
GAP = 30.0
"""Minutes between two rows of a person after which another session begins, where nobody says otherwise."""


class How(TypedDict, total=False):
    """What may be said of how a table is to be read; all of it by name, and none of it need be."""

    columns: Sequence[str] | None
    """Who, what, and how much of it she wants; two columns where every row is a thing that she wanted."""
    scale: Scale | None
    keep_last: bool
    time: str | None
    round: str | None
    skip_bad: bool
    ignore_case: bool
    people_without: int
    context: str | Sequence[str] | None
    private_context: bool


class Round(NamedTuple):
    """What a round is, and by what it is told from others."""

    kind: str
    column: str | None = None
    """The column of orders, where it is named."""
    minutes: float = GAP


@dataclass(frozen=True)
class ReadAs:
    """What a table is read as. Everything has a default, and what is guessed is said afterwards.

    `columns`: of person, item and value; two where there is no value, and every row is a thing that she wanted. Else
    they are guessed by their names. `scale`: the value that means nothing and the one that means everything.
    `keep_last`: where somebody has a thing twice with different values, the last one counts. `time`: the column that
    says when. `round`: "person", all rows of a person; "order" or "order:COLUMN"; "session" or "session:MINUTES", rows
    of a person with no longer pause between them; "day". Else it follows from the rows (rows.py). `skip_bad`: rows
    that cannot be read are left out and counted. `ignore_case`: Tea and tea are one thing. `people_without`: how many
    people to add who want nothing, spread evenly. `context`, `private_context`: what was known of people (contexts.py).
    """

    columns: Sequence[str] | None = None
    scale: Scale | None = None
    keep_last: bool = False
    time: str | None = None
    round: str | None = None
    skip_bad: bool = False
    ignore_case: bool = False
    people_without: int = 0
    context: str | Sequence[str] | None = None
    private_context: bool = False

    def __post_init__(self) -> None:
        if self.columns is not None and (isinstance(self.columns, str) or len(self.columns) not in (2, 3)):
            raise InvalidInput(
                "columns names those of person, item and value, as ('user', 'film', 'stars'); or those of person and "
                f"item, where every row is a thing that she wanted. Got {self.columns!r}."
            )
        _validate.whole(self.people_without, 0, None, "people_without")
        if self.people_without and self.contexts:
            raise InvalidInput(
                "Of people_without nothing is known, and that alone would tell a learner that they want nothing. Leave "
                "contexts out, or give the stream with these people and what was known of them (baskets, .npz)."
            )
        if self.scale is not None and not -float("inf") < self.scale[0] < self.scale[1] < float("inf"):
            raise InvalidInput(
                f"scale is the least and the largest value, such as (1, 5); got {self.scale!r}."
            )
        _round(self.round)  # a wrong one is refused at once

    @property
    def contexts(self) -> list[str]:
        """The names of what was known of people."""
        return names_of(self.context)

    @property
    def asked_round(self) -> Round | None:
        """What a round is, where that is said."""
        return _round(self.round)

    def only_contexts(self, what: str) -> None:
        """Refuse all but contexts: the rest is for tables, and this is something else."""
        plain = ReadAs()
        said = [
            one.name
            for one in fields(self)
            if not one.name.endswith("context") and getattr(self, one.name) != getattr(plain, one.name)
        ]
        if said:
            raise InvalidInput(f"{', '.join(said)}: said of {what}, and only tables take that; leave it out.")


def _round(said: str | None) -> Round | None:
    """What a round is, where that is said."""
    if said is None:
        return None
    kind, mark, more = said.partition(":")
    if kind == "order" and bool(mark) == bool(more):
        return Round(kind, more or None)
    if kind == "session" and mark:
        try:
            return Round(kind, minutes=_validate.positive_float(float(more), "minutes"))
        except (ValueError, InvalidInput):
            kind = ""
    if kind in ROUNDS and not mark:
        return Round(kind)
    raise InvalidInput(
        f"A round is a {', '.join(ROUNDS[:-1])} or {ROUNDS[-1]}, with the column of orders or the minutes of a "
        f"pause where they are not the usual ones, as order:invoice or session:45; got {said!r}."
    )
