"""Blocks of groups: which slate each round would show to a user of the group, and what is published of it. Public.

A block of one group has a *deck*: for every round from its first on the slate that is shown if the user of that round
is of the group. The place in the deck is the number of the round, so nobody is shown anything else because another
user came, or came with another context. The users of a slate may be *told apart* by parts of the group: then each
part has cells of its own.

Where contexts are private, a user who had another context might add to other cells. So these cells are *hidden*: one
more of them takes what she did not say, her share of a unit that is left; whoever answers adds exactly one unit, and
all noise has twice the scale (docs/maths/contexts-counts.md, Theorem B4). What is published of all cells of a slate
together is a noisy count of the users who answered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.learners.slates.blocks import (
    SlateBlock,
    numbers_per_slate,
    sensitivity_of,
)
from diminuendo.learners.slates.contexts.coming import Coming
from diminuendo.learners.slates.menu import remaining_same
from diminuendo.learners.slates.questions import Questions
from diminuendo.sums.private_counts import Counts
from diminuendo.types import Floats, Ints, Items

NOT_HERE = -1
"""In the place of a segment's part, where the segment is of another group."""
HIDDEN = 2
"""How much one answer moves hidden cells, in units: one where it was, and one where it might have been."""


@dataclass(frozen=True, eq=False)
class GroupBlock:
    """What the next rounds are for, as far as one group is concerned."""

    group: int
    block: SlateBlock
    """Its sizes are users of the group, about."""
    deck: Items
    """For each round, from the first on, the row of the slate that the group is shown."""
    parts: Ints
    """For each segment the part of the group that it is in, or NOT_HERE."""
    told: NDArray[np.bool_]
    """For each slate, whether its cells tell parts apart."""
    hidden: NDArray[np.bool_]
    """For each slate, whether its cells are hidden."""

    @cached_property
    def n_parts(self) -> int:
        """How many parts may be told apart."""
        return int(self.parts.max(initial=0)) + 1

    @cached_property
    def numbers(self) -> Ints:
        """How many numbers answers to each slate's question are."""
        return np.asarray(numbers_per_slate(self.block.questions, self.block.slates.shape[1]))

    @cached_property
    def widths(self) -> Ints:
        """How many cells each part of the users of each slate has."""
        return np.asarray(self.numbers + self.hidden)

    @cached_property
    def often(self) -> Ints:
        """For each slate, how many parts its cells tell apart: one where it is not told."""
        return np.where(self.told, self.n_parts, 1)

    @cached_property
    def starts(self) -> Ints:
        """The first cell of each slate; at last, the number of cells."""
        return np.concatenate([[0], np.cumsum(self.often * self.widths)])

    @property
    def sensitivity(self) -> Ints:
        """Of each cell, how much one user may move at most in all that might be hers."""
        each = np.where(self.hidden, HIDDEN, sensitivity_of(self.block.questions))
        return np.repeat(each, self.often * self.widths)

    def split(self, published: Floats) -> list[Floats]:
        """What was published, for each slate: (parts, cells)."""
        pieces = np.split(published, self.starts[1:-1])
        return [piece.reshape(-1, width) for piece, width in zip(pieces, self.widths, strict=True)]

    def packed(self) -> Ints:
        """The block in one array of whole numbers."""
        block = self.block
        sizes = [self.group, len(block.sizes), len(self.parts)]
        parts = (self.parts, self.told, self.hidden, block.slates.ravel(), block.sizes, block.questions)
        return np.concatenate([sizes, *parts, self.deck]).astype(np.int64)


def unpacked(kept: NDArray[Any], slots: int) -> GroupBlock:
    """The block that was put into one array."""
    group, many, segments = kept[:3].tolist()
    lengths = [segments, many, many, many * slots, many, many]
    parts, told, hidden, slates, sizes, questions, deck = np.split(kept[3:], np.cumsum(lengths))
    block = SlateBlock(slates.reshape(many, slots).astype(np.int32), sizes, questions)
    return GroupBlock(group, block, deck.astype(np.int32), parts, told.astype(bool), hidden.astype(bool))


