"""Rounds that are chosen elsewhere: other processes hold the menu, choose by it, and hand in what users say.

    rounds = Elsewhere(learner)
    rounds.chosen(100, at=now)                     # the next 100 rounds are theirs; nothing is drawn here
    rounds.came(first, counts, types)              # who came in them, as far as that is public: before they answer
    rounds.answered(numbers, rows, types, said)    # what was shown and what users said, in any order, in bulk
    learner.release()                              # as ever, when rounds are settled

Answers are those of users: whatever cannot be read counts as nothing, raises nothing and touches nobody else's answer.
Driven so, a learner publishes what it would if all of that had happened here, with `choose(release=False)` and
`observe` (docs/maths/late.md, Theorem L1: what is shown is a function of what was published, wherever that is done).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo import _validate
from diminuendo.errors import InvalidInput, UserCodeStopped
from diminuendo.learners.base.decisions import shown
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.policy import MenuPolicy
from diminuendo.privacy.process_guard import asked
from diminuendo.streams.users import Users
from diminuendo.types import EMPTY_SLOT, Decision, Ints, Items


class RemoteRounds:
    """The door of a learner for rounds that others choose."""

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
            policy.signal.warned = True  # whoever drives it reads its health, and says so in their own way

    def __repr__(self) -> str:
        return f"<Elsewhere: {self._frame.name!r}, {self._frame.rounds} rounds>"

    @property
    def settled(self) -> int:
        """How many rounds, from the first on, no answer can change any more by the learner's clock."""
        with self._frame.guard.lock:
            return self._frame.settled

    def chosen(self, count: int, *, at: float = 0.0) -> None:
        """The next `count` rounds are chosen elsewhere, by the present menu or an earlier one.

        `at`: the time from which answers to them are waited for, where patience is in seconds.
        """
        frame, end = self._frame, self._policy.menu.end
        count = _validate.whole(count, 0, None, "count")
        with frame.guard.lock, frame.guard.publishing():
            frame.admit(count)
            if end is not None and frame.rounds + count > end:
                raise InvalidInput(
                    f"The menu is for rounds before {end}; got {count} more after {frame.rounds}. Hand out no round "
                    "that no menu is for, and release() what is due first."
                )
            frame.decisions.issue(count, at)

    def came(self, first: int, counts: Any, types: Any = None) -> None:
        """Who came in rounds from `first` on, told once of each, before it is answered; later it changes nothing.

        `counts`: for each, whether her answer counts: not where she had all her visits, nor where nobody came at all.
        `types`: where contexts are public, of what type she is, -1 where nobody did. All of it is public. To say the
        same again changes nothing; to say something else is refused.
        """
        frame, decisions = self._frame, self._frame.decisions
        heard: NDArray[np.bool_] = np.asarray(counts, dtype=np.bool_)
        with frame.guard.answers, frame.guard.lock, frame.guard.publishing():
            if not 0 <= first <= first + len(heard) <= frame.rounds:
                raise InvalidInput(
                    f"Of {frame.rounds} rounds, got {len(heard)} from {first} on; say chosen() first."
                )
            skipped = min(len(heard), max(0, decisions.passed() - first))
            first, heard = first + skipped, heard[skipped:]
            new = frame.arrived(first + np.arange(len(heard)), heard)
            if frame.contexts is not None and types is not None and not frame.contexts.private:
                known = np.asarray(types, dtype=np.int64)[skipped:]
                there = np.flatnonzero(new & (known >= 0) & (known < frame.contexts.n_types))
                for run in np.split(there, np.flatnonzero(np.diff(there) > 1) + 1):
                    if len(run):
                        self._policy.came(int(first + run[0]), known[run], heard[run])

    def answered(
        self, rounds: Sequence[int] | Ints, rows: Items, types: Sequence[int] | Ints | None, said: Any
    ) -> None:
        """What users said in these rounds; `rows`: what each was shown, EMPTY_SLOT where a slot was empty.

        `types`: of what type each is, where there are contexts. `said`: the feedback of each, in a list; or Users, of
        whom number i gave answer number i. Of each round the first answer counts that can be read and is in time.
        An answer to a round of which `came` was not told is none; it may be handed in again afterwards. Where nobody
        came yet in any round, that is an error, whoever answered.
        """
        frame, decisions = self._frame, self._frame.decisions
        numbers, shown_rows = np.asarray(rounds, dtype=np.int64), np.asarray(rows, dtype=np.int64)
        kinds = np.zeros(len(numbers), dtype=np.int64) if types is None else np.asarray(types, dtype=np.int64)
        if shown_rows.shape != (len(numbers), frame.slots) or not len(numbers) == len(kinds) == len(said):
            raise InvalidInput(
                f"Each answer has a round, a row of {frame.slots} slots, a type and what was said; got {len(numbers)} "
                f"rounds, rows of shape {shown_rows.shape}, {len(kinds)} types and {len(said)} answers."
            )
        frame.guard.check(once=False)
        sound = np.flatnonzero(self._sound(shown_rows, kinds) & (numbers >= 0))
        with frame.guard.asking():
            read, answers = self._read(sound, numbers, shown_rows, said)
        with frame.guard.answers, frame.guard.lock, frame.guard.publishing():
            if (
                frame.rounds and not decisions.told.any()
            ):  # by public facts alone: it does not say who answered
                raise InvalidInput(
                    "Nobody has said who came in these rounds, and so whose answers count. Call came() for them first, "
                    "also where everybody's do."
                )
            which = read[decisions.open_rounds(numbers[read])]
            if not len(which):
                return
            places = numbers[which] % decisions.remembered
            decisions.rows[places] = shown_rows[which]
            if len(decisions.types):
                decisions.types[places] = kinds[which]
            decisions.waiting[places] = False
            theirs = said[which] if isinstance(said, Users) else [answers[each] for each in which.tolist()]
            self._policy.learn_all(places, theirs)

    def _sound(self, rows: Ints, kinds: Ints) -> NDArray[np.bool_]:
        """Which rows can have been shown, to somebody of a type that there is: compiled code trusts them."""
        frame, ordered = self._frame, np.sort(rows, axis=1)
        twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != EMPTY_SLOT)
        most = 1 if frame.contexts is None else frame.contexts.n_types
        items = ((rows >= EMPTY_SLOT) & (rows < frame.n_items)).all(axis=1)
        return np.asarray(items & ~twice.any(axis=1) & (kinds >= 0) & (kinds < most))

    def _read(self, which: Ints, rounds: Ints, rows: Ints, said: Any) -> tuple[Ints, dict[int, Any]]:
        """Of these answers those that can be read; and, where they are in a list, as the policy learns from them."""
        frame, reader, answers = self._frame, self._policy.reader, dict[int, Any]()
        if isinstance(said, Users):
            said.check()
            return which if said.n_items == frame.n_items and "full" in reader.kinds else which[:0], answers
        for each in which.tolist():
            try:
                decision = Decision(int(rounds[each]), shown(rows[each]))
                answers[each] = asked(partial(reader, frame, decision, said[each]))
            except UserCodeStopped:
                raise
            except Exception:  # whatever was said cannot be read, and counts as nothing
                continue
        return np.array(list(answers), dtype=np.int64), answers

    def erase(self, rounds: Sequence[int] | Ints) -> None:
        """Nothing that is released from now on uses what single users said in these rounds.

        Where users are kept they are dropped; what was added to sums stays there, as what was published does
        (docs/maths/late.md, Theorem L3). Not in the midst of a release.
        """
        guard = self._frame.guard
        with guard.everything(), guard.learning():
            self._policy.erase(np.asarray(rounds, dtype=np.int64))
