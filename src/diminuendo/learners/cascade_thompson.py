"""Cascade Thompson: beliefs about each item by itself, learned from clicks; the click yardstick. Not private.

Each item has a chance of being clicked by a user who looks at it, of which nothing is known at first: Beta(1, 1). A
round draws one chance per item from what is believed and shows the k largest, the largest first. A user who clicks in
slot i has looked at the slots up to i: the items before it have failed, and the clicked one has succeeded. A user who
clicks nothing has looked at them all. So an item is judged by what it adds to those it stands behind: that is why this
does well also where items are much alike, which is not the model that it was made for.

All draws of a round come from one public word, the seed of a small generator: a round has its word or is not begun.

Regret     no bound for submodular users. Where every item attracts by itself, and all users are alike, of order log T
           with a constant that depends on the gaps between items (Zhong, Chueng & Tan 2021).
Guarantee  none.
Assumes    for learning: users who read from the top (streams/clicks.py), much alike in the long run.
References Kveton, Szepesvari, Wen & Ashkan (2015), ICML, for cascading bandits; Cheung, Tan & Zhong (2019), AISTATS;
           Zhong, Chueng & Tan (2021), JMLR 22; Marsaglia & Tsang (2000), ACM TOMS 26, for Gamma numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from diminuendo._numba import as_kernel, inline, kernel
from diminuendo.learners.base.entry import Advice, Entry
from diminuendo.learners.base.feedback import Clicks
from diminuendo.learners.base.feedback_window import Patient
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.policy import Policy
from diminuendo.objectives.family import Table
from diminuendo.randomness.sources import RandomSource
from diminuendo.randomness.words import SHORT, USED, PublicWords, begin
from diminuendo.streams.clicks import click_all, mixed, uniform
from diminuendo.streams.users import Users
from diminuendo.types import Floats, Ints, Items, Words

FAILED, CLICKED = range(2)
"""Places in what is known of an item: how often it was looked at and not clicked, and how often it was clicked."""


class CascadePolicy(Policy):
    """Beta beliefs about each item's chance of a click, not private."""

    reader = Clicks()

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self._seen: Ints = np.zeros((frame.n_items, 2), dtype=np.int64)
        self._chances = np.empty(frame.slots)  # scratch

    def state(self) -> Any:
        """What was seen of each item."""
        return (self._seen,)

    def draw(self, row: Items, probe: Items) -> bool:
        """The items with the largest drawn chances."""
        return bool(_draw_round(self._seen, row, self.frame.public.view, self._chances))

    def learn(self, place: int, answer: int) -> None:
        """The items before the clicked one have failed, and the clicked one has succeeded."""
        _learn_click(self._seen, self.frame.decisions.rows[place], answer)

    def replay(self, users: Users, slates: Items, done: int) -> int:
        """Draw and learn, round by round, compiled."""
        return int(
            _replay(
                self._seen,
                users.table,
                users.click_words,
                users.clicks == "independent",
                slates,
                done,
                self.frame.public.view,
                self._chances,
                np.empty(users.largest_state),
                np.empty(1, dtype=np.int64),
            )
        )


def cascade_thompson(
    n_items: int, slots: int, *, rng: RandomSource | None = None, feedback_window: Patient = None
) -> Learner:
    """Return cascade Thompson sampling: draws each item's click probability, shows the largest. Clicks, not private.

    Parameters
    ----------
    n_items : int
        Number of items.
    slots : int
        Number of items in a slate.
    rng : RandomSource, optional
        Randomness. By default SystemSource.
    feedback_window : FeedbackWindow or int, optional
        Feedback window.

    Returns
    -------
    Learner

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Notes
    -----
    A Beta(1, 1) prior for each item. No regret bound for submodular users; logarithmic if items attract
    independently.

    References
    ----------
    Kveton, Szepesvari, Wen & Ashkan (2015), Cascading bandits, ICML. Zhong, Chueng & Tan (2021), Thompson sampling
    algorithms for cascading bandits, JMLR 22.

    Examples
    --------
    >>> import diminuendo as dim
    >>> setting = dim.Setting(n_items=5, slots=2, rounds=100, feedback="click")
    >>> learner = dim.make("nonprivate", setting, rng=dim.SeededSource(1))
    >>> learner.observe(learner.choose(), 0)  # the first slot was clicked
    """
    return Learner(
        CascadePolicy(Frame("cascade-thompson", n_items, slots, rng=rng, feedback_window=feedback_window))
    )


CascadeThompson = Entry(
    "cascade-thompson",
    cascade_thompson,
    reads=Clicks.kinds,
    summary="draws each item's chance of a click, shows the largest; not private; the click yardstick",
    advice=Advice("none", "-", "counts", "as the non-private yardstick with clicks"),
    private=False,
)


@kernel
def gamma(shape: float, seed: np.uint64, used: int) -> tuple[float, int]:
    """A Gamma number of that shape, at least 1, from the words of `seed` after the first `used`; and how many now are.

    A transformed normal number, kept or drawn again (Marsaglia & Tsang).
    """
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        length, angle = uniform(mixed(seed, used)), uniform(mixed(seed, used + 1))
        accept = uniform(mixed(seed, used + 2))
        used += 3
        normal = math.sqrt(-2.0 * math.log(1.0 - length)) * math.cos(2.0 * math.pi * angle)
        root = 1.0 + c * normal
        if root <= 0.0:
            continue
        cube = root * root * root
        if math.log(1.0 - accept) < 0.5 * normal * normal + d * (1.0 - cube + math.log(cube)):
            return d * cube, used


@kernel
def largest(seen: Ints, seed: np.uint64, row: Items, chances: Floats) -> None:
    """Into `row` the items whose drawn chances are largest, in falling order; `chances` is scratch of its length."""
    used = 0
    chances[:] = -1.0
    for item in range(seen.shape[0]):
        yes, used = gamma(1.0 + seen[item, CLICKED], seed, used)
        no, used = gamma(1.0 + seen[item, FAILED], seed, used)
        chance = yes / (yes + no)
        slot = len(row)
        while slot > 0 and chances[slot - 1] < chance:
            slot -= 1
            if slot + 1 < len(row):
                chances[slot + 1], row[slot + 1] = chances[slot], row[slot]
        if slot < len(row):
            chances[slot], row[slot] = chance, item


@inline
def _show(seen: Ints, row: Items, rng: PublicWords, chances: Floats) -> bool:
    """The next slate; False, nothing used, to be resumed."""
    begin(rng)
    if rng.used[USED] == len(rng.words):
        rng.used[SHORT] = 1
        return False
    seed = rng.words[rng.used[USED]]
    rng.used[USED] += 1
    largest(seen, seed, row, chances)
    return True


@inline
def _look(seen: Ints, row: Items, clicked: int) -> None:
    """A user read from the top until they clicked."""
    for slot in range(len(row)):
        if slot == clicked:
            seen[row[slot], CLICKED] += 1
            return
        seen[row[slot], FAILED] += 1


_draw_round, _learn_click = as_kernel(_show), as_kernel(_look)


@kernel
def _replay(
    seen: Ints,
    table: Table,
    luck: Words,
    independent: bool,
    slates: Items,
    done: int,
    rng: PublicWords,
    chances: Floats,
    state: Floats,
    clicked: Ints,
) -> int:
    while done < slates.shape[0] and _show(seen, slates[done], rng, chances):
        click_all(table, done, slates[done : done + 1], luck, independent, state, clicked)
        _look(seen, slates[done], clicked[0])
        done += 1
    return done
