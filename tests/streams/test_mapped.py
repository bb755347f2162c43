"""Users that are mapped from disk are the users of the file, in the same order, however many are read together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import diminuendo as dim
from diminuendo.errors import InvalidInput
from diminuendo.streams import mapped

HOW: dict[str, Any] = {"columns": ("user", "product", "stars"), "scale": (1, 5)}


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("many", [10, 97, 1000])
def test_they_are_the_users_of_the_file(
    labels: bool, many: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, rows = np.random.default_rng(1), list[tuple[str, Any, float]]()
    for user in rng.permutation(97).tolist():  # users lie side by side, in no order of their names
        for item in rng.choice(12, rng.integers(1, 5), replace=False).tolist():
            rows.append((f"p{user}", f"item {item}" if labels else item, float(rng.integers(1, 6))))
    path = tmp_path / "shop.parquet"
    table = pa.table(dict(zip(HOW["columns"], map(list, zip(*rows, strict=True)), strict=True)))
    pyarrow.parquet.write_table(table, path, row_group_size=40)
    n_items = None if labels else 12
    whole = dim.read(path, n_items=n_items, round="user", **HOW)
    monkeypatch.setattr(mapped, "TOGETHER", many)
    users = dim.streams.out_of_core(path, n_items=n_items, **HOW)
    assert (len(users), users.labels) == (97, whole.labels)
    assert users.matrices[0].toarray().tolist() == whole.matrices[0].toarray().tolist()


@pytest.mark.parametrize("user_ids", [["a", "b", "a"], ["a", None, "b"], []], ids=str)
def test_a_user_whose_rows_lie_apart_is_refused(user_ids: list[str | None], tmp_path: Path) -> None:
    path = tmp_path / "apart.parquet"
    pyarrow.parquet.write_table(pa.table({"user": pa.array(user_ids, pa.string()), "item": user_ids}), path)
    with pytest.raises(InvalidInput, match="side by side"):
        dim.streams.out_of_core(path, columns=("user", "item"))
