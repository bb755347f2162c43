r"""The policy of slates where contexts are known: each group of users has blocks of its own, and a deck for each.

What is said of `SlatePolicy` (slates/policy.py) holds here, with these differences. A block is for one group, and has a
deck: the slate that is shown in each round, if the user of that round is of the group. Blocks of different groups
begin and end at rounds of their own, by the number of rounds issued, whoever came. Groups are split by what was
published (groups.py).

Guarantee  (epsilon, 0): of everything, where contexts are public; of what all others see, context and answer together,
           where they are private (docs/maths/contexts-counts.md, Theorems B3 and B4).
Assumes    one answer per round; who comes when does not depend on what a user said, nor on a private context.
Memory     the cells of open blocks, and their decks: a number for each round and group.
Excludes   timing, and the memory of the process.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo import _snapshots
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.menu import Chooser
from diminuendo.learners.base.policy import MenuPolicy
from diminuendo.learners.health import Signal
from diminuendo.learners.slates.builder import SlateBuilder
from diminuendo.learners.slates.contexts.blocks import (
    HIDDEN,
    GroupBlock,
    OpenGroupBlock,
    opened_from,
    unpacked,
)
from diminuendo.learners.slates.contexts.coming import Coming
from diminuendo.learners.slates.contexts.groups import Group
from diminuendo.learners.slates.contexts.menu import SlatesByGroup
from diminuendo.learners.slates.contexts.understood import understood
from diminuendo.learners.slates.planner import NO_LEADER, SlatePlanner, nobody_leads
from diminuendo.learners.slates.questions import KnownBeforehand, Noise, Questions
from diminuendo.learners.slates.rewards import new_signal, take_stock
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Laplace
from diminuendo.streams.users import Users
from diminuendo.sums.private_counts import Counts
from diminuendo.types import Floats, Ints, Items

MOST_GROUPS = 64
"""No more groups are planned for."""


class GroupedSlatePolicy(MenuPolicy):
    """Plans blocks for groups, deals their decks, and publishes what users said; `asked` is what was asked for."""

    purpose, remote_rounds = "one question to each user", True
    signal: Signal

    def __init__(
        self, frame: Frame, asked: Budget, counts: Counts, questions: Questions, known: KnownBeforehand
    ) -> None:
        if frame.horizon is None or frame.contexts is None:
            raise InvalidInput(f"{frame.name!r} plans for a number of rounds and for contexts; give both.")
        self.frame, self.reader = frame, questions.reader
        self.budget = asked if counts.noisy else None
        self._epsilon, self._horizon, self._private = asked.epsilon, frame.horizon, frame.contexts.private
        self.proof = "docs/maths/contexts-counts.md, Theorem " + ("B4" if self._private else "B3")
        self._counts, self._questions, self._builder = counts, questions, SlateBuilder(known.items)
        self.items, self._known = known.items, known
        self.coming = Coming(frame.contexts)
        self.groups = [Group(self._planner(hidden=False), self._private)]
        self.signal = new_signal(self.groups[0].planner, known.horizon)
        self.group_of: Ints = np.zeros(self.coming.n_segments, dtype=np.int64)
        """The group of each segment."""
        self._blocks: list[OpenGroupBlock] = []  # each has its lot of cells, in the same order
        # Of a release that was begun: the place of its block, what was published, and of how many users.
        self._published: tuple[int, Floats, Ints] | None = None
        self._shown: dict[int, OpenGroupBlock] = {}  # by group, the block that is shown, or was shown last
        self._deal()

    def _planner(self, hidden: bool) -> SlatePlanner:
        frame, questions = self.frame, self._questions
        scales = {each: self._scale(each) for each in questions.sensitivities}
        noise = Noise(float(self._counts.event.epsilon), scales, self._counts.noisy)
        if hidden:
            hard = {each: self._scale(HIDDEN) for each in questions.sensitivities}
            noise = Noise(noise.epsilon / HIDDEN, hard, self._counts.noisy)
        return SlatePlanner(
            frame.n_items, frame.slots, self._horizon, questions, noise,
            ahead=frame.feedback_window.ahead, response_rate=frame.feedback_window.response_rate, builder=self._builder,
            prior=self._known.prior,
        )  # fmt: skip

    def _scale(self, sensitivity: int) -> float:
        return self._counts.scale(sensitivity) / self._counts.ticks

    # What is promised.

    @property
    def events(self) -> Laplace | None:
        """What the whole run costs one round: as much as one block, for none is in two."""
        return self._counts.event if self._counts.noisy else None

    # Public: the decks of all groups.

    @property
    def chooser(self) -> Chooser:
        """Shows each round the slate of its user's group."""
        return self._chooser

    def _menu(self, first: int, end: int, slates: Items, decks: Items, chances: Floats) -> SlatesByGroup:
        frame, groups = self.frame, self.group_of[self.coming.segment_of]
        sizes = frame.n_items, frame.slots, first, end, frame.public.passed
        ranked = [self.items.ranking(group.planner.posterior.appeals) for group in self.groups]
        rankings = [each for each in ranked if each is not None]
        return SlatesByGroup(
            *sizes, groups, slates, decks, chances,
            lists=self.items.lists_for_exclusions(), rankings=np.stack(rankings) if rankings else None,
        )  # fmt: skip

    def _deal(self) -> None:
        """Make the menu of the rounds that all groups have decks for."""
        first, none = self.frame.rounds, np.zeros((0, self.frame.slots), dtype=np.int32)
        end, rows, slates, decks, chances = max(first, self._end()), 0, [none], [], []
        for number in range(len(self.groups)):
            shown = self._shown.get(number)
            if shown is None or shown.end < end or shown.first > first:  # of nobody
                decks.append(np.zeros(end - first, dtype=np.int32))
                chances.append(np.full(end - first, np.nan))
                continue
            here = slice(first - shown.first, end - shown.first)
            decks.append(shown.plan.deck[here] + np.int32(rows))
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
        """Count public contexts: of how many users something is published. Nobody counts private ones."""
        if self._private:
            return
        segments = self.coming.segment_of[types]
        self.coming.saw(segments)
        for block in reversed(self._blocks):
            counts = block.record_arrivals(first, segments, counts)

    # Public: the items change.

    def appear(self, items: Iterable[int]) -> None:
        """These items are there from now on, and are tried from each group's next block on."""
        self.items.appear(items, 0)
        self._items_changed()

    def retire(self, items: Iterable[int]) -> None:
        """These items are not shown any more."""
        self.items.retire(items, 0)
        self._items_changed()

    def _items_changed(self) -> None:
        """Blocks end now, if one of their slates has items that are gone, or lacks pinned ones."""
        rounds = self.frame.rounds
        for place, block in enumerate(self._blocks):
            if block.end > rounds and not self._builder.obeyed(block.plan.block.slates):
                self._blocks[place] = cut = block.until(rounds)
                if self._shown.get(block.plan.group) is block:
                    self._shown[block.plan.group] = cut
        self._deal()

    # The door: a block's counts are paid for, drawn once and durable before they are seen, and then forgotten.

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
        if place is not None or self._published is not None:
            if self._published is None and place is not None:
                users = self._blocks[place].users.ravel()
                if not self._private:
                    users = self._counts.known(users.copy, frame.secret, place)
                self._published = place, self._counts.release(frame.secret, place), users
            with frame.guard.learning():
                self._take_in()
            return
        with frame.guard.lock:  # first: without coins nothing has happened yet
            word = int(frame.public.take(1)[0])
        with frame.guard.learning():
            rng = np.random.Generator(np.random.Philox(word))
            plan, leading = self._plan(rng)
        self._begin(plan, leading)

    def _take_in(self) -> None:
        """Believe what was published about a block, and forget what its users said."""
        assert self._published is not None
        place, published, users = self._published
        opened, frame = self._blocks[place], self.frame
        group, plan = self.groups[opened.plan.group], opened.plan
        noisy = [
            self._scale(each) if self._counts.noisy else 0.0 for each in plan.sensitivity[plan.starts[:-1]]
        ]
        answers = opened.expected(frame.silent_rounds(opened.first, opened.end), self.coming, users)
        result = understood(opened, plan.split(published), users, np.array(noisy), self.coming, frame)
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
            self._published = None

    def _plan(self, rng: np.random.Generator) -> tuple[GroupBlock, Floats]:
        """The next block of the first group that has nothing to show; it is split first, if that is due."""
        shares, rounds = self.coming.shares(), self.frame.rounds
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
            users = np.zeros((len(plan.told), plan.n_parts), dtype=np.int64)
            self._show(OpenGroupBlock(plan, frame.rounds, leading, users, not (drawn and same)))

    def _adopt(self, plan: GroupBlock) -> None:
        """A block was planned before a crash for a group that was formed then: form it again.

        What its users are shown otherwise ends now: nobody is in two blocks.
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
            self._deal()

    def fill(self, row: Items) -> bool:
        """The leading slate of her group's last block; where none leads, its first; before there is one, any items."""
        if not self._shown_out():
            return False
        row[:] = self.filler(int(self.frame.coming[0]) if len(self.frame.coming) else 0)
        self.leave_out(row[None, :], self.frame.coming[:1])
        return True

    def filler(self, kind: int = 0) -> Items:
        """What somebody of the type `kind` is shown where no round of a deck can be had."""
        group = int(self.group_of[self.coming.segment_of[kind]])
        shown, builder = self._shown.get(group, self._shown.get(0)), self._builder
        if shown is None:
            return builder.any_slate()
        leading = shown.plan.block.slates[max(0, int(shown.leading[0]))]
        return builder.mended(leading, self.groups[group].planner.posterior.appeals)

    # Private: answers become ticks in the cells of open blocks.

    def learn(self, place: int, answer: Any) -> None:
        """Count her answer in the cells of her slate; if her block was published, she has said nothing.

        Nor has she if she excludes something and was shown another slate: her place in the deck is used up.
        """
        decisions, exclusions = self.frame.decisions, self.frame.exclusions
        number, segment = decisions.round_at(place), int(self.coming.segment_of[decisions.types[place]])
        for lot in reversed(
            range(len(self._blocks))
        ):  # the last one that was opened for her: nobody is in two
            block = self._blocks[lot]
            row = block.row_of(number, segment)
            if row is not None:
                if not exclusions or (decisions.rows[place] == block.plan.block.slates[row]).all():
                    block.add_one(self._counts, lot, self._questions, row, segment, answer)
                return

    def replay(self, users: Users, slates: Items, done: int) -> int:
        """To the end of the menu, or until a block can be published: everybody before is counted by then."""
        frame = self.frame
        ends = [frame.published_at(block.end) or self._end() for block in self._blocks]
        stop = min(len(users), done + min(self._end(), *ends) - frame.rounds)
        self.draw_rows(slates[done:stop])
        segments = self.coming.segment_of[frame.coming[: stop - done]]
        responded = (
            np.ones(stop - done, dtype=np.bool_)
            if frame.response_mask is None
            else frame.response_mask[: stop - done]
        )
        answers = self._questions.answers(users, done, slates[done:stop])
        for lot, block in enumerate(self._blocks):
            if self._shown.get(block.plan.group) is block and block.end > frame.rounds:
                theirs = responded & (self.group_of[segments] == block.plan.group)
                if frame.exclusions:
                    deck = block.plan.deck[frame.rounds - block.first :][: stop - done]
                    theirs &= (slates[done:stop] == block.plan.block.slates[deck]).all(axis=1)
                block.add_all(self._counts, lot, self._questions, frame.rounds, segments, answers, theirs)
        return stop

    # What a snapshot holds. The names are those of a format.

    def config(self) -> dict[str, Any]:
        """The epsilon that was asked for, and what is known of items beforehand."""
        return (
            {"epsilon": self._epsilon}
            | self._known.config()
            | ({} if self._counts.noisy else {"private": False})
        )

    def extra(self) -> dict[str, NDArray[Any]]:
        """The open blocks and their cells, who came, the groups, and what was learned about each."""
        if self._published is not None:
            raise InvalidInput("A release is under way; call choose() again before a snapshot.")
        result = {"group_of": self.group_of, "health": self.signal.array}
        result |= {**self.coming.arrays(), **self.items.changed()}
        result |= {f"counts.{name}": part for name, part in self._counts.arrays().items()}
        for number, group in enumerate(self.groups):
            result |= {f"group.{number}.{name}": part for name, part in group.arrays().items()}
        for number, block in enumerate(self._blocks):
            result |= {f"block.{number}.{name}": part for name, part in block.arrays().items()}
        return result

    def take_extra(self, found: dict[str, NDArray[Any]]) -> None:
        """Go on with the open blocks and the groups."""
        self.items.take_changed(found)
        self.signal.take(found.pop("health", None))
        self.coming.take(found)
        counts = _snapshots.taken(found, "counts")
        self.group_of = found.pop("group_of")
        while group := _snapshots.taken(found, f"group.{len(self.groups) - 1}"):
            self.groups[-1].take(group)
            self.groups.append(Group(self._planner(self._private), self._private))
        del self.groups[-1]
        if self._private and len(self.groups) > 1:
            self.groups[0].planner.noise = self.groups[1].planner.noise
        while block := _snapshots.taken(found, f"block.{len(self._blocks)}"):
            plan = unpacked(block.pop("plan"), self.frame.slots)
            self._show(opened_from(plan, block))
        if found:
            raise InvalidInput("The snapshot holds more than this learner keeps; it was altered.")
        self._counts.take(counts)
        self._deal()
