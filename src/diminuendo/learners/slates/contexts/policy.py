r"""The policy of slates where contexts are known: each group of users has blocks of its own, and a deck for each.

What is said of `SlatePolicy` (slates/policy.py) holds here, with these differences. A block is for one group, and has a
deck: the slate that is shown in each round, if the user of that round is of the group. Blocks of different groups
begin and end at rounds of their own, by the number of rounds issued, whichever users came. Groups are split by what was
published (groups.py).

Guarantee  (epsilon, 0): of everything, where contexts are public; of what all others see, context and answer together,
           where they are private (docs/maths/contexts-counts.md, Theorems B3 and B4).
Assumes    one answer per round; who comes when does not depend on what a user said, nor on a private context.
Memory     the cells of open blocks, and their decks: a number for each round and group.
Excludes   timing, and the memory of the process.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo import _snapshots
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.slates.contexts.blocks import (
    GroupBlock,
    OpenGroupBlock,
    opened_from,
    unpacked,
)
from diminuendo.learners.slates.contexts.group_sizes import estimate_group_sizes
from diminuendo.learners.slates.contexts.groups import Group
from diminuendo.learners.slates.contexts.menu import SlatesByGroup
from diminuendo.learners.slates.contexts.segments import SegmentShares
from diminuendo.learners.slates.planner import NO_LEADER, nobody_leads
from diminuendo.learners.slates.question_policy import QuestionPolicy
from diminuendo.learners.slates.questions import KnownBeforehand, Questions
from diminuendo.learners.slates.rewards import new_signal, take_stock
from diminuendo.privacy.budget import Budget
from diminuendo.streams.users import Users
from diminuendo.sums.private_counts import Counts
from diminuendo.types import Floats, Ints, Items

MOST_GROUPS = 64
"""No more groups are planned for."""


class GroupedSlatePolicy(QuestionPolicy):
    """Plans blocks for groups, assigns their rounds, and publishes users' answers."""

    def __init__(
        self, frame: Frame, budget: Budget, counts: Counts, questions: Questions, known: KnownBeforehand
    ) -> None:
        super().__init__(frame, budget, counts, questions, known)
        assert frame.contexts is not None
        self._private = frame.contexts.private
        self.proof = "docs/maths/contexts-counts.md, Theorem " + ("B4" if self._private else "B3")
        self.segment_shares = SegmentShares(frame.contexts)
        self.groups = [Group(self._planner(), self._private)]
        self.signal = new_signal(self.groups[0].planner, known.horizon)
        self.group_of: Ints = np.zeros(self.segment_shares.n_segments, dtype=np.int64)
        """The group of each segment."""
        self._blocks: list[OpenGroupBlock] = []  # each has its histogram, in the same order
        self._shown: dict[int, OpenGroupBlock] = {}  # by group, the block that is shown, or was shown last
        self._update_menu()

    # Public: the assignments of all groups.

    def _menu(self, first: int, end: int, slates: Items, decks: Items, chances: Floats) -> SlatesByGroup:
        frame, groups = self.frame, self.group_of[self.segment_shares.segment_of]
        sizes = frame.n_items, frame.slots, first, end, frame.public.passed
        ranked = [self.items.ranking(group.planner.posterior.appeals) for group in self.groups]
        rankings = [each for each in ranked if each is not None]
        return SlatesByGroup(
            *sizes, groups, slates, decks, chances,
            lists=self.items.lists_for_exclusions(), rankings=np.stack(rankings) if rankings else None,
        )  # fmt: skip

    def _update_menu(self) -> None:
        """Make the menu of the rounds that all groups have decks for."""
        first, none = self.frame.rounds, np.zeros((0, self.frame.slots), dtype=np.int32)
        end, rows, slates, decks, chances = max(first, self._end()), 0, [none], [], []
        for number in range(len(self.groups)):
            shown = self._shown.get(number)
            if shown is None or shown.end < end or shown.first > first:  # of no user
                decks.append(np.zeros(end - first, dtype=np.int32))
                chances.append(np.full(end - first, np.nan))
                continue
            here = slice(first - shown.first, end - shown.first)
            decks.append(shown.plan.assigned[here] + np.int32(rows))
            chances.append(shown.chances[here] if not self._private else decks[-1])
            slates.append(shown.plan.block.slates)
            rows += len(slates[-1])
        said = np.zeros((0, end - first)) if self._private else np.stack(chances)
        self._chooser = self._menu(first, end, np.concatenate(slates), np.stack(decks), said).chooser()

    def _end(self) -> int:
        """The first round for which some group has no deck."""
        known = np.unique(self.group_of).tolist()
        return min(self._shown[group].end if group in self._shown else 0 for group in known)

    def record_arrivals(self, first: int, types: Ints, counts: NDArray[np.bool_]) -> None:
        """Count public contexts: of how many users something is published. Private ones are not counted."""
        if self._private:
            return
        segments = self.segment_shares.segment_of[types]
        self.segment_shares.saw(segments)
        for block in reversed(self._blocks):
            counts = block.record_arrivals(first, segments, counts)

    # Public: the items change.

    def _items_changed(self) -> None:
        """Blocks end now, if one of their slates has items that are gone, or lacks pinned ones."""
        rounds = self.frame.rounds
        for place, block in enumerate(self._blocks):
            if block.end > rounds and not self._builder.obeyed(block.plan.block.slates):
                self._blocks[place] = cut = block.until(rounds)
                if self._shown.get(block.plan.group) is block:
                    self._shown[block.plan.group] = cut
        self._update_menu()

    # The privacy boundary: a block's counts are charged, drawn once and stored before they are seen, then forgotten.

    def due(self) -> bool:
        """Whether a block can be published, or a group has nothing to be shown."""
        return self._settled() is not None or self._shown_out()

    def _settled(self) -> int | None:
        """The place of the block that is settled and ended first."""
        ends = [(block.end, place) for place, block in enumerate(self._blocks)]
        end, place = min(ends, default=(self._horizon + 1, 0))
        return place if end <= self.frame.closed else None

    def _shown_out(self) -> bool:
        """Whether all rounds of some group's blocks have been chosen, and others are to come."""
        return self.frame.rounds != self._horizon and self._end() <= self.frame.rounds

    def release(self) -> None:
        """Publish a block that is settled; or plan the next block of a group that has nothing to show."""
        frame, place = self.frame, self._settled()
        if place is not None:
            users = self._blocks[place].users.ravel()
            if not self._private:
                users = self._counts.known(users.copy, frame.secret, place)
            published = self._counts.release(frame.secret, place)
            with frame.guard.learning():
                self._take_in(place, published, users)
            return
        with frame.guard.lock:  # first: if there is no randomness, nothing has happened yet
            word = int(frame.public.take(1)[0])
        with frame.guard.learning():
            rng = np.random.Generator(np.random.Philox(word))
            plan, leading = self._plan(rng)
        self._begin(plan, leading)

    def _take_in(self, place: int, published: Floats, users: Ints) -> None:
        """Condition on what was published about a block, and forget what its users said."""
        opened, frame = self._blocks[place], self.frame
        group, plan = self.groups[opened.plan.group], opened.plan
        noisy = [
            self._scale(each) if self._counts.noisy else 0.0 for each in plan.sensitivity[plan.starts[:-1]]
        ]
        answers = opened.expected(frame.silent_rounds(opened.first, opened.end), self.segment_shares, users)
        result = estimate_group_sizes(
            opened, plan.split(published), users, np.array(noisy), self.segment_shares, frame
        )
        drifted = group.add(opened, *result)
        total, many = float(sum(each.sum() for each in result[0])), round(float(answers.sum()))
        # A group that was split off begins with random slates, and nothing leads there.
        take_stock(
            self.signal, self._counts, frame, opened.first, plan.block.questions,
            frame.feedback_window.response_rate * answers, total, many, often=plan.often, hidden=plan.hidden,
            drifted=drifted,
            at_random=len(self.groups) > 1 and bool(opened.leading[0] == NO_LEADER),
        )  # fmt: skip
        with frame.guard.answers, frame.guard.lock:
            self._counts.forget(place)
            del self._blocks[place]

    def _plan(self, rng: np.random.Generator) -> tuple[GroupBlock, Floats]:
        """The next block of the first group that has nothing to show; it is split first, if that is due."""
        shares, rounds = self.segment_shares.shares(), self.frame.rounds
        left = (self._horizon if self._known.horizon else self.groups[0].planner.expected(rounds)) - rounds
        number = self._waiting()
        if self.groups[number].differs():
            self._split(number, self.groups[number].to_split(shares, self.group_of == number, left))
            number = self._waiting()
        open_now = [block.plan for block in self._blocks if block.plan.group == number]
        in_flight = sum(int(plan.block.sizes.sum()) for plan in open_now)
        return self.groups[number].plan(number, shares, self.group_of == number, left, in_flight, rng)

    def _waiting(self) -> int:
        """The first group of users that has nothing to show."""
        known: list[int] = np.unique(self.group_of).tolist()
        rounds = self.frame.rounds
        return next(each for each in known if each not in self._shown or self._shown[each].end <= rounds)

    def _split(self, number: int, segments: Ints) -> None:
        """Give each of these segments of a group a group of its own."""
        segments = segments[: MOST_GROUPS - len(self.groups)]
        if not len(segments):
            return
        whole, first = self.groups[number], len(self.groups)
        made = [whole.begin(segment, self._planner(self._private)) for segment in segments.tolist()]
        with self.frame.guard.lock:  # users go on coming: no segment is in a group that is not there
            self.groups += made
            self.group_of[segments] = first + np.arange(len(made))
        if self._private:
            whole.planner.noise = self._planner(hidden=True).noise
        whole.forget_segments()

    def _begin(self, plan: GroupBlock, leading: Floats) -> None:
        """Keep this block and go on with it; or with another, if one was kept before a crash."""
        mine, drawn, frame = plan.packed(), [], self.frame

        def draw() -> Ints:
            drawn.append(True)
            return mine

        kept = self._counts.planned(draw, frame.secret)
        same = np.array_equal(kept, mine)
        if not same:
            plan, leading = unpacked(kept, frame.slots), nobody_leads()
            if not self._builder.obeyed(plan.block.slates):  # items have come or gone since
                with frame.guard.answers, frame.guard.lock:
                    self._counts.skip()
                return
            self._adopt(plan)
        with frame.guard.answers, frame.guard.lock:
            users = np.zeros((len(plan.is_split), plan.n_parts), dtype=np.int64)
            self._show(OpenGroupBlock(plan, frame.rounds, leading, users, not (drawn and same)))

    def _adopt(self, plan: GroupBlock) -> None:
        """A block was planned before a crash for a group that was formed then: form it again.

        What its users are shown otherwise ends now: no user is in two blocks.
        """
        while len(self.groups) <= plan.group:
            self.groups.append(self.groups[0].begin(-1, self._planner(self._private)))
        self.group_of[plan.parts >= 0] = plan.group
        with self.frame.guard.answers, self.frame.guard.lock:
            cut = {block: block.cut(self.frame.rounds, plan.parts) for block in self._blocks}
            self._blocks = list(cut.values())
            self._shown = {group: cut.get(block, block) for group, block in self._shown.items()}

    def _show(self, opened: OpenGroupBlock) -> None:
        """Go on with this block of a group."""
        frame, plan = self.frame, opened.plan
        blocks, shown = [*self._blocks, opened], self._shown | {plan.group: opened}
        with frame.guard.learning():  # each block has its cells
            self._counts.open(plan.sensitivity)
            self._blocks, self._shown = blocks, shown
            self._update_menu()

    def filler(self, kind: int = 0) -> Items:
        """What a user of the type `kind` is shown where no round can be had."""
        group = int(self.group_of[self.segment_shares.segment_of[kind]])
        shown, builder = self._shown.get(group, self._shown.get(0)), self._builder
        if shown is None:
            return builder.any_slate()
        leading = shown.plan.block.slates[max(0, int(shown.leading[0]))]
        return builder.mended(leading, self.groups[group].planner.posterior.appeals)

    # Private: answers become ticks in the cells of open blocks.

    def learn(self, place: int, answer: Any) -> None:
        """Count feedback in the cells of its slate; if the block was published, it is dropped.

        So it is if the user excludes items and was shown another slate: the place in the block is used up.
        """
        decisions, exclusions = self.frame.decisions, self.frame.exclusions
        number, segment = (
            decisions.round_at(place),
            int(self.segment_shares.segment_of[decisions.types[place]]),
        )
        for histogram in reversed(
            range(len(self._blocks))
        ):  # the last one that was opened for the user: no user is in two
            block = self._blocks[histogram]
            row = block.row_of(number, segment)
            if row is not None:
                if not exclusions or (decisions.rows[place] == block.plan.block.slates[row]).all():
                    block.add_one(self._counts, histogram, self._questions, row, segment, answer)
                return

    def replay(self, users: Users, slates: Items, done: int) -> int:
        """To the end of the menu, or until a block can be published: all users before are counted by then."""
        frame = self.frame
        ends = [frame.published_at(block.end) or self._end() for block in self._blocks]
        stop = min(len(users), done + min(self._end(), *ends) - frame.rounds)
        self.draw_rows(slates[done:stop])
        segments = self.segment_shares.segment_of[frame.coming[: stop - done]]
        responded = (
            np.ones(stop - done, dtype=np.bool_)
            if frame.response_mask is None
            else frame.response_mask[: stop - done]
        )
        answers = self._questions.answers(users, done, slates[done:stop])
        for histogram, block in enumerate(self._blocks):
            if self._shown.get(block.plan.group) is block and block.end > frame.rounds:
                theirs = responded & (self.group_of[segments] == block.plan.group)
                if frame.exclusions:
                    assigned = block.plan.assigned[frame.rounds - block.first :][: stop - done]
                    theirs &= (slates[done:stop] == block.plan.block.slates[assigned]).all(axis=1)
                block.add_all(
                    self._counts, histogram, self._questions, frame.rounds, segments, answers, theirs
                )
        return stop

    # What a snapshot holds. The names are those of a format.

    def extra(self) -> dict[str, NDArray[Any]]:
        """The open blocks and their cells, who came, the groups, and what was learned about each."""
        result = {"group_of": self.group_of, "health": self.signal.array}
        result |= {**self.segment_shares.arrays(), **self.items.changed()}
        result |= {f"counts.{name}": part for name, part in self._counts.arrays().items()}
        for number, group in enumerate(self.groups):
            result |= {f"group.{number}.{name}": part for name, part in group.arrays().items()}
        for number, block in enumerate(self._blocks):
            result |= {f"block.{number}.{name}": part for name, part in block.arrays().items()}
        return result

    def take_extra(self, extra: dict[str, NDArray[Any]]) -> None:
        """Go on with the open blocks and the groups."""
        self.items.take_changed(extra)
        self.signal.take(extra.pop("health", None))
        self.segment_shares.take(extra)
        counts = _snapshots.taken(extra, "counts")
        self.group_of = extra.pop("group_of")
        while group := _snapshots.taken(extra, f"group.{len(self.groups) - 1}"):
            self.groups[-1].take(group)
            self.groups.append(Group(self._planner(self._private), self._private))
        del self.groups[-1]
        if self._private and len(self.groups) > 1:
            self.groups[0].planner.noise = self.groups[1].planner.noise
        while block := _snapshots.taken(extra, f"block.{len(self._blocks)}"):
            plan = unpacked(block.pop("plan"), self.frame.slots)
            self._show(opened_from(plan, block))
        self._counts.take(counts)
        self._update_menu()
