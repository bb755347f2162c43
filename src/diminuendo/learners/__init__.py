"""Learners: each chooses slates for a stream of people and learns from what they say."""

from __future__ import annotations

from difflib import get_close_matches

from diminuendo.errors import UnknownName
from diminuendo.learners.base.entry import AnyEntry
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.patience import Patience
from diminuendo.learners.base.replay import replay
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.cascade_thompson import CascadeThompson
from diminuendo.learners.epoch_greedy import EpochGreedy
from diminuendo.learners.hedge.bandit import ExploreExploit
from diminuendo.learners.hedge.bandit_dp import (
    BanditDp,
    BanditDpPaper,
    DirectBandit,
    DirectBanditPaper,
    PresampledBandit,
    PresampledBanditPaper,
)
from diminuendo.learners.hedge.exploring import StreeterGolovinBandit
from diminuendo.learners.hedge.fi_dp import FiDp, FiDpPaper, StreeterGolovin
from diminuendo.learners.hedge.fi_pure import FiPure, FiPurePaper
from diminuendo.learners.hedge.ordered import OrderedExperts
from diminuendo.learners.overlap.recipes import OverlapGreedy, OverlapSums
from diminuendo.learners.probing.variants import (
    BanditBlocks,
    BanditBlocksFull,
    OpenBanditBlocks,
    OpenBanditBlocksFull,
    OpenRankedClicks,
    RankedClicks,
)
from diminuendo.learners.random_slates import RandomSlates
from diminuendo.learners.recommend import preferred
from diminuendo.learners.released.lazy import LazyHedge
from diminuendo.learners.released.variants import Boosted, NoisyHedge
from diminuendo.learners.slates.clicks import OpenSlateClicks, SlateClicks
from diminuendo.learners.slates.totals import OpenSlateTotals, SlateTotals
from diminuendo.randomness.coins import Coins
from diminuendo.types import FeedbackKind

LEARNERS: dict[str, AnyEntry] = {
    learner.name: learner
    for learner in (
        RandomSlates,
        OrderedExperts,
        ExploreExploit,
        FiDp,
        FiDpPaper,
        FiPure,
        FiPurePaper,
        BanditDp,
        BanditDpPaper,
        DirectBandit,
        DirectBanditPaper,
        PresampledBandit,
        PresampledBanditPaper,
        StreeterGolovin,
        StreeterGolovinBandit,
        OverlapGreedy,
        OverlapSums,
        EpochGreedy,
        Boosted,
        NoisyHedge,
        LazyHedge,
        BanditBlocks,
        OpenBanditBlocks,
        BanditBlocksFull,
        OpenBanditBlocksFull,
        RankedClicks,
        OpenRankedClicks,
        CascadeThompson,
        SlateTotals,
        OpenSlateTotals,
        SlateClicks,
        OpenSlateClicks,
    )
}
"""Every learner by the name users type. A line here brings contract tests, a CLI name and its documentation."""

ROLES: dict[str, dict[FeedbackKind, str]] = {
    "private": {"full": "overlap-greedy", "bandit": "slate-totals", "click": "slate-clicks"},
    "nonprivate": {"full": "hedge", "bandit": "slate-totals-open", "click": "cascade-thompson"},
    "paper": {"full": "fi-dp-paper", "bandit": "bandit-dp-paper"},
}
"""Names for a purpose: which learner plays that role under which feedback."""

ABOUT = {
    "private": "what we recommend",
    "nonprivate": "the yardstick, without privacy",
    "paper": "the paper's algorithms with the paper's constants, not for use",
}
"""What each role is for."""


def learner_class(name: str, feedback: FeedbackKind) -> AnyEntry:
    """The learner of that name, or the one that plays that role under `feedback`."""
    known = [*ROLES, *LEARNERS]
    if name not in known:
        meant = "".join(f" Did you mean {close!r}?" for close in get_close_matches(name, known, 1))
        raise UnknownName(f"There is no learner called {name!r}.{meant} There are: {', '.join(known)}.")
    if name in ROLES and feedback not in ROLES[name]:
        there = ", ".join(ROLES[name])
        raise UnknownName(f"There is no {name!r} learner for {feedback} feedback yet, only for: {there}.")
    found = LEARNERS[ROLES[name][feedback] if name in ROLES else name]
    if feedback not in found.reads:
        fitting = ", ".join(other.name for other in LEARNERS.values() if feedback in other.reads)
        raise UnknownName(f"{name!r} does not learn from {feedback} feedback. These do: {fitting}.")
    return found


def make(name: str, setting: Setting, *, coins: Coins | None = None) -> Learner:
    """A learner by name, with its defaults for what is known beforehand. `private` is what the planner takes."""
    if name == "private" and (rule := preferred(setting, LEARNERS)):
        name = rule.learner
    return learner_class(name, setting.feedback).for_setting(setting, coins=coins)


__all__ = [
    "ABOUT",
    "LEARNERS",
    "ROLES",
    "Boosted",
    "EpochGreedy",
    "ExploreExploit",
    "LazyHedge",
    "Learner",
    "NoisyHedge",
    "OrderedExperts",
    "OverlapGreedy",
    "OverlapSums",
    "Patience",
    "RandomSlates",
    "Setting",
    "SlateClicks",
    "SlateTotals",
    "learner_class",
    "make",
    "replay",
]
