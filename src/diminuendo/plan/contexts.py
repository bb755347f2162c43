"""What contexts would do: what they cost where they say nothing, what a value needs, and what is published for them.

A column of contexts, such as a country, has a number of values. Where the learner takes contexts, until what was
published shows that a column says something, its slates are those of a run without contexts whose noise has up to (1 -
TRIAL)^(-1/2) times the deviation, where TRIAL is the most that goes into looking at columns, and USELESS takes its
place once it was seen that they say nothing; with private contexts a part COUNTS of the budget goes to counting users,
and it is ((1 - TRIAL) (1 - COUNTS))^(-1/2) times (docs/maths/contexts.md, Theorem X3). A value can be told from the
whole once about 4 nu users of it came, where nu is the largest noise in the singles of all items, in users
(learners/overlap/schedule.py). For each release one number is published for every value and item.

Where a learner does not take contexts, there can be one learner for each value, if contexts are public: everybody is in
the hands of one of them, so that together they promise what one does. Each needs as many users as any learner.
"""

from __future__ import annotations

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

SECONDS = 0.47e-6
"""For each number with exact noise from the operating system's randomness, about, on a machine of 2020 or so."""


@dataclass(frozen=True)
class ContextPlan:
    """What to expect of contexts, by public facts alone. Whether they are informative, nobody knows beforehand.

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
    numbers : int
        How many numbers are published for categories in each release.
    seconds : float
        About how long it takes to draw their noise.
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
    numbers: int
    seconds: float
    advice: str

    def as_json(self) -> dict[str, Any]:
        """Return the plan as plain values, as files hold it."""
        return vars(self) | {"sizes": list(self.sizes), "on_average": list(self.on_average)}

    @property
    def said(self) -> str:
        """All of it in words."""
        few = " and ".join(f"{size:,}" for size in self.sizes)
        result = [f"{few} values, {'private' if self.private else 'public'}."]
        if self.noise_factor is not None:
            result += [
                f"If they say nothing about what users want, noise grows up to {self.noise_factor:.3f} times until "
                f"that is known, and up to {self.later_factor:.3f} times then.",
                f"A value can have a slate of its own after about {self.needed:,} users, and often two to four times "
                "as many; on average "
                f"{' and '.join(f'{users:,.0f}' for users in self.on_average)} come for each.",
                f"Each release publishes {self.numbers:,} numbers for them, about {_seconds(self.seconds)} of noise.",
            ]
        return " ".join([*result, self.advice])


def context_plan(
    sizes: tuple[int, ...], private: bool, made: Learner, setting: Setting, look: FirstLook | None
) -> ContextPlan:
    """What contexts with these numbers of values would do for the learner `made` for the setting."""
    if not sizes:
        raise InvalidInput(
            "contexts says how many values each column has, as 20,24 for 20 countries and 24 hours."
        )
    checked = tuple(_validate.positive_int(size, "contexts") for size in sizes)
    contexts = Contexts({f"column {number}": size for number, size in enumerate(checked, 1)}, private=private)
    entry, releases = LEARNERS[made.name], releases_of(made)
    taken = entry.takes("contexts")
    on_average = tuple(setting.rounds / size for size in checked)
    numbers = 0 if releases is None else sum(checked) * setting.n_items
    factors, promise, needed = (None, None), None, None
    if taken:
        with_them = entry.for_setting(replace(setting, contexts=contexts)).guarantee
        promise = str(with_them) if with_them.view != made.guarantee.view else None
    if taken and releases is not None:
        factors = tuple(((1 - share) * (1 - COUNTS if private else 1)) ** -0.5 for share in (TRIAL, USELESS))
        needed = round(EARLY_NUS * releases.nu)
        advice = _advice_for_slates(on_average, needed)
    else:
        needed = None if look is None else look.enough
        advice = (_advice_for_groups if taken else _advice_for_learners)(
            made.name, private, on_average, needed
        )
    return ContextPlan(
        checked, private, taken, promise, *factors, needed, on_average, numbers, numbers * SECONDS, advice
    )


def _advice_for_slates(on_average: tuple[float, ...], needed: int) -> str:
    if max(on_average) < needed:
        return (
            "Too few users come for a value: expect nothing of these contexts. Join values that are alike, or wait "
            "for more users."
        )
    if min(on_average) < needed:
        return "Of the column with the most values expect little, but for values that many users have."
    return (
        "So many users are enough. Whether contexts pay depends on what they say: compare with shuffled labels, as "
        "`diminuendo simulate FILE --context COLUMN` does on data of yours."
    )


def _advice_for_groups(name: str, private: bool, on_average: tuple[float, ...], needed: int | None) -> str:
    said = (
        f"{name} shows everybody the same at first; users of a value get slates of their own once what was published "
        "says that they differ"
    )
    said += ". Noise is then twice as large where only a reward comes back" if private else ""
    if needed is None:
        return f"{said}. It pays where values are few, have many users each, and differ in what they want."
    said += f". A value needs about {needed:,} users to come half the way to hindsight"
    enough = [f"{users:,.0f}" for users in on_average if users >= needed]
    if enough:
        return f"{said}, and {' and '.join(enough)} come on average: try it where values differ in what they want."
    return f"{said}, and fewer come on average: leave contexts out, or join values until there are a few large ones."


def _advice_for_learners(name: str, private: bool, on_average: tuple[float, ...], needed: int | None) -> str:
    if private:
        return f"{name} does not take contexts, and one learner for each value would not hide private ones."
    return (
        f"{name} shows everybody the same. One learner for each value of a column promises together what each "
        "promises, since everybody is in the hands of one of them; it pays where values are few, have many users "
        "each, and differ in what they want."
    )


def _seconds(seconds: float) -> str:
    return "a hundredth of a second" if seconds < 0.015 else f"{seconds:.2g} seconds"
