r"""How long a block is, how often each cell is probed in it, and how fast experts follow: what makes a bound least.

All of it follows from public numbers. With blocks of L rounds, B of them, m probes of each of the k N cells in a block,
a share q = k N m / L of rounds that probe, and h the weight of one block in what experts draw by, the bound is

    explore q T + (1 - relief q) weight ( k L ((log N)/h + noise(h)) + sum over b of L_b curve(h L_b/L) + rounding )

(docs/maths/blocks.md, Theorems K2 to K4). What differs between the ways to probe is a `Theorem`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from diminuendo.randomness.shares import FINE
from diminuendo.sums.schedule import Schedule
from diminuendo.types import ONE_MINUS_1_OVER_E, Floats

PAYOFF_TICKS = 1 << 12
"""Whole numbers to one unit of payoff."""
MOST_PROBES = 64
"""No cell is probed more often than this in one block."""
MOST_BLOCKS = 1 << 16
MOST_WAITING = 4
"""Blocks that wait for answers at once, about."""
ROOM = {1 << 12: 1 << 27, MOST_BLOCKS: 1 << 22}
"""Up to this number of blocks -> how many probes, all blocks together, buffered sums have room for in 64 bits."""

Noise: TypeAlias = Literal["none", "laplace", "gaussian"]


@dataclass(frozen=True)
class Theorem:
    """What is proved of one way to probe, for k slots."""

    slots: int
    explore: float
    """What a probing round loses at most, on average, of what is aimed at."""
    relief: float
    """How much of the experts' regret does not count in a probing round."""
    aim: float = ONE_MINUS_1_OVER_E
    """The share of the best slate that regret is measured to."""
    weight: float = 1.0
    """What one unit of an expert's regret costs the slate."""
    gains: bool = False
    """Whether a probe measures what an item adds, and so all slots' squares share one unit."""
    rounded: bool = True
    """Whether answers are rounded down to ticks; else they are 0 or 1."""
    most: float = 1.0
    """No larger share of rounds probes. Where more seems best the bound says nothing anyway."""

    def curve(self, rate: Floats) -> Floats:
        """What following at that rate costs all experts together, in each round of a block."""
        bounded = self.slots * rate / 8
        return np.minimum(bounded, (np.expm1(rate) - rate) / rate) if self.gains else bounded


def short(slots: int) -> Theorem:
    """Theorem K2: the slate ends with the item that is tried."""
    return Theorem(slots, ONE_MINUS_1_OVER_E - (1 - 1 / slots) ** slots, (slots + 1) / (2 * slots), most=0.5)


def full(slots: int) -> Theorem:
    """Theorem K3: the item takes one slot, and the others stay. To half of the best slate."""
    return Theorem(slots, 0.5 / slots, 1 / slots, aim=0.5, weight=0.5)


def inserted(slots: int) -> Theorem:
    """Theorem K4: the item is put in and the last one drops out; clicks."""
    explore = ONE_MINUS_1_OVER_E - (1 - (1 - 1 / slots) ** (slots - 1))
    return Theorem(slots, explore, 0.0, gains=True, rounded=False)


