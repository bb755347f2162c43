"""One root for every error that diminuendo raises on purpose.

A message says what was expected, where, and what to do. Of configuration it also says what was given; of what a user
told us it repeats nothing, nor does any error that it came from: logs are read by others.
"""

from typing import NoReturn


class DiminuendoError(Exception):
    """Base class of every error that diminuendo raises on purpose.

    Examples
    --------
    >>> import diminuendo as dim
    >>> try:
    ...     dim.open_stream("no-such-stream")
    ... except dim.DiminuendoError as error:
    ...     print(type(error).__name__)
    InvalidInput
    """


class InvalidInput(DiminuendoError, ValueError):
    """An argument or a file breaks a rule; nothing was changed."""


class InvalidToken(InvalidInput):
    """A token that none of the keys at hand signed: forged, cut, or of other keys or versions."""


class MissingExtra(DiminuendoError, ImportError):
    """A package is needed that only an extra of diminuendo installs; the message names the extra."""


class UnknownName(DiminuendoError, KeyError):
    """A name that is not in a table of names."""

    def __str__(self) -> str:
        return str(self.args[0])


class WrongFeedback(DiminuendoError, TypeError):
    """`observe` was given a kind of feedback that this learner does not read."""


class UserCodeStopped(DiminuendoError, RuntimeError):
    """A user's code raised what is no Exception, such as SystemExit; the learner that called it is unusable."""


class UnknownEvent(DiminuendoError, ValueError):
    """A privacy cost that an accountant has no rule for; it is refused rather than guessed."""


class OverBudget(DiminuendoError, RuntimeError):
    """A release would cost more than is left. Nothing was charged and nothing may be drawn."""


class LedgerDamaged(DiminuendoError, RuntimeError):
    """A ledger file does not add up: it was altered, or cut, or belongs to something else."""


class LedgerInUse(DiminuendoError, RuntimeError):
    """Another process, or a forked copy of this one, holds the ledger."""


class ServiceUnreachable(DiminuendoError, ConnectionError):
    """A service did not answer, or could not store anything, for as long as the client was told to try."""


class ServiceRefused(DiminuendoError, RuntimeError):
    """A service refused a request; to send it again would change nothing."""


class Superseded(DiminuendoError, RuntimeError):
    """Another trainer leads by now: nothing was written, and whoever hears this stops."""


class StoreUnavailable(DiminuendoError, RuntimeError):
    """The store cannot be asked or written to now: its disk is full, it is held, or away. Nothing was written."""

    def __init__(self, message: str = "", why: str = "") -> None:
        """`why`: the reason in fixed words, one of service/store/reasons.py."""
        super().__init__(message)
        self.why = why


def refuse_copies(what: object) -> NoReturn:
    """What may be in one process once is not pickled, nor copied by Python's copy: its `__getstate__` is this."""
    raise InvalidInput(
        f"{type(what).__name__} is private and is not copied: a copy would publish again for nothing. Make another one "
        "where it is needed, or snapshot() what learns and restore() it with the same ledger."
    )


class NoSignal(UserWarning):
    """What a learner has published is what it would be if nobody answered in time; said once by each learner."""


class OutOfRange(UserWarning):
    """A published formula gives a value that makes no sense here; the nearest sensible one is used instead."""
