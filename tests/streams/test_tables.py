"""Tables as programs export them: what is read, what is left out, and what is refused, all of it together."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import diminuendo as dim
from diminuendo.errors import InvalidInput
from diminuendo.streams import ReadAs, ReadNote
from diminuendo.streams.column_names import guesses, roles
from tests.kit.moments import moments


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What was guessed or left out is looked at in `was_read`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadNote)
        yield


def read(folder: Path, text: str | bytes, name: str = "orders.csv", **how: Any) -> dim.Users:
    content = text.encode() if isinstance(text, str) else text
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return dim.read(folder / name, **how)


def wishes(users: dim.Users) -> list[list[float]]:
    result: list[list[float]] = users.matrices[0].toarray().tolist()
    return result


# What is read.


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.tsv", "a.tsv.gz"])
def test_who_and_what_are_enough(mark: str, name: str, tmp_path: Path) -> None:
    rows = [["who", "what"], ["ada", "tea"], ["bob", "soap"], ["ada", "soap"], ["ada", "tea"]]
    text = "\r\n".join(mark.join(row) for row in rows) + "\r\n"
    users = read(tmp_path, text, name, columns=("who", "what"))
    assert users.labels == ("soap", "tea")
    assert wishes(users) == [[1, 1], [1, 0]], "wanted, once, however often it is there"
    assert users.was_read is not None
    assert users.was_read.repeated == 1
    assert "Every row is an item that the user wanted." in str(users.was_read)


def test_who_and_what_of_parquet(tmp_path: Path) -> None:
    table = pa.table({"Customer ID": [7, 3, 7], "sku": ["b", "a", "a"], "noise": [[1], [2], [3]]})
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    users = dim.read(tmp_path / "a.parquet")
    assert wishes(users) == [[1, 1], [1, 0]]
    assert users.was_read is not None
    assert users.was_read.columns == {"user": "Customer ID", "item": "sku"}


MESSY = (
    '\ufeff Customer  ID ;"SKU";Product Name;Unit Price;Created At\r\n'
    ' ada ;tea;"Tea; ""fine""\nand loose";3,50;2024-05-01T10:00:00Z\r\n'
    "\r\n"
    "bob; tea;Tea;n/a;2024-05-01 11:00:00\r\n"
    "ada;soap;;1;2024-05-01T10:00:00Z\r\n"
    ";soap;Soap;1;2024-05-01 12:00\r\n"
    "bob;;Soap;1;2024-05-01 12:00\r\n"
)


def test_a_messy_table(tmp_path: Path) -> None:
    """A mark of encoding, blanks, quotes with line ends, empty lines and cells, and columns that nobody needs."""
    users = read(tmp_path, MESSY)
    assert users.labels == ("soap", "tea")
    assert wishes(users) == [[1, 1], [0, 1]]
    assert users.user_ids is None
    assert str(users.was_read).splitlines() == [
        "orders.csv: 5 rows, with Customer ID as user, SKU as item (guessed by their names; --columns and --time say "
        "otherwise). Every row is an item that the user wanted.",
        "Columns that are not used: Product Name, Unit Price, Created At.",
        "There are semicolons between its columns.",
        "Of its lines 2 are empty, or end within quotation marks.",
        "A round is a user with all their rows: 2 users, 2 items, in the order of their first rows.",
        "Left out: 1 row where Customer ID is empty; 1 row where SKU is empty.",
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings(encoding: str, tmp_path: Path) -> None:
    rows = "who;what\n" + "Zoë;Käse\n" * 3 + "Öz;Brot\n"
    users = read(tmp_path, rows.encode(encoding), columns=("who", "what"))
    assert users.labels == ("Brot", "Käse")
    said = str(users.was_read)
    assert ("not UTF-8" in said) == (encoding == "cp1252")


def test_what_stands_between_columns_may_be_said_in_a_line_of_its_own(tmp_path: Path) -> None:
    assert read(tmp_path, "sep=|\nuser|sku\na|x,y;z\n").labels == ("x,y;z",)
    assert read(
        tmp_path, '"user, or ""guest""",item\na;b,x\n', columns=('user, or "guest"', "item")
    ).labels == ("x",)


