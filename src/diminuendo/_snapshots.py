"""One codec for everything that is written down and read back: facts and named arrays as bytes, with a version.

The version is that of the contents of all snapshots together, and is raised when any of them changes. What older
versions wrote is still read.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput

Arrays = dict[str, NDArray[Any]]

FORMAT = 4

RENAMED_IN_2 = {
    "desk.0": "decisions.issued",
    "desk.1": "decisions.rows",
    "desk.2": "decisions.probes",
    "desk.3": "decisions.waiting",
    "desk.4": "decisions.lives",
    "quota.people": "visits.people",
    "quota.rounds": "visits.rounds",
    "extra.dealt": "extra.assigned",
    "extra.counts.lot": "extra.counts.number",
    "extra.thoughts": "extra.n_sweeps",
}
"""Names of arrays in format 1, and what they are called since. Format 1 had no version in snapshots of sums."""

DROPPED_IN_2 = "extra.places"
"""What some snapshots in format 1 hold, and what follows from the rest."""

REMEMBERED_IN_2 = 10_000
"""The default patience of format 2, in rounds. A patience of another length is now also waited for."""

MOST_DEVIATIONS = 50.0
"""A published value lies at most this many standard deviations outside its possible range; a snapshot that says
otherwise is refused."""


def packed(facts: dict[str, Any], arrays: Arrays) -> bytes:
    """Facts and arrays as bytes; the same facts and arrays give the same bytes."""
    header = json.dumps({"format": FORMAT} | facts)
    named: dict[str, Any] = dict(arrays)
    out = io.BytesIO()
    np.savez(out, header=np.frombuffer(header.encode(), dtype=np.uint8), **named)
    return out.getvalue()


def unpacked(written: bytes, what: str) -> tuple[dict[str, Any], Arrays]:
    """The facts and the arrays that were written down as these bytes; `what` they should be is for the error."""
    try:
        with np.load(io.BytesIO(written), allow_pickle=False) as held:
            found = {name: held[name] for name in held.files}
        facts = dict(json.loads(found.pop("header").tobytes()))
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise InvalidInput(f"These bytes are not {what}: {error}") from error
    version = facts.pop("format", 1)
    if version not in (*MIGRATIONS, FORMAT):
        raise InvalidInput(
            f"Expected {what} in format {FORMAT}, or an older one; got one in format {version!r}, "
            "which a later version of diminuendo wrote. Install that version."
        )
    try:
        for older in range(version, FORMAT):
            facts, found = MIGRATIONS[older](facts, found)
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise InvalidInput(f"These bytes do not hold what {what} in format {version} has: {error}") from error
    return facts, found


def _from_1(facts: dict[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    """The arrays of format 1 by the names they have now."""
    found = {RENAMED_IN_2.get(name, name): array for name, array in arrays.items() if name != DROPPED_IN_2}
    return facts, {
        name.replace("extra.heard.", "extra.observations."): array for name, array in found.items()
    }


def _from_2(facts: dict[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    """Patience was how many decisions are remembered, 10,000 if nothing was said, and nothing waited for them."""
    config = dict(facts.get("config", {}))
    if config.get("patience") == REMEMBERED_IN_2:
        del config["patience"]
    return facts | ({"config": config} if config else {}), arrays


def _from_3(facts: dict[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    """Overlap learners had no focus, did not ask around slates, and held precisions by batch, not by item."""
    learner, found = facts.get("learner"), dict(arrays)
    if learner not in PUBLIC_STATE_IN_3:
        return facts, found
    public = PUBLIC_STATE_IN_3[learner]
    gains, since = found[f"{public}.0.0"], found[f"{public}.2.0"]
    n_items, slots = len(gains), len(found[f"{public.rpartition('.')[0]}.0"])
    for number in (1, 2, 3):
        keys, sums, weights, used = (found.pop(f"{public}.0.{number}.{part}") for part in range(4))
        by_item = np.append(weights, np.zeros((len(weights), 1)), axis=1)[
            :, np.minimum(since, weights.shape[1])
        ]
        rows = keys, sums[:, None], by_item[:, None], used
        found |= named(f"{public}.0.1.{number - 1}", rows)
    if learner == "overlap-greedy":
        parts = np.zeros((1, slots + 1, n_items))
        around = np.full((1, slots), -1, dtype=np.int64), parts, parts, np.zeros(2, dtype=np.int64)
        found |= named(f"{public}.0.1.3", around)
    else:
        room, batches = found["state.1.2"].shape
        found["state.1.7"] = np.zeros((room, n_items))  # counted when sums are restored
        found["state.1.8"] = np.full((batches, n_items), 256, dtype=np.int16)
    found |= named(f"{public}.3", (np.full(n_items, 256, dtype=np.int64), np.ones(1)))
    return facts, found


PUBLIC_STATE_IN_3 = {"overlap-greedy": "state.3", "overlap-sums": "state.0.3"}
"""Where snapshots of overlap learners hold what was learned from releases."""

MIGRATIONS = {1: _from_1, 2: _from_2, 3: _from_3}
"""For each older format, how its facts and arrays become those of the next."""


def of_learner(snapshot: bytes, name: str) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays in a snapshot of the learner of that name."""
    header, found = unpacked(snapshot, "a snapshot of a learner")
    if header.get("learner") != name:
        raise InvalidInput(f"Expected a snapshot of {name!r}; got one of {header.get('learner')!r}.")
    return header, found


def taken(found: Arrays, part: str) -> Arrays:
    """The arrays called `part.*`, by what follows the dot; they are taken out of `found`."""
    start = f"{part}."
    return {name[len(start) :]: found.pop(name) for name in list(found) if name.startswith(start)}


def named(name: str, value: Any) -> Arrays:
    """An array, or tuples of arrays within tuples, under names of their own."""
    if isinstance(value, np.ndarray):
        return {name: value}
    arrays: Arrays = {}
    for index, part in enumerate(value):
        arrays |= named(f"{name}.{index}", part)
    return arrays


def fill(arrays: Arrays, found: Arrays) -> None:
    """Every array in place by the one that was found under its name: all of them, of the same kinds, or none."""
    if _kinds(arrays) != _kinds(found):
        raise InvalidInput("The snapshot does not fit its own configuration; it was cut short or altered.")
    for name, array in arrays.items():
        array[...] = found[name]


def _kinds(arrays: Arrays) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    return {name: (array.shape, array.dtype) for name, array in arrays.items()}
