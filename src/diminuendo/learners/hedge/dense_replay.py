"""Replay of fixed-rate experts for people who name every item: the same slates, with the learning put off.

For noisy-or what item a adds is missed * p[a], in every slot the same row of p with another factor. So gains can wait
for a block of rounds and be added up together (deferred_gains.py). People among them who do not name every item
are learned from as ever, by `learn_person`. Slates, words used and all that is learned are the same, bit for bit,
whichever way a round goes.
"""

from __future__ import annotations

from diminuendo._numba import inline, kernel
from diminuendo.experts.hedge import HedgeState
from diminuendo.learners.hedge.full import learn_person
from diminuendo.objectives.family import GainBuffer
from diminuendo.objectives.noisy_or import NoisyOrTable
from diminuendo.privacy.draw_budget import paid_for
from diminuendo.randomness.deferred_gains import (
    Waiting,
    add_up,
    draw_while_waiting,
    look_ahead,
    ticks_of,
    wait,
)
from diminuendo.randomness.score_classes import TICKS
from diminuendo.randomness.words import UNFINISHED, SecretWords, begin, undo
from diminuendo.streams.people import People, shown_before
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items

FEWEST_ITEMS = 64
"""With fewer items a round takes a few microseconds either way: not worth the time to compile a second kernel."""


def names_all(people: People) -> bool:
    """Whether most people name every item, and items are many: then blocks pay."""
    table, n = people.table, people.n_items
    return (
        isinstance(table, NoisyOrTable) and n >= FEWEST_ITEMS and 2 * len(table.values) >= n * len(people) > 0
    )


@kernel
def replay_blocks(
    experts: HedgeState,
    table: NoisyOrTable,
    slates: Items,
    done: int,
    before: int,
    paid: Ints,
    secret: SecretWords,
    state: Floats,
    bag: GainBuffer,
    waiting: Waiting,
) -> int:
    """Rounds from `done` on until one must be resumed; nothing waits when it returns."""
    classes, rows, going = experts.classes, table.values, True
    waiting.rounds[0] = 0
    waiting.passed[:] = False
    while True:
        look_ahead(waiting)
        end = min(done + waiting.ahead[0], len(slates)) if going else done
        full = _full_rows(table, done, end, classes.totals.shape[0])
        if full > 0 or waiting.rounds[0] > 0:
            add_up(classes, waiting, rows, experts.best)
        if done == end:
            return done
        pause = done + max(full, 1)
        while going and done < pause:
            going = _next(experts, waiting, rows, slates[done], before + done, paid, secret)
            if going and full > 0:
                _put_off(experts, waiting, table, done, slates[done])
            elif going:
                learn_person(experts, table, done, slates[done], state, bag)
            done += going


@inline
def _full_rows(table: NoisyOrTable, person: int, end: int, n_items: int) -> int:
    """How many people from `person` on, before `end`, name every item; rows are sorted, so item a stands at place a."""
    first = person
    while person < end and table.starts[person + 1] - table.starts[person] == n_items:
        person += 1
    return person - first


@inline
def _next(
    experts: HedgeState,
    waiting: Waiting,
    rows: Floats,
    row: Items,
    number: int,
    paid: Ints,
    secret: SecretWords,
) -> bool:
    """The slate of round `number`, if it is paid for; the first is free. As in fi_dp.py."""
    if number > 0 and not paid_for(paid, 0, number - 1):
        return False
    begin(secret)
    for slot in range(len(row)):
        item = draw_while_waiting(experts.classes, waiting, rows, slot, secret)
        if item == UNFINISHED:
            undo(secret)
            return False
        row[slot] = EMPTY_SLOT if shown_before(row, slot, item) else item
    return True


@inline
def _put_off(experts: HedgeState, waiting: Waiting, table: NoisyOrTable, person: int, row: Items) -> None:
    """`learn_person` of a person who names every item: gains wait, but for those of shown items, which are none."""
    classes, rows, first, chances = experts.classes, table.values, table.starts[person], waiting.chances
    for slot in range(len(row)):  # before anything else, so that they come from memory together
        chances[slot] = 0.0 if row[slot] == EMPTY_SLOT else rows[first + row[slot]]
    waiting.begins[waiting.rounds[0]] = first
    missed = 1.0
    for slot in range(len(row)):
        factor = missed * TICKS
        wait(classes, waiting, rows, slot, factor)
        for earlier in range(slot):
            if row[earlier] != EMPTY_SLOT:  # what will be added to it is taken away beforehand
                classes.totals[row[earlier], slot] -= ticks_of(factor, chances[earlier])
        if row[slot] != EMPTY_SLOT:
            experts.own[slot] += ticks_of(factor, chances[slot])
            missed *= 1.0 - chances[slot]
            waiting.passed[row[slot]] = True
    for slot in range(len(row)):
        if row[slot] != EMPTY_SLOT:
            waiting.passed[row[slot]] = False
    waiting.rounds[0] += 1
