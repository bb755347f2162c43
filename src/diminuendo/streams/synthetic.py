"""Users who do not exist: taste groups, drift, and sequences that break followers.

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
from diminuendo.streams.users import Users


def taste_groups(
    n_users: int = 20_000,
    n_items: int = 100,
    *,
    groups: int = 20,
    items_per_group: int = 10,
    group_skew: float = 1.0,
    seed: int = 0,
    right: float | None = None,
) -> Users:
    """Return synthetic users with the tastes of groups: the product display of the paper.

    Parameters
    ----------
    n_users : int, default 20_000
        Number of users.
    n_items : int, default 100
        Number of items.
    groups : int, default 20
        Number of groups; group g has weight (g + 1)**-group_skew.
    items_per_group : int, default 10
        Favourite items of each group. Their click probabilities are Beta-distributed around means from 0.1 to 0.6.
    group_skew : float, default 1.0
        0 for groups of equal size.
    seed : int, default 0
        Equal seeds give equal streams.
    right : float, optional
        If given, users have the contexts `group`, which is their own group with this probability and otherwise any,
        and `chance`, which is independent of everything.

    Returns
    -------
    Users
        Noisy-or.

    Raises
    ------
    InvalidInput
        If a number is out of range.

    Examples
    --------
    >>> from diminuendo.streams import taste_groups
    >>> taste_groups(n_users=500, n_items=40)
    <Users: taste-groups, 500 users, 40 items, noisy-or>
    """
    n_users = _validate.positive_int(n_users, "n_users")
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
    group = rng.choice(groups, size=n_users, p=weights / weights.sum())
    likely = rng.beta(8 * means[group], 8 * (1 - means[group]))
    starts = np.arange(n_users + 1) * items_per_group
    matrix = scipy.sparse.csr_array(
        (likely.ravel(), favourites[group].ravel(), starts), shape=(n_users, n_items)
    )
    users = Users(NoisyOr(), matrix, name="taste-groups" if right is None else "taste-labels")
    if right is None:
        return users
    rng = np.random.default_rng([seed, 5])  # of their own, so that the same users come with labels as without
    any_group, chance = rng.integers(0, groups, size=(2, n_users))
    label = np.where(rng.random(n_users) < right, group, any_group)
    return users.with_contexts(Contexts(group=groups, chance=groups), np.stack([label, chance], axis=1))


def drift(users: Users, *, changes: int = 1, seed: int = 0) -> Users:
    """Return these users, with items renamed at random after each of `changes` equal spells.

    Parameters
    ----------
    users : Users
        Of a family whose columns are items.
    changes : int, default 1
        How often tastes change.
    seed : int, default 0
        Seed of the permutations.

    Returns
    -------
    Users

    Raises
    ------
    InvalidInput
        If columns of the family are not items.

    Examples
    --------
    >>> from diminuendo.streams import drift, taste_groups
    >>> len(drift(taste_groups(n_users=100, n_items=50), changes=3))
    100
    """
    rng = np.random.default_rng(seed)
    cuts = np.linspace(0, len(users), changes + 2).astype(int)
    spells = []
    for spell, (low, high) in enumerate(itertools.pairwise(cuts)):
        part = users[low:high]
        spells.append((part.permuted(rng.permutation(users.n_items)) if spell else part).matrices)
    parts = tuple(scipy.sparse.csr_array(scipy.sparse.vstack(leaf)) for leaf in zip(*spells, strict=True))
    return users.with_rows(parts, name=f"{users.name}-drift", labels=None)


def adversary(n_users: int = 20_000, n_items: int = 10) -> Users:
    """Return a sequence on which follow-the-leader earns nothing.

    Users want in turn one of items 0 and 1, always the one that is behind. A deterministic leader with one slot is
    wrong in every round, while each of the two items satisfies half of the users.

    Parameters
    ----------
    n_users : int, default 20_000
        Number of users.
    n_items : int, default 10
        Number of items, at least 2. No user wants those beyond the first two.

    Returns
    -------
    Users
        Noisy-or.

    Raises
    ------
    InvalidInput
        If there are fewer than two items.

    Examples
    --------
    >>> from diminuendo.streams import adversary
    >>> adversary(6).values((0,)).tolist()
    [0.5, 0.0, 1.0, 0.0, 1.0, 0.0]
    """
    n_users = _validate.positive_int(n_users, "n_users")
    n_items = _validate.positive_int(n_items, "n_items")
    if n_items < 2:
        raise InvalidInput("An adversary needs two items or more.")
    wanted = np.arange(n_users) % 2  # round 0: item 0 by half; then 1, 0, 1, 0, ... in full
    values = np.ones(n_users)
    values[0] = 0.5
    matrix = scipy.sparse.csr_array((values, wanted, np.arange(n_users + 1)), shape=(n_users, n_items))
    return Users(NoisyOr(), matrix, name="adversary")
