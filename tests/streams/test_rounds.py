"""What a round is: rows of one user at other times are other rounds, in the order of time, and still hers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import diminuendo as dim
from diminuendo.errors import InvalidInput
from diminuendo.streams import ReadNote
from tests.kit.moments import moments

ROWS = [
    ("ada", "tea", "2024-05-03 09:00", "7"),
    ("bob", "tea", "2024-05-01 08:00", "2"),
    ("ada", "soap", "2024-05-01 10:00", "1"),
    ("ada", "salt", "2024-05-01 10:20", "1"),
    ("ada", "tea", "2024-05-01 11:00", "5"),
    ("bob", "soap", "2024-05-01 07:45", "3"),
]
"""Not in the order of time: Ada comes on two days, in three sessions, and Bob has two orders within half an hour."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadNote)
        yield


def table(*names: str) -> dict[str, list[str]]:
    columns = dict(zip(("customer", "sku", "created_at", "order_id"), zip(*ROWS, strict=True), strict=True))
    return {name: list(columns[name]) for name in ("customer", "sku", *names)}


def said(users: dim.Users) -> list[tuple[int, list[str]]]:
    """Whose each round is (numbers in the order of first rounds), and what is wanted in it."""
    assert users.labels is not None
    whose = range(len(users)) if users.user_ids is None else users.user_ids.tolist()
    numbers = {user: number for number, user in enumerate(dict.fromkeys(whose))}
    rows = users.matrices[0].toarray()
    return [
        (numbers[user], [users.labels[item] for item in np.flatnonzero(row)])
        for user, row in zip(whose, rows, strict=True)
    ]


ADA, BOB = 1, 0
BY_ROUND: dict[str, list[tuple[int, list[str]]]] = {
    "order": [(BOB, ["soap"]), (BOB, ["tea"]), (ADA, ["salt", "soap"]), (ADA, ["tea"]), (ADA, ["tea"])],
    "session": [(BOB, ["soap", "tea"]), (ADA, ["salt", "soap"]), (ADA, ["tea"]), (ADA, ["tea"])],
    "session:45": [(BOB, ["soap", "tea"]), (ADA, ["salt", "soap", "tea"]), (ADA, ["tea"])],
    "session:15": [(BOB, ["soap", "tea"]), (ADA, ["soap"]), (ADA, ["salt"]), (ADA, ["tea"]), (ADA, ["tea"])],
    "session:5": [
        (BOB, ["soap"]),
        (BOB, ["tea"]),
        (ADA, ["soap"]),
        (ADA, ["salt"]),
        (ADA, ["tea"]),
        (ADA, ["tea"]),
    ],
    "day": [(BOB, ["soap", "tea"]), (ADA, ["salt", "soap", "tea"]), (ADA, ["tea"])],
}


@pytest.mark.parametrize("kind", BY_ROUND)
def test_rounds_are_in_the_order_of_time_and_say_whose_they_are(kind: str) -> None:
    users = dim.from_table(table("created_at", "order_id"), round=kind)
    assert said(users) == BY_ROUND[kind]
    assert users.user_ids is not None
    assert users.was_read is not None
    assert (users.was_read.rounds, users.was_read.users) == (len(users), 2)
    assert repr(users).startswith(f"<Users: table, {len(users)} rounds of 2 users")
    some = users[1:3]
    assert some.user_ids is not None
    assert some.user_ids.tolist() == users.user_ids[1:3].tolist(), "a part of the stream has its own"


def test_nobody_wants_anything_before_she_does() -> None:
    """With whole users, what Ada takes on the third of May would count on the first."""
    users = dim.from_table(table("created_at", "order_id"))
    assert said(users) == BY_ROUND["order"], "orders, where there are more of them than users"
    assert "A round is an order of a user (--round says otherwise)" in str(users.was_read)
    users = dim.from_table(table("created_at"))
    assert said(users) == BY_ROUND["session"], "else sessions"
    assert "without a pause of more than 30 minutes (--round says otherwise)" in str(users.was_read)


def test_whole_users_where_that_is_asked_for_or_nothing_tells_rounds_apart() -> None:
    whole = [(0, ["salt", "soap", "tea"]), (1, ["soap", "tea"])]
    for columns, how in ((("created_at", "order_id"), {"round": "user"}), ((), {})):
        users = dim.from_table(table(*columns), **how)  # type: ignore[arg-type]
        assert said(users) == whole, "in the order of their first rows"
        assert users.user_ids is None
    by_time = dim.from_table(table("created_at"), round="user", time="created_at")
    assert said(by_time) == [(0, ["soap", "tea"]), (1, ["salt", "soap", "tea"])]
    once: dict[str, Any] = {
        "user": ["a", "a", "b"],
        "sku": ["x", "y", "x"],
        "date": ["2024-05-02", "2024-05-02", "2024-05-01"],
    }
    users = dim.from_table(once)
    assert users.user_ids is None
    assert said(users) == [(0, ["x", "y"]), (1, ["x"])], "nobody comes twice: as without times"


def test_numbers_that_are_no_times_put_orders_in_order_and_tell_no_sessions() -> None:
    steps: dict[str, Any] = {"user": ["a", "a"], "sku": ["x", "y"], "time": [105, 100], "order": [1, 2]}
    assert said(dim.from_table(steps)) == [(0, ["y"]), (0, ["x"])]
    del steps["order"]
    assert dim.from_table(steps).user_ids is None
    with pytest.raises(InvalidInput, match=r"a session is told by a column of times. time is not one"):
        dim.from_table(steps, round="session")
    with pytest.raises(
        InvalidInput, match=r"a day is told by a column of times. Name it, as time='created_at'"
    ):
        dim.from_table({"user": ["a"], "sku": ["x"]}, round="day")
    with pytest.raises(InvalidInput, match=r"no column that looks like orders. Name it, as order:COLUMN"):
        dim.from_table({"user": ["a"], "sku": ["x"]}, round="order")
    with pytest.raises(InvalidInput, match=r"no column ordr of orders. Did you mean order\?"):
        dim.from_table(steps | {"order": [1, 2]}, round="order:ordr")


