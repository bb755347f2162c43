"""Decisions and feedback over HTTP: what is shown and stored, and that replies to feedback reveal nothing."""

from __future__ import annotations

import asyncio
import io
import json
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from diminuendo.errors import StoreUnavailable
from diminuendo.service.api import bodies
from diminuendo.service.front import placement
from diminuendo.service.log import Log
from diminuendo.service.records import Lists, PublicMenu, Report
from diminuendo.service.store import reasons
from tests.service.site import ITEMS, SLATES, Reply, Site, block, spec

NAMES = [[ITEMS[item] for item in slate] for slate in SLATES]

HELD_UP = 1.0
"""Seconds for which one request may hold up the loop, where many share a machine; a decision takes a millisecond."""


def test_a_block_is_shown_in_order_and_feedback_is_stored_encrypted(tmp_path: Path) -> None:
    site = Site(tmp_path, shop=spec())
    site.publish("shop", block(0, 30))

    async def work() -> None:
        many = (await site.ask("POST", "/v1/placements/shop/decisions", {"count": 30})).json["decisions"]
        assert [each["slate"] for each in many] == [NAMES[number % 3] for number in range(30)]
        assert many[0]["propensity"] == pytest.approx(1 / 3)
        assert many[-1]["propensity"] == 1.0
        over = await site.decide("shop")
        assert over["slate"] == ["quince", "apple"], "the fallback slate"
        assert over["propensity"] is None
        assert (await site.answer(many[4]["token"], ratings=["plum", "quince"])).status == 202
        assert (await site.answer(many[5]["token"], ratings={"pear": 0.25, "plum": 0})).status == 202
        rows = [{"token": each["token"], "ratings": []} for each in many[6:]]
        assert (await site.ask("POST", "/v1/feedback", rows)).status == 202
        kept = site.kept("shop")
        assert kept[4].ratings == {2: 1.0, 3: 1.0}
        assert kept[5].ratings == {1: 0.25}
        assert kept[5].shown.slate == SLATES[2]
        assert sorted(kept) == list(range(4, 30))

    site.run(work)


def test_replies_to_feedback_are_the_same_to_the_last_byte(tmp_path: Path) -> None:
    """First, second, late, over quota, to a fallback slate, erased: nobody can tell; and only the first counts."""
    site = Site(tmp_path, shop=spec("click"))
    site.publish("shop", block(0, 6))

    async def work() -> None:
        first, delay, gone = [(await site.decide("shop"))["token"] for _ in range(3)]
        named = [(await site.decide("shop", user_id="ann"))["token"] for _ in range(3)]
        fallback = (await site.decide("shop"))["token"]
        assert len({len(token) for token in (first, named[2], fallback)}) == 1
        assert (await site.ask("POST", "/v1/erasures", {"token": gone})).status == 202
        replies = [
            await site.answer(first, click=0),
            await site.answer(first, click=1),
            await site.answer(first, click=None),
            await site.answer(named[0], click=0),
            await site.answer(named[1], click=0),
            await site.answer(named[2], click=0),
            await site.answer(fallback, click=0),
            await site.answer(gone, click=0),
        ]
        site.publish("shop", block(6, 12, version=2), gc_low_water_mark=3)
        replies.append(await site.answer(delay, click=1))
        replies.append(await site.ask("POST", "/v1/feedback", [{"token": delay, "click": 1}]))
        assert len({msgspec.json.encode(reply) for reply in replies}) == 1
        assert replies[0].status == 202
        assert replies[0].body == b""
        assert {number: said.click for number, said in site.kept("shop").items()} == {3: 0}

    site.run(work)


def test_feedback_that_counts_for_nothing_is_written_like_others(tmp_path: Path, monkeypatch: Any) -> None:
    """A fallback slate's and one over quota: the store is handed a row of the same size, and commits it."""
    site = Site(tmp_path, shop=spec("click", max_rounds_per_user=2))
    site.publish("shop", block(0, 4))
    sizes, put = list[list[int]](), site.store.put

    async def work() -> None:
        tokens = [(await site.decide("shop", user_id="ann"))["token"] for _ in range(5)]
        shown = [site.app.front.serving.shown(token)[1] for token in tokens]
        assert [each.counts for each in shown] == [True, True, False, False, False]
        assert [each.round for each in shown] == [0, 1, 2, 3, -1], "the last one is shown a fallback slate"

        def kept(answers: Any, user_rounds: Any = ()) -> Any:
            sizes.append([len(row.encrypted) for row in answers])
            return put(answers, user_rounds)

        monkeypatch.setattr(site.store, "put", kept)
        for token in (*tokens, tokens[0]):
            assert (await site.answer(token, click=0)).status == 202
        assert len({tuple(each) for each in sizes}) == 1 == len(sizes[0]), sizes
        assert len(sizes) == 6
        assert set(site.kept("shop")) == {0, 1}

    site.run(work)


