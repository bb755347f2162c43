"""Overlap greedy, put together of its parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.engines import Engine, engine_called
from diminuendo.learners.base.entry import Advice, Entry
from diminuendo.learners.base.feedback import Objectives
from diminuendo.learners.base.frame import LONGEST, Frame
from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.patience import Patient
from diminuendo.learners.base.setting import checked_prior
from diminuendo.learners.overlap.contexts.counts import TypeCounts
from diminuendo.learners.overlap.contexts.one_per_type import OnePerType
from diminuendo.learners.overlap.memory import PayoffMemory
from diminuendo.learners.overlap.one_for_all import OneForAll, Shown
from diminuendo.learners.overlap.policy import OverlapPolicy, PublicParts
from diminuendo.learners.overlap.schedule import OverlapPlan, overlap_plan
from diminuendo.learners.overlap.stored import PeopleMemory
from diminuendo.offline.rules import SlateRules, as_rules
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Composed
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import Coins
from diminuendo.streams.contexts import Contexts, as_contexts
from diminuendo.sums.clip import Clip
from diminuendo.types import Floats

MOST_ROWS = 1 << 22
"""Means of rows are kept for as many chains as take MOST_ROWS numbers, if there are several."""

CLIP = Clip()
"""What one person says about items is clipped to length 1."""


def overlap_greedy(
    n_items: int,
    slots: int,
    *,
    horizon: int | None,
    epsilon: float,
    delta: float,
    visits: int = 1,
    prior: Sequence[float] | Floats | None = None,
    prior_people: int | None = None,
    absent: Iterable[int] = (),
    eligible: Any = None,
    ledger: Ledger | None = None,
    coins: Coins | None = None,
    patience: Patient = None,
    contexts: Contexts | None = None,
    rules: SlateRules | None = None,
    exclusions: bool = False,
    retention: int | None = None,
    sample: int = 1,
    engine: str | Engine | None = None,
) -> Learner:
    """Overlap greedy: keeps people, asks them again at every release, and follows greedy on what they said, with noise.

    At each of a few dozen releases, at times fixed beforehand, all people who are kept answer one chain of questions.
    First what each item is worth by itself; noise is added, and the best item is picked. Then what every other item
    loses when that one is shown, with noise; and so on, and at last what is left. Rows and rest of one person come out
    of her singles, so the whole chain costs no more than twice the first question, whatever k is. People of earlier
    releases are asked again with weights whose squares add up, and averages over releases then have noise that falls
    like 1 / (people so far). The slate is shown to everybody until the next release; in the first batch slates are
    random.

    What people say counts more for items that can still be picked, as far as was published (a focus). Once the slate is
    a good one, releases ask around it: what each item would add, and what each shown item keeps others from adding.
    Items are swapped that are surely better.

    One number per batch besides, the payoff, tells whether tastes have changed: then memory begins anew.

    Regret     proved for people of one taste whose singles are not clipped, and for greedy on the last release alone:
               of order k^(3/2) sigma log T (docs/maths/overlap.md, Theorem O3). For users who want several items it is
               about their clipped objectives. No bound against an adversary.
    Guarantee  every release is paid for before it is drawn; rounded Gaussian noise (docs/maths/overlap.md, Theorems O1,
               F1 and F2).
    Assumes    nothing about people: singles are clipped to length 1, rows by a running minimum. One answer per round.
    Memory     people themselves, as rows or functions, are kept as long as the learner lives or until tastes change;
               with a retention, for that number of rounds, and until these are settled.
    Excludes   timing, and the memory of the process.

    `horizon`: how many people will come, None where nobody knows. `prior`, counting as `prior_people` people: which
    share of people each item pleases. `absent`: items that are not there yet. `rules`: what slates must keep to;
    `eligible`, for each slot its items, is one of them, and may be said by itself. `exclusions`: whether people may
    exclude items, such as those that they have already. `retention`: for how many rounds people are kept at most, None:
    for good. `sample`: of how many people one is learned from, by a public coin; all are served. `engine`: where
    users are queried, "threads", "ray" or one of learners/base/engines.py; what is published is the same.
    """
    place, known = engine_called(engine), as_contexts(contexts)
    frame = Frame(
        "overlap-greedy",
        n_items,
        slots,
        horizon=_validate.positive_int(LONGEST if horizon is None else horizon, "horizon"),
        visits=visits,
        ledger=ledger,
        coins=coins,
        patience=patience,
        contexts=known,
        exclusions=exclusions,
        sample=sample,
    )
    longest = None if retention is None else _validate.positive_int(retention, "retention")
    budget = Budget(epsilon, delta, unit=frame.unit, accountant="continuous-gaussian")
    plan = overlap_plan(frame.n_items, None if horizon is None else frame.horizon, budget, CLIP, longest)
    obeyed = _rules(rules, eligible)
    items = ItemAvailability(frame.n_items, frame.slots, absent, obeyed, exclusions=frame.exclusions)
    before = checked_prior(prior, prior_people, frame.n_items, otherwise=plan.schedule.ends[0])
    public = PublicParts(frame, budget, horizon is not None, plan, items, before, longest)
    paid_on = Ledger(budget) if ledger is None else ledger
    counts = None if known is None else TypeCounts(known, len(plan.schedule))
    memory = PeopleMemory(frame, plan, items, paid_on, CLIP, counts, place)
    payoffs = _paid_for(plan, paid_on)
    chains = 1 if known is None else _chains_kept(known.n_types, items)
    common = OneForAll(items, plan, before, memory, chains=chains)
    shown: Shown = common if counts is None else OnePerType(items, plan, memory, counts, common)
    return Learner(OverlapPolicy(public, memory, payoffs, shown))


def _chains_kept(wanted: int, items: ItemAvailability) -> int:
    """For how many chains means of rows are kept."""
    return max(1, min(wanted, MOST_ROWS // (2 * items.slots * items.n_items)))


def _rules(rules: Any, eligible: Any) -> SlateRules | None:
    """The rules that were given; or items of slots alone, by which slots may stay empty."""
    if eligible is None:
        return as_rules(rules)
    if rules is not None:
        raise InvalidInput(
            "Say eligible=.. as one of the rules, SlateRules(eligible=.., ..), or without rules."
        )
    return SlateRules(eligible=eligible, may_be_empty=True)


def _paid_for(plan: OverlapPlan, ledger: Ledger) -> PayoffMemory:
    """Payoffs are paid for at once, releases one by one; a new run that could not be paid to its end is not begun."""
    if not ledger.has_bought("payoffs"):
        ledger.require(Composed((plan.drift, *plan.costs)))
    return PayoffMemory(plan, ledger)


OverlapGreedy = Entry(
    "overlap-greedy",
    overlap_greedy,
    reads=Objectives.kinds,
    summary="keeps people, asks them again with noise a few dozen times; full information; private",
    advice=Advice(
        "(ε, δ)",
        "-",
        "users",
        "first: loses least where tastes are steady or rarely change",
        keeps_people=True,
    ),
)
