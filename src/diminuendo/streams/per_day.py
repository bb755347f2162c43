"""A day: how many users come, and what their rewards are called when they are added up.

A reward lies between 0, nothing, and 1, all that a user could wish for. Hits of a day are the rewards of its users,
added up: a user with a reward of 1 is one hit, and so are two who are half content. Clicks, sales or loans are
other words for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from diminuendo import _validate
from diminuendo.errors import InvalidInput

HITS = "hits"
LONGEST = 30
"""A word for hits has no more letters."""


@dataclass(frozen=True)
class PerDay:
    """How many users come in a day, and the word for what they bring.

    >>> day = PerDay(20_000, "sales")
    >>> day.said(0.123 * day.users), day.signed(0.1 * day.users)
    ('2,460', '+2,000')
    """

    users: float
    """Who comes twice counts twice."""
    hits: str = HITS

    def __post_init__(self) -> None:
        object.__setattr__(self, "users", _validate.positive_float(self.users, "per_day"))
        if not (isinstance(self.hits, str) and self.hits.isprintable() and 0 < len(self.hits) <= LONGEST):
            raise InvalidInput(
                f"hits must be a word for what is counted, as sales, of at most {LONGEST} letters; got {self.hits!r}."
            )

    def said(self, hits: float) -> str:
        """A number of hits, to about a thousandth of the users of a day."""
        digits = min(6, max(0, math.ceil(3 - math.log10(self.users))))
        return f"{round(hits, digits) + 0.0:,.{digits}f}"  # 0 is added, so that none is -0

    def signed(self, hits: float) -> str:
        """A difference of hits, with its sign."""
        said = self.said(hits)
        return f"+{said}" if float(said.replace(",", "")) > 0 else said
