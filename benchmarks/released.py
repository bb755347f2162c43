"""Learners on released sums: what a round costs between releases, and a whole run with them, against the floor.

The floor reads each person's row and adds as many whole numbers to as many places as the learner does: one for each of
her items with boosted, one for each item and slot with noisy hedge. Ours also draws her slate, with its coins, works
out and clips her gains. Between two releases nothing else happens, and nothing of it grows with the number of items but
the memory that is walked; the parts of a round are timed by themselves as well.

A whole run publishes its sum after every batch. That takes noise for every entry, and work on every entry, whatever
people do: its floor is the additions, the noise, and what makes the next law of slates out of what was published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks import contributions
from benchmarks.flat import exponent, uniform_people
from benchmarks.floor import additions
from benchmarks.report import Disagreement, Part, verdict
from benchmarks.stopwatch import Competitor, race
from diminuendo import Learner, People, SeededCoins
from diminuendo.learners.released.policy import ReleasedPolicy
from diminuendo.learners.released.variants import Boosted, NoisyHedge
from diminuendo.objectives.rows import Matrix
from diminuendo.randomness import SecretRandomness, rounded_normal
from diminuendo.sums.batch import OpenBatch
from diminuendo.sums.private_sum import PrivateSum
from diminuendo.types import Ints, Items
from tests.kit.slow_rows import boosted_rows, hedge_rows

SIZES = (1_000, 10_000, 100_000, 1_000_000)
SLOTS, NNZ = 10, 50
LAPS = 15
N_PEOPLE = 1_000
"""A lap. All laps of a learner, and the warm-up, are within its first batch."""
AIM = 100_000
"""The number of items for which ratios are aimed at."""
MOST, STEEPEST = 3.0, 0.3
"""What is aimed at: so many times the floor, and this exponent of cost against items."""

KINDS: tuple[Any, ...] = (Boosted, NoisyHedge)
MADE: dict[str, dict[str, Any]] = {
    "boosted": {
        "horizon": 1 << 26,
        "epsilon": 0.05,
        "delta": 1e-6,
    },  # batches are long where there is much noise
    "noisy-hedge": {"horizon": 1 << 26, "epsilon": 1.0, "delta": 1e-6},  # or where there are many people
}
WHOLE = {"horizon": 40_000, "epsilon": 1.0, "delta": 1e-6}
WHOLE_SIZES = (1_000, 10_000)


class Work(NamedTuple):
    """One learner and its people, and the additions that they come to."""

    learner: Learner
    people: People
    slates: Items
    words: Ints
    floor: Callable[[], Any]


def released() -> Iterator[Part]:
    """Rounds between releases, by number of items; what a round is made of; whole runs."""
    for kind in KINDS:
        yield from between(kind, SIZES, N_PEOPLE, LAPS)
    yield whole(WHOLE_SIZES, WHOLE)


# Rounds between releases.


def between(kind: Any, sizes: tuple[int, ...], n_people: int, laps: int) -> Iterator[Part]:
    """Microseconds per person against the floor, and the parts of a round."""
    works = {n: prepared(kind, n, n_people, laps) for n in sizes}
    results = race([one for n in sizes for one in _competitors(works[n], n)], laps, fewest=laps)

    def cost(name: str, n: int) -> float:
        return 1e6 * results[f"{name} {n}"].run / n_people

    rounds = Part(
        f"{kind.name} between releases",
        f"{kind.name}: rounds between releases, {SLOTS} slots, people with {NNZ} items each",
        ["items", "ours, us per person", "floor, us per person", "ours / floor"],
    )
    parts = Part(
        f"parts of {kind.name}",
        f"{kind.name}: what a round is made of, us per person",
        ["items", "whole", "coins", "slates", "people", "floor", "rest"],
    )
    for n in sizes:
        ours, floor, *others = (cost(name, n) for name in ("ours", "floor", "coins", "slates", "people"))
        rounds.rows.append([n, ours, floor, ours / floor])
        parts.rows.append([n, ours, *others, floor, ours - sum(others)])
        rounds.numbers[f"ours / floor, {n} items"] = ours / floor
    mine, least = (exponent([cost(name, n) for n in sizes], sizes) for name in ("ours", "floor"))
    rounds.numbers |= {"exponent of ours": mine, "exponent of the floor": least}
    rounds.notes += [
        "ours: replay, with slates, coins and all. floor: reads each person's row and does the same additions.",
        verdict(
            f"the cost grows like items^{STEEPEST} at most: {mine:.3f}, the floor {least:.3f}",
            mine <= STEEPEST,
        ),
    ]
    if AIM in sizes:
        ratio = rounds.numbers[f"ours / floor, {AIM} items"]
        rounds.notes.append(
            verdict(f"with {AIM:,} items at most {MOST:g} times the floor: {ratio:.3g}", ratio <= MOST)
        )
    parts.notes += [
        "coins: random words, by numpy's Philox; the system's cost several times as much.",
        "slates: looked up by those words. people: gains, clipping and additions"
        + (", and who is in the set R." if kind is Boosted else "."),
        "rest: what is left of the whole; parts are timed by themselves, with warmer caches.",
    ]
    if kind is Boosted:
        parts.notes.append(
            f"Beyond the {NNZ} additions of the floor, a slate takes {2 * SLOTS + 1} words and {SLOTS} look-ups, each "
            "of her items a hash, to know whether it is in R. With 1,000 items one person in three has some there, and "
            "is asked again for each."
        )
    yield rounds
    yield parts


def prepared(kind: Any, n_items: int, n_people: int, laps: int) -> Work:
    """A learner whose first batch has room for all laps, slates and words for its people, and the floor."""
    people = uniform_people(n_people, n_items, NNZ)
    slots = min(SLOTS, n_items)
    learner = kind(n_items, slots, coins=SeededCoins(1), **MADE[kind.name])
    if policy_of(learner).released.schedule.sizes[0] < (laps + 1) * n_people:
        raise Disagreement(f"{learner!r} publishes before all laps are over.")
    policy_of(learner).released.sum._cells.array.fill(0)  # so that no lap waits for the system's pages
    slates, words = drawn(kind(n_items, slots, coins=SeededCoins(2), **MADE[kind.name]), n_people)
    rows = slow_rows(learner, people, slates, words)
    check(learner, people, slates, words, rows)
    return Work(learner, people, slates, words, floor_of(learner, people, slates, rows))


def policy_of(learner: Learner) -> ReleasedPolicy:
    """The learner's policy."""
    if not isinstance(learner.policy, ReleasedPolicy):
        raise Disagreement(f"{learner!r} does not follow a released sum.")
    return learner.policy


