"""Balanced blocks: what is shown and when, that cells are fair, what hostile people can move, crashes, and replay.

The law of whole runs is in test_blocks_law.py, bounds are in test_blocks_bound.py.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from diminuendo import NoisyOr, People, SeededCoins, Setting
from diminuendo.errors import InvalidInput, OverBudget
from diminuendo.learners.base.patience import Patience
from diminuendo.learners.base.replay import loop
from diminuendo.learners.probing.schedule import PAYOFF_TICKS, Noise, Plan
from diminuendo.learners.probing.variants import (
    BanditBlocks,
    BanditBlocksFull,
    OpenBanditBlocks,
    OpenBanditBlocksFull,
    OpenRankedClicks,
    RankedClicks,
)
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import ContinuousGaussian, Laplace
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import PublicCoins, SecretRandomness, noise
from diminuendo.randomness import rounded_normal as normal
from diminuendo.streams import taste_groups
from diminuendo.types import Floats, Ints
from tests.kit.menus import read_menu
from tests.kit.slow import mostly_slow
from tests.kit.statistics import ALPHA, assert_follows, assert_rejects, p_value

OPEN: list[Any] = [OpenBanditBlocks, OpenBanditBlocksFull, OpenRankedClicks]
PRIVATE: list[Any] = [BanditBlocks, BanditBlocksFull, RankedClicks]


@contextmanager
def planned_as(plan: Plan) -> Iterator[None]:
    """Learners that are made meanwhile have this plan."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("diminuendo.learners.probing.variants.planned", lambda *_: plan)
        yield


def opened(kind: Any, n: int, k: int, blocks: int, length: int, probes: int = 1, rate: float = 0.0) -> Any:
    with planned_as(Plan(n, k, blocks * length, length, probes, rate, "none")):
        everything = Patience(in_flight=blocks * length)  # is remembered
        return kind(n, k, horizon=blocks * length, coins=SeededCoins(1), patience=everything)


def private(kind: Any, n: int, k: int, blocks: int, length: int, noise_: Noise, **more: Any) -> Any:
    asked = {"epsilon": 1.0, "delta": 0.0 if noise_ == "laplace" else 1e-6, "coins": SeededCoins(1)}
    with planned_as(Plan(n, k, blocks * length, length, 1, 0.5, noise_)):
        return kind(n, k, horizon=blocks * length, **(asked | more))


def sure(learner: Any, *wanted: int) -> None:
    """Experts draw these items."""
    policy = learner.policy
    policy._sums[:] = 0.0
    policy._sums[np.arange(learner.slots) * learner.n_items + np.array(wanted)] = 1e9
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy, "plan", Plan(learner.n_items, learner.slots, 1, 1, 1, 1.0, "none"))
        policy._chooser = policy._choosing_in(block=0)


# Probes.


@pytest.mark.parametrize("kind", OPEN)
@pytest.mark.parametrize("probes", [1, 3])
def test_every_cell_is_probed_equally_often_in_every_block_but_the_last(kind: Any, probes: int) -> None:
    n, k, blocks, length = 5, 2, 6, 40
    learner = opened(kind, n, k, blocks, length, probes)
    for block in range(blocks):
        found = Counter(learner.choose().probe for _ in range(length))
        assert found.pop(None) == length - (probes * n * k if block < blocks - 1 else 0)
        cells = dict.fromkeys(itertools.product(range(k), range(n)), probes) if block < blocks - 1 else {}
        assert found == cells


@pytest.mark.slow
def test_all_placements_are_equally_likely() -> None:
    blocks, length = 6_000, 4
    learner = opened(OpenBanditBlocks, 2, 1, blocks, length)
    names = sorted(set(itertools.permutations((-1, -1, 0, 1))))
    found = []
    for _ in range(blocks - 1):
        probes = [learner.choose().probe for _ in range(length)]
        found.append(names.index(tuple(-1 if probe is None else probe[1] for probe in probes)))
    assert len(names) == 12
    assert_follows(found, np.full(12, 1 / 12))
    early = np.array([1.1 if name[0] >= 0 else 0.9 for name in names])
    assert_rejects(found, early / early.sum())


