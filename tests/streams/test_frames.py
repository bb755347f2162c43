"""Frames of every kind are read like the file that they would be written to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet
import pytest

import diminuendo as dim
from diminuendo.errors import InvalidInput

COLUMNS: dict[str, list[Any]] = {
    "Customer ID": [7, 3, 7, 7],
    "sku": ["b", "a", "a", None],
    "created_at": [datetime(2024, 5, 2), datetime(2024, 5, 1, 9), datetime(2024, 5, 1), datetime(2024, 5, 1)],
    "stars": [5.0, 2.0, 1.0, 1.0],
}


class SpeaksArrow:
    """A frame of a library that nobody knows; it speaks Arrow and no more."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self._table = pa.table(columns)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


class ToArrow:
    """One that can be turned into Arrow."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self._columns = columns

    def to_arrow(self) -> Any:
        return pa.table(self._columns)


def polars(columns: dict[str, Any]) -> Any:
    return pytest.importorskip("polars").DataFrame(columns)


def lazy_polars(columns: dict[str, Any]) -> Any:
    return polars(columns).lazy()


def duckdb(columns: dict[str, Any]) -> Any:
    return pytest.importorskip("duckdb").from_arrow(pa.table(columns))


KINDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "dictionary": dict,
    "arrays": lambda columns: {name: np.array(column) for name, column in columns.items()},
    "pandas": pandas.DataFrame,
    "arrow": pa.table,
    "speaks-arrow": SpeaksArrow,
    "to-arrow": ToArrow,
    "polars": polars,
    "lazy-polars": lazy_polars,
    "duckdb": duckdb,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("round_", ["user", "day"])
def test_a_frame_is_read_like_its_file(kind: str, round_: str, tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table(COLUMNS), tmp_path / "shop.parquet")
    how: dict[str, Any] = {"scale": (1, 5), "round": round_}
    asked = dim.read(tmp_path / "shop.parquet", **how)
    users = dim.from_table(KINDS[kind](COLUMNS), name="shop", **how)
    assert users.labels == asked.labels == ("a", "b")
    np.testing.assert_array_equal(users.matrices[0].toarray(), asked.matrices[0].toarray())
    assert (users.user_ids is None) == (asked.user_ids is None) == (round_ == "user")
    assert users.was_read is not None
    assert users.was_read.left_out == {"sku is empty": 1}
    assert users.was_read.columns["user"] == "Customer ID"


def test_days_decimals_categories_truth_and_missing_numbers() -> None:
    frame = pandas.DataFrame(
        {
            "user": pandas.Categorical(["a", "b", "a"], categories=["ghost", "b", "a"]),
            "item": [10, None, 9],
            "value": [True, False, True],
        }
    )
    users = dim.from_table(frame)
    assert users.labels == ("9", "10"), "and not 10.0, though a missing one made them fractions"
    assert len(users) == 1
    table = pa.table(
        {
            "user": ["a", "a"],
            "item": ["x", "x"],
            "value": [Decimal("0.5"), Decimal("0.25")],
            "date": [date(2024, 5, 1), date(2024, 5, 2)],
        }
    )
    users = dim.from_table(table)
    assert users.matrices[0].toarray().tolist() == [[0.5], [0.25]], "two sessions"


def test_columns_of_pandas_with_types_of_its_own() -> None:
    frame = pandas.DataFrame(
        {
            "user": pandas.array([7, None, 7], dtype="Int64"),
            "sku": pandas.array(["x", "x", "y"], dtype="string"),
            "at": pandas.to_datetime(
                ["2024-05-01 23:30", "2024-05-01 01:00", "2024-05-02 00:10"]
            ).tz_localize("Europe/Berlin"),
        }
    )
    users = dim.from_table(frame, round="day")
    assert users.was_read is not None
    assert users.was_read.left_out == {"user is empty": 1}
    assert len(users) == 1, "one day, in UTC"


def test_a_column_of_several_kinds_is_text() -> None:
    frame = pandas.DataFrame({"user": [7, "7", None, "ada"], "sku": ["x", "y", "x", 3]})
    users = dim.from_table(frame)
    assert users.labels == ("3", "x", "y")
    assert users.matrices[0].toarray().tolist() == [[0, 1, 1], [1, 0, 0]]


@pytest.mark.parametrize("frame", [None, 7, "orders.csv", [1, 2], {}, pandas.DataFrame()])
def test_what_is_no_table_is_refused(frame: Any) -> None:
    with pytest.raises(InvalidInput, match="Expected a table with columns by name"):
        dim.from_table(frame)
