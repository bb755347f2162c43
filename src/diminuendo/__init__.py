"""diminuendo: differentially private online choice of slates.

Users arrive one after the other. Each is shown a slate of k out of N items. A learner improves its slates from users'
feedback, and what all users are shown reveals next to nothing about the feedback of any one user.

>>> import diminuendo as dim
>>> users = dim.msweb()[:2000]
>>> setting = dim.Setting(users.n_items, slots=5, rounds=len(users), feedback="full", epsilon=1.0, delta=1e-6)
>>> learner = dim.make("private", setting)
>>> for user in users:
...     decision = learner.choose()
...     learner.observe(decision, user)
>>> learner.rounds, round(learner.guarantee.epsilon, 2), learner.guarantee.delta
(2000, 1.0, 1e-06)
"""

from typing import TYPE_CHECKING

from diminuendo._lazy import lazily
from diminuendo.errors import DiminuendoError

__version__ = "0.1.0"

if TYPE_CHECKING:
    from diminuendo.extend import register
    from diminuendo.learners import (
        LEARNERS,
        ExploreExploit,
        FeedbackWindow,
        Learner,
        OrderedExperts,
        OverlapGreedy,
        RandomSlates,
        Setting,
        SlateClicks,
        SlateTotals,
        budget_for,
        make,
        restore,
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
        User,
    )
    from diminuendo.objectives.check import check
    from diminuendo.objectives.user import user
    from diminuendo.offline import SlateRules, data_bound, optimum
    from diminuendo.offline.greedy import greedy
    from diminuendo.privacy import Budget, Guarantee, Ledger, Tokens
    from diminuendo.randomness import SeededSource, SystemSource
    from diminuendo.streams import (
        Contexts,
        Functions,
        Users,
        from_places,
        from_ratings,
        from_table,
        grid,
        msweb,
        open_stream,
        read,
    )
    from diminuendo.types import Decision, Objective

# numba, scipy and the kernels take most of a second to load, so they are loaded with the first name that needs them.
__getattr__, __dir__ = lazily(
    __name__,
    {
        "learners": "LEARNERS ExploreExploit Learner OrderedExperts OverlapGreedy FeedbackWindow RandomSlates Setting "
        "SlateClicks SlateTotals budget_for make restore",
        "extend": "register",
        "learners.base.replay": "replay",
        "objectives": "FAMILIES BestMatch Concave Coverage Mixture NoisyOr Oracle User",
        "objectives.check": "check",
        "objectives.user": "user",
        "offline": "SlateRules data_bound optimum",
        "offline.greedy": "greedy",
        "privacy": "Budget Guarantee Ledger Tokens",
        "randomness": "SeededSource SystemSource",
        "streams": "Contexts Functions Users from_places from_ratings from_table grid msweb open_stream read",
        "types": "Decision Objective",
    },
    packages="audit continuous evaluate experts extend learners objectives offline paper plan privacy randomness "
    "simulate streams sums types",
)

__all__ = [
    "FAMILIES",
    "LEARNERS",
    "BestMatch",
    "Budget",
    "Concave",
    "Contexts",
    "Coverage",
    "Decision",
    "DiminuendoError",
    "ExploreExploit",
    "FeedbackWindow",
    "Functions",
    "Guarantee",
    "Learner",
    "Ledger",
    "Mixture",
    "NoisyOr",
    "Objective",
    "Oracle",
    "OrderedExperts",
    "OverlapGreedy",
    "RandomSlates",
    "SeededSource",
    "Setting",
    "SlateClicks",
    "SlateRules",
    "SlateTotals",
    "SystemSource",
    "Tokens",
    "User",
    "Users",
    "budget_for",
    "check",
    "data_bound",
    "from_places",
    "from_ratings",
    "from_table",
    "greedy",
    "grid",
    "make",
    "msweb",
    "open_stream",
    "optimum",
    "read",
    "register",
    "replay",
    "restore",
    "user",
]
