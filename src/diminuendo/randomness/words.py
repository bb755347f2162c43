"""Words on their way to compiled code: `PublicSource` and `SecretRandomness`, two buffers of two types.

A kernel reads words from a buffer. If it runs out, or meets a question that only exact arithmetic can decide, it
undoes the round and returns; `resume` puts right what was missing, behind the words that the unfinished round has
seen, and the round begins again with the same words. So a run is a function of the streams of words alone, however
it was cut into calls.
"""

from __future__ import annotations

import os
import threading
import weakref
from abc import ABC, abstractmethod
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from diminuendo._numba import inline
from diminuendo.errors import InvalidInput, refuse_copies
from diminuendo.randomness.exact_comparison import decide
from diminuendo.randomness.sources import RandomSource
from diminuendo.types import Floats, Ints, Words

USED, BEGUN, SHORT, VERDICTS = range(4)
"""Places in `used`: words used up; where this round begins; whether words ran out; how many verdicts are known."""

ASKED, OFFSET, RESIDUAL, DIFFERENCE, BITS = range(5)
"""Places in `question`: whether one is open; words the round had used when it came up; and what is asked."""

MOST = 4
"""Where many words are wanted a buffer is filled up to this many times its size: filling costs as much as 100 words."""

DIGIT = 16
"""How many bits a digit has, where words are cut into digits."""

WINDOW = 2.0**-40
"""Floats decide a comparison only where they agree to one part in this, far more than any rounding."""


class PublicWords(NamedTuple):
    """Public randomness, as kernels read it."""

    words: Words
    used: Ints


class SecretWords(NamedTuple):
    """Secret randomness, as kernels read it: words, and the exact verdicts on what floats could not decide.

    The question: is residual + (a uniform fraction) below 2^bits * exp(rate * difference)?
    """

    words: Words
    used: Ints
    window: Floats
    question: Ints
    rate: Floats
    verdicts: Ints
    """(any, 6): the question (offset, residual, difference, bits), yes or no, and the words that its fraction took."""
    rates: Floats
    """(any,) the rate of each of those questions."""

    def __repr__(self) -> str:
        return "<SecretWords>"


class DigitWords(NamedTuple):
    """Secret randomness that is cut into digits, as kernels read it."""

    words: NDArray[np.uint16]
    used: Ints

    def __repr__(self) -> str:
        return "<DigitWords>"


AnyWords = PublicWords | SecretWords | DigitWords
View = TypeVar("View", PublicWords, SecretWords, DigitWords)


class WordBuffer(ABC, Generic[View]):
    """A buffer of words for kernels. Secure words are in no copy of it: not in a pickle, not in a forked child.

    Hold `lock` while you read words that other threads may read.
    """

    view: View

    def __init__(self, rng: RandomSource, size: int = 1 << 12) -> None:
        self.rng = rng
        self.size = size
        self.lock = threading.RLock()
        self._wiped = 0  # words that were used, and are not in the buffer any more
        self.empty()
        _BUFFERS.add(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} from {self.rng!r}>"

    @property
    def secure(self) -> bool:
        """Whether the words can be neither foreseen nor repeated."""
        return self.rng.secure

    @abstractmethod
    def empty(self) -> None:
        """Forget the words that are left."""

    @abstractmethod
    def _fresh(self, count: int) -> Any:
        """The next words of this buffer's own stream; at least `count`."""

    def refill(self, wanted: int = 0) -> None:
        """Put fresh words behind the unused ones. Each call at least doubles the rest. Used words are wiped out.

        `wanted`: about how many will be needed soon. A buffer holds no more than a few times its size.
        """
        old, used = self.view.words, self.view.used
        rest = old[used[USED] :]
        words = self._fresh(max(self.size, len(rest), min(wanted, MOST * self.size)))
        self.view = self.view._replace(words=np.concatenate([rest, words]))
        old[:] = 0
        self._wiped += int(used[USED])
        used[USED] = used[BEGUN] = used[SHORT] = 0

    def resume(self, wanted: int = 0) -> bool:
        """Give an interrupted kernel words, about as many as are `wanted`; says whether it lacked any."""
        lacked = bool(self.view.used[SHORT])
        if lacked:
            self.refill(wanted)
        return lacked

    def take(self, count: int) -> Any:
        """The next `count` words, used up at once."""
        with self.lock:
            while len(self.view.words) - self.view.used[USED] < count:
                self.refill()
            start = int(self.view.used[USED])
            self.view.used[USED] = self.view.used[BEGUN] = start + count
            self.view.used[VERDICTS] = 0
            return self.view.words[start : start + count].copy()

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in self.__dict__.items() if name != "lock"}
        return state | {"view": None} if self.secure else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.lock = threading.RLock()
        if self.view is None:
            self.empty()
        _BUFFERS.add(self)


