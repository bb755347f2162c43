"""Coins hand out each word once; the purse loses none and repeats none."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from diminuendo import SeededCoins, SystemCoins
from diminuendo._jit import kernel
from diminuendo.randomness.coins import OUT_OF_WORDS, Coins, Handful, Purse, below
from diminuendo.types import Ints
from tests.kit.statistics import assert_follows, assert_rejects


@kernel
def fill(bound: int, out: Ints, handful: Handful) -> int:
    for i in range(len(out)):
        out[i] = below(bound, handful)
        if out[i] == OUT_OF_WORDS:
            return i
    return len(out)


def draws(bound: int, count: int, coins: Coins) -> Ints:
    purse = Purse(coins, size=4 * count)
    purse.refill()
    out = np.zeros(count, dtype=np.int64)
    assert fill(bound, out, purse.handful) == count
    return out


@pytest.mark.parametrize("coins", [SystemCoins(), SeededCoins(0)], ids=repr)
def test_words_are_fresh(coins: Coins) -> None:
    words = np.concatenate([coins.words(1000) for _ in range(10)])
    assert words.dtype == np.uint64
    assert len(np.unique(words)) == 10_000  # two alike among 10^4 of 2^64: chance 3e-12


def test_a_seed_repeats_itself_and_no_other() -> None:
    np.testing.assert_array_equal(SeededCoins(5).words(9), SeededCoins(5).words(9))
    assert not np.array_equal(SeededCoins(5).words(9), SeededCoins(6).words(9))
    coins = SeededCoins(5)
    np.testing.assert_array_equal(np.concatenate([coins.words(4), coins.words(5)]), SeededCoins(5).words(9))


def test_only_the_systems_coins_are_secure() -> None:
    assert SystemCoins().secure
    assert not SeededCoins(1).secure


def test_refilling_keeps_unused_words_in_order() -> None:
    purse = Purse(SeededCoins(3), size=10)
    purse.refill()
    purse.handful.used[0] = 7
    purse.refill()
    np.testing.assert_array_equal(purse.handful.words, SeededCoins(3).words(20)[7:])
    assert purse.handful.used[0] == 0


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 8, 13])
def test_below_is_uniform(bound: int) -> None:
    found = draws(bound, 20_000, SeededCoins(bound))
    assert found.min() == 0
    assert found.max() == bound - 1
    if bound > 1:
        assert_follows(found, np.full(bound, 1 / bound))
        tilted = np.linspace(0.9, 1.1, bound)
        assert_rejects(found, tilted / tilted.sum())


def test_below_reaches_the_top_of_large_bounds() -> None:
    bound = (1 << 61) + 1
    found = draws(bound, 2_000, SeededCoins(1))
    assert found.min() >= 0
    assert found.max() < bound
    assert found.max() > bound * 0.99  # chance of missing the top hundredth in 2000 draws: 2e-9


def test_an_empty_handful_is_noticed() -> None:
    out = np.zeros(3, dtype=np.int64)
    assert fill(5, out, Purse(SeededCoins(1)).handful) == 0


FORK = """
import os
from diminuendo import RandomSlates, SeededCoins
learner, seeded = RandomSlates(1000, 3), RandomSlates(1000, 3, coins=SeededCoins(1))
learner.choose(), seeded.choose()
ours, theirs = os.pipe()
if os.fork() == 0:
    os.write(theirs, repr([learner.choose().slate, seeded.choose().slate]).encode())
    os._exit(0)
os.wait()
print(repr([learner.choose().slate, seeded.choose().slate]))
print(os.read(ours, 1000).decode())
"""


def test_a_forked_child_repeats_no_word() -> None:
    ran = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    parent, child = (eval(line) for line in ran.stdout.splitlines())
    assert parent[0] != child[0]  # alike by chance: 1 in 10^9
    assert parent[1] == child[1]  # seeded coins repeat themselves on purpose
