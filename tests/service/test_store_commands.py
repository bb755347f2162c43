"""`diminuendo roles`, `move` and `serve --store`, as a user types them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from diminuendo.cli.app import app
from diminuendo.errors import InvalidInput
from diminuendo.service.site import STORE
from diminuendo.service.store import open_store
from tests.kit.postgres import Server
from tests.service.store_contract import begun


def typed(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


def test_roles_are_made_and_made_again(postgres_server: Server, database: str) -> None:
    for _ in range(2):
        said = typed("roles", postgres_server.address(database), "--prefix", "typed")
        assert said.exit_code == 0, said.output
        assert said.output.split() == ["typed_front", "typed_trainer"]


def test_a_store_is_moved(tmp_path: Path, postgres_server: Server, database: str) -> None:
    path = tmp_path / "site.db"
    with open_store(str(path)) as store:
        begun(store)
    said = typed("move", str(path), postgres_server.address(database))
    assert said.exit_code == 0, said.output
    assert "menus" in said.output
    assert "answers" not in said.output  # how many answered is nobody's business
    assert "All of it was moved." in said.output
    with open_store(postgres_server.address(database)) as store:
        assert [menu.version for menu in store.menus(1)] == [1]


@pytest.mark.parametrize("words", [("move", "site.db", "other.db"), ("roles", "site.db")])
def test_only_to_postgresql(words: tuple[str, ...]) -> None:
    said = typed(*words)
    assert isinstance(said.exception, InvalidInput)
    assert "postgresql://" in str(said.exception)


def test_check_makes_no_tables(tmp_path: Path, postgres_server: Server) -> None:
    database = postgres_server.database()
    site = tmp_path / "site.toml"
    site.write_text(f'store = "{postgres_server.address(database)}"\n[populations.guests]\n')
    schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'diminuendo'"
    for command, many in (("check", 0), ("apply", 1), ("check", 1)):
        said = typed(command, str(site))
        assert said.exit_code == 0, said.output
        assert ("New population guests" in said.output) == (many == 0 or command == "apply")
        assert postgres_server.sql(database, schemas) == [(many,)]


def test_another_store_is_told_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments are seen by everybody on a machine; the site's processes read it there."""
    monkeypatch.setenv(STORE, "")
    monkeypatch.chdir(tmp_path)
    for told, read in (("other.db", str(tmp_path / "other.db")), ("sqlite:x.db", "sqlite:x.db")):
        typed("serve", "none.toml", "--store", told)  # there is no such site
        assert os.environ[STORE] == read
