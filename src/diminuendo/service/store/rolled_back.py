"""High-water marks: whether a store is the one that this machine's trainers knew, and not an older copy of it.

The folder of the trainers' keys notes how far the store has come: the time of each trainer's last heartbeat. If the
store does not know that time, it was restored from a copy. It has forgotten rounds that users were shown, rounds that
were counted, and what was drawn; to go on from it would hand out and draw again. Unless the store is rolled
back, a mark is never later than what is in the store.

If the folder has no mark, and the store has a history, this machine cannot tell. Then another trainer of the
site has to
vouch for the store: one that sends heartbeats there had a mark when it began, or has made one. If there is none, the
site does not start, unless it is told to adopt the store (adopt.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, unquote

from diminuendo.errors import InvalidInput, LedgerDamaged
from diminuendo.privacy.books.durable import replaced
from diminuendo.service.store import FRONT_ENDS, INSTANCE, NO_HEARTBEAT, TRAINERS, Heartbeat
from diminuendo.service.store.sql import Store

NOTE, HEAD = "last-well-", ".head"
"""Files that begin so, and then have the trainer's name; and files that end so (trainer/keys.py)."""
WATCHES = 10.0
"""Seconds for which heartbeats are watched, if there are any as recent: no trainer is silent for longer."""
ASKS = 0.2


def note(folder: Path, trainer: str, at: float) -> None:
    """Note that the trainer was well at that time, which the store knows."""
    replaced(folder / f"{NOTE}{quote(trainer, safe='')}", repr(at).encode())


def refuse_older(store: Store, folder: Path) -> None:
    """Refuse a store that has forgotten heartbeats of trainers of this folder; they may be running."""
    if (seconds := _older_by(store, folder)) > 0:
        raise LedgerDamaged(
            f"The store is older than what {folder} knows of it, by {seconds:,.0f} seconds: it was restored from "
            "a copy, and who was shown what since then is lost. Put the newest one back. If there is none, stop all of "
            "the site and run `diminuendo apply .. --adopt`: it closes the old populations and "
            "begins new ones."
        )


def refuse_unknown(store: Store, folder: Path) -> None:
    """Refuse a store that is older, and one with a history of which this folder knows nothing, unless another trainer
    sends heartbeats there; then the time of its heartbeat is this folder's first mark."""
    refuse_older(store, folder)
    if _marked(folder) or not (used := store.history()):
        return None
    for name in _heartbeats(store, TRAINERS):
        slot = name.partition(INSTANCE)[0]
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return note(folder, slot, store.heartbeats().get(slot, NO_HEARTBEAT)[0])
    raise LedgerDamaged(
        f"The store has a history (populations {', '.join(used)}), and {folder} has no high-water mark that says how "
        f"far it had come (expected: files {NOTE}*), nor does another trainer work on it. If it was restored from a "
        "copy, what was published since that copy would be drawn again, with other values. If this is the machine of "
        "the site, bring that folder back. If another machine is, start that one first. Else run "
        "`diminuendo apply .. --adopt`: it closes the old populations, whose budgets count as spent, and begins new "
        "ones of the same names, which show the last published slates until they have published their own."
    )


def adopt(store: Store, folder: Path, make_keys: Callable[[], None] = lambda: None) -> list[str]:
    """Close the populations of a store whose past is not known here, and begin new ones; the names that
    they are closed under. Refused where nothing is to be adopted. Killed in the midst, it is asked for again, or was
    done."""
    older, used = _older_by(store, folder) > 0, store.history()
    if not older and (_marked(folder) or not used):
        why = (
            "this machine knows this store, as it is"
            if _marked(folder)
            else "nothing was published in it yet"
        )
        raise InvalidInput(f"There is nothing to adopt: {why}. Run it without --adopt.")
    for name in _heartbeats(store, TRAINERS, FRONT_ENDS):
        raise InvalidInput(
            f"{name} works on this store, so nothing is adopted. To join a site, do not adopt. To adopt a "
            "store that was restored stop all trainers and front ends first, on all machines."
        )
    make_keys()  # where they are lost: users are counted anew
    closed = store.adopt()
    if folder.exists():
        for path in (*folder.glob(f"{NOTE}*"), *folder.glob(f"*{HEAD}")):  # of the old populations
            path.unlink()
    return closed


def _marked(folder: Path) -> bool:
    return any(folder.glob(f"{NOTE}*")) or any(folder.glob(f"*{HEAD}"))


def _older_by(store: Store, folder: Path) -> float:
    """By how many seconds the store is older than the folder knows; 0: it is not."""
    result = {path.name: float(path.read_text()) for path in sorted(folder.glob(f"{NOTE}*"))}
    heartbeats = store.heartbeats()  # after the notes, which follow heartbeats
    return max(
        (
            at - heartbeats.get(unquote(name.removeprefix(NOTE)), NO_HEARTBEAT)[0]
            for name, at in result.items()
        ),
        default=0,
    )


def _heartbeats(store: Store, *kinds: str) -> Iterator[str]:
    """The processes of these kinds that send heartbeats while they are watched. Those that are there already may be a
    copy's."""

    def known() -> dict[str, Heartbeat]:
        return {
            name: heartbeat
            for name, heartbeat in store.heartbeats().items()
            if name.startswith(kinds) and heartbeat[1]
        }

    before, until = known(), time.monotonic() + WATCHES
    if all(at < store.now() - WATCHES for at, _ in before.values()):
        return  # all are older than that
    while time.monotonic() < until:
        time.sleep(ASKS)
        for name, (at, _) in known().items():
            if at > before.get(name, NO_HEARTBEAT)[0]:
                yield name
