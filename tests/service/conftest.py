"""What tests of the service share: one PostgreSQL server for each process that runs tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit import postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Server]:
    with postgres.running() as server:
        yield server


@pytest.fixture(scope="session")
def shared_database(postgres_server: postgres.Server) -> str:
    return postgres_server.database()


@pytest.fixture
def database(postgres_server: postgres.Server, shared_database: str) -> str:
    """The name of a database that is empty."""
    postgres_server.emptied(shared_database)
    return shared_database
