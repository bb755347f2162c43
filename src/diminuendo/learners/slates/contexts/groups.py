"""Groups: users of some segments who are shown slates by one plan; groups are split where segments differ. Public.

At first there is one group, of all users, and what is done for it is what would be done without contexts. Now and then
its best slate is shown with the users of its segments told apart. Where what was published says that segments differ
by more than noise, chance and a small share of their rewards, each segment of which enough users will come becomes a
group of its own, also if it was too small to be told apart: where some differ, others are likely to. It begins with the
beliefs of the group that it was in, as far as it is like that, which it learns (mcmc.py), and with what was published
of it before. The others stay together, and may be split later.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo import _snapshots
from diminuendo.learners.slates.blocks import SlateBlock
from diminuendo.learners.slates.contexts.blocks import NOT_HERE, GroupBlock, OpenGroupBlock
from diminuendo.learners.slates.likelihood import Observations
from diminuendo.learners.slates.planner import NO_LEADER, USERS_PER_SLATE, SlatePlanner
from diminuendo.learners.slates.posterior import N_DRAWS
from diminuendo.types import Floats, Ints, Items

TOLD_USERS = 12.0
"""Users of each segment, about, to whom a slate is shown when segments are told apart, times 1 + 1 / epsilon."""
LEAST_TOLD = 6.0
"""Segments of which fewer users come, times 1 + 1 / epsilon, are told apart as one."""
TOLD_SHARE = 0.015
"""Not more than this share of all users is shown a slate only to tell segments apart."""
AGAIN = 2
"""Where no slate leads yet, or for too few users, segments are told apart again when AGAIN times as many have come."""
MOST_PARTS = 64
"""No more parts of a group are told apart at once."""
SURE, VARIANCE = 4.0, 5.0
"""Segments differ when squares of standard deviations add up to SURE deviations more than their number; a square of
pure Laplace noise has the variance VARIANCE."""
LEAST_DIFFERENCE = 0.1
"""A segment's reward must differ, about, by this share of the reward."""
LEAST_GROUP = 1.0
"""A segment has a group of its own if this many times as many users will come as it takes to show all items once."""
WIDTH = 5.0, 7.5
"""Shape and scale of the inverse Gamma law of the squared width by which a segment's beliefs begin around others'."""
EXPLORES = 0.5
"""A segment's own group explores with this share of the users that a group of all users would take for it: it has
fewer users to make up for it, and begins with more knowledge."""
LONGEST = 2
"""No deck is longer than this many times the rounds that are left."""


