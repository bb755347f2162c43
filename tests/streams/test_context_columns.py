"""What was known of users when they came: from columns of ratings, lines of baskets, a table beside a file."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import sparse

import diminuendo as dim
from diminuendo.errors import InvalidInput
from diminuendo.streams import contexts as module
from diminuendo.streams import taste_groups
from diminuendo.streams.contexts import UNKNOWN, Contexts, listed

VISITS = """user,item,value,country,time,device
ada,tea,1,DE,2024-05-01 17:30:00,phone
bob,tea,1,,2024-05-02 07:05:00,
ada,soap,1,DE,2024-05-01 23:59:59,desk
cleo,soap,.5,FR,,desk
bob,soap,.5,other,2024-05-03 07:00:00,
"""
"""Bob's country is known from his second row only, Ada's time and device differ, Cleo's time is missing."""


def said(users: dim.Users) -> list[dict[str, str]]:
    """What is known of everybody."""
    assert users.contexts is not None
    assert users.types is not None
    return [users.contexts.said(kind) for kind in users.types.tolist()]


def visits(folder: Path, **how: Any) -> dim.Users:
    (folder / "visits.csv").write_text(VISITS)
    return dim.read(folder / "visits.csv", round="user", **how)


@pytest.mark.filterwarnings("ignore:.*rows that differ")
def test_columns_of_ratings_and_parts_of_a_time(tmp_path: Path) -> None:
    users = visits(tmp_path, context="country, time:hour,time:weekday")
    assert users.contexts is not None
    assert not users.contexts.private
    assert [column.name for column in users.contexts.columns] == ["country", "time:hour", "time:weekday"]
    assert said(users) == [
        {"country": "DE", "time:hour": "17", "time:weekday": "Wednesday"},
        {"country": "other", "time:hour": "7", "time:weekday": "Thursday"},
        {"country": "FR"},
    ]
    plain = visits(tmp_path)
    assert plain.contexts is None
    assert np.array_equal(users.matrices[0].toarray(), plain.matrices[0].toarray()), "the same users"
    hidden = visits(tmp_path, context=["country"], private_context=True)
    assert hidden.contexts == Contexts(country=["DE", "FR", "other"], private=True)


def test_rows_that_differ_are_counted_and_the_first_counts(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"1 of 3 users have rows that differ in device; the first row"):
        users = visits(tmp_path, context="device")
    assert said(users) == [{"device": "phone"}, {}, {"device": "desk"}]


@pytest.mark.parametrize("kind", ["text", "zoned", "seconds", "milliseconds", "times", "numbers"])
def test_times_may_be_written_in_many_ways(kind: str, tmp_path: Path) -> None:
    moments = [datetime(2024, 5, 1, hour, 59, 59, tzinfo=UTC) for hour in (0, 9, 23)]
    seconds = [int(moment.timestamp()) for moment in moments]
    column: Any = {
        "text": [f"{moment:%Y-%m-%d %H:%M:%S}" for moment in moments],
        "zoned": [f"{moment:%Y-%m-%dT%H:%M:%SZ}" for moment in moments],
        "seconds": [str(second) for second in seconds],
        "milliseconds": [str(1000 * second) for second in seconds],
        "times": pa.array(moments, pa.timestamp("ms", "UTC")),
        "numbers": [second + 0.5 for second in seconds],
    }[kind]
    table = pa.table({"user": [0, 1, 2], "item": ["a", "b", "a"], "value": [1.0, 1.0, 1.0], "at": column})
    pa.parquet.write_table(table, tmp_path / "rows.parquet")
    users = dim.read(tmp_path / "rows.parquet", context="at:hour")
    assert [known["at:hour"] for known in said(users)] == ["0", "9", "23"]


REFUSED = {
    "contry": r"visits.csv has no column contry .*Did you mean country\? Its columns are: user, item, value, country",
    "time:minute": "Of a time, hour or weekday can be known, as time:hour; got 'time:minute'",
    "country:hour": "country is not a column of times. Expected times as 2024-05-01",
    "country,country": "context names columns, each once",
    "country,": "context names columns, each once",
}


@pytest.mark.parametrize("context", REFUSED)
def test_contexts_that_are_not_there_are_refused(context: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=REFUSED[context]) as refused:
        visits(tmp_path, context=context)
    assert "DE" not in str(refused.value), "values of users are not repeated"


def test_a_column_that_is_always_missing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("user,item,value,age\na,x,1,\nb,y,1,\n")
    with pytest.raises(InvalidInput, match="age is missing for all users"):
        dim.read(tmp_path / "rows.csv", context="age")


