"""One private running sum to which people's gains are added, batch by batch: the private side of those who follow it.

What a person contributes is a vector of gains in [0, 1], a function of what she said, of public coins and of what was
published before her slate was chosen. Gains are clipped together, in whole ticks. Batches close after numbers of rounds
that are fixed beforehand; what comes after its batch has closed has said nothing.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from diminuendo import _validate
from diminuendo._validate import as_floats
from diminuendo.experts.lazy_items import LazyItems
from diminuendo.learners.released.contribution import NARROW, Contribution, new_contribution
from diminuendo.objectives.family import Table
from diminuendo.objectives.person import Person, largest_state
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.process_guard import said_by
from diminuendo.randomness.words import SecretRandomness
from diminuendo.streams.people import People
from diminuendo.sums.batch import BatchView
from diminuendo.sums.clip import Clip
from diminuendo.sums.private_sum import PrivateSum
from diminuendo.sums.schedule import Schedule, equal
from diminuendo.types import Floats, Ints, Items, Objective

GAIN_TICKS = 1 << 12
"""Whole numbers to one unit of gain."""


MOST_WAITING = 32
"""Batches that wait for answers at once, about."""


def gain_clip(size: int, longest: float | None) -> Clip:
    """Gains of at most 1 each; of length at most `longest`, or, with None, of whatever length they have."""
    bound = math.sqrt(size) + 1 if longest is None else _validate.positive_float(longest, "clip")
    return Clip("l2", bound=min(bound, math.sqrt(size) + 1), ticks=GAIN_TICKS)


def noise_level(size: int, clip: Clip, budget: Budget) -> float:
    """The deviation that noise has on a sum that is published once, in people."""
    return math.sqrt(clip.sensitivity_squared(size) / float(budget.limit)) / clip.ticks


def batches(horizon: int, people: int, ahead: int) -> Schedule:
    """Batches of about `people` rounds each, and eight of them at least, where there are as many rounds.

    Where answers come late, no more than a few batches wait for them: `ahead` rounds are chosen meanwhile.
    """
    longest = max(1, min(max(people, math.ceil(ahead / MOST_WAITING)), math.ceil(horizon / 8)))
    return equal(horizon, math.ceil(horizon / longest))


class Gains(Protocol):
    """What people contribute, given what was published before their slates were chosen."""

    def add_people(
        self,
        table: Table,
        first: int,
        last: int,
        slates: Items,
        words: Ints,
        scratch: Contribution,
        into: BatchView,
    ) -> int:
        """Add what people from `first` on contribute to the open batch; who comes next when there is more scratch."""
        ...

    def of_function(self, person: Objective, row: Items, word: int) -> Floats:
        """What one person contributes, whoever she is: the slow way, for those whom nothing can compile."""
        ...


def published_in(schedule: Schedule) -> Schedule:
    """The batches that may be published: all but the last, after which nobody comes."""
    return Schedule(schedule.ends[:-1] or schedule.ends)


class ReleasedSum:
    """What is published of a private sum when a batch of rounds is over; of the last batch nothing is."""

    def __init__(self, n_items: int, schedule: Schedule, private: PrivateSum | LazyItems) -> None:
        self.n_items, self.size, self.schedule, self.clip = n_items, private.size, schedule, private.clip
        self.sum, size = private, private.size
        self.n_releases = np.zeros(1, dtype=np.int64)
        """How often the sum was published."""
        self.published: Floats = np.zeros(size)
        """The running sum, in units, as it was published last."""
        self._scratch = new_contribution(n_items, 1, 1, size // n_items, NARROW)

    # Publishing.

    def due(self, rounds: int) -> bool:
        """Whether a batch is over, after `rounds` rounds, that was not published; the last one never is."""
        return int(self.n_releases[0]) < min(self.schedule.closed_by(rounds), len(self.schedule) - 1)

    def publish(self, secret: SecretRandomness) -> Floats:
        """Close the batch and publish the running sum; the same again, until it was taken over."""
        if not self.under_way:
            self.sum.release(secret)
        return self.sum.last

    @property
    def under_way(self) -> bool:
        """Whether something was published that was not taken over yet."""
        return bool(self.sum.batch != self.n_releases[0])

    def take_over(self) -> None:
        """What was published is what slates follow from now on."""
        self.published[:] = self.sum.last
        self.n_releases[0] += 1

    # Adding people.

    def is_open(self, batch: int) -> bool:
        """Whether what people say to slates of that batch of rounds still counts; in the last batch nobody is heard."""
        return self.sum.batch <= batch < len(self.schedule) - 1

    def add_answer(self, answer: Objective, row: Items, word: int, batch: int, gains: Gains) -> None:
        """What one person says to `row`, into that batch, if it is open. Whatever goes wrong in it says nothing."""
        if not self.is_open(batch):
            return
        if type(answer) is Person:
            one, its_word = row[None, :], np.array([word])
            said_by(lambda: self.add_people(answer, answer.index, one, its_word, batch, gains))
            return
        found = said_by(lambda: as_floats(gains.of_function(answer, row, word)))
        if found is not None and found.shape == (self.size,):
            self.sum.add(found, batch=batch)

    def add_people(
        self, people: People | Person, first: int, rows: Items, words: Ints, batch: int, gains: Gains
    ) -> None:
        """What people from number `first` on say to these slates, into that batch, if it is open."""
        last, done, room = first + len(rows), first, NARROW
        with self.sum.compiled_access(len(rows), batch=batch) as into:
            while into is not None and done < last:
                scratch, here = self._scratch_for(people, room), slice(done - first, None)
                done = gains.add_people(people.table, done, last, rows[here], words[here], scratch, into)
                room = 2 * len(scratch.items)

    def _scratch_for(self, people: People | Person, room: int) -> Contribution:
        """Scratch for one person after the other, made anew where there is not enough of it."""
        if isinstance(people, Person):
            size = int(largest_state(people.table, people.index, people.index + 1))
        else:
            size = people.largest_state
        leaves, kept = people.family.leaves, self._scratch
        if len(kept.items) < room or len(kept.state) < size or len(kept.bag.items) < leaves * self.n_items:
            self._scratch = new_contribution(self.n_items, leaves, size, self.size // self.n_items, room)
        return self._scratch
