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

from typing import TYPE_CHECKING

from diminuendo._lazy import lazily
from diminuendo.errors import DiminuendoError

__version__ = "0.1.0"

if TYPE_CHECKING:
    from diminuendo.learners import (
        LEARNERS,
        ExploreExploit,
        Learner,
        OrderedExperts,
        RandomSlates,
        Setting,
        make,
    )
    from diminuendo.learners.base.replay import replay
    from diminuendo.objectives import (
        FAMILIES,
        BestMatch,
        Concave,
        Coverage,
        Mixture,
        NoisyOr,
        Oracle,
        Person,
    )
    from diminuendo.objectives.check import check
    from diminuendo.objectives.person import person
    from diminuendo.offline import data_bound, optimum
    from diminuendo.offline.greedy import greedy
    from diminuendo.privacy import Guarantee
    from diminuendo.randomness import SeededCoins, SystemCoins
    from diminuendo.streams import (
        Functions,
        People,
        from_places,
        from_ratings,
        grid,
        msweb,
        open_stream,
        read,
    )
    from diminuendo.types import Decision, Objective

# numba, scipy and the kernels take most of a second to load; whoever asks for a name waits for it, nobody else.
__getattr__, __dir__ = lazily(
    __name__,
    {
        "diminuendo.learners": (
            "LEARNERS",
            "ExploreExploit",
            "Learner",
            "OrderedExperts",
            "RandomSlates",
            "Setting",
            "make",
        ),
        "diminuendo.learners.base.replay": ("replay",),
        "diminuendo.objectives": (
            "FAMILIES",
            "BestMatch",
            "Concave",
            "Coverage",
            "Mixture",
            "NoisyOr",
            "Oracle",
            "Person",
        ),
        "diminuendo.objectives.check": ("check",),
        "diminuendo.objectives.person": ("person",),
        "diminuendo.offline": ("data_bound", "optimum"),
        "diminuendo.offline.greedy": ("greedy",),
        "diminuendo.privacy": ("Guarantee",),
        "diminuendo.randomness": ("SeededCoins", "SystemCoins"),
        "diminuendo.streams": (
            "Functions",
            "People",
            "from_places",
            "from_ratings",
            "grid",
            "msweb",
            "open_stream",
            "read",
        ),
        "diminuendo.types": ("Decision", "Objective"),
    },
    packages=(
        "audit",
        "continuous",
        "evaluate",
        "experts",
        "learners",
        "objectives",
        "offline",
        "paper",
        "plan",
        "privacy",
        "randomness",
        "simulate",
        "streams",
        "sums",
        "types",
    ),
)

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
