"""The PostgreSQL store keeps the contract, and what is said of its server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.postgres import Server, pooled
from tests.service.store_contract import StoreContract


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def address(self, postgres_server: Server, database: str) -> str:
        return postgres_server.address(database)

    def check_whole(self, address: str) -> None:
        """PostgreSQL checks pages when it reads them."""


@pytest.mark.slow
class TestBehindAPooler(StoreContract):
    """Each transaction may get another connection: nothing rests on a session."""

    @pytest.fixture
    def address(self, postgres_server: Server, database: str) -> Iterator[str]:
        with pooled(postgres_server, database) as address:
            yield address

    def check_whole(self, address: str) -> None:
        """PostgreSQL checks pages when it reads them."""
