"""What was read of a table, in words: which columns, what a round is, and which rows do not count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LISTED = 10
"""Unused columns that are named."""


class ReadNote(UserWarning):
    """Something was guessed, or rows were left out. `users.was_read` says more."""


@dataclass(frozen=True)
class WasRead:
    """What was read of a table, and as what. `str` says it in sentences.

    Attributes
    ----------
    source : str
        Name of the table.
    rows : int
        Number of rows.
    columns : mapping of str to str
        The column of each part that was used.
    round : {"user", "order", "session", "day"}
        What a round is.
    rounds, users, items : int
        Numbers of rounds, users and items.
    guessed : bool
        Whether columns were guessed by their names.
    chosen : bool
        Whether it follows from the rows, and not from an argument, that a round is less than a user.
    minutes : float
        The longest pause within a session.
    left_out, skipped : mapping of str to int
        How many rows do not count because something in them is empty, or wrong.
    repeated : int
        How many rows repeat another row of the same round.
    without : int
        How many users were added who want nothing.
    notes, doubts : tuple of str
        What is unusual, and what may not be as it was meant, in sentences.
    unused : tuple of str
        Columns that were not used.

    Examples
    --------
    >>> print(WasRead("orders.csv", 5, {"user": "who", "item": "sku"}, "day", 3, 2, 4, left_out={"sku is empty": 1}))
    orders.csv: 5 rows, with who as user, sku as item. Every row is an item that the user wanted.
    A round is a day of a user: 3 rounds of 2 users, 4 items, in the order of their first rows.
    Left out: 1 row where sku is empty.

    """

    source: str
    rows: int
    columns: Mapping[str, str]
    round: str
    rounds: int
    users: int
    items: int
    guessed: bool = False
    chosen: bool = False
    minutes: float = 0.0
    left_out: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    repeated: int = 0
    without: int = 0
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    unused: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self.said())

    def said(self) -> list[str]:
        """Line by line."""
        parts = [f"{name} as {role}" if name != role else role for role, name in self.columns.items()]
        guessed = " (guessed by their names; --columns and --time say otherwise)" if self.guessed else ""
        wanted = "" if "value" in self.columns else " Every row is an item that the user wanted."
        lines = [f"{self.source}: {_many(self.rows, 'row')}, with {', '.join(parts)}{guessed}.{wanted}"]
        if self.unused:
            more = f" and {len(self.unused) - LISTED:,} more" if len(self.unused) > LISTED else ""
            lines.append(f"Columns that are not used: {', '.join(self.unused[:LISTED])}{more}.")
        lines += [*self.notes, *self.doubts]
        when = self.columns.get("time", "their first rows")
        chosen = " (--round says otherwise)" if self.chosen else ""
        many = f"{self.how_many}, {_many(self.items, 'item')}"
        lines.append(f"{self.what_a_round_is}{chosen}: {many}, in the order of {when}.")
        if self.left_out:
            lines.append(f"Left out: {_listed(self.left_out)}.")
        if self.skipped:
            lines.append(f"Skipped as bad: {_listed(self.skipped)}.")
        if self.repeated:
            again = "says" if self.repeated == 1 else "say"
            lines.append(
                f"{_many(self.repeated, 'row')} {again} what another row of the same round says; that counts once."
            )
        if self.without:
            lines.append(
                f"{_many(self.without, 'round')} of users who want nothing were added, spread evenly among the others."
            )
        return lines

    @property
    def what_a_round_is(self) -> str:
        """As a sentence without its end."""
        if self.round == "user":
            return "A round is a user with all their rows"
        if self.round == "session":
            return f"A round is a session of a user, without a pause of more than {self.minutes:g} minutes"
        return f"A round is {'an order' if self.round == 'order' else 'a day'} of a user"

    @property
    def how_many(self) -> str:
        """Rounds, and users where they differ."""
        if self.round == "user":
            return _many(self.rounds, "user", "users")
        return f"{_many(self.rounds, 'round')} of {_many(self.users, 'user', 'users')}"

    def worth_a_note(self) -> bool:
        """Whether something was guessed, left out or is in doubt, so that the user of the library should look."""
        return self.guessed or self.chosen or bool(self.left_out or self.skipped or self.doubts)

    def as_json(self) -> dict[str, Any]:
        """For files of results."""
        return {
            "source": self.source,
            "rows": self.rows,
            "columns": dict(self.columns),
            "guessed": self.guessed,
            "round": self.round,
            "rounds": self.rounds,
            "users": self.users,
            "left_out": dict(self.left_out),
            "skipped": dict(self.skipped),
            "repeated": self.repeated,
            "users_without": self.without,
            "said": self.said(),
        }


def _many(count: int, what: str, several: str = "") -> str:
    return f"{count:,} {what if count == 1 else several or f'{what}s'}"


def _listed(counts: Mapping[str, int]) -> str:
    return "; ".join(f"{_many(count, 'row')} where {why}" for why, count in counts.items())
