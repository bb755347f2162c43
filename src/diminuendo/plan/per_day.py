"""A plan in hits a day: what each epsilon would earn from the users of one day, by forecast, next to chance and today.

Forecasts are for made-up users (model.py), who may find more or less to their taste than yours. So today's hits, which
real users brought, can only be compared with them where they lie between chance and hindsight of the model; elsewhere
the made-up users are not like yours, and nothing is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from diminuendo.errors import InvalidInput
from diminuendo.plan.model import PublicModel
from diminuendo.plan.planner import Plan
from diminuendo.streams.per_day import PerDay


@dataclass(frozen=True)
class DayForecast:
    """What the users of one day would bring, on average over the whole run.

    Attributes
    ----------
    day : PerDay
        How many users come in a day, and what is counted.
    hindsight, chance : float
        Conversions per day of greedy in hindsight, and of random slates.
    hits : dict of float to float
        Conversions per day for every epsilon of the plan.
    today : float, optional
        What today's slate brings in a day, as given.

    """

    day: PerDay
    hindsight: float
    chance: float
    hits: dict[float, float]
    today: float | None

    @property
    def unlike(self) -> str | None:
        """A message that today's number cannot be compared with these forecasts, and what to do; or None."""
        if self.today is None or self.chance <= self.today <= self.hindsight:
            return None
        best, than, more = "hindsight", "more", "larger"
        if self.today < self.chance:
            best, than, more = "random choice", "less", "smaller"
        return (
            f"Today's slate earns {than} than {best} does with these made-up users, so they are not like yours, and "
            f"gains over today are not forecast. Say how many things one user cares about (--cares-about, a {more} "
            "number), or simulate users of the past (diminuendo simulate --today)."
        )

    def as_json(self) -> dict[str, Any]:
        """Return the forecast as plain values, as files hold it."""
        hits = [{"epsilon": epsilon, "hits": hits} for epsilon, hits in self.hits.items()]
        return vars(self) | {"day": vars(self.day), "hits": hits, "unlike": self.unlike}


def day_forecast(found: Plan, day: PerDay | float, today: float | None = None) -> DayForecast:
    """Return the forecasts of a plan with prices, in conversions per day.

    Parameters
    ----------
    found : Plan
        With prices (`Plan.with_prices`).
    day : PerDay or float
        How many users come in a day.
    today : float, optional
        How many conversions today's slate brings in a day.

    Returns
    -------
    DayForecast

    Raises
    ------
    InvalidInput
        If `today` is more than the users of a day.

    Examples
    --------
    >>> from diminuendo.plan import day_forecast, plan
    >>> forecast = day_forecast(plan(50, 5, 2_000), day=100, today=30)  # with_prices() adds forecasts for epsilons
    >>> round(forecast.chance, 1), round(forecast.hindsight, 1), forecast.today
    (34.1, 86.2, 30)
    """
    day = day if isinstance(day, PerDay) else PerDay(day)
    if today is not None and not 0 <= today <= day.users:
        raise InvalidInput(
            f"today must be {day.hits} of one day, from 0 to the {day.users:,.10g} users who come; got {today:g}. A "
            "user brings one at most."
        )
    model, slots = PublicModel(found.setting.n_items, found.cares_about), found.setting.slots
    best = day.users * model.greedy(slots)
    chance = best if slots == found.setting.n_items else day.users * model.random(slots)
    hits = {price.epsilon: (1 - price.loss) * best for price in found.prices}
    return DayForecast(day, best, chance, hits, today)
