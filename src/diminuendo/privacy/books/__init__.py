"""Books: where a ledger is written down, and what was released on it. Files are one kind, a database another.

Lines are appended and never changed; releases are written once. What a call has written is durable when it returns.
A ledger in memory has no books.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from diminuendo.types import Ints

if TYPE_CHECKING:
    from diminuendo.privacy.books.contribution_file import ContributionFile


class Lines(Protocol):
    """The lines of a ledger, held by one writer."""

    @property
    def path(self) -> object:
        """Where they are, for users to read."""
        ...

    def read(self) -> bytes:
        """All of them, each with its newline."""
        ...

    def check(self) -> None:
        """Refuse unless this process may append."""
        ...

    def append(self, line: bytes) -> None:
        """One more line; durable when this returns."""
        ...

    def cut(self, size: int) -> None:
        """Drop what lies beyond that many bytes: an unfinished line."""
        ...


class KeptReleases(Protocol):
    """What was published, by name."""

    def check(self, name: str) -> None:
        """Refuse names that a release cannot have."""
        ...

    def has(self, name: str) -> bool:
        """Whether there is a release of that name."""
        ...

    def names(self) -> list[str]:
        """The names of all releases."""
        ...

    def once(self, name: str, draw: Callable[[], Ints]) -> Ints:
        """The release of that name; `draw` is called only if there is none yet."""
        ...


class Books(Protocol):
    """Lines and releases that belong together."""

    @property
    def lines(self) -> Lines:
        """The ledger, line by line."""
        ...

    @property
    def releases(self) -> KeptReleases:
        """What was drawn on it."""
        ...

    def visits_of(self, learner: str) -> ContributionFile | None:
        """How many rounds of whom counted for the learner of that name; None where others count them."""
        ...

    def close(self) -> None:
        """Release them for another process."""
        ...
