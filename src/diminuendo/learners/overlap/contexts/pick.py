r"""Slates for all types at once: chains that are shared as long as types agree.

Types with the same set so far are a *group*. In each step a type takes its own best item where that is more than
MARGIN better for it than the best item of its group; near ties do not split groups. A question is a set and the item
that joins it, whichever users are asked it: as long as types agree, rows have the strength of all users. What a row
says of a group is passed on to its types: each loses the same share of each item, since how items overlap is a
property of the items.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from diminuendo._numba import kernel
from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.overlap.pick import SlatePicker
from diminuendo.learners.overlap.posterior import Posterior
from diminuendo.learners.overlap.query_weights import ranks
from diminuendo.learners.overlap.running_means import Measured, RunningMeans
from diminuendo.learners.overlap.stored import StoredQuestions
from diminuendo.sums.greedy_queries.release import no_items
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items

MARGIN = 0.1
"""By which share an item must be better for a type than what its group takes."""
BACKFILL = 16
"""How many items are ranked behind each slate, for where some of it may not be shown."""


class TypedSlates(NamedTuple):
    """What was picked."""

    present: Ints
    """The types that have slates of their own."""
    slates: Items
    """(types, slots)."""
    gains: Floats
    """(types, items): what each item would add, as is believed."""
    backfill: Items
    """(types, BACKFILL): the best of the others, -1 where there are fewer."""
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

    def mixed(self, group: Ints, many: int) -> Posterior:
        """What is believed of each group, (groups, items): the mean over its types."""
        shares = self.weights / np.bincount(group, self.weights, many)[group]
        size = many, self.mean.shape[1]
        result = Posterior(np.zeros(size), np.zeros(size))
        _mix(self.mean, self.variance, group, shares, *result)
        return result

    def follow(self, group: Ints, before: Posterior, after: Posterior) -> None:
        """Each type changes as its group did: by the same factor; or, where that is large, by the same difference."""
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(before.mean > 1e-12, after.mean / before.mean, 0.0)
        large = np.abs(factor) > 2.0
        factor, moved = np.where(large, 1.0, factor), np.where(large, after.mean - before.mean, 0.0)
        spread = after.variance / before.variance
        mean, variance = np.empty_like(self.mean), np.empty_like(self.mean)
        _follow(self.mean, self.variance, group, factor, moved, spread, mean, variance)
        self.mean, self.variance = mean, variance


@kernel
def _mix(
    mean: Floats, variance: Floats, group: Ints, shares: Floats, mixed: Floats, mixed_variance: Floats
) -> None:
    """Add what is believed of each type, times its share, to what is believed of its group."""
    for each in range(len(group)):
        share = shares[each]
        for whole, part in ((mixed[group[each]], mean[each]), (mixed_variance[group[each]], variance[each])):
            for item in range(len(part)):
                whole[item] += share * part[item]


@kernel
def _follow(
    mean: Floats,
    variance: Floats,
    group: Ints,
    factor: Floats,
    moved: Floats,
    spread: Floats,
    new_mean: Floats,
    new_variance: Floats,
) -> None:
    """Each type's means times the factors of its group and moved as far, and its variances times their spread."""
    for each in range(len(group)):
        times, more, wider = factor[group[each]], moved[group[each]], spread[group[each]]
        mine, my_variance, its, its_variance = mean[each], variance[each], new_mean[each], new_variance[each]
        for item in range(len(mine)):
            its[item] = mine[item] * times[item] + more[item]
            its_variance[item] = my_variance[item] * wider[item]