def shown(learner: Any, *wanted: int) -> dict[tuple[int, int], tuple[int, ...]]:
    """What a block of probes shows where experts draw these items."""
    sure(learner, *wanted)
    decisions = [learner.choose() for _ in range(learner.policy.plan.block_probes)]
    rows = {decision.probe: decision.slate for decision in decisions}
    assert len(rows) == learner.policy.plan.block_probes
    return rows


def test_what_a_probe_shows() -> None:
    n, k = 4, 3
    short, full, clicks = (shown(opened(kind, n, k, 2, n * k), 2, 0, 3) for kind in OPEN)
    slate = (2, 0, 3)
    for (slot, item), row in short.items():
        assert row == (slate[:slot] if item in slate[:slot] else (*slate[:slot], item))
    for (slot, item), row in full.items():
        others = slate[:slot] + slate[slot + 1 :]
        assert set(row) == {*others, item}
        assert len(row) == len(set(row))
    for (slot, item), row in clicks.items():
        if item in slate[:slot]:
            assert row == slate
        else:
            moved = [other for other in slate[slot:] if other != item]
            assert row == (*slate[:slot], item, *moved)[:k]


def test_experts_that_agree_leave_slots_empty_in_probes_and_fill_them_otherwise() -> None:
    learner = opened(OpenBanditBlocksFull, 4, 3, 2, 30)
    sure(learner, 1, 1, 2)
    for _ in range(30):
        decision = learner.choose()
        if decision.probe is None:
            assert len(set(decision.slate)) == 3
            assert {1, 2} < set(decision.slate)
        else:
            slot, item = decision.probe
            assert set(decision.slate) == {*(other for j, other in enumerate((1, 1, 2)) if j != slot), item}


def slate_law(scores: Floats, independent: bool) -> dict[tuple[int, ...], float]:
    """Slot by slot, among the items that are not shown yet; or each for itself, and then others for repeats."""
    k, n = scores.shape
    weights = np.exp(scores)
    law: dict[tuple[int, ...], float] = {}

    def complete(row: tuple[int, ...], odds: float) -> None:
        if -1 not in row:
            law[row] = law.get(row, 0.0) + odds
            return
        slot = row.index(-1)
        left = [item for item in range(n) if item not in row]
        for item in left:
            share = weights[slot, item] / weights[slot, left].sum()
            complete((*row[:slot], item, *row[slot + 1 :]), odds * share)

    if not independent:
        complete((-1,) * k, 1.0)
        return law
    for named in itertools.product(range(n), repeat=k):
        odds = float(np.prod([weights[slot, item] / weights[slot].sum() for slot, item in enumerate(named)]))
        complete(tuple(-1 if item in named[:slot] else item for slot, item in enumerate(named)), odds)
    return law


@pytest.mark.parametrize("kind", OPEN)
def test_slates_follow_their_law(kind: Any) -> None:
    n, k, count = 4, 3, 30_000
    learner = opened(kind, n, k, 1, count, probes=2, rate=1.4)  # a rate is shared by the probes of a cell
    policy = learner.policy
    policy._sums[:] = np.random.default_rng(3).normal(size=k * n) * 2
    policy._chooser = policy._choosing_in(block=0)
    rows = learner.replay(taste_groups(count, n, groups=1, items_per_group=2))
    scores = np.asarray(policy._sums).reshape(k, n)
    for rate, check in ((0.7, assert_follows), (0.6, assert_rejects)):
        law = slate_law(rate * scores, independent=kind is OpenBanditBlocksFull)
        names = list(law)
        check([names.index(tuple(row)) for row in rows.tolist()], np.array([law[name] for name in names]))


# Cells.


