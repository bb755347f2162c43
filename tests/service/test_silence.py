"""Nothing that users say gets out (logs, metrics, errors, files), and nothing that anybody sends breaks anything."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from msgspec import ValidationError

from diminuendo.errors import DiminuendoError
from diminuendo.service.api import decisions
from diminuendo.service.api.bodies import FIELDS
from diminuendo.service.api.problems import KINDS, pointer
from diminuendo.service.api.routes import OPERATIONS
from diminuendo.service.log import Log
from diminuendo.service.records import Lists
from tests.service.site import KEYS, Site, block, served, spec

USER_ID, CONTEXT, UNKNOWN, WEIGHT = "Zebedee Planted", "planted-diagnosis", "planted-item", 0.7351923461


def test_what_is_planted_appears_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(
        tmp_path,
        shop=spec(contexts={"country": ("DE", "FR")}, private_contexts=True, exclusions=True),
        open=spec(contexts={"country": ("DE", "FR")}),
    )
    deck = {
        "kind": "types",
        "slates": ((0, 1), (1, 2), (2, 3)),
        "shown": (),
        "lists": Lists((0, 4), (0, 1, 2, 3)),
    }
    for name in site.numbers:
        site.publish(name, block(0, 500, **deck))
    seen: list[Any] = []

    async def work() -> None:
        path = "/v1/placements/shop/decisions"
        asked = {"user_id": USER_ID, "context": CONTEXT, "exclude": ["plum", UNKNOWN]}
        token = (await site.ask("POST", path, asked)).json["token"]
        seen.append(await site.answer(token, ratings={"quince": WEIGHT}))
        seen.append(await site.answer(token, ratings={UNKNOWN: WEIGHT}))
        seen.append(await site.answer(token, ratings={"quince": WEIGHT + 1}))
        seen.append(await site.answer(token, ratings=UNKNOWN))
        seen.append(await site.answer(token, **{UNKNOWN: 1}))
        seen.append(await site.answer(token[:-4] + "AAAA", ratings=[UNKNOWN]))
        seen.append(
            await site.ask("POST", "/v1/feedback", [{"token": token, "ratings": [UNKNOWN]}, UNKNOWN, 7])
        )
        seen.append(await site.ask("POST", "/v1/placements/open/decisions", {"context": CONTEXT}))
        seen.append(await site.ask("POST", "/v1/placements/open/decisions", {CONTEXT: USER_ID}))
        seen.append(await site.ask("POST", f"/v1/placements/{UNKNOWN}/decisions", {}))
        seen.append(await site.ask("POST", "/v1/erasures", {"user_id": USER_ID, "placement": UNKNOWN}))
        with monkeypatch.context() as broken:

            def fails(*given: object) -> None:
                raise DiminuendoError(f"{USER_ID} {WEIGHT} {CONTEXT}")

            broken.setattr(decisions, "_ratings", fails)
            seen.append(await site.answer(token, ratings={"quince": WEIGHT}))
            assert seen[-1].problem == "fault"
            assert seen[-1].json["trace"] in site.written.getvalue()
        seen.append(await site.ask("POST", "/v1/erasures", {"user_id": USER_ID, "placement": "shop"}))
        await site.app.front.store_probe()
        for page in (
            "/metrics",
            "/healthz",
            "/readyz",
            "/v1/placements",
            "/v1/placements/shop",
            "/v1/openapi.json",
        ):
            seen.append(await site.ask("GET", page, key="admin"))
        seen.append(site.store.heartbeats())
        seen.append(site.written.getvalue())
        seen.append(token)
        assert len([each for each in seen if getattr(each, "status", 0) == 202]) == 2

    site.run(work)
    told = repr(seen).encode() + b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"shop" in told
    for planted in (USER_ID, CONTEXT, UNKNOWN, str(WEIGHT)[2:], "Zebedee"):
        assert planted.encode() not in told
    assert seen[-1] not in site.written.getvalue()
    for line in site.written.getvalue().splitlines():
        assert json.loads(line).keys() <= {
            "at",
            "happened",
            "front",
            "placement",
            "version",
            "trace",
            "error",
            "where",
        }


def test_numbers_are_the_same_whether_users_answer_or_not(tmp_path: Path) -> None:
    pages = []
    for answers in (0, 40):
        (tmp_path / str(answers)).mkdir()
        site = Site(tmp_path / str(answers), shop=spec("click"))
        site.publish("shop", block(0, 90))

        async def work(site: Site = site, answers: int = answers) -> None:
            many = (await site.ask("POST", "/v1/placements/shop/decisions", {"count": 60})).json["decisions"]
            for each in many[:answers]:
                assert (await site.answer(each["token"], click=0)).status == 202
            await asyncio.sleep(0.1)  # a id_block may be on its way
            page = (await site.ask("GET", "/metrics", key="admin")).body.decode()
            pages.append([line for line in page.splitlines() if "_age_" not in line])

        site.run(work)
    assert pages[0] == pages[1]
    assert 'diminuendo_decisions_total{front="front-0",placement="shop"} 60.0' in pages[0]
    assert not any("python_" in line or "process_" in line for line in pages[0])


DEEP = b"[" * 100_000
HOSTILE: tuple[bytes, ...] = (
    b"", b"null", b"[]", b"{}", b"[null]", b"[[]]", b"0", b"NaN", b'{"reward": NaN}', b"Infinity", b'"x', b"{", DEEP,
    b'{"a":' * 50_000, b'{"context":' + b"[" * 900 + b"]" * 900 + b"}", b'{"exclude":' + b"[" * 900 + b"]" * 900 + b"}",
    b'{"context": 1' + b"0" * 10_000 + b"}", b'{"count": 1' + b"0" * 400 + b"}", b'{"count": -1}', b'{"count": 1.5}',
    b'{"count": true}', b'{"count": "1"}', b'{"count": 1001}', b'{"user_id": ""}', b'{"user_id": "\\ud800"}',
    b'{"user_id": "\xff\xfe"}', b'{"user_id": "\\u0000"}', b'{"user_id": 5}', b'{"user_id": []}', b'{"contexts": {}}',
    b'{"contexts": []}', b'{"token": null}', b'{"token": 5}', b'{"token": ""}', b'{"token": "\\ud800", "click": 1}',
    b'{"token": "AAAA", "click": 1}', b'{"token": "AAAA", "ratings": ["\\u0000"]}',
    b'{"token": "' + b"A" * 70_000 + b'"}',
    b'{"appear": [null]}', b'{"appear": ["\\u0000"]}',
    b'{"user_id": "a", "user": "b"}', b'{"constructor": 1}', b'{"exclude": {"a": {}}}', b'{"exclude": [1e999]}',
    b'{"context": 1e999}', b'{"context": {"country": [[]]}}', b"\xef\xbb\xbf{}", b"\x00", b"{} {}",
    b"[" + b"{}," * 1000 + b"{}]",
    b'{"user_id": "a", "placement": "shop"}', b'{"token": "A", "user_id": "a"}',
)  # fmt: skip


def test_hostile_bodies_never_break_anything(tmp_path: Path) -> None:
    columns: dict[str, Any] = {"contexts": {"country": ("DE", "FR")}}
    site = Site(tmp_path, shop=spec(**columns), hers=spec(exclusions=True, private_contexts=True, **columns))
    for name in site.numbers:
        kind = {"kind": "types", "slates": ((0, 1), (1, 2), (2, 3)), "shown": ()}
        site.publish(name, block(0, 5000, **kind))

    async def work() -> None:
        token = (await site.decide("shop"))["token"]
        mine = b'{"token": "%s", "ratings": ' % token.encode()
        rows = [mine + wants + b"}" for wants in (b"5", b"null", b'[["x"]]', b'{"apple": NaN}', b'{"apple": 1e999}',
                b'{"apple": -1e-9}',
                b'{"apple": "1"}', b'{"apple": 1' + b"0" * 5000 + b"}", b'["apple", 1]')]  # fmt: skip
        problems = 0
        for each in OPERATIONS:
            for name in ("shop", "hers") if "{placement}" in each.path else ("",):
                if each.method != "POST":
                    continue
                path = each.path.format(placement=name)
                for body in HOSTILE + tuple(rows):
                    reply = await site.ask("POST", path, body, key=each.roles[0])
                    assert reply.status < 500, (path, body[:60], reply)
                    if reply.status >= 400:
                        problems += 1
                        assert KINDS[reply.problem][0] == reply.status  # type: ignore[index]
        assert problems > 300
        assert site.kept("shop") == {}
        assert (await site.answer(token, ratings=["apple"])).status == 202

    site.run(work)
    assert "fault" not in site.written.getvalue()


def test_pointers_are_made_of_our_own_names_alone() -> None:
    for said, result in (
        ("Expected `int`, got `str` - at `$.click`", "/click"),
        ("Expected `str` - at `$[3].token`", "/3/token"),
        ("Expected `float` - at `$.ratings[...]`", "/ratings"),
        (f"Object contains unknown field `{UNKNOWN}`", ""),
        ("Expected `int` - at `$.ratings.planted`", "/ratings"),
        ("Expected `str` - at `key in $.ratings`", "/ratings"),
    ):
        assert pointer(ValidationError(said), FIELDS) == result


def test_what_is_no_request_of_ours_is_a_problem_of_the_list(tmp_path: Path) -> None:
    site = Site(tmp_path, shop=spec())
    site.publish("shop", block(0, 90))

    async def work() -> None:
        path = "/v1/placements/shop/decisions"
        big = b'{"user_id": "' + b"x" * (5 << 20) + b'"}'
        for reply, problem in (
            (await site.ask("GET", "/nothing"), "path"),
            (await site.ask("GET", "/v1/placements/shop/", key="auditor"), "path"),
            (await site.ask("GET", path), "method"),
            (await site.ask("DELETE", "/v1/placements", key="admin"), "method"),
            (await site.ask("POST", "/v1/placements/x/y/decisions", {}), "placement"),
            (await site.ask("POST", "/v1/placements//decisions", {}), "placement"),
            (await site.ask("POST", path, {}, content_type="text/plain"), "media"),
            (await site.ask("POST", path, {}, content_type=""), "media"),
            (await site.ask("POST", path, big), "size"),
            (await site.ask("POST", "/v1/feedback", b"[" + b"{}," * 1000 + b"{}]"), "size"),
            (await site.ask("POST", path, {"user_id": "a"}, idempotency_key="x" * 300), "size"),
            (await site.ask("GET", "/v1/placements/nope", key="auditor"), "placement"),
            (await site.ask("GET", "/v1/placements/nope/menu"), "placement"),
        ):
            assert reply.problem == problem
        assert dict((await site.ask("PUT", "/v1/placements")).headers)[b"allow"] == b"GET"
        assert (
            await site.ask("POST", path, {}, content_type="Application/JSON; charset=utf-8")
        ).status == 201

    site.run(work)


def test_forged_foreign_and_replayed_tokens_change_nothing(tmp_path: Path) -> None:
    from diminuendo.service.front.tokens import Tokens
    from diminuendo.service.records import Shown

    site = Site(tmp_path, shop=spec("click"))
    site.publish("shop", block(0, 90))
    number = site.numbers["shop"]

    async def work() -> None:
        token = (await site.decide("shop"))["token"]
        strange = [
            Tokens({1: bytes(32)}).seal(Shown(number, 5, 1, True, (0, 1))),
            token[:-4],
            token[4:],
            token.swapcase(),
            token + token,
        ]
        for each in strange:
            reply = await site.answer(each, click=0)
            assert (reply.status, reply.problem) == (400, "token")
            assert (await site.ask("POST", "/v1/erasures", {"token": each})).problem == "token"
        remote_rounds = site.app.front.serving._tokens.seal(Shown(number + 1, 5, 1, True, (0, 1)))
        for reply in (
            await site.answer(remote_rounds, click=0),
            await site.ask("POST", "/v1/erasures", {"token": remote_rounds}),
        ):
            assert (reply.status, reply.problem) == (503, "unavailable"), (
                "another front end may know its placement"
            )
        bulk = [{"token": each, "click": 0} for each in (strange[0], token, strange[1])]
        reply = await site.ask("POST", "/v1/feedback", bulk)
        assert reply.json["refused"] == ["/0/token", "/2/token"]
        later = [{"token": each, "click": 1} for each in (remote_rounds, token)]
        assert (await site.ask("POST", "/v1/feedback", later)).problem == "unavailable"
        assert {each: said.click for each, said in site.kept("shop").items()} == {0: 0}, (
            "hers is stored all the same"
        )
        assert (await site.answer(token, click=1)).status == 202
        assert site.kept("shop")[0].click == 0

    site.run(work)


def test_a_server_with_sockets_logs_our_lines_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = io.StringIO()
    for out in ("stdout", "stderr"):
        monkeypatch.setattr(sys, out, said)
    site = Site(tmp_path, shop=spec("click"))
    site.publish("shop", block(0, 90))
    site.app.front.log = Log()
    with served(site.app) as port:

        def ask(path: str, body: Any) -> tuple[int, Any]:
            head = {"authorization": f"Bearer {KEYS['client']}", "content-type": "application/json"}
            try:
                with urlopen(
                    Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), head)
                ) as result:
                    return result.status, result.read()
            except HTTPError as error:
                return error.code, error.read()

        status, body = ask("/v1/placements/shop/decisions", {"user_id": USER_ID})
        assert status == 201
        token = json.loads(body)["token"]
        assert ask("/v1/feedback", {"token": token, "click": 1}) == (202, b"")
        assert ask("/v1/feedback", {"token": token, "click": 17})[0] == 422
        assert ask("/v1/feedback", {"token": USER_ID, "click": 17})[0] == 400
    lines = said.getvalue().splitlines()
    assert [json.loads(line)["happened"] for line in lines] == ["menu", "started", "stopped"]
    site.store.close()
