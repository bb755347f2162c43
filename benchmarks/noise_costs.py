"""What noise costs for each coordinate, and how much a release costs besides its noise.

Exact samplers work bit by bit in long arithmetic, so that noise is by far the dearest thing in a release; this
says how dear, and that nothing else in a release has become so. The seeded samplers, which round, are what
simulations pay.
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
from diminuendo.privacy.events import Gaussian
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import SecretRandomness, noise
from diminuendo.sums.private_sum import PrivateSum
from diminuendo.sums.schedule import equal
from diminuendo.types import Ints

SAMPLERS: dict[str, Callable[[Ints, float, SecretRandomness], Ints]] = {
    "laplace": noise.laplace,
    "gaussian": noise.gaussian,
}
DEVIATIONS = {"laplace": 2**0.5, "gaussian": 1.0}
"""Of noise of scale 1, where the scale is so large that whole numbers do not show."""

SCALES = (10.0, 4e7)
"""The second is what a running sum of 20 releases at rho = 0.02 adds to its encoded numbers."""

COUNTS = {1: 7, 1_000: 7, 100_000: 2}
"""How many coordinates, and laps of each."""

IN_A_LAP = 100
"""Calls for a single coordinate, which are too short to be timed one by one."""

SIZES = {10_000: 7, 100_000: 2}
"""How long released vectors are, and laps of each; seeded ones, which take a hundredth, all have SEEDED_LAPS."""
SEEDED_LAPS = 15

BUDGET = Budget(1.0, 1e-6)

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
        "secure: OpenDP's samplers, exact; seeded: for simulation, up to the rounding of floats."
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
        "PrivateSum.release against its noise alone (Gaussian, square-root strategy, 20 releases), us per coordinate",
        ["coordinates", "words", "kept in", "release", "noise alone", "release / noise", "laps"],
    )
    for size in SIZES:
        took: dict[tuple[str, str], float] = {}
        for kind, secret in _secrets().items():
            laps = SIZES[size] if kind == "secure" else SEEDED_LAPS
            with tempfile.TemporaryDirectory() as folder:
                results = race(list(_whole_and_alone(size, secret, folder)), laps, fewest=laps)
            took |= {(kind, where): 1e6 * result.run / size for where, result in results.items()}
            alone = took[kind, "noise"]
            for where in [name for name in results if name != "noise"]:
                whole = took[kind, where]
                part.rows.append([size, kind, where, whole, alone, whole / alone, laps])
        _besides(part, size, took)
    part.notes.append(
        "files: the release and its line in the ledger are synced to disk before anybody sees it."
    )
    return part


def _besides(part: Part, size: int, took: dict[tuple[str, str], float]) -> None:
    """What a release does besides noise is lost in the variation of secure noise, but shows with seeded noise."""
    rest = max(0.0, took["seeded", "memory"] - took["seeded", "noise"])
    ratio = 1 + rest / took["secure", "noise"]
    part.numbers |= {f"besides noise, {size}, us": rest, f"release / noise, {size}, secure": ratio}
    part.notes.append(
        verdict(
            f"{size:,} coordinates: everything besides noise takes {rest:.3g} us each, measured with seeded noise; "
            f"so a secure release costs at most 1.05 times its noise: {ratio:.4g} times",
            ratio <= 1.05,
        )
    )


def _whole_and_alone(size: int, secret: SecretRandomness, folder: str) -> Iterator[Competitor]:
    in_memory = _sum(size, Ledger(BUDGET))
    yield Competitor("memory", lambda _: in_memory, lambda total: total.release(secret))
    if secret.secure:  # what is seeded has no business on disk
        in_files = _sum(size, Ledger.open(f"{folder}/ledger", BUDGET))
        yield Competitor("files", lambda _: in_files, lambda total: total.release(secret))
    values = np.zeros((1, size), dtype=np.int64)
    yield Competitor("noise", lambda _: values, lambda rows: noise.gaussian(rows, in_memory.scale, secret))


def _sum(size: int, ledger: Ledger) -> PrivateSum:
    return PrivateSum(size, schedule=equal(rounds=30_000, batches=20), cost=Gaussian(0.02), ledger=ledger)
