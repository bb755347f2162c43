"""Open decisions: which are out, and may still receive feedback.

Feedback may arrive late, out of order, twice or never. Until when it counts is a public fact (feedback_window.py): a
round whose deadline has passed is *closed*, and the first feedback before that counts. Nothing here reveals who
responded: feedback that no longer counts looks like feedback that does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput
from diminuendo.learners.base.feedback_window import FeedbackWindow
from diminuendo.streams.contexts import NOBODY
from diminuendo.types import EMPTY_SLOT, OUTSIDE, Decision, DecisionId, Floats, Ints, Items, sound

NO_PROBE = -1
ANSWER_WITH = "Answer with the decision that choose() returned, to the learner that returned it."


class OpenDecisions:
    """A ring of the last `remembered` decisions; a *place* is an index into it."""

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
        """`types`: store context ids; `sampled`: some decisions are outside of a public sample, and of no round;
        `private`: slates follow from contexts or exclusions that nobody else may know."""
        self.private = private
        self.feedback_window, self.remembered = feedback_window, feedback_window.remembered
        self.issued: Ints = np.zeros(1, dtype=np.int64)
        self.rows: Items = np.full((self.remembered, slots), EMPTY_SLOT, dtype=np.int32)
        self.probes: Items = np.full((self.remembered, 3), NO_PROBE, dtype=np.int32)
        self.waiting: NDArray[np.bool_] = np.zeros(self.remembered, dtype=np.bool_)
        self.arrived: NDArray[np.bool_] = np.zeros(self.remembered, dtype=np.bool_)
        """Whether it is known for each round whether its feedback counts; until then no feedback is accepted."""
        self.incarnations: Ints = np.zeros(self.remembered, dtype=np.int64)  # as in types.Decision
        self.incarnation = incarnation
        self.outside: Ints = np.zeros(int(sampled), dtype=np.int64)
        """The number of decisions that are of no round, with a public sample."""
        self.unmatched_responses = 0
        """The number of responses to decisions that are none of these; in no snapshot."""
        self.types: Ints = np.zeros(self.remembered if types else 0, dtype=np.int64)
        """The context id of each user (streams/contexts.py); empty without contexts."""
        # With a window in seconds: when each decision was made; the time now, and the number of closed rounds.
        self.times: Floats = np.zeros(self.remembered if feedback_window.seconds else 0)
        self._clock: Floats = np.zeros(2 if feedback_window.seconds else 0)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a snapshot holds of them, by name."""
        known = {"types": self.types, "outside": self.outside, "times": self.times, "clock": self._clock}
        result = {
            name: getattr(self, name) for name in ("issued", "rows", "probes", "waiting", "incarnations")
        }
        result |= {name: array for name, array in known.items() if len(array)}
        return {f"decisions.{name}": array for name, array in result.items()}

    @property
    def rounds(self) -> int:
        """The number of decisions made so far."""
        return self.issued.item(0)

    @property
    def closed(self) -> int:
        """Watermark: rounds before this number are closed to feedback once the next round is chosen."""
        window = self.feedback_window
        if window.seconds is None:
            return self.rounds if window.rounds is None else max(0, self.rounds - window.rounds)
        np.maximum(self._clock, self._time(window.seconds), out=self._clock)
        return int(self._clock[1])

    def _time(self, seconds: float) -> tuple[float, int]:
        """The time, and the number of rounds that are closed by then.

        This leaves no trace. Feedback calls it, and if the clock is set back later, feedback must not be why a round
        is closed.
        """
        now, closed = self._now(), max(int(self._clock[1]), self.rounds - self.remembered)
        while closed < self.rounds and self.times[closed % self.remembered] + seconds < now:
            closed += 1
        return now, closed

    def _now(self) -> float:
        """The time by the clock; it does not go backwards."""
        clock = self.feedback_window.clock
        return self._clock.item(0) if clock is None else max(self._clock.item(0), clock())

    def round_at(self, place: int) -> int:
        """The round whose decision is at that place."""
        return int(self.rounds_at(np.array(place)))

    def rounds_at(self, places: Ints) -> Ints:
        """The rounds whose decisions are at these places."""
        last = self.rounds - 1
        return np.asarray(last - (last - places) % self.remembered)

    def _recent(self, number: int) -> bool:
        """Whether the ring still holds that round."""
        return max(0, self.rounds - self.remembered) <= number < self.rounds

    def add(
        self,
        row: Items,
        probe: Items,
        counts: bool = True,
        propensity: float | None = None,
        coming: Ints = NOBODY,
    ) -> Decision:
        """Make the next decision: `row` is shown (EMPTY_SLOT skipped), `probe` starts with slot and item.

        `coming`: context ids of the next users, with contexts. A decision whose feedback does not count is like one
        that has its feedback already.
        """
        number = self.rounds
        place = number % self.remembered
        probed = None if probe[0] == NO_PROBE else (int(probe[0]), int(probe[1]))
        decision = Decision(number, shown(row), probed, propensity, self.incarnation, empty_slots(row))
        if len(self.times):
            self.times[place] = self._now()
        self.rows[place], self.probes[place] = row, NO_PROBE if probed is None else probe
        if len(self.types):
            self.types[place] = coming[0]
        self.incarnations[place], self.issued[0] = self.incarnation, number + 1
        self.waiting[place], self.arrived[place] = counts, True
        return decision

    def add_outside(self, row: Items, propensity: float | None) -> Decision:
        """Make a decision that is of no round: for a user outside of a public sample."""
        self.outside[0] += 1
        return Decision(OUTSIDE, shown(row), None, propensity, self.incarnation, empty_slots(row))

    def issue(self, count: int, at: float) -> None:
        """Hand out the next rounds to other processes: what they show is reported with the feedback.

        No feedback is accepted before `record_arrivals`. `at`: when the feedback window begins, if it is in seconds.
        """
        last = self.rounds + count
        places = np.arange(max(self.rounds, last - self.remembered), last) % self.remembered
        self.waiting[places] = self.arrived[places] = False
        self.rows[places], self.probes[places] = EMPTY_SLOT, NO_PROBE
        self.incarnations[places] = self.incarnation
        if len(self.types):
            self.types[places] = 0
        if len(self.times):
            self.times[places] = at
        self.issued[0] = last

    def record_arrivals(self, rounds: Ints, counts: NDArray[np.bool_]) -> None:
        """Record for these rounds, of which it was not known, whether their feedback counts."""
        places = rounds % self.remembered
        self.waiting[places], self.arrived[places] = counts, True

    @property
    def unrecorded(self) -> Ints:
        """The rounds, rising, of which it is not known yet whether their feedback counts."""
        recent = np.arange(max(0, self.rounds - self.remembered), self.rounds)
        return recent[~self.arrived[recent % self.remembered]]

    def expired(self) -> int:
        """Rounds before this number accept no feedback any more. This leaves no trace."""
        seconds = self.feedback_window.seconds
        return max(0, self.rounds - self.remembered) if seconds is None else self._time(seconds)[1]

    def open_rounds(self, rounds: Ints) -> NDArray[np.bool_]:
        """Which of these rounds still accept feedback; of a round that is there twice, the first."""
        result: NDArray[np.bool_] = (rounds >= self.expired()) & (rounds < self.rounds)
        result &= self.waiting[rounds % self.remembered]
        first = np.zeros(len(rounds), dtype=np.bool_)
        first[np.unique(rounds, return_index=True)[1]] = True
        return result & first

    def recall(self, decision_id: DecisionId) -> Decision:
        """The decision of an id, with the slate that was shown.

        If the ring does not hold it, with any slate: nothing is learned from it, and `find` does not look at it.
        """
        named = sound(Decision(decision_id.round, (), incarnation=decision_id.incarnation))
        place = named.round % self.remembered
        known = self._recent(named.round) and named.incarnation == self.incarnations[place]
        slate = shown(self.rows[place]) if known else tuple(range(self.rows.shape[1]))
        return Decision(named.round, slate, incarnation=named.incarnation)

    def find(self, decision: Decision) -> int | None:
        """The place of a decision that still accepts feedback; None if it has feedback, has expired, or is of another
        incarnation. Errors do not depend on who responded; nor, if slates are private, on what was shown: an error
        would tell whether a guessed slate is the right one."""
        number = decision.round
        if (number == OUTSIDE and len(self.outside)) or 0 <= number < self.expired():
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
        """Refuse a decision without an incarnation, or with what a float leaves of this one."""
        if decision.incarnation == 0:
            raise InvalidInput(
                f"The decision of round {decision.round} has no incarnation, which tells it from others of that "
                f"number. {ANSWER_WITH}"
            )
        if float(decision.incarnation) == float(incarnation):
            raise InvalidInput(
                f"The incarnation of the decision of round {decision.round} was rounded on its way. Send decisions as "
                "Decision.to_json() writes them."
            )

    def close(self, place: int) -> None:
        """The decision has its feedback."""
        self.waiting[place] = False

    def row(self, decision: Decision) -> Items:
        """The slots of a decision that has not expired, -1 where a slot is empty; of one of no round, always.

        The result follows from the given decision alone, whatever others were shown. A decision of another incarnation
        is refused: that round may have been shown to another user since.
        """
        place, number = decision.round % self.remembered, decision.round
        outside = number == OUTSIDE and len(self.outside) > 0
        if not outside and not (self._recent(number) and decision.incarnation == self.incarnations[place]):
            raise InvalidInput(f"Round {number} has expired, or was never chosen here.")
        slots, items, empty = self.rows.shape[1], iter(decision.slate), set(decision.empty)
        if len(decision.slate) + len(decision.empty) != slots or any(slot >= slots for slot in empty):
            raise InvalidInput(f"This decision does not say what is in each of {slots} slots. {ANSWER_WITH}")
        row = [EMPTY_SLOT if slot in empty else next(items) for slot in range(slots)]
        return np.array(row, dtype=np.int32)

    def pass_by(self, rows: Items, types: Ints = NOBODY) -> None:
        """Count decisions that were made and answered in one go, as in a replay; the last of them stay in the ring.

        `types`: context ids of the users, with contexts.
        """
        last = self.rounds + len(rows)
        recent = rows[-self.remembered :]
        places = np.arange(last - len(recent), last) % self.remembered
        self.rows[places], self.probes[places] = recent, NO_PROBE
        self.waiting[places], self.arrived[places], self.incarnations[places] = False, True, self.incarnation
        if len(self.types):
            self.types[places] = types[: len(rows)][-self.remembered :]
        self.issued[0] = last


def shown(row: Items) -> tuple[int, ...]:
    """The items of a row, without its empty slots."""
    return tuple(item for item in row.tolist() if item != EMPTY_SLOT)


def empty_slots(row: Items) -> tuple[int, ...]:
    """The slots of a row in which nothing is shown."""
    return tuple(slot for slot, item in enumerate(row.tolist()) if item == EMPTY_SLOT)
