"""Clicks: which slot a user clicks first, drawn from the objective of the user. For simulation only.

    cascade        users read from the top and click in slot i with probability f(S_i) - f(S_(i-1)), where S_i are the
                   first i items: so they click within them with probability f(S_i), and what a slot adds is what it
                   is clicked for.
    independent    each item attracts a user or not by itself, with probability f({a}); the first that does is clicked.

The *click word* of a user is one random word, which belongs to no learner. Given it, where the user clicks is a
function of the slate: so a simulation round by round and a compiled one see the same clicks, and two learners meet the
same users.
"""

from __future__ import annotations

import numpy as np

from diminuendo import _validate
from diminuendo._numba import kernel
from diminuendo.objectives.family import Table, add, start, value
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items, Objective, Slate, Words

MODELS = ("cascade", "independent")

NO_CLICK = -1
"""In an array of clicks: nothing was clicked."""


def click_words_of(users: int, seed: int) -> Words:
    """A random click word for each of `users` users."""
    words = np.random.Philox(np.random.SeedSequence([_validate.whole(seed, 0, None, "seed"), 0xC11C]))
    return np.asarray(words.random_raw(users), dtype=np.uint64)


def first_click(user: Objective, slate: Slate, word: int, model: str) -> int | None:
    """The position in `slate` that this user clicks first; None without a click."""
    for position, item in enumerate(slate):
        if model == "cascade":
            clicked = uniform(np.uint64(word)) < user.value(slate[: position + 1])
        else:
            clicked = uniform(np.uint64(mixed(np.uint64(word), item))) < user.value((item,))
        if clicked:
            return position
    return None


@kernel  # called from Python too, where what is inline would be compiled again by every process
def uniform(word: np.uint64) -> float:
    """The word as a number from 0 to just below 1."""
    return float(word >> np.uint64(11)) * 2.0**-53


@kernel
def mixed(word: np.uint64, item: int) -> np.uint64:
    """A word of its own for each item (the finaliser of SplitMix64)."""
    z = np.uint64(word) + np.uint64(item + 1) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def click_all(
    table: Table, first: int, slates: Items, words: Words, independent: bool, state: Floats, out: Ints
) -> None:
    """For each slate the position of the first click among its items, or NO_CLICK; from user `first` on."""
    for j in range(slates.shape[0]):
        user, word, position = first + j, words[first + j], 0
        out[j] = NO_CLICK
        start(table, user, state, 0)
        for item in slates[j]:
            if item == EMPTY_SLOT:
                continue
            if independent:
                start(table, user, state, 0)
            add(table, user, state, 0, item)
            chance = uniform(mixed(word, item)) if independent else uniform(word)
            if chance < value(table, user, state, 0):
                out[j] = position
                break
            position += 1
