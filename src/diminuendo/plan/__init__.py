"""Plan: what each learner would do with a budget, before the first user arrives.

A candidate is the learner itself, made for the setting: its parameters, its guarantee and its regret bound. So the
planned learner is the one that runs. A plan uses public facts alone and no user's data. What these facts do not prove
is forecast from a stated model of synthetic users (model.py).
"""

from diminuendo.plan.contexts import ContextPlan
from diminuendo.plan.first_look import FirstLook
from diminuendo.plan.noise import Noise
from diminuendo.plan.planner import Candidate, Plan, candidate, pick, plan
from diminuendo.plan.price import Price

__all__ = [
    "Candidate",
    "ContextPlan",
    "FirstLook",
    "Noise",
    "Plan",
    "Price",
    "candidate",
    "pick",
    "plan",
]
