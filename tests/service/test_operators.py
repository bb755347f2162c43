"""Operators and auditors: populations, placements, items, what was published; and who may ask for what."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from diminuendo.service.api import operators
from diminuendo.service.api.bodies import PlanBody
from diminuendo.service.api.operators import GIVEN_UP
from diminuendo.service.api.routes import OPERATIONS
from diminuendo.service.records import PlacementSpec, PlanQuestion
from tests.service.site import ITEMS, KEYS, Site, block, served, spec


@pytest.fixture
def planning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Promises without a process: facts for more than 100,000 users are refused."""

    made = PlanBody({"sentence": "a promise", "learner": "x"})  # kept, as the real one is

    async def planned(question: PlanQuestion) -> PlanBody:
        return PlanBody(None, "too many") if (question.spec.users or 0) > 100_000 else made

    monkeypatch.setattr(operators, "planned", planned)


def as_json(given: PlacementSpec) -> Any:
    return msgspec.to_builtins(given)


@pytest.mark.usefixtures("planning")
def test_populations_and_placements_are_made_once(tmp_path: Path) -> None:
    site = Site(tmp_path)

    async def work() -> None:
        async def make(what: str, body: Any, **headers: str) -> Any:
            return await site.ask("POST", f"/v1/{what}", body, key="operate", **headers)

        assert (await make("populations", {"name": "guests", "epsilon": 2})).json == {"name": "guests"}
        assert (await make("populations", {"name": "guests", "epsilon": 2})).problem == "taken"
        assert (await make("populations", {"name": "Guests!"})).json["pointer"] == "/name"
        new = {"name": "home", "spec": as_json(spec(population="guests"))}
        other = {"name": "home", "spec": as_json(spec(population="guests", deadline=5.0))}
        assert (await make("placements", new, idempotency_key="k")).status == 201
        assert (await make("placements", new, idempotency_key="k")).status == 201, "sent again"
        assert (await make("placements", other, idempotency_key="k")).problem == "reused"
        assert (await make("placements", other, idempotency_key="l")).problem == "taken"
        assert (await make("placements", new)).problem == "taken"
        for wrong, problem, pointer in (
            (spec(population="nobody"), "population", None),
            (spec(items=("a", "a", "b")), "field", "/facts/items"),
            (spec(slots=5), "field", "/facts/slots"),
            (spec(pinned={0: "kiwi"}), "field", "/facts/pinned"),
            (spec(caps=((("kiwi",), 1),)), "field", "/facts/caps"),
            (spec(users=10**6), "plan", None),
        ):
            reply = await make("placements", {"name": "other", "spec": as_json(wrong)})
            assert (reply.problem, reply.json.get("pointer")) == (problem, pointer)
        result = (await site.ask("GET", "/v1/placements", key="audit")).json
        assert result == {"placements": [{"name": "home"}]}
        one = (await site.ask("GET", "/v1/placements/home", key="audit")).json
        assert one["spec"]["items"] == list(ITEMS)
        assert one["menu"] is None
        assert (await site.ask("POST", "/v1/placements/home/decisions", {})).problem == "busy", "no menu yet"
        for _ in range(2):
            promise = (await site.ask("GET", "/v1/placements/home/guarantee", key="audit")).json
            assert promise == {"sentence": "a promise", "spec": {"learner": "x"}}

    site.run(work)


def test_items_come_and_go_once(tmp_path: Path) -> None:
    site = Site(tmp_path, shop=spec())

    async def work() -> None:
        async def change(**body: Any) -> Any:
            return await site.ask("POST", "/v1/placements/shop/items", body, key="operate")

        assert (await change(retire=["plum"], why="sold out")).status == 202
        assert (await change(retire=["plum"])).status == 202
        (event,) = site.store.events(site.numbers["shop"])
        assert msgspec.json.decode(event.body) == {"appear": [], "retire": ["plum"], "why": "sold out"}
        assert (await site.ask("GET", "/v1/placements/shop", key="operate")).json["gone"] == ["plum"]
        assert (await change(retire=["kiwi"])).json["pointer"] == "/retire"
        assert (await change(appear=["pear"], retire=["pear"])).json["pointer"] == "/retire"
        assert (await change(retire=["apple", "pear"])).json["pointer"] == "/retire", "too few are left"
        assert (await change(appear=["plum", "pear"])).status == 202
        assert (await site.ask("GET", "/v1/placements/shop", key="operate")).json["gone"] == []
        assert len(site.store.events(site.numbers["shop"])) == 2

    site.run(work)


