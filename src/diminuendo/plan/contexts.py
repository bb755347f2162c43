"""What contexts would do: what they cost if they are not informative, and how many users a category needs.

A feature of contexts, such as a country, has a number of categories. If the learner takes contexts, its noise has up to
(1 - TRIAL)^(-1/2) times the deviation of a run without contexts until releases show that a feature is informative;
TRIAL is the largest share of the budget that goes into testing features. Once they are known not to be informative,
USELESS takes its place. With private contexts a share COUNTS of the budget counts users, and the factor is
((1 - TRIAL) (1 - COUNTS))^(-1/2) (docs/maths/contexts.md, Theorem X3). A category can be told apart from all users once
about 4 nu users of it came, where nu is the largest noise among the singleton values of all items, in users
(learners/overlap/schedule.py).

If the learner does not take contexts and contexts are public, there can be one learner for each category. Every user
has one of these learners, so together they guarantee what one does (parallel composition).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.learners import LEARNERS
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.overlap.contexts.shares import COUNTS, EARLY_NUS, TRIAL, USELESS
from diminuendo.plan.first_look import FirstLook
from diminuendo.plan.noise import releases_of
from diminuendo.streams.contexts import Contexts


@dataclass(frozen=True)
class ContextPlan:
    """What to expect of contexts, by public facts alone. Whether they are informative is unknown beforehand.

    Attributes
    ----------
    sizes : tuple of int
        Number of categories of each feature.
    private : bool
        Whether contexts are private.
    taken : bool
        Whether the recommended learner takes contexts.
    promise : str, optional
        Its guarantee with contexts, if that differs.
    noise_factor, later_factor : float, optional
        By what the deviation of the noise is multiplied, at most, if contexts say nothing; and once that is known
        (Theorem X3 of docs/maths/contexts.md).
    needed : int, optional
        About how many users a category needs before it can have a slate of its own.
    on_average : tuple of float
        How many users of a category of each feature come, on average.
    advice : str
        What to do.

    """

    sizes: tuple[int, ...]
    private: bool
    taken: bool
    promise: str | None
    noise_factor: float | None
    later_factor: float | None
    needed: int | None
    on_average: tuple[float, ...]
    advice: str

    def as_json(self) -> dict[str, Any]:
        """Return the plan as plain values, as files hold it."""
        return vars(self) | {"sizes": list(self.sizes), "on_average": list(self.on_average)}

    @property
    def said(self) -> str:
        """All of it in words."""
        sizes = " and ".join(f"{size:,}" for size in self.sizes)
        result = [f"{sizes} categories, {'private' if self.private else 'public'}."]
        if self.noise_factor is not None:
            result += [
                f"If they are not informative, noise grows up to {self.noise_factor:.3f} times until that is known, "
                f"and up to {self.later_factor:.3f} times then.",
                f"A category can have a slate of its own after about {self.needed:,} users, and often two to four "
                f"times as many; on average {_numbers(self.on_average)} come for each.",
            ]
        return " ".join([*result, self.advice])


def context_plan(
    sizes: tuple[int, ...], private: bool, learner: Learner, setting: Setting, look: FirstLook | None
) -> ContextPlan:
    """What contexts with these numbers of categories would do for a learner of this setting."""
    if not sizes:
        raise InvalidInput(
            "contexts says how many categories each feature has, as 20,24 for 20 countries and 24 hours."
        )
    checked = tuple(_validate.positive_int(size, "contexts") for size in sizes)
    contexts = Contexts({f"column {number}": size for number, size in enumerate(checked, 1)}, private=private)
    entry, releases = LEARNERS[learner.name], releases_of(learner)
    taken = entry.takes("contexts")
    on_average = tuple(setting.rounds / size for size in checked)
    factors, promise = (None, None), None
    needed = None if look is None else look.enough
    if taken:
        with_them = entry.for_setting(replace(setting, contexts=contexts)).guarantee
        promise = str(with_them) if with_them.view != learner.guarantee.view else None
    if taken and releases is not None:
        factors = tuple(((1 - share) * (1 - COUNTS if private else 1)) ** -0.5 for share in (TRIAL, USELESS))
        needed = round(EARLY_NUS * releases.nu)
        advice = _advice_for_slates(on_average, needed)
    elif taken:
        advice = _advice_for_groups(learner.name, private, on_average, needed)
    elif private:
        advice = f"{learner.name} does not take contexts, and one learner per category would not hide private contexts."
    else:
        advice = (
            f"{learner.name} shows all users the same. One learner per category guarantees together what each "
            f"guarantees. {PAYS}"
        )
    return ContextPlan(checked, private, taken, promise, *factors, needed, on_average, advice)


PAYS = "It pays if there are few categories with many users each, who differ in what they want."


def _advice_for_slates(on_average: tuple[float, ...], needed: int) -> str:
    if max(on_average) < needed:
        return (
            "Too few users come for a category: expect nothing of these contexts. Merge similar categories, or wait "
            "for more users."
        )
    if min(on_average) < needed:
        return "Of the feature with the most categories expect little, except for frequent categories."
    return (
        "This is enough. Whether contexts pay depends on how informative they are: compare with shuffled labels, as "
        "`diminuendo simulate FILE --context COLUMN` does on data of yours."
    )


def _advice_for_groups(name: str, private: bool, on_average: tuple[float, ...], needed: int | None) -> str:
    result = (
        f"{name} shows all users the same at first; a category gets slates of its own once releases show that its "
        "users differ."
    )
    result += " With bandit feedback noise is then twice as large." if private else ""
    if needed is None:
        return f"{result} {PAYS}"
    result += f" A category needs about {needed:,} users to come half the way to hindsight"
    if enough := [users for users in on_average if users >= needed]:
        return f"{result}, and {_numbers(enough)} come on average: try it if categories differ."
    return (
        f"{result}, and fewer come on average: leave contexts out, or merge categories into a few large ones."
    )


def _numbers(users: Sequence[float]) -> str:
    return " and ".join(f"{number:,.0f}" for number in users)
