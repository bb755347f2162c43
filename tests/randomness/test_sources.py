"""Sources hand out each word once; buffers lose none and repeat none; the two streams do not mix."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from numba.core.errors import TypingError

from diminuendo import SeededSource, SystemSource
from diminuendo._numba import kernel
from diminuendo.errors import InvalidInput
from diminuendo.randomness import PublicSource, SecretRandomness, select
from diminuendo.randomness.score_classes import ScoreClasses, draw, new_score_classes
from diminuendo.randomness.sources import RandomSource
from diminuendo.randomness.words import SHORT, UNFINISHED, USED, PublicWords, SecretWords, begin, below, undo
from diminuendo.types import Ints, Words
from tests.kit.statistics import assert_follows, assert_rejects

Buffer = PublicSource | SecretRandomness
BOTH = pytest.mark.parametrize("kind", [PublicSource, SecretRandomness])


@kernel
def fill(bound: int, out: Ints, view: PublicWords | SecretWords) -> int:
    begin(view)
    for i in range(len(out)):
        out[i] = below(bound, view)
        if out[i] == UNFINISHED:
            undo(view)
            return i
    return len(out)


def draws(bound: int, count: int, rng: RandomSource, size: int = 1 << 12) -> Ints:
    buffer = SecretRandomness(rng, size=size)
    out = np.zeros(count, dtype=np.int64)
    while fill(bound, out, buffer.view) < count:
        buffer.resume()
    return out


def streams(rng: RandomSource, count: int) -> tuple[Words, Words]:
    return rng.public(count), rng.secret(count)


@pytest.mark.parametrize("rng", [SystemSource(), SeededSource(0)], ids=repr)
def test_words_are_fresh_in_both_streams(rng: RandomSource) -> None:
    words = np.concatenate([word for _ in range(10) for word in streams(rng, 1000)])
    assert words.dtype == np.uint64
    assert len(np.unique(words)) == 20_000  # two alike among 2 * 10^4 of 2^64: chance 1e-11


def test_a_seed_repeats_itself_and_no_other() -> None:
    for one, same, other in zip(*(streams(SeededSource(seed), 9) for seed in (5, 5, 6)), strict=True):
        np.testing.assert_array_equal(one, same)
        assert not np.array_equal(one, other)


def test_using_one_stream_does_not_move_the_other() -> None:
    rng = SeededSource(5)
    rng.public(77)
    np.testing.assert_array_equal(rng.secret(9), SeededSource(5).secret(9))
    np.testing.assert_array_equal(rng.public(3), SeededSource(5).public(80)[77:])


def test_only_the_system_source_is_secure() -> None:
    assert SystemSource().secure
    assert not SeededSource(1).secure
    assert SecretRandomness(SystemSource()).secure
    assert not SecretRandomness(SeededSource(1)).secure


def test_each_buffer_has_its_own_stream() -> None:
    public, secret = PublicSource(SeededSource(3), size=10), SecretRandomness(SeededSource(3), size=10)
    public.refill()
    secret.refill()
    np.testing.assert_array_equal(public.view.words, SeededSource(3).public(10))
    np.testing.assert_array_equal(secret.view.words, SeededSource(3).secret(10))


def test_refilling_keeps_unused_words_in_order_and_wipes_out_the_others() -> None:
    buffer = SecretRandomness(SeededSource(3), size=10)
    buffer.refill()
    before = buffer.view.words
    buffer.view.used[USED] = 7
    buffer.refill()
    np.testing.assert_array_equal(buffer.view.words, SeededSource(3).secret(20)[7:])
    assert buffer.view.used[USED] == 0
    assert not before.any()


def test_words_can_be_taken_one_after_the_other() -> None:
    buffer = SecretRandomness(SeededSource(3), size=4)
    taken = np.concatenate([buffer.take(count) for count in (3, 9, 1)])
    np.testing.assert_array_equal(taken, SeededSource(3).secret(13))


def test_the_buffers_size_does_not_matter() -> None:
    for size in (1, 3, 50):
        np.testing.assert_array_equal(draws(5, 40, SeededSource(2), size=size), draws(5, 40, SeededSource(2)))


def test_threads_never_get_the_same_word() -> None:
    secret = SecretRandomness(SystemSource(), size=16)
    classes, taken = new_score_classes(50, 1, 0.1), []

    def work() -> None:
        for _ in range(400):
            words = secret.take(3)
            select(classes.totals[:, 0], 0.1, secret)
            taken.append(words)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    words = np.concatenate(taken)
    assert len(words) == 4 * 400 * 3
    assert len(np.unique(words)) == len(words)


@pytest.mark.parametrize("seed", [1.7, "a", -1, True, None])
def test_bad_seeds_are_refused(seed: Any) -> None:
    with pytest.raises(InvalidInput, match="seed"):
        SeededSource(seed)


def test_secure_words_are_in_no_copy() -> None:
    buffer = PublicSource(SystemSource())
    buffer.refill()
    for twin in (copy.copy(buffer), copy.deepcopy(buffer), pickle.loads(pickle.dumps(buffer))):
        assert len(twin.view.words) == 0
    assert len(buffer.view.words) > 0
    assert buffer.view.words[:8].tobytes() not in pickle.dumps(buffer)
    seeded = PublicSource(SeededSource(1))
    seeded.refill()
    np.testing.assert_array_equal(copy.deepcopy(seeded).view.words, seeded.view.words)


@BOTH
def test_printing_shows_no_word(kind: type[Buffer]) -> None:
    buffer = kind(SeededSource(1), size=2)
    buffer.refill()
    shown = repr(buffer) + (repr(buffer.view) if kind is SecretRandomness else "")
    assert not any(str(word) in shown for word in buffer.view.words)


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 8, 13])
def test_below_is_uniform(bound: int) -> None:
    result = draws(bound, 20_000, SeededSource(bound))
    assert result.min() == 0
    assert result.max() == bound - 1
    if bound > 1:
        assert_follows(result, np.full(bound, 1 / bound))
        tilted = np.linspace(0.9, 1.1, bound)
        assert_rejects(result, tilted / tilted.sum())


@pytest.mark.parametrize("bound", range(1, 18))
def test_below_gives_each_number_from_as_many_words(bound: int) -> None:
    words = np.arange(32, dtype=np.uint64) + (np.uint64(7) << np.uint64(40))  # the high bits play no part
    result = []
    for word in words:
        view = PublicWords(np.array([word]), np.zeros(4, dtype=np.int64))
        out = np.zeros(1, dtype=np.int64)
        if fill(bound, out, view):
            result.append(int(out[0]))
        else:
            assert view.used[SHORT] == 1
    assert sorted(set(result)) == list(range(bound))
    assert len({result.count(number) for number in range(bound)}) == 1


def test_below_reaches_the_top_of_large_bounds() -> None:
    bound = (1 << 61) + 1
    result = draws(bound, 2_000, SeededSource(1))
    assert result.min() >= 0
    assert result.max() < bound
    assert result.max() > bound * 0.99  # chance of missing the top hundredth in 2000 draws: 2e-9


@kernel
def exact(classes: ScoreClasses, words: PublicWords | SecretWords) -> int:
    return draw(classes, 0, words)  # type: ignore[arg-type]


def test_draws_from_secret_scores_do_not_compile_with_public_rng() -> None:
    classes = new_score_classes(3, 1, 0.1)
    exact(classes, SecretRandomness(SeededSource(1)).view)
    with pytest.raises(TypingError, match="PublicWords"):
        exact(classes, PublicSource(SeededSource(1)).view)


FORK = """
import os
from diminuendo import OrderedExperts, RandomSlates, SeededSource
kinds = RandomSlates, OrderedExperts
learners = [kind(1000, 3) for kind in kinds] + [kind(1000, 3, rng=SeededSource(1)) for kind in kinds]
for learner in learners:
    learner.choose()
