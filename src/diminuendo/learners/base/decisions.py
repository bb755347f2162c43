"""Open decisions: which are out, and may still be answered.

Answers may come late, out of order, twice or never. Until when one counts is a public fact (feedback_window.py): a round whose
deadline has passed is *settled*, and the first answer before that counts. Nothing here says who answered: an answer
that no longer counts looks like one that does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput
from diminuendo.learners.base.feedback_window import FeedbackWindow
from diminuendo.streams.contexts import NOBODY
from diminuendo.types import EMPTY_SLOT, OUTSIDE, Decision, Floats, Ints, Items, Ticket, sound

NO_PROBE = -1
ANSWER_WITH = "Answer with the decision that choose() returned, to the learner that returned it."


class OpenDecisions:
    """A ring of the last `remembered` decisions; a *place* is where one of them lies in it."""

    def __init__(
        self,
        slots: int,
        feedback_window: FeedbackWindow,
        incarnation: int = 0,
        *,
        types: bool = False,
        sampled: bool = False,
        private: bool = False,
    ) -> None:
        """`types`: of users are kept; `sampled`: some decisions are outside of a public sample, and of no round;
        `private`: slates follow from contexts or exclusions that nobody else may know."""
        self.private = private
        self.feedback_window, self.remembered = feedback_window, feedback_window.remembered
        self.issued: Ints = np.zeros(1, dtype=np.int64)
        self.rows: Items = np.full((self.remembered, slots), EMPTY_SLOT, dtype=np.int32)
        self.probes: Items = np.full((self.remembered, 3), NO_PROBE, dtype=np.int32)
        self.waiting: NDArray[np.bool_] = np.zeros(self.remembered, dtype=np.bool_)
        self.told: NDArray[np.bool_] = np.zeros(self.remembered, dtype=np.bool_)
        """Whether it is known of each round whether its answer counts; until then none is waited for."""
        self.incarnations: Ints = np.zeros(self.remembered, dtype=np.int64)  # as in types.Decision
        self.incarnation = incarnation
        self.outside: Ints = np.zeros(int(sampled), dtype=np.int64)
        """How many decisions there were that are of no round, where there is a public sample."""
        self.unmatched_responses = 0
        """How many answers came to decisions that are none of these; in no snapshot (Learner.unmatched_responses)."""
        self.types: Ints = np.zeros(self.remembered if types else 0, dtype=np.int64)
        """What was known of each user when she came (streams/contexts.py); empty where there are no contexts."""
        # Where patience is in seconds: when each was handed out; the time now, and how many rounds are settled.
        self.times: Floats = np.zeros(self.remembered if feedback_window.seconds else 0)
        self._clock: Floats = np.zeros(2 if feedback_window.seconds else 0)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a snapshot holds of them, by name."""
        names = ["issued", "rows", "probes", "waiting", "incarnations"] + ["types"] * bool(len(self.types))
        result = {f"decisions.{name}": getattr(self, name) for name in names}
        if len(self.outside):
            result["decisions.outside"] = self.outside
        return result | (
            {"decisions.times": self.times, "decisions.clock": self._clock} if len(self.times) else {}
        )

    @property
    def rounds(self) -> int:
        """The number of decisions made so far."""
        return self.issued.item(0)

    @property
    def settled(self) -> int:
        """How many rounds, from the first on, no answer can change any more once the next round is chosen."""
        feedback_window = self.feedback_window
        if feedback_window.seconds is None:
            return (
                self.rounds
                if feedback_window.rounds is None
                else max(0, self.rounds - feedback_window.rounds)
            )
        np.maximum(self._clock, self._time(feedback_window.seconds), out=self._clock)
        return int(self._clock[1])

    def _time(self, seconds: float) -> tuple[float, int]:
        """What the clock says, and how many rounds are settled by that.

        Nothing remembers that it was asked: who answers asks it, and where the clock is set back later, what she asked
        must not be why a round is settled.
        """
        now, settled = self._now(), max(int(self._clock[1]), self.rounds - self.remembered)
        while settled < self.rounds and self.times[settled % self.remembered] + seconds < now:
            settled += 1
        return now, settled

    def _now(self) -> float:
        """What the clock says; it does not go backwards."""
        clock = self.feedback_window.clock
        return self._clock.item(0) if clock is None else max(self._clock.item(0), clock())

    def round_at(self, place: int) -> int:
        """The round whose decision lies at that place."""
        last = self.rounds - 1
        return last - (last - place) % self.remembered

    def rounds_at(self, places: Ints) -> Ints:
        """The rounds whose decisions lie at these places."""
        last = self.rounds - 1
        return np.asarray(last - (last - places) % self.remembered)

    def add(
        self,
        row: Items,
        probe: Items,
        counts: bool = True,
        propensity: float | None = None,
        coming: Ints = NOBODY,
    ) -> Decision:
        """Hand out the next decision: `row` is shown (EMPTY_SLOT skipped), `probe` starts with slot and item.

        `coming`: the type of who comes now, where there are contexts.

        Where the answer does not count, the decision is as one that has its answer already.
        """
        number = self.rounds
        place = number % self.remembered
        probed = None if probe[0] == NO_PROBE else (int(probe[0]), int(probe[1]))
        decision = Decision(number, shown(row), probed, propensity, self.incarnation, empty_slots(row))
        if len(self.times):
            self.times[place] = self._now()
        self.waiting[place] = False  # whose place it was: should this fail, she has not a second answer
        self.rows[place], self.probes[place] = row, NO_PROBE if probed is None else probe
        if len(self.types):
            self.types[place] = coming[0]
        self.incarnations[place], self.issued[0] = self.incarnation, number + 1
        self.waiting[place], self.told[place] = counts, True
        return decision

    def add_outside(self, row: Items, propensity: float | None) -> Decision:
        """Hand out a decision that is of no round: of somebody outside of a public sample."""
        self.outside[0] += 1
        return Decision(OUTSIDE, shown(row), None, propensity, self.incarnation, empty_slots(row))

    def issue(self, count: int, at: float) -> None:
        """Hand out the next decisions, which others make: what they show is told with their answers.

        No answer is waited for before `arrived` says whether it counts.

        `at`: the time from which answers to them are waited for, where patience is in seconds.
        """
        last = self.rounds + count
        places = np.arange(max(self.rounds, last - self.remembered), last) % self.remembered
        self.waiting[places] = self.told[places] = False
        self.rows[places], self.probes[places], self.incarnations[places] = (
            EMPTY_SLOT,
            NO_PROBE,
            self.incarnation,
        )
        if len(self.types):
            self.types[places] = 0
        if len(self.times):
            self.times[places] = at
        self.issued[0] = last

    def arrived(self, rounds: Ints, counts: NDArray[np.bool_]) -> None:
        """These rounds, of which it was not known, count or not: from now on their answers are waited for, or never."""
        places = rounds % self.remembered
        self.waiting[places], self.told[places] = counts, True

    @property
    def untold(self) -> Ints:
        """The rounds, rising, of which it is not known yet whether their answers count."""
        recent = np.arange(max(0, self.rounds - self.remembered), self.rounds)
        return recent[~self.told[recent % self.remembered]]

    def passed(self) -> int:
        """How many rounds, from the first on, cannot be answered any more. Nothing remembers that it was asked."""
        seconds = self.feedback_window.seconds
        return max(0, self.rounds - self.remembered) if seconds is None else self._time(seconds)[1]

    def open_rounds(self, rounds: Ints) -> NDArray[np.bool_]:
        """Which of these rounds may still be answered; of a round that is there twice, the first."""
        result: NDArray[np.bool_] = (rounds >= self.passed()) & (rounds < self.rounds)
        result &= self.waiting[rounds % self.remembered]
        first = np.zeros(len(rounds), dtype=np.bool_)
        first[np.unique(rounds, return_index=True)[1]] = True
        return result & first

    def recall(self, ticket: Ticket) -> Decision:
        """The decision of a ticket, with the slate that was shown.

        Where that is not remembered, with any: of such a decision nothing is learned, and `find` does not look at it.
        """
        asked = sound(Decision(ticket.round, (), incarnation=ticket.incarnation))
        place = asked.round % self.remembered
        remembered = max(0, self.rounds - self.remembered) <= asked.round < self.rounds
        known = remembered and asked.incarnation == self.incarnations[place]
        slate = shown(self.rows[place]) if known else tuple(range(self.rows.shape[1]))
        return Decision(asked.round, slate, incarnation=asked.incarnation)

    def find(self, decision: Decision) -> int | None:
        """The place of a decision that may still be answered; None where it was answered already, has expired, or is of
        a life that is not known here. What is said does not depend on who answered; nor, where slates are private, on
        what was shown: an error would tell whether a guessed slate is the right one."""
        number = decision.round
        if (number == OUTSIDE and len(self.outside)) or 0 <= number < self.passed():
            return None
        place = number % self.remembered
        incarnation = self.incarnations.item(place) if 0 <= number < self.rounds else self.incarnation
        if decision.incarnation != incarnation:
            self._refuse_a_broken_incarnation(decision, incarnation)
            self.unmatched_responses += 1
            return None
        if not 0 <= number < self.rounds:
            raise InvalidInput(
                f"Round {number} was never chosen here ({self.rounds} rounds so far). {ANSWER_WITH}"
            )
        if decision.slate != shown(self.rows[place]):
            if self.private:
                return None
            raise InvalidInput(f"Round {number} showed another slate. {ANSWER_WITH}")
        return place if self.waiting[place] else None

    def _refuse_a_broken_incarnation(self, decision: Decision, incarnation: int) -> None:
        """Say so where what came is not another life but none, or what a float leaves of this one."""
        if decision.incarnation == 0:
            raise InvalidInput(
                f"The decision of round {decision.round} has no life, which tells it from others of that number. "
                f"{ANSWER_WITH}"
            )
        if float(decision.incarnation) == float(incarnation):
            raise InvalidInput(
                f"The life of the decision of round {decision.round} was rounded on its way. Send decisions as "
                "Decision.to_json() writes them."
            )

    def close(self, place: int) -> None:
        """The decision has its answer."""
        self.waiting[place] = False

    def row(self, decision: Decision) -> Items:
        """The slots of a decision that has not expired, -1 where a slot is empty; of one of no round, always.

        What it returns follows from the decision that was given alone, whatever others were shown. Of one of another
        life it says nothing: that round may have been shown to somebody else since.
        """
        place = decision.round % self.remembered
        remembered = max(0, self.rounds - self.remembered) <= decision.round < self.rounds
        outside = decision.round == OUTSIDE and len(self.outside) > 0
        if not outside and not (remembered and decision.incarnation == self.incarnations[place]):
            raise InvalidInput(f"Round {decision.round} has expired, or was never chosen here.")
        slots, items = self.rows.shape[1], iter(decision.slate)
        if len(decision.slate) + len(decision.empty) != slots or any(
            slot >= slots for slot in decision.empty
        ):
            raise InvalidInput(f"This decision does not say what is in each of {slots} slots. {ANSWER_WITH}")
        empty = set(decision.empty)
        return np.array(
            [EMPTY_SLOT if slot in empty else next(items) for slot in range(slots)], dtype=np.int32
        )

    def pass_by(self, rows: Items, types: Ints = NOBODY) -> None:
        """Count decisions that were made and answered in one go, as in a replay; the last of them stay in the ring.

        `types`: of the users, where there are contexts.
        """
        last = self.rounds + len(rows)
        recent = rows[-self.remembered :]
        places = np.arange(last - len(recent), last) % self.remembered
        self.rows[places], self.probes[places] = recent, NO_PROBE
        self.waiting[places], self.told[places], self.incarnations[places] = False, True, self.incarnation
        if len(self.types):
            self.types[places] = types[: len(rows)][-self.remembered :]
        self.issued[0] = last


def shown(row: Items) -> tuple[int, ...]:
    """The items of a row, without its empty slots."""
    return tuple(item for item in row.tolist() if item != EMPTY_SLOT)


def empty_slots(row: Items) -> tuple[int, ...]:
    """The slots of a row in which nothing is shown."""
    return tuple(slot for slot, item in enumerate(row.tolist()) if item == EMPTY_SLOT)
