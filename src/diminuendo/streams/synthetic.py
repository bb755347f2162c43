"""People who do not exist: taste groups, drift, and sequences that break followers.

All are made from a seed, so that a run can be repeated anywhere.
"""

from __future__ import annotations

import itertools

import numpy as np
import scipy

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.objectives import NoisyOr
from diminuendo.streams.contexts import Contexts
from diminuendo.streams.people import People


def taste_groups(
    n_people: int = 20_000,
    n_items: int = 100,
    *,
    groups: int = 20,
    items_per_group: int = 10,
    group_skew: float = 1.0,
    seed: int = 0,
    right: float | None = None,
) -> People:
    """The paper's product display: each person belongs to a group with a few favourite items.

    Group g has weight (g + 1)^-group_skew. Within a group, click probabilities vary around the
    group's own: Beta-distributed with mean between 0.1 and 0.6 per favourite item.

    With `right` people have contexts: `group`, which is her own with that probability and otherwise any; and `chance`,
    as many values, drawn for each by itself, which say nothing.
    """
    n_people = _validate.positive_int(n_people, "n_people")
    n_items = _validate.positive_int(n_items, "n_items")
    if not 1 <= items_per_group <= n_items:
        raise InvalidInput(f"items_per_group must be from 1 to {n_items}; got {items_per_group}.")
    if right is not None and not 0 <= right <= 1:
        raise InvalidInput(f"right is the probability that a label is right, from 0 to 1; got {right!r}.")
    rng = np.random.default_rng(seed)
    favourites = np.stack([rng.choice(n_items, items_per_group, replace=False) for _ in range(groups)])
    favourites.sort(axis=1)
    means = rng.uniform(0.1, 0.6, size=favourites.shape)
    weights = np.arange(1, groups + 1) ** -group_skew
    group = rng.choice(groups, size=n_people, p=weights / weights.sum())
    likely = rng.beta(8 * means[group], 8 * (1 - means[group]))
    starts = np.arange(n_people + 1) * items_per_group
    matrix = scipy.sparse.csr_array(
        (likely.ravel(), favourites[group].ravel(), starts), shape=(n_people, n_items)
    )
    people = People(NoisyOr(), matrix, name="taste-groups" if right is None else "taste-labels")
    if right is None:
        return people
    coins = np.random.default_rng(
        [seed, 5]
    )  # of their own, so that the same people come with labels as without
    any_group, chance = coins.integers(0, groups, size=(2, n_people))
    label = np.where(coins.random(n_people) < right, group, any_group)
    return people.with_contexts(Contexts(group=groups, chance=groups), np.stack([label, chance], axis=1))


def drift(people: People, *, changes: int = 1, seed: int = 0) -> People:
    """The same people, but after each of `changes` equal spells the items swap their names."""
    rng = np.random.default_rng(seed)
    cuts = np.linspace(0, len(people), changes + 2).astype(int)
    spells = []
    for spell, (low, high) in enumerate(itertools.pairwise(cuts)):
        part = people[low:high]
        spells.append((part.permuted(rng.permutation(people.n_items)) if spell else part).matrices)
    parts = tuple(scipy.sparse.csr_array(scipy.sparse.vstack(leaf)) for leaf in zip(*spells, strict=True))
    return people.with_rows(parts, name=f"{people.name}-drift", labels=None)


def adversary(n_people: int = 20_000, n_items: int = 10) -> People:
    """A sequence on which whoever follows the leader earns nothing.

    After half a gain for item 0, people want in turn one item that is about to be overtaken: always the
    one behind. A deterministic leader with one slot is wrong in every round, while each of items 0 and 1
    satisfies half the people, and the other items satisfy nobody.
    """
    n_people = _validate.positive_int(n_people, "n_people")
    n_items = _validate.positive_int(n_items, "n_items")
    if n_items < 2:
        raise InvalidInput("An adversary needs two items or more.")
    wanted = np.arange(n_people) % 2  # round 0: item 0 by half; then 1, 0, 1, 0, ... in full
    values = np.ones(n_people)
    values[0] = 0.5
    matrix = scipy.sparse.csr_array((values, wanted, np.arange(n_people + 1)), shape=(n_people, n_items))
    return People(NoisyOr(), matrix, name="adversary")
