"""What stores take of what they are given: whole rows, and nothing that would take others along."""

from __future__ import annotations

from diminuendo.errors import InvalidInput
from diminuendo.service.records import Report, read
from diminuendo.service.store import STORED_WITHIN, AnswerRow, VisitRow

AT_ONCE = 10_000
"""Answers that are read at a time; others may write in between."""

LARGEST = 2**24
"""Bytes: no sealed answer is longer."""

LONGEST_LEASE = 60
"""Seconds: no round is leased for longer. Rounds after it are settled when it has expired, so it holds them all up."""

PART = 2**19
"""Bytes of a snapshot that are written at a time."""

USER_ID = 16
"""Bytes that stand for a user_id."""


def is_number(*given: object) -> bool:
    """Whether these are whole numbers that a database can hold, 0 or more."""
    return all(type(number) is int and 0 <= number < 2**63 for number in given)


def is_answer(row: AnswerRow) -> bool:
    """Whether it is an answer to some round."""
    sealed = isinstance(row.sealed, bytes) and len(row.sealed) <= LARGEST
    return sealed and is_number(row.placement, row.round) and isinstance(row.at, float)


def arrived(row: AnswerRow, now: float) -> float:
    """The time of an answer that is stored now: when it arrived, unless that is to come or too long ago."""
    return row.at if now - STORED_WITHIN <= row.at <= now else now


def is_visit(row: VisitRow) -> bool:
    """Whether it is somebody's visit."""
    whole = is_number(row.placement, row.round, row.max_rounds_per_user) and isinstance(row.key, bytes)
    return whole and isinstance(row.user_id, bytes) and len(row.user_id) == USER_ID


def check_lease(count: int, seconds: float) -> None:
    """Refuse what is no lease."""
    if count < 0 or not 0 < seconds <= LONGEST_LEASE:
        raise InvalidInput(
            f"A lease is of some rounds, for some time, at most {LONGEST_LEASE} seconds; got {count} and {seconds}."
        )


def report_of(said: bytes | None) -> Report | None:
    """What a front end said of a lease, as it was kept; nothing where that cannot be read."""
    return read(Report, said)
