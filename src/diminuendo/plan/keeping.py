"""What rules about users who are kept do to a plan: how many are kept, how many are learned from, and what it costs.

A *retention* forgets users after so many rounds: fewer are kept at a time, and each release asks fewer. A *public
sample* learns from one in so many users: as many fewer are kept and asked, and all are served. Everybody outside of
the sample is shown what those inside are shown at that time, so what the whole run loses is what a run of the sample
alone would lose (docs/maths/late.md, L4).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from diminuendo.learners import LEARNERS
from diminuendo.learners.base.feedback_window import FeedbackWindow
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.epoch_greedy import EpochPolicy
from diminuendo.plan.noise import noise, releases_of


@dataclass(frozen=True)
class Keeping:
    """What a retention and a public sample cost, beside the same learner without them.

    Attributes
    ----------
    otherwise : Setting
        The setting without these rules.
    retention : int, optional
        For how many rounds a user's data is kept.
    sample : int
        One in `sample` users is learned from.
    learned_from : int
        How many users have a round.
    kept, kept_otherwise : int
        How many users' data is kept at a time, at most; with and without these rules.
    apart, apart_otherwise : float, optional
        By how many users of the sample two items must differ to be told apart at the last release.
    loss_otherwise : float, optional
        Forecast: the share of hindsight's reward that is lost without these rules; with prices.

    """

    otherwise: Setting = field(repr=False)
    retention: int | None
    sample: int
    learned_from: int
    kept: int
    kept_otherwise: int
    apart: float | None
    apart_otherwise: float | None
    loss_otherwise: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the numbers as plain values, as files hold them."""
        return {name: value for name, value in vars(self).items() if name != "otherwise"}


def in_sample(setting: Setting) -> Setting:
    """The setting of the users of the sample alone, to whom the same happens as to all."""
    return replace(setting, rounds=-(-setting.rounds // setting.sample), sample=1)


def keeping(
    name: str, setting: Setting, feedback_window: FeedbackWindow, cares_about: float
) -> Keeping | None:
    """What the rules of a setting come to; None where it has none. `feedback_window`: in users, all of them."""
    if setting.retention is None and setting.sample == 1:
        return None
    plain = replace(setting, feedback_window=feedback_window, retention=None, sample=1)
    made, otherwise = (LEARNERS[name].for_setting(each) for each in (setting, plain))
    result = [noise(releases_of(each), cares_about) for each in (made, otherwise)]
    apart = [None if each is None else each.apart for each in result]
    learned_from = made.horizon or setting.rounds
    return Keeping(
        plain, setting.retention, setting.sample, learned_from, most_kept(made), most_kept(otherwise), *apart
    )


def most_kept(made: Learner) -> int:
    """How many users a learner keeps at a time, at most: all that a release asks, and who has come meanwhile."""
    if made.name not in LEARNERS or not LEARNERS[made.name].advice.keeps_users or made.horizon is None:
        return 0
    ahead, plan, policy = made.feedback_window.ahead, releases_of(made), made.policy
    if isinstance(policy, EpochPolicy):
        last = policy.epochs.of(made.horizon - 1)
        ends = [min(made.horizon, policy.epochs.end(epoch)) for epoch in range(last + 1)]
        return min(made.horizon, max(b - a for a, b in zip([0, *ends], ends, strict=False)) + ahead)
    if plan is None or not plan.begins:
        return made.horizon
    begun = (0, *plan.schedule.ends)
    asked = [plan.schedule.ends[b] - begun[plan.kept_from(b)] for b in range(plan.releases)]
    return min(made.horizon, max(asked, default=0) + ahead)
