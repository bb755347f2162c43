"""Every registered learner keeps the contract of the package, which anybody can run on a learner of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from diminuendo import LEARNERS
from diminuendo.contract import CHECKS, Case, Check, cases_of
from diminuendo.contract.slates import (
    assert_replay_is_the_loop,
    check_slates_are_distinct_items_in_range,
)
from diminuendo.contract.snapshots import (
    check_a_snapshot_goes_on_as_the_learner_would,
    check_the_guarantee_can_be_read_and_written,
)
from diminuendo.learners import with_variants
from diminuendo.objectives import FAMILIES
from tests.kit.slow import is_variant

OF_VARIANTS = (
    check_slates_are_distinct_items_in_range,
    check_a_snapshot_goes_on_as_the_learner_would,
    check_the_guarantee_can_be_read_and_written,
)
"""What is checked in every run of a learner that differs from another one in constants or noise only."""


def cases() -> list[Case]:
    return [case for name in with_variants() for case in cases_of(LEARNERS[name])]


def checks() -> Iterator[pytest.ParameterSet]:
    for case in cases():
        for check in CHECKS:
            quick = check in OF_VARIANTS or not is_variant(case.kind.name)
            marks = [] if quick else [pytest.mark.slow]
            yield pytest.param(case, check, id=f"{case}-{check.__name__}", marks=marks)


@pytest.mark.parametrize(("case", "check"), list(checks()))
def test_learner(case: Case, check: Check) -> None:
    check(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", cases(), ids=repr)
def test_replay_is_the_loop_for_every_family(case: Case) -> None:
    assert_replay_is_the_loop(case, *FAMILIES)


def test_every_learner_is_a_case_and_has_its_own_name() -> None:
    assert {case.kind.name for case in cases()} == set(with_variants())
    assert all(LEARNERS[name].name == name and LEARNERS[name].summary for name in with_variants())
