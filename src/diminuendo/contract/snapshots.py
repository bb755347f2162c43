"""What a snapshot holds, what it must not hold, and what else is promised and printed."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from diminuendo.contract.case import N_ITEMS, PEOPLE, SLOTS, Case, raises
from diminuendo.errors import InvalidInput
from diminuendo.learners import LEARNERS, Setting
from diminuendo.learners.base.menu import OneSlate
from diminuendo.randomness import SeededCoins, SystemCoins


def check_a_snapshot_goes_on_as_the_learner_would(case: Case) -> None:
    """What is restored twice goes on twice alike, and holds what the learner holds."""
    learner = case.trained()
    waiting = learner.choose()  # out when the snapshot is taken, answered afterwards
    twins = [case.kind.restore(learner.snapshot(), coins=SeededCoins(9)) for _ in range(2)]
    for each in (learner, *twins):
        each.observe(waiting, case.answer(waiting, 7))
    assert twins[0].snapshot() == twins[1].snapshot() == learner.snapshot()
    np.testing.assert_array_equal(twins[0].replay(PEOPLE), twins[1].replay(PEOPLE))
    assert twins[0].snapshot() == twins[1].snapshot()


def check_an_altered_snapshot_is_refused(case: Case) -> None:
    """Compiled code does not check its indices, so what could lead it astray must not come in; nor what is no number.

    How large a published number is, is no reason to refuse it: that depends on epsilon and on how many answer.
    """
    good = case.trained().snapshot()
    with np.load(io.BytesIO(good)) as held:
        arrays = {name: held[name] for name in held.files}

    def altered(name: str, value: float, dtype: Any = None) -> bytes:
        changed = {key: array.copy() for key, array in arrays.items()}
        changed[name] = changed[name].astype(dtype or changed[name].dtype)
        if changed[name].size:
            small = np.issubdtype(changed[name].dtype, np.signedinteger)  # and may not hold the value
            changed[name][...] = max(value, np.iinfo(changed[name].dtype).min) if small else value
        out = io.BytesIO()
        np.savez(out, **changed)
        return out.getvalue()

    hurt = [altered(name, 10**9) for name in ("decisions.rows", "decisions.probes")] + [
        altered("decisions.issued", -5)
    ]
    for name, array in arrays.items():
        if name.startswith("state"):
            hurt.append(altered(name, -np.inf if array.dtype.kind == "f" else -(10**9)))
            hurt += [altered(name, np.nan)] if array.dtype.kind == "f" else []
    hurt += [altered("decisions.rows", 0, np.float64)]
    header = json.loads(arrays["header"].tobytes())
    header["config"]["colour"] = "blue"
    hurt.append(good.replace(arrays["header"].tobytes(), b"{}"))
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    hurt.append(altered("decisions.waiting", False))
    for bytes_ in hurt:
        with raises(InvalidInput, match="snapshot"):
            case.kind.restore(bytes_)


def check_no_coins_in_a_snapshot(case: Case) -> None:
    """A snapshot is the same whatever the coins."""
    one = case.fresh(seed=1)
    other = case.kind(**one._config(), coins=SeededCoins(2))
    assert one.snapshot() == other.snapshot()
    one._frame.public.refill()
    one._frame.secret.refill()
    assert one.snapshot() == other.snapshot()


def check_broken_snapshots_are_refused(case: Case) -> None:
    """What is no snapshot, or one of another learner, is refused."""
    good = case.trained().snapshot()
    for bad in (b"", b"nonsense", good[:-40], good[: len(good) // 2]):
        with raises(InvalidInput, match="snapshot"):
            case.kind.restore(bad)
    for other in LEARNERS.values():
        if other is not case.kind:
            with raises(InvalidInput, match=case.kind.name):
                other.restore(good)


def check_coins_are_the_systems_unless_asked(case: Case) -> None:
    """Coins are secure unless a seed is given, and the guarantee says which."""
    learner = case.made(Setting(N_ITEMS, SLOTS, 100, case.feedback))
    assert isinstance(learner.coins, SystemCoins)
    assert learner.guarantee.secure_coins
    assert not case.fresh().guarantee.secure_coins
    if not isinstance(learner.menu, OneSlate):
        assert len({tuple(learner.choose().slate) for _ in range(40)}) > 1


def check_the_guarantee_can_be_read_and_written(case: Case) -> None:
    """The guarantee can be printed and written as JSON."""
    guarantee = case.fresh().guarantee
    assert json.loads(json.dumps(guarantee.as_json(), allow_nan=False))["neighbours"] == "replace one round"
    assert str(guarantee)


def check_printing_reveals_nothing_learned(case: Case) -> None:
    """What is printed does not depend on people."""
    learner, other = case.fresh(), case.fresh()
    learner.replay(PEOPLE)
    other.replay(PEOPLE.permuted(np.arange(N_ITEMS)[::-1]))
    assert repr(learner) == repr(other)
