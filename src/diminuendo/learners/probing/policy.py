r"""Probing in balanced blocks: one number of each probed person, for one slot and item, and a bound.

k ordered Hedge experts draw a slate anew for each person. In a block every slot and item is probed equally often, in
rounds that public coins choose, in an order that they choose; what the probed person says goes to that cell, and nobody
else is heard. When the block closes all k N cells are published, and experts go on from the running sums. A probe falls
on each round of its block with equal chance, and experts draw by the same law throughout: so a cell is, on average,
what the item would have earned in that slot over the whole block, and an expert learns about all items at once.

Guarantee  each person adds at most one unit to one cell, which coins chose: Laplace noise on each block by itself, with
           delta = 0, or rounded Gaussian noise on running sums; docs/maths/blocks.md, Theorem K1. None with an exact
           sum, which shows what noise takes away.
Assumes    for privacy: nothing about people. One answer per round; what comes after its block has closed has said
           nothing.
Excludes   timing, and the memory of the process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from diminuendo._snapshots import MOST_DEVIATIONS
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.decisions import NO_PROBE
from diminuendo.learners.base.feedback import Clicks, Payoffs, Reader
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.policy import MenuPolicy
from diminuendo.learners.probing.menu import ChoosesWithProbes, ExpertsWithProbes
from diminuendo.learners.probing.schedule import Plan, Theorem
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.process_guard import all_or_nothing
from diminuendo.randomness.shares import softmax
from diminuendo.streams.people import People
from diminuendo.sums.private_sum import ExactSum, PrivateSum
from diminuendo.sums.snapshots import sums_as_extra
from diminuendo.types import ONE_MINUS_1_OVER_E, Floats, Items


@dataclass(frozen=True)
class Worth:
    """What the answer to a probe says about the item that was tried: a number in [0, 1], as private as the answer."""

    reader: Reader
    """Checks feedback at the door."""
    answers: Callable[[People, Items, int], NDArray[Any]]
    """What people of a stream say to slates, from the person of that number on."""
    of: Callable[[Items, Items, Any], Any]
    """From slates, probes (slot, item, 0) and answers, of one round or of many."""


def _clicked_on_probe(slates: Items, probes: Items, clicked: Any) -> Any:
    """1 if the item that was tried was in its slot, and the first to be clicked, else 0."""
    slot, item = probes[..., 0], probes[..., 1]
    shown = np.take_along_axis(slates, slot[..., None], axis=-1)[..., 0]
    return ((clicked == slot) & (shown == item)).astype(np.float64)


PAYOFF_OF_PROBE = Worth(Payoffs(), People.values_of, lambda slates, probes, payoffs: payoffs)
CLICK_ON_PROBE = Worth(Clicks(), People.first_clicks, _clicked_on_probe)


@dataclass(frozen=True)
class WayToProbe:
    """What a probe shows, what its answer is worth, and what is proved of it."""

    shows: int
    """SHORT, FULL or INSERTED (menu.py)."""
    theorem: Callable[[int], Theorem]
    """What is proved, for a number of slots."""
    worth: Worth
    reacting: bool = False
    """Whether what an expert learns depends on its own draws before; then noise must be new in each block."""


class ProbingPolicy(MenuPolicy):
    """Experts that probe in balanced blocks, and go on from the sum of cells that is published after each.

    `budget`: what a private sum was paid with; None, if the sum is exact.
    `options`: the arguments of its recipe that a snapshot holds, besides those of the frame.
    """

    purpose = "one probe of each person"
    proof = "docs/maths/blocks.md, Theorem K1"
    _chooser: ChoosesWithProbes

    def __init__(
        self,
        frame: Frame,
        way: WayToProbe,
        plan: Plan,
        cells: PrivateSum | ExactSum,
        budget: Budget | None,
        options: dict[str, Any],
    ) -> None:
        self.frame, self.budget, self.reader = frame, budget, way.worth.reader
        self.plan, self.schedule = plan, plan.schedule
        self._way, self._cells, self._options = way, cells, options
        self.sums = {"sum": cells}
        self._blocks_published = np.zeros(1, dtype=np.int64)
        self._sums: Floats = np.zeros(frame.slots * frame.n_items)  # of all cells, as published
        kind = np.int32 if plan.block_probes <= np.iinfo(np.int32).max else np.int64
        self._probes: NDArray[Any] = np.arange(plan.block_probes, dtype=kind)  # those to come first
        self._probes_left = np.array([plan.probes_in(0)], dtype=np.int64)
        self._block = 0  # the running one
        self._chooser = self._choosing_in(block=0)

    # What is promised.

    @property
    def spread(self) -> float:
        """How far noise goes: the scale of Laplace noise, or the deviation of Gaussian noise at last, in people."""
        if isinstance(self._cells, ExactSum):
            return 0.0
        if self.plan.noise == "laplace":
            return self._cells.scale / self._cells.clip.ticks
        return self._cells.deviation(len(self._cells.schedule))

    def bound_to_aim(self) -> float:
        """What is proved of the expected regret of the whole run to the share of the best slate that is aimed at."""
        theorem = self._way.theorem(self.frame.slots)
        return self.plan.bound(theorem, self.spread, self._cells.clip.ticks)

    def regret_bound(self, rounds: int | None = None) -> float | None:
        """What follows for the regret to (1 - 1/e) of the best slate; of order T where less is aimed at.

        Nothing, where answers are waited for: following late costs more.
        """
        if self.frame.patience.ahead:
            return None
        aim = self._way.theorem(self.frame.slots).aim
        return self.bound_to_aim() + (ONE_MINUS_1_OVER_E - aim) * self.plan.horizon

    # Public: experts' shares, from what was published; probes, from public coins.

    def _choosing_in(self, block: int) -> ChoosesWithProbes:
        """From this round on, to the end of the block: by what was published, and with the probes that are left."""
        frame, last = self.frame, len(self.schedule) - 1
        scores = self.plan.rate / self.plan.probes * self._sums.reshape(frame.slots, frame.n_items)
        menu = ExpertsWithProbes(
            frame.n_items,
            frame.slots,
            first=frame.rounds,
            end=self.schedule.ends[block] if block < last else frame.horizon,
            words=frame.public.passed,
            shows=self._way.shows,
            rounds=max(0, self.schedule.ends[block] - frame.rounds),
            ends=softmax(scores),
            probes=self._probes[: self._probes_left[0]].copy(),
        )
        return ChoosesWithProbes(menu, self._probes, self._probes_left)

    # The door: the sums of all cells, paid for when the sum was made, drawn once and durable before they are seen.

    def due(self) -> bool:
        """Whether a block can be published, or another must begin."""
        return self._can_publish() or self._is_over()

    def _can_publish(self) -> bool:
        """Whether a block is settled that was not published; the last one never is."""
        settled = min(self.schedule.closed_by(self.frame.settled), len(self.schedule) - 1)
        return int(self._blocks_published[0]) < settled

    def _is_over(self) -> bool:
        """Whether all rounds of the running block have been chosen, and another comes."""
        return self._block < min(self.schedule.closed_by(self.frame.rounds), len(self.schedule) - 1)

    def release(self) -> None:
        """Publish the running sums of all cells. Experts go on from what was published when a block begins."""
        frame = self.frame
        with frame.guard.defer_interrupt():
            if self._can_publish():
                if not self._under_way:
                    self._cells.release(frame.secret)
                with frame.guard.lock, all_or_nothing((self._sums, self._blocks_published)):
                    self._sums[:] = self._cells.last
                    self._blocks_published[0] += 1
            with frame.guard.lock:
                if not self._can_publish():
                    self._begin_next()

    @property
    def _under_way(self) -> bool:
        """Whether sums were published that experts do not know of yet."""
        return bool(self._cells.batch != self._blocks_published[0])

    def _begin_next(self) -> None:
        """Begin the next block where one is over: all it takes is public, and does not take long."""
        if self._is_over():
            self._probes_left[0] = self.plan.probes_in(self._block + 1)
            self._chooser = self._choosing_in(self._block + 1)
            self._block += 1  # last: whatever fails before is done again

    def fill(self, row: Items) -> bool:
        """Never: the next block begins instead."""
        self._begin_next()
        return False

    # Private: what probed people say, into the cell that coins chose.

    def learn(self, place: int, answer: Any) -> None:
        """Add what a probed person said to her cell, if her block is still open; nobody else is heard."""
        decisions = self.frame.decisions
        probe = decisions.probes[place]
        if probe[0] != NO_PROBE:
            block = self.schedule.closed_by(decisions.round_at(place))
            cell = int(probe[0]) * self.frame.n_items + int(probe[1])
            self._cells.add([self._way.worth.of(decisions.rows[place], probe, answer)], [cell], batch=block)

    def replay(self, people: People, slates: Items, done: int) -> int:
        """To the end of the block, or until one is published: everybody before is counted by then."""
        frame, block, end = self.frame, self._block, len(people)
        if block < len(self.schedule) - 1:
            published = frame.published_at(self.schedule.ends[int(self._blocks_published[0])])
            end = self.stop(people, done, self.schedule.ends[block], published)
        probes = np.empty((end - done, 3), dtype=np.int32)
        drawn = self.draw_rows(slates[done:end], probes)
        probing = np.flatnonzero(probes[:drawn, 0] != NO_PROBE)
        if len(probing):
            shown, made = slates[done : done + drawn], probes[probing]
            cells = made[:, 0].astype(np.int64) * frame.n_items + made[:, 1]
            answers = self._way.worth.answers(people, shown, done)[probing]
            worths = self._way.worth.of(shown[probing], made, answers)
            shape = (len(probing), frame.slots * frame.n_items)
            rows = scipy.sparse.csr_array((worths, cells, np.arange(len(probing) + 1)), shape=shape)
            self._cells.add_rows(rows, batch=block)
        return done + drawn

    # What a snapshot holds: the sum of cells too, as private as what people said.

    def config(self) -> dict[str, Any]:
        """The options of its recipe, besides those of the frame."""
        return self._options

    def state(self) -> Any:
        """What was published, and the probes of the running block."""
        return self._blocks_published, self._sums, self._probes_left, self._probes

    def extra(self) -> dict[str, NDArray[Any]]:
        """The sum of cells."""
        if self._under_way:
            raise InvalidInput("A release is under way; call choose() again before a snapshot.")
        return sums_as_extra(self.sums)

    def restored(self) -> None:
        """Refuse blocks that could not have come about; the menu follows, from this round on."""
        plan, last = self.plan, len(self.schedule) - 1
        published, left, rounds = int(self._blocks_published[0]), int(self._probes_left[0]), self.frame.rounds
        running = self.schedule.closed_by(max(0, rounds - 1))
        # At its end it has no probes left: then the next has begun, or waits for a round.
        running = min(running + bool(rounds == self.schedule.ends[running] and left), last)
        most = len(self.schedule) * (plan.probes + MOST_DEVIATIONS * self.spread)
        sound = (
            published == self._cells.batch
            and 0 <= published <= min(self.schedule.closed_by(self.frame.settled), last)
            and (np.abs(self._sums) <= most).all()
            and 0 <= left <= plan.probes_in(running)  # fewer than rounds, where one failed after it was drawn
            and (left <= self.schedule.ends[running] - rounds or not plan.probes_in(running))
            and (np.sort(self._probes) == np.arange(plan.block_probes)).all()
        )
        if not sound:
            raise InvalidInput("The snapshot holds blocks that could not have come about; it was altered.")
        self._block = running
        self._chooser = self._choosing_in(running)
