"""Files at the door: what is read, and what is refused with the line, the value and the rule."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diminuendo import read
from diminuendo.errors import InvalidInput
from diminuendo.streams import baskets, from_ratings, open_stream, read_baskets


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


REFUSED = {
    "letters.txt": ("0 1\n2 x\n", "Line 2: a basket holds whole numbers"),
    "negative.txt": ("0 1\n-2\n", "Line 2: a basket holds whole numbers"),
    "twice.txt": ("0 1\n3 2 3\n", "line 2: an item is there twice"),
    "empty.txt": ("", "empty"),
    "huge.txt": ("0 99999999999999999999\n", "out of range"),
    "rows.npz": ("not a matrix", "not a scipy sparse matrix"),
    "rows.dat": ("0 1", "expected a file that ends in"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_files_are_refused_by_line_and_rule(name: str, tmp_path: Path) -> None:
    text, message = REFUSED[name]
    with pytest.raises(InvalidInput, match=message):
        read(write(tmp_path, name, text))


def test_item_numbers_are_held_to_the_given_count(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="line 2: an item is out of range; with 5 items"):
        read(write(tmp_path, "a.txt", "0\n7\n"), n_items=5)
    with pytest.raises(
        InvalidInput, match="line 3: item is out of range; with 5 items they are numbered from 0 to 4"
    ):
        read(write(tmp_path, "a.csv", "user,item,value\na,1,1\na,7,1\n"), n_items=5)
    with pytest.raises(InvalidInput, match="line 2: item is not a whole number"):
        read(write(tmp_path, "b.csv", "user,item,value\na,x,1\n"), n_items=5)


def test_a_missing_file_says_what_a_stream_can_be() -> None:
    with pytest.raises(InvalidInput, match="built-in name or a file"):
        open_stream("nowhere.txt")


@settings(deadline=None, max_examples=50)
@given(
    rows=st.lists(st.sets(st.integers(0, 300), max_size=6).map(sorted), min_size=1, max_size=30),
    separator=st.sampled_from([" ", ",", "  ", "\t", ", "]),
    ending=st.sampled_from(["\n", "\r\n"]),
    last=st.booleans(),
    piece=st.sampled_from([1, 7, 64, 1 << 20]),
    packed=st.booleans(),
)
def test_baskets_are_read_back(
    rows: list[list[int]],
    separator: str,
    ending: str,
    last: bool,
    piece: int,
    packed: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Whatever the separators, the line ends, the size of the pieces or the compression."""
    text = ending.join(separator.join(map(str, row[::-1])) for row in rows) + (
        ending if last or not rows[-1] else ""
    )
    path = write(tmp_path_factory.mktemp("baskets"), "b.txt.gz" if packed else "b.txt", text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baskets, "PIECE", piece)
        users = read_baskets(path, n_items=301)
    assert len(users) == len(rows)
    for row, matrix_row in zip(rows, users.matrices[0].toarray(), strict=True):
        assert list(np.flatnonzero(matrix_row)) == row


def test_progress_adds_up_to_the_size_of_the_file(tmp_path: Path) -> None:
    for name, text in (
        ("a.txt", "0 1\n" * 999),
        ("a.csv", "user,item,value\n" + "".join(f"{i},0,1\n" for i in range(999))),
    ):
        path = write(tmp_path, name, text)
        seen: list[int] = []
        read(path, progress=seen.append)
        assert sum(seen) == path.stat().st_size


def test_ratings_take_other_names_a_scale_and_labels(tmp_path: Path) -> None:
    path = write(tmp_path, "r.csv.gz", "user,movie,stars,time\n7,Up,5,0\n3,Alien,2,0\n7,Alien,1,0\n")
    users = read(path, columns=("user", "movie", "stars"), scale=(1, 5))
    assert users.labels == ("Alien", "Up")
    np.testing.assert_array_equal(users.matrices[0].toarray(), [[0, 1], [0.25, 0]])  # 7 came first


def test_values_off_the_scale_are_refused_by_row_and_with_advice(tmp_path: Path) -> None:
    path = write(tmp_path, "r.csv", "user,item,value\n7,Up,5\n3,Alien,0.5\n")
    with pytest.raises(
        InvalidInput, match=r"r\.csv has 1 row .*line 2: value must be from 0 to 1\..*scale=\(1, 5\)"
    ):
        read(path)
    with pytest.raises(InvalidInput, match="line 3: value must be from 1 to 5"):
        read(path, scale=(1, 5))
    for wrong in ((5, 1), (1, 1), (0, float("inf")), (float("nan"), 1)):
        with pytest.raises(InvalidInput, match="the least and the largest value"):
            read(path, scale=wrong)
    with pytest.raises(InvalidInput, match="scale: said of baskets, and only tables take that"):
        read(write(tmp_path, "b.txt", "0 1\n"), scale=(1, 5))


