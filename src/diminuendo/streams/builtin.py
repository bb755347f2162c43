"""The real stream that ships with the package, and the table of streams that have a name."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from importlib import resources
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from diminuendo import _validate
from diminuendo._plugins import Table
from diminuendo.errors import InvalidInput
from diminuendo.objectives import FAMILIES, NoisyOr
from diminuendo.objectives.family import Family
from diminuendo.streams.baskets import read_baskets, split_entry
from diminuendo.streams.files import read
from diminuendo.streams.read_as import ReadAs
from diminuendo.streams.synthetic import adversary, drift, taste_groups
from diminuendo.streams.users import Users
from diminuendo.types import Progress


def msweb() -> Users:
    """Return the stream of 32,711 visitors of a web site and the areas that each of them opened.

    Returns
    -------
    Users
        Noisy-or with click probability 1; 294 items with labels, in the order of arrival.

    Notes
    -----
    One round is one visitor, so the privacy of a round is the privacy of a user.

    References
    ----------
    Anonymous Microsoft Web Data, UCI Machine Learning Repository (1998), CC BY 4.0.

    Examples
    --------
    >>> import diminuendo as dim
    >>> dim.msweb()
    <Users: msweb, 32,711 users, 294 items, noisy-or>
    """
    data = resources.files("diminuendo.streams") / "data"
    with resources.as_file(data / "msweb.baskets.txt.gz") as path:
        users = read_baskets(path, NoisyOr(), n_items=294, name="msweb")
    with (data / "msweb.items.csv.gz").open("rb") as packed, gzip.open(packed, "rt") as text:
        users.labels = tuple(row["name"] for row in csv.DictReader(text))
    return users


def msweb_drift() -> Users:
    """The same visitors, but half way through the week all areas swap their names."""
    return drift(msweb())


def msweb_entry() -> Users:
    """The same visitors; one area of each visit, drawn by a fixed seed, is known beforehand, and the others are wanted.

    The context is called `entry`. Who opened one area only wants nothing more.
    """
    users = msweb()
    (areas,) = users.matrices
    rng = np.random.default_rng([0, 77])
    lengths = np.diff(areas.indptr).tolist()
    picked = areas.indptr[:-1] + np.array([rng.integers(length) for length in lengths])
    return split_entry(users, areas.indices[picked].astype(np.int64), drawn=True)


def taste_labels() -> Users:
    """Taste groups with two labels on each user: `group`, right nine times in ten, and `chance`, which says nothing."""
    return taste_groups(right=0.9)


BUILTIN = Table[Callable[[], Users]](
    "stream",
    {
        "msweb": msweb,
        "msweb-drift": msweb_drift,
        "msweb-entry": msweb_entry,
        "taste-groups": taste_groups,
        "taste-labels": taste_labels,
        "adversary": adversary,
    },
)
"""Streams by the name users type, those of plugins included. A line here brings contract tests and a CLI name."""


def from_rows() -> dict[str, Callable[[], Family]]:
    """Objectives that need no public parameters beyond their defaults, so that a name is enough."""
    return {
        name: family
        for name, family in FAMILIES.items()
        if all(part.default is not part.empty for part in signature(family).parameters.values())
    }


def family_called(objective: str | None) -> Family | None:
    """The family of that name, with its defaults; None where no name was said."""
    if objective is None:
        return None
    return _validate.lookup(from_rows(), objective, "objective for rows of a file")()


def open_stream(
    source: str | Path,
    objective: str | None = None,
    *,
    n_items: int | None = None,
    progress: Progress | None = None,
    **how: Any,
) -> Users:
    """Open a stream by its built-in name or from a file.

    Parameters
    ----------
    source : str or Path
        A name in `streams.BUILTIN`, those of plug-ins included, or a file that `read` reads.
    objective : str, optional
        Name of a family that needs no public parameters, such as "noisy-or" or "best-match". By default the
        stream's own.
    n_items : int, optional
        Number of items; by default as many as occur.
    progress : callable, optional
        Called with numbers of bytes or rows just read.
    **how
        As in `read`, for instance `context="country"`. Without `context`, nothing is known of users when they
        arrive.

    Returns
    -------
    Users

    Raises
    ------
    InvalidInput
        If there is no stream or file of this name, or it cannot be read so.
    UnknownName
        If there is no objective of this name.

    Examples
    --------
    >>> import diminuendo as dim
    >>> users = dim.open_stream("taste-labels", context="group")
    >>> users.contexts
    <Contexts group: 20>
    """
    family = family_called(objective)
    if str(source) not in BUILTIN:
        return read(source, family, n_items=n_items, progress=progress, **how)
    read_as = ReadAs(**how)
    read_as.only_contexts(str(source))
    users = BUILTIN[str(source)]().with_columns(read_as.contexts, private=read_as.private_context)
    if n_items not in (None, users.n_items):
        raise InvalidInput(f"{source} has {users.n_items} items; got n_items={n_items}.")
    if family is None or family.name == users.family_name:
        return users
    changed = Users(family, users.matrices, users.n_items, name=users.name, labels=users.labels)
    changed.contexts, changed.types = users.contexts, users.types
    return changed
