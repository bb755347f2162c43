"""ProcessGuard: what publishes privately does so in one process, one thread at a time.

Compiled code runs without Python's lock, so two threads inside one learner could use the same secret words, or pass a
horizon together. And a forked copy that went on publishing would draw again what the original pays for once.

Some pieces of work are done whole or not at all: a stretch of people who are counted as played and whose answers are
counted. Ctrl-C waits until such a piece is over. If something else fails in its midst (no memory, perhaps), nobody can
tell whose answers were counted, and to go on might count them twice; so it is the end of this object.
"""

from __future__ import annotations

import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import get_ident
from types import FrameType
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput, LedgerInUse, UserCodeStopped

Answer = TypeVar("Answer")


class ProcessGuard:
    """Locks, and whether this is the process in which they were made.

    There are three, and whoever needs several takes them in this order. `releasing`: one release at a time, however
    long it takes. `answers`: what people said does not change, while it is added to or frozen for a release. `lock`:
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
                "Something failed in the midst of a round, and whose answers were counted is not certain any more; to "
                "go on could count them twice. restore() the last snapshot, or make a new learner."
            )

    def defer_interrupt(self) -> DeferInterrupt:
        """A piece of work that Ctrl-C does not cut, and that may be taken up again if it fails.

        Where it fails because a user's code ends programs, it is not.
        """
        return DeferInterrupt(self, UserCodeStopped)

    def all_or_broken(self) -> DeferInterrupt:
        """A piece of work that Ctrl-C does not cut, and that is not taken up again if it fails."""
        return DeferInterrupt(self, self.failures)

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


class DeferInterrupt:
    """Ctrl-C waits until this is over. Only the main thread hears of it at all. Every round begins and ends one.

    With a guard, to fail in its midst by one of `failures` is the end of the object that it guards.
    """

    _handler: Callable[[int, FrameType | None], Any] | None = None
    _heard: tuple[int, FrameType | None] | None = None

    def __init__(
        self, guard: ProcessGuard | None = None, failures: type[BaseException] = BaseException
    ) -> None:
        self._guard, self._failures = guard, failures

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-C was pressed: the first time is remembered."""
        if self._heard is None:
            self._heard = number, frame

    def __enter__(self) -> Self:
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler) and get_ident() == _MAIN:
            self._handler = handler
            signal.signal(signal.SIGINT, self)
        return self

    def __exit__(self, *failure: object) -> None:
        if self._guard is not None and isinstance(failure[1], self._failures):
            self._guard.broken = True
        handler = self._handler
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
            if self._heard is not None:
                handler(*self._heard)


def asked(ask: Callable[[], Answer]) -> Answer:
    """What a user's own code returns, or the Exception that it raises.

    What is no Exception ends programs, and is UserCodeStopped, whatever it was. Ctrl-C is the operator's, whatever the
    code raises: it is heard when it has answered. NumPy does not warn of numbers.
    """
    with DeferInterrupt(), np.errstate(all="ignore"):
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


def said_by(ask: Callable[[], Answer]) -> Answer | None:
    """As `asked`, but whatever Exception is raised is what this user said, nothing, and nobody sees it."""
    try:
        return asked(ask)
    except UserCodeStopped:
        raise
    except Exception:
        return None


_ALL: weakref.WeakSet[ProcessGuard] = weakref.WeakSet()
_MAIN = threading.main_thread().ident  # looked up once: every round asks


def _in_a_child() -> None:
    global _MAIN
    _MAIN = get_ident()
    for guard in _ALL:
        guard.renew()  # the old ones may be held by threads that are not here
        guard.same_process = False


if hasattr(os, "register_at_fork"):  # not on every system, but wherever there is fork
    os.register_at_fork(after_in_child=_in_a_child)
