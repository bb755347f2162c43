"""Attacks on front ends and the store: private facts that cannot be read, clocks that are set back, copies put back."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from diminuendo.errors import LedgerDamaged
from diminuendo.service.front import front as fronts
from diminuendo.service.front.choose import Chooser
from diminuendo.service.front.front import BEHIND
from diminuendo.service.records import PublicMenu
from diminuendo.service.store import AnswerRow, Publication, UserRound
from diminuendo.service.store.sqlite import SqliteStore
from diminuendo.service.trainer.trainer import HEARTBEAT_EVERY
from tests.service.site import Site, block, spec
from tests.service.world import KINDS, TICK, World

UNREADABLE = (b"1e999", b"-1e999", b"9" * 5000, b'"\xff"', rb'{"country": 1e999}')
"""JSON whose values cannot be decoded."""
NOT_JSON = (b"NaN", rb'"\ud800"', b"nul", b"")
KIND: dict[str, Any] = {"kind": "types", "slates": ((0, 1), (1, 2), (2, 3)), "shown": ()}


def test_no_private_context_keeps_anybody_from_a_round(tmp_path: Path) -> None:
    """A refusal would show in the impressions of others, and in decisions of the same request."""
    columns: dict[str, Any] = {"contexts": {"country": ("DE", "FR")}}
    site = Site(tmp_path, hers=spec(private_contexts=True, exclusions=True, **columns), shop=spec(**columns))
    for name in site.numbers:
        site.publish(name, block(0, 500, **KIND))

    async def work() -> None:
        rounds = site.app.front.by_name["hers"].rounds
        path, other = "/v1/placements/hers/decisions", "/v1/placements/shop/decisions"
        for many, each in enumerate(UNREADABLE, start=1):
            for body in (
                b'{"context": %s}',
                b'{"exclude": ["plum", %s]}',
                b'{"exclude": %s, "user_id": "x"}',
            ):
                assert (await site.ask("POST", path, body % each)).status == 201, (body, each)
            result = await site.ask("POST", path, b'{"contexts": ["DE", %s, "FR"]}' % each)
            assert [one["slate"] for one in result.json["decisions"]] == [
                ["pear", "plum"], ["apple", "pear"], ["plum", "quince"]
            ]  # fmt: skip
            assert site.app.front.by_name["hers"].decisions == 6 * many
            assert (await site.ask("POST", other, b'{"context": %s}' % each)).status in (400, 422)
            assert (await site.ask("POST", path, b'{"user_id": %s}' % each)).status in (400, 422)
            assert (await site.ask("POST", path, b'{"count": %s}' % each)).status in (400, 422)
        for each in NOT_JSON:
            assert (await site.ask("POST", path, b'{"context": %s}' % each)).problem == "json"
        assert rounds.id_blocks > 0

    site.run(work)
    assert "fault" not in site.written.getvalue()


def test_no_row_of_a_list_takes_others_along(tmp_path: Path) -> None:
    site = Site(tmp_path, shop=spec())
    site.publish("shop", block(0, 500))

    async def work() -> None:
        for each in (*UNREADABLE, b'"," ', b"7", rb'"\\"'):
            shown = (await site.ask("POST", "/v1/placements/shop/decisions", {"count": 2})).json["decisions"]
            hers = b'{"token": "%s", "ratings": %s}'
            first, last = (b'{"token": "%s", "ratings": ["plum"]}' % one["token"].encode() for one in shown)
            before = len(site.kept("shop"))
            body = b"[%s, " % first + hers % (shown[0]["token"].encode(), each) + b", %s ] " % last
            reply = await site.ask("POST", "/v1/feedback", body)
            assert (reply.status, [one[:2] for one in reply.json["refused"]]) == (422, ["/1"]), each[:9]
            assert len(site.kept("shop")) == before + 2
        for broken in (*NOT_JSON[:3], b"{}, [{]", b"[{}", b"{}] x"):
            assert (await site.ask("POST", "/v1/feedback", b"[" + broken)).problem == "json"

    site.run(work)
    assert "fault" not in site.written.getvalue()


@pytest.mark.parametrize("id_block", [(0, 5), (0, 2), (1, 4), (3, 5)])
def test_chances_inside_an_id_block_are_those_of_all_arrangements(id_block: tuple[int, int]) -> None:
    """By brute force (docs/maths/late.md, Theorem L2): given what is outside, the bag, and what was shown before."""
    first, end = id_block
    slates = ((0, 1), (1, 2), (0, 1), (2, 0))  # the first and the third are the same
    next_ones, said = defaultdict[Any, Counter[Any]](Counter), dict[Any, float]()
    for shown in permutations((0, 0, 1, 2, 3)):
        menu = PublicMenu(1, "rounds", 2, 0, 5, (0, 1), slates, shown)
        bag = Chooser(menu, ("a", "b", "c"), hidden=False).bag(first, end)
        seen = [slates[row] for row in shown]
        for number in range(first, end):
            outside, inside = (*seen[:first], *seen[end:]), tuple(sorted(seen[first:end]))
            given = outside, inside, tuple(seen[first:number])
            next_ones[given][seen[number]] += 1
            chance = bag.chance(number, 0)
            assert chance is not None
            assert said.setdefault((given, seen[number]), chance) == chance
    for (given, slate), chance in said.items():
        assert chance == pytest.approx(next_ones[given][slate] / next_ones[given].total())


def test_a_clock_that_is_set_back_tells_nobody_when_somebody_answered(tmp_path: Path) -> None:
    result = []
    for answers in (False, True):
        wall = [100.0]
        with SqliteStore(tmp_path / f"{answers}.db", wall=lambda wall=wall: wall[0]) as store:  # type: ignore[misc]
            store.add_population("users", b"{}")
            store.add_placement("shop", "users", b"{}")
            store.publish(
                store.acquire_leadership("users", "trainer"),
                Publication(1, b"{}", 1, 0, None, 99, 0.0, b"", 0),
            )
            id_block = store.reserve_ids(1, 5, 5.0, None)
            wall[0] = 104.0
            if answers:
                store.put([AnswerRow(1, 2, b"said")])
                store.erase(1, [3])
                assert [row.at for row in store.answers(1, 0, 5)] == [104.0]
            wall[0] = 90.0
            result.append(
                (id_block, store.reserve_ids(1, 5, 5.0, None), store.now(), store.heartbeat("front"))
            )
    assert result[0] == result[1]


def test_a_store_that_was_put_back_counts_nobody_again(tmp_path: Path) -> None:
    """She has had her visit; a copy of before that is put back, with the same menu and the same head of its ledger."""
    world = World(tmp_path, place=KINDS["totals"])
    trainer = world.trainer(world.store)
    trainer.step()
    world.time += TICK
    world.store.close()
    copy = (tmp_path / "store.db").read_bytes()
    with world.opened() as store:
        id_block = store.reserve_ids(1, 1, 5.0, None)
        assert id_block is not None
        (counted,) = store.put([], [UserRound(1, b"h" * 16, 1, id_block.first)])
        assert counted.counts
        world.trainer(store).step()
        world.time += 2 * HEARTBEAT_EVERY
        world.trainer(store).step()
    (tmp_path / "store.db").write_bytes(copy)
    with world.opened() as store, pytest.raises(LedgerDamaged, match="restored from a copy"):
        world.trainer(store)


def test_an_answer_has_the_time_at_which_it_arrived_however_long_its_group_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hers would hold up others who are stored with it, at the very deadline past it."""
    site = Site(tmp_path, shop=spec())
    site.publish("shop", block(0, 500))
    put = SqliteStore.put

    def slowly(self: SqliteStore, *given: Any) -> Any:
        time.sleep(0.4)
        return put(self, *given)

    async def work() -> None:
        shown = (await site.ask("POST", "/v1/placements/shop/decisions", {})).json
        monkeypatch.setattr(SqliteStore, "put", slowly)
        asked = site.store.now()
        await site.ask("POST", "/v1/feedback", {"token": shown["token"], "ratings": ["plum"]})
        ((_, at),) = [(row.round, row.at) for row in site.store.answers(site.numbers["shop"], 0, 500)]
        assert asked - 3 * BEHIND < at < asked + 0.2 < site.store.now()

    site.run(work)


def test_how_long_the_store_takes_to_tell_the_time_moves_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a front end takes for the store's time goes by evenly, a little behind it, until it is clearly wrong."""
    site, wall, took = Site(tmp_path), [1000.0], [0.0]
    monkeypatch.setattr(fronts, "time", SimpleNamespace(monotonic=lambda: wall[0]))
    ahead = [0.0]

    def now(self: SqliteStore) -> float:
        result = wall[0] + ahead[0]
        wall[0] += took[0]
        return result

    monkeypatch.setattr(SqliteStore, "now", now)
    front = site.app.front
    front._look()
    behind = {wall[0] - front.clock()}
    for took[0] in (0.0, 0.001, 0.015, 0.0):
        front._look()
        behind.add(wall[0] - front.clock())
    assert max(behind) - min(behind) < 1e-9
    assert 0 < min(behind) <= 2 * BEHIND
    took[0], ahead[0] = 0.0, -3.0
    front._look()
    assert 0 < wall[0] + ahead[0] - front.clock() <= 2 * BEHIND
