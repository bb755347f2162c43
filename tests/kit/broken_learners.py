# mypy: ignore-errors
"""Learners that must not pass: one is silent, one forgets everything in its snapshot, one releases at the end alone.

Written beside `popular.py`, the template of docs/how-to/your-own-learner.md, which they are made of.
"""

import popular

from diminuendo.extend import (
    Advice,
    Budget,
    Entry,
    Frame,
    Learner,
    Ledger,
    PrivateSum,
    Schedule,
    Singles,
    equal,
    register,
)


class Silent(popular.PopularPolicy):
    def due(self):
        return False


class Forgetful(popular.PopularPolicy):
    def extra(self):
        return {}

    def take_extra(self, arrays):
        assert not arrays


def made(name, policy, schedule):
    def recipe(n_items, slots, *, horizon, epsilon, delta, ledger=None, rng=None, feedback_window=None):
        frame = Frame(
            name, n_items, slots, horizon=horizon, ledger=ledger, rng=rng, feedback_window=feedback_window
        )
        budget = Budget(epsilon, delta, frame.unit)
        payer = Ledger(budget) if ledger is None else ledger
        total = PrivateSum(n_items, schedule=schedule(horizon), cost=budget.share(), ledger=payer)
        return Learner(policy(frame, budget, total, {}))

    advice = Advice("(ε, δ)", "-", "sums", "never")
    return Entry(name, recipe, reads=Singles.kinds, summary="must not pass", advice=advice)


register(
    made("silent", Silent, lambda horizon: equal(horizon, min(8, horizon))),
    made("forgetful", Forgetful, lambda horizon: equal(horizon, min(8, horizon))),
    made("at-the-end", popular.PopularPolicy, lambda h: Schedule((h - 1, h) if h > 1 else (1,))),
)
