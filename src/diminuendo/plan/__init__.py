"""Plan: what each learner would do with a budget, before anybody arrives.

A candidate is the learner itself, made for the setting and asked: what it runs with, what it promises, what regret is
proved. So what is planned is what is run. Only public facts go in: nothing here ever sees a user. What cannot be
proved from them is forecast from a stated model of users who do not exist (model.py).
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