def test_commas_in_numbers_where_none_stand_between_columns(tmp_path: Path) -> None:
    rows = "user;item;value\na;x;4,5\na;y; 2.5 \nb;x;0\n"
    assert wishes(read(tmp_path, rows, scale=(0, 5))) == [[0.9, 0.5], [0, 0]]
    with pytest.raises(InvalidInput, match="line 2: value is not a number"):
        read(tmp_path, rows.replace("4,5", "1.004,5"), scale=(0, 5))
    with pytest.raises(InvalidInput, match="line 2: value is not a number"):
        read(tmp_path, 'user,item,value\na,x,"4,5"\n', scale=(0, 5))


def test_capitals_count_apart_unless_they_are_to_be_ignored(tmp_path: Path) -> None:
    rows = "user,sku\nada,Tea\nADA,tea\nbob,TEA \n"
    apart = read(tmp_path, rows)
    assert len(apart) == 3
    assert apart.labels == ("TEA", "Tea", "tea")
    assert "2 of 3 labels in sku differ from another in capitals alone" in str(apart.was_read)
    joined = read(tmp_path, rows, ignore_case=True)
    assert len(joined) == 2
    assert joined.labels == ("tea",)
    assert "capitals" not in str(joined.was_read)


def test_the_same_value_twice_counts_once_and_two_values_are_refused(tmp_path: Path) -> None:
    users = read(tmp_path, "user,item,value\na,x,.5\na,x,0.50\n")
    assert wishes(users) == [[0.5]]
    with pytest.raises(InvalidInput, match="twice with different values, in lines 2 and 4"):
        read(tmp_path, "user,item,value\na,x,.5\nb,x,.5\na,x,.6\n")


def test_users_who_want_nothing_are_spread_evenly(tmp_path: Path) -> None:
    users = read(tmp_path, "user,sku\na,x\nb,x\nc,x\nd,x\n", users_without=2)
    assert wishes(users) == [[1], [0], [1], [1], [0], [1]]
    assert "2 rounds of users who want nothing were added" in str(users.was_read)
    many = read(tmp_path, "user,sku\na,x\nb,x\n", users_without=7)
    assert sorted(row[0] for row in wishes(many)) == [0] * 7 + [1] * 2
    days = "user,sku,day\na,x,2024-05-01\na,x,2024-05-02\n"
    several = read(tmp_path, days, users_without=3)
    assert several.user_ids is not None
    assert len(set(several.user_ids.tolist())) == 4, "one user twice, and three who come once"
    wanting = several.user_ids[[row[0] == 1 for row in wishes(several)]]
    assert len(set(wanting.tolist())) == 1
    with pytest.raises(InvalidInput, match="that alone would tell a learner that they want nothing"):
        read(tmp_path, days, users_without=3, context="day")


# What is refused.


def test_all_bad_rows_are_told_together_by_line_and_reason(tmp_path: Path) -> None:
    lines = ["user,item,value,note", *(f"p{row},x,0.5," for row in range(100))]
    lines[4], lines[50], lines[99] = "p3,x,often,", "p49,x", "p98,x,1,2,3"
    lines[7] = 'p6,x,0.5,"two\nlines"'  # moves all lines below by one
    lines.insert(20, "")  # so does this one
    text = "\n".join(lines) + "\n"
    with pytest.raises(InvalidInput) as refused:
        read(tmp_path, text)
    assert str(refused.value) == (
        "orders.csv has 3 rows that cannot be used. line 5: value is not a number; lines 53, 102: not 4 columns, as "
        "above. Mend them; or leave them out, counted, with skip_bad=True, or --skip-bad on the command line."
    )
    users = read(tmp_path, text, skip_bad=True)
    assert len(users) == 97
    assert users.was_read is not None
    assert users.was_read.rows == 100
    assert users.was_read.skipped == {"value is not a number": 1, "there are not 4 columns, as above": 2}
    assert "Skipped as bad: 1 row where value is not a number; 2 rows where there are not 4" in str(
        users.was_read
    )


