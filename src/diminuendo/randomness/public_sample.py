"""A public sample: learn from one in a hundred users, drawn by public randomness, and serve all of them.

Each user is drawn on arrival, before their feedback is known, and the result of the draw is public.
Who is in the sample has a round like any other: a place in a batch, a visit that counts, an answer that is waited for.
Who is not is shown what the menu shows, and nothing else happens: no round, no visit, and feedback changes nothing.

Guarantee  that of the learner. A public draw does not lower epsilon. It lowers delta for a user who comes
           seldom, which is not claimed (docs/maths/late.md, Theorem L4).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from diminuendo.randomness.words import PublicSource

BLOCK = 4
"""Words that the generator makes at a time."""


class PublicSample:
    """Whether each user is in the sample, by the number of the arrival: a fixed function of that number."""

    def __init__(self, one_in: int, rng: PublicSource) -> None:
        self.one_in = one_in
        # A stream of its own: slates use up other words, and how many depends on the slates.
        self._key = rng.take(2)
        self._below = np.uint64((1 << 64) // one_in)
        self._known = (0, np.zeros(0, dtype=np.bool_))

    def __repr__(self) -> str:
        return f"<PublicSample: one in {self.one_in}>"

    def heads(self, first: int, count: int) -> NDArray[np.bool_]:
        """Of the users from number `first` on, who is in the sample."""
        begins, known = self._known
        if not begins <= first <= first + count <= begins + len(known):
            begins = first - first % BLOCK
            words = np.random.Philox(key=self._key, counter=begins // BLOCK).random_raw(
                max(count + BLOCK, 1024)
            )
            known = np.asarray(words, dtype=np.uint64) < self._below
            self._known = begins, known
        result: NDArray[np.bool_] = known[first - begins : first - begins + count].copy()
        return result
