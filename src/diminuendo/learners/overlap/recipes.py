"""Overlap greedy, put together of its parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.engines import Engine, engine_called
from diminuendo.learners.base.entry import Advice, Entry
from diminuendo.learners.base.feedback import Objectives
from diminuendo.learners.base.feedback_window import Patient
from diminuendo.learners.base.frame import LONGEST, Frame
from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.setting import checked_prior
from diminuendo.learners.overlap.contexts.counts import TypeCounts
from diminuendo.learners.overlap.contexts.slate_per_context import SlatePerContext
from diminuendo.learners.overlap.global_slate import GlobalSlate
from diminuendo.learners.overlap.memory import RewardMemory
from diminuendo.learners.overlap.policy import OverlapPolicy, PublicParts
from diminuendo.learners.overlap.schedule import overlap_plan
from diminuendo.learners.overlap.stored import UsersMemory
from diminuendo.offline.rules import SlateRules, as_rules
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Composed
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.sources import RandomSource
from diminuendo.streams.contexts import Contexts, as_contexts
from diminuendo.sums.clip import Clip
from diminuendo.types import Floats

MOST_ROWS = 1 << 22
"""Means of marginal losses take at most so many numbers."""

CLIP = Clip()
"""One user's values of items are clipped to length 1."""


def overlap_greedy(
    n_items: int,
    slots: int,
    *,
    horizon: int | None,
    epsilon: float,
    delta: float,
    max_rounds_per_user: int = 1,
    prior: Sequence[float] | Floats | None = None,
    prior_users: int | None = None,
    absent: Iterable[int] = (),
    eligible: Any = None,
    ledger: Ledger | None = None,
    rng: RandomSource | None = None,
    feedback_window: Patient = None,
    contexts: Contexts | None = None,
    rules: SlateRules | None = None,
    exclusions: bool = False,
    retention: int | None = None,
    sample: int = 1,
    engine: str | Engine | None = None,
) -> Learner:
    """Return overlap greedy: noisy greedy over stored users at a few dozen releases. Full information.

    At each release, at times fixed beforehand, all stored users answer one greedy query sequence. First the
    singleton values of all items; noise is added, and the best item is picked. Then the marginal losses when that
    item is shown, with noise; and so on, and at last the residual. Losses and residual of one user come out of
    their singleton values, so the whole sequence costs no more than twice the first query, whatever k is. Users of
    earlier releases are queried again with weights whose squares add up, and averages over releases then have noise
    that falls like 1 / (users so far). The slate is shown to all users until the next release; in the first batch
    slates are random.

    Queries put more weight on items that can still be picked, as far as is published (query weights). Once the
    slate is good, releases query around it: what each item would add, and what each shown item keeps others from
    adding. Items that are surely better are swapped in. One noisy total of rewards per batch tells whether tastes
    have drifted: then memory begins anew.

    Regret     proved for users of one taste whose singletons are not clipped, and for greedy on the last release
               alone: of order k^(3/2) sigma log T (docs/maths/overlap.md, Theorem O3). For users who want several
               items it is about their clipped objectives. No bound against an adversary.
    Guarantee  (epsilon, delta)-DP, replacing `max_rounds_per_user` rounds of one user. Every release is
    charged before it is
               drawn; rounded Gaussian noise (docs/maths/overlap.md, Theorems O1, F1 and F2). With private contexts
               or exclusions joint DP, in the view of all others (docs/maths/contexts.md, Theorem X1;
               docs/maths/rules.md, Theorem Y3).
    Assumes    nothing about users: singletons are clipped to length 1, losses by a running minimum. One feedback
               per round.
    Memory     users' rows or functions, as long as the learner lives or until tastes drift; with a retention, for
               that number of rounds, and until these are closed.
    Excludes   timing, and the memory of the process.

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
    delta : float
        Above 0.
    max_rounds_per_user : int, default 1
        Contribution bound: how many rounds of one user count.
    prior : sequence of float, optional
        Public guess of the share of users whom each item pleases.
    prior_users : int, optional
        As how many users the prior counts.
    absent : iterable of int, optional
        Items that are not available yet.
    eligible : optional
        For each slot the items that it may show, if that is the only rule.
    ledger : Ledger, optional
        What is charged. By default a ledger of its own, in memory.
    rng : RandomSource, optional
        Randomness. By default SystemSource.
    feedback_window : FeedbackWindow or int, optional
        Feedback window.
    contexts : Contexts, optional
        What is known of users when they arrive.
    rules : SlateRules, optional
        What every slate satisfies.
    exclusions : bool, default False
        Whether users may exclude items.
    retention : int, optional
        For how many rounds a user's data is kept at most. By default as long as the learner lives.
    sample : int, default 1
        One in `sample` users is learned from, by a public coin; all are served.
    engine : {"threads", "ray"} or engine, optional
        Where stored users' data is evaluated. Results do not depend on it.

    Returns
    -------
    Learner

    Raises
    ------
    OverBudget
        If the ledger cannot pay for the run.
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> import diminuendo as dim
    >>> learner = dim.OverlapGreedy(20, 3, horizon=10_000, epsilon=1.0, delta=1e-6, rng=dim.SeededSource(1))
    >>> print(learner.guarantee)
    (1, 1e-06)-differentially private (replace one round, seeded: for simulation only)
    """
    known = as_contexts(contexts)
    frame = Frame(
        "overlap-greedy",
        n_items,
        slots,
        horizon=_validate.positive_int(LONGEST if horizon is None else horizon, "horizon"),
        max_rounds_per_user=max_rounds_per_user,
        ledger=ledger,
        rng=rng,
        feedback_window=feedback_window,
        contexts=known,
        exclusions=exclusions,
        sample=sample,
    )
    longest = None if retention is None else _validate.positive_int(retention, "retention")
    budget = Budget(epsilon, delta, unit=frame.unit, accountant="continuous-gaussian")
    plan = overlap_plan(frame.n_items, None if horizon is None else frame.horizon, budget, CLIP, longest)
    items = ItemAvailability(
        frame.n_items, frame.slots, absent, _rules(rules, eligible), exclusions=frame.exclusions
    )
    before = checked_prior(prior, prior_users, frame.n_items, otherwise=plan.schedule.ends[0])
    public = PublicParts(frame, budget, horizon is not None, plan, items, before, longest)
    charged = Ledger(budget) if ledger is None else ledger
    counts = None if known is None else TypeCounts(known, len(plan.schedule))
    memory = UsersMemory(frame, plan, items, charged, CLIP, counts, engine_called(engine))
    # Rewards are charged at once, releases one by one; a new run that cannot be paid to its end is not begun.
    if charged.cost_of("rewards") is None:
        charged.require(Composed((plan.drift, *plan.costs)))
    rewards = RewardMemory(plan, charged)
    # Means of losses are stored for several query sequences, as long as they take at most MOST_ROWS numbers.
    most = MOST_ROWS // (2 * frame.slots * frame.n_items)
    prefixes = 1 if known is None else max(1, min(known.n_types, most))
    common = GlobalSlate(items, plan, before, memory, prefixes=prefixes)
    shown = common if counts is None else SlatePerContext(items, plan, memory, counts, common)
    return Learner(OverlapPolicy(public, memory, rewards, shown))


def _rules(rules: Any, eligible: Any) -> SlateRules | None:
    """The rules that were given; or items of slots alone, by which slots may stay empty."""
    if eligible is None:
        return as_rules(rules)
    if rules is not None:
        raise InvalidInput(
            "Say eligible=.. as one of the rules, SlateRules(eligible=.., ..), or without rules."
        )
    return SlateRules(eligible=eligible, may_be_empty=True)


OverlapGreedy = Entry(
    "overlap-greedy",
    overlap_greedy,
    reads=Objectives.kinds,
    summary="keeps users, asks them again with noise a few dozen times; full information; private",
    advice=Advice(
        "(ε, δ)",
        "-",
        "users",
        "first: loses least where tastes are steady or rarely change",
        keeps_users=True,
    ),
)