ours, theirs = os.pipe()
if os.fork() == 0:
    os.write(theirs, repr([learner.choose().slate for learner in learners]).encode())
    os._exit(0)
os.wait()
print(repr([learner.choose().slate for learner in learners]))
print(os.read(ours, 1000).decode())
"""


def test_a_forked_child_repeats_no_word() -> None:
    ran = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    parent, child = (eval(line) for line in ran.stdout.splitlines())
    assert parent[0] != child[0]  # public words; alike by chance: 1 in 10^9
    assert parent[1] != child[1]  # secret randomness
    assert parent[2:] == child[2:]  # seeded words are repeated on purpose


def test_digits_are_secret_words_cut_to_pieces() -> None:
    """In a buffer of their own: no word is in both, and none is in a copy, in a printed line or used twice."""
    secret, again = SecretRandomness(SeededSource(5), size=64), SeededSource(5)
    words, digits = secret.take(10), secret.digits.take(40)
    expected = again.secret(64 + 16)
    np.testing.assert_array_equal(words, expected[:10])
    np.testing.assert_array_equal(digits.view(np.uint64), expected[64:74])
    assert repr(secret.digits.view) == "<DigitWords>"
    with pytest.raises(Exception, match="is not copied"):
        pickle.dumps(secret.digits)
    before = secret.digits.view.words
    secret.digits.refill()
    assert not before.any(), "used digits are wiped out, with the buffer that held them"
