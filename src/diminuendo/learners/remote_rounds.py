"""Ingest rounds that other processes chose by the learner's menu, and the feedback on them.

    rounds = RemoteRounds(learner)
    rounds.chosen(100, at=now)                         # other processes show the next 100 rounds
    rounds.record_arrivals(first, counts, types)       # who arrived in them, as far as that is public: before feedback
    rounds.answered(numbers, rows, types, feedback)    # what was shown and what users responded, in any order, in bulk
    learner.release()                                  # as ever, when rounds are closed

Feedback that cannot be read counts as nothing, raises nothing and does not affect that of other users. A learner that
is driven this way publishes what it would if all of it had happened here, with `choose(release=False)` and `observe`
(docs/maths/late.md, Theorem L1: slates are a function of releases, wherever it is evaluated).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.decisions import shown
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.policy import MenuPolicy
from diminuendo.privacy.process_guard import call_user
from diminuendo.streams.users import Users
from diminuendo.types import EMPTY_SLOT, Decision, Ints, Items


class RemoteRounds:
    """Drives a learner whose rounds are chosen by other processes."""

    def __init__(self, learner: Learner) -> None:
        policy = learner.policy
        if not (isinstance(policy, MenuPolicy) and policy.remote_rounds):
            raise InvalidInput(
                f"{learner.name!r} must draw its slates itself: they need secret scores, or words of coins that it "
                "has to know. Rounds may be chosen elsewhere where a policy says `remote_rounds = True`, as those of "
                "'private' do."
            )
        if learner.sample > 1:
            raise InvalidInput(
                f"This {learner.name!r} throws the coins of its sample itself. Where rounds are chosen elsewhere, "
                "throw them there, and make the learner for the rounds of the sample alone."
            )
        self._policy, self._frame = policy, policy.frame
        if policy.signal is not None:
            policy.signal.warned = True  # the caller reads `health` and reports it in its own way

    def __repr__(self) -> str:
        return f"<RemoteRounds: {self._frame.name!r}, {self._frame.rounds} rounds>"

    @property
    def closed(self) -> int:
        """Watermark: rounds before this number are closed to feedback, by the learner's clock."""
        with self._frame.guard.lock:
            return self._frame.closed

    def chosen(self, count: int, *, at: float = 0.0) -> None:
        """Record that other processes choose the next `count` rounds, by the present menu or an earlier one.

        `at`: when their feedback window begins, if it is in seconds.
        """
        frame, end = self._frame, self._policy.menu.end
        count = _validate.whole(count, 0, None, "count")
        with frame.guard.lock:
            frame.admit(count)
            if end is not None and frame.rounds + count > end:
                raise InvalidInput(
                    f"The menu is for rounds before {end}; got {count} more after {frame.rounds}. Hand out no round "
                    "that no menu is for, and release() what is due first."
                )
            frame.decisions.issue(count, at)

    def record_arrivals(self, first: int, counts: Any, types: Any = None) -> None:
        """Record who arrived in rounds from `first` on: once for each round, before its feedback. All of it is public.

        `counts`: for each round, whether its feedback counts; False if the user is over the contribution bound, or if
        nobody arrived. `types`: with public contexts, the context id, -1 if nobody arrived. Repeating a record changes
        nothing, and neither does one for a closed round; contradicting one raises InvalidInput.
        """
        frame, decisions = self._frame, self._frame.decisions
        counted: NDArray[np.bool_] = np.asarray(counts, dtype=np.bool_)
        with frame.guard.answers, frame.guard.lock:
            if not 0 <= first <= first + len(counted) <= frame.rounds:
                raise InvalidInput(
                    f"Of {frame.rounds} rounds, got {len(counted)} from {first} on; say chosen() first."
                )
            skipped = min(len(counted), max(0, decisions.expired() - first))
            first, counted = first + skipped, counted[skipped:]
            new = frame.record_arrivals(first + np.arange(len(counted)), counted)
            if frame.contexts is not None and types is not None and not frame.contexts.private:
                known = np.asarray(types, dtype=np.int64)[skipped:]
                there = np.flatnonzero(new & (known >= 0) & (known < frame.contexts.n_types))
                for run in np.split(there, np.flatnonzero(np.diff(there) > 1) + 1):
                    if len(run):
                        self._policy.record_arrivals(int(first + run[0]), known[run], counted[run])

    def answered(
        self, rounds: Sequence[int] | Ints, rows: Items, types: Sequence[int] | Ints | None, feedback: Any
    ) -> None:
        """Report feedback on these rounds; `rows`: what each user was shown, EMPTY_SLOT where a slot was empty.

        `types`: the context id of each user, with contexts. `feedback`: a list, or Users, of whom user i gave feedback
        number i. For each round the first feedback counts that can be read and is in time. Feedback on a round without
        a record of its arrival is ignored, and may be reported again afterwards. If no arrival was recorded at all,
        that is an error, whoever responded.
        """
        frame, decisions = self._frame, self._frame.decisions
        numbers, shown_rows = np.asarray(rounds, dtype=np.int64), np.asarray(rows, dtype=np.int64)
        kinds = np.zeros(len(numbers), dtype=np.int64) if types is None else np.asarray(types, dtype=np.int64)
        if shown_rows.shape != (len(numbers), frame.slots) or not len(numbers) == len(kinds) == len(feedback):
            raise InvalidInput(
                f"Each answer has a round, a row of {frame.slots} slots, a type and what was said; got {len(numbers)} "
                f"rounds, rows of shape {shown_rows.shape}, {len(kinds)} types and {len(feedback)} answers."
            )
        frame.guard.check(once=False)
        sound = np.flatnonzero(self._sound(shown_rows, kinds) & (numbers >= 0))
        with frame.guard.user_code():
            readable, answers = self._read(sound, numbers, shown_rows, feedback)
        with frame.guard.answers, frame.guard.lock:
            if frame.rounds and not decisions.arrived.any():  # by public facts alone: not by who responded
                raise InvalidInput(
                    "Nobody has said who came in these rounds, and so whose answers count. Call record_arrivals() "
                    "for them first, also where everybody's do."
                )
            which = readable[decisions.open_rounds(numbers[readable])]
            if not len(which):
                return
            places = numbers[which] % decisions.remembered
            decisions.rows[places] = shown_rows[which]
            if len(decisions.types):
                decisions.types[places] = kinds[which]
            decisions.waiting[places] = False
            theirs = (
                feedback[which] if isinstance(feedback, Users) else [answers[each] for each in which.tolist()]
            )
            with frame.learning():
                self._policy.learn_all(places, theirs)

    def _sound(self, rows: Ints, kinds: Ints) -> NDArray[np.bool_]:
        """Which rows can have been shown to a user of a context id that exists: compiled code trusts them."""
        frame, ordered = self._frame, np.sort(rows, axis=1)
        twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != EMPTY_SLOT)
        most = 1 if frame.contexts is None else frame.contexts.n_types
        items = ((rows >= EMPTY_SLOT) & (rows < frame.n_items)).all(axis=1)
        return np.asarray(items & ~twice.any(axis=1) & (kinds >= 0) & (kinds < most))

    def _read(self, which: Ints, rounds: Ints, rows: Ints, feedback: Any) -> tuple[Ints, dict[int, Any]]:
        """Which of these can be read; and, if feedback is a list, what the policy learns from each."""
        frame, reader, answers = self._frame, self._policy.reader, dict[int, Any]()
        if isinstance(feedback, Users):
            feedback.check()
            fits = feedback.n_items == frame.n_items and "full" in reader.kinds
            return which if fits else which[:0], answers
        for each in which.tolist():
            try:
                decision = Decision(int(rounds[each]), shown(rows[each]))
                answers[each] = call_user(partial(reader, frame, decision, feedback[each]))
            except Exception:  # what cannot be read counts as nothing
                continue
        return np.array(list(answers), dtype=np.int64), answers

    def erase(self, rounds: Sequence[int] | Ints) -> None:
        """Exclude single users' data of these rounds from all later releases.

        Stored users are dropped; what was added to sums stays there (docs/maths/late.md, Theorem L3). Not in the midst
        of a release.
        """
        guard = self._frame.guard
        with guard.everything(), self._frame.learning():
            self._policy.erase(np.asarray(rounds, dtype=np.int64))
