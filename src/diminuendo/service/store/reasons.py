"""Reasons why a store is not available: fixed words, without values, for errors, the log and `/readyz` alike.

What a database says itself may have values in it, so it is left out. Each reason says what to do.
"""

from __future__ import annotations

SQLITE = {
    "SQLITE_FULL": "its disk is full; make room and try again",
    "SQLITE_BUSY": "another process has held it for too long; try again",
    "SQLITE_READONLY": "it may not be written to; check who owns the file",
    "SQLITE_CANTOPEN": "its file cannot be opened; check its folder",
    "SQLITE_NOTADB": "its file is of another kind; give the store a file of its own",
    "SQLITE_CORRUPT": "its file is damaged; restore it from a copy",
    "SQLITE_TOOBIG": "what was to be kept has more than a billion bytes",
    "SQLITE_IOERR": "its file cannot be read or written; check the disk, and limits on the size of files",
}
"""By how SQLite's names of errors begin."""
POSTGRES = {
    "53100": "its disk is full; make room and try again",
    "53300": "it has no connection left; allow more, or fewer processes",
    "53": "it lacks memory or room; try again",
    "55P03": "others have held it for too long; try again",
    "57014": "others have held it for too long; try again",
    "25006": "it may not be written to: it is a copy of another one, or was set so; name the one that is written to",
    "42501": "its role may not do that; see `diminuendo roles`",
    "28": "it refused the role or its password; check the address, and where the password is kept",
    "3D": "it has no database of that name; make one",
    "57": "it is starting, stopping or was stopped; try again",
    "08": "it cannot be reached; check the address, and that it runs",
    "22": "it cannot hold what was given",
}
"""By how PostgreSQL's codes of errors begin."""
CLOSED = "it is closed, or its file cannot be used"
FORKED = "it was opened before this process was forked; open it here"
REPLACED = (
    "its file was moved, replaced or deleted; stop the site, put the newest file back, and start it again"
)
MOVED = "it was moved, and nothing is written to it any more; name the store that it was moved to"
MANY_WAIT = "too many wait to be stored; try again in a moment"
NO_PROBE = "no write probe was stored for some seconds; check that the store answers"
NO_MENU = "no placement has a menu yet; check that a trainer runs"
ROLLED_BACK = "it is older than what was seen of it: it was restored from a copy; put the newest one back"
NO_KEY = "there is no key that answers are encrypted to yet, or no recent look at the store; try again"
NO_PLACEMENT = "the placement is not known here yet; try again"
UNLISTED = "it failed in a way that has no words here; the log has the kind of error"

REASONS = frozenset(
    {*SQLITE.values(), *POSTGRES.values(), CLOSED, FORKED, REPLACED, MOVED, MANY_WAIT, NO_PROBE, NO_MENU}
    | {ROLLED_BACK, NO_KEY, NO_PLACEMENT, UNLISTED}
)
"""All of them: the log takes no others."""