@pytest.mark.parametrize("kind", [list, np.array, lambda column: np.array(column, dtype=object)])
def test_columns_in_memory_are_read_like_a_file(kind: Callable[[list[Any]], Any], tmp_path: Path) -> None:
    user_ids, items, values = [7, 3, 7], ["Up", "Alien", "Alien"], [5.0, 2.0, 1.0]
    rows = "".join(f"{p},{i},{v}\n" for p, i, v in zip(user_ids, items, values, strict=True))
    asked = read(write(tmp_path, "r.csv", "user,item,value\n" + rows), scale=(0, 5))
    users = from_ratings(kind(user_ids), kind(items), kind(values), scale=(0, 5))
    assert users.labels == asked.labels
    np.testing.assert_array_equal(users.matrices[0].toarray(), asked.matrices[0].toarray())


def test_columns_of_a_frame_are_read() -> None:
    frame = pandas.DataFrame({"user": ["b", "a"], "movie": [10, 9], "stars": [4, 2]})
    users = from_ratings(frame["user"], frame["movie"], frame["stars"], scale=(0, 4))
    assert users.labels == ("9", "10")
    np.testing.assert_array_equal(users.matrices[0].toarray(), [[0, 1], [0.5, 0]])


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ((["a"], ["x", "y"], [1.0]), "got 1 in user, 2 in item, 1 in value"),
        (([], [], []), "ratings has no rows"),
        (([None], ["y"], [1.0]), "no rows that can be used: user is empty"),
        ((["a"], ["x"], [float("nan")]), "no rows that can be used: value is empty"),
        ((["a"], ["x"], ["much"]), "data row 1: value is not a number"),
        ((["a"], [["x", "y"], ["z"]], [1.0]), "items are not a column"),
        ((["a", "a"], ["x", "x"], [1.0, 0.5]), "a user has an item twice"),
    ],
)
def test_columns_that_do_not_fit_are_refused(columns: tuple[Any, Any, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        from_ratings(*columns)


def test_a_late_fraction_is_still_a_number(tmp_path: Path) -> None:
    """Types are not guessed from the first rows."""
    rows = "".join(f"{i},0,1\n" for i in range(150_000)) + "anna,0,0.5\n"
    users = read(write(tmp_path, "late.csv", "user,item,value\n" + rows))
    assert users[len(users) - 1].value([0]) == 0.5


def test_dictionaries_add_nobody(tmp_path: Path) -> None:
    coded = pa.DictionaryArray.from_arrays(pa.array([2, 0]), pa.array(["a", "ghost", "z"]))
    pyarrow.parquet.write_table(
        pa.table({"user": coded, "item": coded, "value": [0.5, 1.0]}), tmp_path / "d.parquet"
    )
    users = read(tmp_path / "d.parquet")
    assert users.labels == ("a", "z")
    np.testing.assert_array_equal(users.matrices[0].toarray(), [[0, 0.5], [1, 0]])  # z came first


@pytest.mark.parametrize("name", ["a.txt.gz", "a.csv.gz", "a.npz"])
def test_damaged_files_are_refused(name: str, tmp_path: Path) -> None:
    packed = gzip.compress(b"0 1\n" * 20_000) if ".gz" in name else b"PK\x03\x04 nothing"
    (tmp_path / name).write_bytes(packed[:-20] if ".gz" in name else packed)
    with pytest.raises(InvalidInput, match=name):
        read(tmp_path / name)


def test_the_last_of_two_rows_counts_where_that_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "twice.csv"
    file.write_text("user,item,value\na,x,0.25\nb,x,1\na,y,0.5\na,x,0.75\na,x,0.125\nb,y,1\n")
    with pytest.raises(InvalidInput, match=r"lines 2 and 5; 2 rows are followed .* --keep-last"):
        read(file)
    users = read(file, keep_last=True)
    np.testing.assert_array_equal(users.matrices[0].toarray(), [[0.125, 0.5], [1.0, 1.0]])
    with pytest.raises(InvalidInput, match="keep_last: said of msweb, and only tables take that"):
        open_stream("msweb", keep_last=True)
