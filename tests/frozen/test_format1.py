"""Snapshots in format 1, as version 0.1.0 wrote them, are still read, and learners go on from them as they did.

Each is of a learner after 240 of 480 rounds of the first frozen stream, five answers being out; slates.json has the
hash of what it showed afterwards with coins of another seed.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from diminuendo import LEARNERS, SeededCoins
from diminuendo.types import FEEDBACKS
from tests.frozen.record import PLACE, ROUNDS, answer, digest, machine, streams

FOLDER = Path(__file__).with_name("format1")
SHOWN: dict[str, str] = json.loads((FOLDER / "slates.json").read_text())
BEGUN, SEED = 240, 9


@pytest.mark.skipif(
    machine() != json.loads(PLACE.read_text())["machine"],
    reason="this processor rounds otherwise than the one that wrote the hashes",
)
@pytest.mark.parametrize("name", SHOWN)
def test_a_learner_goes_on_from_a_snapshot_of_an_older_format(name: str) -> None:
    snapshot = gzip.decompress((FOLDER / f"{name}.gz").read_bytes())
    learner = LEARNERS[name].restore(snapshot, coins=SeededCoins(SEED))
    feedback = next(kind for kind in FEEDBACKS if kind in learner.reads)
    people, rows = streams()["noisy-or"], []
    for t in range(BEGUN, ROUNDS):
        decision = learner.choose()
        rows.append(learner.row_of(decision))
        answer(learner, feedback, people, decision, t)
    assert digest(np.array(rows)) == SHOWN[name]


def test_every_learner_of_that_time_is_there() -> None:
    assert sorted(SHOWN) == sorted(path.stem for path in FOLDER.glob("*.gz"))
    assert set(SHOWN) <= set(LEARNERS)
