"""Slate clicks: learns from who clicked first. For click feedback in practice.

As slate totals, but there are several queries, of which each user answers one: whether one of the first e slots was
clicked, which moves one count by at most 1; or which slot was, which moves two counts by 1 and needs noise of twice the
scale in each. The query is chosen with the slate, by public facts: whatever should teach most. Order does not change
what a slate earns, so items that were shown to few users so far come first, where most users look.

Guarantee  (epsilon, 0), whatever users click, and whether they do (docs/maths/counts.md, Theorem B2).
Regret     no bound.
Assumes    for learning: users who read from the top (streams/clicks.py), much alike in the long run.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.learners.base.entry import Advice, Entry
from diminuendo.learners.base.feedback import Clicks
from diminuendo.learners.base.feedback_window import Patient
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.slates.blocks import WHICH_SLOT
from diminuendo.learners.slates.likelihood import COUNT_VARIANCE
from diminuendo.learners.slates.policy import first_slate, slate_learner
from diminuendo.learners.slates.posterior import SlatePosterior
from diminuendo.learners.slates.questions import Noise, Questions
from diminuendo.offline.rules import SlateRules
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.sources import RandomSource
from diminuendo.streams.clicks import NO_CLICK
from diminuendo.streams.contexts import Contexts
from diminuendo.streams.users import Users
from diminuendo.types import Floats, Ints, Items

SECOND_LOOK, SECOND_SHARE = 2, 0.1
"""Items that are tried again are shown to SECOND_LOOK times as many users as at first. Where all items together take
no more than SECOND_SHARE of all users, that is begun at once."""


class FirstClicks(Questions):
    """Everybody is asked which slot she clicked first, or whether that is one of the first few."""

    reader = Clicks()
    ticks = 1
    enough_for_chance = 8
    sensitivities = (1, 2)

    def ask(self, slate: Items, users: int, posterior: SlatePosterior, noise: Noise) -> tuple[Items, int]:
        """Items that few users were shown come first; the question that should teach most."""
        ordered = posterior.builder.ordered(slate, posterior.observations.shown[slate])
        return ordered, best_question(posterior.chances(ordered), users, noise.scales[1], noise.scales[2])

    def retests(
        self, leader: Items, users: int, few: int, rounds: int, posterior: SlatePosterior
    ) -> list[tuple[Items, int]]:
        """Half a slate of such items each, in front of leading ones: everybody looks at them, and few go without.

        First some that were shown only once, until all had a second look; then those that draws put ahead of leading
        ones. As many as together take no more users than one exploring slate; but a second look at everything that
        takes few of all users is begun at once.
        """
        size, few = (posterior.builder.free_slots + 1) // 2, SECOND_LOOK * few
        once = posterior.shown_least(few, leader)[:size]
        challengers = posterior.challengers(np.concatenate([leader, once]), 2 * size)
        at_once = posterior.n_items / max(1, size) * few <= SECOND_SHARE * rounds
        groups = [group for group in (once, challengers[:size], challengers[size:]) if len(group) == size > 0]
        return [
            (posterior.builder.containing(np.concatenate([group, leader])), few)
            for group in groups[: max(int(at_once), users // few)]
        ]

    def answers(self, users: Users, first: int, slates: Items) -> Ints:
        """The slots that they click first."""
        return users.first_clicks(slates, first)

    def ticks_of(self, questions: Ints, answers: NDArray[Any]) -> tuple[Ints, Ints]:
        """A tick in the cell of the clicked slot; or, asked about the first e slots, in the one cell if it is one."""
        which = questions == WHICH_SLOT
        yes = (answers != NO_CLICK) & (which | (answers < questions))
        return np.where(which & yes, answers, 0), yes.astype(np.int64)

    def count_one(self, question: int, start: int, answer: int) -> tuple[int, int]:
        """A tick in the cell of the clicked slot, or in the one cell; no tick where that was not clicked."""
        if answer == NO_CLICK:
            return start, 0
        if question == WHICH_SLOT:
            return start + answer, 1
        return start, int(answer < question)


def best_question(chances: Floats, users: int, yes_or_no: float, which: float) -> int:
    """What should teach most: WHICH_SLOT, or e for one of the first e slots. By draws of click chances up to each slot.

    What a count teaches is measured by half the logarithm of how much its forecast varies more than it would by chance
    and noise alone: the information in it, were all of it Gaussian. The last two are the scales of noise, in users.
    """
    slots = np.diff(chances, axis=1, prepend=0.0)
    first_slots = _information(chances, users, yes_or_no)
    each_slot = _information(slots, users, which)
    return WHICH_SLOT if each_slot.sum() > first_slots.max() else int(first_slots.argmax()) + 1


def _information(chances: Floats, users: int, scale: float) -> Floats:
    mean = np.clip(chances.mean(axis=0), 0.0, 1.0)
    chance = users * mean * (1 - mean) + 2 * scale**2 + COUNT_VARIANCE
    return np.asarray(0.5 * np.log1p(users**2 * chances.var(axis=0) / chance))


def slate_clicks(
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
    """Return slate clicks: learns from noisy histograms of clicks, one release per slate. Click feedback.

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
    >>> learner = dim.SlateClicks(20, 3, horizon=10_000, epsilon=1.0, max_rounds_per_user=2, rng=dim.SeededSource(1))
    >>> round(learner.guarantee.epsilon, 6), learner.guarantee.delta, learner.guarantee.neighbours
    (1.0, 0.0, "replace one user's 2 rounds")
    """
    return slate_learner(
        "slate-clicks", FirstClicks(), n_items, slots, horizon=horizon, epsilon=epsilon,
        max_rounds_per_user=max_rounds_per_user, prior=prior,
        prior_users=prior_users, ledger=ledger,
        rng=rng, feedback_window=feedback_window, contexts=contexts, absent=absent, rules=rules,
        exclusions=exclusions, noisy=private,
    )  # fmt: skip


def _open(private: bool) -> dict[str, Any]:
    """The entry without noise."""
    return {
        "make": partial(slate_clicks, private=False),
        "summary": "slate clicks without noise: what privacy costs; not private",
        "advice": Advice("none", "-", "counts", "as what slate clicks could learn without noise"),
        "private": False,
        "pure": False,
        "audited_on": (),
    }


SlateClicks = Entry(
    "slate-clicks",
    slate_clicks,
    reads=Clicks.kinds,
    summary="noisy clicks per slate, and beliefs about items; click; private, delta = 0",
    slow=True,
    advice=Advice("(ε, 0)", "-", "counts", "first, with clicks"),
    pure=True,
    audited_on=(first_slate,),
    choices={"private": (True, False)},
    vary=_open,
)