def test_encrypted_feedback_has_one_length(tmp_path: Path) -> None:
    site = Site(tmp_path, shop=spec("click"), wishes=spec(), slates=spec("bandit"))
    for name in site.numbers:
        site.publish(name, block(0, 30))

    async def work() -> None:
        all_said: dict[str, list[dict[str, Any]]] = {
            "shop": [{"click": None}, {"click": 1}],
            "wishes": [{"ratings": []}, {"ratings": list(ITEMS)}, {"ratings": {"pear": 0.1}}],
            "slates": [{"reward": 0}, {"reward": 0.123}, {"reward": 1e300}],
        }
        for name, said in all_said.items():
            for each in said:
                assert (await site.answer((await site.decide(name))["token"], **each)).status == 202
            sizes = {len(row.encrypted) for row in site.store.answers(site.numbers[name], 0, 99)}
            assert len(sizes) == 1
            assert len(site.kept(name)) == len(said)
        assert [each.reward for each in site.kept("slates").values()] == [0.0, 0.123, 1.0]

    site.run(work)


def test_a_user_is_counted_before_the_slate_and_once_for_each_request(tmp_path: Path) -> None:
    site = Site(tmp_path, shop=spec("click", max_rounds_per_user=2))
    site.publish("shop", block(0, 90))

    async def work() -> None:
        path, ann = "/v1/placements/shop/decisions", {"user_id": "ann"}
        one = (await site.ask("POST", path, ann, idempotency_key="a")).json
        again = (await site.ask("POST", path, ann, idempotency_key="a")).json
        assert again["slate"] == one["slate"]
        tokens = site.app.front.serving.shown
        assert tokens(again["token"])[1] == tokens(one["token"])[1]
        rest = [tokens((await site.decide("shop", user_id="ann"))["token"])[1] for _ in range(3)]
        assert [shown.counts for shown in rest] == [True, False, False]
        other = tokens((await site.decide("shop", user_id="bea"))["token"])[1]
        assert other.counts
        assert (await site.ask("POST", path, ann | {"count": 2})).json["pointer"] == "/user_id"
        assert (await site.ask("POST", "/v1/erasures", {"user_id": "ann", "placement": "shop"})).status == 202
        whole = site.store.erased(site.numbers["shop"], 0, 90)
        assert len(whole) == 3, "two that count, and the last"
        assert (await site.answer(one["token"], click=0)).status == 202
        assert site.kept("shop") == {}
        await site.app.front.by_name["shop"].rounds.close()
        reports = [row.report for row in site.store.id_blocks(site.numbers["shop"], 0)]
        silent = {number for report in reports if report for number in report.silent}
        assert silent == {1, rest[1].round, rest[2].round}, "sent again, and over quota"

    site.run(work)


def test_a_user_id_is_required_where_several_impressions_of_a_user_count(tmp_path: Path) -> None:
    """Without one, each request would count as a new user."""
    club = {"max_rounds_per_user": 2, "contexts": {"land": ("DE", "FR")}, "exclusions": True}
    site = Site(tmp_path, club=spec("click", **club), shop=spec("click"))
    for name in site.numbers:
        site.publish(name, block(0, 90))

    async def work() -> None:
        path, replies = "/v1/placements/{}/decisions", list[Reply]()
        one: dict[str, Any]
        for one in ({}, {"user_id": None}, {"context": {"land": "DE"}}, {"exclude": ["pear"]}):
            replies.append(await site.ask("POST", path.format("club"), one))
        for many in ({"count": 1}, {"count": 20}, {"contexts": [{"land": "DE"}, None]}):
            replies.append(await site.ask("POST", path.format("club"), many))
        for reply in replies:
            assert (reply.status, reply.problem, reply.json["pointer"]) == (422, "user_id", "/user_id")
            assert "name the user in" in reply.json["title"]
        assert site.app.front.by_name["club"].decisions == 0
        assert site.store.id_blocks(site.numbers["club"], 0) == [], (
            "no round is used, and no ID block asked for"
        )
        for empty in ("", 7, ["ann"]):
            reply = await site.ask("POST", path.format("club"), {"user_id": empty})
            assert (reply.status, reply.problem) == (422, "field")
        for both in ({"count": 1}, {"contexts": [None]}):
            reply = await site.ask("POST", path.format("club"), {"user_id": "ann"} | both)
            assert (reply.problem, reply.json["pointer"]) == ("field", "/user_id")
        tokens = [(await site.decide("club", user_id="ann"))["token"] for _ in range(5)]
        for token in tokens:
            assert (await site.answer(token, click=0)).status == 202
        assert len(site.kept("club")) == 2, "of five answers of one user two"
        for body in ({}, {"count": 3}, {"user_id": "ann"}):
            assert (await site.ask("POST", path.format("shop"), body)).status == 201
        said = (await site.ask("GET", "/v1/openapi.json", key=None)).json["components"]
        assert "422 user" in said["responses"]["problem"]["description"]
        user_id = said["schemas"]["DecisionRequest"]["properties"]["user_id"]
        assert "Required where the placement's max_rounds_per_user is more than 1" in user_id["description"]

    site.run(work)


