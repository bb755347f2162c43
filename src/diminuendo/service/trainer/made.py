"""Learners made from the facts of a placement, and ledgers from those of a population."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from diminuendo.learners import budget_for, entry_for, make
from diminuendo.learners.base.engines import Engine
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.patience import Patience
from diminuendo.learners.base.setting import Setting
from diminuendo.offline.rules import SlateRules
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import Coins
from diminuendo.service.records import LEASE_HOLDS, LEASE_LASTS, PlacementFacts, PopulationFacts
from diminuendo.service.store import STORED_WITHIN
from diminuendo.streams.contexts import Contexts

BEHIND = 10.0
"""Seconds: leases that are out and a trainer that is busy together take no longer, or people are shown fillers."""
UNKNOWN = 1_000_000
"""Rounds that learners are chosen for where nobody knows how many there will be."""


def in_flight(facts: PlacementFacts) -> int:
    """How many rounds may be handed out and not settled: as many as are expected at most."""
    lasts = facts.deadline + facts.allowance + facts.tick + BEHIND
    return max(16, math.ceil(facts.per_second / facts.sample * lasts))


def usually_in_flight(facts: PlacementFacts) -> int:
    """How many are, where all goes well: from when a lease is asked for until what is made of it is shown."""
    lasts = LEASE_HOLDS + LEASE_LASTS + facts.deadline + STORED_WITHIN + facts.allowance + facts.tick
    return min(in_flight(facts), math.ceil(facts.per_second / facts.sample * lasts))


def asked(facts: PlacementFacts, clock: Callable[[], float]) -> tuple[str, Setting, dict[str, Any]]:
    """What `make` and `budget_for` are asked for. Of a sample, the learner is made for its rounds alone: the coins are
    thrown where rounds are handed out (front/serving.py)."""
    number = {name: item for item, name in enumerate(facts.items)}
    pinned = {slot: number[name] for slot, name in facts.pinned.items()}
    caps = [([number[name] for name in names], most) for names, most in facts.caps]
    patience = Patience(
        seconds=facts.deadline, in_flight=in_flight(facts), usually=usually_in_flight(facts),
        answering=facts.answering, clock=clock,
    )  # fmt: skip
    setting = Setting(
        len(facts.items), facts.slots, facts.rounds or UNKNOWN, facts.feedback, facts.epsilon, facts.delta,
        facts.visits, patience, Contexts(facts.contexts, private=facts.private_contexts) if facts.contexts else None,
        SlateRules(pinned=pinned, caps=caps) if pinned or caps else None, facts.exclusions,
        facts.retention,
    )  # fmt: skip
    return facts.learner, setting, {} if facts.people else {"horizon": None}


def made(
    facts: PlacementFacts,
    ledger: Ledger,
    clock: Callable[[], float],
    coins: Coins | None,
    engine: Engine | None = None,
) -> Learner:
    """The learner of a placement, as it begins; or begins again, where nothing was published yet.

    `engine`: where people are kept whom it keeps, if it keeps any.
    """
    name, setting, options = asked(facts, clock)
    place = engine if entry_for(name, setting).takes_engine else None
    return make(name, setting, ledger=ledger, coins=coins, engine=place, **options)


def budget_of(population: PopulationFacts, first: PlacementFacts) -> Budget:
    """What the ledger of a population begins with; how it counts, and what it hides, as its first placement needs."""
    name, setting, options = asked(first, lambda: 0.0)
    result = budget_for(name, setting, **options)
    delta = 0.0 if result.accountant == "pure" else population.delta
    unit = replace(result.unit, rounds=population.visits)
    return replace(result, epsilon=population.epsilon, delta=delta, unit=unit)