@pytest.mark.parametrize("kind", mostly_slow(OPEN, OPEN[:1]))
def test_a_cell_is_what_its_item_earns_over_the_whole_block(kind: Any) -> None:
    """People want one thing each, by the hour: a probe that came at a favourite time of the block would be unfair."""
    n, k, length, blocks = 3, 2, 8, 3_000
    wants = np.array([0, 0, 0, 0, 1, 1, 1, 2])
    one = sparse.csr_array((np.ones(length), wants, np.arange(length + 1)), shape=(length, n))
    people = People(NoisyOr(), sparse.csr_array(sparse.vstack([one] * blocks)), n)
    learner, cells = opened(kind, n, k, blocks, length), []
    original = learner.policy._cells.release

    def release(secret: SecretRandomness) -> Floats:
        cells.append(learner.policy._cells._cells.entries().copy() // PAYOFF_TICKS)
        released: Floats = original(secret)
        return released

    learner.policy._cells.release = release
    learner.replay(people)
    told_apart = 0
    for slot, item in itertools.product(range(k), range(n)):
        chances = []
        alone = slot == 0 and kind is not OpenBanditBlocksFull
        others: list[tuple[int, ...]] = [()] if alone else [(other,) for other in range(n)]
        for upto in (length, length - 1):  # the law, and that of a block whose last round is never probed
            earned = []
            for want in wants[:upto]:
                for before in others:
                    had = want in before
                    adds = item == want and not had
                    earned.append(adds if kind is OpenRankedClicks else adds or had)
            chances.append(float(np.mean(earned)))
        found = np.array(cells)[:, slot * n + item]
        assert_follows(found, np.array([1 - chances[0], chances[0]]))
        told_apart += p_value(found, np.array([1 - chances[1], chances[1]])) < ALPHA
    assert told_apart >= 1


# What one person can move.

Script = list[tuple[Ints, float, Ints]]


@contextmanager
def published(script: Script, again: bool) -> Iterator[None]:
    """Write down what noise is about to cover; the second time publish what was published the first time."""
    originals, place = {noise: noise.laplace, normal: normal.rounded_normal}, iter(range(10**6))

    def sampler(original: Any) -> Any:
        def drawn(values: Ints, scale: float, secret: SecretRandomness) -> Ints:
            if not again:
                script.append((values.copy(), scale, original(values, scale, secret)))
                return script[-1][2]
            j = next(place)
            before, _, out = script[j]
            script[j] = (values - before, scale, out)
            return out

        return drawn

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise, "laplace", sampler(originals[noise]))
        patch.setattr(normal, "rounded_normal", sampler(originals[normal]))
        yield


def hostile(random: np.random.Generator, k: int, clicks: bool) -> Any:
    """Anything that may be said, or nothing."""
    if clicks:
        return random.choice([None, *range(k)])
    return random.choice([0.0, 1.0, 0.3, -5.0, 1e300, np.nan, np.inf, -np.inf])


@pytest.mark.parametrize(
    ("kind", "noise_"),
    [
        *((kind, "laplace") for kind in PRIVATE),
        *(
            (kind, "gaussian") for kind in PRIVATE if kind is not BanditBlocksFull
        ),  # others are proved with Laplace noise only
    ],
)
@pytest.mark.parametrize("seed", mostly_slow(range(6), range(3)))
def test_hostile_people_move_no_more_than_is_charged(kind: Any, noise_: Noise, seed: int) -> None:
    """Whatever is said, twice, late, or not at all: one cell of one block by one unit, along a common view."""
    n, k, blocks, length = 4, 2, 6, 10
    random = np.random.default_rng(seed)
    said = [hostile(random, k, kind is RankedClicks) for _ in range(blocks * length)]
    late = random.random(blocks * length) < 0.3
    victim, script = int(random.integers(length)), list[Any]()
    for again in (False, True):
        with published(script, again):
            learner = private(kind, n, k, blocks, length, noise_)
            waiting: list[Any] = []
            for t in range(blocks * length):
                decision = learner.choose()
                answer = said[t]
                if t == victim and again:
                    answer = hostile(random, k, kind is RankedClicks)
                if t != victim or not again or random.random() < 0.5:
                    waiting.append((t + (5 if late[t] else 0), decision, answer))
                for due, which, what in waiting:
                    if due <= t:
                        learner.observe(which, what)
    shifts = [np.abs(shift).astype(object) for shift, _, _ in script]
    scale, unit = Fraction(script[0][1]), PAYOFF_TICKS
    assert len(script) == blocks - 1
    assert all((shift > 0).sum() <= 1 for shift in shifts)
    if noise_ == "laplace":
        assert sum(shift.sum() for shift in shifts) <= unit
        assert isinstance(learner.events, Laplace)
        assert Fraction(unit) / scale <= Fraction(learner.events.epsilon) <= 1
    else:
        moved = sum(Fraction(int((shift**2).sum())) for shift in shifts) / scale**2
        assert isinstance(learner.events, ContinuousGaussian)
        assert (
            moved
            <= Fraction(learner.events.mu) ** 2
            <= Budget(1.0, 1e-6, accountant="continuous-gaussian").limit
        )


