"""The tables of a store, written once for SQLite and PostgreSQL.

The columns `encrypted` are opaque: feedback, snapshots and the trainer's private keys. `user_rounds.user_id` is a keyed
hash. Private as well is which rows `answers` and `user_rounds` have, and how long a snapshot is: that a user responded,
and which rounds are one user's. So is *when* a trainer wrote: menus that are not in effect yet, and ledger entries and
releases that no menu in effect shows, stay inside the trusted computing base until then. Everything else is public.
"""

from __future__ import annotations

TABLES = """
CREATE TABLE {s}heartbeats (name text PRIMARY KEY, at double precision NOT NULL, note text NOT NULL){compact};

CREATE TABLE {s}populations (number {numbered} PRIMARY KEY, name text NOT NULL UNIQUE, spec {bytes} NOT NULL);
CREATE TABLE {s}placements (
    number {numbered} PRIMARY KEY,
    name text NOT NULL UNIQUE,
    population text NOT NULL REFERENCES {s}populations (name),
    spec {bytes} NOT NULL,
    made_at double precision NOT NULL
);
CREATE INDEX placements_made ON {s}placements (made_at);
CREATE TABLE {s}trainers (                 -- the leader of each population
    population text PRIMARY KEY REFERENCES {s}populations (name),
    fencing_token bigint NOT NULL,
    name text NOT NULL                     -- '': the last leader has released it
){compact};
CREATE TABLE {s}counters (
    placement bigint PRIMARY KEY REFERENCES {s}placements,
    next bigint NOT NULL DEFAULT 0,        -- the next round to be reserved
    stopped bigint NOT NULL DEFAULT 0,     -- menus up to this version reserve nothing
    gc_low_water_mark bigint NOT NULL DEFAULT 0, -- feedback to rounds before this one is refused
    at double precision NOT NULL DEFAULT 0 -- PostgreSQL: when an ID block was last reserved or reported
){roomy};
CREATE TABLE {s}events (
    seq {numbered} PRIMARY KEY,
    placement bigint NOT NULL REFERENCES {s}placements,
    at double precision NOT NULL,
    kind text NOT NULL,
    body {bytes} NOT NULL,
    by text NOT NULL
);
CREATE INDEX events_of ON {s}events (placement, seq);
CREATE INDEX events_at ON {s}events (at);

CREATE TABLE {s}menus (
    placement bigint NOT NULL REFERENCES {s}placements,
    version bigint NOT NULL,
    first bigint NOT NULL,
    past bigint NOT NULL,                  -- no round from this one on is reserved by it
    effective_at double precision NOT NULL,
    at double precision NOT NULL,          -- when it was published: for front ends only
    lines bigint NOT NULL,                 -- ledger entries that it makes visible once it is in effect
    gc_low_water_mark bigint NOT NULL,     -- once it is in effect, ID blocks before this round are invisible
    body {bytes} NOT NULL,
    PRIMARY KEY (placement, version)
);
CREATE INDEX menus_at ON {s}menus (at, placement, version);
CREATE TABLE {s}allowed (
    placement bigint NOT NULL REFERENCES {s}placements,
    version bigint NOT NULL,
    past bigint NOT NULL,                  -- no round from this one on is reserved by that menu ...
    effective_at double precision NOT NULL,-- ... from this time on
    PRIMARY KEY (placement, version, past)
){compact};
CREATE TABLE {s}id_blocks (
    placement bigint NOT NULL REFERENCES {s}placements,
    first bigint NOT NULL,
    past bigint NOT NULL,
    version bigint NOT NULL,
    at double precision NOT NULL,
    expires_at double precision NOT NULL,
    report {bytes},
    reported_at double precision,
    PRIMARY KEY (placement, first)
){compact};
CREATE INDEX id_blocks_at ON {s}id_blocks (at);

CREATE TABLE {s}answers (
    placement bigint NOT NULL,
    round bigint NOT NULL,
    at double precision NOT NULL,          -- when it arrived, or was erased
    encrypted {bytes},                     -- opaque; NULL is a tombstone
    PRIMARY KEY (placement, round)
){vacuumed};
CREATE TABLE {s}user_rounds (
    placement bigint NOT NULL,
    user_id {bytes} NOT NULL,              -- opaque
    rounds {numbers} NOT NULL,             -- those within the quota; SQLite: as JSON
    last bigint NOT NULL,                  -- the last round, within the quota or not ...
    key {bytes} NOT NULL,                  -- ... and the client's Idempotency-Key, hashed
    PRIMARY KEY (placement, user_id)
){compact};
CREATE TABLE {s}snapshot_parts (
    placement bigint NOT NULL REFERENCES {s}placements,
    version bigint NOT NULL,               -- the menu that it was published with, or will be
    part bigint NOT NULL,
    encrypted {bytes} NOT NULL,            -- opaque
    PRIMARY KEY (placement, version, part)
){vacuumed_parts};
CREATE TABLE {s}trainer_keys (
    placement bigint NOT NULL REFERENCES {s}placements,
    number bigint NOT NULL,
    encrypted {bytes} NOT NULL,            -- opaque
    PRIMARY KEY (placement, number)
){vacuumed_early};

CREATE TABLE {s}ledger (
    population text NOT NULL REFERENCES {s}populations (name),
    seq bigint NOT NULL,
    line {bytes} NOT NULL,
    at double precision NOT NULL,
    PRIMARY KEY (population, seq)
){compact};
CREATE TABLE {s}releases (
    population text NOT NULL REFERENCES {s}populations (name),
    name text NOT NULL,
    body {bytes} NOT NULL,
    line bigint NOT NULL,                  -- the ledger entry that it belongs to: both become visible together
    PRIMARY KEY (population, name)
);
"""
"""`s`: what stands before the name of each table. The other names in braces are types and storage options."""

APPLICATION = 0x64696D69
"""The application ID of our SQLite files: "dimi"."""
COMPACT = " WITHOUT ROWID"
SQLITE = (
    """
CREATE TABLE clock (
    one integer PRIMARY KEY CHECK (one = 1),
    at double precision NOT NULL,
    moved text                             -- where the store was moved to: nothing is written here any more
);
INSERT INTO clock (one, at) VALUES (1, 0);
CREATE TABLE padding (                     -- written by calls that change nothing else, so that they take as long
    size integer PRIMARY KEY,
    random blob NOT NULL
);
"""
    + TABLES.format(
        s="", bytes="blob", numbers="text", numbered="integer", compact=COMPACT, vacuumed=COMPACT,
        vacuumed_early=COMPACT, vacuumed_parts="", roomy="",
    )
)  # fmt: skip

STEPS = (SQLITE,)
"""What leads from each version to the next; a file's version is the number of steps it took."""


def statements(step: str) -> list[str]:
    """The statements of a step."""
    plain = "\n".join(line.partition("--")[0] for line in step.splitlines())
    return [statement for statement in plain.split(";") if statement.strip()]
