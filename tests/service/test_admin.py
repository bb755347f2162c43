"""Routes for administrators and auditors: placements, items, versions, ledgers; and the roles of every route."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from diminuendo.privacy.budget import Budget, Guarantee
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.sentence import guarantee_sentence
from diminuendo.service.api.keys import ROLES
from diminuendo.service.api.routes import OPERATIONS
from tests.service.site import ITEMS, KEYS, Site, block, served, spec


def test_placements_are_listed_and_described(tmp_path: Path) -> None:
    site = Site(tmp_path, home=spec(max_rounds_per_user=2))
    terms = Guarantee(1.0, 1e-6, "replace one round", "Theorem T1", True).as_json() | {"learner": "private"}

    async def work() -> None:
        assert (await site.ask("GET", "/v1/placements", key="auditor")).json == {
            "placements": [{"name": "home"}]
        }
        one = (await site.ask("GET", "/v1/placements/home", key="auditor")).json
        assert one["spec"]["items"] == list(ITEMS)
        assert one["menu"] is None
        for path in ("/v1/placements/home/guarantee", "/v1/placements/home/menu"):
            assert (
                await site.ask("GET", path, key="auditor" if "guar" in path else "client")
            ).status == 503, "no menu"
        site.publish("home", block(0, 9, guarantee=terms))
        await site.app.front.look()
        result = (await site.ask("GET", "/v1/placements/home/guarantee", key="auditor")).json
        assert result == {"sentence": guarantee_sentence(terms, max_rounds_per_user=2), "guarantee": terms}
        one = (await site.ask("GET", "/v1/placements/home", key="auditor")).json
        assert (one["menu"]["version"], one["menu"]["leading"]) == (1, ["quince", "apple"])

    site.run(work)


def test_items_retire_and_appear_once(tmp_path: Path) -> None:
    site = Site(tmp_path, shop=spec())

    async def work() -> None:
        async def change(**body: Any) -> Any:
            return await site.ask("POST", "/v1/placements/shop/items", body, key="admin")

        assert (await change(retire=["plum"], why="sold out")).status == 202
        assert (await change(retire=["plum"])).status == 202
        (event,) = site.store.events(site.numbers["shop"])
        assert msgspec.json.decode(event.body) == {"appear": [], "retire": ["plum"], "why": "sold out"}
        assert (await site.ask("GET", "/v1/placements/shop", key="admin")).json["retired"] == ["plum"]
        assert (await change(retire=["kiwi"])).json["pointer"] == "/retire"
        assert (await change(appear=["pear"], retire=["pear"])).json["pointer"] == "/retire"
        assert (await change(retire=["apple", "pear"])).json["pointer"] == "/retire", "too few are left"
        assert (await change(appear=["plum", "pear"])).status == 202
        assert (await site.ask("GET", "/v1/placements/shop", key="admin")).json["retired"] == []
        assert len(site.store.events(site.numbers["shop"])) == 2

    site.run(work)


def test_ledgers_are_read_line_by_line(tmp_path: Path) -> None:
    site = Site(tmp_path, shop=spec())
    books = site.store.books("users", site.fencing_token)
    ledger = Ledger.on(books, Budget(1.0, 1e-6))
    ledger.charge(ledger.budget.share(0.5), "half")
    whole = books.lines.read().decode().splitlines()

    async def work() -> None:
        path = "/v1/populations/users/ledger"
        assert (await site.ask("GET", path, key="auditor")).json == {"lines": [], "after": 0}, (
            "of no menu yet"
        )
        site.publish("shop", block(0, 500))
        result = (await site.ask("GET", path, key="auditor")).json
        assert result == {"lines": whole, "after": 2}
        assert (await site.ask("GET", f"{path}?after=1", key="auditor")).json["lines"] == whole[1:]
        assert (await site.ask("GET", f"{path}?after=2", key="auditor")).json == {"lines": [], "after": 2}
        for wrong in ("-1", "1e3", "x", "%20", "9" * 40, "٣"):
            assert (await site.ask("GET", f"{path}?after={wrong}", key="auditor")).json["pointer"] == "/after"
        assert (await site.ask("GET", "/v1/populations/nobody/ledger", key="auditor")).problem == "population"

    site.run(work)


def test_every_route_checks_roles(tmp_path: Path) -> None:
    site = Site(tmp_path, shop=spec())
    site.publish("shop", block(0, 9))

    async def work() -> None:
        for each in OPERATIONS:
            path = each.path.format(placement="shop", population="users")
            for role in ROLES:
                if each.roles and role not in each.roles and not path.endswith("/menu"):
                    assert (await site.ask(each.method, path, {}, key=role)).problem == "role", (path, role)
            if each.roles and not path.endswith("/menu"):
                for key in (None, "", "no such key", "the key of clien", "\xff"):
                    reply = await site.ask(each.method, path, {}, key=key)
                    assert reply.problem == "key"
                    assert dict(reply.headers)[b"www-authenticate"] == b"Bearer"
                assert (
                    await site.ask(each.method, path, {}, key=None, authorization="Basic eDp5")
                ).problem == "key"
        site.app._menus_open = False
        assert (await site.ask("GET", "/v1/placements/shop/menu", key=None)).problem == "key"
        assert (await site.ask("GET", "/v1/placements/shop/menu", key="client")).status == 200

    site.run(work)
    assert site.store is not None


def test_the_openapi_document_has_every_route_and_resolves(tmp_path: Path) -> None:
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
def test_schemathesis_reports_no_fault(tmp_path: Path) -> None:
    """With keys of all roles, on placements that exist; only if schemathesis is installed."""
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
