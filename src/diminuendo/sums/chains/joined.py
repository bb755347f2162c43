"""Sums over batches that have been published, where types of people have chains of their own; and those of one batch.

Both hold rows of singles and of cells, one after the other, rows of questions, and counts of values. A batch joins the
others as a whole: `joined_by` makes new sums and leaves the old ones as they are, so it is done or not done.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput
from diminuendo.sums.chains.asked import AskedByType
from diminuendo.sums.chains.running import NO_ITEM, Question
from diminuendo.types import Ints


class BatchSums(NamedTuple):
    """What people of one batch said, each of them once."""

    rows: Ints
    """(singles, then cells column by column; items)."""
    asked: Ints
    """(questions of the batch, items)."""
    counts: Ints
    """How many have each value of each column, in ticks; nothing where contexts are public."""

    def __repr__(self) -> str:
        return "<BatchSums>"


class JoinedSums(NamedTuple):
    """What people of several batches said, each as often as her batch weighs."""

    there: NDArray[np.bool_]
    """Which batches are in singles, cells and counts."""
    rows: Ints
    """As in BatchSums."""
    counts: Ints
    """As in BatchSums."""
    places: dict[Question, int]
    """Where each question is in `asked`; from the one that people were asked longest ago to the last."""
    asked: Ints
    """(questions, items)."""
    within: NDArray[np.bool_]
    """(questions, batches): which batches are in which question."""

    def __repr__(self) -> str:
        return f"<JoinedSums, {len(self.places)} questions>"

    def joined_by(
        self, number: int, batch: BatchSums, asked: AskedByType, often: int, room: tuple[int, int]
    ) -> JoinedSums:
        """These sums with those of one more batch, whose people count so often.

        `room`: for how many rows and rests; those that people were asked longest ago make way.
        """
        known = [*self.places, *(question for question in asked.questions if question not in self.places)]
        new = len(known) - len(self.places)
        sums = np.vstack([self.asked, np.zeros((new, self.asked.shape[1]), dtype=np.int64)])
        within = np.vstack([self.within, np.zeros((new, len(self.there)), dtype=np.bool_)])
        places = {question: place for place, question in enumerate(known)}
        mine = np.array([places[question] for question in asked.questions], dtype=np.int64)
        sums[mine] += often * batch.asked
        within[mine, number] = True
        stay = _newest(known, within, room)
        there = self.there.copy()
        there[number] = True
        return JoinedSums(
            there,
            self.rows + often * batch.rows,
            self.counts + often * batch.counts,
            {known[place]: number for number, place in enumerate(stay.tolist())},
            sums[stay],
            within[stay],
        )

    def place(self, question: Question, batch: int) -> int:
        """Where the sum of a question is, if that batch is in it; else -1."""
        found = self.places.get(question, -1)
        return found if found >= 0 and self.within[found, batch] else -1

    def keys(self, longest: int) -> Ints:
        """(questions, 1 + longest): the item that joins, and the set before."""
        found: Ints = np.full((len(self.places), longest + 1), NO_ITEM, dtype=np.int64)
        for place, (item, before) in enumerate(self.places):
            found[place, 0], found[place, 1 : 1 + len(before)] = item, before
        return found

    def written(self, longest: int) -> dict[str, NDArray[Any]]:
        """For a snapshot."""
        return {"keys": self.keys(longest)} | {
            name: getattr(self, name) for name in self._fields if name != "places"
        }


def no_sums(batches: int, rows: int, values: int, n_items: int) -> JoinedSums:
    """Of nobody."""
    return JoinedSums(
        np.zeros(batches, dtype=np.bool_),
        np.zeros((rows, n_items), dtype=np.int64),
        np.zeros(values, dtype=np.int64),
        {},
        np.zeros((0, n_items), dtype=np.int64),
        np.zeros((0, batches), dtype=np.bool_),
    )


def read_sums(found: dict[str, NDArray[Any]], like: JoinedSums, longest: int) -> JoinedSums:
    """As `written`, of the same size as others; refuses what has another."""
    keys = found.pop("keys", np.zeros((0, 0)))
    parts = {name: found.pop(name, np.zeros(0)) for name in like._fields if name != "places"}
    size = {"asked": (len(keys), like.asked.shape[1]), "within": (len(keys), len(like.there))}
    fits = keys.shape == (len(keys), longest + 1) and keys.dtype == np.int64
    for name, part in parts.items():
        own = getattr(like, name)
        fits = fits and part.dtype == own.dtype and part.shape == size.get(name, own.shape)
    places = {
        Question(item, tuple(sorted(other for other in before if other != NO_ITEM))): place
        for place, (item, *before) in enumerate(keys.tolist() if fits else ())
    }
    if not fits or len(places) != len(keys):
        raise InvalidInput("The snapshot holds sums that could not have come about; it was altered.")
    return like._replace(**parts, places=places)


def _newest(questions: list[Question], within: NDArray[np.bool_], room: tuple[int, int]) -> Ints:
    """The questions that there is room for, from the one asked longest ago to the last: rows and rests apart."""
    lately = (within * np.arange(1, within.shape[1] + 1)).max(axis=1, initial=0)
    order = np.argsort(lately, kind="stable")
    rest = np.array([question.item == NO_ITEM for question in questions], dtype=np.bool_)[order]
    behind = np.where(rest, rest[::-1].cumsum()[::-1], (~rest)[::-1].cumsum()[::-1])  # with itself
    stay: Ints = order[behind <= np.where(rest, room[1], room[0])]
    return stay
