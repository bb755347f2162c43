"""The interface of every learner.

    decision = learner.choose()            # before we know what this user wants; choose("ada"): who it is
    ... show decision.slate ...
    learner.observe(decision, feedback)    # afterwards: what they reported; perhaps late, twice, or never

`observe` never makes anything visible happen: it returns None whether or not the feedback was used. `choose_many` and
`observe_many` handle many users, `replay` a stream, compiled: slate for slate the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diminuendo import _snapshots, _validate
from diminuendo.errors import DiminuendoError, InvalidInput, UserCodeStopped, refuse_copies
from diminuendo.learners.base.contribution_bound import Identity, silenced
from diminuendo.learners.base.feedback import refusal
from diminuendo.learners.base.feedback_window import FeedbackWindow, answered_in_time
from diminuendo.learners.base.menu import Menu
from diminuendo.learners.base.policy import MenuPolicy, Policy
from diminuendo.learners.health import Health
from diminuendo.privacy.budget import Budget, Guarantee, Unit
from diminuendo.privacy.events import Event
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.process_guard import call_user
from diminuendo.randomness.sources import RandomSource
from diminuendo.streams.contexts import Context, Contexts
from diminuendo.streams.exclusions import Exclusions
from diminuendo.streams.users import Stream, Users
from diminuendo.types import EMPTY_SLOT, Decision, DecisionId, FeedbackKind, Ints, Items, Progress

TOGETHER = 1000
"""Rounds that are chosen, at most, between two looks at what is due."""


@final
class Learner:
    """Chooses slates for a stream of users and learns from their feedback.

    `make` and the entries of `LEARNERS` return learners; all have this interface. A learner may be used from
    several threads.

    Parameters
    ----------
    policy : Policy
        The algorithm.

    Attributes
    ----------
    policy : Policy
        The algorithm, for inspection. Its methods take no lock, count nothing and do not charge.

    Examples
    --------
    >>> import diminuendo as dim
    >>> setting = dim.Setting(n_items=10, slots=2, rounds=100, feedback="bandit")
    >>> learner = dim.make("private", setting, rng=dim.SeededSource(1))
    >>> decision = learner.choose()
    >>> learner.observe(decision, 1.0)  # the reward of decision.slate
    >>> learner.rounds, round(learner.guarantee.epsilon, 6), learner.guarantee.delta
    (1, 1.0, 0.0)
    """

    def __init__(self, policy: Policy) -> None:
        if policy.budget is not None and not policy.frame.limited:
            raise InvalidInput(f"{policy.frame.name!r} promises something, so it needs a horizon, in rounds.")
        self.policy = policy
        self._frame = policy.frame

    def __repr__(self) -> str:
        return f"<Learner {self.name!r}: {self.slots} of {self.n_items} items, {self.rounds} rounds>"

    # What it is.

    @property
    def name(self) -> str:
        """The name in `LEARNERS`."""
        return self._frame.name

    @property
    def n_items(self) -> int:
        """The number of items to choose from."""
        return self._frame.n_items

    @property
    def slots(self) -> int:
        """The number of items in a slate."""
        return self._frame.slots

    @property
    def rounds(self) -> int:
        """The number of decisions so far; with a public sample, of those in it."""
        return self._frame.rounds

    @property
    def horizon(self) -> int | None:
        """The number of rounds that it was made for, None for no limit; with a public sample, of rounds in it."""
        return self._frame.horizon

    @property
    def sample(self) -> int:
        """One in this many users has a round, by a public coin; 1: every user has."""
        return 1 if self._frame.sample is None else self._frame.sample.one_in

    @property
    def max_rounds_per_user(self) -> int:
        """Contribution bound: how many rounds of one user count."""
        return self._frame.max_rounds_per_user

    @property
    def unit(self) -> Unit:
        """The adjacency of the guarantee."""
        return self._frame.unit

    @property
    def feedback_window(self) -> FeedbackWindow:
        """The feedback window, and the share of users who respond."""
        return self._frame.feedback_window

    @property
    def waits(self) -> bool:
        """Whether feedback is used in later releases only, so that its order within the window makes no difference."""
        return isinstance(self.policy, MenuPolicy) and self.feedback_window.rounds is not None

    @property
    def contexts(self) -> Contexts | None:
        """What is known of users when they arrive, or None."""
        return self._frame.contexts

    @property
    def rng(self) -> RandomSource:
        """The source of randomness."""
        return self._frame.rng

    @property
    def reads(self) -> frozenset[FeedbackKind]:
        """The kinds of feedback that it learns from."""
        return self.policy.reader.kinds

    @property
    def parameters(self) -> dict[str, Any]:
        """The public numbers that it was made with, by name."""
        known, result = (
            ("n_items", "slots", "feedback_window"),
            self._frame.config() | self.policy.parameters(),
        )
        return {name: value for name, value in result.items() if name not in known}

    # What it promises.

    @property
    def guarantee(self) -> Guarantee:
        """What is proved about everything that this learner publishes: epsilon, delta, adjacency, view and proof."""
        return self.policy.guarantee

    @property
    def claim(self) -> Guarantee | None:
        """What the paper's own analysis claims, for algorithms of the paper; None for others."""
        return self.policy.claim

    @property
    def budget(self) -> Budget | None:
        """The budget that was given, or None if the learner is not private."""
        return self.policy.budget

    @property
    def ledger(self) -> Ledger | None:
        """The ledger that is charged, or None if the learner has one of its own in memory."""
        return self._frame.ledger

    @property
    def events(self) -> Event | None:
        """The cost of the whole run, or None if nothing is drawn or nothing is promised."""
        return self.policy.events

    @property
    def health(self) -> Health:
        """Whether published totals show that feedback arrives in time.

        Post-processing of releases: free of privacy cost (Theorem H1 of docs/maths/health.md).
        """
        return self.policy.health

    def regret_bound(self, rounds: int | None = None) -> float | None:
        """Return the proved bound on expected regret, if there is one.

        Parameters
        ----------
        rounds : int, optional
            Number of rounds. By default the horizon; learners without one return None then.

        Returns
        -------
        float or None
            Bound on (1 - 1/e) times the reward of the best fixed slate, minus the learner's reward, over all
            rounds.
        """
        return self.policy.regret_bound(rounds)

    @property
    def menu(self) -> Menu | None:
        """The public serving policy: what is shown next, as data. None if slates are drawn from secret scores."""
        return self.policy.menu if isinstance(self.policy, MenuPolicy) else None

    # One user after the other.

    def choose(
        self,
        user_id: Identity | None = None,
        *,
        context: Context = None,
        exclude: Any = None,
        release: bool = True,
    ) -> Decision:
        """Return the slate for the next user.

        What is due is published first.

        Parameters
        ----------
        user_id : hashable, optional
            Identity of the user: a public fact. Without it, a user who comes once.
        context : mapping, sequence or value, optional
            What is known of the user, for learners made with contexts, as {"country": "DE"}.
        exclude : iterable of int, optional
            Items that this user is not shown, for learners made with exclusions. Used for this slate alone; entries
            that are no items are ignored.
        release : bool, default True
            Whether to publish what is due. With False nothing waits: another thread calls `release`. Until it is
            done, users are shown the present menu, or, if the menu has no round left, its leading slate, and their
            feedback is not used.

        Returns
        -------
        Decision

        Raises
        ------
        InvalidInput
            If the horizon is reached, or the context of a learner with public contexts is not listed.
        OverBudget
            If a release is due that the ledger cannot pay.

        Notes
        -----
        From a user's round `max_rounds_per_user` + 1 on, slates are shown as ever, and their feedback is not used.
        """
        excluded = self._frame.exclusions_of(None if exclude is None else [exclude], 1)
        (decision,) = self._choose([user_id], self._frame.types_of_one(context), excluded, release)
        return decision

    def choose_many(
        self,
        count: int,
        user_ids: Sequence[Identity] | NDArray[Any] | None = None,
        *,
        contexts: Any = None,
        exclude: Any = None,
        release: bool = True,
    ) -> list[Decision]:
        """Return the slates for the next `count` users, as if `choose` were called for one after the other.

        Parameters
        ----------
        count : int
            Number of users.
        user_ids : sequence of hashable, optional
            Identity of each user.
        contexts : sequence or array, optional
            What is known of each user, as in `choose`.
        exclude : sequence of items or scipy sparse array, optional
            Items that each user is not shown.
        release : bool, default True
            As in `choose`.

        Returns
        -------
        list of Decision
            If a release in their midst fails, an error is raised instead; the rounds before it are over, without
            feedback.

        Raises
        ------
        InvalidInput
            If lengths do not fit, or fewer than `count` rounds are left.
        """
        count = _validate.whole(count, 0, None, "count")
        named: Sequence[Any] | NDArray[Any] = [None] * count if user_ids is None else user_ids
        if len(named) != count:
            raise InvalidInput(f"user_ids must name one user per round, {count}; got {len(named)}.")
        for user_id in named:
            self._frame.counts(user_id)  # refused before the first round, if the name cannot be counted
        types, excluded = self._frame.types_of(contexts, count), self._frame.exclusions_of(exclude, count)
        return self._choose(named, types, excluded, release)

    def _choose(
        self, user_ids: Sequence[Any] | NDArray[Any], types: Ints, excluded: Exclusions, release: bool
    ) -> list[Decision]:
        frame, policy, decisions = self._frame, self.policy, list[Decision]()
        with frame.guard.user_code(), frame.guard.everything() if release else frame.guard.lock:
            frame.admit(len(user_ids))
            sampled = frame.in_sample(len(user_ids))
            while len(decisions) < len(user_ids):
                if release:
                    self._release_what_is_due()
                with frame.choosing():
                    if not decisions:
                        frame.reserve(user_ids, sampled)
                    for user_id in user_ids[len(decisions) : len(decisions) + TOGETHER]:
                        frame.who_comes(len(decisions), types, excluded)
                        decisions.append(
                            self._choose_one(user_id, release, sampled is None or sampled[len(decisions)])
                        )
                        if release and len(decisions) < len(user_ids) and policy.due():
                            break
        return decisions

    def _choose_one(self, user_id: Identity | None, release: bool, inside: bool | np.bool_) -> Decision:
        """The next round; where nothing is ready for it, one that does not count. Outside of a sample, none."""
        frame, policy = self._frame, self.policy
        row, probe = frame.blank()
        ready = release or not policy.fill(row)
        counts = frame.counts(user_id) and ready
        while ready and not policy.draw(row, probe):
            policy.resume()
        propensity = policy.propensity(row) if ready else None if frame.exclusions else 1.0
        if not inside:
            return frame.decisions.add_outside(row, propensity)
        frame.count(user_id)
        decision = frame.decisions.add(row, probe, counts, propensity, frame.coming)
        if frame.contexts is not None:
            policy.record_arrivals(decision.round, frame.coming[:1], np.array([counts]))
        if not counts:
            frame.silent.append(decision.round)
        return decision

    def observe(self, decision: Decision | DecisionId, feedback: Any) -> None:
        """Report a user's feedback on a decision.

        Parameters
        ----------
        decision : Decision or DecisionId
            As `choose` returned it, or its decision_id.
        feedback : Objective or float or int or None
            By kind: the user's objective (full), the reward in [0, 1] (bandit), or the position of the first click,
            None for no click (click).

        Raises
        ------
        InvalidInput, WrongFeedback
            If the feedback is of another kind or malformed. Nothing was changed.

        Notes
        -----
        Late and repeated feedback changes nothing and looks the same: this returns None whether or not the feedback
        was used, and nothing visible ever happens because of it.
        """
        answer, guard = self._read(decision, feedback), self._frame.guard
        with guard.answers, guard.lock:
            self._learn(*answer)

    def observe_many(self, decisions: Sequence[Decision | DecisionId], feedbacks: Sequence[Any]) -> None:
        """Report feedback on several decisions, as if `observe` were called for one after the other.

        Parameters
        ----------
        decisions : sequence of Decision or DecisionId
            As `choose` returned them.
        feedbacks : sequence
            One for each decision.

        Raises
        ------
        InvalidInput
            Which feedback was refused. All the others were learned from.
        """
        if len(decisions) != len(feedbacks):
            raise InvalidInput(
                f"Each decision has one feedback; got {len(decisions)} decisions and {len(feedbacks)} feedbacks."
            )
        answers, refused = list[tuple[Decision, Any]](), list[str]()
        for number, (decision, feedback) in enumerate(zip(decisions, feedbacks, strict=True)):
            try:
                answers.append(self._read(decision, feedback))
            except UserCodeStopped:
                raise
            except Exception as error:  # foreign objects may raise whatever they like
                refused.append(f"Number {number}: {refusal(error)}")
        guard = self._frame.guard
        with guard.answers, guard.lock:
            for answer in answers:
                try:
                    self._learn(*answer)
                except UserCodeStopped:
                    raise
                except DiminuendoError as error:
                    refused.append(f"Round {answer[0].round}: {refusal(error)}")
        if refused:
            raise InvalidInput(" ".join(refused))

    def _read(self, given: Decision | DecisionId, feedback: Any) -> tuple[Decision, Any]:
        """The decision, and the answer that the policy learns from; refused before anything is changed."""
        decision = self._frame.decision_of(given)
        with self._frame.guard.user_code():
            return decision, call_user(lambda: self.policy.reader(self._frame, decision, feedback))

    def _learn(self, decision: Decision, answer: Any) -> None:
        place = self._frame.decisions.find(decision)
        if place is not None:
            self._frame.decisions.close(place)
            with self._frame.guard.user_code(), self._frame.learning():
                self.policy.learn(place, answer)

    @property
    def unmatched_responses(self) -> int:
        """How many reports named decisions that this learner does not know: of before a crash, or of another learner.

        They count for nothing. If the number grows, feedback goes astray. For the operator alone, never to be
        published: who responds is private, and this number has no noise.
        """
        return self._frame.decisions.unmatched_responses

    def row_of(self, decision: Decision) -> Items:
        """Return the slots of a recent decision one by one, -1 where a slot is empty."""
        return self._frame.decisions.row(decision)

    # Publishing.

    def due(self) -> bool:
        """Return whether a release is due: all rounds of a batch are closed.

        `choose` publishes it before it goes on.
        """
        with self._frame.guard.lock:
            return self.policy.due()

    def release(self) -> None:
        """Publish what is due, if anything is.

        If the feedback window is in rounds, this closes rounds after which that many further rounds were chosen.
        Other threads go on with `choose(release=False)` and `observe` meanwhile.

        Raises
        ------
        OverBudget
            If the ledger cannot pay. Nothing was drawn.
        """
        with self._frame.guard.user_code(), self._frame.guard.releasing:
            self._frame.guard.check(self._frame.limited)
            while self.due():
                self.policy.release()
                self.policy.warn()

    def _release_what_is_due(self) -> None:
        while self.policy.due():
            self.policy.release()
            self.policy.warn()

    # All users at once.

    def replay(
        self,
        users: Users,
        progress: Progress | None = None,
        *,
        user_ids: Sequence[Identity] | NDArray[Any] | None = None,
        delay: Ints | None = None,
        contexts: Any = None,
        exclude: Any = None,
    ) -> Items:
        """Choose and observe for a whole stream, compiled. See `diminuendo.replay`, which takes other streams too.

        Parameters
        ----------
        users : Users
            Users, in order.
        progress : callable, optional
            Called with numbers of rounds just finished.
        user_ids : sequence of hashable, optional
            Identity of each round's user. Their rounds are counted before the first one is played.
        delay : array of int, optional
            How many further rounds are chosen before each user responds; -1 if they never do.
        contexts : sequence or array of int, shape (n_users, n_features), optional
            What is known of each user; -1 for not known. By default what the stream says.
        exclude : sequence of items or scipy sparse array, optional
            Items that each user is not shown.

        Returns
        -------
        ndarray of int, shape (n_users, slots)
            -1 is an empty slot.

        Raises
        ------
        InvalidInput
            If the stream does not fit, or the feedback window is in seconds.
        """
        frame, policy = self._frame, self.policy
        if users.n_items != self.n_items:
            raise InvalidInput(f"The learner has {self.n_items} items, the stream {users.n_items}.")
        users.check()
        if frame.feedback_window.seconds is not None:
            raise InvalidInput(
                "A replay takes no time; give feedback_window in rounds, or choose one by one."
            )
        types, excluded = self.types_of(users, contexts), frame.exclusions_of(exclude, len(users))
        waits = self.feedback_window.rounds if self.waits else None
        slates = np.full((len(users), self.slots), EMPTY_SLOT, dtype=np.int32)
        with frame.guard.everything():
            frame.admit(len(users))
            sampled = frame.in_sample(len(users))
            in_time = answered_in_time(delay, len(users), waits, self.name, sampled)
            counted = frame.count_all(user_ids, len(users), sampled)
        responded = counted if in_time is None else in_time if counted is None else counted & in_time
        users = users if responded is None else silenced(users, responded)
        done = 0
        while (before := done) < len(users):
            with frame.guard.user_code(), frame.guard.everything(), frame.choosing():
                frame.admit(len(users) - done)  # each time: others may have chosen meanwhile
                self._release_what_is_due()
                frame.who_comes(done, types, excluded, responded, sampled)
                with frame.guard.user_code(), frame.learning():
                    done = policy.replay(users, slates, done)
                    frame.pass_by(slates[before:done], counted, before, policy.record_arrivals)
                if done < len(users):
                    policy.resume(len(users) - done)
            if progress:
                progress(done - before)
        return slates

    def types_of(self, users: Stream, contexts: Any = None) -> Ints:
        """Return the context ids of a stream's users, by `contexts` or by what their stream says."""
        if (known := self._frame.contexts) is not None and contexts is None:
            return users.types_in(known)
        return self._frame.types_of(contexts, len(users))

    # The items change.

    def appear(self, items: Iterable[int]) -> None:
        """Make items available from now on.

        Parameters
        ----------
        items : iterable of int
            Items that were absent or retired. A public event: it must not depend on users' feedback.

        Raises
        ------
        InvalidInput
            If the learner has a fixed set of items, or an item is out of range.
        """
        with self._frame.guard.everything():
            self.policy.appear(items)

    def retire(self, items: Iterable[int]) -> None:
        """Stop showing items.

        Parameters
        ----------
        items : iterable of int
            A public event: it must not depend on users' feedback.

        Raises
        ------
        InvalidInput
            If the learner has a fixed set of items, or too few would be left.
        """
        with self._frame.guard.everything():
            self.policy.retire(items)

    # Snapshots. Coins are never in them.

    def snapshot(self) -> bytes:
        """Return all that was learned, without any randomness, as bytes for `diminuendo.restore`.

        A snapshot is as private as users' feedback: store it where you would store that.

        Returns
        -------
        bytes
            A checksummed record; it holds no Python objects.
        """
        frame, policy = self._frame, self.policy
        with frame.guard.everything():
            frame.guard.check(frame.limited)
            spec: dict[str, Any] = {"learner": self.name, "config": self._config()}
            spec |= {"ledger": frame.ledger is not None} if frame.limited else {}
            more = {f"extra.{name}": array for name, array in policy.extra().items()} | frame.extra()
            return _snapshots.sealed(spec, self._arrays() | more)

    def _take_snapshot(self, arrays: _snapshots.Arrays) -> None:
        """Begin with the arrays of a snapshot of a learner that was made with the same arguments."""
        frame, policy = self._frame, self.policy
        if frame.rounds:
            raise InvalidInput("A learner that has chosen does not go back to a snapshot; restore() another.")
        extra = _snapshots.taken(arrays, "extra")
        if frame.contribution_bound is not None:
            frame.contribution_bound.take(_snapshots.taken(arrays, "visits"))
        rounds = {name: arrays.pop(name) for name in ("silent", "unrecorded") if name in arrays}
        _snapshots.fill(self._arrays(), arrays)
        try:
            frame.take_rounds(**rounds)
            policy.take_extra(extra)
            policy.restored()
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(f"The snapshot does not fit its own configuration: {error}.") from error

    def _config(self) -> dict[str, Any]:
        return self._frame.config() | self.policy.config()

    def _arrays(self) -> _snapshots.Arrays:
        """All arrays of fixed size."""
        return self._frame.decisions.arrays | _snapshots.named("state", self.policy.state())

    def __getstate__(self) -> dict[str, Any]:
        if self._frame.limited:
            refuse_copies(self)
        return self.__dict__
