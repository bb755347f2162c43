"""ProcessGuard: a learner publishes in one process, and one thread at a time.

Compiled code runs without Python's lock, so two threads inside one learner could use the same secret words, or pass a
horizon together. A forked copy that went on publishing would draw again what the original pays for once.

If learning fails in its midst, nobody can tell which feedback was counted, and some of it could count twice later. The
learner is then unusable until it is restored from its last snapshot.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput, LedgerInUse, UserCodeStopped

Answer = TypeVar("Answer")


class ProcessGuard:
    """The locks of a learner, and whether this is the process in which it was made.

    Code that needs several locks takes them in this order. `releasing`: one release at a time, however long it takes.
    `answers`: stored feedback does not change while it is added to or frozen for a release. `lock`: public state, held
    for moments only, so that `choose` does not wait.
    """

    def __init__(self) -> None:
        self._renew()
        self.same_process, self.broken = True, False
        _ALL.add(self)

    def _renew(self) -> None:
        self.releasing, self.answers, self.lock = threading.RLock(), threading.RLock(), threading.RLock()

    @contextmanager
    def everything(self) -> Iterator[None]:
        """Hold all locks."""
        with self.releasing, self.answers, self.lock:
            yield

    def check(self, once: bool = True) -> None:
        """Refuse a learner that failed while learning; and, if only one may exist (`once`), a forked copy."""
        if once and not self.same_process:
            raise LedgerInUse(
                "This is a forked copy of something private; it would draw again what the original paid for once. "
                "Make a learner of its own here, or restore() a snapshot with the ledger."
            )
        if self.broken:
            raise InvalidInput(
                "This learner was stopped in the midst of learning, and which feedback was counted is not certain; to "
                "go on could count some of it twice. restore() the last snapshot, or make a new learner."
            )

    @contextmanager
    def user_code(self) -> Iterator[None]:
        """Call users' code in here. If it ends programs, the learner is unusable, and the error says nothing of it."""
        try:
            yield
            return
        except Stopped:
            self.broken = True
        raise UserCodeStopped(
            "A user's code raised what is no Exception, such as SystemExit or KeyboardInterrupt. The learner that "
            "called it cannot go on: restore() the last snapshot, or make a new learner; and call no code that ends "
            "programs."
        )

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Learn in here. Any failure leaves the learner unusable."""
        try:
            yield
        except BaseException:
            self.broken = True
            raise


@contextmanager
def all_or_nothing(arrays: Iterable[NDArray[Any]]) -> Iterator[None]:
    """Restore these arrays if the block fails, so that it can be tried again."""
    before = [(array, array.copy()) for array in arrays]
    try:
        yield
    except BaseException:
        for array, copy in before:
            array[...] = copy
        raise


class Stopped(BaseException):
    """A user's code raised what is no Exception. ProcessGuard.user_code turns it into an error; `except Exception`
    cannot hide it."""


def call_user(call: Callable[[], Answer]) -> Answer:
    """Call a user's own code. Exceptions are passed on; what is no Exception is Stopped."""
    with np.errstate(all="ignore"):
        try:
            return call()
        except Exception:
            raise
        except BaseException:
            pass  # not even as a context of the next error: it may hold private data
    raise Stopped


def call_untrusted(call: Callable[[], Answer]) -> Answer | None:
    """Call a user's own code. None if it raises an exception, which may hold private data and is not passed on."""
    try:
        return call_user(call)
    except Exception:
        return None


_ALL: weakref.WeakSet[ProcessGuard] = weakref.WeakSet()


def _in_a_child() -> None:
    for guard in _ALL:
        guard._renew()  # the old ones may be held by threads that do not exist here
        guard.same_process = False


if hasattr(os, "register_at_fork"):  # not on every system, but wherever there is fork
    os.register_at_fork(after_in_child=_in_a_child)