def drawn(learner: Learner, n_people: int) -> tuple[Items, Ints]:
    """Slates, and a word each."""
    slates = np.zeros((n_people, learner.slots), dtype=np.int32)
    policy, words, done = policy_of(learner), np.zeros(n_people, dtype=np.int64), 0
    while done < n_people:
        count = policy.draw_rows(slates[done:])
        words[done : done + count] = policy._chooser.words[:count]
        done += count
        policy.resume()
    return slates, words


def slow_rows(learner: Learner, people: People, slates: Items, words: Ints) -> Matrix:
    """What people contribute, by the slow way, a row each."""
    leaves = people.family.leaves
    if learner.name == "boosted":
        return boosted_rows(
            people.table, 0, len(people), leaves, policy_of(learner)._chooser.menu.ends, words
        )
    return hedge_rows(people.table, 0, len(people), leaves, slates, learner.n_items)


def check(learner: Learner, people: People, slates: Items, words: Ints, rows: Matrix) -> None:
    """The fast way adds up to what the slow way adds up to; nothing of it is left in the learner."""
    released = policy_of(learner).released
    slow = OpenBatch(released.size, released.clip, released.sum.schedule)
    slow.add_rows(rows)
    before = released.sum._marks.copy()
    take_in(learner, people, slates, words)
    if not np.array_equal(released.sum._cells.entries(), slow._cells.entries()):
        raise Disagreement(f"{learner!r} adds up something else than people contribute.")
    released.sum._cells.array.fill(0)
    released.sum._marks[:] = before


def take_in(learner: Learner, people: People, slates: Items, words: Ints) -> None:
    """What people say to these slates, into the first batch."""
    policy = policy_of(learner)
    policy.released.add_people(people, 0, slates, words, 0, policy._laws[-1][1])


def floor_of(learner: Learner, people: People, slates: Items, rows: Matrix) -> Callable[[], Any]:
    """The additions alone: the very numbers with one entry for each item, as many of them with one for each slot."""
    if learner.name == "boosted":
        clip = policy_of(learner).released.clip
        work, totals = contributions.clipped(rows, clip), np.zeros(learner.n_items, dtype=np.int64)
        return lambda: contributions.scatter(work, totals)
    adds = additions(people, slates)
    cells = adds.fresh_totals()
    return lambda: adds.run(cells)


