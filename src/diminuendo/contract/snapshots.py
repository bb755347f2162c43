"""What a snapshot holds, what it must not hold, and what else is promised and printed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from diminuendo import _snapshots
from diminuendo.contract.case import N_ITEMS, SLOTS, USERS, Case, raises
from diminuendo.errors import InvalidInput
from diminuendo.learners import LEARNERS, Setting
from diminuendo.learners.base.menu import OneSlate
from diminuendo.randomness import SeededSource, SystemSource


def check_a_snapshot_goes_on_as_the_learner_would(case: Case) -> None:
    """What is restored twice goes on twice alike, and holds what the learner holds."""
    learner = case.trained()
    waiting = learner.choose()  # out when the snapshot is taken, answered afterwards
    twins = [case.kind.restore(learner.snapshot(), rng=SeededSource(9)) for _ in range(2)]
    for each in (learner, *twins):
        each.observe(waiting, case.answer(waiting, 7))
    assert twins[0].snapshot() == twins[1].snapshot() == learner.snapshot()
    np.testing.assert_array_equal(twins[0].replay(USERS), twins[1].replay(USERS))
    assert twins[0].snapshot() == twins[1].snapshot()


def check_an_altered_snapshot_is_refused(case: Case) -> None:
    """Refused are changed bytes, arrays that the configuration does not ask for, and snapshots of other learners."""
    good = case.trained().snapshot()
    spec, arrays = _snapshots.unsealed(good, "a snapshot of a learner")
    rows = arrays["decisions.rows"]
    others: list[dict[str, Any]] = [
        {"decisions.rows": rows.astype(np.float64)}, {"decisions.rows": rows[:-1]}, {"decisions.more": rows},
    ]  # fmt: skip
    hurt = [b"", b"nonsense", good[:-40], good[: len(good) // 2]]
    hurt += [_snapshots.sealed(spec, arrays | other) for other in others]
    hurt.append(_snapshots.sealed(spec, {name: arrays[name] for name in arrays if name != "decisions.rows"}))
    hurt.append(_snapshots.sealed(spec | {"config": spec["config"] | {"colour": "blue"}}, arrays))
    for place in (0, _snapshots.HEAD - 2, _snapshots.HEAD, len(good) // 2, len(good) - 1):
        hurt.append(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
    for snapshot in hurt:
        with raises(InvalidInput, match="snapshot"):
            case.kind.restore(snapshot)
    for other_kind in LEARNERS.values():
        if other_kind is not case.kind:
            with raises(InvalidInput, match=case.kind.name.partition(":")[0]):
                other_kind.restore(good)


def check_no_rng_in_a_snapshot(case: Case) -> None:
    """A snapshot is the same whatever the randomness."""
    one = case.fresh(seed=1)
    other = case.kind(**one._config(), rng=SeededSource(2))
    assert one.snapshot() == other.snapshot()
    one._frame.public.refill()
    one._frame.secret.refill()
    assert one.snapshot() == other.snapshot()


def check_default_rng_is_the_system_source(case: Case) -> None:
    """Randomness is secure unless a seed is given, and the guarantee says which."""
    learner = case.made(Setting(N_ITEMS, SLOTS, 100, case.feedback))
    assert isinstance(learner.rng, SystemSource)
    assert learner.guarantee.secure_rng
    assert not case.fresh().guarantee.secure_rng
    if not isinstance(learner.menu, OneSlate):
        assert len({tuple(learner.choose().slate) for _ in range(40)}) > 1


def check_the_guarantee_can_be_read_and_written(case: Case) -> None:
    """The guarantee can be printed and written as JSON."""
    guarantee = case.fresh().guarantee
    assert json.loads(json.dumps(guarantee.as_json(), allow_nan=False))["neighbours"] == "replace one round"
    assert str(guarantee)


def check_printing_reveals_nothing_learned(case: Case) -> None:
    """What is printed does not depend on users."""
    learner, other = case.fresh(), case.fresh()
    learner.replay(USERS)
    other.replay(USERS.permuted(np.arange(N_ITEMS)[::-1]))
    assert repr(learner) == repr(other)