class Group:
    """One plan for the users of some segments, and whether it is time to plan for some of them apart."""

    def __init__(self, planner: SlatePlanner, private: bool) -> None:
        self.planner, self.private = planner, private
        self.users = 0
        """How many users blocks were planned for: its clock."""
        self._tested = 0  # the clock when segments were last told apart
        self._evidence = np.zeros(4)  # squares, their number, what differs, and what that is compared with
        self._told = Observations(
            planner.n_items, planner.slots, planner.response_rate
        )  # of segments by themselves
        self._told_of: list[int] = []  # which segment each was about

    # What comes next.

    def plan(
        self, number: int, shares: Floats, members: NDArray[np.bool_], rounds_left: int, in_flight: int,
        rng: np.random.Generator,
    ) -> tuple[GroupBlock, Floats]:  # fmt: skip
        """The next block of group `number`, whose segments are `members`; and what its leading slate should earn."""
        planner, alone = self.planner, bool(members.all())
        share = 1.0 if alone else float(shares[members].sum())
        planner.horizon = self.users + max(1, round(share * rounds_left))
        planner.explores = EXPLORES if number else 1.0
        wanted = self._wanted(shares[members])
        block = planner.next_block(self.users, rng, in_flight)
        is_split, parts = np.zeros(len(block.sizes), dtype=np.bool_), np.where(members, 0, NOT_HERE)
        row = self._row_to_tell(block, wanted) if wanted and self.users > 0 else None
        if row is not None:
            block = self._telling(block, row, wanted)
            is_split = np.arange(len(block.sizes)) == row
            parts, self._tested = self._parts(shares, members, int(block.sizes[row])), self.users
        leading = planner.leading
        hidden = (
            is_split if alone else np.ones_like(is_split)
        )  # else a user could not be in other cells, whatever their context
        assigned = self._deck(block, share, rounds_left, rng)
        self.users += int(block.sizes.sum())
        planner.forget_leader()
        return GroupBlock(number, block, assigned, parts, is_split, hidden & self.private), leading

    def _row_to_tell(self, block: SlateBlock, wanted: int) -> int | None:
        """The leading slate, if it is shown to enough users; where none is, one that is added, now and then."""
        row = int(self.planner.leading[0])
        if row != NO_LEADER and block.sizes[row] >= wanted:
            return row
        return len(block.sizes) if self.users >= AGAIN * self._tested else None

    def _telling(self, block: SlateBlock, row: int, wanted: int) -> SlateBlock:
        """The block, with users of that slate told apart, and asked for one number: that has the least noise."""
        planner, slots = self.planner, self.planner.slots
        if row == len(block.sizes):
            best = planner.posterior.best(N_DRAWS, 2)
            slate, _, _ = planner.with_question(best, wanted)
            sizes, questions = np.append(block.sizes, wanted), np.append(block.questions, slots)
            return SlateBlock(np.vstack([block.slates, slate[None, :]]), sizes, questions)
        questions = np.where(np.arange(len(block.sizes)) == row, slots, block.questions)
        result = block._replace(questions=questions)
        planner.predict(result, block.slates[row], int(block.sizes[row]), slots)
        return result

    def _deck(self, block: SlateBlock, share: float, rounds_left: int, rng: np.random.Generator) -> Items:
        """As many rounds for each slate as bring the users it is for, about; shuffled."""
        each = min(1 / share, max(1.0, LONGEST * rounds_left / int(block.sizes.sum())))
        rounds = np.maximum(1, np.rint(block.sizes * each)).astype(np.int64)
        assigned = np.repeat(np.arange(len(rounds), dtype=np.int32), rounds)
        rng.shuffle(assigned)
        return assigned

    def _wanted(self, shares: Floats) -> int:
        """To how many users a slate is shown in order to tell segments apart; 0 where there is nothing to tell."""
        total = float(shares.sum())
        if len(shares) < 2 or total <= 0:
            return 0
        alike = total**2 / float((shares**2).sum())
        wanted = TOLD_USERS * (1 + 1 / self._told_epsilon) * alike
        most = TOLD_SHARE * (self.planner.horizon - int(self.planner.since[0]))
        return int(min(wanted, most) / self.planner.response_rate)

    @property
    def _told_epsilon(self) -> float:
        """What cells that are told apart cost one round; noise has twice the scale where contexts are private."""
        return self.planner.noise.epsilon / (2 if self.private else 1)

    def _parts(self, shares: Floats, members: NDArray[np.bool_], users: int) -> Ints:
        """Large segments by themselves, and all others together, if there are any."""
        part_of = shares / shares[members].sum() * users
        least = LEAST_TOLD * (1 + 1 / self._told_epsilon)
        large = np.flatnonzero(members & (part_of >= least))
        large = np.sort(large[np.argsort(-part_of[large], kind="stable")][: MOST_PARTS - 1])
        parts, others = np.where(members, 0, NOT_HERE), int(len(large) < np.count_nonzero(members))
        parts[large] = np.arange(len(large)) + others
        return parts

    # What was published.

    def add(
        self, opened: OpenGroupBlock, published: list[Floats], users: Floats, unsure: Floats, noisy: Floats
    ) -> bool:
        """A block was published: for each slate (parts, numbers) and, alike, how many users that is about.

        `unsure`: the variance of these numbers of users; `noisy`: the scale of the noise of each slate's numbers.
        Whether so much less was published that all is forgotten.
        """
        plan, block = opened.plan, opened.plan.block
        whole = block._replace(sizes=np.rint(users.sum(axis=1)).astype(np.int64))
        together = [numbers.sum(axis=0) for numbers in published]
        spread = [
            (scale * math.sqrt(len(numbers)), float(strange.sum()))
            for scale, numbers, strange in zip(noisy, published, unsure, strict=True)
        ]
        for row in np.flatnonzero(plan.is_split).tolist():
            self._compare(plan, row, published[row], users[row], unsure[row], float(noisy[row]))
        drifted = bool(self.planner.add(whole, together, self.users, opened.leading, spread))
        if drifted:
            self._evidence[:] = 0
        return drifted

    def _compare(
        self, plan: GroupBlock, row: int, numbers: Floats, users: Floats, unsure: Floats, scale: float
    ) -> None:
        """Do the parts that are told apart differ? Numbers of segments by themselves are kept for their own groups."""
        said, many = numbers.sum(axis=1), np.maximum(users * self.planner.response_rate, 1e-9)
        rate = float(np.clip(said.sum() / many.sum(), 1e-3, 1 - 1e-3))
        variance = many * rate * (1 - rate) + unsure * rate**2 + 2 * numbers.shape[1] * scale**2
        off = said - many * rate
        self._evidence += (
            (off**2 / variance).sum(), len(said) - 1, (off**2 - variance).sum(), ((many * rate) ** 2).sum(),
        )  # fmt: skip
        for part in range(plan.n_parts):
            whose = np.flatnonzero(plan.parts == part)
            if len(whose) == 1 and round(users[part]) > 0:
                slate, question = plan.block.slates[row], int(plan.block.questions[row])
                self._told.add(slate, question, round(users[part]), numbers[part], scale, float(unsure[part]))
                self._told_of.append(int(whose[0]))

    def differs(self) -> bool:
        """Whether what was published says that segments differ, and by enough to matter."""
        squares, many, differing, compared = self._evidence
        sure = squares - many > SURE * math.sqrt(VARIANCE * many)
        return bool(many > 0 and sure and differing > LEAST_DIFFERENCE**2 * compared)

    def to_split(self, shares: Floats, members: NDArray[np.bool_], rounds_left: int) -> Ints:
        """The segments of which enough users will come for a plan of their own, the largest first."""
        planner = self.planner
        look = math.ceil(planner.n_items / planner.slots) * USERS_PER_SLATE * (1 + 1 / self._told_epsilon)
        enough = shares * rounds_left * planner.response_rate >= LEAST_GROUP * look
        result = np.flatnonzero(members & enough)
        return np.asarray(result[np.argsort(-shares[result], kind="stable")])

    def begin(self, segment: int, planner: SlatePlanner) -> Group:
        """A group of one segment, with these beliefs and what was published of it."""
        group = Group(planner, self.private)
        planner.posterior.begin_from(self.planner.posterior, WIDTH)
        for whose, published in zip(self._told_of, self._told.published, strict=True):
            if whose == segment:
                planner.posterior.add(*published)
        return group

    def forget_segments(self) -> None:
        """Some segments have left: what was told of all of them says nothing of those who stay."""
        self._evidence[:], self._told_of = 0, []
        self._told.forget()

    # What a snapshot holds.

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The names are those of a format."""
        is_split = {f"told.{name}": part for name, part in self._told.arrays().items()}
        mine = {
            "clock": np.array([self.users, self._tested, int(self.planner.since[0])]),
            "evidence": self._evidence,
            "told.of": np.array(self._told_of, dtype=np.int64),
        }
        return self.planner.arrays() | is_split | mine

    def take(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take what `arrays` gave."""
        clock, self._evidence = arrays.pop("clock"), arrays.pop("evidence")
        self._told_of = arrays.pop("told.of").tolist()
        self._told.take(_snapshots.taken(arrays, "told"))
        self.planner.take(arrays)
        self.users, self._tested, self.planner.since[0] = clock.tolist()
