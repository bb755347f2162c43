"""The tables of the SQLite store.

What users said is sealed (`answers.sealed`, `snapshot_parts.sealed`), keys of the trainer are (`trainer_keys.sealed`),
and whoever has a name is a keyed hash (`visits.user_id`): these columns are opaque. Private as well is which rows
`answers` and `visits` have, and how long a snapshot is: that somebody answered, and which rounds are one user_id's.
Private, too, is *when* a trainer has written: menus to come, and lines and releases that no menu in effect shows, are
inside the wall until then. Everything else is public.
"""

from __future__ import annotations

APPLICATION = 0x64696D69
"""By this number SQLite files of ours are known: "dimi"."""

TABLES = """
CREATE TABLE clock (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    at REAL NOT NULL,
    moved TEXT                             -- where all of this was moved to: nothing is written here any more
);
INSERT INTO clock (one, at) VALUES (1, 0);
CREATE TABLE beats (name TEXT PRIMARY KEY, at REAL NOT NULL, note TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE populations (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, facts BLOB NOT NULL);
CREATE TABLE placements (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    population TEXT NOT NULL REFERENCES populations (name),
    facts BLOB NOT NULL,
    made_at REAL NOT NULL
);
CREATE INDEX placements_made ON placements (made_at);
CREATE TABLE trainers (                    -- who leads each population
    population TEXT PRIMARY KEY REFERENCES populations (name),
    epoch INTEGER NOT NULL,
    name TEXT NOT NULL                     -- '': nobody, since the last one handed it over
) WITHOUT ROWID;
CREATE TABLE counters (
    placement INTEGER PRIMARY KEY REFERENCES placements,
    next INTEGER NOT NULL DEFAULT 0,       -- the next round to be leased
    stopped INTEGER NOT NULL DEFAULT 0,    -- menus up to this version lease nothing
    forgotten INTEGER NOT NULL DEFAULT 0   -- answers to rounds before this one are not taken any more
);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    placement INTEGER NOT NULL REFERENCES placements,
    at REAL NOT NULL,
    kind TEXT NOT NULL,
    body BLOB NOT NULL,
    by TEXT NOT NULL
);
CREATE INDEX events_of ON events (placement, seq);
CREATE INDEX events_at ON events (at);
CREATE TABLE requests (key TEXT PRIMARY KEY, digest BLOB NOT NULL, reply BLOB NOT NULL, at REAL NOT NULL);

CREATE TABLE menus (
    placement INTEGER NOT NULL REFERENCES placements,
    version INTEGER NOT NULL,
    first INTEGER NOT NULL,
    past INTEGER NOT NULL,                 -- no round from this one on is leased by it
    effective_at REAL NOT NULL,
    body BLOB NOT NULL,
    lines INTEGER NOT NULL DEFAULT 0,      -- of its ledger, that it shows once it is in effect
    forgets INTEGER NOT NULL DEFAULT 0,    -- leases before this round, once it is in effect
    at REAL NOT NULL DEFAULT 0,            -- when it was published: nobody's business but front ends'
    PRIMARY KEY (placement, version)
);
CREATE INDEX menus_at ON menus (at, placement, version);
CREATE TABLE allowed (
    placement INTEGER NOT NULL REFERENCES placements,
    version INTEGER NOT NULL,
    past INTEGER NOT NULL,                 -- no round from this one on is leased by that menu ...
    effective_at REAL NOT NULL,            -- ... from this time on
    PRIMARY KEY (placement, version, past)
) WITHOUT ROWID;
CREATE TABLE leases (
    placement INTEGER NOT NULL REFERENCES placements,
    first INTEGER NOT NULL,
    past INTEGER NOT NULL,
    version INTEGER NOT NULL,
    at REAL NOT NULL,
    expires_at REAL NOT NULL,
    report BLOB,
    reported_at REAL,
    PRIMARY KEY (placement, first)
) WITHOUT ROWID;
CREATE INDEX leases_at ON leases (at);

CREATE TABLE answers (
    placement INTEGER NOT NULL REFERENCES placements,
    round INTEGER NOT NULL,
    at REAL NOT NULL,                      -- since when it is there, or gone
    sealed BLOB,                           -- opaque; NULL is a tombstone
    PRIMARY KEY (placement, round)
) WITHOUT ROWID;
CREATE TABLE visits (
    placement INTEGER NOT NULL REFERENCES placements,
    user_id BLOB NOT NULL,                  -- opaque
    rounds TEXT NOT NULL,                  -- those that count, as JSON
    last INTEGER NOT NULL,                 -- her last round, counted or not ...
    key BLOB NOT NULL,                     -- ... and what the client called its request
    PRIMARY KEY (placement, user_id)
) WITHOUT ROWID;
CREATE TABLE snapshot_parts (
    placement INTEGER NOT NULL REFERENCES placements,
    version INTEGER NOT NULL,              -- the menu that it was published with, or is to be
    part INTEGER NOT NULL,
    sealed BLOB NOT NULL,                  -- opaque
    PRIMARY KEY (placement, version, part)
);
CREATE TABLE trainer_keys (
    placement INTEGER NOT NULL REFERENCES placements,
    number INTEGER NOT NULL,
    sealed BLOB NOT NULL,                  -- opaque
    PRIMARY KEY (placement, number)
) WITHOUT ROWID;

CREATE TABLE ledger (
    population TEXT NOT NULL REFERENCES populations (name),
    seq INTEGER NOT NULL,
    line BLOB NOT NULL,
    at REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (population, seq)
) WITHOUT ROWID;
CREATE TABLE releases (
    population TEXT NOT NULL REFERENCES populations (name),
    name TEXT NOT NULL,
    body BLOB NOT NULL,
    line INTEGER NOT NULL DEFAULT 0,       -- where it is entered: shown with that line
    PRIMARY KEY (population, name)
);

CREATE TABLE padding (                     -- written by what changes nothing else, so that it takes as long
    size INTEGER PRIMARY KEY,
    filler BLOB NOT NULL                   -- random
);
"""

STEPS = (TABLES,)
"""What leads from each version to the next; a file's version is the number of steps it took."""


def statements(step: str) -> list[str]:
    """The statements of a step."""
    plain = "\n".join(line.partition("--")[0] for line in step.splitlines())
    return [statement for statement in plain.split(";") if statement.strip()]
