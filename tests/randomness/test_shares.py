"""Guides find the item that halving finds, whatever the stretches, and draws with them are those of the slow way."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from diminuendo import SeededSource
from diminuendo._numba import kernel
from diminuendo.experts.capped_simplex import ONE, draw_pivotal, running
from diminuendo.randomness.shares import GuideTable, draw_other, find, guided, mask, seek, softmax
from diminuendo.randomness.words import UNFINISHED, PublicSource, PublicWords, begin, below, mask_of, undo
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items


@kernel
def _found(guide: GuideTable, expert: int, ends: Ints, wrong: Ints) -> None:
    """How often the guide and halving disagree, over all places."""
    for place in range(ends[-1]):
        wrong[0] += seek(guide, expert, place) != find(ends, place)


def disagreements(shares: Ints) -> int:
    """`shares` are (experts, N)."""
    ends = np.zeros((shares.shape[1] + 1, len(shares)), dtype=np.int64)
    np.cumsum(shares, axis=1, out=ends[1:].T)
    guide, wrong = guided(ends), np.zeros(1, dtype=np.int64)
    for expert in range(len(shares)):
        _found(guide, expert, np.ascontiguousarray(ends[:, expert]), wrong)
    return int(wrong[0])


def test_every_place_of_every_small_case() -> None:
    """All shares from 0 to 3 of four items, and all pairs of two experts on two items."""
    for shares in itertools.product(range(4), repeat=4):
        if sum(shares):
            assert disagreements(np.array([shares])) == 0, shares
            if sum(shares[:2]) and sum(shares[2:]):
                assert disagreements(np.array(shares).reshape(2, 2)) == 0, shares


@pytest.mark.parametrize("seed", range(3))
def test_every_place_of_uneven_stretches(seed: int) -> None:
    random = np.random.default_rng(seed)
    for n in (1, 2, 7, 64, 300):
        shares = np.floor(2.0 ** random.uniform(0, 12, size=(3, n))).astype(np.int64) - 1
        shares[:, int(random.integers(n))] += 5_000  # nearly all of it, so that most items share a bucket
        assert disagreements(shares) == 0


def test_a_guide_that_is_off_by_one_is_noticed() -> None:
    ends = np.arange(0, 44, 4)
    for off in (0, 1):
        guide, wrong = guided(ends[:, None]), np.zeros(1, dtype=np.int64)
        guide.firsts[0, 3:-1] += off
        _found(guide, 0, ends, wrong)
        assert (wrong[0] > 0) == (off > 0)


@kernel
def _masks(bounds: Ints, out: Ints) -> None:
    for j in range(len(bounds)):
        out[j] = np.int64(mask_of(bounds[j]))


def test_masks_are_those_of_compiled_code() -> None:
    bounds = np.array([*range(1, 40), *(2**j + d for j in (20, 40, 61) for d in (-1, 0, 1))])
    out = np.zeros(len(bounds), dtype=np.int64)
    _masks(bounds, out)
    assert out.tolist() == [mask(int(bound)) for bound in bounds]


# Whole slates.


@kernel
def _in_turn(guide: GuideTable, slow: bool, ends: Ints, rows: Items, done: int, rng: PublicWords) -> int:
    """Experts in turn, by the guide; or slowly, by walking along the items that are left."""
    while done < len(rows):
        begin(rng)
        for slot in range(rows.shape[1]):
            item = UNFINISHED
            if not slow:
                item = draw_other(guide, slot, rows[done], slot, rng)
            else:
                left = 0
                for other in range(ends.shape[1] - 1):
                    if not _has(rows[done], slot, other):
                        left += ends[slot, other + 1] - ends[slot, other]
                place = below(left, rng)
                for other in range(ends.shape[1] - 1):
                    if place != UNFINISHED and item == UNFINISHED and not _has(rows[done], slot, other):
                        place -= ends[slot, other + 1] - ends[slot, other]
                        item = other if place < 0 else UNFINISHED
            if item == UNFINISHED:
                undo(rng)
                return done
            rows[done, slot] = item
        done += 1
    return done


@kernel
def _has(row: Items, slots: int, item: int) -> bool:
    for slot in range(slots):
        if row[slot] == item:
            return True
    return False


def drawn(guide: GuideTable, slow: bool, slots: int) -> Items:
    ends = np.ascontiguousarray(guide.ends.T)
    rows, rng, done = np.full((2_000, slots), EMPTY_SLOT, dtype=np.int32), PublicSource(SeededSource(3)), 0
    while (done := _in_turn(guide, slow, ends, rows, done, rng.view)) < len(rows):
        rng.resume()
    return rows


@pytest.mark.parametrize(("slots", "n"), [(1, 1), (1, 6), (3, 3), (4, 9), (5, 200)])
def test_experts_in_turn_draw_what_the_slow_way_draws(slots: int, n: int) -> None:
    random = np.random.default_rng(n)
    for spread in (0.0, 2.0, 40.0):  # in the last, what is left after one item is next to nothing
        guide = guided(softmax(random.normal(size=(slots, n)) * spread))
        np.testing.assert_array_equal(drawn(guide, False, slots), drawn(guide, True, slots))


@kernel
def _guided(guide: GuideTable, rows: Items, done: int, rng: PublicWords) -> int:
    while done < len(rows):
        begin(rng)
        if not draw_pivotal(guide, rows[done], rng):
            undo(rng)
            return done
        done += 1
    return done


@kernel
def _halving(ends: Ints, rows: Items, done: int, rng: PublicWords) -> int:
    """Pivotal rounding that searches by halving."""
    while done < len(rows):
        begin(rng)
        left, rest = -1, 0
        for unit in range(rows.shape[1]):
            border = (unit + 1) * ONE
            crossing = find(ends, border - 1)
            inside, beyond, stays = border - ends[crossing], ends[crossing + 1] - border, left
            place = below(ONE - inside, rng) if inside < ONE else 0
            if inside < ONE and place >= rest:
                stays = find(ends, unit * ONE + place)
            toss = below(ONE - beyond, rng) if place != UNFINISHED else UNFINISHED
            if toss == UNFINISHED:
                undo(rng)
                return done
            rows[done, unit], left = (crossing, stays) if toss < inside else (stays, crossing)
            rest = beyond
        done += 1
    return done


def points() -> list[Floats]:
    random, result = np.random.default_rng(8), []
    for n, k in ((2, 1), (3, 3), (6, 2), (40, 7), (900, 4)):
        for sharp in (0.0, 1.0, 9.0):
            x = np.exp(sharp * random.normal(size=n))
            for _ in range(50):  # to sum k, none above 1
                x = np.minimum(1.0, x * k / x.sum())
            result.append(x)
    return result


def all_drawn(draw: Callable[..., int], law: Any, slots: int) -> Items:
    rows, rng, done = np.zeros((500, slots), dtype=np.int32), PublicSource(SeededSource(2)), 0
    while (done := draw(law, rows, done, rng.view)) < len(rows):
        rng.resume()
    return rows


def test_a_guide_changes_nothing_about_pivotal_rounding() -> None:
    for x in points():
        slots = round(float(x.sum()))
        ends = running(x, slots)
        assert ends[-1] == slots * ONE
        result = all_drawn(_guided, guided(ends[:, None]), slots)
        np.testing.assert_array_equal(result, all_drawn(_halving, ends, slots))
