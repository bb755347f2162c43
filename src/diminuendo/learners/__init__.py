"""Learners: each chooses slates for a stream of users and learns from what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from typing import Any

from diminuendo import _snapshots, _validate
from diminuendo._plugins import Table
from diminuendo.errors import InvalidInput, UnknownName
from diminuendo.learners.base.engines import OnRay, Threads
from diminuendo.learners.base.entry import AnyEntry, options_in
from diminuendo.learners.base.feedback_window import FeedbackWindow, Patient
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.replay import replay
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.cascade_thompson import CascadeThompson
from diminuendo.learners.epoch_greedy import EpochGreedy
from diminuendo.learners.hedge.bandit import ExploreExploit, StreeterGolovinBandit
from diminuendo.learners.hedge.bandit_dp import BanditDp
from diminuendo.learners.hedge.fi_dp import FiDp, StreeterGolovin
from diminuendo.learners.hedge.fi_pure import FiPure
from diminuendo.learners.hedge.lazy import LazyHedge
from diminuendo.learners.hedge.ordered import OrderedExperts
from diminuendo.learners.overlap.recipes import OverlapGreedy
from diminuendo.learners.random_slates import RandomSlates
from diminuendo.learners.recommend import preferred
from diminuendo.learners.slates.clicks import SlateClicks
from diminuendo.learners.slates.totals import SlateTotals
from diminuendo.offline.rules import SlateRules
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger, Place
from diminuendo.randomness.sources import RandomSource
from diminuendo.streams.contexts import Contexts
from diminuendo.types import FeedbackKind, Floats


class Catalogue(Table[AnyEntry]):
    """Learners by name; a variant by the name and its options, as `fi-dp:calibration=paper`."""

    def __getitem__(self, name: str) -> AnyEntry:
        learner, options = options_in(name)
        return super().__getitem__(learner).spelled_variant(options)

    def fingerprint(self, name: str) -> str:
        """A hash of the source of the learner; "" where it is ours."""
        return super().fingerprint(options_in(name)[0])


LEARNERS = Catalogue(
    "learner",
    {
        learner.name: learner
        for learner in (
            RandomSlates,
            OrderedExperts,
            ExploreExploit,
            FiDp,
            FiPure,
            BanditDp,
            StreeterGolovin,
            StreeterGolovinBandit,
            OverlapGreedy,
            EpochGreedy,
            LazyHedge,
            CascadeThompson,
            SlateTotals,
            SlateClicks,
        )
    },
)
"""Every learner by the name users type, those of plugins included. A line here brings contract tests, a CLI name and
its documentation. Iteration leaves variants out; `with_variants` has them."""

ROLES: dict[str, dict[FeedbackKind, str]] = {
    "private": {"full": "overlap-greedy", "bandit": "slate-totals", "click": "slate-clicks"},
    "nonprivate": {"full": "hedge", "bandit": "slate-totals:private=false", "click": "cascade-thompson"},
    "paper": {"full": "fi-dp:calibration=paper", "bandit": "bandit-dp:calibration=paper"},
}
"""Names for a purpose: which learner plays that role under which feedback."""

ABOUT = {
    "private": "what we recommend",
    "nonprivate": "the yardstick, without privacy",
    "paper": "the paper's algorithms with the paper's constants, not for use",
}
"""What each role is for."""


NO_OPTIONS = ("name", "setting", "ledger", "rng", "more")
"""Parameters of `make` that are no options of a learner."""


def with_variants() -> list[str]:
    """The names of all learners, each followed by those of its variants."""
    return [variant.name for entry in LEARNERS.values() for variant in entry.variants()]


def learner_class(name: str, feedback: FeedbackKind) -> AnyEntry:
    """Return the entry of a learner, or of the learner that plays a role under a kind of feedback.

    Parameters
    ----------
    name : str
        A name in `LEARNERS`, or one of the roles "private", "nonprivate" and "paper"; options follow a colon, as in
        "fi-dp:calibration=paper".
    feedback : {"full", "bandit", "click"}
        What users report.

    Returns
    -------
    Entry
        Call it with the options of its recipe.

    Raises
    ------
    UnknownName
        If there is no such learner, or it does not learn from this feedback. The message says which do.

    Examples
    --------
    >>> from diminuendo.learners import learner_class
    >>> learner_class("private", "full").name, learner_class("nonprivate", "click").name
    ('overlap-greedy', 'cascade-thompson')
    """
    called, options = options_in(name)
    if called not in ROLES and called not in LEARNERS:
        known = [*ROLES, *LEARNERS]
        meant = "".join(f" Did you mean {close!r}?" for close in get_close_matches(called, known, 1))
        raise UnknownName(f"There is no learner called {called!r}.{meant} There are: {', '.join(known)}.")
    if called in ROLES and feedback not in ROLES[called]:
        there = ", ".join(ROLES[called])
        raise UnknownName(f"There is no {called!r} learner for {feedback} feedback yet, only for: {there}.")
    entry = LEARNERS[ROLES[called][feedback] if called in ROLES else called].spelled_variant(options)
    if feedback not in entry.reads:
        fitting = ", ".join(other.name for other in LEARNERS.values() if feedback in other.reads)
        raise UnknownName(f"{name!r} does not learn from {feedback} feedback. These do: {fitting}.")
    return entry


def make(
    name: str,
    setting: Setting,
    *,
    ledger: Ledger | Place | None = None,
    rng: RandomSource | None = None,
    max_rounds_per_user: int | None = None,
    feedback_window: Patient = None,
    contexts: Contexts | None = None,
    rules: SlateRules | None = None,
    exclusions: bool | None = None,
    retention: int | None = None,
    sample: int | None = None,
    prior: Sequence[float] | Floats | None = None,
    prior_users: int | None = None,
    absent: Iterable[int] | None = None,
    eligible: Any = None,
    engine: Any = None,
    private: bool | None = None,
    **more: Any,
) -> Learner:
    """Make a learner by name, calibrated for a setting.

    Parameters
    ----------
    name : str
        "private" is the recommended private learner for this setting, "nonprivate" the yardstick without privacy,
        "paper" the paper's algorithm. Or any name in `LEARNERS`.
    setting : Setting
        What is known before the first user arrives.
    ledger : Ledger or str or Path, optional
        What is charged. A path is opened as a ledger, or begun with the budget, adjacency and accountant that this
        learner needs (`learner.ledger.close()` releases it). By default the learner has a ledger of its own, in
        memory. Several learners share one open ledger under names of their own: `ledger.named("basket")`.
    rng : RandomSource, optional
        Randomness. By default SystemSource; SeededSource for simulation.
    max_rounds_per_user, feedback_window, contexts, rules, exclusions, retention, sample : optional
        In place of what the setting says.
    prior : sequence of float, optional
        Public guess of the share of users whom each item pleases.
    prior_users : int, optional
        As how many users the prior counts.
    absent : iterable of int, optional
        Items that are not available yet; `Learner.appear` adds them.
    eligible : optional
        For each slot the items that it may show.
    engine : {"threads", "ray"} or engine, optional
        Where stored users' data is evaluated. Results do not depend on it.
    private : bool, optional
        False for the learner without noise, if there is one.
    **more
        Other fields of the setting, such as `epsilon`, or options of the learner's recipe, such as `horizon=None`
        if the number of rounds is not known, or `calibration="paper"`. The same options may follow the name:
        "fi-dp:calibration=paper".

    Returns
    -------
    Learner

    Raises
    ------
    UnknownName
        If there is no such learner for this feedback.
    InvalidInput
        If the learner does not take an option or a field of the setting; the message says which learners do.
    OverBudget
        If the ledger cannot pay for the run.

    Notes
    -----
    `learner.guarantee` states what is proved, and where. A learner charges its ledger before it draws.

    Examples
    --------
    >>> import diminuendo as dim
    >>> setting = dim.Setting(n_items=20, slots=3, rounds=1_000, feedback="full", epsilon=1.0, delta=1e-6)
    >>> learner = dim.make("private", setting, rng=dim.SeededSource(1))
    >>> learner.name, learner.guarantee.proof
    ('overlap-greedy', 'docs/maths/overlap.md')
    >>> decision = learner.choose()
    >>> learner.observe(decision, dim.user(dim.NoisyOr(), {4: 0.5, 7: 1.0}, n_items=20))
    """
    given = {
        option: value for option, value in locals().items() if option not in NO_OPTIONS and value is not None
    }
    if absent is not None:
        given["absent"] = tuple(absent)  # it may be an iterator, and is read twice
    entry, setting, options = _resolved(name, setting, given | more)
    if ledger is None or isinstance(ledger, Ledger):
        return entry.for_setting(setting, rng=rng, ledger=ledger, **options)
    opened = Ledger.open_or_begin(ledger, lambda: _budget_of(entry, setting, options))
    try:
        return entry.for_setting(setting, rng=rng, ledger=opened, **options)
    except BaseException:
        opened.close()
        raise


def budget_for(name: str, setting: Setting, **options: Any) -> Budget:
    """Return the budget with which a ledger must be begun to pay for a learner.

    Parameters
    ----------
    name : str
        As in `make`.
    setting : Setting
        As in `make`.
    **options
        As in `make`.

    Returns
    -------
    Budget
        With unit, relation and accountant of this learner. For several learners on one ledger, begin it with more:
        `dataclasses.replace(budget, epsilon=2.0)`.

    Raises
    ------
    InvalidInput
        If the learner is not private.
    UnknownName
        If there is no such learner for this feedback.

    Examples
    --------
    >>> import diminuendo as dim
    >>> setting = dim.Setting(n_items=20, slots=3, rounds=1_000, feedback="bandit", max_rounds_per_user=2)
    >>> print(dim.budget_for("private", setting))
    epsilon 1, delta 0; unit: replace one user's 2 rounds; counted as pure
    """
    return _budget_of(*_resolved(name, setting, options))


def restore(
    snapshot: bytes,
    *,
    ledger: Ledger | Place | None = None,
    rng: RandomSource | None = None,
    clock: Callable[[], float] | None = None,
    engine: Any = None,
) -> Learner:
    """Return the learner of a snapshot, with fresh randomness.

    Parameters
    ----------
    snapshot : bytes
        As `Learner.snapshot` returned it.
    ledger : Ledger or str or Path, optional
        The ledger that paid for the learner, or its file. Required if it had one.
    rng : RandomSource, optional
        Randomness. By default SystemSource.
    clock : callable, optional
        Required if the feedback window is in seconds, as `time.time`.
    engine : {"threads", "ray"} or engine, optional
        Where stored users' data is evaluated.

    Returns
    -------
    Learner

    Raises
    ------
    InvalidInput
        If the snapshot is damaged, or the ledger or the clock is missing.
    UnknownName
        If no learner has the name in the snapshot.

    Notes
    -----
    Releases are written once on the ledger, so a learner that is restored from an older snapshot draws nothing
    twice (Theorem A9 of docs/maths/accounting.md, "Crashes").

    Examples
    --------
    >>> import diminuendo as dim
    >>> setting = dim.Setting(n_items=20, slots=3, rounds=1_000, feedback="full")
    >>> learner = dim.make("private", setting, rng=dim.SeededSource(1))
    >>> _ = learner.choose_many(7)
    >>> dim.restore(learner.snapshot(), rng=dim.SeededSource(1)).rounds
    7
    """
    header, _ = _snapshots.unsealed(snapshot, "a snapshot of a learner")
    entry = _validate.lookup(LEARNERS, str(header.get("learner")), "learner")
    if ledger is None or isinstance(ledger, Ledger):
        return entry.restore(snapshot, rng=rng, ledger=ledger, clock=clock, engine=engine)
    opened = Ledger.open(ledger)
    try:
        return entry.restore(snapshot, rng=rng, ledger=opened, clock=clock, engine=engine)
    except BaseException:
        opened.close()
        raise


def entry_for(name: str, setting: Setting) -> AnyEntry:
    """The entry that plays by this name in this setting; `private` is what the planner takes."""
    called, colon, options = name.partition(":")
    if called == "private" and (rule := preferred(setting, LEARNERS)):
        name = rule.learner + colon + options
    return learner_class(name, setting.feedback)


def _resolved(
    name: str, setting: Setting, options: dict[str, Any]
) -> tuple[AnyEntry, Setting, dict[str, Any]]:
    """Which learner is meant, for what, and with which options besides; those that it does not take are refused."""
    spec = {field.name for field in fields(Setting)}
    setting = replace(setting, **{option: options[option] for option in options if option in spec})
    entry = entry_for(name, setting)
    besides = {option: options[option] for option in options if option not in spec}
    entry = entry.variant(**{option: besides.pop(option) for option in entry.choices if option in besides})
    for option in besides:
        if option not in entry.options:
            taking = [other for other in LEARNERS.values() if option in (*other.options, *other.choices)]
            same = [other.name for other in taking if setting.feedback in other.reads]
            others = [f"{other.name} ({', '.join(sorted(other.reads))} feedback)" for other in taking]
            who = f"These do: {', '.join(same or others)}." if taking else "No learner does."
            raise InvalidInput(
                f"{entry.name!r} does not take {option!r}. {who} It takes: "
                f"{', '.join(dict.fromkeys((*entry.choices, *entry.options)))}."
            )
    return entry, setting, besides


def _budget_of(entry: AnyEntry, setting: Setting, options: dict[str, Any]) -> Budget:
    """The budget of such a learner: of one that pays for itself and is thrown away."""
    budget = entry.for_setting(setting, **options).budget if entry.private else None
    if budget is None:
        raise InvalidInput(f"{entry.name!r} promises nothing; no ledger can pay for what it shows.")
    return budget


__all__ = [
    "ABOUT",
    "LEARNERS",
    "ROLES",
    "EpochGreedy",
    "ExploreExploit",
    "FeedbackWindow",
    "LazyHedge",
    "Learner",
    "OnRay",
    "OrderedExperts",
    "OverlapGreedy",
    "RandomSlates",
    "Setting",
    "SlateClicks",
    "SlateTotals",
    "Threads",
    "budget_for",
    "learner_class",
    "make",
    "replay",
    "restore",
    "with_variants",
]
