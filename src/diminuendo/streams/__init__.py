"""Streams: the users who arrive, in order; from memory, files, nowhere, or real life."""

from typing import TYPE_CHECKING

from diminuendo._lazy import lazily
from diminuendo.streams.baskets import read_baskets
from diminuendo.streams.builtin import BUILTIN, msweb, open_stream
from diminuendo.streams.contexts import Contexts
from diminuendo.streams.files import read
from diminuendo.streams.places import from_places, grid
from diminuendo.streams.read_as import ReadAs
from diminuendo.streams.synthetic import adversary, drift, taste_groups
from diminuendo.streams.users import Functions, Stream, Users
from diminuendo.streams.was_read import ReadNote, WasRead

if TYPE_CHECKING:
    from diminuendo.streams.mapped import out_of_core
    from diminuendo.streams.rows import from_ratings, from_table, read_ratings

# DuckDB takes its time to load, and most streams do without.
__getattr__, __dir__ = lazily(
    __name__, {"rows": "from_ratings from_table read_ratings", "mapped": "out_of_core"}
)

__all__ = [
    "BUILTIN",
    "Contexts",
    "Functions",
    "ReadAs",
    "ReadNote",
    "Stream",
    "Users",
    "WasRead",
    "adversary",
    "drift",
    "from_places",
    "from_ratings",
    "from_table",
    "grid",
    "msweb",
    "open_stream",
    "out_of_core",
    "read",
    "read_baskets",
    "read_ratings",
    "taste_groups",
]
