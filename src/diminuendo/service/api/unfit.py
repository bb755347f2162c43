"""What cannot be: facts that are refused, in a site's file and by the API alike, before anything is made of them."""

from __future__ import annotations

from collections.abc import Iterator

from diminuendo.service.records import PlacementFacts, PopulationFacts

LONGEST = 366 * 86_400.0
"""Seconds that a deadline, a tick or an allowance may have: a year."""
SHORTEST = 0.001
"""Seconds that a deadline or a tick has at least."""
FASTEST = 1e6
"""Decisions a second."""
MOST = 10**12
"""People, rounds, visits."""
EPSILON = 1e6
"""Of a population or a placement. Far less promises nothing; trials of the service itself ask for next to no noise."""

Unfit = Iterator[tuple[str, str]]
"""Fields, and what is expected of each; nothing where all is well."""


def unfit_population(facts: PopulationFacts) -> Unfit:
    """What is wrong with a population."""
    yield from _unfit_budget(facts)


def unfit_placement(facts: PlacementFacts) -> Unfit:
    """What is wrong with a placement, as far as that can be told at once; the rest is said by who makes its learner."""
    names = set(facts.items)
    if len(names) < len(facts.items):
        yield "items", "a name stands there twice."
    if not 1 <= facts.slots <= max(1, len(names)):
        yield "slots", f"from 1 to the number of items, {len(names)}; got {facts.slots}."
    yield from _unfit_budget(facts)
    for what, number in (("people", facts.people), ("retention", facts.retention), ("sample", facts.sample)):
        if number is not None and not 1 <= number <= MOST:
            yield what, f"at least 1, at most {MOST:.0e}; got {number}."
    for what in ("deadline", "tick"):
        if not SHORTEST <= (given := getattr(facts, what)) <= LONGEST:
            yield what, f"more than 0, from a thousandth of a second to a year; got {given} seconds."
    if not 0 <= facts.allowance <= LONGEST:
        yield "allowance", f"not below 0, at most a year; got {facts.allowance} seconds."
    if not 0 < facts.per_second <= FASTEST:
        yield "per_second", f"more than 0, at most {FASTEST:,.0f}; got {facts.per_second}."
    if not 0 < facts.answering <= 1:
        yield "answering", f"a share above 0, at most 1; got {facts.answering}."
    if not 0 <= facts.heard < 1:
        yield "heard", f"a part of the budget, below 1; got {facts.heard}."
    for slot, item in facts.pinned.items():
        if not 0 <= slot < facts.slots or item not in names:
            yield (
                "pinned",
                f"slot {slot} shows {item!r}; expected a slot below {facts.slots} and one of the items.",
            )
    if not all(most >= 0 and names >= set(several) for several, most in facts.caps):
        yield "caps", "each is a list of items and how many of them are shown at most."


def _unfit_budget(facts: PopulationFacts | PlacementFacts) -> Unfit:
    if not 0 < facts.epsilon <= EPSILON:
        yield "epsilon", f"more than 0, at most {EPSILON:g}; got {facts.epsilon}."
    if not 0 <= facts.delta < 1:
        yield "delta", f"not below 0, less than 1; got {facts.delta}."
    if not 1 <= facts.visits <= MOST:
        yield "visits", f"at least 1, at most {MOST:.0e}; got {facts.visits}."
