"""People of a file in pieces are the people of the file, in the same order, whatever the pieces."""

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


def written(path: Path, *, labels: bool = True, people: int = 97, group: int = 40) -> Path:
    """Who wants what; people lie side by side, in no order of their names."""
    rng = np.random.default_rng(1)
    persons, items, values = list[str](), list[Any](), list[float]()
    for person in rng.permutation(people).tolist():
        for item in rng.choice(12, rng.integers(1, 5), replace=False).tolist():
            persons.append(f"p{person}")
            items.append(f"item {item}" if labels else item)
            values.append(float(rng.integers(1, 6)))
    table = pa.table({"user": persons, "product": items, "stars": values})
    pyarrow.parquet.write_table(table, path, row_group_size=group)
    return path


HOW: dict[str, Any] = {"columns": ("user", "product", "stars"), "scale": (1, 5)}


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("many", [10, 97, 1000])
def test_pieces_are_the_people_of_the_file(labels: bool, many: int, tmp_path: Path) -> None:
    path = written(tmp_path / "shop.parquet", labels=labels)
    n_items = None if labels else 12
    whole = dim.read(path, n_items=n_items, round="person", **HOW)
    pieces = Pieces(path, people=many, n_items=n_items, **HOW)
    result = list(pieces)
    assert (len(result), pieces.people, pieces.n_items) == (-(-97 // many), 97, whole.n_items)
    assert all(len(piece) == many for piece in result[:-1])
    assert (
        np.concatenate([piece.matrices[0].toarray() for piece in result]).tolist()
        == whole.matrices[0].toarray().tolist()
    )
    for piece in result:
        assert piece.labels == whole.labels


def test_a_person_whose_rows_lie_apart_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "apart.parquet"
    for persons in (["a", "b", "a"], ["a", None, "b"], []):
        pyarrow.parquet.write_table(
            pa.table({"person": pa.array(persons, pa.string()), "item": persons}), path
        )
        with pytest.raises(InvalidInput, match="side by side"):
            Pieces(path, columns=("person", "item"))
    with pytest.raises(InvalidInput, match="Parquet"):
        Pieces(tmp_path / "none.csv")
