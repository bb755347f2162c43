"""Planted faults: each is found in quick mode, and the same learner without it is cleared."""

from __future__ import annotations

import math
from contextlib import nullcontext

import pytest

from diminuendo.audit.effort import EFFORTS
from diminuendo.audit.exact import exact
from diminuendo.audit.pathwise import pathwise
from tests.audit.faults import FAULTS, PLANTED
from tests.kit.slow import mostly_slow

QUICK = EFFORTS["quick"]
MENDED = {name: fault.subject(name, broken=False) for name, fault in PLANTED.items()}
"""These learners with nothing wrong; an audit may accuse none of them."""
LISTED = (
    "exploration decided by data (bandit-dp)",
    "duplicates counted (fi-dp)",
)
"""Faults that exact audits find too. All others need more rounds than can be listed, or have noise."""


def test_the_table_is_whole() -> None:
    assert FAULTS.keys() == MENDED.keys()
    assert all(FAULTS[name].name == name for name in FAULTS)
    named = (
        *("noise halved", "left out", "used again", "exploration", "redraw", "duplicates", "batch closed"),
        *("public coins", "propensity", "scale", "refusal", "counted again"),
        *("from what users said", "rising weights", "under one number"),
        *("two chains", "exact counts", "closed on one value", "only cells", "in the old cell"),
        *("backfill", "refunded"),
        *("coin", "reservoir", "how many answered", "still asked"),
    )
    assert all(any(what in name for name in FAULTS) for what in named)


SAID_ALREADY = (
    "noise halved (slate-totals)",
    "rate doubled (bandit-dp)",
    "noise halved (boosted)",
    "noise used again (boosted)",
    "last of a batch counted again (boosted)",
    "batch closed on answers (boosted)",
    "duplicates counted (fi-dp)",
    "batch closed on one value (overlap-greedy)",
    "only cells with users (overlap-greedy)",
    "moved and still in the old cell (overlap-greedy)",
    "types from what users said (overlap-greedy)",
    "rising weights without a bound (overlap-greedy)",
    "weights from what users said (overlap-greedy)",
    "an around and a chain under one number (overlap-greedy)",
    "two chains (overlap-greedy)",
    "backfill by public coins (overlap-greedy)",
    "slates decided by data (slate-totals)",
    "duplicates counted (slate-clicks)",
    "answers counted twice (fi-dp)",
    "secret words in part used again (overlap-greedy)",
    "a reservoir of answers (overlap-greedy)",
    "forgotten by how many answered (overlap-greedy)",
)
"""Faults that show as another one does, in another learner or in another place of the same sums: found in the slow
run."""


@pytest.mark.parametrize("name", mostly_slow(FAULTS, FAULTS.keys() - SAID_ALREADY))
def test_a_planted_fault_is_found(name: str) -> None:
    (result,) = pathwise(FAULTS[name], 1.0, 1e-6, QUICK, 11)
    assert result.violation, str(result)
    told_bare = (
        *("decided", "closed", "used again", "public coins", "tells", "from what users said"),
        *("exact counts", "only cells", "refunded", "by how many answered"),
    )
    by_data = any(what in name for what in told_bare)
    assert math.isinf(result.shown) == by_data, "what is decided by data is seen bare"


AROUND = [name for name, fault in PLANTED.items() if fault.around is not nullcontext or "slate-" in name]
"""Faults outside of a learner, or around slates that are counted: mended, there is little left but a shipped one."""
FIRST = {name.partition("(")[2]: name for name in reversed(MENDED) if name not in AROUND}
"""One fault for each learner that has some inside: mended, they are all the same. Shipped, they are audited in
test_audit.py; so every run has one that adds noise, and one that draws."""


@pytest.mark.parametrize("name", mostly_slow(MENDED, [FIRST["overlap-greedy)"], FIRST["fi-dp)"]]))
def test_without_the_fault_it_is_cleared(name: str) -> None:
    (result,) = pathwise(MENDED[name], 1.0, 1e-6, QUICK, 11)
    assert not result.violation, str(result)
    # A lower confidence bound: above 0 only if what was shown depends on the user that is attacked.
    assert result.shown > 0, "and not because nothing was tried"


@pytest.mark.parametrize("name", LISTED)
def test_some_faults_are_found_with_certainty(name: str) -> None:
    (result,) = exact(FAULTS[name], 1.0, 1e-6, QUICK, 11)
    assert result.violation, str(result)
    assert result.confidence == 1.0
    (result,) = exact(MENDED[name], 1.0, 1e-6, QUICK, 11)
    assert not result.violation, str(result)
