"""A public sample: learn from one in a hundred users, by a public coin for each, and serve all of them.

The coin is thrown when somebody comes, before anything is known of what she says, and everybody may know how it fell.
Who is in the sample has a round like any other: a place in a batch, a visit that counts, an answer that is waited for.
Who is not is shown what the menu shows, and nothing else happens: no round, no visit, and her answer changes nothing.

Guarantee  that of the learner. A coin that is public does not lower epsilon. It lowers delta for a user who comes
           seldom, which is not claimed (docs/maths/late.md, Theorem L4).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from diminuendo.randomness.words import PublicSource

BLOCK = 4
"""Words that the generator makes at a time."""


class PublicSample:
    """The coins of everybody who comes, by their numbers. Each is thrown once, whoever asks for it and how often."""

    def __init__(self, one_in: int, rng: PublicSource) -> None:
        self.one_in = one_in
        # A stream of its own: what is shown needs other coins, of which there are as many as slates ask for.
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