def test_a_request_that_is_under_way_is_not_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two at once with one Idempotency-Key; then the same again, and one whose front end was killed on the way."""
    site = Site(tmp_path, shop=spec())
    site.publish("shop", block(0, 500))
    goes_on, asked = threading.Event(), threading.Event()
    add_event = site.store.add_event

    def slow(*given: Any) -> int:
        asked.set()
        assert goes_on.wait(30)
        return add_event(*given)

    monkeypatch.setattr(site.store, "add_event", slow)

    async def work() -> None:
        def retire(**more: str) -> Any:
            what = {"retire": ["plum"]}
            return site.ask("POST", "/v1/placements/shop/items", what, key="operate", **more)

        first = asyncio.create_task(retire(idempotency_key="k"))
        while not asked.is_set():
            await asyncio.sleep(0.01)
        second = await retire(idempotency_key="k")
        assert (second.status, second.problem) == (409, "begun")
        assert b"retry-after" in dict(second.headers)
        goes_on.set()
        assert (await first).status == (await retire(idempotency_key="k")).status == 202
        assert len(site.store.events(site.numbers["shop"])) == 1
        for ago, status in ((1.0, 409), (GIVEN_UP + 1, 202), (1.0, 409)):
            site.store.end_request("k", f"{site.store.now() - ago} of somebody else".encode())
            assert (await retire(idempotency_key="k")).status == status

    site.run(work)


def test_ledgers_are_read_line_by_line(tmp_path: Path) -> None:
    from diminuendo.privacy.budget import Budget
    from diminuendo.privacy.ledger import Ledger

    site = Site(tmp_path, shop=spec())
    books = site.store.books("users", site.fencing_token)
    ledger = Ledger.on(books, Budget(1.0, 1e-6))
    ledger.charge(ledger.budget.share(0.5), "half")
    whole = books.lines.read().decode().splitlines()

    async def work() -> None:
        path = "/v1/populations/people/ledger"
        assert (await site.ask("GET", path, key="audit")).json == {"lines": [], "after": 0}, "of no menu yet"
        site.publish("shop", block(0, 500))
        result = (await site.ask("GET", path, key="audit")).json
        assert result == {"lines": whole, "after": 2}
        assert (await site.ask("GET", f"{path}?after=1", key="audit")).json["lines"] == whole[1:]
        assert (await site.ask("GET", f"{path}?after=2", key="audit")).json == {"lines": [], "after": 2}
        for wrong in ("-1", "1e3", "x", "%20", "9" * 40, "٣"):
            assert (await site.ask("GET", f"{path}?after={wrong}", key="audit")).json["pointer"] == "/after"
        assert (await site.ask("GET", "/v1/populations/nobody/ledger", key="audit")).problem == "population"

    site.run(work)


def test_every_route_is_for_its_roles_alone(tmp_path: Path) -> None:
    site = Site(tmp_path, shop=spec())
    site.publish("shop", block(0, 9))

    async def work() -> None:
        for each in OPERATIONS:
            path = each.path.format(placement="shop", population="users")
            for role in ("serve", "operate", "audit"):
                if each.roles and role not in each.roles and not path.endswith("/menu"):
                    assert (await site.ask(each.method, path, {}, key=role)).problem == "role", (path, role)
            if each.roles and not path.endswith("/menu"):
                for key in (None, "", "no such key", "the key to serv", "\xff"):
                    reply = await site.ask(each.method, path, {}, key=key)
                    assert reply.problem == "key"
                    assert dict(reply.headers)[b"www-authenticate"] == b"Bearer"
                assert (
                    await site.ask(each.method, path, {}, key=None, authorization="Basic eDp5")
                ).problem == "key"
        site.app._menus_open = False
        assert (await site.ask("GET", "/v1/placements/shop/menu", key=None)).problem == "key"
        assert (await site.ask("GET", "/v1/placements/shop/menu", key="serve")).status == 200

    site.run(work)
    assert site.store is not None


def test_the_document_tells_of_every_route_and_resolves(tmp_path: Path) -> None:
    site = Site(tmp_path)

    async def work() -> None:
        document = (await site.ask("GET", "/v1/openapi.json", key=None)).json
        assert document["openapi"] == "3.1.0"
        result = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
        assert result == {(each.method, each.path) for each in OPERATIONS}
        _resolves(document, document)
        names = [each["operationId"] for methods in document["paths"].values() for each in methods.values()]
        assert len(set(names)) == len(names)
        jsonschema = pytest.importorskip("jsonschema")
        for schema in document["components"]["schemas"].values():
            jsonschema.Draft202012Validator.check_schema(schema)

    site.run(work)


def _resolves(part: Any, whole: Any) -> None:
    """Every reference leads somewhere."""
    if isinstance(part, dict):
        if "$ref" in part:
            result = whole
            for step in part["$ref"].removeprefix("#/").split("/"):
                result = result[step]
        for each in part.values():
            _resolves(each, whole)
    elif isinstance(part, list):
        for each in part:
            _resolves(each, whole)


@pytest.mark.slow
def test_schemathesis_finds_no_fault(tmp_path: Path) -> None:
    """With keys of all roles, on placements that are there; only where schemathesis is installed."""
    pytest.importorskip("schemathesis")
    site = Site(tmp_path, shop=spec("click"))
    site.publish("shop", block(0, 9000))
    (tmp_path / "schemathesis.toml").write_text(
        '[parameters]\n"path.placement" = "shop"\n"path.population" = "users"\n'
    )
    with served(site.app) as port:
        for key in KEYS.values():
            subprocess.run(
                [
                    *(sys.executable, "-m", "schemathesis.cli", "run"),
                    *("-H", f"Authorization: Bearer {key}", "--checks", "not_a_server_error"),
                    *("--max-examples", "30"),
                    f"http://127.0.0.1:{port}/v1/openapi.json",
                ],
                cwd=tmp_path,
                check=True,
            )
    site.store.close()


@pytest.mark.slow
def test_what_is_promised_is_worked_out_by_a_process_of_its_own(tmp_path: Path) -> None:
    site = Site(tmp_path, shop=spec())

    async def work() -> None:
        for wrong in (spec(learner="fi-dp"), spec(epsilon=0.9), spec(max_rounds_per_user=2)):
            new = {"name": "other", "spec": as_json(wrong)}
            assert (await site.ask("POST", "/v1/placements", new, key="operate")).problem == "plan"
        promise = (await site.ask("GET", "/v1/placements/shop/guarantee", key="audit")).json
        assert "(1, 1e-06)-differentially private" in promise["sentence"]

    site.run(work)