def _competitors(work: Work, n_items: int) -> Iterator[Competitor]:
    learner, people = work.learner, work.people
    policy, public = policy_of(learner), policy_of(learner).frame.public
    slates = np.zeros_like(work.slates)
    coins, used = SeededCoins(3), _words_of(policy, slates)

    def look_up(_: Any) -> None:
        public.view.used[:] = 0  # the same words again
        if policy.draw_rows(slates) < len(people):
            raise Disagreement("Words ran out, so that fewer slates were drawn than are to be timed.")

    def add_people(_: Any) -> None:
        take_in(learner, people, work.slates, work.words)
        policy.released.sum._marks[1] -= len(people)  # as if nobody had come, so that laps do not add up

    yield Competitor(f"ours {n_items}", lambda _: None, lambda _: learner.replay(people))
    yield Competitor(f"floor {n_items}", lambda _: None, lambda _: work.floor())
    yield Competitor(f"coins {n_items}", lambda _: None, lambda _: coins.public(used))
    yield Competitor(f"slates {n_items}", lambda _: _stocked(policy, used), look_up)
    yield Competitor(f"people {n_items}", lambda _: None, add_people)


def _words_of(policy: ReleasedPolicy, slates: Items) -> int:
    """The number of words that these slates take: what is used of a stock that is ample."""
    _stocked(policy, 8 * slates.size)
    policy.draw_rows(slates)
    return int(policy.frame.public.view.used[0])


def _stocked(policy: ReleasedPolicy, words: int) -> None:
    """Give the learner's buffer at least that many words, not used yet."""
    public = policy.frame.public
    public.view.used[:] = 0
    while len(public.view.words) < 2 * words:
        public.refill()


# Whole runs.


def whole(sizes: tuple[int, ...], made: dict[str, Any]) -> Part:
    """Runs from the first person to the last, with all releases, against what nobody could do without."""
    part = Part(
        "released sums, whole runs",
        f"Whole runs of {made['horizon']:,} people with {NNZ} items each, {SLOTS} slots, us per person",
        ["learner", "items", "releases", "ours", "additions", "noise", "following", "ours / all three"],
    )
    for kind in KINDS:
        for n in sizes:
            people = uniform_people(made["horizon"], n, NNZ)
            results = race(list(_whole_competitors(kind, people, made)), laps=3, fewest=3)
            first, *others = results["ours"].answers
            if not all(np.array_equal(first, other) for other in others):
                raise Disagreement(f"Laps of {kind.name} with {n} items showed different slates.")
            ours, *least = (1e6 * result.run / len(people) for result in results.values())
            releases = len(policy_of(_fresh(kind, people, made)).released.schedule) - 1
            part.rows.append([kind.name, n, releases, ours, *least, ours / sum(least)])
            part.numbers[f"ours / all three, {kind.name}, {n} items"] = ours / sum(least)
    part.notes += [
        "additions: the floor as above. noise: as many numbers as all releases have. following: to combine batches, "
        "and to make of each release the law of the slates to come.",
    ]
    return part


def _fresh(kind: Any, people: People, made: dict[str, Any]) -> Learner:
    learner: Learner = kind(people.n_items, min(SLOTS, people.n_items), coins=SeededCoins(1), **made)
    policy_of(learner).released.sum._cells.array.fill(0)
    return learner


def _whole_competitors(kind: Any, people: People, made: dict[str, Any]) -> Iterator[Competitor]:
    learner = _fresh(kind, people, made)
    policy, released = policy_of(learner), policy_of(learner).released
    releases, size = len(released.schedule) - 1, released.size
    slates, words = drawn(_fresh(kind, people, made), len(people))
    batch, secret = np.ones(size, dtype=np.int64), SecretRandomness(SeededCoins(4))
    add = floor_of(
        learner, people, slates, slow_rows(learner, people, slates, words) if kind is Boosted else None
    )

    noisy = released.sum
    assert isinstance(noisy, PrivateSum)

    def noise(_: Any) -> None:
        for _release in range(releases):
            rounded_normal.rounded_normal(batch, noisy.scale, secret)

    def follow(coders: tuple[Any, Any]) -> None:
        encoder, decoder = coders
        for _release in range(releases):
            published = decoder.decode(encoder.encode(batch)) / released.clip.ticks
            policy.follower = policy.follower.following(released.published, published)
            policy._choosing_in(0, policy.follower)

    strategy = noisy.strategy
    yield Competitor("ours", lambda _: _fresh(kind, people, made), lambda one: one.replay(people))
    yield Competitor("additions", lambda _: None, lambda _: add())
    yield Competitor("noise", lambda _: None, noise)
    yield Competitor("following", lambda _: (strategy.encoder(size), strategy.decoder(size)), follow)
