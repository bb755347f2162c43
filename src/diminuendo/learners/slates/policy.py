r"""The policy of slates: each round is assigned to one slate of the open block, and its person is asked one question.

A *block* is a few slates, how many rounds each is shown, and what its people are asked. Its rounds are assigned to its
slates by a shuffle with public coins. When they have all been chosen, the answers are added up per slate, published
once with noise (sums/private_counts.py), and forgotten; then the next block is planned from all that was published.
Every slate and every plan is post-processing of what was published, so it costs nothing, and propensities are public.
After a restart an assignment that was kept goes on: what it shows may have been seen before, so its rounds have no
propensity.

Guarantee  (epsilon, 0), whatever people say, and whether they say it or not (docs/maths/counts.md, Theorem B2).
Assumes    one answer per round. What comes after its block has closed has said nothing.
Memory     the open block's cells: a few numbers per slate.
Excludes   timing, and the memory of the process.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput
from diminuendo.learners.base.entry import Fits, Shape
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.menu import Chooser
from diminuendo.learners.base.policy import MenuPolicy
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.slates.blocks import (
    SlateBlock,
    could_be_planned,
    no_block,
    numbers_per_slate,
    packed,
    sensitivity_of,
    unpacked,
)
from diminuendo.learners.slates.menu import AssignedSlates
from diminuendo.learners.slates.planner import PEOPLE_PER_SLATE, SlatePlanner
from diminuendo.learners.slates.questions import Noise, Questions
from diminuendo.privacy.accountants import ACCOUNTANTS
from diminuendo.privacy.budget import Budget, Guarantee, no_privacy
from diminuendo.privacy.events import Laplace
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import Coins
from diminuendo.streams.people import People
from diminuendo.sums.private_counts import Counts, ExactCounts, PrivateCounts
from diminuendo.types import Floats, Ints, Items


class SlatePolicy(MenuPolicy):
    """Plans blocks, assigns rounds to their slates, and publishes what people said; `asked` is what was asked for."""

    purpose = "one question to each person"

    def __init__(self, frame: Frame, asked: Budget, counts: Counts, questions: Questions) -> None:
        if frame.horizon is None:
            raise InvalidInput(f"{frame.name!r} plans for a number of rounds; give a horizon.")
        self.frame, self.reader = frame, questions.reader
        self.budget = asked if counts.noisy else None
        self._epsilon = asked.epsilon
        self._counts, self._questions = counts, questions
        scales = {each: counts.scale(each) / counts.ticks for each in questions.sensitivities}
        noise = Noise(float(counts.event.epsilon), scales, counts.noisy)
        self.planner = SlatePlanner(frame.n_items, frame.slots, frame.horizon, questions, noise)
        self._published: Floats | None = None  # what was published, and is not yet in the posterior
        self._show(no_block(frame.slots), np.zeros(0, dtype=np.int32))

    # What is promised.

    @property
    def events(self) -> Laplace | None:
        """What the whole run costs one round: as much as one block, for none is in two."""
        return self._counts.event if self._counts.noisy else None

    @property
    def guarantee(self) -> Guarantee:
        """What is proved for the whole run: nothing, where counts are published as they are."""
        frame = self.frame
        if self.budget is None:
            return no_privacy(frame.coins.secure)
        found = ACCOUNTANTS["pure"].epsilon(self._counts.event, 0.0, frame.visits)
        epsilon, proof = min(found, self.budget.epsilon), "docs/maths/counts.md, Theorem B2"
        return Guarantee(epsilon, 0.0, str(frame.unit), proof, frame.coins.secure)

    # Public: the open block, and which of its slates each round shows.

    @property
    def chooser(self) -> Chooser:
        """Shows each round of the open block its slate."""
        return self._chooser

    def _show(self, block: SlateBlock, assigned: Items, *, over: int = 0, seen_before: bool = False) -> None:
        """Go on with this block, of which `over` rounds are over."""
        frame = self.frame
        first = frame.rounds - over
        sizes = frame.n_items, frame.slots, first, first + len(assigned), frame.public.passed
        self._block = block
        self._menu = AssignedSlates(*sizes, block.slates, assigned, seen_before)
        self._chooser = self._menu.chooser()
        numbers = numbers_per_slate(block.questions, frame.slots)
        self._starts: Ints = np.concatenate([[0], np.cumsum(numbers)])

    # The door: a block's counts are paid for, drawn once and durable before they are seen, and then forgotten.

    def due(self) -> bool:
        """Whether all rounds of the open block have been chosen."""
        return self.frame.rounds >= self._end

    @property
    def _end(self) -> int:
        return self._menu.first + len(self._menu.assigned)

    def release(self) -> None:
        """Publish the block that is over, and plan the next from all that was published."""
        frame = self.frame
        if len(self._menu.assigned) and self._published is None:
            self._published = self._counts.release(frame.secret)
        with frame.guard.defer_interrupt():
            word = int(frame.public.take(1)[0])  # first: where there are no coins nothing has happened yet
            with frame.guard.all_or_broken():
                if self._published is not None:
                    published = np.split(self._published, self._starts[1:-1])
                    self.planner.add(self._block, published, frame.rounds)
                    self._counts.forget()
                    self._published = None
                    self._show(no_block(frame.slots), np.zeros(0, dtype=np.int32))
                coins = np.random.Generator(np.random.Philox(word))
                block = self.planner.next_block(frame.rounds, coins)
                assigned = np.repeat(np.arange(len(block.sizes), dtype=np.int32), block.sizes)
                coins.shuffle(assigned)
            self._begin(block, assigned)

    def _begin(self, block: SlateBlock, assigned: Items) -> None:
        """Keep this block and go on with it; or with another, if one was kept before a crash."""
        mine, drawn = packed(block, assigned), []

        def draw() -> Ints:
            drawn.append(True)
            return mine

        kept = self._counts.planned(draw, self.frame.secret)
        same = np.array_equal(kept, mine)
        if not same:
            self.planner.forget_leader()
        self._show(*unpacked(kept, self.frame.slots), seen_before=not (drawn and same))
        self._open_cells()

    def _open_cells(self) -> None:
        """Cells for the numbers that will be published about the open block."""
        self._counts.open(np.repeat(sensitivity_of(self._block.questions), np.diff(self._starts)))

    # Private: answers become ticks in the cells of the open block.

    def learn(self, place: int, answer: Any) -> None:
        """Count her answer in the cells of her slate; if her block is over, she has said nothing."""
        turn = self.frame.decisions.round_at(place) - self._menu.first
        if 0 <= turn < len(self._menu.assigned):
            slate = self._menu.assigned.item(turn)
            question, start = self._block.questions.item(slate), self._starts.item(slate)
            self._counts.add_one(*self._questions.count_one(question, start, answer))

    def replay(self, people: People, slates: Items, done: int) -> int:
        """To the end of the block: everybody's decision is counted before the next is planned."""
        turn = self.frame.rounds - self._menu.first
        stop = min(len(people), done + self._end - self.frame.rounds)
        self.draw_rows(slates[done:stop])
        assigned = self._menu.assigned[turn : turn + stop - done]
        self._count(assigned, self._questions.answers(people, done, slates[done:stop]))
        return stop

    def _count(self, assigned: Items, answers: NDArray[Any]) -> None:
        """Count answers of people who were assigned to these slates of the open block."""
        questions, starts = self._block.questions[assigned], self._starts[assigned]
        self._counts.add(*self._questions.count(questions, starts, answers))

    # What a snapshot holds. The names are those of a format.

    def config(self) -> dict[str, Any]:
        """The epsilon that was asked for."""
        return {"epsilon": self._epsilon}

    def state(self) -> Any:
        """When learning began, and what the leading slate should earn."""
        return self.planner.state

    def extra(self) -> dict[str, NDArray[Any]]:
        """The open block, its assignment and its cells, and what was learned from those before."""
        if self._published is not None:
            raise InvalidInput("A release is under way; call choose() again before a snapshot.")
        found: dict[str, NDArray[Any]] = dict(self._block._asdict())
        assigned = self._menu.assigned
        left = np.bincount(assigned[self.frame.rounds - self._menu.first :], minlength=len(self._block.sizes))
        found |= {"assigned": assigned, "left": left}
        found |= {f"counts.{name}": part for name, part in self._counts.arrays().items()}
        return found | self.planner.arrays()

    def take_extra(self, found: dict[str, NDArray[Any]]) -> None:
        """Go on with the open block; refuse one that could not have been planned."""
        self.planner.take(found)
        slates, sizes, questions, assigned, left = (
            found.pop(name, np.empty(0)) for name in ("slates", "sizes", "questions", "assigned", "left")
        )
        counts = {name: found.pop(f"counts.{name}", None) for name in ("number", "cells")}
        if found:
            raise InvalidInput("The snapshot holds more than this learner keeps; it was altered.")
        block, frame = SlateBlock(slates, sizes, questions), self.frame
        sound = could_be_planned(block, assigned, left, frame.n_items, frame.slots)
        over = len(assigned) - int(left.sum()) if sound else 0
        if not sound or over > frame.rounds:
            raise InvalidInput("The snapshot holds a block that could not have been planned; it was altered.")
        self._show(block, assigned, over=over, seen_before=True)
        self._open_cells()
        self._counts.take(counts, len(assigned))

    def restored(self) -> None:
        """Refuse plans that could not have been made."""
        self.planner.check(self.frame.rounds, self._block)


