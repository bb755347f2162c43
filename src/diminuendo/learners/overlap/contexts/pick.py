r"""Slates for all types at once: chains that are shared as long as types agree.

Types with the same set so far are a *group*. In each step a type takes its own best item where that is more than MARGIN
better for it than the best item of its group; near ties do not split groups. A question is a set and the item that
joins it, whoever is asked it: as long as types agree, rows have everybody's strength. What a row says of a group is
passed on to its types: each loses the same share of each item, since how items overlap is a property of the items.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.overlap.belief import Belief
from diminuendo.learners.overlap.focus import ranks
from diminuendo.learners.overlap.pick import Questions, SlatePicker
from diminuendo.learners.overlap.running_means import Measured, RunningMeans
from diminuendo.sums.chains.sets_by_type import no_items
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items

MARGIN = 0.1
"""By which share an item must be better for a type than what its group takes."""
STAND_INS = 16
"""How many items are ranked behind each slate, for where some of it may not be shown."""


class TypedQuestions(Questions, Protocol):
    """One release of chains, one for everybody or one for each type. None: it cannot be had."""

    def row_by_type(self, items: Ints) -> tuple[Ints, Measured] | None:
        """The question of each type, and what was published for each question, as these items join."""

    def rest_by_type(self) -> tuple[Ints, Measured] | None:
        """The number of each type's set, and what is left for the people of each set."""


class TypedSlates(NamedTuple):
    """What was picked."""

    present: Ints
    """The types that have slates of their own."""
    slates: Items
    """(types, slots)."""
    chains: Ints
    """(types, slots - 1): the items by which each was picked, in order, but for the last; EMPTY_SLOT: no more."""
    gains: Floats
    """(types, items): what each item would add, as is believed."""
    stand_ins: Items
    """(types, STAND_INS): the best of the others, -1 where there are fewer."""
    places: Floats
    """The best rank of each item in any group and any step."""
    published: list[tuple[RunningMeans, list[int], Measured]]
    """The answers, and the means that they belong to."""


class _Types:
    """Beliefs of all types that are present, and what each has so far."""

    def __init__(self, n_types: int, present: Ints, weights: Floats, mean: Floats, variance: Floats) -> None:
        self.n_types, self.present, self.weights = n_types, present, weights
        self.mean, self.variance = mean, variance
        self.sets = no_items(len(present))

    def mixed(self, group: Ints, many: int) -> Belief:
        """What is believed of each group, (groups, items): the mean over its types."""
        order = np.argsort(group, kind="stable")
        shares = (self.weights / np.bincount(group, self.weights, many)[group])[order, None]
        first = np.searchsorted(group[order], np.arange(many))
        mean, variance = (
            np.add.reduceat(shares * part[order], first, axis=0) for part in (self.mean, self.variance)
        )
        return Belief(mean, variance)

    def follow(self, group: Ints, before: Belief, after: Belief) -> None:
        """Each type changes as its group did: by the same factor."""
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(before.mean > 1e-12, after.mean / before.mean, 0.0)
        moved = after.mean - before.mean
        spread = after.variance / before.variance
        plain = np.abs(factor) <= 2.0
        self.mean = np.where(plain[group], self.mean * factor[group], self.mean + moved[group])
        self.variance = self.variance * spread[group]


