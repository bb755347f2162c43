r"""Lazy Hedge: k ordered experts that keep their items, and seldom draw others; the least proved regret of many.

Time is cut into batches of a few people. Expert i holds an item, which slot i shows to everybody of a batch; if an
earlier slot shows it already, that slot shows another one at random. People say what each item would have added to the
slots before; what that adds up to stays secret. When a batch is settled each expert tosses a coin: the more of its
item's gains it has missed, the likelier it draws another item, in proportion to exp(rate * total gains). Coins and
draws are all that is let out. At any time each item is as likely as with Hedge, which draws anew for everybody; but
there are few draws to pay for, and no noise that grows with the number of items.

Regret     at most `LazyPlan.bound`, of order sqrt(k T log N) + k (k T / rho)^(1/3) log N up to factors from batches,
           where rho is about epsilon^2 / (4 log(1 / delta)); for people who do not react to slates (docs/maths/lazy.md,
           Theorem Z5). It grows with log N only, where the noise of `noisy-hedge` grows like sqrt N.
Guarantee  docs/maths/lazy.md, Theorem Z3.
Assumes    for regret: people are monotone submodular, with values in [0, 1]. For privacy: nothing.
References Geulen, Vocking & Winkler (2010), COLT; Asi, Feldman, Koren & Talwar (2023), COLT; Asi, Koren, Liu & Talwar
           (2024), NeurIPS 37; Streeter & Golovin (2008), NIPS 21.
"""

from __future__ import annotations

import numpy as np

from diminuendo import _validate
from diminuendo.experts.lazy_items import LazyItems
from diminuendo.learners.base.entry import Advice, Entry
from diminuendo.learners.base.feedback import Objectives
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.patience import Patient
from diminuendo.learners.released.lazy_plan import LazyPlan, lazy_plan
from diminuendo.learners.released.menu import ExpertsInTurn
from diminuendo.learners.released.noisy_hedge_people import HedgeGains
from diminuendo.learners.released.policy import ReleasedPolicy
from diminuendo.learners.released.released_sum import ReleasedSum, published_in
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import Coins
from diminuendo.randomness.shares import softmax
from diminuendo.types import Floats, Ints

CERTAIN = 1e3
"""The score of an item that is held, where others have 0: each of those is left a share of 2^-40."""


class LazyExperts:
    """Shows what k lazy experts hold; before they hold anything, random items. `ends`: running sums of shares."""

    def __init__(self, plan: LazyPlan, ends: Ints | None = None) -> None:
        self.plan = plan
        self._ends = softmax(np.zeros((plan.slots, plan.n_items))) if ends is None else ends

    def menu(self, first: int, end: int | None, words: int) -> ExpertsInTurn:
        """Each slot shows its expert's item; where that is shown already, any other."""
        return ExpertsInTurn(self.plan.n_items, self.plan.slots, first, end, words, self._ends)

    def following(self, before: Floats, published: Floats) -> LazyExperts:
        """Experts that hold what was published."""
        return LazyExperts(
            self.plan, softmax(CERTAIN * published.reshape(self.plan.slots, self.plan.n_items))
        )

    def restored(self, n_releases: int, published: Floats) -> LazyExperts:
        """Experts that hold what was published last."""
        return self.following(published, published)

    def arrays(self) -> tuple[()]:
        """Nothing: all of it is in what was published."""
        return ()

    def bound(self, deviations: tuple[float, float], ticks: int) -> float:
        """Theorem Z5."""
        return self.plan.bound


def lazy_hedge(
    n_items: int,
    slots: int,
    *,
    horizon: int,
    epsilon: float,
    delta: float,
    visits: int = 1,
    ledger: Ledger | None = None,
    coins: Coins | None = None,
    patience: Patient = None,
) -> Learner:
    """k lazy Hedge experts, with batches and a rate for which the bound on their regret is least."""
    frame = Frame(
        "lazy-hedge", n_items, slots, horizon=horizon, visits=visits, ledger=ledger, coins=coins, patience=patience
    )  # fmt: skip
    horizon = _validate.positive_int(horizon, "horizon")
    budget = Budget(epsilon, delta, frame.unit)
    plan = lazy_plan(frame.n_items, frame.slots, horizon, budget, frame.patience.ahead)
    return planned(frame, budget, plan, Ledger(budget) if ledger is None else ledger)


def planned(frame: Frame, budget: Budget, plan: LazyPlan, ledger: Ledger) -> Learner:
    """k lazy Hedge experts by that plan."""
    schedule = plan.schedule
    items = LazyItems(
        frame.n_items, frame.slots, schedule=published_in(schedule), rate=plan.rate, most=plan.most, event=plan.event,
        ledger=ledger, name=frame.name,
    )  # fmt: skip
    released = ReleasedSum(frame.n_items, schedule, items)
    return Learner(
        ReleasedPolicy(
            frame, budget, {}, released, LazyExperts(plan), HedgeGains,
            proof="docs/maths/lazy.md, Theorem Z3", purpose="coins and draws of lazy experts",
        )
    )  # fmt: skip


LazyHedge = Entry(
    "lazy-hedge",
    lazy_hedge,
    reads=Objectives.kinds,
    summary="one Hedge expert per slot that seldom draws again; full information; private; proved, no noise at all",
    advice=Advice("(ε, δ)", "√(kT log N)", "sums", "where a bound is wanted, and there are many items"),
    audited_on=((3, 1, 4),),
)
