"""The contract that every learner keeps.

    decision = learner.choose()            # before we know what this person wants; choose("ada"): who she is
    ... show decision.slate ...
    learner.observe(decision, feedback)    # afterwards: what she told us; perhaps late, twice, or never

`observe` never makes anything visible happen: it returns None whether or not the answer still counted.
`choose_many` and `observe_many` do so for many people, `replay` for a stream, compiled: slate for slate the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diminuendo import _snapshots, _validate
from diminuendo.errors import DiminuendoError, InvalidInput, refuse_copies
from diminuendo.learners.base.feedback import refusal
from diminuendo.learners.base.menu import Menu
from diminuendo.learners.base.patience import Patience, answered_in_time
from diminuendo.learners.base.policy import MenuPolicy, Policy
from diminuendo.learners.base.visits import Identity, silenced
from diminuendo.learners.health import Health
from diminuendo.privacy.budget import Budget, Guarantee, Unit
from diminuendo.privacy.events import Event
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.process_guard import asked
from diminuendo.randomness.coins import Coins
from diminuendo.streams.contexts import Context, Contexts
from diminuendo.streams.exclusions import Exclusions
from diminuendo.streams.people import People, Stream
from diminuendo.types import EMPTY_SLOT, Decision, FeedbackKind, Ints, Items, Progress, Ticket

TOGETHER = 1000
"""Rounds that are chosen, at most, while Ctrl-C waits."""


@final
class Learner:
    """Chooses slates for a stream of people and learns from what they say; how, its policy says."""

    def __init__(self, policy: Policy) -> None:
        if policy.budget is not None and not policy.frame.limited:
            raise InvalidInput(f"{policy.frame.name!r} promises something, so it needs a horizon, in rounds.")
        self.policy = policy
        """The algorithm, for whoever looks inside. Its methods take no lock, count nothing and do not pay."""
        self._frame = policy.frame

    def __repr__(self) -> str:
        return f"<Learner {self.name!r}: {self.slots} of {self.n_items} items, {self.rounds} rounds>"

    # What it is.

    @property
    def name(self) -> str:
        """The name that users type."""
        return self._frame.name

    @property
    def n_items(self) -> int:
        """How many items there are to choose from."""
        return self._frame.n_items

    @property
    def slots(self) -> int:
        """How many items are shown to each person."""
        return self._frame.slots

    @property
    def rounds(self) -> int:
        """The number of decisions made so far; with a public sample, of those in it."""
        return self._frame.rounds

    @property
    def horizon(self) -> int | None:
        """For how many rounds it was made; None: for ever. With a public sample, of those in it."""
        return self._frame.horizon

    @property
    def sample(self) -> int:
        """Of how many people one has a round, by a public coin; 1: everybody has."""
        return 1 if self._frame.sample is None else self._frame.sample.one_in

    @property
    def visits(self) -> int:
        """How many rounds of one person count."""
        return self._frame.visits

    @property
    def unit(self) -> Unit:
        """Whose answers are protected together."""
        return self._frame.unit

    @property
    def patience(self) -> Patience:
        """How long answers are waited for, and how many people answer at all."""
        return self._frame.patience

    @property
    def waits(self) -> bool:
        """Whether answers are for what is published later: who answers before her deadline makes no difference."""
        return isinstance(self.policy, MenuPolicy) and self.patience.rounds is not None

    @property
    def contexts(self) -> Contexts | None:
        """What is known of people when they come; None: nothing."""
        return self._frame.contexts

    @property
    def coins(self) -> Coins:
        """Where its random words come from."""
        return self._frame.coins

    @property
    def reads(self) -> frozenset[FeedbackKind]:
        """The kinds of feedback it can learn from."""
        return self.policy.reader.kinds

    @property
    def parameters(self) -> dict[str, Any]:
        """The public numbers that it was made with."""
        known, found = ("n_items", "slots", "patience"), self._frame.config() | self.policy.parameters()
        return {name: value for name, value in found.items() if name not in known}

    # What it promises.

    @property
    def guarantee(self) -> Guarantee:
        """What is proved about everything this learner lets out."""
        return self.policy.guarantee

    @property
    def claim(self) -> Guarantee | None:
        """What the paper's own analysis says, where the algorithm is one of the paper's."""
        return self.policy.claim

    @property
    def budget(self) -> Budget | None:
        """What was asked for; None where nothing is promised."""
        return self.policy.budget

    @property
    def ledger(self) -> Ledger | None:
        """The ledger that pays for it; None where it keeps its own books, in memory."""
        return self._frame.ledger

    @property
    def events(self) -> Event | None:
        """What the whole run costs; None where nobody is asked, or nothing is promised."""
        return self.policy.events

    @property
    def health(self) -> Health:
        """Whether published numbers show that anybody answers in time; it reads nothing else, so it is free."""
        return self.policy.health

    def regret_bound(self, rounds: int | None = None) -> float | None:
        """What is proved, if anything, of expected regret to (1 - 1/e) of the best slate, of all or `rounds` rounds."""
        return self.policy.regret_bound(rounds)

    @property
    def menu(self) -> Menu | None:
        """What is shown next, as public data; None where slates are drawn from secret scores."""
        return self.policy.menu if isinstance(self.policy, MenuPolicy) else None

    # One person after the other.

    def choose(
        self,
        person: Identity | None = None,
        *,
        context: Context = None,
        exclude: Any = None,
        release: bool = True,
    ) -> Decision:
        """The slate for the next person. `person`: who she is, a public fact; without it, somebody who comes once.

        `context`: what is known of her, where the learner was made with contexts; by column, as {"country": "DE"}.
        `exclude`: items that she is not shown, such as what she has already, where the learner was made with
        exclusions. They are used for this slate alone; what is no item is left out.

        Private learners are made for people who have up to `visits` rounds. In the rounds after those a slate is
        shown as ever, and her answer changes nothing.

        What is due is published first. With `release=False` it is not, and nobody waits: another thread calls
        `release()`, and until it is done people see the present menu. Where that has no round left, they see its
        leading slate, and their answers change nothing.
        """
        excluded = self._frame.exclusions_of(None if exclude is None else [exclude], 1)
        (decision,) = self._choose([person], self._frame.types_of_one(context), excluded, release)
        return decision

    def choose_many(
        self,
        count: int,
        persons: Sequence[Identity] | NDArray[Any] | None = None,
        *,
        contexts: Any = None,
        exclude: Any = None,
        release: bool = True,
    ) -> list[Decision]:
        """The slates for the next `count` people, as if choose() were called for one after the other.

        `persons`: who they are; `contexts`: what is known of each of them, and `exclude`: what each of them is not
        shown, as in `choose`. If something is to be published in their midst and that fails, none is returned; the
        rounds before it are over, as rounds that nobody answers.
        """
        count = _validate.whole(count, 0, None, "count")
        named: Sequence[Any] | NDArray[Any] = [None] * count if persons is None else persons
        if len(named) != count:
            raise InvalidInput(f"persons must name one person per round, {count}; got {len(named)}.")
        for person in named:
            self._frame.counts(person)  # whoever cannot be counted is refused before the first round
        types, excluded = self._frame.types_of(contexts, count), self._frame.exclusions_of(exclude, count)
        return self._choose(named, types, excluded, release)

    def _choose(
        self, persons: Sequence[Any] | NDArray[Any], types: Ints, excluded: Exclusions, release: bool
    ) -> list[Decision]:
        frame, policy, made = self._frame, self.policy, list[Decision]()
        with frame.guard.everything() if release else frame.guard.lock:
            frame.admit(len(persons))
            sampled = frame.in_sample(len(persons))
            while len(made) < len(persons):
                if release:
                    self._release_what_is_due()
                with frame.guard.defer_interrupt(), frame.choosing():  # each handed out, or nothing of it
                    if not made:
                        frame.reserve(persons, sampled)
                    for person in persons[len(made) : len(made) + TOGETHER]:
                        frame.who_comes(len(made), types, excluded)
                        made.append(self._choose_one(person, release, sampled is None or sampled[len(made)]))
                        if release and len(made) < len(persons) and policy.due():
                            break
        return made

    def _choose_one(self, person: Identity | None, release: bool, inside: bool | np.bool_) -> Decision:
        """The next round; where nothing is ready for it, one that does not count. Outside of a sample, none."""
        frame, policy = self._frame, self.policy
        row, probe = frame.blank()
        ready = release or not policy.fill(row)
        counts = frame.counts(person) and ready
        while ready and not policy.draw(row, probe):
            policy.resume()
        propensity = policy.propensity(row) if ready else None if frame.exclusions else 1.0
        if not inside:
            return frame.decisions.add_outside(row, propensity)
        frame.count(person)
        decision = frame.decisions.add(row, probe, counts, propensity, frame.coming)
        if frame.contexts is not None:
            policy.came(decision.round, frame.coming[:1], np.array([counts]))
        if not counts:
            frame.silent.append(decision.round)
        return decision

    def observe(self, decision: Decision | Ticket, feedback: Any) -> None:
        """What the person said to `decision`, or its ticket. Late and second ones change nothing, and look the same."""
        answer, guard = self._read(decision, feedback), self._frame.guard
        with guard.answers, guard.lock, guard.defer_interrupt():  # closed and learned from, or nothing of it
            self._learn(*answer)

    def observe_many(self, decisions: Sequence[Decision | Ticket], feedbacks: Sequence[Any]) -> None:
        """What several people said, as if observe() were called for one after the other.

        Feedback that is refused does not touch that of others: they are learned from, and then it is said which.
        """
        if len(decisions) != len(feedbacks):
            raise InvalidInput(
                f"Each decision has one feedback; got {len(decisions)} decisions and {len(feedbacks)} feedbacks."
            )
        answers, refused = list[tuple[Decision, Any]](), list[str]()
        for number, (decision, feedback) in enumerate(zip(decisions, feedbacks, strict=True)):
            try:
                answers.append(self._read(decision, feedback))
            except Exception as error:  # foreign objects may raise whatever they like
                refused.append(f"Number {number}: {refusal(error)}")
        guard = self._frame.guard
        with guard.answers, guard.lock, guard.defer_interrupt():
            for answer in answers:
                try:
                    self._learn(*answer)
                except DiminuendoError as error:
                    refused.append(f"Round {answer[0].round}: {refusal(error)}")
        if refused:
            raise InvalidInput(" ".join(refused))

    def _read(self, given: Decision | Ticket, feedback: Any) -> tuple[Decision, Any]:
        """The decision, and the answer that the policy learns from; refused before anything is changed."""
        decision = self._frame.decision_of(given)
        with self._frame.guard.asking():
            return decision, asked(lambda: self.policy.reader(self._frame, decision, feedback))

    def _learn(self, decision: Decision, answer: Any) -> None:
        place = self._frame.decisions.find(decision)
        if place is not None:
            self._frame.decisions.close(place)
            self.policy.learn(place, answer)

    @property
    def unknown_lives(self) -> int:
        """How many answers came to decisions that this learner does not know: of before a crash, or of another one.

        They count for nothing; if this grows, they go astray. For the operator's eyes, never to be published: who
        answers is private, and here is no noise. It waits to be asked, since a warning would say when somebody answers.
        """
        return self._frame.decisions.unknown_lives

    def row_of(self, decision: Decision) -> Items:
        """The slots of a recent decision one by one, -1 where a slot is empty."""
        return self._frame.decisions.row(decision)

    # Publishing.

    def due(self) -> bool:
        """Whether something is to be published: a batch of rounds is settled. `choose` does so before it goes on."""
        with self._frame.guard.lock:
            return self.policy.due()

    def release(self) -> None:
        """Publish what is due, if anything is. Where that fails nothing is lost: the next call tries again.

        If patience is in rounds, this ends the waiting for rounds after which that many further rounds were chosen.
        Others go on choosing, with `choose(release=False)`, and answering meanwhile.
        """
        with self._frame.guard.releasing, self._frame.guard.asking():
            self._frame.guard.check(self._frame.limited)
            while self.due():
                self.policy.release()
                self.policy.warn()

    def _release_what_is_due(self) -> None:
        while self.policy.due():
            with self._frame.guard.defer_interrupt():
                self.policy.release()
            self.policy.warn()

    # All people at once.

    def replay(
        self,
        people: People,
        progress: Progress | None = None,
        *,
        persons: Sequence[Identity] | NDArray[Any] | None = None,
        late: Ints | None = None,
        contexts: Any = None,
        exclude: Any = None,
    ) -> Items:
        """Choose and observe for all of `people` at once; returns the slates, (people, slots), -1 for an empty slot.

        `persons`: who each of them is, as in `choose`. Their rounds are counted before the first of them is played.
        `contexts`: what is known of each of them: contexts, or (people, columns) numbers of values, -1 for what is not
        known. Without it, what the stream says, if the learner was made with contexts.
        `exclude`: what each of them is not shown: a list each, or a scipy matrix of yes and no, (people, items).
        `late`: how many further rounds are chosen before each of them answers; NEVER for those who do not.
        """
        frame, policy = self._frame, self.policy
        if people.n_items != self.n_items:
            raise InvalidInput(f"The learner has {self.n_items} items, the stream {people.n_items}.")
        people.check()
        if frame.patience.seconds is not None:
            raise InvalidInput("A replay takes no time; give patience in rounds, or choose one by one.")
        types, excluded = self.types_of(people, contexts), frame.exclusions_of(exclude, len(people))
        waits = self.patience.rounds if self.waits else None
        slates = np.full((len(people), self.slots), EMPTY_SLOT, dtype=np.int32)
        with frame.guard.everything(), frame.guard.defer_interrupt():
            frame.admit(len(people))
            sampled = frame.in_sample(len(people))
            in_time = answered_in_time(late, len(people), waits, self.name, sampled)
            counted = frame.count_all(persons, len(people), sampled)
        heard = counted if in_time is None else in_time if counted is None else counted & in_time
        people = people if heard is None else silenced(people, heard)
        done = 0
        while (before := done) < len(people):
            with frame.guard.everything(), frame.choosing():
                frame.admit(len(people) - done)  # each time: others may have chosen meanwhile
                self._release_what_is_due()
                frame.who_comes(done, types, excluded, heard, sampled)
                with frame.guard.all_or_broken():
                    done = policy.replay(people, slates, done)
                    frame.pass_by(slates[before:done], counted, before, policy.came)
                if done < len(people):
                    policy.resume(len(people) - done)
            if progress:
                progress(done - before)
        return slates

    def types_of(self, people: Stream, contexts: Any = None) -> Ints:
        """The types of people by what is known of them: `contexts`, or what their stream says of them."""
        if (known := self._frame.contexts) is not None and contexts is None:
            return people.types_in(known)
        return self._frame.types_of(contexts, len(people))

    # The items change.

    def appear(self, items: Iterable[int]) -> None:
        """These items are there from now on. A public event: it must not depend on what people said."""
        with self._frame.guard.everything():
            self.policy.appear(items)

    def retire(self, items: Iterable[int]) -> None:
        """These items are not shown any more. A public event: it must not depend on what people said."""
        with self._frame.guard.everything():
            self.policy.retire(items)

    # Snapshots. Coins are never in them.

    def snapshot(self) -> bytes:
        """All that was learned, without any randomness. As private as what people said."""
        frame, policy = self._frame, self.policy
        with frame.guard.everything():
            frame.guard.check(frame.limited)
            facts: dict[str, Any] = {"learner": self.name, "config": self._config()}
            facts |= {"ledger": frame.ledger is not None} if frame.limited else {}
            more = {f"extra.{name}": array for name, array in policy.extra().items()} | frame.extra()
            return _snapshots.sealed(facts, self._arrays() | more)

    def _take_snapshot(self, found: _snapshots.Arrays) -> None:
        """Begin with the arrays of a snapshot of a learner that was made with the same arguments."""
        frame, policy = self._frame, self.policy
        if frame.rounds:
            raise InvalidInput("A learner that has chosen does not go back to a snapshot; restore() another.")
        extra = _snapshots.taken(found, "extra")
        if frame.visit_limit is not None:
            frame.visit_limit.take(_snapshots.taken(found, "visits"))
        rounds = {name: found.pop(name) for name in ("silent", "untold") if name in found}
        _snapshots.fill(self._arrays(), found)
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
