r"""Short runs that stand for long ones: what is simulated to foretell a run of more people, or of more items.

Where people say all they want (full feedback), noise is put in proportion to people. Noise on sums has a deviation of
sigma people, and the largest among N items is about sigma sqrt(2 log N); so with Gaussian cost mu = sqrt(2) / sigma the
short run gets

    mu' = mu (T / T') sqrt(log N' / log N),    and as its epsilon what mu' is worth at the same delta.

For learners that draw from secret scores it is the rate times the score that counts, and the rate goes like
mu / sqrt(T): there mu' = mu sqrt(T / T'). What is scaled errs on the safe side, by a few thousandths: fewer people are
a worse sample.

Where little comes back (bandit and click feedback), it is the first people that are simulated, 40,000 or more, with the
same epsilon; who comes after them is taken to fare as the last eighth of them did. That errs on the safe side: in truth
learning goes on. Of more than `MOST_TRIED` items the most wanted ones are simulated, with as much fewer people: what it
takes to try an item does not depend on the others. That errs on the hopeful side: among fewer items fewer look good by
chance.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from diminuendo.learners import LEARNERS
from diminuendo.learners.learner import Setting
from diminuendo.learners.private_draws import PrivateDraws
from diminuendo.learners.slate_learner import SlateLearner
from diminuendo.privacy import curves
from diminuendo.types import Floats

MOST_PEOPLE, MOST_ITEMS = 20_000, 500
"""With full feedback."""
MOST_SHOWN, MOST_TRIED = 40_000, 1_000
"""With bandit and click feedback."""
MOST_CELLS = 20_000_000
"""Learners that take hardly any time are simulated with more people: so many, times items."""
LARGEST_MU, LARGEST_EPSILON = 30.0, 500.0
"""Noise of a twentieth of a person and less: more of it would change nothing, and be beyond floating point."""
LAST = 8
"""The last one in so many people stands for those who come later."""


class ShortRun(NamedTuple):
    """What is simulated, and what of."""

    setting: Setting
    later: int
    """How many more people like the last of them come afterwards."""
    each: float | None
    """For how many people of the long run one of these stands; None where that cannot be said, as noise differs."""

    def mean(self, values: Floats) -> float:
        """Over the whole run, from what each person was worth in the short one."""
        last = values[-math.ceil(len(values) / LAST) :].mean() if self.later else 0.0
        return float((values.sum() + self.later * last) / (len(values) + self.later))

    def said(self, whole: Setting) -> str:
        """What of the whole run is simulated, in words; nothing where all of it is."""
        found = ""
        if whole.feedback != "full" and self.setting.n_items < whole.n_items:
            found += (
                f" Losses are simulated with the {self.setting.n_items:,} most wanted things and as much fewer people, "
                "which is hopeful."
            )
        if self.later:
            found += (
                f" {self.setting.rounds:,} people are simulated, and those after them are taken to fare as the last "
                "eighth of these, which is cautious."
            )
        return found


def short_run(name: str, setting: Setting) -> ShortRun:
    """The short run of that learner that stands for a long one; the run itself where it is short."""
    if setting.feedback == "full" or issubclass(LEARNERS[name], PrivateDraws):
        short = _with_noise(name, setting)
        return ShortRun(short, 0, 1.0 if short is setting else None)
    items = min(setting.n_items, max(MOST_TRIED, setting.slots))
    alike = math.ceil(setting.rounds * items / setting.n_items)
    quick = not issubclass(LEARNERS[name], SlateLearner)
    rounds = min(alike, max(MOST_SHOWN, MOST_CELLS // items if quick else 0))
    return ShortRun(replace(setting, n_items=items, rounds=rounds), alike - rounds, setting.n_items / items)


def _with_noise(name: str, setting: Setting) -> Setting:
    """Fewer people, and noise in proportion."""
    rounds, items = min(setting.rounds, MOST_PEOPLE), min(setting.n_items, max(MOST_ITEMS, setting.slots))
    shrunk = setting.rounds / rounds
    if issubclass(LEARNERS[name], PrivateDraws):
        factor = math.sqrt(shrunk)
    else:
        factor = shrunk * math.sqrt(math.log(max(2, items)) / math.log(max(2, setting.n_items)))
    if (rounds, items) == (setting.rounds, setting.n_items):
        return setting
    if setting.delta == 0:
        epsilon = min(LARGEST_EPSILON, setting.epsilon * factor)
    else:
        mu = min(LARGEST_MU, factor * curves.gaussian_mu(setting.epsilon, setting.delta))
        epsilon = curves.gaussian_epsilon(mu, setting.delta)
    return replace(setting, n_items=items, rounds=rounds, epsilon=epsilon)