def slate_learner(
    name: str,
    questions: Questions,
    n_items: int,
    slots: int,
    *,
    horizon: int,
    epsilon: float,
    visits: int,
    ledger: Ledger | None,
    coins: Coins | None,
    patience: int,
    noisy: bool,
) -> Learner:
    """A learner that asks these questions; what it publishes has noise, or, not noisy, is as people said it."""
    if ledger is not None and not noisy:
        raise InvalidInput(f"{name!r} publishes what people said as it is; no ledger can pay for that.")
    frame = Frame(
        name, n_items, slots, horizon=horizon, visits=visits, ledger=ledger, coins=coins, patience=patience
    )
    asked = Budget(epsilon, 0.0, frame.unit, "pure")
    cost = asked.share()
    assert isinstance(cost, Laplace)
    if not noisy:
        return Learner(SlatePolicy(frame, asked, ExactCounts(cost=cost, ticks=questions.ticks), questions))
    paid_on = Ledger(asked) if ledger is None else ledger
    about = f"{frame.slots} of {frame.n_items} items, {frame.horizon} rounds, "
    counts = PrivateCounts(cost=cost, ticks=questions.ticks, ledger=paid_on, name=name, about=about)
    return Learner(SlatePolicy(frame, asked, counts, questions))


def fits_without_noise(make: Callable[..., Learner]) -> Fits:
    """For a setting, the learner that publishes what people said as it is: it plans by the setting's epsilon."""

    def fits(setting: Setting, *, coins: Coins | None, ledger: Ledger | None) -> Learner:
        return make(
            setting.n_items, setting.slots, horizon=setting.rounds, epsilon=setting.epsilon, visits=setting.visits,
            ledger=ledger, coins=coins,
        )  # fmt: skip

    return fits


def first_slate(epsilon: float) -> Shape:
    """The smallest world in which something is published: when the first slate was shown to enough people."""
    return 2, 1, math.ceil(PEOPLE_PER_SLATE * (1 + 1 / epsilon)) + 1
