"""Learners made from the facts of a placement, and ledgers from those of a population."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from diminuendo.learners import budget_for, entry_for, make
from diminuendo.learners.base.engines import Engine
from diminuendo.learners.base.feedback_window import FeedbackWindow
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.setting import Setting
from diminuendo.offline.rules import SlateRules
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.sources import RandomSource
from diminuendo.service.records import ID_BLOCK_HOLDS, ID_BLOCK_LASTS, PlacementSpec, PopulationSpec
from diminuendo.service.store import STORED_WITHIN
from diminuendo.streams.contexts import Contexts

BEHIND = 10.0
"""Seconds: ID blocks that are out and a trainer that is busy together take no longer, or users are shown
fallback slates."""
UNKNOWN = 1_000_000
"""Rounds that learners are chosen for if the number of users is not known."""


def in_flight(spec: PlacementSpec) -> int:
    """How many rounds may be handed out and not settled: as many as are expected at most."""
    lasts = spec.deadline + spec.publish_delay + spec.publish_interval + BEHIND
    return max(16, math.ceil(spec.per_second / spec.sample * lasts))


def expected_pending_in_flight(spec: PlacementSpec) -> int:
    """How many are, where all goes well: from when an ID block is asked for until what is made of it is shown."""
    lasts = (
        ID_BLOCK_HOLDS
        + ID_BLOCK_LASTS
        + spec.deadline
        + STORED_WITHIN
        + spec.publish_delay
        + spec.publish_interval
    )
    return min(in_flight(spec), math.ceil(spec.per_second / spec.sample * lasts))


def asked(spec: PlacementSpec, clock: Callable[[], float]) -> tuple[str, Setting, dict[str, Any]]:
    """What `make` and `budget_for` are asked for. Of a sample, the learner is made for its rounds alone: the coins are
    thrown where rounds are handed out (front/serving.py)."""
    number = {name: item for item, name in enumerate(spec.items)}
    pinned = {slot: number[name] for slot, name in spec.pinned.items()}
    caps = [([number[name] for name in names], most) for names, most in spec.caps]
    feedback_window = FeedbackWindow(
        seconds=spec.deadline, in_flight=in_flight(spec), expected_pending=expected_pending_in_flight(spec),
        response_rate=spec.response_rate, clock=clock,
    )  # fmt: skip
    setting = Setting(
        len(spec.items), spec.slots, spec.rounds or UNKNOWN, spec.feedback, spec.epsilon, spec.delta,
        spec.max_rounds_per_user, feedback_window, Contexts(spec.contexts,
        private=spec.private_contexts) if spec.contexts else None,
        SlateRules(pinned=pinned, caps=caps) if pinned or caps else None, spec.exclusions,
        spec.retention,
    )  # fmt: skip
    return spec.learner, setting, {} if spec.users else {"horizon": None}


def made(
    spec: PlacementSpec,
    ledger: Ledger,
    clock: Callable[[], float],
    rng: RandomSource | None,
    engine: Engine | None = None,
) -> Learner:
    """The learner of a placement, as it begins; or begins again, where nothing was published yet.

    `engine`: where users are kept whom it keeps, if it keeps any.
    """
    name, setting, options = asked(spec, clock)
    place = engine if entry_for(name, setting).takes("engine") else None
    return make(name, setting, ledger=ledger, rng=rng, engine=place, **options)


def budget_of(population: PopulationSpec, first: PlacementSpec) -> Budget:
    """What the ledger of a population begins with; how it counts, and what it hides, as its first placement needs."""
    name, setting, options = asked(first, lambda: 0.0)
    result = budget_for(name, setting, **options)
    delta = 0.0 if result.accountant == "pure" else population.delta
    unit = replace(result.unit, rounds=population.max_rounds_per_user)
    return replace(result, epsilon=population.epsilon, delta=delta, unit=unit)
