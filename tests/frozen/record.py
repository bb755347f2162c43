"""What a learner did on a small stream, as hashes: for files that say what it must go on doing.

Every registered learner plays the same people twice over, with seeded coins: half of them replayed, half one by one,
with answers that come late and some that never come. What it showed, with what propensities, what a snapshot of it
holds and what its ledger says are hashed one by one, so that a change says where it is.

`python -m tests.frozen.record` prints what is now; with `--write` that becomes what must be.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
import warnings
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from diminuendo import FAMILIES, LEARNERS, Learner, People, SeededCoins, Setting
from diminuendo._snapshots import HEAD
from diminuendo.errors import OutOfRange
from diminuendo.learners import OverlapGreedy, with_variants
from diminuendo.privacy import Budget, Ledger, Unit
from diminuendo.randomness import Coins
from diminuendo.streams import taste_groups
from diminuendo.types import Decision, FeedbackKind

Accounting: TypeAlias = Literal["zcdp", "pure", "continuous-gaussian"]
PLACE = Path(__file__).with_name("hashes.json")
N_ITEMS, SLOTS, ROUNDS, SEED = 12, 3, 480, 7
ACCOUNTANTS: dict[str, Accounting] = dict.fromkeys(
    ("overlap-greedy",),
    "continuous-gaussian",
)
"""Who adds Gaussian noise; all others draw, or add Laplace noise."""
LATE = 5
"""So many rounds after a decision its answer comes."""


def streams() -> dict[str, People]:
    """The plainest family, and one whose people hold several numbers."""
    specimen, n_items, matrices = next(iter(FAMILIES["coverage"].specimens()))
    several = tuple(np.tile(np.asarray(matrix), (ROUNDS, 1))[:ROUNDS] for matrix in matrices)
    return {
        "noisy-or": taste_groups(ROUNDS, N_ITEMS, groups=4, items_per_group=5, seed=1),
        "coverage": People(specimen, several, n_items),
    }


def machine() -> str:
    """Arithmetic that may differ in its last bits between processors; where it does, other numbers come out."""
    numbers = np.geomspace(1e-3, 30, 1001)
    parts = (np.exp(-numbers), np.log(numbers), np.log1p(numbers), np.cumsum(numbers))
    sums = [float(part.sum()) for part in parts] + [float(part @ numbers) for part in parts]
    return digest(*parts, np.array(sums))


def digest(*parts: Any) -> str:
    """Of arrays with their kinds and shapes, and of bytes."""
    result = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            result.update(f"{part.dtype.str}{part.shape}".encode())
            part = np.ascontiguousarray(part).tobytes()
        result.update(part)
    return result.hexdigest()[:16]


def played(name: str, feedback: FeedbackKind, people: People, *, visits: int = 1) -> dict[str, str]:
    """The hashes of one learner on one stream."""
    setting = Setting(people.n_items, min(SLOTS, people.n_items - 1), ROUNDS, feedback, visits=visits)
    ledger = ledger_for(name, setting)
    more: dict[str, Any] = {} if ledger is None else {"ledger": ledger}
    result = seen(made(name, setting, **more), feedback, people, visits)
    if ledger is not None:
        lines = [json.dumps(entry.body()) for part in ("charges", "drawn") for entry in getattr(ledger, part)]
        result["ledger"] = digest("\n".join(lines).encode())
    return result


def ledger_for(name: str, setting: Setting) -> Ledger | None:
    """A ledger that such a learner can be paid for on, if it promises anything."""
    guarantee = made(name, setting).guarantee
    if not 0 < guarantee.epsilon < np.inf:
        return None
    accountant: Accounting = "pure" if guarantee.delta == 0 else ACCOUNTANTS.get(name, "zcdp")
    return Ledger(Budget(50.0, guarantee.delta, Unit(setting.visits), accountant))


def made(name: str, setting: Setting, coins: Coins | None = None, **more: Any) -> Learner:
    """A learner, with seeded coins unless others are given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfRange)  # the paper's constants for so few rounds
        return LEARNERS[name].for_setting(setting, coins=coins or SeededCoins(SEED), **more)


def seen(learner: Learner, feedback: FeedbackKind, people: People, visits: int = 1) -> dict[str, str]:
    """The hashes of what it shows and keeps."""
    half = ROUNDS // 2
    persons = [f"p{t % (ROUNDS // 4)}" for t in range(ROUNDS)] if visits > 1 else None
    first = learner.replay(people[:half], persons=None if persons is None else persons[:half])
    out: list[tuple[Decision, int]] = []
    slates, chances = [], []
    for t in range(half, ROUNDS):
        decision = learner.choose(None if persons is None else persons[t])
        slates.append(learner.row_of(decision))
        chances.append(np.nan if decision.propensity is None else decision.propensity)
        out.append((decision, t))
        if len(out) > LATE:
            answer(learner, feedback, people, *out.pop(0))
    return {
        "slates": digest(first, np.array(slates)),
        "propensities": digest(np.array(chances)),
        "snapshot": _contents(learner.snapshot()),
    }


def answer(learner: Learner, feedback: FeedbackKind, people: People, decision: Decision, t: int) -> None:
    if t % 7 == 0:  # never comes
        return
    if feedback == "click":
        learner.observe(decision, people.click(t, decision.slate))
    else:
        learner.observe(decision, people[t] if feedback == "full" else people[t].value(decision.slate))


def _contents(snapshot: bytes) -> str:
    file = io.BytesIO(snapshot)
    file.seek(HEAD)
    with np.load(file) as held:
        names = sorted(held.files)
        return digest(*[part for name in names for part in (name.encode(), held[name])])


def everything() -> dict[str, dict[str, str]]:
    """All learners on all streams; those that promise something also for people who come back."""
    result: dict[str, dict[str, str]] = {}
    for family, people in streams().items():
        for name, feedback in cases():
            result[f"{name} {feedback} {family}"] = first = played(name, feedback, people)
            if "ledger" in first and family == "noisy-or":
                result[f"{name} {feedback} visits"] = played(name, feedback, people, visits=3)
    for horizon in (ROUNDS, None):
        name = f"overlap-greedy items that come and go, horizon {horizon}"
        result[name] = catalogue_that_changes(horizon)
    return result


def catalogue_that_changes(horizon: int | None) -> dict[str, str]:
    """Overlap greedy with a prior, whose items come and go, for a horizon that may be unknown."""
    people, numbers = streams()["noisy-or"], np.arange(N_ITEMS)
    eligible = [numbers % 3 != slot for slot in range(SLOTS)]
    learner: Any = OverlapGreedy(
        N_ITEMS, SLOTS, horizon=horizon, epsilon=4.0, delta=1e-6, prior=(numbers + 1) / 20, prior_people=9,
        absent=[2], eligible=eligible, coins=SeededCoins(SEED),
    )  # fmt: skip
    slates = [learner.replay(people[:200])]
    learner.appear([2])
    slates.append(learner.replay(people[200:300]))
    learner.retire([3])
    slates.append(learner.replay(people[300:]))
    return {"slates": digest(*slates), "snapshot": _contents(learner.snapshot())}


def cases() -> list[tuple[str, FeedbackKind]]:
    """Every registered learner and variant with everything that it reads."""
    return [(name, feedback) for name in with_variants() for feedback in sorted(LEARNERS[name].reads)]


if __name__ == "__main__":
    table = {"machine": machine(), "hashes": everything()}
    text = json.dumps(table, indent=1)
    if "--write" in sys.argv[1:]:
        PLACE.write_text(text + "\n")
    print(text)
