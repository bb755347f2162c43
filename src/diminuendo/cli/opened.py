"""Streams that a command was given, and a word on what was read."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diminuendo.cli.screen import progress_bars, say
from diminuendo.errors import InvalidInput

if TYPE_CHECKING:
    from diminuendo.streams import Users


def opened(
    sources: list[str],
    objective: str | None,
    items: int | None,
    how: dict[str, Any],
    out_of_core: bool,
    max_rounds_per_user: int,
) -> list[Any]:
    """The streams that were named, and a word on what was read."""
    from diminuendo.streams import open_stream
    from diminuendo.streams.was_read import ReadNote

    if out_of_core:
        return [_mapped(source, objective, items, how) for source in sources]
    with progress_bars() as bars, warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadNote)  # it is all said below
        users = []
        for source in sources:
            path = Path(source)
            reading = bars(f"reading {path.name}", path.stat().st_size) if path.is_file() else None
            users.append(open_stream(source, objective, n_items=items, **how, progress=reading))
    _say_what_was_read(users, max_rounds_per_user)
    return users


def _mapped(source: str, objective: str | None, items: int | None, how: dict[str, Any]) -> Users:
    """A Parquet file whose rows are mapped from disk."""
    from diminuendo.streams import out_of_core
    from diminuendo.streams.builtin import family_called

    taken = {name: how[name] for name in ("columns", "scale") if name in how}
    if beyond := [name for name in how if name not in taken and how[name]]:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in beyond)
        raise InvalidInput(
            f"With --out-of-core a file is read as it is; leave out {options}, or --out-of-core."
        )
    with progress_bars() as bars:
        path = Path(source)
        looking = bars(f"looking through {path.name}", path.stat().st_size) if path.is_file() else None
        result = out_of_core(path, family_called(objective), n_items=items, **taken, progress=looking)
    say(f"{path.name}: {len(result):,} users, {result.n_items:,} items, mapped from disk.")
    return result


def _say_what_was_read(streams: list[Users], max_rounds_per_user: int) -> None:
    """Of each table: its columns, what a round is, and which rows do not count."""
    for users in streams:
        if users.was_read is not None:
            say(str(users.was_read))
        if users.user_ids is not None:
            some = sum(
                min(max_rounds_per_user, rounds) for rounds in Counter(users.user_ids.tolist()).values()
            )
            say(
                f"Private learners learn from {max_rounds_per_user} of each user's rounds "
                f"(--max-rounds-per-user {max_rounds_per_user}): from {some:,} of "
                f"{len(users):,}."
            )
