"""The times in a column of text, as the reader of tables reads them."""

from __future__ import annotations

from datetime import UTC, datetime

from diminuendo.streams.rows import times_of
from diminuendo.streams.sources import open_columns


def moments(written: list[str]) -> tuple[bool, list[datetime | None]]:
    """Whether the column holds times, and each of them; None where it is none."""
    with open_columns({"at": written}, "orders.csv") as source:
        source.load({"time": source.cell("at")})
        times = times_of(source, "time", "VARCHAR")
        ticks = source.rows(f"SELECT {times.ticks} FROM cells ORDER BY rowid")
    return times.are_times, [
        None if tick is None else datetime.fromtimestamp(tick / 1e6, UTC) for (tick,) in ticks
    ]
