"""Coins: where random words come from. Always an argument, secure by default.

`SystemCoins` asks the operating system. `SeededCoins` repeats itself, for simulation and tests only.
Compiled code reads words from a `Purse`, a buffer that is refilled between kernel calls: a kernel
that runs out says so, the purse is refilled behind the words that the unfinished round has seen, and the
round begins again with the same words. So a run is a function of the stream of words alone, however
it was cut into calls.
"""

from __future__ import annotations

import os
import weakref
from typing import NamedTuple, Protocol

import numpy as np

from diminuendo._jit import inline
from diminuendo.types import Ints, Words


class Coins(Protocol):
    """A source of uniform 64-bit words."""

    secure: bool
    """Whether nobody can foresee or repeat the words."""

    def words(self, count: int) -> Words:
        """The next `count` words, never handed out before."""
        ...


class SystemCoins:
    """Words from the operating system; the default."""

    secure = True

    def __repr__(self) -> str:
        return "SystemCoins()"

    def words(self, count: int) -> Words:
        """The next `count` words."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


class SeededCoins:
    """Words that follow from a seed, for simulation and tests. Nothing drawn with them is private."""

    secure = False

    def __init__(self, seed: int) -> None:
        self.seed = int(seed)
        self._source = np.random.Philox(seed=self.seed)

    def __repr__(self) -> str:
        return f"SeededCoins({self.seed})"

    def words(self, count: int) -> Words:
        """The next `count` words."""
        return np.asarray(self._source.random_raw(count), dtype=np.uint64)


class Handful(NamedTuple):
    """What a kernel gets: words, and how many of them are used up."""

    words: Words
    used: Ints


class Purse:
    """A buffer of words for kernels, refilled from coins. Emptied in a forked child, which must not repeat a word."""

    def __init__(self, coins: Coins, size: int = 1 << 12) -> None:
        self.coins = coins
        self.size = size
        self.empty()
        _PURSES.add(self)

    def empty(self) -> None:
        """Forget the words that are left."""
        self.handful = Handful(np.empty(0, dtype=np.uint64), np.zeros(1, dtype=np.int64))

    def refill(self) -> None:
        """Put fresh words behind the unused ones. Called when a kernel ran out: each call at least doubles the rest."""
        rest = self.handful.words[self.handful.used[0] :]
        fresh = self.coins.words(max(self.size, len(rest)))
        self.handful = Handful(np.concatenate([rest, fresh]), np.zeros(1, dtype=np.int64))


_PURSES: weakref.WeakSet[Purse] = weakref.WeakSet()


def _empty_secure_purses() -> None:
    for purse in _PURSES:
        if purse.coins.secure:  # seeded coins repeat themselves on purpose
            purse.empty()


if hasattr(os, "register_at_fork"):  # not on every system, but wherever there is fork
    os.register_at_fork(after_in_child=_empty_secure_purses)

OUT_OF_WORDS = -1
"""What a compiled draw returns when the handful is used up."""


@inline
def below(bound: int, handful: Handful) -> int:
    """A whole number from 0 to bound - 1, uniformly, exactly; or OUT_OF_WORDS."""
    mask = np.uint64(bound - 1)
    shift = np.uint64(1)
    while shift < np.uint64(64):  # all bits below the highest one of bound - 1
        mask |= mask >> shift
        shift *= np.uint64(2)
    while handful.used[0] < len(handful.words):
        word = handful.words[handful.used[0]] & mask
        handful.used[0] += 1
        if word < np.uint64(bound):
            return int(np.int64(word))
    return OUT_OF_WORDS
