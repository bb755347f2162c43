"""ProcessGuard: what publishes privately does so in one process, one thread at a time.

Compiled code runs without Python's lock, so two threads inside one learner could use the same secret words, or pass a
horizon together. And a forked copy that went on publishing would draw again what the original pays for once.

A learner that is stopped in the midst of learning (Ctrl-C, no memory) cannot tell which feedback was counted, and might
count some of it twice if it went on. So it refuses to: it is unusable until it is restored from its last snapshot.
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
    """Locks, and whether this is the process in which they were made.

    There are three, and whoever needs several takes them in this order. `releasing`: one release at a time, however
    long it takes. `answers`: what users said does not change, while it is added to or frozen for a release. `lock`:
    what is public, for moments only, so that nobody who chooses waits.
    """

    def __init__(self) -> None:
        self.renew()
        self.same_process = True
        self.broken = False
        self.failures: type[BaseException] = BaseException
        """What ends it in the midst of a piece of work."""
        _ALL.add(self)

    def renew(self) -> None:
        """Locks that nobody holds."""
        self.releasing, self.answers, self.lock = threading.RLock(), threading.RLock(), threading.RLock()

    @contextmanager
    def everything(self) -> Iterator[None]:
        """Nobody else does anything."""
        with self.releasing, self.answers, self.lock:
            yield

    def check(self, once: bool = True) -> None:
        """Refuse where a piece of work was left half done; and in a forked copy of what there may be `once`."""
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
    def learning(self) -> Iterator[None]:
        """Learn in here. Whatever fails leaves a learner with a guarantee unusable."""
        try:
            yield
        except self.failures:
            self.broken = True
            raise

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Choose, close rounds or release in here. What fails may be tried again, unless it was stopped."""
        try:
            yield
        except BaseException as error:
            self.broken |= isinstance(error, UserCodeStopped) or not isinstance(error, Exception)
            raise

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Users' own code is asked in here. What ends programs there is the end of this object."""
        try:
            yield
        except UserCodeStopped:
            self.broken = True
            raise


@contextmanager
def all_or_nothing(arrays: Iterable[NDArray[Any]]) -> Iterator[None]:
    """A piece of work that changes these arrays; should it fail, they are as before, and it may be tried again."""
    before = [(array, array.copy()) for array in arrays]
    try:
        yield
    except BaseException:
        for array, kept in before:
            array[...] = kept
        raise


def asked(ask: Callable[[], Answer]) -> Answer:
    """What a user's own code returns, or the Exception that it raises.

    What is no Exception ends programs, and is UserCodeStopped, whatever it was, also Ctrl-C: nobody can tell who raised
    it. NumPy does not warn of numbers.
    """
    with np.errstate(all="ignore"):
        try:
            return ask()
        except Exception:
            raise
        except BaseException:  # it is not passed on, not even as a cause: it may say what only the user knows
            pass
    raise UserCodeStopped(
        "The code of a user raised what is no Exception, such as SystemExit or KeyboardInterrupt. What asked it cannot "
        "go on: restore() the last snapshot, or make a new learner; and ask no code that ends programs."
    )


def call_untrusted(ask: Callable[[], Answer]) -> Answer | None:
    """As `asked`, but whatever Exception is raised is what this user said, nothing, and nobody sees it."""
    try:
        return asked(ask)
    except UserCodeStopped:
        raise
    except Exception:
        return None


_ALL: weakref.WeakSet[ProcessGuard] = weakref.WeakSet()


def _in_a_child() -> None:
    for guard in _ALL:
        guard.renew()  # the old ones may be held by threads that are not here
        guard.same_process = False


if hasattr(os, "register_at_fork"):  # not on every system, but wherever there is fork
    os.register_at_fork(after_in_child=_in_a_child)
