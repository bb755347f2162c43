"""Every stream source gives users who can be counted, asked and walked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import sparse

from diminuendo import Functions, NoisyOr, Users, check, from_places, grid, read, user
from diminuendo.streams import BUILTIN, Stream, adversary, drift, taste_groups

ROWS = np.array([[0.5, 0, 1, 0], [0, 0, 0, 0], [0.25, 0.75, 0, 1]])


def from_npz(folder: Path) -> Users:
    sparse.save_npz(folder / "rows.npz", sparse.csr_array(ROWS))
    return read(folder / "rows.npz")


def from_csv(folder: Path) -> Users:
    (folder / "rows.csv").write_text("user,item,value\nx,0,0.5\nx,2,1\ny,1,0\nz,3,1\nz,0,0.25\nz,1,0.75\n")
    return read(folder / "rows.csv", n_items=4)


def from_parquet(folder: Path) -> Users:
    user_, item = np.indices(ROWS.shape).reshape(2, -1)  # zeros included: a user without rows is not there
    table = pa.table({"user": user_, "item": item, "value": ROWS[user_, item]})
    pa.parquet.write_table(table, folder / "rows.parquet")
    return read(folder / "rows.parquet", n_items=4)


def from_baskets(folder: Path) -> Users:
    (folder / "rows.txt").write_text("2 0\n\n3 1 0\n")
    return read(folder / "rows.txt")


SOURCES: dict[str, Callable[[Path], Stream]] = {
    "memory": lambda folder: Users(NoisyOr(), ROWS),
    "npz": from_npz,
    "csv": from_csv,
    "parquet": from_parquet,
    "baskets": from_baskets,
    "places": lambda folder: from_places(
        [[40.71, -74.0], [40.8, -73.95]], grid(40.7, 40.82, -74.02, -73.93, 3, 2), reach_km=5
    ),
    "functions": lambda folder: Functions([lambda s: min(1.0, len(s) / 2), lambda s: float(0 in s)], 4),
    "taste groups": lambda folder: taste_groups(50, 20, groups=3, items_per_group=4),
    "drift": lambda folder: drift(taste_groups(50, 20, groups=3, items_per_group=4), changes=2),
    "adversary": lambda folder: adversary(20, 3),
} | {f"built-in {name}": (lambda folder, make=make: make()) for name, make in BUILTIN.items()}


@pytest.fixture(params=list(SOURCES))
def stream(request: pytest.FixtureRequest, tmp_path: Path) -> Stream:
    return SOURCES[request.param](tmp_path)


def test_users_can_be_counted_and_asked(stream: Stream) -> None:
    assert len(stream) >= 2
    assert stream.n_items >= 2
    assert stream.name
    assert stream.family_name in repr(stream) or isinstance(stream, Functions)


def test_users_keep_their_promises(stream: Stream) -> None:
    for t in {0, 1, len(stream) // 2, len(stream) - 1}:
        assert check(stream[t], tries=5) is None


def test_values_agree_with_users_one_by_one(stream: Stream) -> None:
    slate = [0, stream.n_items - 1]
    together = stream.values(slate)
    assert together.shape == (len(stream),)
    for t in {0, 1, len(stream) - 1}:
        assert together[t] == stream[t].value(slate)


def test_one_slate_per_user(stream: Stream) -> None:
    slates = np.zeros((len(stream), 3), dtype=np.int64)
    slates[:, 1], slates[:, 2] = -1, 0  # an empty slot and a repeated item change nothing
    np.testing.assert_array_equal(stream.values(slates), stream.values([0]))


def test_the_four_file_formats_say_the_same(tmp_path: Path) -> None:
    for make in (from_npz, from_parquet):
        np.testing.assert_array_equal(make(tmp_path).matrices[0].toarray(), ROWS)
    np.testing.assert_array_equal(from_csv(tmp_path).matrices[0].toarray(), ROWS)
    np.testing.assert_array_equal(from_baskets(tmp_path).matrices[0].toarray(), ROWS > 0)


def test_slices_and_single_users(tmp_path: Path) -> None:
    users = from_npz(tmp_path)
    assert len(users[1:]) == 2
    assert users[1:].values([0, 1])[1] == users[-1].value([0, 1])
    assert user(NoisyOr(), {0: 0.5, 2: 1.0}, 4).value([0]) == users[0].value([0])
    with pytest.raises(IndexError, match="3 users"):
        users[3]
