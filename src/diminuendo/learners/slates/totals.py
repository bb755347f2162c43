"""Slate totals: learns from one number per user what slates are worth. For bandit feedback in practice.

Each user is shown one slate of the open block, and their reward is added to that slate's total, which is published once
with noise. A total about a whole slate has no more noise than one about a single item, whatever the number of items,
slots and users; which item it was is inferred from totals of slates that overlap.

Guarantee  (epsilon, 0), whatever users report (docs/maths/counts.md, Theorem B2).
Regret     no bound.
Assumes    for learning: users much alike in the long run, with values that a few numbers can describe (model.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.learners.base.entry import Advice, Entry
from diminuendo.learners.base.feedback import Rewards
from diminuendo.learners.base.feedback_window import Patient
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.slates.policy import first_slate, slate_learner
from diminuendo.learners.slates.posterior import SlatePosterior
from diminuendo.learners.slates.questions import Noise, Questions
from diminuendo.offline.rules import SlateRules
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.sources import RandomSource
from diminuendo.streams.contexts import Contexts
from diminuendo.streams.users import Users
from diminuendo.types import Ints, Items


class Totals(Questions):
    """Everybody is asked what her slate is worth to her."""

    reader = Rewards()
    ticks = 1 << 10
    enough_for_chance = 32
    sensitivities = (1,)

    def ask(self, slate: Items, users: int, posterior: SlatePosterior, noise: Noise) -> tuple[Items, int]:
        """Sorted, so that the same set of items is one number; the total over all slots."""
        return posterior.builder.ordered(slate, slate), len(slate)

    def retests(
        self, leader: Items, users: int, few: int, rounds: int, posterior: SlatePosterior
    ) -> list[tuple[Items, int]]:
        """One slate of items that the last draws would rather show than the leading ones.

        A total of what users hardly want varies little, so few users are enough.
        """
        builder, others = posterior.builder, posterior.challengers(leader, len(leader))
        enough = len(others) == len(leader) if builder.free else len(others) > 0
        return [(builder.containing(np.concatenate([others, leader])), few)] if enough and users > few else []

    def answers(self, users: Users, first: int, slates: Items) -> NDArray[Any]:
        """What the slates are worth to them."""
        return users.values_of(slates, first)

    def ticks_of(self, questions: Ints, answers: NDArray[Any]) -> tuple[Ints, Ints]:
        """Each reward in ticks, to the one cell of its slate."""
        rewards = np.clip(np.nan_to_num(answers, nan=0.0), 0.0, 1.0)
        return np.zeros(len(answers), dtype=np.int64), np.floor(rewards * self.ticks).astype(np.int64)

    def count_one(self, question: int, start: int, answer: float) -> tuple[int, int]:
        """The reward in ticks, to the one cell of its slate."""
        if not 0.0 <= answer <= 1.0:
            answer = 1.0 if answer > 1.0 else 0.0  # what is not a number says nothing
        return start, int(answer * self.ticks)


def slate_totals(
    n_items: int,
    slots: int,
    *,
    horizon: int | None,
    epsilon: float,
    max_rounds_per_user: int = 1,
    prior: Any = None,
    prior_users: int | None = None,
    ledger: Ledger | None = None,
    rng: RandomSource | None = None,
    feedback_window: Patient = None,
    contexts: Contexts | None = None,
    absent: Iterable[int] = (),
    rules: SlateRules | None = None,
    exclusions: bool = False,
    private: bool = True,
) -> Learner:
    """Return slate totals: learns from noisy totals of rewards, one release per slate. Bandit feedback.

    Parameters
    ----------
    n_items : int
        Number of items.
    slots : int
        Number of items in a slate.
    horizon : int or None
        Number of rounds; None if it is not known.
    epsilon : float
        Privacy budget.
    max_rounds_per_user : int, default 1
        Contribution bound: how many rounds of one user count.
    prior : sequence of float, optional
        Public guess of the share of users whom each item pleases.
    prior_users : int, optional
        As how many users the prior counts.
    ledger : Ledger, optional
        What is charged. By default a ledger of its own, in memory.
    rng : RandomSource, optional
        Randomness. By default SystemSource.
    feedback_window : FeedbackWindow or int, optional
        Feedback window.
    contexts : Contexts, optional
        What is known of users when they arrive.
    absent : iterable of int, optional
        Items that are not available yet.
    rules : SlateRules, optional
        What every slate satisfies.
    exclusions : bool, default False
        Whether users may exclude items. The feedback of users who are shown another slate for that is not counted.
    private : bool, default True
        False: the plan of that epsilon without noise; nothing is guaranteed.

    Returns
    -------
    Learner

    Raises
    ------
    OverBudget
        If the ledger cannot pay for the run.
    InvalidInput
        If an argument is out of range.

    Notes
    -----
    (epsilon, 0)-DP for any feedback and any number of blocks, replacing `max_rounds_per_user` rounds of one
    user (Theorem B2 of
    docs/maths/counts.md; with contexts Theorems B3 and B4 of docs/maths/contexts-counts.md). Each user enters one
    release, so nothing is composed. No regret bound.

    Examples
    --------
    >>> import diminuendo as dim
    >>> learner = dim.SlateTotals(20, 3, horizon=10_000, epsilon=1.0, max_rounds_per_user=2, rng=dim.SeededSource(1))
    >>> round(learner.guarantee.epsilon, 6), learner.guarantee.delta, learner.guarantee.neighbours
    (1.0, 0.0, "replace one user's 2 rounds")
    """
    return slate_learner(
        "slate-totals", Totals(), n_items, slots, horizon=horizon, epsilon=epsilon,
        max_rounds_per_user=max_rounds_per_user, prior=prior,
        prior_users=prior_users, ledger=ledger,
        rng=rng, feedback_window=feedback_window, contexts=contexts, absent=absent, rules=rules,
        exclusions=exclusions, noisy=private,
    )  # fmt: skip


def _open(private: bool) -> dict[str, Any]:
    """The entry without noise."""
    return {
        "make": partial(slate_totals, private=False),
        "summary": "slate totals without noise: what privacy costs; not private",
        "advice": Advice("none", "-", "counts", "as what slate totals could learn without noise"),
        "private": False,
        "pure": False,
        "audited_on": (),
    }


SlateTotals = Entry(
    "slate-totals",
    slate_totals,
    reads=Rewards.kinds,
    summary="one noisy total per slate, and beliefs about items; bandit; private, delta = 0",
    slow=True,
    advice=Advice("(ε, 0)", "-", "counts", "first, with one reward per slate"),
    pure=True,
    audited_on=(first_slate,),
    choices={"private": (True, False)},
    vary=_open,
)