@pytest.mark.parametrize("kind", PRIVATE)
def test_the_last_answers_of_a_block_count_and_later_ones_do_not(kind: Any) -> None:
    n, k, length = 3, 2, 6
    learner = private(kind, n, k, 3, length, "laplace")
    decisions = [learner.choose() for _ in range(length)]
    own = [d for d in decisions if d.probe[1] in d.slate[d.probe[0] :]]  # not shown further up already
    said = [d.slate.index(d.probe[1]) if kind is RankedClicks else 1.0 for d in own]
    learner.observe(own[0], said[0])
    assert learner.policy._cells._cells.entries().sum() == PAYOFF_TICKS
    learner.choose()
    assert learner.policy._cells._cells.entries().sum() == 0, "the block was published"
    for decision, what in zip(own[1:], said[1:], strict=True):
        learner.observe(decision, what)
    assert learner.policy._cells._cells.entries().sum() == 0


# Noise, ledgers, crashes.


def test_delta_decides_which_noise_there_can_be() -> None:
    for kind in PRIVATE:
        pure = kind.for_setting(Setting(12, 3, 4_000, kind_of(kind), 1.0, 0.0))
        assert (pure.policy.plan.noise, pure.guarantee.delta) == ("laplace", 0.0)
        assert 0.999 < pure.guarantee.epsilon <= 1.0
        often = kind.for_setting(Setting(12, 3, 4_000, kind_of(kind), 1.0, 0.0, visits=4))
        assert often.policy.spread >= 4
    many: Any = RankedClicks.for_setting(Setting(12, 3, 10**6, "click"))
    assert (many.policy.plan.noise, many.guarantee.delta) == ("gaussian", 1e-6)
    assert 0.99 < many.guarantee.epsilon <= 1.0
    full: Any = BanditBlocksFull.for_setting(Setting(12, 3, 10**6, "bandit"))
    assert full.policy.plan.noise == "laplace"


def kind_of(kind: Any) -> Any:
    (feedback,) = kind.reads
    return feedback


PEOPLE = taste_groups(1_200, 6, groups=4, items_per_group=3, seed=1)


@pytest.mark.parametrize("accountant", ["pure", "continuous-gaussian"])
def test_releases_are_paid_for_and_survive_a_crash(accountant: Any, tmp_path: Path) -> None:
    delta = 0.0 if accountant == "pure" else 1e-6
    made: dict[str, Any] = {"horizon": 1_200, "epsilon": 1.0, "delta": 1e-6}
    with Ledger.open(tmp_path / "ledger", Budget(1.0, delta, accountant=accountant)) as ledger:
        first: Any = BanditBlocks(6, 2, **made, ledger=ledger)
        assert first.policy.plan.blocks > 3
        begun = first.policy.schedule.ends[0] + 5
        first.replay(PEOPLE[:begun])
        kept = first.snapshot()
        first.replay(PEOPLE[begun:1_100])
        sums, spent = np.asarray(first.policy._sums), ledger.spent()
    with Ledger.open(tmp_path / "ledger") as again:
        second: Any = BanditBlocks.restore(kept, ledger=again)
        second.replay(PEOPLE[begun:1_100])
        np.testing.assert_array_equal(second.policy._sums, sums, "as published, not drawn again")
        assert again.spent() == spent <= 1.0
    with pytest.raises(InvalidInput, match="paid for on a ledger"):
        BanditBlocks.restore(kept)


