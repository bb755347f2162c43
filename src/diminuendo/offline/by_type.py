"""Greedy in hindsight with a slate for each context id: what contexts could be worth, and how much of that is chance.

Greedy on the users of each id overfits. So the same is done with labels that say nothing, the users' own in random
order: what these earn above one slate for all is chance, and only the rest is information.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diminuendo.errors import InvalidInput
from diminuendo.offline.greedy import Hindsight, greedy
from diminuendo.streams.users import Stream, Users
from diminuendo.types import Ints

SHUFFLE = 9
"""The seed by which labels are dealt out again."""


@dataclass(frozen=True)
class HindsightByType:
    """A slate for each context id, chosen with all users known.

    Attributes
    ----------
    value : float
        Mean over users of the value of the slate of their own context id.
    slates : dict of int to Hindsight
        By context id, of those that occur.
    users : dict of int to int
        How many users each context id has.

    """

    value: float
    slates: dict[int, Hindsight]
    users: dict[int, int]


def greedy_by_type(stream: Stream, slots: int, types: Ints | None = None) -> HindsightByType:
    """Return greedy in hindsight on the users of each context id.

    Parameters
    ----------
    stream : Users
        All users.
    slots : int
        Number of items in each slate.
    types : ndarray of int, optional
        Context ids other than those of the stream, such as `shuffled(stream.types)`.

    Returns
    -------
    HindsightByType

    Raises
    ------
    InvalidInput
        If the stream has no contexts, or `types` is of another length.

    Notes
    -----
    A context id of three users gets a slate made for these three, so the value is partly chance. What `shuffled`
    ids earn above one slate for all is that chance.

    Examples
    --------
    >>> import diminuendo as dim
    >>> from diminuendo.offline import greedy_by_type, shuffled
    >>> users = dim.open_stream("taste-labels", context="group")
    >>> known, chance = greedy_by_type(users, 3), greedy_by_type(users, 3, shuffled(users.types))
    >>> known.value > chance.value > dim.greedy(users, 3).value
    True
    """
    known = stream.types if types is None else types
    if known is None or not isinstance(stream, Users):
        raise InvalidInput(
            f"Nothing is known of the users of {stream.name}; give users.with_contexts(contexts, table)."
        )
    if len(known) != len(stream):
        raise InvalidInput(f"types must have one for each of {len(stream):,} users; got {len(known):,}.")
    order = np.argsort(known, kind="stable")
    kinds, starts = np.unique(known[order], return_index=True)
    slates, users = {}, {}
    for kind, rows in zip(kinds.tolist(), np.split(order, starts[1:]), strict=True):
        slates[kind] = greedy(stream[rows], slots)
        users[kind] = len(rows)
    earned = sum(users[kind] * slates[kind].value for kind in slates)
    return HindsightByType(earned / max(1, len(stream)), slates, users)


def shuffled(types: Ints, seed: int = SHUFFLE) -> Ints:
    """Return the same context ids in random order: as many users of each, and no information.

    Parameters
    ----------
    types : ndarray of int
        Context ids.
    seed : int, default 9
        Seed of the permutation.

    Returns
    -------
    ndarray of int
    """
    return np.random.default_rng(seed).permutation(types)