def pick_by_type(
    items: ItemAvailability,
    picker: SlatePicker,
    asked: TypedQuestions,
    present: Ints,
    shares: Floats,
    belief: Belief,
) -> TypedSlates:
    """The slates of all types, greedy on what is believed with these answers.

    `picker`: has the means of what was published before. `belief`: (types that are present, items). `shares`: of
    people, of all types.
    """
    n_types, slots = len(shares), items.slots
    types = _Types(n_types, present, shares[present] + 1e-9, belief.mean, belief.variance)
    slates = np.full((len(present), slots), EMPTY_SLOT, dtype=np.int32)
    chains = np.full((len(present), slots - 1), EMPTY_SLOT, dtype=np.int64)
    published: list[tuple[RunningMeans, list[int], Measured]] = []
    may = items.available
    places = np.full(items.n_items, float(items.n_items))
    for left in range(slots, 0, -1):
        group, sets = types.sets
        if left == 1:
            found = asked.rest_by_type()
            before = types.mixed(group, len(sets))
            keys = [sorted(each) for each in sets]
            part = None if found is None else _of_questions(found, present, group, len(sets), shares)
            mean, deviation = _means(picker.rests, keys, part, published)
            types.follow(group, before, before.see(mean, deviation))
        whole = types.mixed(group, len(sets))
        for number, each in enumerate(sets):
            among = may.copy()
            among[list(each)] = False
            np.minimum(places, ranks(whole.mean[number], np.flatnonzero(among)), out=places)
        chosen = _chosen(items, slates, types, group, whole)
        took = np.flatnonzero(chosen != EMPTY_SLOT)
        places[chosen[took]] = 1.0
        if left == 1 or len(took) == 0:
            break
        chains[:, slots - left] = chosen
        by_type = np.full(n_types, EMPTY_SLOT, dtype=np.int64)
        by_type[present] = chosen
        found = asked.row_by_type(by_type)
        # Groups anew: those of one question are of one set now, but one set may come of several questions.
        question, keyed = types.sets.joining(chosen)
        types.sets = types.sets.joined_by(chosen)
        before = types.mixed(question, len(keyed))
        keys = [[*sorted(each), item] for each, item in keyed]
        part = None if found is None else _of_questions(found, present, question, len(keyed), shares)
        mean, deviation = _means(picker.rows, keys, part, published)
        if picker.fallback_rows:
            mean, deviation = picker.rows.with_others_each(keys, (mean, deviation))
        lost = Belief(before.mean.ravel(), before.variance.ravel()).lose(mean.ravel(), deviation.ravel())
        types.follow(
            question, before, Belief(lost.mean.reshape(mean.shape), lost.variance.reshape(mean.shape))
        )
    stand_ins = _stand_ins(items, slates, types.mean)
    return TypedSlates(present, slates, chains, types.mean, stand_ins, places, published)


def _of_questions(
    found: tuple[Ints, Measured], present: Ints, question: Ints, many: int, shares: Floats
) -> list[Measured]:
    """What was published for each of our questions, with the share of people who were asked it."""
    whose, measured = found
    asked = np.bincount(np.maximum(whose, 0), np.where(whose >= 0, shares, 0.0), len(measured.sums))
    theirs = np.full(many, -1, dtype=np.int64)
    theirs[question] = whose[present]
    return [Measured(measured.sums[place], measured.units * asked[place], measured.sigma) for place in theirs]


def _means(
    means: RunningMeans,
    keys: list[list[int]],
    found: list[Measured] | None,
    published: list[tuple[RunningMeans, list[int], Measured]],
) -> tuple[Floats, Floats]:
    """(questions, items): means over releases, with what was found now, and their deviations."""
    if found is not None:
        published += [(means, key, measured) for key, measured in zip(keys, found, strict=True)]
    return means.would_be_each(keys, found)


def _chosen(items: ItemAvailability, slates: Items, types: _Types, group: Ints, whole: Belief) -> Ints:
    """The next item of each type, put into its slate."""
    first = np.unique(group, return_index=True)[1]  # a type of each group: they have the same set
    common = items.pick_each(whole.mean, slates[first])[group]
    own = items.pick_each(types.mean, slates)
    each = np.arange(len(slates))
    better = types.mean[each, own[:, 1]] > (1 + MARGIN) * types.mean[each, common[:, 1]]
    better |= (common[:, 1] == EMPTY_SLOT) | (items.rules.eligible is not None)
    found = np.where(better[:, None], own, common)
    took = np.flatnonzero(found[:, 1] != EMPTY_SLOT)
    slates[took, found[took, 0]] = found[took, 1]
    chosen: Ints = found[:, 1]
    return chosen


def _stand_ins(items: ItemAvailability, slates: Items, gains: Floats) -> Items:
    worth = np.where(items.available, gains, -np.inf)
    rows, slots = np.nonzero(slates != EMPTY_SLOT)
    worth[rows, slates[rows, slots]] = -np.inf
    many = min(STAND_INS, worth.shape[1])
    best = np.argsort(-worth, axis=1, kind="stable")[:, :many]
    found = np.full((len(slates), STAND_INS), EMPTY_SLOT, dtype=np.int32)
    found[:, :many] = np.where(np.isfinite(np.take_along_axis(worth, best, axis=1)), best, EMPTY_SLOT)
    return found