def test_ten_bad_rows_are_named_and_the_others_counted(tmp_path: Path) -> None:
    rows = "user,item,value\n" + "".join(f"p{row},x,{'.5' if row % 2 else 'no'}\n" for row in range(60))
    with pytest.raises(
        InvalidInput, match=r"30 rows .* lines 2, 4, 6, 8, 10, 12, 14, 16, 18, 20: .*; and 20 more"
    ):
        read(tmp_path, rows)
    ragged = "user,item,value\n" + "".join(f"p{row},x\n" for row in range(60)) + "a,x,1\n"
    with pytest.raises(
        InvalidInput, match=r"60 rows .* lines 2, 3, .*, 11: not 3 columns, as above; and 50 more"
    ):
        read(tmp_path, ragged)
    assert len(read(tmp_path, ragged, skip_bad=True)) == 1
    both = "user,item,value\n" + "a,x,no\nb,x\n" * 8
    with pytest.raises(
        InvalidInput, match=r"16 rows .* lines 2, 4, 6, 8, 10: .* lines 3, 5, 7, 9, 11: .*; and 6 more"
    ):
        read(tmp_path, both)


def test_a_scale_that_nobody_said_is_no_reason_to_skip_rows(tmp_path: Path) -> None:
    """Else a file of one to five stars would lose all but its worst ratings, and a wrong scale would hide."""
    stars = "user,film,stars\na,Up,5\nb,Up,1\nc,Up,55\n"
    with pytest.raises(
        InvalidInput, match=r"2 rows .* lines 2, 4: stars must be from 0 to 1\. Say what values mean"
    ):
        read(tmp_path, stars, skip_bad=True)
    users = read(tmp_path, stars, skip_bad=True, scale=(1, 5))
    assert wishes(users) == [[1], [0]]


def test_empty_cells_are_noted_in_python() -> None:
    with pytest.warns(ReadNote, match="Left out: 1 row where item is empty"):
        users = dim.from_ratings(["a", "b"], np.array(["x", None], dtype=object), [0.5, 0.5])
    assert len(users) == 1


def test_nothing_of_a_row_is_in_an_error(tmp_path: Path) -> None:
    rows = "user,sku,value,created_at\nADA,TEA,MUCH,2024-05-01\nBOB,TEA\nADA,TEA,1,NEVER\nADA,SOAP,1,2024-05-02\n"
    with pytest.raises(InvalidInput, match="3 rows") as refused:
        read(tmp_path, rows, round="day")
    assert not any(word in str(refused.value) for word in ("ADA", "TEA", "MUCH", "BOB", "NEVER"))


# Which column is what.


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("customer_id,sku,created_at", {"user": "customer_id", "item": "sku", "time": "created_at"}),
        (
            "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country",
            {
                "order": "InvoiceNo",
                "item": "StockCode",
                "time": "InvoiceDate",
                "user": "CustomerID",
                "quantity": "Quantity",
            },
        ),
        (
            "userId,movieId,rating,timestamp",
            {"user": "userId", "item": "movieId", "value": "rating", "time": "timestamp"},
        ),
        ("User Name,User ID,Product Name,Product", {"user": "User ID", "item": "Product"}),
        ("user,item,value,customer,sku", {"user": "user", "item": "item", "value": "value"}),
        (
            "order_date,order_status,order_total,item_price,customer_country,birth_date,updated_at",
            {"time": "order_date"},
        ),
        ("id,name,description,qty", {"quantity": "qty"}),
        ("user,user,sku", {"item": "sku"}),
    ],
)
def test_names_that_say_what_they_are(header: str, expected: dict[str, str]) -> None:
    assert guesses(header.split(",")) == expected