@dataclass(frozen=True)
class Plan:
    """What is decided before the first person comes."""

    n_items: int
    slots: int
    horizon: int
    length: int
    """Rounds in a block; the last has up to twice as many."""
    probes: int
    """How often each slot and item is probed in every block but the last."""
    rate: float
    """The weight of one block in what experts draw by."""
    noise: Noise

    @cached_property
    def schedule(self) -> Schedule:
        """Blocks of equal length; the last, which is not probed, takes what is left."""
        ends = [self.length * block for block in range(1, self.blocks)]
        return Schedule((*ends, self.horizon))

    @property
    def blocks(self) -> int:
        """The number of blocks; in the last nobody is probed, since nobody comes after it."""
        return max(1, self.horizon // self.length)

    @property
    def block_probes(self) -> int:
        """Probes in a block, of all slots and items together; in the last block nobody is probed."""
        return self.slots * self.n_items * self.probes

    @cached_property
    def contributions(self) -> Schedule:
        """When blocks close, counted in probes: a sum has to have room for that many contributions."""
        return Schedule(tuple(self.block_probes * block for block in range(1, max(2, self.blocks))))

    def probes_in(self, block: int) -> int:
        """The number of probes of a block (from 0): none in the last, after which nobody comes."""
        return self.block_probes if block < self.blocks - 1 else 0

    def bound(self, theorem: Theorem, spread: float, ticks: int) -> float:
        """On the expected regret; `spread`: the scale of Laplace noise, or the deviation of Gaussian noise at last."""
        if self.blocks == 1:
            return theorem.aim * self.horizon  # nothing is learned, nothing is proved
        if self.noise == "laplace" and self.rate * spread >= self.probes:
            return math.inf  # so fast that Lemma K5 says nothing
        rates = np.array([self.rate])
        return float(_bounds(self, theorem, rates, spread, ticks)[0])


def _bounds(plan: Plan, theorem: Theorem, rates: Floats, spread: float, ticks: int) -> Floats:
    """What `Plan.bound` would be with each of these rates."""
    n, k, rounds, length = plan.n_items, plan.slots, plan.horizon, plan.length
    logarithm, last = math.log(max(2, n)), rounds - (plan.blocks - 1) * length
    following = (plan.blocks - 1) * length * theorem.curve(rates)
    following += last * theorem.curve(rates * last / length)
    noise = _noise(plan, rates, spread / plan.probes, logarithm)
    rounding = k * rounds * (n / FINE + (1 / ticks if theorem.rounded else 0.0))
    read = 3 * k * rounds * rates / (plan.probes * ticks) if plan.noise == "gaussian" else 0.0
    experts = k * length * (logarithm / rates + noise) + following + rounding + read
    share = plan.block_probes / length
    found: Floats = theorem.explore * share * rounds + (1 - theorem.relief * share) * theorem.weight * experts
    return found


def _noise(plan: Plan, rates: Floats, spread: float, logarithm: float) -> Floats:
    """What noise costs one expert, in blocks: Lemma K5."""
    if plan.noise == "laplace":
        return np.asarray(-(plan.blocks - 1) * np.log1p(-((rates * spread) ** 2)) / rates)
    if plan.noise == "gaussian":
        steep = math.sqrt(2 * logarithm)
        return np.where(rates * spread <= steep, rates * spread**2 / 2, spread * steep - logarithm / rates)
    return np.zeros_like(rates)


def spread_ahead(noise: Noise, blocks: int, limit: float) -> float:
    """What `bound` asks for, before there is a sum: of noise with that limit on mu^2, or on epsilon."""
    if noise == "gaussian":  # the square-root strategy, which buffers follow closely
        return (math.log(max(1, blocks - 1)) / math.pi + 1.07) / math.sqrt(limit)
    return 1 / limit if noise == "laplace" else 0.0


def planned(
    theorem: Theorem, n_items: int, horizon: int, noise: Noise, limit: float, ticks: int, ahead: int = 0
) -> Plan:
    """The plan whose bound is least, of lengths a twentieth apart and probes that double.

    Where answers come late, no more than a few blocks wait for them: `ahead` rounds are chosen meanwhile.
    """
    probes = 1
    best, least = Plan(n_items, theorem.slots, horizon, horizon, 1, 1.0, noise), math.inf
    while probes <= MOST_PROBES:
        shortest = math.ceil(
            max(
                best.slots * n_items * probes / theorem.most,
                horizon / MOST_BLOCKS,
                min(ahead / MOST_WAITING, horizon / 8),
            )
        )
        for length in _lengths(shortest, horizon // 2):
            plan = replace(best, length=length, probes=probes)
            if noise == "gaussian" and not has_room(plan):
                continue
            spread = spread_ahead(noise, plan.blocks, limit)
            rates = _rates(noise, spread / probes)
            found = _bounds(plan, theorem, rates, spread, ticks)
            at = int(np.argmin(found))
            if found[at] < least:
                best, least = replace(plan, rate=float(rates[at])), float(found[at])
        probes *= 2
    return best


def _rates(noise: Noise, spread: float) -> Floats:
    """Which to try: the more noise, the slower. Laplace noise has no mean of exponentials beyond 1/spread."""
    rates = np.geomspace(1e-4, 16, 400) / (1 + spread)
    return rates[rates * spread < 0.9] if noise == "laplace" else rates


def _lengths(shortest: int, longest: int) -> list[int]:
    if shortest > longest:
        return []
    steps = math.ceil(math.log(longest / shortest) / 0.05) + 1
    lengths: list[int] = np.unique(np.geomspace(shortest, longest, steps).round().astype(int)).tolist()
    return lengths


def has_room(plan: Plan) -> bool:
    """Whether buffered sums can hold all probes of the plan."""
    most = next((room for blocks, room in ROOM.items() if plan.blocks <= blocks), 0)
    return plan.blocks * plan.block_probes <= most
