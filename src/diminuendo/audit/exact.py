r"""Exact: everything that may be seen, with its chance in both worlds, for runs so small that all of it can be listed.

A run is led through every way its secret draws may fall (taps.py), each time through the learner's own `choose` and
`observe`; the chance of each draw is read off the scores that the learner has at that moment. Public coins are held
fixed: observers know them, and the guarantee holds for all their values. Ways that look the same are added up.
Then epsilon is the smallest that is true of the two laws, with nothing left to chance (docs/maths/audit-paths.md,
Theorems W1 and W2).

For learners all of whose secrets pass through draws. Noise takes too many values; see pathwise.py.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass

import numpy as np

from diminuendo.audit.effort import Effort
from diminuendo.audit.finding import Finding, share
from diminuendo.audit.laws import OUTCOMES, listed, log_chance
from diminuendo.audit.pathwise import everything_is_watched
from diminuendo.audit.subjects import Subject, View, play, probed
from diminuendo.audit.taps import Crossing, Taps
from diminuendo.audit.worlds import (
    CROWDS,
    SILENT,
    Said,
    Script,
    again,
    crowd,
    neighbours,
    size_in_words,
    wanting,
)
from diminuendo.learners import Setting
from diminuendo.randomness.sources import SeededSource
from diminuendo.types import Floats


class NotListed(Exception):
    """There is too much that may be seen, or what is drawn takes too many values."""


@dataclass(frozen=True)
class Listing:
    """Everything that may be seen, and how likely."""

    chances: dict[bytes, float]
    runs: int


def listing(subject: Subject, setting: Setting, script: Script, seed: int, most: int) -> Listing:
    """The law of all that is seen in one world, its public coins as the seed has them; `most` runs at most."""
    chances: dict[bytes, float] = {}
    waiting: list[list[Crossing]] = [[]]
    runs = 0
    while waiting:
        led = waiting.pop()
        taps = Taps(led)
        view = play(subject, setting, script, SeededSource(seed), taps)
        runs += 1
        if runs + len(waiting) > most or any(crossing.law not in OUTCOMES for crossing in taps.crossings):
            raise NotListed
        key = _seen(view)
        chance = math.exp(math.fsum(log_chance(crossing) for crossing in taps.crossings))
        chances[key] = chances.get(key, 0.0) + chance
        for place in range(len(led), len(taps.crossings)):
            crossing = taps.crossings[place]
            for out, chance in listed(crossing):
                if chance > -math.inf and not np.array_equal(out, crossing.out):
                    waiting.append([*taps.crossings[:place], dataclasses.replace(crossing, out=out)])
    return Listing(chances, runs)


def _seen(view: View) -> bytes:
    more = repr((view.replies, view.ended)).encode()
    return view.slates.tobytes() + view.probes.tobytes() + view.propensities.tobytes() + more


def smallest_epsilon(one: dict[bytes, float], other: dict[bytes, float], delta: float) -> float:
    """The least epsilon with P(E) <= exp(epsilon) Q(E) + delta for every set E of things seen.

    Sets that matter are those of all things whose ratio is above something; for each of them epsilon is solved for.
    """
    keys = list(one)
    p: Floats = np.array([one[key] for key in keys])
    q: Floats = np.array([other.get(key, 0.0) for key in keys])
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.where(p > 0, p / q, 0.0), kind="stable")
        above = np.log((np.cumsum(p[order]) - delta) / np.cumsum(q[order]))
    return max(0.0, float(np.nanmax(above, initial=0.0)))


@dataclass(frozen=True)
class Case:
    """One setting, one crowd, one round of the target, and public randomness."""

    setting: Setting
    crowd: str
    target: int
    seed: int

    def __str__(self) -> str:
        return f"in round {self.target}; {self.crowd}; {size_in_words(self.setting)}"


SHAPES = {"quick": ((2, 1, 4), (2, 2, 2)), "full": ((2, 1, 4), (2, 2, 3), (3, 1, 3), (2, 1, 7))}
"""Items, slots and rounds of what is listed."""
RNG = {"quick": 2, "full": 3}
"""How many public coins are tried for each shape, where coins say which rounds are heard."""
LATEST_RESPONSES = 20
"""How many seeds are tried for that; with most, perhaps, no slate depends on feedback."""


def cases(
    subject: Subject, epsilon: float, delta: float, effort: Effort, seeds: np.random.Generator
) -> list[Case]:
    """The cases to list. If only some rounds are probed, the target has the first of them."""
    result = []
    for n, k, rounds in SHAPES[effort.name]:
        setting = Setting(n, k, rounds, subject.feedback, epsilon, delta)
        for around in CROWDS[:1] if effort.name == "quick" else CROWDS[:2]:
            chosen = 0
            for _ in range(LATEST_RESPONSES):
                seed = int(seeds.integers(2**32))
                probes = probed(subject, setting, seed)
                target = int(probes.argmax())
                if probes.any() and probes[target:].all() and k == 1:
                    continue  # nothing that the target moves is ever shown
                result.append(Case(setting, around, target, seed))
                chosen += 1
                if chosen == RNG[effort.name] or not probes.any():
                    break
    return result


def users(setting: Setting) -> dict[str, Said]:
    """The feedback of targets: any set of items, the first item repeatedly, or no response."""
    n, feedback = setting.n_items, setting.feedback
    result: dict[str, Said] = {"says nothing": SILENT}
    for size in range(n + 1):
        for items in itertools.combinations(range(n), size):
            result[f"wants {list(items)}"] = ((0, wanting(feedback, n, items)),)
    result["wants [0] again and again"] = again(wanting(feedback, n, (0,)))
    return result


def exact(subject: Subject, epsilon: float, delta: float, effort: Effort, seed: int) -> list[Finding]:
    """The largest epsilon over all cases and all pairs of targets; none if there is too much to list."""
    seeds = np.random.default_rng(seed)
    worst: Finding | None = None
    runs = views = 0
    for case in cases(subject, epsilon, delta, effort, seeds):
        promise = subject.promise(case.setting, case.seed)
        laws: dict[str, Listing] = {}
        others = crowd(case.setting, case.crowd, seeds)
        for name, said in users(case.setting).items():
            world = neighbours(case.setting, name, case.target, said, said, others)
            try:
                if not everything_is_watched(subject, world, case.seed):
                    return []
                laws[name] = listing(subject, case.setting, world.one, case.seed, effort.views)
            except NotListed:
                break
        else:
            runs += sum(law.runs for law in laws.values())
            views = max(views, *(len(law.chances) for law in laws.values()))
            for one, other in itertools.permutations(laws, 2):
                shown = smallest_epsilon(laws[one].chances, laws[other].chances, promise.delta)
                if worst is None or share(shown, promise.epsilon) > share(worst.shown, worst.claimed):
                    worst = Finding(
                        method="exact",
                        subject=subject.name,
                        about=f"{one}, or {other}, {case}",
                        claimed=promise.epsilon,
                        delta=promise.delta,
                        shown=shown,
                        confidence=1.0,
                        runs=0,
                        detail={"rng": case.seed},
                    )
    if worst is None or (views == 1 and worst.claimed > 0):  # nothing was drawn in so short a time
        return []
    return [dataclasses.replace(worst, runs=runs, detail=worst.detail | {"views": views})]