def test_columns_are_found_whatever_their_capitals_and_marks() -> None:
    header = ["Customer ID", "SKU", "Created-At"]
    result = roles(ReadAs(columns=("customer_id", "sku"), time="created at"), header, "f.csv")
    assert (result.user, result.item, result.value, result.time) == (
        "Customer ID",
        "SKU",
        None,
        "Created-At",
    )
    assert not result.guessed


def test_likely_columns_are_named_where_some_are_not_found(tmp_path: Path) -> None:
    rows = "customer_id,thing,created_at\na,x,2024-05-01\n"
    with pytest.raises(InvalidInput) as refused:
        read(tmp_path, rows)
    said = str(refused.value)
    assert "no column item; expected user,item,value and found customer_id,thing,created_at." in said
    assert "customer_id looks like the user, created_at like the time." in said
    assert "columns=('customer_id', 'COLUMN_OF_ITEM')" in said
    with pytest.raises(
        InvalidInput, match=r"no column user; expected user,thing .*customer_id looks like the user"
    ):
        read(tmp_path, rows, columns=("user", "thing"))
    with pytest.raises(InvalidInput, match=r"no column creatd_at of time. Did you mean created_at\?"):
        read(tmp_path, rows, columns=("customer_id", "thing"), time="creatd_at")
    with pytest.raises(InvalidInput, match="2 columns called id"):
        read(tmp_path, "id,id,sku\n1,2,x\n", columns=("id", "sku"))


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"columns": ("a",)}, "columns names those of user, item and value"),
        ({"columns": "user,film"}, "columns names those of user, item and value"),
        ({"round": "week"}, "A round is a user, order, session or day"),
        ({"round": "session:soon"}, "got 'session:soon'"),
        ({"round": "session:-1"}, "got 'session:-1'"),
        ({"round": "order:"}, "got 'order:'"),
        ({"round": "day:2"}, "got 'day:2'"),
        ({"users_without": -1}, "users_without must be a whole number from 0 on"),
    ],
)
def test_what_cannot_be_meant_is_refused(how: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        ReadAs(**how)


@pytest.mark.parametrize("text", ["", "\n\n", "user,sku\n", "user,sku\n\n"])
def test_nothing_to_read(text: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"orders\.csv has no (rows|column)"):
        read(tmp_path, text)


def test_a_quotation_mark_that_is_not_closed(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInput, match=r"1 row .* line 3: sku goes on in another line; a quotation mark may be"
    ):
        read(tmp_path, "user,sku\nc,z\n" + 'a,"x\n' + "b,y\n" * 100)
    with pytest.raises(
        InvalidInput, match=r"orders\.csv cannot be read .* perhaps a quotation mark is not closed"
    ):
        read(tmp_path, "user,sku\nc,z\n" + 'a,"x\n' + "b,y\n" * 1_000_000)
    inside = read(tmp_path, 'user,sku,name\na,x,"5 inch\nb,y,\nc,z,7 inch"\nd,x,\n')
    assert len(inside) == 2
    assert "Of its lines 2 are empty, or end within quotation marks." in str(inside.was_read)
    for end in ("", "\n"):
        assert "Of its lines 1 are empty" in str(read(tmp_path, "user,sku\n\na,x\nb,x" + end).was_read)
        assert "Of its lines" not in str(read(tmp_path, "user,sku\na,x\nb,x" + end).was_read)


# What exports of shops have.


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("13.05.24 9:05", "2024-05-13T09:05"),
        ("5/13/24, 12:07 AM", "2024-05-13T00:07"),
        ("5/13/2024 12:07:09 PM", "2024-05-13T12:07:09"),
        ("5/13/24 5:30pm", "2024-05-13T17:30"),
        ("2024-05-13 05:30 p.m.", "2024-05-13T17:30"),
        ("31.12.68", "2068-12-31T00:00"),
        ("31.12.69", "1969-12-31T00:00"),
        ("5/13/24 13:30 PM", None),
        ("5/13/24 5:75 PM", None),
        ("13.05.245", None),
    ],
)
def test_times_with_two_digits_for_the_year_or_with_am_and_pm(written: str, meant: str | None) -> None:
    _, (read, filler) = moments([written, "5/30/2024"])
    assert read == (meant and datetime.fromisoformat(meant).replace(tzinfo=UTC))
    assert filler == datetime(2024, 5, 30, tzinfo=UTC)


