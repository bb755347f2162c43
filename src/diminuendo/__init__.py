"""diminuendo: private online choice.

A stream of people arrives; each is shown k of N things; we learn from what each tells us.

>>> import diminuendo as dim
>>> people = dim.msweb()[:2000]
>>> learner = dim.OrderedExperts(people.n_items, slots=5, coins=dim.SeededCoins(1))
>>> for person in people:
...     decision = learner.choose()
...     learner.observe(decision, person)
>>> learner.rounds
2000
"""

__version__ = "0.1.0"

from diminuendo.errors import DiminuendoError
from diminuendo.learners import (
    LEARNERS,
    ExploreExploit,
    Learner,
    OrderedExperts,
    RandomSlates,
    Setting,
    make,
    replay,
)
from diminuendo.objectives import (
    FAMILIES,
    BestMatch,
    Concave,
    Coverage,
    Mixture,
    NoisyOr,
    Oracle,
    Person,
    check,
    person,
)
from diminuendo.offline import data_bound, greedy, optimum
from diminuendo.privacy import Guarantee
from diminuendo.randomness import SeededCoins, SystemCoins
from diminuendo.streams import Functions, People, from_places, from_ratings, grid, msweb, open_stream, read
from diminuendo.types import Decision, Objective

__all__ = [
    "FAMILIES",
    "LEARNERS",
    "BestMatch",
    "Concave",
    "Coverage",
    "Decision",
    "DiminuendoError",
    "ExploreExploit",
    "Functions",
    "Guarantee",
    "Learner",
    "Mixture",
    "NoisyOr",
    "Objective",
    "Oracle",
    "OrderedExperts",
    "People",
    "Person",
    "RandomSlates",
    "SeededCoins",
    "Setting",
    "SystemCoins",
    "check",
    "data_bound",
    "from_places",
    "from_ratings",
    "greedy",
    "grid",
    "make",
    "msweb",
    "open_stream",
    "optimum",
    "person",
    "read",
    "replay",
]
