"""What a learner did on a small stream, as hashes: for files that say what it must go on doing.

Every registered learner plays the same users twice over, with seeded coins: half of them replayed, half one by one,
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

from diminuendo import FAMILIES, LEARNERS, Learner, SeededSource, Setting, Users
from diminuendo._snapshots import HEAD
from diminuendo.errors import OutOfRange
from diminuendo.learners import OverlapGreedy, with_variants
from diminuendo.privacy import Budget, Ledger, Unit
from diminuendo.randomness import RandomSource
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
DELAY = 5
"""So many rounds after a decision its answer comes."""


def streams() -> dict[str, Users]:
    """The plainest family, and one whose users hold several numbers."""
    specimen, n_items, matrices = next(iter(FAMILIES["coverage"].specimens()))
    several = tuple(np.tile(np.asarray(matrix), (ROUNDS, 1))[:ROUNDS] for matrix in matrices)
    return {
        "noisy-or": taste_groups(ROUNDS, N_ITEMS, groups=4, items_per_group=5, seed=1),
        "coverage": Users(specimen, several, n_items),
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


def played(
    name: str, feedback: FeedbackKind, users: Users, *, max_rounds_per_user: int = 1
) -> dict[str, str]:
    """The hashes of one learner on one stream."""
    setting = Setting(
        users.n_items,
        min(SLOTS, users.n_items - 1),
        ROUNDS,
        feedback,
        max_rounds_per_user=max_rounds_per_user,
    )
    ledger = ledger_for(name, setting)
    more: dict[str, Any] = {} if ledger is None else {"ledger": ledger}
    result = seen(made(name, setting, **more), feedback, users, max_rounds_per_user)
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
    return Ledger(Budget(50.0, guarantee.delta, Unit(setting.max_rounds_per_user), accountant))


def made(name: str, setting: Setting, rng: RandomSource | None = None, **more: Any) -> Learner:
    """A learner, with seeded coins unless others are given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfRange)  # the paper's constants for so few rounds
        return LEARNERS[name].for_setting(setting, rng=rng or SeededSource(SEED), **more)


def seen(
    learner: Learner, feedback: FeedbackKind, users: Users, max_rounds_per_user: int = 1
) -> dict[str, str]:
    """The hashes of what it shows and keeps."""
    half = ROUNDS // 2
    user_ids = [f"p{t % (ROUNDS // 4)}" for t in range(ROUNDS)] if max_rounds_per_user > 1 else None
    first = learner.replay(users[:half], user_ids=None if user_ids is None else user_ids[:half])
    out: list[tuple[Decision, int]] = []
    slates, chances = [], []
    for t in range(half, ROUNDS):
        decision = learner.choose(None if user_ids is None else user_ids[t])
        slates.append(learner.row_of(decision))
        chances.append(np.nan if decision.propensity is None else decision.propensity)
        out.append((decision, t))
        if len(out) > DELAY:
            answer(learner, feedback, users, *out.pop(0))
    return {
        "slates": digest(first, np.array(slates)),
        "propensities": digest(np.array(chances)),
        "snapshot": _contents(learner.snapshot()),
    }


def answer(learner: Learner, feedback: FeedbackKind, users: Users, decision: Decision, t: int) -> None:
    if t % 7 == 0:  # never comes
        return
    if feedback == "click":
        learner.observe(decision, users.click(t, decision.slate))
    else:
        learner.observe(decision, users[t] if feedback == "full" else users[t].value(decision.slate))


def _contents(snapshot: bytes) -> str:
    file = io.BytesIO(snapshot)
    file.seek(HEAD)
    with np.load(file) as held:
        names = sorted(held.files)
        return digest(*[part for name in names for part in (name.encode(), held[name])])


def everything() -> dict[str, dict[str, str]]:
    """All learners on all streams; those that promise something also for users who come back."""
    result: dict[str, dict[str, str]] = {}
    for family, users in streams().items():
        for name, feedback in cases():
            result[f"{name} {feedback} {family}"] = first = played(name, feedback, users)
            if "ledger" in first and family == "noisy-or":
                result[f"{name} {feedback} visits"] = played(name, feedback, users, max_rounds_per_user=3)
    for horizon in (ROUNDS, None):
        name = f"overlap-greedy items that come and go, horizon {horizon}"
        result[name] = catalogue_that_changes(horizon)
    return result


def catalogue_that_changes(horizon: int | None) -> dict[str, str]:
    """Overlap greedy with a prior, whose items come and go, for a horizon that may be unknown."""
    users, numbers = streams()["noisy-or"], np.arange(N_ITEMS)
    eligible = [numbers % 3 != slot for slot in range(SLOTS)]
    learner: Any = OverlapGreedy(
        N_ITEMS, SLOTS, horizon=horizon, epsilon=4.0, delta=1e-6, prior=(numbers + 1) / 20, prior_users=9,
        absent=[2], eligible=eligible, rng=SeededSource(SEED),
    )  # fmt: skip
    slates = [learner.replay(users[:200])]
    learner.appear([2])
    slates.append(learner.replay(users[200:300]))
    learner.retire([3])
    slates.append(learner.replay(users[300:]))
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