@pytest.mark.parametrize("packed", [False, True])
def test_the_first_item_of_a_basket(packed: bool, tmp_path: Path) -> None:
    text = "3 1 2\n\n0\n2 3\n"
    path = tmp_path / ("b.txt.gz" if packed else "b.txt")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    users = dim.read(path, context="entry")
    assert users.contexts == Contexts(entry=["0", "2", "3"]), "no coin said which, and nobody came by 1"
    assert users.name == "b-entry"
    assert said(users) == [{"entry": "3"}, {}, {"entry": "0"}, {"entry": "2"}]
    wanted = [[0, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    assert users.matrices[0].toarray().tolist() == wanted, "what was the entry is not wanted any more"


def test_a_table_beside_the_file(tmp_path: Path) -> None:
    rows = np.array([[0.5, 0.0], [0.0, 1.0], [0.0, 0.0]])
    sparse.save_npz(tmp_path / "shop.best-match.npz", sparse.csr_array(rows))
    (tmp_path / "shop.txt").write_text("1 0\n\n0\n")
    (tmp_path / "shop.contexts.csv").write_text(
        "shelf,at\n10,2024-05-01 06:00:00\n9,\n,2024-05-01 07:00:00\n"
    )
    users = dim.read(tmp_path / "shop.best-match.npz", context="shelf")
    assert users.contexts == Contexts(shelf=["9", "10"]), "whole numbers by their size"
    assert said(users) == [{"shelf": "10"}, {"shelf": "9"}, {}]
    both = dim.read(tmp_path / "shop.txt", context="at:hour,entry", private_context=True)
    assert both.contexts == Contexts({"at:hour": ["6", "7"], "entry": ["0", "1"]}, private=True)
    assert said(both) == [{"at:hour": "6", "entry": "1"}, {}, {"at:hour": "7", "entry": "0"}]


def test_a_table_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "shop.txt"
    path.write_text("0\n1\n")
    with pytest.raises(InvalidInput, match=r"looked for in shop.contexts.csv beside it: a line per user"):
        dim.read(path, context="shelf")
    table = tmp_path / "shop.contexts.csv"
    table.write_text("shelf\n1\n")
    with pytest.raises(InvalidInput, match=r"has 1 lines .* shop.txt has 2 users"):
        dim.read(path, context="shelf")
    table.write_text("shelf\n1\n\n")
    assert said(dim.read(path, context="shelf")) == [{"shelf": "1"}, {}], "an empty line: nothing is known"
    with pytest.raises(InvalidInput, match=r"no column shelves .*Did you mean shelf\?"):
        dim.read(path, context="shelves")
    table.write_text("shelf,hour\n1\n2,3\n")
    with pytest.raises(InvalidInput, match=r"has 2 lines .* 1 of them with other columns"):
        dim.read(path, context="shelf")


def test_rare_values_become_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_VALUES", 3)
    codes = np.array([0, 0, 1, 1, 2, 3, UNKNOWN])
    with pytest.warns(UserWarning, match="place has more than 3 values; the 2 rarest of them became 'other'"):
        values, numbers = listed("place", codes, ["Rome", "Oslo", "Bonn", "Kiel"])
    assert values == ["Oslo", "Rome", "other"]
    assert numbers.tolist() == [1, 1, 0, 0, 2, 2, UNKNOWN]


def test_values_are_those_that_occur_in_order() -> None:
    values, numbers = listed("x", np.array([4, 0, 3, 0, UNKNOWN]), ["10", "9", "b", "a", "other"])
    assert values == ["10", "a", "other"]
    assert numbers.tolist() == [2, 0, 1, 0, UNKNOWN]


def test_built_in_streams_are_told_what_is_known_only_when_asked() -> None:
    assert dim.open_stream("msweb-entry").contexts is None
    users = dim.open_stream("msweb-entry", context="entry", private_context=True)
    assert users.contexts is not None
    assert users.contexts.private
    best_match = dim.open_stream("msweb-entry", "best-match", context="entry")
    assert best_match.family_name == "best-match"
    assert said(best_match) == said(users)
    with pytest.raises(InvalidInput, match="Nothing is known of the users of msweb: they have no entry"):
        dim.open_stream("msweb", context="entry")
    with pytest.raises(
        InvalidInput, match="Nothing called area is known of these users; there is: group, chance"
    ):
        dim.open_stream("taste-labels", context="area")


def test_msweb_by_entry_area_takes_one_area_out_of_every_visit() -> None:
    whole, users = dim.msweb(), dim.open_stream("msweb-entry", context="entry")
    assert users.labels == whole.labels
    assert users.contexts is not None
    assert [column.symmetric for column in users.contexts.columns] == [True], "a coin said which"
    gone = whole.matrices[0] - users.matrices[0]
    assert gone.sum(axis=1).tolist() == [1.0] * len(whole), "one area of each visit"
    areas = gone.tocsr().nonzero()[1]
    twice = {label for label in whole.labels or () if (whole.labels or ()).count(label) > 1}
    names = [
        label if label not in twice else f"{label} ({item})" for item, label in enumerate(whole.labels or ())
    ]
    assert [known["entry"] for known in said(users)] == [names[area] for area in areas]


def test_labels_of_taste_groups_are_right_as_often_as_said() -> None:
    plain, users = taste_groups(4_000, seed=3), taste_groups(4_000, seed=3, right=0.9)
    assert np.array_equal(plain.matrices[0].toarray(), users.matrices[0].toarray()), "the same users"
    assert plain.contexts is None
    assert users.contexts is not None
    assert users.types is not None
    label, chance = users.contexts.values_of(users.types).T
    favourites = users.matrices[0].indices.reshape(4_000, 10)  # the same for all of a group
    rows = [tuple(row) for row in favourites.tolist()]
    commonest = {}
    for group in range(20):
        here = [row for row, given in zip(rows, label.tolist(), strict=True) if given == group]
        commonest[group] = max(set(here), key=here.count)
    right = np.mean([row == commonest[group] for row, group in zip(rows, label.tolist(), strict=True)])
    assert abs(right - 0.9 - 0.1 * 0.05) < 0.03, "nine in ten, and some of the others by chance"
    assert abs(np.mean(chance == label) - 1 / 20) < 0.02
    with pytest.raises(InvalidInput, match="from 0 to 1; got 2"):
        taste_groups(10, right=2)


def test_columns_can_be_chosen_from() -> None:
    users = taste_groups(50, right=0.5)
    assert users.with_columns([]).contexts is None
    one = users.with_columns(["chance"], private=True)
    assert one.contexts == Contexts(chance=20, private=True)
    assert [known["chance"] for known in said(one)] == [known["chance"] for known in said(users)]
    turned = users.with_columns(["chance", "group"])
    assert said(turned) == said(users), "as dictionaries, whatever their order"
    assert turned.contexts == Contexts(chance=20, group=20)
