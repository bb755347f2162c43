"""Two learners on one released sum: `boosted` and `noisy-hedge`."""

from __future__ import annotations

import math

from diminuendo import _validate
from diminuendo.learners.base.entry import Advice, Entry
from diminuendo.learners.base.feedback import Objectives
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.patience import Patient
from diminuendo.learners.released.boosted import LENGTH, BoostedLeader
from diminuendo.learners.released.boosted_people import BoostedGains
from diminuendo.learners.released.noisy_hedge import NoisyExperts, hedge_rate, people_in_a_batch
from diminuendo.learners.released.noisy_hedge_people import HedgeGains
from diminuendo.learners.released.policy import ReleasedPolicy
from diminuendo.learners.released.released_sum import ReleasedSum, batches, gain_clip, noise_level
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import Coins


def boosted(
    n_items: int,
    slots: int,
    *,
    horizon: int,
    epsilon: float,
    delta: float,
    clip: float | None = None,
    visits: int = 1,
    ledger: Ledger | None = None,
    coins: Coins | None = None,
    patience: Patient = None,
) -> Learner:
    """A leader on the capped simplex that follows one boosted sum; `clip`: the longest vector of gains that counts."""
    frame = Frame(
        "boosted", n_items, slots, horizon=horizon, visits=visits, ledger=ledger, coins=coins, patience=patience
    )  # fmt: skip
    horizon = _validate.positive_int(horizon, "horizon")
    budget = Budget(epsilon, delta, frame.unit, "continuous-gaussian")
    gains = gain_clip(frame.n_items, clip)
    people = math.ceil(LENGTH * noise_level(frame.n_items, gains, budget))
    schedule = batches(horizon, people, frame.patience.ahead)
    released = ReleasedSum(
        frame.n_items, size=frame.n_items, schedule=schedule, clip=gains, budget=budget, strategy="independent",
        ledger=Ledger(budget) if ledger is None else ledger, name=frame.name,
    )  # fmt: skip
    follower = BoostedLeader(frame.n_items, frame.slots, schedule)
    return Learner(ReleasedPolicy(frame, budget, clip, released, follower, BoostedGains))


def noisy_hedge(
    n_items: int,
    slots: int,
    *,
    horizon: int,
    epsilon: float,
    delta: float,
    clip: float | None = None,
    visits: int = 1,
    ledger: Ledger | None = None,
    coins: Coins | None = None,
    patience: Patient = None,
) -> Learner:
    """k Hedge experts on noisy sums; `clip`: the longest vector of gains, all slots together, that counts."""
    frame = Frame(
        "noisy-hedge", n_items, slots, horizon=horizon, visits=visits, ledger=ledger, coins=coins, patience=patience
    )  # fmt: skip
    horizon = _validate.positive_int(horizon, "horizon")
    budget, size = Budget(epsilon, delta, frame.unit, "continuous-gaussian"), frame.slots * frame.n_items
    gains, people = gain_clip(size, clip), people_in_a_batch(size, horizon)
    schedule = batches(horizon, people, frame.patience.ahead)
    released = ReleasedSum(
        frame.n_items, size=size, schedule=schedule, clip=gains, budget=budget, strategy="blt",
        ledger=Ledger(budget) if ledger is None else ledger, name=frame.name,
    )  # fmt: skip
    rate = hedge_rate(frame.n_items, frame.slots, schedule)
    follower = NoisyExperts(frame.n_items, frame.slots, schedule, rate)
    return Learner(ReleasedPolicy(frame, budget, clip, released, follower, HedgeGains))


Boosted = Entry(
    "boosted",
    boosted,
    reads=Objectives.kinds,
    summary="one noisy sum of N numbers, followed carefully; full information; private; proved against adversaries",
    advice=Advice("(ε, δ)", "k√(T√N / ε)", "sums", "where a bound is wanted, and people may react to slates"),
)
NoisyHedge = Entry(
    "noisy-hedge",
    noisy_hedge,
    reads=Objectives.kinds,
    summary="one Hedge expert per slot on noisy sums; full information; private; proved, noise costs no power of T",
    advice=Advice("(ε, δ)", "√(kT log N)", "sums", "where a bound is wanted, and people do not react"),
)
