"""What a table is read as: which columns are what, what a value means, which rows count, and what a round is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, TypeAlias

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.streams.contexts import names_of

COLUMNS = ("user", "item", "value")
"""Default names of columns."""
Scale: TypeAlias = tuple[float, float]
"""The value that means nothing, and the value that means everything: (1, 5) for one to five stars."""
UNIT: Scale = (0.0, 1.0)
ROUNDS = ("user", "order", "session", "day")
"""What a round may be."""
GAP = 30.0
"""Default minutes between two rows of a user after which another session begins."""


class Round(NamedTuple):
    """What a round is, and by what it is told from others."""

    kind: str
    column: str | None = None
    """The column of orders, where it is named."""
    minutes: float = GAP


@dataclass(frozen=True)
class ReadAs:
    """How rows of a table are read. Everything has a default, and `Users.was_read` says what was guessed.

    Parameters
    ----------
    columns : sequence of str, optional
        Columns of user, item and value; two if every row is a thing that its user wanted. By default guessed by
        name.
    scale : (float, float), optional
        The value that means nothing and the one that means everything, as (1, 5) for stars.
    keep_last : bool, default False
        If a user has an item twice with different values, the last one counts.
    time : str, optional
        The column of times.
    round : str, optional
        "user": all rows of a user; "order" or "order:COLUMN"; "session" or "session:MINUTES": rows of a user with
        no longer pause between them; "day". By default it follows from the rows.
    skip_bad : bool, default False
        Whether rows that cannot be read are left out and counted, instead of refused.
    ignore_case : bool, default False
        Whether Tea and tea are one item.
    users_without : int, default 0
        How many users to add who want nothing, spread evenly.
    context : str or sequence of str, optional
        Columns of what was known of users when they arrived.
    private_context : bool, default False
        Whether contexts are private.

    Raises
    ------
    InvalidInput
        If arguments contradict each other.
    """

    columns: Sequence[str] | None = None
    scale: Scale | None = None
    keep_last: bool = False
    time: str | None = None
    round: str | None = None
    skip_bad: bool = False
    ignore_case: bool = False
    users_without: int = 0
    context: str | Sequence[str] | None = None
    private_context: bool = False

    def __post_init__(self) -> None:
        if self.columns is not None and (isinstance(self.columns, str) or len(self.columns) not in (2, 3)):
            raise InvalidInput(
                "columns names those of user, item and value, as ('user', 'film', 'stars'); or those of user and "
                f"item, where every row is an item that its user wanted. Got {self.columns!r}."
            )
        _validate.whole(self.users_without, 0, None, "users_without")
        if self.users_without and self.contexts:
            raise InvalidInput(
                "Of users_without nothing is known, and that alone would tell a learner that they want nothing. Leave "
                "contexts out, or give the stream with these users and what was known of them (baskets, .npz)."
            )
        if self.scale is not None and not -float("inf") < self.scale[0] < self.scale[1] < float("inf"):
            raise InvalidInput(
                f"scale is the least and the largest value, such as (1, 5); got {self.scale!r}."
            )
        _round(self.round)  # a wrong one is refused at once

    @property
    def contexts(self) -> list[str]:
        """The names of what was known of users."""
        return names_of(self.context)

    @property
    def grouping(self) -> Round | None:
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
