"""Matrices that contradict themselves are refused before compiled code can see them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from diminuendo import FAMILIES, Concave, Coverage, NoisyOr, Oracle, Users, check
from diminuendo.errors import InvalidInput
from diminuendo.experts import Hedge
from diminuendo.objectives import Family


def in_format(rows: np.ndarray, format_: Any) -> Any:
    return sparse.csr_array(rows).asformat(format_)


def broken(format_: str) -> Any:
    matrix = in_format(np.full((2, 3), 0.5), format_)
    if format_ == "csc":
        matrix.indices = np.array([0, 1, 0, 1, 0, 10**9])
    else:
        matrix.coords[0][-1] = 10**9
    return matrix


@pytest.mark.parametrize("format_", ["csc", "coo"])
def test_rows_out_of_range(format_: str) -> None:
    with pytest.raises(InvalidInput, match="matrix"):
        Users(NoisyOr(), broken(format_))


@pytest.mark.parametrize("format_", ["csr", "csc", "coo", "lil", "dok"])
def test_every_sound_format_is_read(format_: str) -> None:
    rows = np.array([[0.5, 0, 1], [0, 0, 0.25]])
    users = Users(NoisyOr(), in_format(rows, format_))
    np.testing.assert_array_equal(users.matrices[0].toarray(), rows)


@pytest.mark.parametrize("kind", FAMILIES.values())
def test_some_users_in_a_row_are_those_users(kind: type[Family]) -> None:
    for family, n_items, matrices in kind.specimens():
        users = Users(family, matrices, n_items)
        everybody = np.arange(len(users))
        for some in (
            slice(1, 3),
            slice(None),
            slice(-1, None),
            slice(2, 1),
            slice(9, 12),
            slice(None, None, 2),
        ):
            for result, matrix in zip(users[some].matrices, users.matrices, strict=True):
                wanted = matrix[everybody[some]]
                assert result.shape == wanted.shape
                np.testing.assert_array_equal(result.toarray(), wanted.toarray())
            np.testing.assert_array_equal(users[some].click_words, users.click_words[some])


def test_arrays_that_do_not_fit_together() -> None:
    for name, short in (("data", np.array([0.5])), ("indptr", np.array([0, 4]))):
        matrix = sparse.csr_array(np.full((2, 4), 0.5))
        setattr(matrix, name, short)
        with pytest.raises(InvalidInput, match="fit together"):
            Users(NoisyOr(), matrix)


def test_shapes() -> None:
    assert len(Users(NoisyOr(), np.array([0.5, 0.1]))) == 1
    with pytest.raises(InvalidInput, match="two-dimensional"):
        Users(NoisyOr(), np.zeros((2, 2, 2)))
    wide = sparse.csr_array((1, 2**31 + 9))
    with pytest.raises(InvalidInput, match="at most"):
        Users(NoisyOr(), wide)
    with pytest.raises(InvalidInput, match="one gain per item, 4"):
        Hedge(4).learn(np.ones(500))


def test_coverage_leaves_its_incidence_alone_and_knows_its_items() -> None:
    incidence = sparse.csr_array(([1.0, 1.0, 0.0], [1, 0, 1], [0, 2, 3]), shape=(2, 3))
    before = incidence.indices.copy(), incidence.indptr.copy()
    users = Users(Coverage(incidence), [[0.5, 0.25, 0.25]])
    assert users.n_items == 2
    np.testing.assert_array_equal(incidence.indices, before[0])
    np.testing.assert_array_equal(incidence.indptr, before[1])


def test_as_many_topics_as_items_are_still_topics() -> None:
    users = Users(Coverage([[1, 0, 0], [0, 1, 0], [0, 1, 1]]), [[1.0, 0, 0]])
    with pytest.raises(InvalidInput, match="topics"):
        users.permuted(np.array([1, 2, 0]))


def test_a_scale_has_a_least_value() -> None:
    with pytest.raises(InvalidInput, match="scale"):
        Concave("sqrt", 1e-300)


def test_large_objectives_are_looked_at_whole() -> None:
    result = check(Oracle(lambda items: len(items) / 50, 100))
    assert result is not None
    assert result.rule == "range"


def test_tables_print_nothing() -> None:
    assert repr(Users(NoisyOr(), [[0.123, 0.5]]).table) == "<NoisyOrTable>"
    assert "0.123" not in repr(vars(Users(NoisyOr(), [[0.123, 0.5]])))
