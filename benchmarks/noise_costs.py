"""What noise costs for each coordinate, and how much a release costs besides its noise.

Discrete Laplace and Gaussian noise come from samplers that work bit by bit in long arithmetic; with seeded words, for
simulation, from fast ones that round. Rounded normal noise, which learners add to their sums, is exact in both cases,
and by far the dearest thing in a release: this says how dear, and that nothing else in a release has become so.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from benchmarks.report import Disagreement, Part, verdict
from benchmarks.stopwatch import Competitor, Result, race
from diminuendo import SeededCoins, SystemCoins
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import SecretRandomness, noise, rounded_normal
from diminuendo.sums.private_sum import PrivateSum
from diminuendo.sums.schedule import equal
from diminuendo.types import Ints

SAMPLERS: dict[str, Callable[[Ints, float, SecretRandomness], Ints]] = {
    "laplace": noise.laplace,
    "gaussian": noise.gaussian,
    "rounded normal": rounded_normal.rounded_normal,
}
DEVIATIONS = {"laplace": 2**0.5, "gaussian": 1.0, "rounded normal": 1.0}
"""Of noise of scale 1, where the scale is so large that whole numbers do not show."""

SCALES = (10.0, 4e7)
"""The second is what a running sum of 20 releases at rho = 0.02 adds to its encoded numbers."""

COUNTS = {1: 7, 1_000: 7, 100_000: 2}
"""How many coordinates, and laps of each."""

IN_A_LAP = 100
"""Calls for a single coordinate, which are too short to be timed one by one."""

SIZE, RELEASES, LAPS = 100_000, 20, 10
"""How long released vectors are."""

STRATEGIES = ("independent", "sqrt-toeplitz", "blt")

TARGET = 1.3

BUDGET = Budget(1.0, 1e-6, accountant="continuous-gaussian")

FAR_APART = 6.0
"""Spreads of noise that are off by more standard errors than this are a disagreement."""


def noise_costs() -> Iterator[Part]:
    """Samples by themselves; then whole releases."""
    yield _samples()
    yield _releases()


def _secrets() -> dict[str, SecretRandomness]:
    return {"secure": SecretRandomness(SystemCoins()), "seeded": SecretRandomness(SeededCoins(1))}


def _samples() -> Part:
    part = Part(
        "noise",
        "Noise on whole numbers, us per coordinate",
        ["noise", "scale", "coordinates", "secure", "seeded", "secure / seeded", "laps"],
    )
    for name, scale, count in product(SAMPLERS, SCALES, COUNTS):
        results = _sampled(name, scale, count)
        drawn = count * (IN_A_LAP if count == 1 else 1)
        secure, seeded = (1e6 * results[kind].run / drawn for kind in ("secure", "seeded"))
        part.rows.append([name, scale, count, secure, seeded, secure / seeded, COUNTS[count]])
        part.numbers[f"{name}, scale {scale:g}, {count} coordinates, us"] = secure
    part.notes.append(
        "laplace, gaussian: secure are exact; seeded, for simulation, up to the rounding of floats."
    )
    return part


def _sampled(name: str, scale: float, count: int) -> dict[str, Result]:
    values = np.zeros(count, dtype=np.int64)
    calls = range(IN_A_LAP if count == 1 else 1)

    def competitor(kind: str, secret: SecretRandomness) -> Competitor:
        return Competitor(
            kind, lambda _: values, lambda rows: [SAMPLERS[name](rows, scale, secret) for _ in calls]
        )

    results = race([competitor(*one) for one in _secrets().items()], COUNTS[count], fewest=COUNTS[count])
    for kind, result in results.items():
        check_spread(f"{kind} {name}", np.array(result.answers).ravel(), scale * DEVIATIONS[name])
    return results


def check_spread(who: str, drawn: Ints, deviation: float) -> None:
    """The mean square of noise is what it should be; its own error is at most sqrt(5 / count) of that (Laplace)."""
    ratio = float((drawn / deviation) @ (drawn / deviation)) / len(drawn)
    if len(drawn) >= 1_000 and abs(ratio - 1) > 0.01 + FAR_APART * (5 / len(drawn)) ** 0.5:
        raise Disagreement(f"{who} noise has {ratio:.4f} times the variance it should have.")


def _releases() -> Part:
    part = Part(
        "release",
        f"PrivateSum.release against its noise alone (rounded Gaussian, {RELEASES} releases), us per coordinate",
        ["strategy", "words", "kept in", "release", "noise alone", "release / noise", "laps"],
    )
    for strategy, (kind, secret) in product(STRATEGIES, _secrets().items()):
        with tempfile.TemporaryDirectory() as folder:
            results = race(list(_whole_and_alone(strategy, secret, folder)), LAPS, fewest=LAPS)
        alone = results["noise"].run
        for where in [name for name in results if name != "noise"]:
            whole = results[where].run
            us = (1e6 * seconds / SIZE for seconds in (whole, alone))
            part.rows.append([strategy, kind, where, *us, whole / alone, LAPS])
            if where == "memory":
                part.numbers[f"release / noise, {strategy}, {kind}"] = whole / alone
                claim = (
                    f"{strategy}, {kind} words: {SIZE:,} numbers cost at most {TARGET:g} times their noise"
                )
                part.notes.append(verdict(f"{claim}: {whole / alone:.3g} times", whole <= TARGET * alone))
    part.notes.append(
        "files: the release and its line in the ledger are synced to disk before anybody sees it."
    )
    return part


def _whole_and_alone(strategy: str, secret: SecretRandomness, folder: str) -> Iterator[Competitor]:
    in_memory = _sum(strategy, Ledger(BUDGET))
    yield Competitor("memory", lambda _: in_memory, lambda total: total.release(secret))
    if secret.secure:  # what is seeded has no business on disk
        in_files = _sum(strategy, Ledger.open(f"{folder}/ledger", BUDGET))
        yield Competitor("files", lambda _: in_files, lambda total: total.release(secret))
    values = np.zeros((1, SIZE), dtype=np.int64)
    yield Competitor(
        "noise", lambda _: values, lambda rows: rounded_normal.rounded_normal(rows, in_memory.scale, secret)
    )


def _sum(strategy: str, ledger: Ledger) -> PrivateSum:
    schedule = equal(rounds=30_000, batches=RELEASES)
    return PrivateSum(SIZE, schedule=schedule, cost=BUDGET.share(), ledger=ledger, strategy=strategy)
