"""Private draws: constants, prices, ledgers, horizons; what is promised and what is claimed."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from diminuendo import SeededCoins, Setting, SystemCoins, paper
from diminuendo.errors import InvalidInput, OutOfRange, OverBudget
from diminuendo.learners import constants
from diminuendo.learners.bandit_dp import BanditDp, PresampledBandit
from diminuendo.learners.fi_dp import FiDp
from diminuendo.learners.tail import delta_over_coins
from diminuendo.privacy import curves
from diminuendo.privacy.accountants import ACCOUNTANTS
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Selections
from diminuendo.privacy.ledger import Ledger
from diminuendo.streams import taste_groups
from tests.kit.statistics import assert_follows, assert_rejects

PEOPLE = taste_groups(2_000, 12, groups=4, items_per_group=5, seed=1)


# Constants. Known values are derived independently, from the paper's formulas and from zCDP.


def test_rates_of_algorithm_2() -> None:
    setting = Setting(50, 5, 100_000, "full")
    assert constants.full_information(setting, "paper") == pytest.approx(2.846709466488776e-05, rel=1e-12)
    assert constants.full_information(setting, "tight") == pytest.approx(3.1212954952505027e-4, rel=1e-9)
    assert constants.full_information(setting, "tight") <= math.sqrt(
        2 * curves.zcdp_rho(1.0, 1e-6) / (5 * 99_999)
    )


def test_constants_of_algorithm_3() -> None:
    setting = Setting(20, 5, 1_000_000, "bandit")
    assert constants.paper_exploring(20, 5, 1_000_000) == pytest.approx(4.861145892895914, rel=1e-12)
    assert constants.rounds_for_paper_exploring(10, 3) == pytest.approx(3.7e6, rel=0.02)
    with pytest.warns(OutOfRange, match=r"4\.861.*1\.1e\+08 rounds"):
        printed = constants.bandit(setting, "paper", "all")
    assert (printed.share, printed.cap) == (1.0, 2_000_000)
    assert printed.rate == pytest.approx(6.365435879261062e-06, rel=1e-12)
    assert constants.exploring_cap(1_000_000, 0.01) == 10_477
    assert 1_000_000 * binom.sf(10_477, 1_000_000, 0.01) == pytest.approx(0.9507905996637291, rel=1e-6)


@pytest.mark.parametrize(("resample", "known"), [("all", 4395533.475), ("own", 2509884.501)])
def test_the_tight_bandit_is_no_worse_than_known(resample: Any, known: float) -> None:
    """The known values are minima over a grid, with 1 or k added for the cap."""
    setting = Setting(20, 5, 1_000_000, "bandit")
    found = constants.least_bound(setting, resample, most=1.0)
    bound = constants.bandit_bound(20, 5, 1_000_000, found.rate, found.share)
    assert bound + (5 if resample == "own" else 1) == pytest.approx(known, rel=1e-5)
    assert paper.bounds.bandit(20, 5, 1_000_000, found.rate, found.share) == pytest.approx(bound, rel=1e-12)


def test_where_the_paper_can_be_run_nothing_is_held() -> None:
    setting = Setting(4, 1, 20_000, "bandit")
    assert constants.rounds_for_paper_exploring(4, 1) < 20_000
    found = constants.bandit(setting, "paper", "all")  # a warning would be an error here
    assert found.share == constants.paper_exploring(4, 1, 20_000) < 1


def test_the_papers_constants_need_a_delta() -> None:
    with pytest.raises(InvalidInput, match="calibration='tight'"):
        paper.fi_dp(12, 3, 100, 1.0, 0.0, calibration="paper")


# Guarantees.


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("make", [paper.fi_dp, paper.bandit_dp, paper.direct_bandit, paper.presampled_bandit])
def test_tight_calibration_spends_the_budget_and_no_more(make: Any, delta: float) -> None:
    learner = make(12, 3, 500, 1.0, delta, coins=SeededCoins(1))
    assert learner.guarantee.delta == delta
    assert 0.999 < learner.guarantee.epsilon <= 1.0 or learner.rate == constants.FASTEST
    accountant = ACCOUNTANTS["zcdp" if delta else "pure"]
    assert accountant.epsilon(learner.events, delta) == learner.guarantee.epsilon
    assert math.isinf(learner.claim.epsilon) == (delta == 0)


def test_the_papers_constants_claim_what_was_asked_and_keep_far_more() -> None:
    learner = paper.fi_dp(50, 5, 100_000, 1.0, 1e-6, calibration="paper")
    assert learner.claim.epsilon == pytest.approx(1.0, rel=1e-12)
    assert learner.guarantee.epsilon == pytest.approx(0.078270731087285, rel=1e-6)
    tight = paper.fi_dp(50, 5, 100_000, 1.0, 1e-6)
    assert tight.claim.epsilon == pytest.approx(10.964573420625218, rel=1e-6)
    one = paper.private_hedge(50, 100_000, 1.0, 1e-6, calibration="paper")
    assert one.rate == pytest.approx(1 / math.sqrt(32 * 100_000 * math.log(1e6)), rel=1e-12)
    assert one.claim.epsilon == pytest.approx(1.0, rel=1e-12)


def test_delta_over_coins_is_the_sum_over_all_numbers_of_explorations() -> None:
    for later, explores, again, rate, epsilon in itertools.product(
        (0, 3, 40), (0.2, 1.0), (0.1, 0.7), (0.3, 1.0), (0.2, 1.0)
    ):
        exact = explores * sum(
            float(binom.pmf(m, later, again)) * curves.zcdp_delta((1 + m) * rate**2 / 8, epsilon)
            for m in range(later + 1)
        )
        found = delta_over_coins(later, explores, again, rate, epsilon)
        assert exact <= found <= exact * (1 + 1e-9) + 1e-12
    wide = delta_over_coins(10**6, 0.01, 0.01, 5e-3, 1.0)
    assert wide <= delta_over_coins(10**6, 0.01, 0.0101, 5e-3, 1.0)
    few = sum(
        float(binom.pmf(m, 10**6, 0.01)) * curves.zcdp_delta((1 + m) * 25e-6 / 8, 1.0)
        for m in range(9_000, 11_000, 1)
    )
    assert 0.01 * few <= wide <= 0.01 * few * 1.05


def test_without_a_cap_delta_knows_that_there_may_be_many_explorations() -> None:
    capped = paper.bandit_dp(4, 2, 20_000, 1.0, 1e-6, coins=SeededCoins(1))
    assert capped.cap is not None
    open_ = BanditDp(
        4, 2, exploring=capped.exploring, cap=None, resample="own", horizon=20_000, rate=capped.rate,
        epsilon=1.0, delta=1e-6, coins=SeededCoins(1),
    )  # fmt: skip
    assert open_.guarantee.epsilon == 1.0
    assert open_.guarantee.delta != 1e-6
    assert open_.guarantee.delta < 1e-6, (
        "most explorations come to fewer than the cap, and most rounds do not explore"
    )
    with pytest.raises(InvalidInput, match="give a cap"):
        BanditDp(
            4,
            2,
            exploring=0.1,
            cap=None,
            horizon=9,
            rate=0.1,
            epsilon=1.0,
            delta=1e-6,
            ledger=Ledger(Budget(1, 1e-6)),
        )


# Ledgers, horizons, snapshots.


def spent(ledger: Ledger) -> float:
    return float(ledger._tally.total)


def test_draws_are_paid_for_as_they_come_and_no_further() -> None:
    ledger = Ledger(Budget(1.0, 1e-6))
    learner = paper.fi_dp(12, 3, 2_000, 1.0, 1e-6, ledger=ledger, coins=SeededCoins(1))
    learner.choose()
    assert not ledger.charges, "the first slate knows nothing and is free"
    learner.choose()
    assert len(ledger.charges) == 1
    learner.replay(PEOPLE[:1_998])
    whole = Selections(3 * 1_999, 2 * learner.rate)
    assert spent(ledger) == pytest.approx(ACCOUNTANTS["zcdp"].tally(whole).total, rel=1e-12)  # type: ignore[attr-defined]
    assert ledger.spent() <= 1.0
    with pytest.raises(InvalidInput, match="2,000 rounds"):
        learner.choose()
    with pytest.raises(InvalidInput, match="2,000 rounds"):
        learner.replay(PEOPLE[:1])
    assert learner.rounds == 2_000


def test_a_ledger_too_small_refuses_before_anything_is_drawn() -> None:
    ledger = Ledger(Budget(0.1, 1e-6))
    learner = paper.fi_dp(12, 3, 300, 1.0, 1e-6, ledger=ledger, coins=SeededCoins(1))
    with pytest.raises(OverBudget):
        learner.replay(PEOPLE[:300])
    assert 0 < learner.rounds < 300
    assert ledger.spent() <= 0.1
    with pytest.raises(OverBudget):
        learner.choose()


@pytest.mark.parametrize("make", [paper.fi_dp, paper.bandit_dp, paper.direct_bandit])
def test_going_on_from_a_snapshot_is_paid_for_again(make: Any, tmp_path: Path) -> None:
    """A crash after the snapshot: what was drawn since is spent, and what is drawn now is charged anew."""
    budget = Budget(1.0, 1e-6)
    with Ledger.open(tmp_path / "ledger", budget) as ledger:
        first = make(12, 3, 500, 1.0, 1e-6, ledger=ledger, coins=SeededCoins(1))
        first.replay(PEOPLE[:100])
        kept = first.snapshot()
        first.replay(PEOPLE[100:450])
        before = spent(ledger)
    with Ledger.open(tmp_path / "ledger") as again:
        assert spent(again) == before
        second = type(first).restore(kept, ledger=again, coins=SeededCoins(2))
        assert spent(again) == before, "restoring alone shows nothing"
        with pytest.raises(OverBudget):
            second.replay(PEOPLE[100:500])
        assert again.spent() <= 1.0
        assert spent(again) > before
        assert second.rounds < 500


def test_without_its_ledger_a_snapshot_is_charged_for_what_it_had_drawn() -> None:
    first = paper.fi_dp(12, 3, 500, 1.0, 1e-6, coins=SeededCoins(1))
    first.replay(PEOPLE[:101])
    second = FiDp.restore(first.snapshot(), coins=SeededCoins(2))
    assert spent(second._meter.ledger) == pytest.approx(100 * 3 * (2 * first.rate) ** 2 / 8, rel=1e-12)
    second.replay(PEOPLE[101:500])
    assert second._meter.ledger.spent() <= 1.0


def test_caps_hold_and_redraws_never_exceed_them() -> None:
    for resample, cap in itertools.product(("all", "own"), (0, 1, 7)):
        learner = BanditDp(
            12, 3, exploring=0.5, cap=cap, resample=resample, horizon=1_000, rate=0.01, epsilon=1.0, delta=1e-6,  # type: ignore[arg-type]
            coins=SeededCoins(4),
        )  # fmt: skip
        learner.replay(PEOPLE[:1_000])
        explored, redraws = learner._exploring.explored, learner._exploring.redraws
        assert (explored.max() if resample == "own" else explored.sum()) == cap
        assert redraws.max() == cap
        assert learner._meter.paid[0] >= redraws.max()


def test_exploiting_rounds_repeat_the_slate_until_an_exploration() -> None:
    learner = paper.bandit_dp(12, 3, 1_000, 1.0, 1e-6, coins=SystemCoins())
    before: tuple[int, ...] | None = None
    explored = False
    for person in PEOPLE[:400]:
        decision = learner.choose()
        current = tuple(int(item) for item in learner._exploring.current)
        if before is not None and not explored:
            assert current == before
        if decision.probe is not None:
            slot, item = decision.probe
            assert decision.slate == tuple(dict.fromkeys((*current[:slot], item)))
        else:
            assert decision.slate == tuple(dict.fromkeys(current))
        before, explored = current, decision.probe is not None
        learner.observe(decision, person.value(decision.slate))


def test_exploring_rounds_slots_and_items_follow_their_law() -> None:
    learner = BanditDp(
        3, 2, exploring=0.3, cap=None, resample="all", horizon=40_000, rate=1e-4, epsilon=1.0, delta=1e-6,
        coins=SeededCoins(8),
    )  # fmt: skip
    people = taste_groups(40_000, 3, groups=2, items_per_group=2, seed=3)
    learner.replay(people[:20_000])
    probes = [learner.choose().probe for _ in range(20_000)]
    cells = [0 if probe is None else 1 + 3 * probe[0] + probe[1] for probe in probes]
    assert_follows(cells, np.array([0.7] + [0.05] * 6))
    assert_rejects(cells, np.array([0.66] + [0.34 / 6] * 6))


def test_presampled_rounds_are_explored_and_no_others() -> None:
    learner = PresampledBandit(
        12, 3, explore_at=[0, 3, 4, 99], horizon=100, rate=0.01, epsilon=1.0, delta=1e-6, coins=SeededCoins(1)
    )
    assert [t for t in range(100) if learner.choose().probe is not None] == [0, 3, 4, 99]
    assert "explore_at" not in learner.parameters
    assert learner.parameters["explorations"] == 4
    for wrong in ([3, 3], [4, 1], [-1, 2]):
        with pytest.raises(InvalidInput, match="explore_at"):
            PresampledBandit(12, 3, explore_at=wrong, horizon=100, rate=0.01, epsilon=1.0, delta=1e-6)


def test_private_hedge_pays_stops_and_hides() -> None:
    ledger = Ledger(Budget(1.0, 1e-6))
    expert = paper.private_hedge(5, 50, 1.0, 1e-6, ledger=ledger, coins=SeededCoins(3))
    for _ in range(50):
        assert 0 <= expert.draw() < 5
        expert.learn(np.array([1.0, np.nan, 5.0, -1.0, 0.2]))
        expert.learn(np.ones(5))  # a second answer changes nothing
    totals = expert._expert._state.urns.totals[:, 0] / 2**20
    np.testing.assert_allclose(totals, [50, 0, 50, 0, 10], atol=1e-4)
    assert 0.99 < ledger.spent() <= 1.0
    with pytest.raises(InvalidInput, match="All 50 rounds"):
        expert.draw()
    assert repr(expert) == "<PrivateHedge over 5 items, 50 of 50 rounds>"


def test_parameters_are_public_and_can_be_written() -> None:
    for make in (paper.fi_dp, paper.bandit_dp, paper.direct_bandit, paper.presampled_bandit):
        learner = make(12, 3, 100, 1.0, 1e-6, coins=SeededCoins(1))
        assert json.loads(json.dumps(learner.parameters))["rate"] == learner.rate
        assert learner.parameters.keys().isdisjoint({"n_items", "slots", "patience"})