MANY = tuple(f"thing {number}" for number in range(100_000))


def test_long_exclusions_do_not_hold_up_other_requests(tmp_path: Path) -> None:
    """A thousand decisions without the ten thousand best of a hundred thousand items, where a cap keeps the next
    thousands away. Meanwhile the loop turns: feedback of others is taken in as it arrives."""
    inside = (-1,) * 10_000 + (0,) * 20_000 + (-1,) * 70_000
    lists = Lists((0, len(MANY)), tuple(range(len(MANY))), inside=inside, parents=(-1,), most=(1,))
    site = Site(tmp_path, shop=spec("click", items=MANY, slots=5, exclusions=True))
    menu = PublicMenu(1, "one", 5, 0, None, (0, 1, 2, 3, 4), ((0, 1, 2, 3, 4),), lists=lists, head="0f")
    site.publish("shop", menu)
    gaps = list[float]()

    async def heartbeat() -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(0.001)
            gaps.append(time.monotonic() - last)
            last += gaps[-1]

    async def work() -> None:
        path, most = "/v1/placements/shop/decisions", bodies.MOST_EXCLUDED
        beating = asyncio.create_task(heartbeat())
        reply = await site.ask("POST", path, {"count": 1000, "exclude": MANY[:most]})
        beating.cancel()
        slates = {tuple(each["slate"]) for each in reply.json["decisions"]}
        assert slates == {(MANY[10_000], *MANY[30_000:30_004])}
        assert len(gaps) > 5
        assert max(gaps) < HELD_UP, "seconds, of a request that took many without this"
        used = site.app.front.by_name["shop"].decisions
        for one in ({}, {"count": 2}):
            reply = await site.ask("POST", path, one | {"exclude": MANY[: most + 1]})
            assert (reply.status, reply.problem, reply.json["pointer"]) == (422, "exclusions", "/exclude")
            assert f"{most:,}" in reply.json["title"]
        assert site.app.front.by_name["shop"].decisions == used + 3, (
            "others have the same rounds as if it were shorter"
        )

    site.run(work)


def test_with_the_store_away_fallbacks_are_shown_and_feedback_is_not_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path, shop=spec("click"))
    site.publish("shop", block(0, 90))

    def away(*given: object) -> None:
        raise StoreUnavailable("away")

    async def work() -> None:
        token = (await site.decide("shop"))["token"]
        with monkeypatch.context() as broken:
            for call in ("put", "reserve_ids", "menus", "now", "placements", "heartbeat", "erase"):
                broken.setattr(site.store, call, away)
            for _ in range(30):
                assert len((await site.decide("shop"))["slate"]) == 2
            named = await site.decide("shop", user_id="ann")
            assert named["propensity"] is None
            reply = await site.answer(token, click=0)
            assert reply.problem == "unavailable"
            assert dict(reply.headers)[b"retry-after"] == b"1"
            assert (await site.ask("POST", "/v1/erasures", {"token": token})).problem == "unavailable"
            await site.app.front.look()
            assert (await site.ask("GET", "/readyz")).problem == "unavailable"
            assert (await site.ask("GET", "/healthz")).json["store_writable"] is False
        assert (await site.answer(token, click=0)).status == 202
        assert site.kept("shop")[0].click == 0
        await site.app.front.look()
        await site.app.front.store_probe()
        assert (await site.ask("GET", "/readyz")).json["healthy"]

    site.run(work)


