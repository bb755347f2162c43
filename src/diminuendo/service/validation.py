"""Validation of populations and placements in a site's file."""

from __future__ import annotations

from collections.abc import Iterator

from diminuendo.service.records import PlacementSpec, PopulationSpec

LONGEST = 366 * 86_400.0
"""Seconds of a deadline, a publish interval or a publish delay, at most: a year."""
SHORTEST = 0.001
"""Seconds of a deadline or a publish interval, at least."""
FASTEST = 1e6
"""Decisions a second."""
MOST = 10**12
"""Users, rounds."""
EPSILON = 1e6
"""Of a population or a placement. Tests of the service ask for next to no noise; far less promises nothing."""

Errors = Iterator[tuple[str, str]]
"""Fields, and what is expected of each."""


def population_errors(spec: PopulationSpec) -> Errors:
    """What is wrong with a population."""
    yield from _budget_errors(spec)


def placement_errors(spec: PlacementSpec) -> Errors:
    """What is wrong with a placement, as far as can be said without making its learner."""
    names = set(spec.items)
    if len(names) < len(spec.items):
        yield "items", "a name is there twice."
    if not 1 <= spec.slots <= max(1, len(names)):
        yield "slots", f"from 1 to the number of items, {len(names)}; got {spec.slots}."
    yield from _budget_errors(spec)
    for field, number in (("users", spec.users), ("retention", spec.retention), ("sample", spec.sample)):
        if number is not None and not 1 <= number <= MOST:
            yield field, f"at least 1, at most {MOST:.0e}; got {number}."
    for field in ("deadline", "publish_interval"):
        if not SHORTEST <= (given := getattr(spec, field)) <= LONGEST:
            yield field, f"more than 0, from a thousandth of a second to a year; got {given} seconds."
    if not 0 <= spec.publish_delay <= LONGEST:
        yield "publish_delay", f"not below 0, at most a year; got {spec.publish_delay} seconds."
    if not 0 < spec.per_second <= FASTEST:
        yield "per_second", f"more than 0, at most {FASTEST:,.0f}; got {spec.per_second}."
    if not 0 < spec.response_rate <= 1:
        yield "response_rate", f"a share above 0, at most 1; got {spec.response_rate}."
    if not 0 <= spec.response_count < 1:
        yield "response_count", f"a part of the budget, below 1; got {spec.response_count}."
    for slot, item in spec.pinned.items():
        if not 0 <= slot < spec.slots or item not in names:
            yield (
                "pinned",
                f"slot {slot} shows {item!r}; expected a slot below {spec.slots} and one of the items.",
            )
    if not all(most >= 0 and names >= set(several) for several, most in spec.caps):
        yield "caps", "each is a list of items and how many of them are shown at most."


def _budget_errors(spec: PopulationSpec | PlacementSpec) -> Errors:
    if not 0 < spec.epsilon <= EPSILON:
        yield "epsilon", f"more than 0, at most {EPSILON:g}; got {spec.epsilon}."
    if not 0 <= spec.delta < 1:
        yield "delta", f"not below 0, less than 1; got {spec.delta}."
    if not 1 <= spec.max_rounds_per_user <= MOST:
        yield "max_rounds_per_user", f"at least 1, at most {MOST:.0e}; got {spec.max_rounds_per_user}."
