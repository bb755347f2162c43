r"""The policy of slates: each round is assigned to one slate of the open block, and its user is asked one question.

A *block* is a few slates, how many rounds each is shown, and what its users are asked. Its rounds are assigned to its
slates by a shuffle with public coins. Answers are added up per slate. When all rounds of the block are settled the sums
are published once with noise (sums/private_counts.py), and forgotten. Where answers come late, the next block begins
before that: it is planned, as every block, from all that was published by then, and several are open at once.
Every slate and every plan is post-processing of what was published, so it costs nothing, and propensities are public.
After a restart an assignment that was kept goes on: what it shows may have been seen before, so its rounds have no
propensity.

Guarantee  (epsilon, 0), whatever users say, and whether they say it or not (docs/maths/counts.md, Theorem B2).
Assumes    one answer per round. What comes after its block has closed has said nothing.
Memory     the open block's cells: a few numbers per slate.
Excludes   timing, and the memory of the process.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo import _snapshots
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.entry import Shape
from diminuendo.learners.base.feedback_window import Patient
from diminuendo.learners.base.frame import LONGEST, Frame
from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.menu import Chooser
from diminuendo.learners.base.policy import MenuPolicy
from diminuendo.learners.base.setting import checked_prior
from diminuendo.learners.health import Signal
from diminuendo.learners.slates.blocks import (
    SlateBlock,
    no_block,
    numbers_per_slate,
    packed,
    sensitivity_of,
    unpacked,
)
from diminuendo.learners.slates.builder import SlateBuilder
from diminuendo.learners.slates.contexts.policy import GroupedSlatePolicy
from diminuendo.learners.slates.menu import AssignedSlates
from diminuendo.learners.slates.open_blocks import OpenBlock, blocks_as_arrays, blocks_from_arrays
from diminuendo.learners.slates.planner import USERS_PER_SLATE, SlatePlanner, nobody_leads
from diminuendo.learners.slates.questions import KnownBeforehand, Noise, Questions
from diminuendo.learners.slates.rewards import new_signal, take_stock
from diminuendo.offline.rules import SlateRules, as_rules
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Laplace
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.sources import RandomSource
from diminuendo.streams.contexts import Contexts, as_contexts
from diminuendo.streams.users import Users
from diminuendo.sums.private_counts import Counts, ExactCounts, PrivateCounts
from diminuendo.types import Floats, Ints, Items


class SlatePolicy(MenuPolicy):
    """Plans blocks, assigns rounds to their slates, and publishes what users said; `asked` is what was asked for."""

    purpose, remote_rounds = "one question to each user", True
    signal: Signal
    proof = "docs/maths/counts.md, Theorem B2"

    def __init__(
        self, frame: Frame, asked: Budget, counts: Counts, questions: Questions, known: KnownBeforehand
    ) -> None:
        if frame.horizon is None:
            raise InvalidInput(f"{frame.name!r} plans for a number of rounds; give a horizon.")
        self.frame, self.reader = frame, questions.reader
        self.budget = asked if counts.noisy else None
        self._epsilon = asked.epsilon
        self._counts, self._questions, self._builder = counts, questions, SlateBuilder(known.items)
        self.items, self._known = known.items, known
        scales = {each: counts.scale(each) / counts.ticks for each in questions.sensitivities}
        noise = Noise(float(counts.event.epsilon), scales, counts.noisy)
        self.planner = SlatePlanner(
            frame.n_items, frame.slots, frame.horizon, questions, noise,
            ahead=frame.feedback_window.ahead, response_rate=frame.feedback_window.response_rate,
            builder=self._builder, prior=known.prior,
        )  # fmt: skip
        self.signal = new_signal(self.planner, known.horizon)
        self._published: Floats | None = None  # what was published, and is not yet in the posterior
        self._blocks: list[OpenBlock] = []  # of which nothing is published yet; the last one is shown
        self._last: OpenBlock | None = None  # that was shown, published or not
        nothing = np.zeros(0, dtype=np.int32)
        self._chooser = self._menu(no_block(frame.slots), nothing, 0, seen_before=False).chooser()

    # What is promised.

    @property
    def events(self) -> Laplace | None:
        """What the whole run costs one round: as much as one block, for none is in two."""
        return self._counts.event if self._counts.noisy else None

    # Public: the open block, and which of its slates each round shows.

    @property
    def chooser(self) -> Chooser:
        """Shows each round of the open block its slate."""
        return self._chooser

    def _menu(self, block: SlateBlock, assigned: Items, first: int, *, seen_before: bool) -> AssignedSlates:
        frame = self.frame
        sizes = frame.n_items, frame.slots, first, first + len(assigned), frame.public.passed
        return AssignedSlates(
            *sizes, block.slates, assigned, seen_before,
            lists=self.items.lists_for_exclusions(), ranking=self.items.ranking(self.planner.posterior.appeals),
        )  # fmt: skip

    def _show(self, block: SlateBlock, assigned: Items, first: int, *, seen_before: bool) -> None:
        """Go on with this block, which began with round `first`."""
        frame = self.frame
        numbers = numbers_per_slate(block.questions, frame.slots)
        menu = self._menu(block, assigned, first, seen_before=seen_before)
        starts = np.concatenate([[0], np.cumsum(numbers)])
        shown, chooser = OpenBlock(block, menu, starts, self.planner.leading), menu.chooser()
        blocks, sensitivity = [*self._blocks, shown], np.repeat(sensitivity_of(block.questions), numbers)
        with frame.guard.learning():  # each block has its cells
            self._counts.open(sensitivity)
            self._blocks, self._last, self._chooser = blocks, shown, chooser

    # Public: the items change.

    def appear(self, items: Iterable[int]) -> None:
        """These items are there from now on, and are tried from the next block on."""
        self.items.appear(items, 0)
        self._items_changed()

    def retire(self, items: Iterable[int]) -> None:
        """These items are not shown any more."""
        self.items.retire(items, 0)
        self._items_changed()

    def _items_changed(self) -> None:
        """The block that is shown ends now, if one of its slates has items that are gone, or lacks pinned ones."""
        if self._blocks and (shown := self._blocks[-1]).end > self.frame.rounds:
            block, assigned, first = shown.block, shown.menu.assigned, shown.menu.first
            if not self._builder.obeyed(block.slates):
                assigned = assigned[: self.frame.rounds - first]
                block = block._replace(sizes=np.bincount(assigned, minlength=len(block.sizes)))
            menu = self._menu(block, assigned, first, seen_before=shown.menu.seen_before)
            self._last = self._blocks[-1] = shown._replace(block=block, menu=menu)
            self._chooser = menu.chooser()
            if not len(assigned):  # it was shown to nobody
                self._counts.forget(-1)
                del self._blocks[-1]
                self.planner.forget_leader()
            return
        ended = self._chooser.menu
        assert isinstance(ended, AssignedSlates)
        lists, ranking = (
            self.items.lists_for_exclusions(),
            self.items.ranking(self.planner.posterior.appeals),
        )
        self._chooser = replace(
            ended, lists=lists, ranking=ranking
        ).chooser()  # until the next block is there

    @property
    def remembers_from(self) -> int:
        """The round from which on it remembers: before that tastes have changed, as published counts say."""
        return int(self.planner.since[0])

    # The door: a block's counts are paid for, drawn once and durable before they are seen, and then forgotten.

    def due(self) -> bool:
        """Whether a block can be published, or there is none to be shown."""
        return self._is_settled(0) or self._shown_out()

    def _is_settled(self, which: int) -> bool:
        return which < len(self._blocks) and self._blocks[which].end <= self.frame.closed

    def _shown_out(self) -> bool:
        """Whether all rounds of all blocks have been chosen, and others are to come."""
        frame = self.frame
        return frame.rounds != frame.horizon and not (self._blocks and self._blocks[-1].end > frame.rounds)

    def release(self) -> None:
        """Publish a block that is settled; where there is nothing to show, plan the next from what was published."""
        frame, settled = self.frame, self._is_settled(0)
        wanted = self._shown_out() and not self._is_settled(1)
        if settled and self._published is None:
            self._published = self._counts.release(frame.secret)
        with frame.guard.lock:  # first: without coins nothing has happened yet
            word = int(frame.public.take(1)[0]) if wanted else 0
        with frame.guard.learning():
            if self._published is not None:
                self._take_in(self._published)
            if wanted:
                rng = np.random.Generator(np.random.Philox(word))
                if not self._known.horizon:
                    self.planner.horizon = self.planner.expected(frame.rounds)
                in_flight = sum(len(each.menu.assigned) for each in self._blocks)
                block = self.planner.next_block(frame.rounds, rng, in_flight)
                assigned = np.repeat(np.arange(len(block.sizes), dtype=np.int32), block.sizes)
                rng.shuffle(assigned)
        if wanted:
            self._begin(block, assigned)

    def _take_in(self, published: Floats) -> None:
        """Believe what was published about the oldest block, and forget what its users said."""
        oldest = self._blocks[0]
        block = oldest.block._replace(sizes=oldest.answerable(self.frame))
        drifted = self.planner.add(
            block, np.split(published, oldest.starts[1:-1]), self.frame.rounds, oldest.leading
        )
        answers = self.planner.response_rate * block.sizes
        take_stock(
            self.signal, self._counts, self.frame, oldest.menu.first, block.questions, answers,
            float(published.sum()), len(oldest.menu.assigned), drifted=bool(drifted),
        )  # fmt: skip
        with self.frame.guard.answers, self.frame.guard.lock:
            self._counts.forget()
            del self._blocks[0]
            self._published = None
            if drifted:  # what is expected of blocks that are open is out of date
                self._blocks = [each._replace(leading=nobody_leads()) for each in self._blocks]

    def _begin(self, block: SlateBlock, assigned: Items) -> None:
        """Keep this block and go on with it; or with another, if one was kept before a crash."""
        mine, drawn = packed(block, assigned), []

        def draw() -> Ints:
            drawn.append(True)
            return mine

        try:
            kept = self._counts.planned(draw, self.frame.secret)
            same = np.array_equal(kept, mine)
            if not same:
                self.planner.forget_leader()
            block, assigned = unpacked(kept, self.frame.slots)
            with self.frame.guard.answers, self.frame.guard.lock:
                if not same and not self._builder.obeyed(block.slates):  # items have come or gone since
                    self._counts.skip()
                    return
                self._show(block, assigned, self.frame.rounds, seen_before=not (drawn and same))
        except BaseException:
            self.planner.forget_leader()  # of a block that is not shown: a snapshot would take it for another's
            raise

    def fill(self, row: Items) -> bool:
        """The leading slate of the last block; where none leads, its first; before there is a block, any items."""
        if not self._shown_out():
            return False
        row[:] = self.filler()
        self.leave_out(row[None, :], self.frame.coming[:1])
        return True

    def filler(self) -> Items:
        """What is shown where no round of a block can be had."""
        last, builder = self._last, self._builder
        if last is None:
            return builder.any_slate()
        return builder.mended(last.block.slates[max(0, int(last.leading[0]))], self.planner.posterior.appeals)

    # Private: answers become ticks in the cells of the open block.

    def learn(self, place: int, answer: Any) -> None:
        """Count her answer in the cells of her slate; if her block was published, she has said nothing.

        Nor has she if she excludes something and was shown another slate: her place in the block is used up.
        """
        decisions, exclusions = self.frame.decisions, self.frame.exclusions
        number = decisions.round_at(place)
        for lot, (block, menu, starts, _) in enumerate(self._blocks):
            if 0 <= number - menu.first < len(menu.assigned):
                slate = menu.assigned.item(number - menu.first)
                if exclusions and (decisions.rows[place] != block.slates[slate]).any():
                    return
                cell, ticks = self._questions.count_one(
                    block.questions.item(slate), starts.item(slate), answer
                )
                self._counts.add_one(cell, ticks, lot)

    def replay(self, users: Users, slates: Items, done: int) -> int:
        """To the end of the block, or until one can be published: everybody before is counted by then."""
        frame, shown = self.frame, self._blocks[-1]
        turn = frame.rounds - shown.menu.first
        next_release = frame.published_at(self._blocks[0].end) or shown.end
        stop = min(len(users), done + min(shown.end, next_release) - frame.rounds)
        self.draw_rows(slates[done:stop])
        assigned = shown.menu.assigned[turn : turn + stop - done]
        answers = self._questions.answers(users, done, slates[done:stop])
        if frame.exclusions:
            as_assigned = (slates[done:stop] == shown.block.slates[assigned]).all(axis=1)
            assigned, answers = assigned[as_assigned], answers[as_assigned]
        self._count(assigned, answers)
        return stop

    def _count(self, assigned: Items, answers: NDArray[Any]) -> None:
        """Count answers of users who were assigned to these slates of the block that is shown."""
        shown = self._blocks[-1]
        questions, starts = shown.block.questions[assigned], shown.starts[assigned]
        self._counts.add(*self._questions.count(questions, starts, answers))

    # What a snapshot holds. The names are those of a format.

    def config(self) -> dict[str, Any]:
        """The epsilon that was asked for, and what is known of items beforehand."""
        return (
            {"epsilon": self._epsilon}
            | self._known.config()
            | ({} if self._counts.noisy else {"private": False})
        )

    def state(self) -> Any:
        """When learning began, and what the leading slate should earn."""
        return self.planner.state

    def extra(self) -> dict[str, NDArray[Any]]:
        """The open blocks, their assignments and cells, and what was learned from those before."""
        if self._published is not None:
            raise InvalidInput("A release is under way; call choose() again before a snapshot.")
        result = blocks_as_arrays(self._blocks, self.frame)
        result |= {f"counts.{name}": part for name, part in self._counts.arrays().items()}
        return result | self.planner.arrays() | self.items.changed() | {"health": self.signal.array}

    def take_extra(self, found: dict[str, NDArray[Any]]) -> None:
        """Go on with the open blocks."""
        self.items.take_changed(found)
        self.signal.take(found.pop("health", None))
        self.planner.take(found)
        counts = _snapshots.taken(found, "counts")
        blocks = blocks_from_arrays(found, self.frame)
        if found:
            raise InvalidInput("The snapshot holds more than this learner keeps; it was altered.")
        for block, assigned, first, leading in blocks:
            self._show(block, assigned, first, seen_before=True)
            if leading is not None:
                self._blocks[-1] = self._blocks[-1]._replace(leading=leading)
        self._counts.take(counts)

    def restored(self) -> None:
        """What stands in is made of the items there are."""
        if self._blocks:
            self._blocks[-1] = self._blocks[-1]._replace(leading=self.planner.leading)
        self._items_changed()


def slate_learner(
    name: str,
    questions: Questions,
    n_items: int,
    slots: int,
    *,
    horizon: int | None,
    epsilon: float,
    max_rounds_per_user: int,
    prior: Any,
    prior_users: int | None,
    ledger: Ledger | None,
    rng: RandomSource | None,
    feedback_window: Patient,
    contexts: Contexts | None,
    absent: Iterable[int],
    rules: SlateRules | None,
    exclusions: bool,
    noisy: bool,
) -> Learner:
    """A learner that asks these questions; what it publishes has noise, or, not noisy, is as users said it."""
    if ledger is not None and not noisy:
        raise InvalidInput(f"{name!r} publishes what users said as it is; no ledger can pay for that.")
    frame = Frame(
        name, n_items, slots, horizon=LONGEST if horizon is None else horizon,
        max_rounds_per_user=max_rounds_per_user, ledger=ledger,
        rng=rng, feedback_window=feedback_window,
        contexts=as_contexts(contexts), exclusions=exclusions,
    )  # fmt: skip
    items = ItemAvailability(frame.n_items, frame.slots, absent, as_rules(rules), exclusions=frame.exclusions)
    enough = math.ceil(USERS_PER_SLATE * (1 + 1 / epsilon)) if epsilon > 0 else 1
    known = KnownBeforehand(
        items, checked_prior(prior, prior_users, frame.n_items, otherwise=enough), horizon is not None
    )
    asked = Budget(epsilon, 0.0, frame.unit, "pure")
    cost = asked.share()
    assert isinstance(cost, Laplace)
    policy = SlatePolicy if frame.contexts is None else GroupedSlatePolicy
    if not noisy:
        return Learner(policy(frame, asked, ExactCounts(cost=cost, ticks=questions.ticks), questions, known))
    paid_on = Ledger(asked) if ledger is None else ledger
    about = f"{frame.slots} of {frame.n_items} items, {horizon or 'any number of'} rounds, "
    counts = PrivateCounts(cost=cost, ticks=questions.ticks, ledger=paid_on, name=name, about=about)
    return Learner(policy(frame, asked, counts, questions, known))


def first_slate(epsilon: float) -> Shape:
    """The smallest world in which something is published: when the first slate was shown to enough users."""
    return 2, 1, math.ceil(USERS_PER_SLATE * (1 + 1 / epsilon)) + 1
