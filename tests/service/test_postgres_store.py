"""The PostgreSQL store keeps the contract, and what is said of its server."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.kit.postgres import Server, pooled
from tests.service.store_contract import Copied, StoreContract


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def address(self, postgres_server: Server, database: str) -> str:
        return postgres_server.address(database)

    @pytest.fixture
    def copied(self, postgres_server: Server, database: str) -> Copied:
        return partial(postgres_server.copied, database)

    def check_whole(self, address: str) -> None:
        """PostgreSQL checks pages when it reads them."""


@pytest.mark.slow
class TestBehindAPooler(StoreContract):
    """Each transaction may get another connection: nothing rests on a session."""

    @pytest.fixture
    def address(self, postgres_server: Server, database: str) -> Iterator[str]:
        with pooled(postgres_server, database) as address:
            yield address

    @pytest.fixture
    def copied(self, postgres_server: Server, database: str) -> Copied:
        return partial(postgres_server.copied, database)

    def check_whole(self, address: str) -> None:
        """PostgreSQL checks pages when it reads them."""
