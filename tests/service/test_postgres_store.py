"""The PostgreSQL store keeps the contract, and what is said of its server."""

from __future__ import annotations

import pytest

from tests.kit.postgres import Server
from tests.service.store_contract import StoreContract


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def address(self, postgres_server: Server, database: str) -> str:
        return postgres_server.address(database)

    def check_whole(self, address: str) -> None:
        """PostgreSQL checks pages when it reads them."""
