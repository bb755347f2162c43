"""Front ends choose as learners do, in plain Python: compared with compiled menus, and by counting."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from diminuendo.errors import InvalidInput
from diminuendo.learners.base.menu import SlateByType
from diminuendo.learners.base.rules.lists import Lists as CompiledLists
from diminuendo.service.front import backfill
from diminuendo.service.front.choose import Chooser
from diminuendo.service.front.contexts import Types
from diminuendo.service.records import Lists, PublicMenu
from diminuendo.streams.contexts import Contexts
from diminuendo.streams.exclusions import exclusions_of

N, SLOTS, TYPES = 12, 4, 3


def random_lists(rng: np.random.Generator) -> Lists:
    """Lists for all slots or each, pinned items, and capped sets inside each other, at random."""
    pinned = [-1] * SLOTS
    for slot in range(SLOTS):
        if rng.random() < 0.2:
            pinned[slot] = slot
    free = [item for item in range(N) if item not in pinned]
    rows = [
        sorted(rng.choice(free, rng.integers(1, len(free) + 1), replace=False).tolist()) for _ in range(SLOTS)
    ]
    if rng.random() < 0.3:
        rows = rows[:1]
    sets = int(rng.integers(0, 4))
    parents = [int(rng.choice([-1, *range(each + 1, sets)])) for each in range(sets)]
    return Lists(
        starts=tuple(np.cumsum([0, *map(len, rows)]).tolist()),
        items=tuple(item for row in rows for item in row),
        pinned=tuple(pinned) if max(pinned) >= 0 else (),
        inside=tuple(rng.integers(-1, sets, N).tolist()) if sets else (),
        parents=tuple(parents),
        most=tuple(rng.integers(0, 4, sets).tolist()),
    )


def compiled(lists: Lists) -> CompiledLists:
    kinds = (np.int64, np.int32, np.int32, np.int64, np.int64, np.int64)
    parts = (lists.starts, lists.items, lists.pinned, lists.inside, lists.parents, lists.most)
    return CompiledLists(*(np.array(part, dtype=kind) for part, kind in zip(parts, kinds, strict=True)))


def test_exclusions_are_left_out_as_compiled_choosers_do() -> None:
    rng = np.random.default_rng(7)
    changed = 0
    for _ in range(400):
        lists = random_lists(rng)
        slates = np.array([rng.permutation(N)[:SLOTS] for _ in range(TYPES)], dtype=np.int32)
        slates[rng.random(slates.shape) < 0.1] = -1
        own = np.array([rng.permutation(N)[:3] for _ in range(TYPES)], dtype=np.int32)
        own[rng.random(own.shape) < 0.2] = -1
        ranking = rng.permutation(N)[: rng.integers(0, N)].astype(np.int32)
        menu = SlateByType(N, SLOTS, 0, None, 0, slates, own=own, ranking=ranking, lists=compiled(lists))
        said = [rng.choice(N, rng.integers(0, N + 1), replace=False).tolist() for _ in range(TYPES)]
        types = rng.integers(0, TYPES, TYPES)
        expected = slates[types].copy()
        menu.chooser().without(expected, exclusions_of(said, TYPES, N), types)
        public = PublicMenu(
            1, "types", SLOTS, 0, None, (0,) * SLOTS, tuple(map(tuple, slates.tolist())), lists=lists,
            own=tuple(map(tuple, own.tolist())), ranking=tuple(ranking.tolist()),
        )  # fmt: skip
        chooser = Chooser(public, "abcdefghijkl", True)
        for each, type_ in enumerate(types.tolist()):
            result = chooser.slate(5, type_, backfill.Excluded(said[each]))
            assert list(result) == expected[each].tolist()
            changed += result != tuple(slates[type_])
        # One request for several decisions: what was found out for one of them is used again for the next.
        expected, request = slates.copy(), backfill.Excluded(said[0])
        menu.chooser().without(expected, exclusions_of([said[0]] * TYPES, TYPES, N), np.arange(TYPES))
        for type_ in [*range(TYPES), *range(TYPES)]:
            assert list(chooser.slate(5, type_, request)) == expected[type_].tolist()
    assert changed > 400


class Touched(tuple[int, ...]):
    """A list of which it is counted how often an item is read."""

    times = 0

    def __getitem__(self, at: Any) -> Any:
        Touched.times += 1
        return super().__getitem__(at)

    def __iter__(self) -> Any:
        for item in super().__iter__():
            Touched.times += 1
            yield item


@pytest.mark.parametrize("ranked", [True, False], ids=["ranking", "by number"])
def test_the_work_of_a_request_grows_with_what_is_excluded_and_not_with_decisions(
    ranked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand decisions of one request at a hundred thousand items, each without the ten thousand best of them."""
    many, slots, excluded, decisions = 100_000, 5, 10_000, 1_000
    lists = Lists((0, many), Touched(range(many)))
    ranking = Touched(range(many)) if ranked else Touched()
    rng = np.random.default_rng(3)
    rows = [tuple(rng.choice(excluded, slots, replace=False).tolist()) for _ in range(decisions)]
    menu = PublicMenu(1, "random", slots, 0, None, rows[0], lists=lists, ranking=ranking)
    chooser, drawn = Chooser(menu, range(many), True), iter(rows)  # type: ignore[arg-type]
    monkeypatch.setattr(backfill, "drawn", lambda *given: next(drawn))
    request, Touched.times = backfill.Excluded(range(excluded)), 0
    result = [chooser.slate(0, 0, request) for _ in range(decisions)]
    assert set(result) == {tuple(range(excluded, excluded + slots))}
    steps = 2 * many.bit_length()  # of a search, with what is read beside it
    assert Touched.times <= steps * (excluded + decisions * slots * slots)
    few = backfill.Excluded([rows[0][0]])
    chooser, drawn, Touched.times = Chooser(menu, range(many), True), iter(rows[:1]), 0  # type: ignore[arg-type]
    assert chooser.slate(0, 0, few) != rows[0]
    assert Touched.times <= steps * slots, "and not with the catalogue"


