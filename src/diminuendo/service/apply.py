"""`diminuendo check` and `diminuendo apply`: a site's file against its store.

`check` writes nothing. `apply` writes populations and placements that are new; running processes of the site find them
by polling. Both refuse what cannot be paid for, and name everything that is wrong at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from diminuendo.errors import DiminuendoError, InvalidInput
from diminuendo.learners.remote_rounds import RemoteRounds
from diminuendo.privacy.events import Composed, Event
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.sources import SeededSource
from diminuendo.service.keys import TRAINER, make_keys, read_keys
from diminuendo.service.records import PlacementSpec, PopulationSpec, read
from diminuendo.service.site import Site
from diminuendo.service.store import find_store, open_store
from diminuendo.service.store.fencing import CLOSED
from diminuendo.service.store.rolled_back import adopt, refuse_older, refuse_unknown
from diminuendo.service.store.sql import Store
from diminuendo.service.trainer.learners import budget_of, make_learner
from diminuendo.service.trainer.private_keys import make_master, read_masters
from diminuendo.service.trainer.response_count import ResponseCount


def check_site(site: Site) -> Iterator[str]:
    """What `apply` would add."""
    store = find_store(site.store)
    if store is None:
        _refuse_errors(site, {}, {})
        yield from _new(site, {}, {})
        return
    with store:
        refuse_older(store, site.keys / TRAINER)
        populations, placements = _specs(store)
        _refuse_errors(site, populations, placements)
        if placements:
            read_keys(site.keys)
        yield from _new(site, populations, placements)


def apply_site(site: Site, adopting: bool = False) -> Iterator[str]:
    """Write what is new into the store, and say what it was. Nothing is written if anything is wrong.

    `adopting`: close the populations of a store that this machine does not know, and begin new ones (rolled_back.py).
    """
    with open_store(site.store) as store:
        if adopting:
            yield from _adopted(site, store)
        (refuse_unknown if site.trainers else refuse_older)(store, site.keys / TRAINER)
        populations, placements = _specs(store)
        _refuse_errors(site, populations, placements)
        if placements:
            read_keys(site.keys)  # with new ones no user would be recognised
        else:
            make_keys(site.keys)
        if site.trainers and site.trainer_keys == "store":
            if any(store.keys_of(row.number) for row in store.placements()):
                read_masters(site.keys / TRAINER)  # a new one could not decrypt what is there
            else:
                make_master(site.keys / TRAINER)
        for name, spec in site.populations.items():
            if name not in populations:
                store.add_population(name, msgspec.json.encode(spec))
        for name, placed in site.placements.items():
            if name not in placements:
                store.add_placement(name, placed.population, msgspec.json.encode(placed))
        yield from _new(site, populations, placements)


def _specs(store: Store) -> tuple[dict[str, PopulationSpec], dict[str, PlacementSpec]]:
    """By name, the populations and placements in the store."""
    populations = {name: read(PopulationSpec, spec) for name, spec in store.populations().items()}
    placements = {row.name: read(PlacementSpec, row.spec) for row in store.placements()}
    return (
        {name: spec for name, spec in populations.items() if spec is not None},
        {name: spec for name, spec in placements.items() if spec is not None},
    )


def _new(
    site: Site, populations: Mapping[str, PopulationSpec], placements: Mapping[str, PlacementSpec]
) -> Iterator[str]:
    for name, spec in site.populations.items():
        if name not in populations:
            yield f"New population {name}: epsilon {spec.epsilon:g}, delta {spec.delta:g}."
    for name, placed in site.placements.items():
        if name not in placements:
            yield f"New placement {name}: {placed.slots} of {len(placed.items)} items, {placed.feedback} feedback."


def _adopted(site: Site, store: Store) -> Iterator[str]:
    if not site.trainers:
        raise InvalidInput("A store is adopted on a machine with trainers; this one has trainers = 0.")
    for old in adopt(store, site.keys / TRAINER, lambda: make_keys(site.keys)):
        name = old.partition(CLOSED)[0]
        yield (
            f"Adopted: population {old} is closed. Nothing more is learned or published in it; count its whole budget "
            f"as spent. The new population {name} has a budget of its own, and users of both have both."
        )


def _refuse_errors(
    site: Site, populations: Mapping[str, PopulationSpec], placements: Mapping[str, PlacementSpec]
) -> None:
    """Refuse a site that changes what is in the store, or whose populations cannot pay for their placements."""
    changed = [*_changes("populations", site.populations, populations)]
    changed += _changes("placements", site.placements, placements)
    if changed:
        changed.insert(
            0, "Specifications never change: give what is new another name, or restore the old lines."
        )
    whole = {**site.placements, **placements}
    wrong = [
        error
        for name, spec in site.populations.items()
        for error in budget_errors(name, spec, {n: s for n, s in whole.items() if s.population == name})
    ]
    if changed or wrong:
        raise InvalidInput("\n  ".join([*changed, *wrong]))


def _changes(
    table: str, new: Mapping[str, msgspec.Struct], old: Mapping[str, msgspec.Struct]
) -> Iterator[str]:
    for name in new.keys() & old.keys():
        fields = [f for f in new[name].__struct_fields__ if getattr(new[name], f) != getattr(old[name], f)]
        if fields:
            yield f"{table}.{name} was made with another {', '.join(fields)}."


def budget_errors(
    name: str, population: PopulationSpec, placements: Mapping[str, PlacementSpec]
) -> Iterator[str]:
    """Placements of a population that cannot be made, or cost more together than its budget."""
    if not placements:
        return
    first, costs, whole = next(iter(placements)), list[Event](), True
    try:
        budget = budget_of(population, placements[first])
    except DiminuendoError as error:
        yield f"placements.{first} cannot be made: {error}"
        return
    for placed, spec in placements.items():
        if spec.max_rounds_per_user != population.max_rounds_per_user:
            whole = False
            yield (
                f"placements.{placed} has max_rounds_per_user = {spec.max_rounds_per_user}, and populations.{name} "
                f"protects {population.max_rounds_per_user} rounds of one user together: give both the same."
            )
            continue
        try:
            learner = make_learner(spec, Ledger(budget).named(placed), lambda: 0.0, SeededSource(0))
            RemoteRounds(learner)
            costs += ResponseCount(spec, Ledger(budget)).cost
        except DiminuendoError as error:
            whole = False
            yield f"placements.{placed} cannot be made: {error}"
            continue
        costs += [] if learner.policy.events is None else [learner.policy.events]
    if whole:
        try:
            Ledger(budget).require(Composed(tuple(costs)))
        except DiminuendoError as error:
            yield f"populations.{name} cannot pay for all its placements together: {error}"