class PublicSource(WordBuffer[PublicWords]):
    """A buffer of public words, as compiled code reads them.

    Parameters
    ----------
    rng : RandomSource
        Where words come from.
    size : int, default 4096
        How many words to fetch at once. Results do not depend on it.

    Notes
    -----
    Compiled code that runs out of words undoes the round, and begins it again with the same words once more have
    been fetched. So results are a function of the stream alone.
    """

    @property
    def passed(self) -> int:
        """The number of words of the stream that were used so far: a public fact, as these words are."""
        return self._wiped + int(self.view.used[USED])

    def empty(self) -> None:
        """Discard the words that are left."""
        self.view = PublicWords(np.empty(0, dtype=np.uint64), np.zeros(4, dtype=np.int64))

    def _fresh(self, count: int) -> Words:
        return self.rng.public(count)


class SecretDigits(WordBuffer[DigitWords]):
    """Secret randomness in digits of DIGIT bits, for comparing uniform numbers: mostly their first few bits decide.

    The system takes longer to make words than compiled code to use them, so none of them is for less than it decides.
    """

    __getstate__ = refuse_copies

    def empty(self) -> None:
        """Forget the digits that are left."""
        self.view = DigitWords(np.empty(0, dtype=np.uint16), np.zeros(4, dtype=np.int64))

    def _fresh(self, count: int) -> Any:
        return self.rng.secret(-(-count * DIGIT // 64)).view(np.uint16)


class SecretRandomness(WordBuffer[SecretWords]):
    """A buffer of secret words, as private mechanisms need it: noise and private draws accept nothing else.

    Parameters
    ----------
    rng : RandomSource
        Where words come from. Use SystemSource wherever users are real.
    size : int, default 4096
        How many words to fetch at once. Results do not depend on it.
    window : float, default 2**-40
        Floats decide a comparison only beyond this relative distance; exact arithmetic decides the others. A wider
        window only costs time.

    Raises
    ------
    InvalidInput
        If `window` is below 2**-40, and when a copy or a pickle is attempted: a copy would draw the same noise
        again.

    Notes
    -----
    Used words are overwritten, a forked child begins with an empty buffer, and no word enters a snapshot or a log.
    Comparisons are exact by Theorem E1 of docs/maths/exponential.md.

    Examples
    --------
    >>> from diminuendo.randomness import SecretRandomness, SystemSource
    >>> SecretRandomness(SystemSource()).secure
    True
    """

    __getstate__ = refuse_copies

    def __init__(self, rng: RandomSource, size: int = 1 << 12, window: float = WINDOW) -> None:
        if not window >= WINDOW:
            raise InvalidInput(f"A window below 2^-40 would trust floats too far; got {window!r}.")
        self.window = window
        self.digits = SecretDigits(rng, size)
        """More of the same, cut into digits."""
        super().__init__(rng, size)

    def empty(self) -> None:
        """Discard the words that are left."""
        self.view = SecretWords(
            words=np.empty(0, dtype=np.uint64),
            used=np.zeros(4, dtype=np.int64),
            window=np.array([self.window]),
            question=np.zeros(5, dtype=np.int64),
            rate=np.zeros(1),
            verdicts=np.zeros((4, 6), dtype=np.int64),
            rates=np.zeros(4),
        )

    def _fresh(self, count: int) -> Words:
        return self.rng.secret(count)

    def resume(self, wanted: int = 0) -> bool:
        """Supply what interrupted compiled code lacked: words, or an exact comparison.

        Parameters
        ----------
        wanted : int, default 0
            About how many words will be needed soon.

        Returns
        -------
        bool
            Whether anything was lacking.
        """
        if not self.view.question[ASKED]:
            return super().resume(wanted)
        self._answer()
        return True

    def _answer(self) -> None:
        """Decide the open question exactly; the words of the fraction are those that come next in the round."""
        offset, residual, difference, bits = (int(part) for part in self.view.question[OFFSET:])
        rate, taken = float(self.view.rate[0]), 0

        def next_word() -> int:
            nonlocal taken
            while (place := int(self.view.used[BEGUN]) + offset + taken) >= len(self.view.words):
                self.refill()
            taken += 1
            return int(self.view.words[place])

        yes = decide(residual, rate, difference, bits, next_word)
        self.view.question[ASKED] = 0
        known = int(self.view.used[VERDICTS])
        if known == len(self.view.verdicts):
            verdicts, rates = (
                np.concatenate([old, np.zeros_like(old)]) for old in (self.view.verdicts, self.view.rates)
            )
            self.view = self.view._replace(verdicts=verdicts, rates=rates)
        self.view.verdicts[known] = offset, residual, difference, bits, yes, taken
        self.view.rates[known] = rate
        self.view.used[VERDICTS] = known + 1


def require_secret(secret: object) -> None:
    """Refuse anything else where privacy rests on it."""
    if not isinstance(secret, SecretRandomness):
        raise InvalidInput(
            f"Noise and private draws need SecretRandomness, as from SecretRandomness(SystemSource()); "
            f"got {type(secret).__name__}."
        )


_BUFFERS: weakref.WeakSet[WordBuffer[Any]] = weakref.WeakSet()


def _empty_secure_buffers() -> None:
    for buffer in _BUFFERS:
        buffer.lock = threading.RLock()  # the old one may be held by a thread that is not here
        if buffer.secure:  # seeded words are repeated on purpose
            buffer.empty()


if hasattr(os, "register_at_fork"):  # not on every system, but wherever there is fork
    os.register_at_fork(after_in_child=_empty_secure_buffers)

UNFINISHED = -1
"""What a compiled draw returns when the round must be undone and resumed."""


@inline
def begin(view: AnyWords) -> None:
    """A round begins; or begins again, if nothing was used since."""
    if view.used[USED] != view.used[BEGUN]:
        view.used[BEGUN] = view.used[USED]
        view.used[VERDICTS] = 0


@inline
def undo(view: AnyWords) -> None:
    """The round did not happen."""
    view.used[USED] = view.used[BEGUN]


@inline
def mask_of(bound: int) -> np.uint64:
    """All bits below the highest one of bound - 1, and that one."""
    mask = np.uint64(bound - 1)
    shift = np.uint64(1)
    while shift < np.uint64(64):
        mask |= mask >> shift
        shift *= np.uint64(2)
    return mask


@inline
def below(bound: int, view: AnyWords) -> int:
    """A whole number from 0 to bound - 1, uniformly, exactly; or UNFINISHED."""
    return below_masked(bound, mask_of(bound), view)


@inline
def below_masked(bound: int, mask: np.uint64, view: AnyWords) -> int:
    """A whole number from 0 to bound - 1, uniformly, for bounds whose mask is known beforehand; or UNFINISHED."""
    while view.used[USED] < len(view.words):
        word = view.words[view.used[USED]] & mask
        view.used[USED] += 1
        if word < np.uint64(bound):
            return int(np.int64(word))
    view.used[SHORT] = 1
    return UNFINISHED


@inline
def verdict_on(residual: int, rate: float, difference: int, bits: int, secret: SecretWords) -> int:
    """1 or 0, where exact arithmetic has decided this very question; else the question is posed: UNFINISHED."""
    offset = secret.used[USED] - secret.used[BEGUN]
    for known in range(secret.used[VERDICTS]):
        verdict = secret.verdicts[known]
        same = verdict[0] == offset and verdict[1] == residual and verdict[2] == difference
        if same and verdict[3] == bits and secret.rates[known] == rate:
            secret.used[USED] += verdict[5]
            return int(verdict[4])
    secret.question[ASKED] = 1
    secret.question[OFFSET], secret.question[RESIDUAL] = offset, residual
    secret.question[DIFFERENCE], secret.question[BITS] = difference, bits
    secret.rate[0] = rate
    return UNFINISHED
