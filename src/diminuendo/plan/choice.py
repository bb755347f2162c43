"""Which candidate to take, and why, in two sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence

from diminuendo.learners.catalogue import CATALOGUE
from diminuendo.learners.learner import Setting
from diminuendo.learners.pick import Rule, preferred
from diminuendo.offline import ONE_MINUS_1_OVER_E
from diminuendo.plan.candidates import Candidate


def pick(
    found: Sequence[Candidate],
    setting: Setting,
    *,
    store_people: bool = True,
    adversarial: bool = False,
    cares_about: float | None = None,
) -> tuple[str, str]:
    """The learner to take, and why.

    Random slates where there is nothing to learn. Else the rules of learners/pick.py; and where these do not apply, or
    where a bound is wanted, the least proved regret among all who are private and keep no more than is allowed.
    """
    people = "1 person" if setting.rounds == 1 else f"{setting.rounds:,} people"
    if setting.n_items == setting.slots or setting.rounds == 1:
        return "random", (
            "There is nothing to learn: no slate is better than another, or nobody comes after the first person. "
            "Random slates are free."
        )
    private = [
        one for one in found if one.keeps_to(setting) and (store_people or not _keeps_people(one.name))
    ]
    rule = preferred(
        setting, {one.name for one in private}, store_people=store_people, cares_about=cares_about
    )
    if rule is not None and not adversarial:
        return rule.learner, rule.why
    bounded = [one for one in private if one.bound is not None]
    if not bounded:
        return "random", (
            f"No private learner{'' if store_people else ' that keeps nobody'} with a bound can be made for this "
            f"budget and {people}. Random slates are free." + ("" if rule is None else f" {_rival(rule)}")
        )
    best = min(bounded, key=lambda one: one.bound or math.inf)
    assert best.bound is not None
    if best.says_something(setting.rounds):
        return best.name, (
            f"Of the private learners it has the least proved regret: whatever people want, at most "
            f"{best.bound / setting.rounds:.3f} per person over {people}, where showing nothing would lose up to "
            f"{ONE_MINUS_1_OVER_E:.3f}. " + _rival(rule)
        )
    return best.name, (
        f"It has the least proved regret, but for {people} no bound says anything: all exceed what there is to gain. "
        + ("Expect little more than random choice." if rule is None else _rival(rule))
    )


def _rival(rule: Rule | None) -> str:
    """What would be taken if no bound were wanted."""
    if rule is None:
        return "The paper's own constants would give up more for no more privacy."
    return f"Where tastes are steady {rule.learner} loses less, with no such bound."


def _keeps_people(name: str) -> bool:
    return name in CATALOGUE and CATALOGUE[name].keeps_people