def pick_by_type(
    items: ItemAvailability,
    picker: SlatePicker,
    release: StoredQuestions,
    present: Ints,
    shares: Floats,
    posterior: Posterior,
) -> TypedSlates:
    """The slates of all types, greedy on what is believed with these answers.

    `picker`: has the means of what was published before. `belief`: (types that are present, items). `shares`: of
    users, of all types.
    """
    n_types, slots = len(shares), items.slots
    types = _Types(n_types, present, shares[present] + 1e-9, posterior.mean, posterior.variance)
    slates = np.full((len(present), slots), EMPTY_SLOT, dtype=np.int32)
    published: list[tuple[RunningMeans, list[int], Measured]] = []
    may = items.available
    places = np.full(items.n_items, float(items.n_items))
    for left in range(slots, 0, -1):
        group, sets = types.sets
        if left == 1:
            result = release.residual_by_type()
            before = types.mixed(group, len(sets))
            keys = [sorted(each) for each in sets]
            part = None if result is None else _of_questions(result, present, group, len(sets), shares)
            mean, deviation = _means(picker.residuals, keys, part, published)
            types.follow(group, before, before.condition_on_gains(mean, deviation))
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
        by_type = np.full(n_types, EMPTY_SLOT, dtype=np.int64)
        by_type[present] = chosen
        result = release.losses_by_type(by_type)
        # Groups anew: those of one question are of one set now, but one set may come of several questions.
        question, keyed = types.sets.joining(chosen)
        types.sets = types.sets.joined_by(chosen)
        before = types.mixed(question, len(keyed))
        keys = [[*sorted(each), item] for each, item in keyed]
        part = None if result is None else _of_questions(result, present, question, len(keyed), shares)
        mean, deviation = _means(picker.rows, keys, part, published)
        lost = Posterior(before.mean.ravel(), before.variance.ravel()).condition_on_losses(
            mean.ravel(), deviation.ravel()
        )
        types.follow(
            question, before, Posterior(lost.mean.reshape(mean.shape), lost.variance.reshape(mean.shape))
        )
    backfill = _backfill(items, slates, types.mean)
    return TypedSlates(present, slates, types.mean, backfill, places, published)


def _of_questions(
    published: tuple[Ints, Measured], present: Ints, question: Ints, many: int, shares: Floats
) -> list[Measured]:
    """What was published for each of our questions, with the share of users who were asked it."""
    whose, measured = published
    exposed = np.bincount(np.maximum(whose, 0), np.where(whose >= 0, shares, 0.0), len(measured.sums))
    theirs = np.full(many, -1, dtype=np.int64)
    theirs[question] = whose[present]
    return [
        Measured(measured.sums[place], measured.units * exposed[place], measured.sigma) for place in theirs
    ]


def _means(
    means: RunningMeans,
    keys: list[list[int]],
    measurements: list[Measured] | None,
    published: list[tuple[RunningMeans, list[int], Measured]],
) -> tuple[Floats, Floats]:
    """(questions, items): means over releases, with what was found now, and their deviations."""
    if measurements is not None:
        published += [(means, key, measured) for key, measured in zip(keys, measurements, strict=True)]
    return means.preview_each(keys, measurements)


def _chosen(items: ItemAvailability, slates: Items, types: _Types, group: Ints, whole: Posterior) -> Ints:
    """The next item of each type, put into its slate."""
    first = np.unique(group, return_index=True)[1]  # a type of each group: they have the same set
    common = items.pick_each(whole.mean, slates[first])[group]
    own = items.pick_each(types.mean, slates)
    each = np.arange(len(slates))
    better = types.mean[each, own[:, 1]] > (1 + MARGIN) * types.mean[each, common[:, 1]]
    better |= (common[:, 1] == EMPTY_SLOT) | (items.rules.eligible is not None)
    result = np.where(better[:, None], own, common)
    took = np.flatnonzero(result[:, 1] != EMPTY_SLOT)
    slates[took, result[took, 0]] = result[took, 1]
    chosen: Ints = result[:, 1]
    return chosen


def _backfill(items: ItemAvailability, slates: Items, gains: Floats) -> Items:
    worth = np.where(items.available, gains, -np.inf)
    rows, slots = np.nonzero(slates != EMPTY_SLOT)
    worth[rows, slates[rows, slots]] = -np.inf
    result = np.full((len(slates), BACKFILL), EMPTY_SLOT, dtype=np.int32)
    _best(worth, result)
    return result


@kernel
def _best(worth: Floats, best: Items) -> None:
    """For each row the items of most worth, from the best on; of those that are worth the same the first first."""
    for row in range(len(worth)):
        many = 0
        for item in range(worth.shape[1]):
            mine = worth[row, item]
            if mine == -np.inf or (many == best.shape[1] and mine <= worth[row, best[row, many - 1]]):
                continue
            if many < best.shape[1]:
                many += 1
            place = many - 1
            while place > 0 and worth[row, best[row, place - 1]] < mine:
                best[row, place] = best[row, place - 1]
                place -= 1
            best[row, place] = item