def test_random_slates_are_uniform_and_keep_to_the_rules() -> None:
    plain = Lists((0, 3), (0, 2, 3))
    result = Counter(backfill.drawn(plain, 2) for _ in range(6000))
    assert set(result) == set(permutations((0, 2, 3), 2))
    assert max(abs(many - 1000) for many in result.values()) < 6 * np.sqrt(1000)  # six deviations
    rng = np.random.default_rng(3)
    for _ in range(300):
        lists = random_lists(rng)
        slate = backfill.drawn(lists, SLOTS)
        shown = [item for item in slate if item >= 0]
        assert len(set(shown)) == len(shown)
        row = backfill.Row(lists, slate)
        pins = sum(item >= 0 for item in lists.pinned)
        assert all(row._counts[each] <= max(lists.most[each], pins) for each in range(len(lists.most)))
        for slot, item in enumerate(slate):
            low, high = row.bounds(slot)
            if lists.pinned and lists.pinned[slot] >= 0:
                assert item == lists.pinned[slot]
            else:
                assert item in lists.items[low:high] or item == -1


def test_a_caps_exhausted_draw_ends_and_leaves_slots_empty() -> None:
    lists = Lists((0, 4), (0, 1, 2, 3), inside=(0, 0, 0, 0), parents=(-1,), most=(1,))
    for _ in range(20):
        assert sorted(backfill.drawn(lists, 3))[:2] == [-1, -1]


def test_chances_are_those_of_a_uniform_order_given_the_id_block() -> None:
    """By listing: all orders of a block, and of each the ID block; given its bag and the order so far, what
    comes next."""
    slates, first, end = ((0, 1), (1, 2), (0, 1)), 11, 15
    deck = (0, 0, 1, 2, 1)  # rows 0 and 2 show the same
    same = {0: 0, 1: 1, 2: 0}
    orders = {tuple(order) for order in permutations(deck)}
    for order in orders:
        menu = PublicMenu(1, "rounds", 2, 10, 15, (0, 1), slates, order)
        bag = Chooser(menu, "abc", False).bag(first, end)
        mine = [same[row] for row in order[1:]]
        for place in range(end - first):
            alike = [
                other for other in permutations(deck)
                if sorted(same[row] for row in other[1:]) == sorted(mine)
                and [same[row] for row in other[1 : 1 + place]] == mine[:place]
            ]  # fmt: skip
            expected = sum(same[other[1 + place]] == mine[place] for other in alike) / len(alike)
            assert bag.chance(first + place, 0) == pytest.approx(expected, abs=1e-12)


def test_groups_have_decks_of_their_own_and_hidden_chances_are_not_said() -> None:
    menu = PublicMenu(
        1, "groups", 1, 0, 4, (0,), ((0,), (1,), (2,)), groups=(0, 1, 1), decks=((0, 0, 1, 1), (2, 1, 2, 2))
    )
    chooser = Chooser(menu, "abc", False)
    bag = chooser.bag(0, 4)
    assert [chooser.slate(0, type_) for type_ in range(3)] == [(0,), (2,), (2,)]
    assert [bag.chance(number, 0) for number in range(4)] == [2 / 4, 1 / 3, 1.0, 1.0]
    assert [bag.chance(number, 2) for number in range(4)] == [3 / 4, 1 / 3, 1.0, 1.0]
    assert Chooser(menu, "abc", True).bag(0, 4).chance(0, 0) is None
    lists = Lists((0, 3), (0, 1, 2))
    random = PublicMenu(1, "random", 2, 0, None, (0, 1), lists=lists)
    assert Chooser(random, "abc", False).bag(0, 9).chance(0, 0) == 1 / 6


@pytest.mark.parametrize("private", [False, True])
def test_types_are_numbered_as_the_library_does(private: bool) -> None:
    columns = {"country": ["DE", "FR", "other"], "hour": ["0", "1", "2"]}
    theirs, ours = Contexts(columns, private=private), Types(columns, private)
    given: list[Any] = [
        None, {}, {"country": "DE"}, {"country": "XX", "hour": 2}, {"hour": "1"}, {"hour": 7}, {"strange": 1},
        ["FR", 1], ["FR"], ["FR", None], "DE", 3, True, [], [[], {}], {"hour": 1.0}, {"country": None},
        {"hour": 10**5000}, ["other", True],
    ]  # fmt: skip
    for context in given:
        try:
            expected = theirs.type_of(context)
        except ValueError:
            assert not private
            with pytest.raises(InvalidInput):
                ours.of(context)
        else:
            assert ours.of(context) == expected