def test_contexts_and_exclusions(tmp_path: Path) -> None:
    columns = {"country": ("DE", "FR")}
    menu = PublicMenu(
        1,
        "types",
        2,
        0,
        None,
        (0, 1),
        ((0, 1), (1, 2), (2, 3)),
        lists=Lists((0, 4), (0, 1, 2, 3)),
        ranking=(3,),
    )
    site = Site(
        tmp_path,
        open=spec(contexts=columns),
        hers=spec(contexts=columns, private_contexts=True, exclusions=True),
        plain=spec(),
    )
    for name in ("open", "hers"):
        site.publish(name, menu)
    site.publish("plain", block(0, 9))

    async def work() -> None:
        assert (await site.decide("open", context={"country": "FR"}))["slate"] == ["plum", "quince"]
        many = await site.decide("open", contexts=[None, "DE", ["FR"]])
        assert [each["slate"][0] for each in many["decisions"]] == ["apple", "pear", "plum"]
        assert many["decisions"][0]["propensity"] == 1.0
        path = "/v1/placements/open/decisions"
        for body, pointer in (
            ({"context": "XX"}, "/context"),
            ({"contexts": ["DE", "XX"]}, "/contexts/1"),
            ({"contexts": ["DE"], "count": 2}, "/contexts"),
            ({"exclude": ["pear"]}, "/exclude"),
        ):
            assert (await site.ask("POST", path, body)).json["pointer"] == pointer
        assert (await site.ask("POST", "/v1/placements/plain/decisions", {"context": 1})).json[
            "pointer"
        ] == "/context"
        strange: list[Any] = ["XX", {"strange": []}, [1, 2, 3], {"country": {"a": []}}, 10**400]
        for context in strange:
            hers = await site.decide("hers", context=context)
            assert hers["slate"] == ["apple", "pear"], "never refused"
            assert hers["propensity"] is None
        hers = await site.decide("hers", context="DE", exclude=["pear", "kiwi", 7, None])
        assert hers["slate"] == ["quince", "plum"]
        await site.decide("hers", exclude={"no": "list"})
        rounds = site.app.front.by_name["open"].rounds
        await rounds.close()
        said = [row.report for row in site.store.id_blocks(site.numbers["open"], 0) if row.report is not None]
        assert [type_ for report in said for type_ in report.types] == [2, 0, 1, 2]
        await site.app.front.by_name["hers"].rounds.close()
        hidden = [
            row.report for row in site.store.id_blocks(site.numbers["hers"], 0) if row.report is not None
        ]
        assert sum(report.used for report in hidden) == 7
        assert all(report == Report(report.first, report.used) for report in hidden), "no types"

    site.run(work)


