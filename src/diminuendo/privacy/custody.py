"""Custody: what publishes privately does so in one process, one thread at a time.

Compiled code runs without Python's lock, so two threads inside one learner could use the same secret words, or pass a
horizon together. And a forked copy that went on publishing would draw again what the original pays for once.
"""

from __future__ import annotations

import os
import threading
import weakref

from diminuendo.errors import InvalidInput, LedgerInUse


class Custody:
    """A lock, and whether this is the process in which it was made."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.here = True
        _ALL.add(self)

    def __repr__(self) -> str:
        return "<Custody>"

    def check(self) -> None:
        """Refuse in a forked copy."""
        if not self.here:
            raise LedgerInUse(
                "This is a forked copy of a private learner; it would draw again what the original paid for once. "
                "Make a learner of its own here, or restore() a snapshot with the ledger."
            )


def refuse_copies(what: object) -> InvalidInput:
    """The error for those who would pickle or deepcopy something private."""
    return InvalidInput(
        f"{type(what).__name__} is private and is not copied: a copy would publish again for nothing. "
        "Use snapshot() and restore(), with the same ledger."
    )


_ALL: weakref.WeakSet[Custody] = weakref.WeakSet()


def _in_a_child() -> None:
    for custody in _ALL:
        custody.lock = threading.RLock()  # the old one may be held by a thread that is not here
        custody.here = False


if hasattr(os, "register_at_fork"):  # not on every system, but wherever there is fork
    os.register_at_fork(after_in_child=_in_a_child)