def test_returns_are_no_wishes(tmp_path: Path) -> None:
    rows = "user,sku,qty\na,x,1\na,y,-1\nb,x,-2\nb,y,3\nb,z,0\nb,z,0.5\nc,z,\n"
    users = read(tmp_path, rows)
    assert wishes(users) == [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "nothing is said of how many c bought"
    assert users.was_read is not None
    assert users.was_read.left_out == {"qty is below 1, as in a return": 4}
    rated = read(tmp_path, "user,sku,rating,qty\na,x,1,-1\n", columns=("user", "sku", "rating"))
    assert wishes(rated) == [[1]], "a rating says what they want"


def test_an_account_with_a_hundred_times_the_usual_orders_is_pointed_out(tmp_path: Path) -> None:
    rows = [
        "user,sku,order",
        *(f"u{n},x,{n}" for n in range(50)),
        *(f"GUEST,x,{100 + n}" for n in range(100)),
    ]
    said = str(read(tmp_path, "\n".join(rows) + "\n").was_read)
    assert (
        "One label in user has 100 rounds, where half of the users have 1 or fewer; it is first in line 52."
        in said
    )
    assert "GUEST" not in said
    assert "One label" not in str(read(tmp_path, "\n".join(rows[:-1]) + "\n").was_read)


def test_cells_that_list_items_are_pointed_out(tmp_path: Path) -> None:
    rows = 'user,items\na,"tea; soap"\nb,tea\nc,"soap; oil"\nd,"oil; tea"\n'
    listed = read(tmp_path, rows, columns=("user", "items"))
    assert "Most labels in items have a semicolon or a bar within: if a cell lists several" in str(
        listed.was_read
    )
    assert "Most labels" not in str(
        read(tmp_path, rows.replace("oil; tea", "oil"), columns=("user", "items")).was_read
    )


# Hours.


def test_whole_numbers_up_to_23_are_hours(tmp_path: Path) -> None:
    rows = "user,sku,hour\na,x,0\nb,x,9\nc,x,23\nd,x,\n"
    users = read(tmp_path, rows, context="hour:hour")
    assert users.contexts is not None
    assert users.types is not None
    assert [users.contexts.said(kind).get("hour:hour") for kind in users.types.tolist()] == [
        "0",
        "9",
        "23",
        None,
    ]
    for wrong in ("1439", "20240501", "-1"):
        with pytest.raises(
            InvalidInput, match=r"hour is not a column of times\. .*name the column alone: hour"
        ):
            read(tmp_path, rows.replace("23", wrong), context="hour:hour")
    with pytest.raises(InvalidInput, match="hour is not a column of times"):
        read(tmp_path, rows, context="hour:weekday")


def test_some_times_that_cannot_be_read_are_not_known(tmp_path: Path) -> None:
    rows = "user,sku,seen\na,x,2024-05-01T09:00:00Z\nb,x,soon\nc,x,2024-05-01 10:00\n"
    with pytest.warns(UserWarning, match="1 of 3 rows have no time in seen"):
        users = read(tmp_path, rows, context="seen:hour")
    assert users.types is not None
    assert np.count_nonzero(users.types == 0) == 1