@dataclass(frozen=True, eq=False)
class OpenGroupBlock:
    """A block of which nothing is published yet: its decks are shown, or it waits until its rounds are settled."""

    plan: GroupBlock
    first: int
    leading: Floats
    """Of the leading slate: its row, the share it should earn, the variance of that (planner.py)."""
    users: Ints
    """(slates, parts): how many users came whose answers count. Not kept where contexts are private."""
    seen_before: bool
    """Whether its rounds may have been seen before a restart: they are certain then, not drawn."""

    @property
    def end(self) -> int:
        """The round with which the group's next block begins."""
        return self.first + len(self.plan.deck)

    def cut(self, end: int, parts: Ints) -> OpenGroupBlock:
        """This block; if it is for users of these parts too, it ends with that round at the latest."""
        if self.end <= end or not ((parts != NOT_HERE) & (self.plan.parts != NOT_HERE)).any():
            return self
        return self.until(end)

    def until(self, end: int) -> OpenGroupBlock:
        """This block, which ends with that round."""
        return replace(self, plan=replace(self.plan, deck=self.plan.deck[: end - self.first]))

    def row_of(self, number: int, segment: int) -> int | None:
        """The row of the slate that a user of that segment was shown in that round; None if not of this block."""
        here = self.first <= number < self.end and self.plan.parts.item(segment) != NOT_HERE
        return self.plan.deck.item(number - self.first) if here else None

    @cached_property
    def chances(self) -> Floats:
        """For each round the chance of what the deck shows, among its rounds from that one on."""
        length = len(self.plan.deck)
        if self.seen_before:
            return np.full(length, np.nan)
        same = remaining_same(self.plan.block.slates, self.plan.deck)
        return np.asarray(same / (length - np.arange(length)))

    def record_arrivals(self, first: int, segments: Ints, counts: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Users of these segments came, from round `first` on; for each, whether her answer counts.

        Returns who counts and is not of this block.
        """
        turns, parts = np.arange(first, first + len(segments)) - self.first, self.plan.parts[segments]
        here = (turns >= 0) & (turns < len(self.plan.deck)) & (parts != NOT_HERE) & counts
        np.add.at(self.users, (self.plan.deck[turns[here]], parts[here]), 1)
        return np.asarray(counts & ~here)

    def rounds_of(self, silent: Ints) -> Ints:
        """How many rounds of the deck each slate has, without the `silent` ones, whose answers do not count."""
        many = len(self.plan.block.sizes)
        lost = np.bincount(self.plan.deck[silent - self.first], minlength=many)
        return np.asarray(np.bincount(self.plan.deck, minlength=many) - lost)

    def expected(self, silent: Ints, coming: Coming, users: Ints) -> Floats:
        """How many users of the group each slate has, whose answers count: as counted, in `users`, when they came.

        Where contexts are private, as many as its rounds and what was published before say.
        """
        if not coming.private:
            return np.asarray(users.reshape(len(self.plan.told), -1).sum(axis=1), dtype=np.float64)
        share = float(coming.shares()[self.plan.parts != NOT_HERE].sum())
        return np.asarray(self.rounds_of(silent) * share, dtype=np.float64)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """For a snapshot. The names are those of a format."""
        first = np.array([self.first])
        return {"plan": self.plan.packed(), "users": self.users, "leading": self.leading, "first": first}

    # Private: what users said, on its way into cells.

    def add_one(
        self, counts: Counts, lot: int, questions: Questions, row: int, segment: int, answer: Any
    ) -> None:
        """One answer of a user who was shown the slate of that row."""
        plan = self.plan
        part = plan.parts.item(segment) if plan.told[row] else 0
        start = plan.starts.item(row) + part * plan.widths.item(row)
        cell, ticks = questions.count_one(plan.block.questions.item(row), start, answer)
        counts.add_one(cell, ticks, lot)
        if plan.hidden[row]:
            counts.add_one(start + plan.numbers.item(row), counts.ticks - ticks, lot)

    def add_all(
        self, counts: Counts, lot: int, questions: Questions, first: int, segments: Ints, answers: NDArray[Any],
        responded: NDArray[np.bool_],
    ) -> None:  # fmt: skip
        """Add answers of users of rounds from `first` on; `responded`: who responds and is of the group."""
        plan, turns = self.plan, np.arange(len(segments)) + first - self.first
        here = np.flatnonzero(responded)
        rows = plan.deck[turns[here]]
        parts = np.where(plan.told[rows], plan.parts[segments[here]], 0)
        starts = plan.starts[rows] + parts * plan.widths[rows]
        places, ticks = questions.ticks_of(plan.block.questions[rows], answers[here])
        counts.add(starts + places, ticks, lot)
        hidden = plan.hidden[rows]
        counts.add((starts + plan.numbers[rows])[hidden], (counts.ticks - ticks)[hidden], lot)


def opened_from(plan: GroupBlock, found: dict[str, NDArray[Any]]) -> OpenGroupBlock:
    """The block as a snapshot holds it."""
    (first,) = found["first"].tolist()
    return OpenGroupBlock(plan, first, found["leading"], found["users"], seen_before=True)
