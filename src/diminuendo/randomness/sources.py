"""Sources of randomness: always an argument, secure by default, and always two streams.

*Public randomness* hides nothing and may be published: who explores, which item is probed, slates drawn from releases.
*Secret randomness* is what privacy rests on: noise, and draws from secret scores. It is used once, and is never logged,
stored in a snapshot, or derived from anything that is published. Each has a stream of its own and is passed on as a
type of its own (words.py), so that neither can stand in for the other.
"""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np

from diminuendo import _validate
from diminuendo.types import LARGEST_INCARNATION, Words


class RandomSource(Protocol):
    """A source of uniform 64-bit words, in two streams that never meet.

    Pass it as `rng=` to whatever draws. Public words may be published: who explores, slates drawn from released
    scores. Secret words are what privacy rests on: noise, and draws from secret scores.

    Attributes
    ----------
    secure : bool
        True if the words can be neither predicted nor repeated.

    See Also
    --------
    SystemSource : the default.
    SeededSource : reproducible, for simulation and tests.

    """

    secure: bool

    def public(self, count: int) -> Words:
        """Return words of the public stream.

        Parameters
        ----------
        count : int
            How many.

        Returns
        -------
        ndarray of uint64, shape (count,)
            Never handed out before.
        """
        ...

    def secret(self, count: int) -> Words:
        """Return words of the secret stream.

        Parameters
        ----------
        count : int
            How many.

        Returns
        -------
        ndarray of uint64, shape (count,)
            Never handed out before.
        """
        ...


class SystemSource:
    """Words from the operating system (`os.urandom`): the default, and the only source for real users.

    Attributes
    ----------
    secure : bool
        True.

    Examples
    --------
    >>> from diminuendo import SystemSource
    >>> SystemSource().secret(3).dtype, SystemSource.secure
    (dtype('uint64'), True)
    """

    secure = True

    def __repr__(self) -> str:
        return "SystemSource()"

    def public(self, count: int) -> Words:
        """Return `count` words of 64 bits. `secret` is the same method."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)

    secret = public


class SeededSource:
    """Words that follow from a seed, for simulation and tests. Nothing drawn with them is private.

    Parameters
    ----------
    seed : int
        At least 0. Equal seeds give equal words, in every version of this format.

    Attributes
    ----------
    secure : bool
        False: guarantees of learners say so, and ledgers in files refuse it.

    Notes
    -----
    Two Philox streams, spawned from `numpy.random.SeedSequence(seed)`.

    Examples
    --------
    >>> from diminuendo import SeededSource
    >>> bool((SeededSource(7).public(4) == SeededSource(7).public(4)).all())
    True
    >>> bool((SeededSource(7).public(4) == SeededSource(7).secret(4)).any())
    False
    """

    secure = False

    def __init__(self, seed: int) -> None:
        self.seed = _validate.whole(seed, 0, None, "seed")
        self._public, self._secret = (
            np.random.Philox(part) for part in np.random.SeedSequence(self.seed).spawn(2)
        )

    def __repr__(self) -> str:
        return f"SeededSource({self.seed})"

    def public(self, count: int) -> Words:
        """Return the next `count` words of the public stream."""
        return np.asarray(self._public.random_raw(count), dtype=np.uint64)

    def secret(self, count: int) -> Words:
        """Return the next `count` words of the secret stream."""
        return np.asarray(self._secret.random_raw(count), dtype=np.uint64)


def incarnation_of(rng: RandomSource) -> int:
    """A number that no other learner has; with a seeded source, one that follows from the seed.

    It has 53 bits, which JavaScript keeps; what follows from a seed may have more.
    """
    if rng.secure:
        return int(rng.public(1)[0] >> np.uint64(11))
    return int(getattr(rng, "seed", 0)) & LARGEST_INCARNATION
