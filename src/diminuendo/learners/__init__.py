"""Learners: each chooses slates for a stream of people and learns from what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from typing import Any

from diminuendo import _snapshots, _validate
from diminuendo._plugins import Table
from diminuendo.errors import InvalidInput, UnknownName
from diminuendo.learners.base.entry import AnyEntry, options_in
from diminuendo.learners.base.kept.engines import Here, OnRay
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.patience import Patience, Patient
from diminuendo.learners.base.replay import replay, replay_in_pieces
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.cascade_thompson import CascadeThompson
from diminuendo.learners.epoch_greedy import EpochGreedy
from diminuendo.learners.hedge.bandit import ExploreExploit
from diminuendo.learners.hedge.bandit_dp import BanditDp
from diminuendo.learners.hedge.exploring import StreeterGolovinBandit
from diminuendo.learners.hedge.fi_dp import FiDp, StreeterGolovin
from diminuendo.learners.hedge.fi_pure import FiPure
from diminuendo.learners.hedge.lazy import LazyHedge
from diminuendo.learners.hedge.ordered import OrderedExperts
from diminuendo.learners.overlap.recipes import OverlapGreedy, OverlapSums
from diminuendo.learners.random_slates import RandomSlates
from diminuendo.learners.recommend import preferred
from diminuendo.learners.slates.clicks import SlateClicks
from diminuendo.learners.slates.totals import SlateTotals
from diminuendo.offline.rules import SlateRules
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger, Place
from diminuendo.randomness.coins import Coins
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
            OverlapSums,
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


def with_variants() -> list[str]:
    """The names of all learners, each followed by those of its variants."""
    return [variant.name for entry in LEARNERS.values() for variant in entry.variants()]


def learner_class(name: str, feedback: FeedbackKind) -> AnyEntry:
    """The learner of that name, or the one that plays that role under `feedback`; with the options behind the name."""
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
    coins: Coins | None = None,
    visits: int | None = None,
    patience: Patient = None,
    contexts: Contexts | None = None,
    rules: SlateRules | None = None,
    exclusions: bool | None = None,
    retention: int | None = None,
    sample: int | None = None,
    prior: Sequence[float] | Floats | None = None,
    prior_people: int | None = None,
    absent: Iterable[int] | None = None,
    eligible: Any = None,
    engine: Any = None,
    private: bool | None = None,
    **more: Any,
) -> Learner:
    """A learner by name, with its defaults for what is known beforehand. `private` is what the planner takes.

        make("fi-dp", setting, calibration="paper")    # or make("fi-dp:calibration=paper", setting)

    `ledger`: what pays; or the file in which it is, which is begun if it is not there, with the budget, the relation
    and the accountant that this learner needs. Such a ledger is `learner.ledger`: its `close` lets others have the
    file. Several learners share one ledger, open once, under names of their own: `ledger=ledger.named("basket")`.

    `visits`, `patience`, `contexts`, `rules`, `exclusions`, `retention`, `sample`: instead of what the setting says.
    `retention`: for how many rounds people are kept; `sample`: of how many people one is learned from. `prior`,
    counting as `prior_people` people: which share of people each item pleases. `absent`: items that are not there yet.
    `eligible`: for each slot its items. `engine`: where people who are kept are asked, "threads" or "ray".
    `private=False`: the same learner without noise, where there is one. `more`: what
    else the setting or the recipe of that learner has, such as `epsilon`, `horizon=None` where nobody knows how many
    will come, or `epoch`; help(dim.OverlapGreedy) shows a recipe.
    """
    said = {
        "visits": visits, "patience": patience, "contexts": contexts, "rules": rules, "exclusions": exclusions,
        "retention": retention, "sample": sample,
        "prior": prior, "prior_people": prior_people, "absent": None if absent is None else tuple(absent),
        "eligible": eligible, "engine": engine, "private": private,
    }  # fmt: skip
    entry, setting, options = _asked(name, setting, {k: v for k, v in said.items() if v is not None} | more)
    if ledger is None or isinstance(ledger, Ledger):
        return entry.for_setting(setting, coins=coins, ledger=ledger, **options)
    opened = Ledger.open_or_begin(ledger, lambda: _budget_of(entry, setting, options))
    try:
        return entry.for_setting(setting, coins=coins, ledger=opened, **options)
    except BaseException:
        opened.close()
        raise


def budget_for(name: str, setting: Setting, **options: Any) -> Budget:
    """What a ledger must be begun with to pay for that learner alone: its unit, relation and accountant are in it.

        with Ledger.open("people.ledger", budget_for("private", setting)) as ledger: ...

    Where several learners share a ledger it needs more: dataclasses.replace(budget_for(..), epsilon=2.0).
    """
    return _budget_of(*_asked(name, setting, options))


def restore(
    snapshot: bytes,
    *,
    ledger: Ledger | Place | None = None,
    coins: Coins | None = None,
    clock: Callable[[], float] | None = None,
    engine: Any = None,
) -> Learner:
    """The learner of a snapshot, whichever it is, with fresh coins and the ledger that pays for it, or its file.

    `clock`: the one that tells how long answers are waited for, where that is said in seconds. `engine`: where people
    who are kept are asked, of a learner that keeps any.
    """
    header, _ = _snapshots.unpacked(snapshot, "a snapshot of a learner")
    entry = _validate.lookup(LEARNERS, str(header.get("learner")), "learner")
    if ledger is None or isinstance(ledger, Ledger):
        return entry.restore(snapshot, coins=coins, ledger=ledger, clock=clock, engine=engine)
    opened = Ledger.open(ledger)
    try:
        return entry.restore(snapshot, coins=coins, ledger=opened, clock=clock, engine=engine)
    except BaseException:
        opened.close()
        raise


def entry_for(name: str, setting: Setting) -> AnyEntry:
    """The entry that plays by this name in this setting; `private` is what the planner takes."""
    called, colon, options = name.partition(":")
    if called == "private" and (rule := preferred(setting, LEARNERS)):
        name = rule.learner + colon + options
    return learner_class(name, setting.feedback)


def _asked(name: str, setting: Setting, options: dict[str, Any]) -> tuple[AnyEntry, Setting, dict[str, Any]]:
    """Which learner is meant, for what, and with which options besides; those that it does not take are refused."""
    facts = {field.name for field in fields(Setting)}
    setting = replace(setting, **{option: options[option] for option in options if option in facts})
    entry = entry_for(name, setting)
    besides = {option: options[option] for option in options if option not in facts}
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
    """What it asks for, by making one that pays for itself and is thrown away: in this process, so that no cluster
    starts workers for it."""
    here = {option: value for option, value in options.items() if option != "engine"}
    budget = entry.for_setting(setting, **here).budget if entry.private else None
    if budget is None:
        raise InvalidInput(f"{entry.name!r} promises nothing; no ledger can pay for what it shows.")
    return budget


__all__ = [
    "ABOUT",
    "LEARNERS",
    "ROLES",
    "EpochGreedy",
    "ExploreExploit",
    "Here",
    "LazyHedge",
    "Learner",
    "OnRay",
    "OrderedExperts",
    "OverlapGreedy",
    "OverlapSums",
    "Patience",
    "RandomSlates",
    "Setting",
    "SlateClicks",
    "SlateTotals",
    "budget_for",
    "learner_class",
    "make",
    "replay",
    "replay_in_pieces",
    "restore",
    "with_variants",
]
