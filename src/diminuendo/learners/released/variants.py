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
from diminuendo.learners.released.released_sum import (
    ReleasedSum,
    batches,
    gain_clip,
    noise_level,
    published_in,
)
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import Coins
from diminuendo.sums.private_sum import PrivateSum


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
    noisy = PrivateSum(
        frame.n_items, schedule=published_in(schedule), cost=budget.share(), strategy="independent", clip=gains,
        ledger=Ledger(budget) if ledger is None else ledger, name=frame.name,
    )  # fmt: skip
    released = ReleasedSum(frame.n_items, schedule, noisy)
    follower = BoostedLeader(frame.n_items, frame.slots, schedule)
    return Learner(ReleasedPolicy(frame, budget, _as_asked(clip), released, follower, BoostedGains))


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
    noisy = PrivateSum(
        size, schedule=published_in(schedule), cost=budget.share(), strategy="blt", clip=gains, across=frame.slots,
        ledger=Ledger(budget) if ledger is None else ledger, name=frame.name,
    )  # fmt: skip
    released = ReleasedSum(frame.n_items, schedule, noisy)
    follower = NoisyExperts(
        frame.n_items, frame.slots, schedule, hedge_rate(frame.n_items, frame.slots, schedule)
    )
    return Learner(ReleasedPolicy(frame, budget, _as_asked(clip), released, follower, HedgeGains))


def _as_asked(clip: float | None) -> dict[str, float | None]:
    """The option of both, for snapshots."""
    return {"clip": None if clip is None else float(clip)}


Boosted = Entry(
    "boosted",
    boosted,
    reads=Objectives.kinds,
    summary="one noisy sum of N numbers, followed carefully; full information; private; proved against adversaries",
    advice=Advice("(ε, δ)", "k√(T√N / ε)", "sums", "where a bound against adaptive users is wanted"),
)
NoisyHedge = Entry(
    "noisy-hedge",
    noisy_hedge,
    reads=Objectives.kinds,
    summary="one Hedge expert per slot on noisy sums; full information; private; proved, noise costs no power of T",
    advice=Advice("(ε, δ)", "√(kT log N)", "sums", "where a bound against oblivious users is wanted"),
)
