"""Subjects: learners under test, and how a scripted world is played to them.

A subject makes learners: a shipped one, or one with something changed. `play` lets a learner meet a scripted world and
returns the view: all that an observer sees. That is slates with their reported propensities, probes, released sums,
and what calls return or raise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from diminuendo import _validate
from diminuendo.audit.known import Known, known_of
from diminuendo.audit.laws import published
from diminuendo.audit.taps import Diverged, Taps, Unwatched
from diminuendo.audit.worlds import Script
from diminuendo.learners import LEARNERS, Learner, Setting
from diminuendo.learners.base.entry import AnyEntry
from diminuendo.learners.hedge import constants
from diminuendo.privacy import curves
from diminuendo.privacy.budget import Guarantee
from diminuendo.randomness.sources import RandomSource, SeededSource
from diminuendo.streams.contexts import Contexts
from diminuendo.types import EMPTY_SLOT, FEEDBACKS, Decision, FeedbackKind, Floats, Items

RAISED = "raised "
REMEMBERED: list[tuple[Any, str, Any]] = [
    (module, name, cache(getattr(module, name)))
    for module, names in {
        curves: ("zcdp_epsilon", "zcdp_rho", "gaussian_epsilon", "gaussian_mu"),
        constants: ("bandit", "full_information"),
    }.items()
    for name in names
]
"""What follows from public numbers alone: the same for every run of an audit, and slower to find than a run takes."""


class KeptSo(NamedTuple):
    """For how long users are kept, and how many: rules of a setting (learners/base/setting.py)."""

    retention: int | None = None
    sample: int = 1


KEPT_FOR_GOOD = KeptSo()
"""All users, without a time limit."""


@dataclass(frozen=True)
class Subject:
    """A way to make learners that all promise the same."""

    name: str
    feedback: FeedbackKind
    make: Callable[[Setting, RandomSource], Learner]
    around: Callable[[], AbstractContextManager[None]] = nullcontext
    """What else is wrong with the world while a faulty learner lives."""
    contexts: Contexts | None = None
    """What is known of users when they come to it; None: nothing."""
    exclusions: bool = False
    """Whether users may exclude items."""

    def knows(self, setting: Setting, target: int, random: np.random.Generator) -> tuple[Known, Known]:
        """What is known of users in two worlds that differ in what one of them is and says."""
        items = setting.n_items if self.exclusions else 0
        return known_of(self.contexts, items, setting.rounds, target, random)

    def promise(self, setting: Setting, seed: int = 0) -> Guarantee:
        """What its learners claim; some of them only once public coins, here of that seed, have fallen."""
        with remembering():
            return self.make(setting, SeededSource(seed)).guarantee


@contextmanager
def remembering() -> Iterator[None]:
    """While this lasts, what was computed once about costs and constants is not computed again."""
    with ExitStack() as stack:
        for module, name, remembered in REMEMBERED:
            stack.enter_context(mock.patch.object(module, name, remembered))
        yield


@dataclass(frozen=True)
class View:
    """Everything that an onlooker sees of one run."""

    slates: Items
    """(rounds, slots), -1 where a slot is empty."""
    probes: Items
    """(rounds, 2): slot and item, -1 where a round probed nothing."""
    published: tuple[np.ndarray, ...]
    """Released vectors, in order."""
    propensities: Floats = field(default_factory=lambda: np.zeros(0))
    """With what chance each slate is said to have been drawn; not a number where nothing is said."""
    replies: tuple[tuple[int, str], ...] = ()
    """What `observe` returned or raised, where that is anything, and to which round the answer was."""
    ended: str = ""
    """What `choose` raised, after which there is nothing more to see."""
    crossing_rounds: tuple[int, ...] = ()
    """Rounds before or in which something was drawn or published."""

    def of_others(self, target: int) -> View:
        """The view of all users but the one of that round."""
        of_target = np.arange(len(self.slates)) == target
        return replace(
            self,
            slates=np.where(of_target[:, None], EMPTY_SLOT, self.slates),
            probes=np.where(of_target[:, None], EMPTY_SLOT, self.probes),
            propensities=np.where(of_target, np.nan, self.propensities),
            replies=tuple((to, what) for to, what in self.replies if to != target),
        )


def shipped(
    name: str,
    contexts: Contexts | None = None,
    *,
    exclusions: bool = False,
    kept: KeptSo = KEPT_FOR_GOOD,
) -> Subject:
    """A learner of the catalogue."""
    entry = _validate.lookup(LEARNERS, name, "learner")
    return changed(name, entry, lambda policy: None, contexts=contexts, exclusions=exclusions, kept=kept)


def changed(
    name: str,
    entry: AnyEntry,
    change: Callable[[Any], None],
    around: Callable[[], AbstractContextManager[None]] = nullcontext,
    contexts: Contexts | None = None,
    exclusions: bool = False,
    kept: KeptSo = KEPT_FOR_GOOD,
) -> Subject:
    """Learners of an entry, each with something done to its policy before its first round."""

    def make(setting: Setting, rng: RandomSource) -> Learner:
        met = replace(setting, contexts=contexts, exclusions=exclusions, **kept._asdict())
        learner = entry.for_setting(met, rng=rng)
        change(learner.policy)
        return learner

    feedback = next(kind for kind in FEEDBACKS if kind in entry.reads)
    return Subject(name, feedback, make, around, contexts, exclusions)


def play(
    subject: Subject, setting: Setting, script: Script, rng: RandomSource, taps: Taps | None = None
) -> View:
    """One run, and all that is seen of it. `taps`: what stands at the noise, where more than watching is wanted."""
    watch = Taps() if taps is None else taps
    slates = np.full((script.rounds, setting.slots), EMPTY_SLOT, dtype=np.int32)
    probes = np.full((script.rounds, 2), EMPTY_SLOT, dtype=np.int32)
    propensities = np.full(script.rounds, np.nan)
    decisions: list[Decision] = []
    replies: list[tuple[int, str]] = []
    crossing_rounds: list[int] = []
    ended = ""
    # Taps come first: a fault that surrounds a learner is then wrapped around them, and they see what it does. What
    # hostile users say makes numpy warn.
    with remembering(), watch.open(), subject.around(), np.errstate(all="ignore"):
        learner = subject.make(setting, rng)
        for t in range(script.rounds):
            passed = len(watch.crossings)
            try:
                decision = learner.choose(context=script.context_of(t), exclude=script.excluded_by(t))
            except (Diverged, Unwatched):
                raise
            except Exception as error:
                if not any(answer.at < t for answer in script.answers):
                    raise  # not due to feedback: the learner does not run
                ended = f"{type(error).__name__} in round {t}: {error}"
                break
            if len(watch.crossings) > passed:
                crossing_rounds.append(t)
            decisions.append(decision)
            slates[t] = learner.row_of(decision)
            if decision.probe is not None:
                probes[t] = decision.probe
            if decision.propensity is not None:
                propensities[t] = decision.propensity
            for answer in script.after(t):
                reply = _observed(learner, decisions[answer.to], answer.reply(decisions[answer.to].slate))
                if reply:
                    replies.append((answer.to, reply))
    return View(
        slates,
        probes,
        published(watch.crossings),
        propensities,
        tuple(replies),
        ended,
        tuple(crossing_rounds),
    )


def probed(subject: Subject, setting: Setting, seed: int) -> NDArray[np.bool_]:
    """Which rounds are probes, with the public coins of that seed; some learners use no other feedback."""
    silence = Script(setting.rounds, ())
    return np.asarray(play(subject, setting, silence, SeededSource(seed)).probes[:, 0] != EMPTY_SLOT)


def _observed(learner: Learner, decision: Decision, said: Any) -> str:
    """What the learner has to say to an answer: nothing, if all is well."""
    observe: Callable[[Decision, Any], Any] = learner.observe
    try:
        returned = observe(decision, said)
    except (Diverged, Unwatched):
        raise
    except Exception as error:
        return f"{RAISED}{type(error).__name__}: {error}"
    return "" if returned is None else f"returned {returned!r}"
