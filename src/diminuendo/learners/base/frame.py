"""A frame: what every learner stands on, whatever its algorithm.

Its sizes, its randomness, the decisions that are still open, and, if it promises anything, its horizon, how many
rounds of one user count, and the ledger that is charged. A frame knows nothing of feedback.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import Enum
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo import _validate
from diminuendo.errors import InvalidInput, refuse_copies
from diminuendo.learners.base.contribution_bound import ContributionBound, Identity
from diminuendo.learners.base.decisions import NO_PROBE, OpenDecisions
from diminuendo.learners.base.feedback_window import Patient, as_feedback_window
from diminuendo.privacy.budget import REPLACE, REPLACE_WITH_CONTEXT, REPLACE_WITH_EXCLUSIONS, Unit
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.process_guard import ProcessGuard
from diminuendo.randomness.public_sample import PublicSample
from diminuendo.randomness.sources import RandomSource, SystemSource, incarnation_of
from diminuendo.randomness.words import PublicSource, SecretRandomness
from diminuendo.streams.contexts import NOBODY, Context, Contexts
from diminuendo.streams.exclusions import NONE, Exclusions, exclusions_of
from diminuendo.types import EMPTY_SLOT, Decision, DecisionId, Floats, Ints, Items, sound

STRIDE = 1 << 14
"""Rounds that are played in one go where slates are drawn with secret words; progress waits meanwhile."""

LONGEST = 1 << 36
"""Rounds, where something is promised and it is not known how many there will be."""


NO_ROUNDS: Ints = np.zeros(0, dtype=np.int64)


class Unlimited(Enum):
    """The horizon of learners that promise nothing.

    A private learner that is given no number of rounds is refused, and does not go on without its limits.
    """

    FOR_EVER = "for ever"


class Frame:
    """What every learner stands on: sizes, randomness, open decisions, contribution bounding, and the ledger.

    Parameters
    ----------
    name : str
        The name of the learner.
    n_items : int
        Number of items.
    slots : int
        Number of items in a slate.
    horizon : int, optional
        Number of users. Required where anything is promised; without it there is no limit and no promise.
    max_rounds_per_user : int, default 1
        How many rounds of one user count.
    ledger : Ledger, optional
        What is charged. None if the learner has a ledger of its own.
    rng : RandomSource, optional
        Randomness. By default SystemSource.
    feedback_window : FeedbackWindow or int, optional
        Feedback window.
    contexts : Contexts, optional
        What is known of users when they arrive.
    exclusions : bool, default False
        Whether users may exclude items.
    sample : int, default 1
        One in `sample` users has a round, by a public coin.

    Attributes
    ----------
    public : PublicSource
        For draws that may be published.
    secret : SecretRandomness
        For noise and private draws.
    unit : Unit
        Adjacency that follows from `max_rounds_per_user`, contexts and exclusions.
    horizon : int or None
        Number of rounds; with a sample, of rounds in it.

    Raises
    ------
    InvalidInput
        If sizes are out of range, or the ledger is for another adjacency or for fewer rounds per user.

    Examples
    --------
    >>> from diminuendo import SeededSource
    >>> from diminuendo.extend import Frame
    >>> frame = Frame("mine", n_items=10, slots=2, horizon=1_000, max_rounds_per_user=3, rng=SeededSource(1))
    >>> print(frame.unit)
    replace one user's 3 rounds
    """

    def __init__(
        self,
        name: str,
        n_items: int,
        slots: int,
        *,
        horizon: int | Unlimited = Unlimited.FOR_EVER,
        max_rounds_per_user: int = 1,
        ledger: Ledger | None = None,
        rng: RandomSource | None = None,
        feedback_window: Patient = None,
        contexts: Contexts | None = None,
        exclusions: bool = False,
        sample: int = 1,
    ) -> None:
        self.name = name
        self.n_items = _validate.positive_int(n_items, "n_items")
        self.slots = _validate.slots(slots, self.n_items)
        self.rng = checked_rng(rng)
        self.public = PublicSource(self.rng)
        self.secret = SecretRandomness(self.rng)
        self.feedback_window = as_feedback_window(feedback_window)
        for column in () if contexts is None else contexts.columns:
            if column.symmetric and len(column) != self.n_items:
                raise InvalidInput(
                    f"The values of {column.name}, which is symmetric, must be the {self.n_items} items; "
                    f"got {len(column)} values."
                )
        self.contexts = contexts
        """What is known of users when they come; None: nothing."""
        self.coming: Ints = NOBODY
        """Context ids of the users who are chosen for now, the next first; empty without contexts."""
        self.response_mask: NDArray[np.bool_] | None = None
        """In a replay: whether the feedback of each of the next users counts; None: of all."""
        self.exclusions = bool(exclusions)
        """Whether users may exclude items."""
        self.excluding: Exclusions = NONE
        """What the users exclude who are chosen for now, the next first. Private."""
        one_in = _validate.positive_int(sample, "sample")
        self.decisions = OpenDecisions(
            self.slots,
            self.feedback_window,
            incarnation_of(self.rng),
            types=contexts is not None,
            sampled=one_in > 1,
            private=self.exclusions or (contexts is not None and contexts.private),
        )
        self.guard = ProcessGuard()
        self.users = None if isinstance(horizon, Unlimited) else _validate.positive_int(horizon, "horizon")
        """How many users may come; None: any number. All of them have rounds, unless there is a sample."""
        known = self.users is not None and self.users < LONGEST
        self.horizon = -(-self.users // one_in) if self.users is not None and known else self.users
        """How many rounds there may be. Once a sample has had them, all users are outside of it."""
        self.sample = PublicSample(one_in, self.public) if one_in > 1 else None
        """Which users have a round; None: all."""
        self.sampled: NDArray[np.bool_] | None = None
        """In a replay: who of the users who come next has a round; None: all of them."""
        self.max_rounds_per_user = _validate.positive_int(max_rounds_per_user, "max_rounds_per_user")
        hidden = contexts is not None and contexts.private
        public = REPLACE_WITH_EXCLUSIONS if self.exclusions else REPLACE
        self.unit = Unit(self.max_rounds_per_user, REPLACE_WITH_CONTEXT if hidden else public)
        self.ledger = ledger
        """The ledger that was given; None where a learner keeps its own books, in memory."""
        self._refuse_a_ledger_for_others()
        on_disk = None if ledger is None else ledger.contributions_of(name)
        self.contribution_bound = (
            None if self.horizon is None else ContributionBound(self.max_rounds_per_user, on_disk)
        )
        self.silent: list[int] = []
        """The rounds, rising, whose users are over the contribution bound. Public."""

    def __repr__(self) -> str:
        return f"<Frame of {self.name!r}: {self.slots} of {self.n_items} items, {self.rounds} rounds>"

    @property
    def rounds(self) -> int:
        """The number of decisions so far."""
        return self.decisions.rounds

    @property
    def closed(self) -> int:
        """Watermark: rounds before this number are closed to feedback once the next round is chosen."""
        return self.decisions.closed

    def published_at(self, end: int) -> int | None:
        """Return the round before which the rounds up to `end` are closed; None if the window is in seconds."""
        return None if self.feedback_window.seconds is not None else end + self.feedback_window.ahead

    @property
    def limited(self) -> bool:
        """Whether it was made for a number of rounds, and so for one process and one ledger: not to be copied."""
        return self.horizon is not None

    def learning(self) -> AbstractContextManager[None]:
        """Learn in here. Any failure leaves a learner with a guarantee unusable."""
        return self.guard.learning() if self.limited else nullcontext()

    def admit(self, rounds: int) -> None:
        """Refuse, before anything is changed, more rounds than this learner was made for."""
        self.guard.check(self.limited)
        if self.horizon is None:
            return
        arrivals = self.rounds + int(self.decisions.outside.sum())
        if self.users is not None and arrivals + rounds > self.users:
            raise InvalidInput(
                f"This learner was made for {self.users:,} rounds, and {arrivals:,} are over; {rounds:,} more "
                "would cost more privacy than was promised. Make a new one for the users to come."
            )

    def decision_of(self, given: Decision | DecisionId) -> Decision:
        """The decision that is answered: as it was given, made sound, or that of a decision_id."""
        self.guard.check(once=False)
        if isinstance(given, DecisionId):
            with self.guard.lock:
                return self.decisions.recall(given)
        return sound(given)

    def in_sample(self, users: int) -> NDArray[np.bool_] | None:
        """Which of the users who come next have a round, by public coins; None: all of them."""
        if self.sample is None or self.horizon is None:
            return None
        heads = self.sample.heads(self.rounds + int(self.decisions.outside[0]), users)
        heads[np.cumsum(heads) > self.horizon - self.rounds] = False
        return heads

    def counts(self, user_id: Identity | None) -> bool:
        """Whether feedback in the next round of this user counts. Changes nothing."""
        return self.contribution_bound is None or self.contribution_bound.admits(user_id)

    def reserve(self, user_ids: Iterable[Identity | None], sampled: NDArray[np.bool_] | None = None) -> None:
        """Make it durable, where the ledger is a file, that these users, or those `sampled`, are shown a round."""
        if self.contribution_bound is not None:
            self.contribution_bound.reserve(user_ids if sampled is None else compress(user_ids, sampled))

    def count(self, user_id: Identity | None) -> None:
        """This user has had one more round."""
        if self.contribution_bound is not None:
            self.contribution_bound.count(user_id)

    def silent_rounds(self, first: int, end: int) -> Ints:
        """The rounds from `first` on, before `end`, whose answers do not count."""
        return np.array(
            self.silent[bisect.bisect_left(self.silent, first) : bisect.bisect_left(self.silent, end)],
            dtype=np.int64,
        )

    def record_arrivals(self, rounds: Ints, counts: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Record who arrived in these rounds, rising, and whether their feedback counts; return which records are new.

        A record that contradicts an earlier one is refused, before anything is changed.
        """
        if not len(rounds):
            return np.zeros(0, dtype=np.bool_)
        known = self.decisions.arrived[rounds % self.decisions.remembered]
        before = ~np.isin(rounds, self.silent_rounds(int(rounds[0]), int(rounds[-1]) + 1))
        if (otherwise := known & (before != counts)).any():
            raise InvalidInput(
                f"Whether the answer to round {rounds[otherwise][0]} counts was said before, and otherwise. Say it "
                "once of each round, before anybody answers it."
            )
        new, last = rounds[~known], self.silent[-1] if self.silent else -1
        self.silent += new[~counts[~known]].tolist()
        if len(new) and new[0] <= last:
            self.silent.sort()
        self.decisions.record_arrivals(new, counts[~known])
        return ~known

    def count_all(
        self,
        user_ids: Sequence[Identity] | NDArray[Any] | None,
        users: int,
        sampled: NDArray[np.bool_] | None,
    ) -> NDArray[np.bool_] | None:
        """Count the next rounds, one of each of `user_ids`; for each, whether its answer counts. None: all do.

        With a public sample rounds outside of it are not counted, and are marked as if they counted.
        """
        if self.contribution_bound is None:
            return None
        if sampled is None:
            return self.contribution_bound.count_all(user_ids, users)
        if user_ids is not None and len(user_ids) != users:
            raise InvalidInput(f"user_ids must name one user per round, {users}; got {len(user_ids)}.")
        if user_ids is not None:
            user_ids = (
                user_ids[sampled] if isinstance(user_ids, np.ndarray) else [*compress(user_ids, sampled)]
            )
        result = np.ones(users, dtype=np.bool_)
        result[sampled] = self.contribution_bound.count_all(user_ids, int(sampled.sum()))
        return result

    def who_comes(
        self,
        done: int,
        types: Ints,
        excluded: Exclusions,
        response_mask: NDArray[np.bool_] | None = None,
        sampled: NDArray[np.bool_] | None = None,
    ) -> None:
        """Set what is known of the users from `done` on; in a replay, also whose feedback counts, and the sample."""
        self.coming, self.excluding = types[done:], excluded.since(done)
        self.response_mask = None if response_mask is None else response_mask[done:]
        self.sampled = None if sampled is None else sampled[done:]

    @contextmanager
    def choosing(self) -> Iterator[None]:
        """What is known of the users who are chosen for in here is for their slates alone, whatever fails."""
        try:
            yield
        finally:
            self.coming, self.excluding, self.response_mask, self.sampled = NOBODY, NONE, None, None

    def pass_by(
        self,
        slates: Items,
        counted: NDArray[np.bool_] | None,
        done: int,
        record_arrivals: Callable[[int, Ints, NDArray[np.bool_]], None],
    ) -> None:
        """Count the next users, who were chosen for and responded in one go; in a sample, those in it.

        `counted`: whose feedback counts, from `done` on. `record_arrivals`: takes context ids, with contexts.
        """
        many, types = len(slates), self.coming[: len(slates)]
        counts = np.ones(many, dtype=np.bool_) if counted is None else counted[done : done + many]
        if self.sampled is not None:
            inside = np.flatnonzero(self.sampled[:many])
            self.decisions.outside += many - len(inside)
            slates, counts, types = slates[inside], counts[inside], types[inside] if len(types) else types
        self.silent += (self.rounds + np.flatnonzero(~counts)).tolist()
        if self.contexts is not None:
            record_arrivals(self.rounds, types, counts)
        self.decisions.pass_by(slates, types)

    def answers_in(self, ends: Sequence[int]) -> Floats:
        """Return about how many responses batches that end with these rounds have: public, and what sums divide by."""
        silent = np.diff(np.searchsorted(np.array(self.silent, dtype=np.int64), (0, *ends)))
        result: Floats = self.feedback_window.response_rate * np.maximum(
            np.diff(ends, prepend=0) - silent, 1.0
        )
        return result

    def blank(self) -> tuple[Items, Items]:
        """An empty slate, and no probe, to be filled in."""
        return np.full(self.slots, EMPTY_SLOT, dtype=np.int32), np.full(3, NO_PROBE, dtype=np.int32)

    def resume(self, rounds: int = 1) -> bool:
        """Give an interrupted kernel words, about as many as `rounds` rounds want; says whether it lacked any."""
        wanted = rounds * (2 * self.slots + 2)  # the fewer returns, the less threads wait for each other
        return self.public.resume(wanted) | self.secret.resume(wanted)

    def stride(self, play: Callable[[int, int], int], done: int, end: int) -> int:
        """Play rounds from `done` to `end` at most, with `play(done, stop)`, and return how far it got: a public fact.

        Where secret words run out depends on secret draws, so it goes on to the end of a stride of public length,
        unless something else than words is missing, such as the next payment.
        """
        stop = min(end, done + STRIDE)
        while (done := play(done, stop)) < stop:
            try:
                if not self.resume(stop - done):
                    break
            except Exception:  # the next request for words raises it
                break
        return done

    def config(self) -> dict[str, Any]:
        """The arguments that it was made with, as far as a snapshot holds them."""
        result: dict[str, Any] = {
            "n_items": self.n_items,
            "slots": self.slots,
        }
        if (feedback_window := self.feedback_window.config()) is not None:
            result["feedback_window"] = feedback_window
        if self.users is not None:
            result["horizon"] = self.users
        if self.sample is not None:
            result["sample"] = self.sample.one_in
        if self.contexts is not None:
            result["contexts"] = self.contexts.config()
        if self.exclusions:
            result["exclusions"] = True
        return result | (
            {"max_rounds_per_user": self.max_rounds_per_user} if self.max_rounds_per_user > 1 else {}
        )

    def extra(self) -> dict[str, NDArray[Any]]:
        """What a snapshot holds of how often users came, and of rounds that do not count."""
        max_rounds_per_user = {} if self.contribution_bound is None else self.contribution_bound.arrays()
        result = {f"visits.{name}": array for name, array in max_rounds_per_user.items()}
        unrecorded = self.decisions.unrecorded
        result |= {"unrecorded": unrecorded} if len(unrecorded) else {}
        return result | ({"silent": np.array(self.silent, dtype=np.int64)} if self.silent else {})

    def take_rounds(self, silent: NDArray[Any] = NO_ROUNDS, unrecorded: NDArray[Any] = NO_ROUNDS) -> None:
        """Go on with the rounds that do not count, and those of which that is not known."""
        decisions = self.decisions
        decisions.arrived[:], decisions.arrived[unrecorded % decisions.remembered] = True, False
        self.silent = silent.tolist()

    def _refuse_a_ledger_for_others(self) -> None:
        ledger = self.ledger
        if ledger is not None and not isinstance(ledger, Ledger):
            raise InvalidInput(f"What is published is paid for on a Ledger; got {ledger!r}.")
        if ledger is not None and ledger.budget.unit.rounds < self.max_rounds_per_user:
            raise InvalidInput(
                f"The ledger protects {ledger.budget.unit.rounds} rounds of one user, and this learner lets them "
                f"answer in {self.max_rounds_per_user}. Open it with Budget(..., "
                f"unit=Unit(rounds={self.max_rounds_per_user})), or ask for fewer "
                "rounds per user."
            )
        if ledger is not None and (self.contexts is not None or self.exclusions):
            given = ledger.budget.unit.relation
            if given != self.unit.relation:
                private = self.contexts is not None and self.contexts.private
                known = f"contexts that are {'private' if private else 'public'}"
                what = known if private or not self.exclusions else "exclusions"
                raise InvalidInput(
                    f"The ledger is for the relation {given!r}, and {what} are for {self.unit.relation!r}. Open one "
                    f"with Budget(..., unit=Unit(rounds={self.max_rounds_per_user}, "
                    f"relation={self.unit.relation!r})): guarantees "
                    "of two relations do not add up to one."
                )

    def types_of_one(self, context: Context) -> Ints:
        """The type of the next user, alone in an array."""
        if self.contexts is None:
            return self.types_of(context, 1)
        with self.guard.user_code():
            return np.array([self.contexts.type_of(context)], dtype=np.int64)

    def types_of(self, table: Any, rounds: int) -> Ints:
        """Context ids of the next users; empty without contexts."""
        if self.contexts is None:
            if table is not None:
                raise InvalidInput(
                    f"This {self.name!r} was made without contexts; make it with contexts=Contexts(..)."
                )
            return NOBODY
        with self.guard.user_code():
            return (
                np.zeros(rounds, dtype=np.int64) if table is None else self.contexts.types_of(table, rounds)
            )

    def exclusions_of(self, given: Any, users: int) -> Exclusions:
        """What the next users exclude; empty without exclusions."""
        if given is not None and not self.exclusions:
            raise InvalidInput(
                f"This {self.name!r} was made without exclusions; make it with exclusions=True, if its recipe takes "
                "them, as those of 'private' do."
            )
        with self.guard.user_code():
            return exclusions_of(given, users, self.n_items)

    def __getstate__(self) -> dict[str, Any]:
        if self.limited:
            refuse_copies(self)
        return {name: value for name, value in self.__dict__.items() if name not in ("guard", "secret")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.guard, self.secret = ProcessGuard(), SecretRandomness(self.rng)


def checked_rng(rng: RandomSource | None) -> RandomSource:
    """The system's randomness by default."""
    if rng is not None and not all(hasattr(rng, part) for part in ("public", "secret", "secure")):
        raise InvalidInput(f"rng must be SystemSource() or SeededSource(seed); got {rng!r}.")
    return SystemSource() if rng is None else rng
