"""A store that was put back: known by when trainers were last well, which is noted beside their keys.

A copy of the store from before that has forgotten rounds that people were shown and visits that were counted, also
where nothing was published since. To go on from it would hand them out again. What is noted is never later than what is
in the store, as long as nobody puts it back.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, unquote

from diminuendo.errors import LedgerDamaged
from diminuendo.privacy.books.durable import replaced
from diminuendo.service.store import Store

NOTE = "last-well-"
"""Files of that name, and then the trainer's."""


def note(folder: Path, trainer: str, at: float) -> None:
    """That trainer was well at that time, as the store knows."""
    replaced(folder / f"{NOTE}{quote(trainer, safe='')}", repr(at).encode())


def refuse_older(store: Store, folder: Path) -> None:
    """Refuse a store that does not know how long trainers of this folder were well; they may be running."""
    found = {path.name: float(path.read_text()) for path in sorted(folder.glob(f"{NOTE}*"))}
    beats = store.beats()  # after the notes, which follow beats
    for name, noted in found.items():
        known, _ = beats.get(unquote(name.removeprefix(NOTE)), (0.0, ""))
        if known < noted:
            raise LedgerDamaged(
                f"The store is older than what {folder} knows of it, by {noted - known:,.0f} seconds: it was put back "
                "from a copy, and who was shown what since then is lost. Put the newest one back; or begin new "
                "populations, with a new store, for people to come."
            )