def test_a_release_that_failed_is_made_at_the_next_round(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = private(BanditBlocks, 6, 2, 5, 50, "laplace")
    learner.replay(PEOPLE[:50])
    with monkeypatch.context() as patch:
        patch.setattr(noise, "laplace", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            learner.choose()
    assert learner.rounds == 50
    learner.replay(PEOPLE[50:250])
    assert learner.policy._blocks_published[0] == learner.policy._cells.batch == 4


@pytest.mark.parametrize("kind", OPEN + PRIVATE)
def test_replay_is_the_loop(kind: Any) -> None:
    setting = Setting(6, 2, 1_000, kind_of(kind), 5.0)
    quick, slow = (kind.for_setting(setting, coins=SeededCoins(4)) for _ in range(2))
    assert quick.policy.plan.blocks > 3
    rows = np.vstack([quick.replay(PEOPLE[:333]), quick.replay(PEOPLE[333:1_000])])
    np.testing.assert_array_equal(rows, loop(slow, PEOPLE[:1_000]))
    np.testing.assert_array_equal(quick.policy._sums, slow.policy._sums)
    assert np.asarray(quick.policy._sums).any()


@pytest.mark.parametrize("kind", OPEN + PRIVATE)
def test_whoever_holds_the_menu_draws_the_same(kind: Any) -> None:
    """Block for block, with the same coins; also from a menu that a restored learner makes in the midst of a block."""
    setting = Setting(6, 2, 1_000, kind_of(kind), 5.0)
    learner = kind.for_setting(setting, coins=SeededCoins(4))
    middle = learner.policy.schedule.ends[1] + 7
    same_to_its_end(learner, SeededCoins(4))
    while learner.rounds < middle:
        learner.choose()
    again = kind.restore(learner.snapshot(), coins=SeededCoins(9))
    assert again.menu.first == middle
    assert len(again.menu.probes) == again.policy._probes_left[0]
    while again.rounds < 1_000:
        same_to_its_end(again, SeededCoins(9))


def same_to_its_end(learner: Any, coins: SeededCoins) -> None:
    """The rounds of one menu: slates, probes and propensities."""
    decision = learner.choose()
    menu = read_menu(learner.menu.to_bytes())
    chooser, public = menu.chooser(), PublicCoins(coins)
    public.take(menu.words)
    assert menu.first == decision.round
    for number in range(menu.first, menu.end or 1_000):
        decision = learner.choose() if number > menu.first else decision
        row, probe = np.empty((1, menu.slots), dtype=np.int32), np.empty((1, 3), dtype=np.int32)
        while not chooser.draw(number, row, probe, public.view):
            public.resume()
        np.testing.assert_array_equal(row[0], learner.row_of(decision))
        assert decision.probe == (None if probe[0, 0] == -1 else (probe[0, 0], probe[0, 1]))
        assert decision.propensity == chooser.propensity(number, row[0])


def test_open_learners_go_on_after_their_horizon_and_learn_no_more() -> None:
    learner: Any = OpenBanditBlocks(6, 2, horizon=600, coins=SeededCoins(1))
    learner.replay(PEOPLE[:600])
    sums = np.asarray(learner.policy._sums)
    assert learner.replay(PEOPLE[600:]).min() >= 0
    assert learner.choose().probe is None
    np.testing.assert_array_equal(learner.policy._sums, sums)


def test_doors() -> None:
    good: dict[str, Any] = {"horizon": 40, "epsilon": 1.0, "delta": 1e-6}
    for wrong in (
        {"epsilon": 0.0},
        {"delta": 1.5},
        {"horizon": 0},
        {"horizon": None},
        {"ledger": 5},
        {"visits": 0},
    ):
        for kind in PRIVATE:
            with pytest.raises(InvalidInput):
                kind(8, 2, **(good | wrong))
    with pytest.raises(OverBudget):
        BanditBlocks(8, 2, **good, ledger=Ledger(Budget(0.1, 0.0, accountant="pure")))
    with pytest.raises(InvalidInput, match="40 rounds"):
        BanditBlocks(8, 2, **good).replay(taste_groups(41, 8, groups=2, items_per_group=3))
    assert isinstance(BanditBlocks(8, 2, **good).events, Laplace | ContinuousGaussian)
    assert OpenBanditBlocks(8, 2, horizon=40).events is None
    with pytest.raises(InvalidInput, match="no ledger can pay"):
        OpenBanditBlocks.for_setting(
            Setting(8, 2, 40, "bandit"), ledger=Ledger(Budget(0.1, 0.0, accountant="pure"))
        )