@pytest.mark.parametrize(
    ("written", "months"),
    [
        (["1.5.2024", "02.05.2024 8:30"], [5, 5]),
        (["1/5/2024 8:26", "13/5/2024 8:26:30"], [5, 5]),
        (["1/5/2024", "1/13/2024"], [1, 1]),
        (["2024-05-01", "2024-06-01T00:00:00+02:00", "2024-05-01 10:00:00 UTC", "1.7.2024"], [5, 5, 5, 7]),
        (["1/5/2024", "5/1/2024"], None),
        (["13/5/2024", "5/13/2024"], None),
        (["yesterday", "soon"], None),
        (["32.1.2024"], None),
    ],
)
def test_dates_as_users_write_them(written: list[str], months: list[int] | None) -> None:
    """What may be May or January is not guessed."""
    are_times, read = moments(written)
    assert are_times == (months is not None)
    expected: list[int | None] = [None] * len(written) if months is None else [*months]
    assert [moment and moment.month for moment in read] == expected


def test_a_column_of_times_that_cannot_be_read_is_not_silently_ignored() -> None:
    rows: dict[str, Any] = {"user": ["a", "a"], "sku": ["x", "y"], "date": ["1/5/2024", "5/1/2024"]}
    with pytest.warns(ReadNote, match="date was not used: nothing in it can be read as a time."):
        users = dim.from_table(rows, columns=("user", "sku"))
    assert users.user_ids is None
    with pytest.raises(InvalidInput, match="data rows 1, 2: date is not a time"):
        dim.from_table(rows, time="date", round="user")


def test_rows_without_a_time_are_left_out_and_those_with_a_wrong_one_refused() -> None:
    rows: dict[str, Any] = {
        "user": ["a", "a", "b"],
        "sku": ["x", "y", "x"],
        "at": ["2024-05-01", "", "2024-05-02"],
    }
    users = dim.from_table(rows, round="day")
    assert users.was_read is not None
    assert users.was_read.left_out == {"at is empty": 1}
    with pytest.raises(InvalidInput, match="data row 2: at is not a time such as 2024-05-01 17:30:00"):
        dim.from_table(rows | {"at": ["2024-05-01", "soon", "2024-05-02"]}, round="day")
    users = dim.from_table(rows | {"at": ["2024-05-01", "soon", "2024-05-02"]}, round="day", skip_bad=True)
    assert len(users) == 2


@pytest.mark.filterwarnings("ignore:.*rows that differ")
def test_contexts_are_those_of_the_round() -> None:
    users = dim.from_table(table("created_at", "order_id"), round="day", context="created_at:weekday")
    assert users.contexts is not None
    assert users.types is not None
    known = [users.contexts.said(kind)["created_at:weekday"] for kind in users.types.tolist()]
    assert known == ["Wednesday", "Wednesday", "Friday"]
    rows: dict[str, Any] = {
        "user": ["", "a", "b"],
        "sku": ["x", "x", "x"],
        "device": ["phone", "desk", "watch"],
    }
    users = dim.from_table(rows, context="device")
    assert users.contexts is not None
    assert users.types is not None
    known = [users.contexts.said(kind)["device"] for kind in users.types.tolist()]
    assert known == ["desk", "watch"], "a row that is left out says nothing of others"


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no fault
@given(
    rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2 * 24 * 60)), min_size=1, max_size=60),
    minutes=st.integers(1, 300),
)
def test_sessions_and_days_against_a_loop(rows: list[tuple[int, int]], minutes: int) -> None:
    latest: dict[int, tuple[int, int]] = {}
    expected, firsts = dict[int, list[str]](), list[int]()
    for row in sorted(range(len(rows)), key=lambda row: rows[row][1]):
        who, minute = rows[row]
        last, number = latest.get(who, (-(10**9), -1))
        if minute - last > minutes:
            number = len(firsts)
            firsts.append(minute)
        latest[who] = minute, number
        expected.setdefault(number, []).append(str(row))
    start = 1_714_521_600  # midnight; the number of a row is its item
    table = {
        "who": [who for who, _ in rows],
        "what": [f"{row}" for row in range(len(rows))],
        "at": [start + 60 * minute for _, minute in rows],
    }
    asked: dict[str, Any] = {"columns": ("who", "what"), "time": "at"}
    users = dim.from_table(table, round=f"session:{minutes}", **asked)
    sessions = [wanted for _, wanted in said(users)]
    assert sorted(map(sorted, sessions)) == sorted(map(sorted, expected.values())), (
        "the same rows are together"
    )
    begun = [min(rows[int(row)][1] for row in wanted) for wanted in sessions]
    assert begun == sorted(firsts), "in the order of time"
    assert users.user_ids is not None
    whose = [{rows[int(row)][0] for row in wanted} for wanted in sessions]
    assert all(len(each) == 1 for each in whose)
    assert len(set(users.user_ids.tolist())) == len({who for who, _ in rows})
    days = dim.from_table(table, round="day", **asked)
    assert len(days) == len({(who, minute // (24 * 60)) for who, minute in rows})
