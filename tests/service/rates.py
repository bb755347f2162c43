"""How many answers a second a store takes, in groups and one by one, and what that costs this process.

python -m tests.service.rates
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from diminuendo.service.store import AnswerRow, open_store
from diminuendo.service.store.sql import Store
from tests.kit import postgres
from tests.service.store_contract import begun

GROUPS = (1, 50, 500)
SECONDS = 2.0
SEALED = os.urandom(200)


def rate(store: Store, group: int, first: int) -> tuple[float, float, int]:
    """Rows a second, CPU of this process in us a row, and the next round."""
    began, spent, rows = time.monotonic(), time.process_time(), 0
    while time.monotonic() - began < SECONDS:
        store.put([AnswerRow(1, first + rows + number, SEALED) for number in range(group)])
        rows += group
    return rows / (time.monotonic() - began), 1e6 * (time.process_time() - spent) / rows, first + rows


def main() -> None:
    """Print a table."""
    print("| store | rows at once | rows a second | CPU us a row |\n|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder, postgres.running() as server:
        for name, address in (
            ("SQLite", str(Path(folder) / "site.db")),
            ("PostgreSQL", server.address(server.database())),
        ):
            with open_store(address) as store:
                begun(store)
                first = 0
                for group in GROUPS:
                    store.put([AnswerRow(1, 10**9 + first, SEALED)])
                    rows, cpu, first = rate(store, group, first)
                    print(f"| {name} | {group} | {rows:,.0f} | {cpu:.1f} |")


if __name__ == "__main__":
    main()
