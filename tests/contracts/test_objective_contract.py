"""Every registered family of objectives keeps the contract of objectives/family.py."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from diminuendo import Users, check
from diminuendo.errors import InvalidInput
from diminuendo.objectives import FAMILIES, Family
from diminuendo.objectives.family import new_gain_buffer
from diminuendo.offline.total import UsersTotal

Specimen = tuple[Family, int, tuple[Any, ...]]
SPECIMENS = [specimen for family in FAMILIES.values() for specimen in family.specimens()]
HOSTILE = (1.3, -0.25, np.nan, np.inf, -np.inf, 1e300)


def users_of(specimen: Specimen) -> Users:
    family, n_items, matrices = specimen
    return Users(family, tuple(matrices), n_items)


def check_promises_are_kept(specimen: Specimen) -> None:
    for user in users_of(specimen):
        assert check(user) is None


def check_state_does_not_depend_on_order(specimen: Specimen) -> None:
    users = users_of(specimen)
    for slate in itertools.permutations(range(users.n_items), 3):
        np.testing.assert_allclose(users.values(slate), users.values(sorted(slate)), rtol=0, atol=1e-15)


def check_someone_wants_nothing(specimen: Specimen) -> None:
    users = users_of(specimen)
    empty = [t for t in range(len(users)) if all(matrix[[t]].nnz == 0 for matrix in users.matrices)]
    assert empty, "each specimen has a user who wants nothing"
    assert users[empty[0]].value(range(users.n_items)) == 0


def check_hostile_values_are_refused_with_row_and_value(specimen: Specimen) -> None:
    family, n_items, matrices = specimen
    for leaf, value in itertools.product(range(len(matrices)), HOSTILE):
        hurt = [sparse.csr_array(np.asarray(matrix, dtype=float)) for matrix in matrices]
        hurt[leaf].data[-1] = value
        row = int(np.searchsorted(hurt[leaf].indptr, hurt[leaf].nnz - 1, side="right")) - 1
        with pytest.raises(InvalidInput, match=rf"Row {row}, .*\[0, 1\]"):
            Users(family, tuple(hurt), n_items)


def check_bad_columns_are_refused(specimen: Specimen) -> None:
    family, n_items, _ = specimen
    width = family.columns(n_items)[0]
    for columns, rule in (
        ([1, 0], "sorted"),
        ([1, 1], "distinct"),
        ([0, width], "from 0 to"),
        ([-1, 0], "from 0 to"),
    ):
        hurt = sparse.csr_array((2, width))
        hurt.indptr, hurt.indices, hurt.data = np.array([0, 0, 2]), np.array(columns), np.array([0.1, 0.1])
        others = tuple(sparse.csr_array((2, w)) for w in family.columns(n_items)[1:])
        with pytest.raises(InvalidInput, match=f"Row 1.*{rule}"):
            Users(family, (hurt, *others), n_items)


def check_matrices_come_back(specimen: Specimen) -> None:
    _, _, matrices = specimen
    for given, kept in zip(matrices, users_of(specimen).matrices, strict=True):
        np.testing.assert_array_equal(np.asarray(given, dtype=float), kept.toarray())


def check_tables_are_frozen(specimen: Specimen) -> None:
    for matrix in users_of(specimen).matrices:
        with pytest.raises(ValueError, match="read-only"):
            matrix.data[...] = 0.5


def check_the_bag_is_left_clean(specimen: Specimen) -> None:
    users = users_of(specimen)
    total = UsersTotal(users)
    total.gains()
    assert (total._buffer.slot == -1).all()
    assert len(total._buffer.items) == len(new_gain_buffer(users.n_items, users.family.leaves).items)


def check_what_is_printed_does_not_depend_on_users(specimen: Specimen) -> None:
    family, n_items, matrices = specimen
    others = Users(family, tuple(np.asarray(matrix) / 2 for matrix in matrices), n_items)
    users = users_of(specimen)
    assert (repr(users), repr(users[0])) == (repr(others), repr(others[0]))


CHECKS = [thing for name, thing in sorted(globals().items()) if name.startswith("check_")]


@pytest.mark.parametrize("check_", CHECKS, ids=lambda check_: check_.__name__)
@pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda s: repr(s[0])[:40])
def test_family(specimen: Specimen, check_: Callable[[Specimen], None]) -> None:
    check_(specimen)


def test_every_family_has_specimens_and_its_own_name() -> None:
    assert {specimen[0].name for specimen in SPECIMENS} == set(FAMILIES)
    assert all(family.name == name for name, family in FAMILIES.items())
