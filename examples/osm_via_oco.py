"""OSMviaOCO, a baseline of the field, as a plug-in in one file: `osm`, and `osm-dp`, which is private.

Slates are rounded from a point y of the capped simplex. Each user contributes a supergradient of the concave
relaxation of their objective at y. After each batch y follows the sum of all supergradients by online mirror ascent
(Salem, Ozcan, Nikolaou, Terzi & Ioannidis, AAAI 2024). `osm-dp` sees that sum with noise only, so y and slates are
post-processing of its releases (docs/maths/osm.md). Run it to see what both earn beside others:

    python examples/osm_via_oco.py
"""

import math
from typing import Any

import numpy as np

import diminuendo as dim
from diminuendo.extend import (
    Advice,
    Budget,
    Clip,
    Entry,
    ExactSum,
    Frame,
    Learner,
    Ledger,
    MenuPolicy,
    PrivateSum,
    SlatesFromPoint,
    Supergradients,
    equal,
    leader,
    point_ends,
    register,
    spread,
    step_cost,
)
from diminuendo.randomness import RandomSource
from diminuendo.types import Floats

TICKS = 1 << 12  # fixed-point units to 1


class OsmPolicy(MenuPolicy):
    proof = "docs/maths/sums.md, Lemma S0 and Theorem S6"

    def __init__(
        self, frame: Frame, budget: Budget | None, total: PrivateSum | ExactSum, options: dict[str, Any]
    ) -> None:
        self.frame, self.budget, self.total, self.options = frame, budget, total, options
        self.sums = {"supergradients": total}
        self.reader = Supergradients(self.point)
        self.released = np.zeros(frame.n_items)
        self.spread = spread(frame.n_items, frame.slots) or 1.0
        self.cost = np.array([self.spread])  # of following so far, so that the first rate is 1
        self.follow(total.schedule.ends[0])

    def point(self) -> Floats:  # y: post-processing of what was released
        menu = self.menu
        assert isinstance(menu, SlatesFromPoint)
        return menu.point

    def follow(
        self, end: int | None
    ) -> None:  # mirror ascent with entropy, and slates from the point where it is
        point, _ = leader(self.released, self.frame.slots, self.spread / self.cost[0])
        self.show(SlatesFromPoint, point_ends(point, self.frame.slots), end=end)

    def due(self) -> bool:
        return self.total.batch < self.total.schedule.closed_by(self.frame.closed)

    def release(self) -> None:  # all that is published: the sum, with noise in `osm-dp`
        sums = self.total.release(self.frame.secret)
        step = sums - self.released
        self.cost += step_cost(self.released, step, self.frame.slots, self.spread / self.cost[0])
        self.released[:] = sums
        self.follow([*self.total.schedule.ends, None][self.total.batch])

    def learn(self, place: int, answer: Floats) -> None:  # clipped by the sum, in whole numbers
        number = self.frame.decisions.round_at(place)
        self.total.add(answer, batch=self.total.schedule.batch_of(number))

    def state(self) -> Any:
        return self.cost, self.released

    def regret_bound(self, rounds: int | None = None) -> float | None:  # docs/maths/osm.md, Theorem J2
        sizes, clip, frame = np.array(self.total.schedule.sizes), self.total.clip, self.frame
        if clip.bound < math.sqrt(frame.n_items) or frame.feedback_window.ahead:
            return None  # of users whose supergradients are not clipped, and who answer at once
        k, batches = frame.slots, len(sizes)
        noise = self.total.deviation(1) if isinstance(self.total, PrivateSum) else 0.0
        steps = k / 2 * (sizes**2 / 4 + noise**2).sum()
        most = k * (sizes.max() + 2 * noise * math.sqrt(2 * math.log(2 * frame.n_items * batches)))
        rounding = k * (self.total.schedule.rounds + 2 * batches + 2) / clip.ticks
        learning = 2 * math.sqrt(2 * self.spread * steps) + 2 * max(most, self.spread)
        return float((1 - 1 / math.e) * (learning + 2 * k * noise + rounding))


def osm(
    n_items: int, slots: int, *, horizon: int, batches: int = 1000, max_rounds_per_user: int = 1,
    rng: RandomSource | None = None,
    feedback_window: Any = None,
) -> Learner:  # fmt: skip
    """OSMviaOCO without privacy: online mirror ascent on supergradients, and slates by pivotal rounding."""
    frame = Frame(
        "osm",
        n_items,
        slots,
        horizon=horizon,
        max_rounds_per_user=max_rounds_per_user,
        rng=rng,
        feedback_window=feedback_window,
    )
    schedule, clip = equal(horizon, min(batches, horizon)), Clip(bound=math.sqrt(n_items) + 1, ticks=TICKS)
    total = ExactSum(n_items, schedule=schedule, clip=clip)
    return Learner(OsmPolicy(frame, None, total, {"batches": batches}))


def osm_dp(
    n_items: int, slots: int, *, horizon: int, epsilon: float, delta: float, batches: int = 100, length: float = 1.0,
    max_rounds_per_user: int = 1, ledger: Ledger | None = None, rng: RandomSource | None = None,
    feedback_window: Any = None,
) -> Learner:  # fmt: skip
    """OSMviaOCO on noisy sums of supergradients, each clipped to `length`; one noisy sum for each batch."""
    frame = Frame(
        "osm-dp",
        n_items,
        slots,
        horizon=horizon,
        max_rounds_per_user=max_rounds_per_user,
        ledger=ledger,
        rng=rng,
        feedback_window=feedback_window,
    )
    budget = Budget(epsilon, delta, frame.unit)
    schedule, clip = equal(horizon, min(batches, horizon)), Clip(bound=length, ticks=TICKS)
    total = PrivateSum(
        n_items, schedule=schedule, cost=budget.share(), strategy="independent", clip=clip,
        ledger=Ledger(budget) if ledger is None else ledger,
    )  # fmt: skip
    return Learner(OsmPolicy(frame, budget, total, {"batches": batches, "length": length}))


register(
    Entry(
        "osm",
        osm,
        reads=Supergradients.kinds,
        private=False,
        summary="OSMviaOCO: mirror ascent on supergradients, slates by rounding; full information",
        advice=Advice("none", "√T", "sums", "a baseline of the field"),
    ),
    Entry(
        "osm-dp",
        osm_dp,
        reads=Supergradients.kinds,
        summary="OSMviaOCO on noisy sums of supergradients; full information",
        advice=Advice("(ε, δ)", "√T", "sums", "a baseline of the field, with privacy"),
    ),
)


def main(slots: int = 5, epsilons: tuple[float, ...] = (0.1, 1.0, 10.0)) -> None:
    users = dim.msweb()
    best = dim.optimum(users, slots)
    print(f"msweb: {len(users):,} users, {slots} of {users.n_items} items; share of the best slate's reward")
    for name in ("random", "hedge", "osm", "osm-dp", "private"):
        private = dim.LEARNERS[name].private if name in dim.LEARNERS else True
        for epsilon in epsilons if private else epsilons[:1]:
            setting = dim.Setting(users.n_items, slots, len(users), "full", epsilon, 1e-6)
            learner = dim.make(name, setting, rng=dim.SeededSource(1))
            earned = users.values(learner.replay(users)).mean() / best.lower
            print(f"  {name:8} {f'epsilon {epsilon:g}' if private else 'not private':14} {earned:.3f}")


if __name__ == "__main__":
    main()
