"""Every registered learner still does what it did: the same slates, propensities, snapshots and ledger lines.

A change of these hashes is a change of behaviour: it is explained in the commit, and written down with
`python -m tests.frozen.record --write`.
"""

from __future__ import annotations

import json

import pytest

from tests.frozen.record import PLACE, everything, machine

WRITTEN = json.loads(PLACE.read_text())


@pytest.mark.skipif(
    machine() != WRITTEN["machine"],
    reason="this processor rounds otherwise than the one that wrote the hashes",
)
def test_every_learner_does_what_it_did() -> None:
    now, then = everything(), WRITTEN["hashes"]
    assert sorted(now) == sorted(then)
    changed = [
        f"{case}: {part}" for case in then for part in then[case] if now[case].get(part) != then[case][part]
    ]
    assert not changed
    assert now == then
