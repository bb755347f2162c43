"""Streams that a command was given: read whole or in pieces, and a word on what was read."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diminuendo.cli import loading
from diminuendo.cli.screen import progress_bars, say
from diminuendo.errors import InvalidInput

if TYPE_CHECKING:
    from diminuendo.streams import People, Pieces


def opened(
    sources: list[str],
    objective: str | None,
    items: int | None,
    how: dict[str, Any],
    in_pieces: int | None,
    visits: int,
) -> list[Any]:
    """The streams that were named, and a word on what was read; in pieces, where that is said."""
    with loading():
        from diminuendo.streams import open_stream
        from diminuendo.streams.was_read import ReadNote
    if in_pieces is not None:
        return [_opened_in_pieces(source, objective, items, how, in_pieces) for source in sources]
    with progress_bars() as bars, warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadNote)  # it is all said below
        people = []
        for source in sources:
            path = Path(source)
            reading = bars(f"reading {path.name}", path.stat().st_size) if path.is_file() else None
            people.append(open_stream(source, objective, n_items=items, **how, progress=reading))
    _say_what_was_read(people, visits)
    return people


def _opened_in_pieces(
    source: str, objective: str | None, items: int | None, how: dict[str, Any], people: int
) -> Pieces:
    """A Parquet file, of which only who and what there is has been read."""
    with loading():
        from diminuendo.streams import Pieces
        from diminuendo.streams.builtin import family_called
    taken = {name: how[name] for name in ("columns", "scale") if name in how}
    if beyond := [name for name in how if name not in taken and how[name]]:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in beyond)
        raise InvalidInput(
            f"A file that is read in pieces is read as it is; leave out {options}, or --in-pieces."
        )
    with progress_bars() as bars:
        path = Path(source)
        looking = bars(f"looking through {path.name}", path.stat().st_size) if path.is_file() else None
        found = Pieces(
            path, family_called(objective), people=people, n_items=items, **taken, progress=looking
        )
    say(
        f"{path.name}: {found.people:,} users, {found.rows:,} rows, {found.n_items:,} items, in {len(found):,} "
        f"{'piece' if len(found) == 1 else 'pieces'}."
    )
    return found


def _say_what_was_read(streams: list[People], visits: int) -> None:
    """Of each table: its columns, what a round is, and which rows do not count."""
    for people in streams:
        if people.was_read is not None:
            say(str(people.was_read))
        if people.persons is not None:
            some = sum(min(visits, rounds) for rounds in Counter(people.persons.tolist()).values())
            say(
                f"Private learners learn from {visits} of each user's rounds (--visits {visits}): from {some:,} of "
                f"{len(people):,}."
            )
