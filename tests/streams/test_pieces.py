"""Users of a file in pieces are the users of the file, in the same order, whatever the pieces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import diminuendo as dim
from diminuendo.errors import InvalidInput
from diminuendo.streams.pieces import Pieces


def written(path: Path, *, labels: bool = True, users: int = 97, group: int = 40) -> Path:
    """Who wants what; users lie side by side, in no order of their names."""
    rng = np.random.default_rng(1)
    user_ids, items, values = list[str](), list[Any](), list[float]()
    for user in rng.permutation(users).tolist():
        for item in rng.choice(12, rng.integers(1, 5), replace=False).tolist():
            user_ids.append(f"p{user}")
            items.append(f"item {item}" if labels else item)
            values.append(float(rng.integers(1, 6)))
    table = pa.table({"user": user_ids, "product": items, "stars": values})
    pyarrow.parquet.write_table(table, path, row_group_size=group)
    return path


HOW: dict[str, Any] = {"columns": ("user", "product", "stars"), "scale": (1, 5)}


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("many", [10, 97, 1000])
def test_pieces_are_the_users_of_the_file(labels: bool, many: int, tmp_path: Path) -> None:
    path = written(tmp_path / "shop.parquet", labels=labels)
    n_items = None if labels else 12
    whole = dim.read(path, n_items=n_items, round="user", **HOW)
    pieces = Pieces(path, users=many, n_items=n_items, **HOW)
    result = list(pieces)
    assert (len(result), pieces.users, pieces.n_items) == (-(-97 // many), 97, whole.n_items)
    assert all(len(piece) == many for piece in result[:-1])
    assert (
        np.concatenate([piece.matrices[0].toarray() for piece in result]).tolist()
        == whole.matrices[0].toarray().tolist()
    )
    for piece in result:
        assert piece.labels == whole.labels


def test_a_user_whose_rows_lie_apart_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "apart.parquet"
    for user_ids in (["a", "b", "a"], ["a", None, "b"], []):
        pyarrow.parquet.write_table(
            pa.table({"user": pa.array(user_ids, pa.string()), "item": user_ids}), path
        )
        with pytest.raises(InvalidInput, match="side by side"):
            Pieces(path, columns=("user", "item"))
    with pytest.raises(InvalidInput, match="Parquet"):
        Pieces(tmp_path / "none.csv")
