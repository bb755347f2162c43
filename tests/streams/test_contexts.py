"""Contexts at the door: what is known of users becomes a number, and a private one is never refused."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from diminuendo import Setting
from diminuendo.errors import InvalidInput
from diminuendo.streams import taste_groups
from diminuendo.streams.contexts import MOST_TYPES, OTHER, UNKNOWN, Contexts, as_contexts

BOTH = Contexts(country=["DE", "FR", OTHER], hour=24)
HIDDEN = Contexts(country=["DE", "FR", OTHER], hour=24, private=True)
STRICT = Contexts(country=["DE", "FR"])


def values(contexts: Contexts, context: Any) -> list[int]:
    """The numbers of the values of a context, by way of its type."""
    result: list[int] = contexts.values_of(np.array([contexts.type_of(context)]))[0].tolist()
    return result


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({"country": "DE", "hour": 9}, [0, 9]),
        ({"hour": "9"}, [UNKNOWN, 9]),
        (("FR", 23), [1, 23]),
        (["FR", None], [1, UNKNOWN]),
        (np.array(["FR", "0"]), [1, 0]),
        ({"country": "Atlantis"}, [2, UNKNOWN]),
        ({"country": None, "hour": np.int64(3)}, [UNKNOWN, 3]),
        ({}, [UNKNOWN, UNKNOWN]),
        (None, [UNKNOWN, UNKNOWN]),
    ],
)
@pytest.mark.parametrize("contexts", [BOTH, HIDDEN], ids=["public", "private"])
def test_by_name_or_in_order(contexts: Contexts, context: Any, expected: list[int]) -> None:
    assert values(contexts, context) == expected
    again = contexts.said(contexts.type_of(context))
    assert values(contexts, again) == expected, "what is said of a type is a context of that type"


def test_types_are_numbered_without_gaps_and_nobody_known_is_the_first() -> None:
    assert BOTH.sizes == (3, 24)
    assert BOTH.n_types == 4 * 25
    every = [
        BOTH.type_of((country, hour)) for country in (None, "DE", "FR", OTHER) for hour in (None, *range(24))
    ]
    assert sorted(every) == list(range(100))
    assert BOTH.type_of(None) == 0
    assert (BOTH.values_of(np.array([0])) == UNKNOWN).all()


def test_a_single_column_takes_the_value_alone() -> None:
    assert STRICT.type_of("FR") == STRICT.type_of({"country": "FR"}) == STRICT.type_of(["FR"])
    assert values(Contexts(hour=24), 7) == [7]


@pytest.mark.parametrize(
    ("contexts", "context", "said"),
    [
        (STRICT, "IT", "country must be one of DE, FR"),
        (STRICT, {"country": 3}, "country must be one of"),
        (BOTH, {"hour": 24}, "hour must be one of"),
        (BOTH, {"town": "Bonn"}, "got town besides"),
        (BOTH, ("DE",), "a value for each column"),
        (BOTH, "DE", "a value for each column"),
        (STRICT, ["DE", "FR"], "a value for each column"),
    ],
)
def test_a_public_context_that_is_not_listed_is_refused(contexts: Contexts, context: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        contexts.type_of(context)


class Rude(Mapping[str, Any]):
    """Raises whatever is asked of it."""

    def __getitem__(self, name: str) -> Any:
        raise ZeroDivisionError("DE")

    def __len__(self) -> int:
        raise ZeroDivisionError("DE")

    def __iter__(self) -> Any:
        raise ZeroDivisionError("DE")

    def __str__(self) -> str:
        raise ZeroDivisionError("DE")

    __repr__ = __str__


class RudeRow(Sequence[Any]):
    """A row that cannot be read."""

    def __getitem__(self, place: Any) -> Any:
        raise ZeroDivisionError("DE")

    def __len__(self) -> int:
        return 2


HOSTILE: list[Any] = [
    *("IT", b"DE", 3, -1, 10**6000, 1e300, float("nan"), True, object(), [], ["DE"], ["DE", 1, 2], [[], {}]),
    *({"town": 1}, {"country": Rude(), "hour": []}, {1: 2}, Rude(), RudeRow(), np.array("DE"), np.array([])),
    *(np.zeros((2, 2)), {"country": {"country": "DE"}}, "DE" * 10**6, ("DE", "\ud800"), range(2)),
]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_a_private_context_is_never_refused(number: int) -> None:
    """An error would tell others of it; it is one of the listed values, or not known."""
    for contexts in (HIDDEN, Contexts(country=["DE", "FR"], private=True)):
        result = contexts.type_of(HOSTILE[number])
        assert 0 <= result < contexts.n_types
        assert isinstance(result, int)


def test_a_private_value_that_is_not_listed_is_other_or_not_known() -> None:
    assert values(HIDDEN, {"country": "IT", "hour": 99}) == [2, UNKNOWN]
    assert values(HIDDEN, ["DE"]) == [UNKNOWN, UNKNOWN], "of too few values none is known"
    assert values(HIDDEN, {"country": "DE", "town": "Bonn"}) == [0, UNKNOWN]


def test_numbers_of_several_users() -> None:
    table = np.array([[0, 9], [-1, -1], [2, 23]])
    types = BOTH.types_of(table, 3)
    assert types.tolist() == [BOTH.type_of(("DE", 9)), 0, BOTH.type_of((OTHER, 23))]
    assert BOTH.values_of(types).tolist() == table.tolist()
    rows = [("DE", 9), None, {"country": OTHER, "hour": 23}]
    assert BOTH.types_of(rows, 3).tolist() == types.tolist()
    assert STRICT.types_of(np.array([1, -1]), 2).tolist() == STRICT.types_of([["FR"], None], 2).tolist()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint64, np.int32])
def test_numbers_of_any_width(dtype: Any) -> None:
    wide = Contexts(shelf=128)
    assert wide.types_of(np.array([0, 127], dtype=dtype), 2).tolist() == [1, 128]


def test_tables_at_the_door() -> None:
    for table, rounds in (
        (np.zeros((3, 1), int), 3),
        (np.zeros((2, 2), int), 3),
        ([None], 2),
        (np.zeros(4, int), 4),
    ):
        with pytest.raises(InvalidInput, match="contexts must have"):
            BOTH.types_of(table, rounds)
    far = np.array([[0, 24], [-2, 0], [3, 5], [1, 2**40]])
    with pytest.raises(InvalidInput, match="hour are numbered from 0 to 23"):
        BOTH.types_of(far[:1], 1)
    assert HIDDEN.values_of(HIDDEN.types_of(far, 4)).tolist() == [[0, -1], [-1, 0], [-1, 5], [1, -1]]
    with pytest.raises(InvalidInput):
        BOTH.types_of(np.array([[2**64 - 1, 0]], dtype=np.uint64), 1)


@pytest.mark.parametrize("contexts", [BOTH, HIDDEN, STRICT])
def test_files_hold_them(contexts: Contexts) -> None:
    again = as_contexts(json.loads(json.dumps(contexts.config())))
    assert again == contexts
    assert again is not None
    assert again.private == contexts.private
    assert as_contexts(contexts) is contexts
    assert as_contexts(None) is None


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"a": []},
        {"a": ["x", "x"]},
        {"a": [1, "1"]},
        {"a": 0},
        {"a": "DE"},
        {"a": True},
        {"a": None},
        {"a": 1.5},
    ],
)
def test_columns_at_the_door(columns: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Contexts(columns)


def test_there_is_a_slate_for_every_type_so_there_may_not_be_too_many() -> None:
    assert Contexts(a=MOST_TYPES - 1).n_types == MOST_TYPES
    with pytest.raises(InvalidInput, match="too many"):
        Contexts(a=MOST_TYPES)
    with pytest.raises(InvalidInput, match=r"\(999 \+ 1\) x \(999 \+ 1\)"):
        Contexts(a=999, b=999)
    for given in ({"country": ["DE"]}, "country", 3):
        with pytest.raises(InvalidInput, match="contexts must be"):
            as_contexts(given)
    with pytest.raises(InvalidInput):
        Setting(3, 1, 9, "full", 1.0, 1e-6, contexts="country")  # type: ignore[arg-type]


def test_streams_say_what_is_known_of_their_users() -> None:
    users = taste_groups(6, 5, groups=2, items_per_group=2, seed=0)
    with pytest.raises(InvalidInput, match="Nothing is known"):
        users.types_in(STRICT)
    known = users.with_contexts(STRICT, np.array([0, 1, -1, 0, 1, -1]))
    assert users.types is None, "a copy"
    assert known.types_in(STRICT).tolist() == [1, 2, 0, 1, 2, 0]
    assert known.types_in(Contexts(country=["DE", "FR"], private=True)).tolist() == [1, 2, 0, 1, 2, 0]
    assert known[1:4].types_in(STRICT).tolist() == [2, 0, 1]
    assert known[np.array([4, 0])].types_in(STRICT).tolist() == [2, 1]
    with pytest.raises(InvalidInput, match="the stream"):
        known.types_in(BOTH)
