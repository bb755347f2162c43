"""A site made known to its store: keys, populations and placements, if they can be paid for."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from diminuendo.errors import DiminuendoError, InvalidInput
from diminuendo.learners.remote_rounds import RemoteRounds
from diminuendo.privacy.events import Composed, Event
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.sources import SeededSource
from diminuendo.service.keys import TRAINER, make_keys, read_keys
from diminuendo.service.records import PlacementSpec, PopulationSpec, read
from diminuendo.service.site import Site
from diminuendo.service.store import Store, open_store
from diminuendo.service.store.fencing import CLOSED
from diminuendo.service.store.rolled_back import adopt, refuse_older, refuse_unknown
from diminuendo.service.trainer.made import budget_of, made
from diminuendo.service.trainer.private_keys import make_master, read_masters
from diminuendo.service.trainer.response_count import ResponseCount


def prepared(site: Site, adopting: bool = False) -> Iterator[str]:
    """Make the site known, and say what is new. What cannot be paid for is refused before anything is made.

    `adopting`: close the populations of a store of which this machine knows nothing, and begin new ones
    (rolled_back.py).
    """
    with open_store(site.store) as store:
        if adopting:
            yield from _adopted(site, store)
        known = {
            row.name: placed
            for row in store.placements()
            if (placed := read(PlacementSpec, row.spec)) is not None
        }
        (refuse_unknown if site.trainers else refuse_older)(store, site.keys / TRAINER)
        _refuse_changes(store, site, known)
        for name, spec in site.populations.items():
            check_affordable(name, spec, _placements_of(name, site.placements | known))
        if known:
            read_keys(site.keys)  # with new ones everybody would be somebody new
        else:
            make_keys(site.keys)
        if site.trainers and site.trainer_keys == "store":
            if any(store.keys_of(row.number) for row in store.placements()):
                read_masters(site.keys / TRAINER)  # with a new one nobody could open what is there
            else:
                make_master(site.keys / TRAINER)
        there = store.populations()
        for name, spec in site.populations.items():
            if name not in there:
                store.add_population(name, msgspec.json.encode(spec))
                yield f"New population {name}: epsilon {spec.epsilon:g}, delta {spec.delta:g}."
        for name, placed in site.placements.items():
            if name not in known:
                store.add_placement(name, placed.population, msgspec.json.encode(placed))
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


def _placements_of(population: str, placements: dict[str, PlacementSpec]) -> dict[str, PlacementSpec]:
    return {name: spec for name, spec in placements.items() if spec.population == population}


def _refuse_changes(store: Store, site: Site, known: dict[str, PlacementSpec]) -> None:
    populations = {
        name: spec
        for name, written in store.populations().items()
        if (spec := read(PopulationSpec, written)) is not None
    }
    wrong = list[str]()
    for table, told, before in (
        ("populations", site.populations, populations),
        ("placements", site.placements, known),
    ):
        for name in told.keys() & before.keys():
            fields = [
                field
                for field in told[name].__struct_fields__
                if getattr(told[name], field) != getattr(before[name], field)
            ]
            if fields:
                wrong.append(f"{table}.{name} was made with another {', '.join(fields)}.")
    if wrong:
        raise InvalidInput(
            "What was promised to users does not change: give what is new another name, or say it as before.\n  "
            + "\n  ".join(wrong)
        )


def check_affordable(name: str, population: PopulationSpec, placements: dict[str, PlacementSpec]) -> None:
    """Refuse placements of a population that cannot be made, or cost more together than it may spend."""
    if not placements:
        return
    budget, costs = budget_of(population, next(iter(placements.values()))), list[Event]()
    for placed, spec in placements.items():
        if spec.max_rounds_per_user != population.max_rounds_per_user:
            raise InvalidInput(
                f"placements.{placed} has max_rounds_per_user = {spec.max_rounds_per_user}, and "
                f"populations.{name} protects {population.max_rounds_per_user} "
                "rounds of one user together: give both the same max_rounds_per_user."
            )
        try:
            learner = made(spec, Ledger(budget).named(placed), lambda: 0.0, SeededSource(0))
            RemoteRounds(learner)
            costs += ResponseCount(spec, Ledger(budget)).cost
        except DiminuendoError as error:
            raise InvalidInput(f"placements.{placed} cannot be made: {error}") from error
        costs += [] if learner.policy.events is None else [learner.policy.events]
    try:
        Ledger(budget).require(Composed(tuple(costs)))
    except DiminuendoError as error:
        raise InvalidInput(
            f"populations.{name} cannot pay for all its placements together: {error}"
        ) from error