def test_the_signal_is_measured_and_logged_when_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the menu that says so, and not before it takes effect."""
    monkeypatch.setattr(placement, "KNOWN_BY", 0.0)
    site, lines = Site(tmp_path, shop=spec("click")), io.StringIO()
    site.publish("shop", block(0, 9, signal="too early to tell"))
    measured = b'diminuendo_signal{front="front-0",placement="shop",state="%s"} 1.0'

    async def work() -> None:
        site.app.front.log = Log(lines)
        await site.app.front.look()
        numbers = (await site.ask("GET", "/metrics", key="admin")).body
        assert measured % b"too early to tell" in numbers
        site.publish("shop", block(9, 20, version=2, head="1f", signal="no signal"), later=0.3)
        await site.app.front.look()
        assert b"no signal" not in (await site.ask("GET", "/metrics", key="admin")).body
        await asyncio.sleep(0.4)
        for _ in range(2):
            await site.app.front.look()
        assert measured % b"no signal" in (await site.ask("GET", "/metrics", key="admin")).body

    site.run(work)
    said = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert [line["state"] for line in said if line["happened"] == "signal"] == ["no signal"]


def test_a_menu_takes_effect_at_its_time_and_a_rolled_back_store_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path, shop=spec("click"))
    site.publish("shop", block(0, 9))

    async def work() -> None:
        menu = await site.ask("GET", "/v1/placements/shop/menu", key=None)
        tag = dict(menu.headers)[b"etag"].decode()
        assert tag == '"1-0f"'
        assert menu.json["items"] == ["apple", "pear", "plum", "quince"]
        assert menu.json["columns"] == []
        script = await site.ask("GET", "/diminuendo.js", key=None)
        assert script.body.startswith(b"// Chooses")
        assert dict(script.headers)[b"content-type"] == b"text/javascript"
        assert (await site.ask("GET", "/v1/placements/shop/menu", key=None, if_none_match=tag)).status == 304
        site.publish("shop", block(9, 20, version=2, head="1f", spent=(0.25, 1.0)), later=0.1)
        await site.app.front.look()
        assert (await site.ask("GET", "/v1/placements/shop/menu", key=None)).json["version"] == 1
        result = (await site.ask("GET", "/v1/placements/shop/versions", key="auditor")).json
        assert [each["version"] for each in result["versions"]] == [1]
        assert b"menu_version" in (numbers := (await site.ask("GET", "/metrics", key="admin")).body)
        assert b'menu_version{front="front-0",placement="shop"} 1.0' in numbers
        assert b"spent_epsilon{" not in numbers
        await asyncio.sleep(0.4)
        result = (await site.ask("GET", "/v1/placements/shop/versions", key="auditor")).json
        assert [each["version"] for each in result["versions"]] == [1, 2]
        assert (await site.ask("GET", "/v1/placements/shop/menu", key=None)).json["version"] == 1
        monkeypatch.setattr(placement, "KNOWN_BY", 0.0)  # as if all front ends had had time to look
        assert (await site.ask("GET", "/v1/placements/shop/menu", key=None)).json["version"] == 2
        numbers = (await site.ask("GET", "/metrics", key="admin")).body
        assert b'diminuendo_ledger_spent_epsilon{population="users"} 0.25' in numbers
        assert b'diminuendo_ledger_budget_epsilon{population="users"} 1.0' in numbers
        assert (await site.decide("shop"))["slate"] == NAMES[0]
        result = (await site.ask("GET", "/v1/placements/shop/versions?after=1", key="auditor")).json
        assert [each["version"] for each in result["versions"]] == [2]
        id_block = site.store.reserve_ids  # a store restored from a copy: its ID blocks are of an older menu

        def older(*given: object) -> object:
            result = id_block(*given)  # type: ignore[arg-type]
            return (
                None
                if result is None
                else type(result)(result.first, result.end, 1, result.at, result.expires_at)
            )

        monkeypatch.setattr(site.store, "reserve_ids", older)
        await site.app.front.by_name["shop"].rounds.close()
        assert (await site.decide("shop"))["propensity"] is None
        assert (await site.ask("GET", "/readyz")).json["why"] == reasons.ROLLED_BACK

    site.run(work)


def test_a_front_end_whose_note_is_forgotten_knows_that_the_store_was_rolled_back(tmp_path: Path) -> None:
    """It had no requests: it has seen no ID block, nor a menu that is gone."""
    site = Site(tmp_path, shop=spec("click"))
    site.publish("shop", block(0, 100))
    live, old = sqlite3.connect(tmp_path / "site.db"), sqlite3.connect(tmp_path / "old.db")

    async def work() -> None:
        await site.app.front.store_probe()
        live.backup(old)
        token = (await site.decide("shop"))["token"]
        await site.app.front.store_probe()
        old.backup(live)
        assert (await site.ask("GET", "/readyz")).status == 200
        await site.app.front.store_probe()
        assert (await site.decide("shop"))["propensity"] is None, "a fallback slate"
        assert (await site.answer(token, click=0)).status == 503, "and nothing is acknowledged"
        assert (await site.ask("GET", "/readyz")).json["why"] == reasons.ROLLED_BACK

    site.run(work)
    for each in (live, old):
        each.close()


def test_a_front_end_loads_nothing_that_computes() -> None:
    code = (
        "import sys, diminuendo.service.api, diminuendo.service.store.sqlite\n"
        "print({name.partition('.')[0] for name in sys.modules} & {'numba', 'numpy', 'scipy', 'llvmlite'})"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"
    whole = code.replace("import sys,", "import sys, diminuendo.service.__main__,").replace("'numpy', ", "")
    result = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


def test_a_site_is_not_ready_before_its_first_menu_takes_effect(tmp_path: Path) -> None:
    site = Site(tmp_path, shop=spec("click"))
    site.publish("shop", block(0, 9), later=0.3)

    async def work() -> None:
        await site.app.front.store_probe()
        ready = await site.ask("GET", "/readyz", key=None)
        assert (ready.problem, ready.json["why"]) == ("unavailable", reasons.NO_MENU)
        assert (await site.ask("GET", "/healthz", key=None)).json["placements"] == {"shop": False}
        assert (await site.ask("POST", "/v1/placements/shop/decisions", {})).problem == "unavailable"
        await asyncio.sleep(0.4)
        assert (await site.ask("GET", "/readyz", key=None)).status == 200
        assert (await site.ask("POST", "/v1/placements/shop/decisions", {})).status == 201

    site.run(work)
