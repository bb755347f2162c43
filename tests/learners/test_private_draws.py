"""Private draws: constants, prices, ledgers, horizons; what is promised and what is claimed."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from diminuendo import (
    LEARNERS,
    OrderedExperts,
    SeededSource,
    Setting,
    paper,
)
from diminuendo.errors import InvalidInput, LedgerInUse, OutOfRange, OverBudget
from diminuendo.experts.noisy_leader import pftal_bound, pure_noise
from diminuendo.learners.hedge import constants
from diminuendo.learners.hedge.bandit_dp import BanditDp, delta_over_draws
from diminuendo.learners.hedge.fi_dp import FiDp
from diminuendo.learners.hedge.fi_pure import FiPure
from diminuendo.privacy import curves
from diminuendo.privacy.accountants import ACCOUNTANTS
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Selections
from diminuendo.privacy.ledger import Ledger
from diminuendo.streams import taste_groups
from tests.kit.inside import inside
from tests.kit.statistics import assert_follows, assert_rejects

USERS = taste_groups(2_000, 12, groups=4, items_per_group=5, seed=1)


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
    result = constants.least_bound(setting, resample, most=1.0)
    bound = constants.bandit_bound(20, 5, 1_000_000, result.rate, result.share)
    assert bound + (5 if resample == "own" else 1) == pytest.approx(known, rel=1e-5)
    assert paper.bounds.bandit(20, 5, 1_000_000, result.rate, result.share) == pytest.approx(bound, rel=1e-12)


def test_the_papers_constants_need_a_delta() -> None:
    with pytest.raises(InvalidInput, match="calibration='tight'"):
        paper.fi_dp(12, 3, 100, 1.0, 0.0, calibration="paper")


# Guarantees.


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("make", [paper.fi_dp, paper.bandit_dp, paper.direct_bandit, paper.presampled_bandit])
def test_tight_calibration_spends_the_budget_and_no_more(make: Any, delta: float) -> None:
    learner = make(12, 3, 500, 1.0, delta, rng=SeededSource(1))
    assert learner.guarantee.delta == delta
    assert 0.999 < learner.guarantee.epsilon <= 1.0 or learner.parameters["rate"] == constants.FASTEST
    accountant = ACCOUNTANTS["zcdp" if delta else "pure"]
    assert accountant.epsilon(learner.events, delta) == learner.guarantee.epsilon
    assert math.isinf(inside(learner).claim.epsilon) == (delta == 0)


def test_the_papers_constants_claim_what_was_asked_and_keep_far_more() -> None:
    learner = paper.fi_dp(50, 5, 100_000, 1.0, 1e-6, calibration="paper")
    assert inside(learner).claim.epsilon == pytest.approx(1.0, rel=1e-12)
    assert learner.guarantee.epsilon == pytest.approx(0.078270731087285, rel=1e-6)
    tight = paper.fi_dp(50, 5, 100_000, 1.0, 1e-6)
    assert inside(tight).claim.epsilon == pytest.approx(10.964573420625218, rel=1e-6)
    one = paper.private_hedge(50, 100_000, 1.0, 1e-6, calibration="paper")
    assert one.rate == pytest.approx(1 / math.sqrt(32 * 100_000 * math.log(1e6)), rel=1e-12)
    assert one.claim.epsilon == pytest.approx(1.0, rel=1e-12)


def test_delta_over_rng_is_the_sum_over_all_numbers_of_explorations() -> None:
    for later, explores, again, rate, epsilon in itertools.product(
        (0, 3, 40), (0.2, 1.0), (0.1, 0.7), (0.3, 1.0), (0.2, 1.0)
    ):
        exact = explores * sum(
            float(binom.pmf(m, later, again)) * curves.zcdp_delta((1 + m) * rate**2 / 8, epsilon)
            for m in range(later + 1)
        )
        result = delta_over_draws(later, explores, again, rate, epsilon)
        assert exact <= result <= exact * (1 + 1e-9) + 1e-12
    wide = delta_over_draws(10**6, 0.01, 0.01, 5e-3, 1.0)
    assert wide <= delta_over_draws(10**6, 0.01, 0.0101, 5e-3, 1.0)
    few = sum(
        float(binom.pmf(m, 10**6, 0.01)) * curves.zcdp_delta((1 + m) * 25e-6 / 8, 1.0)
        for m in range(9_000, 11_000, 1)
    )
    assert 0.01 * few <= wide <= 0.01 * few * 1.05


def test_without_a_cap_delta_knows_that_there_may_be_many_explorations() -> None:
    capped = paper.bandit_dp(4, 2, 20_000, 1.0, 1e-6, rng=SeededSource(1))
    assert capped.parameters["cap"] is not None
    own: dict[str, Any] = {
        "n_items": 4, "slots": 2, "exploring": capped.parameters["exploring"], "cap": None, "resample": "own",
        "horizon": 20_000, "rate": capped.parameters["rate"], "epsilon": 1.0, "delta": 1e-6, "rng": SeededSource(1),
    }  # fmt: skip
    open_ = BanditDp(**own)
    assert open_.guarantee.delta == 1e-6
    assert 0.5 < open_.guarantee.epsilon < 1.0, (
        "most explorations come to fewer than the cap, and most rounds do not explore"
    )
    assert open_.events is not None
    most = ACCOUNTANTS["zcdp"].epsilon(open_.events, 1e-6)
    assert most > 1.0, "every round may explore"
    ledger = Ledger(Budget(2 * most, 1e-6))
    on_ledger = BanditDp(**dict(own, ledger=ledger))
    assert on_ledger.guarantee.epsilon == most, "a ledger is charged for the coins as they fall"
    assert BanditDp(**dict(own, max_rounds_per_user=2)).guarantee.epsilon > most, (
        "rounds may be chosen by earlier coins"
    )


def test_the_papers_calibration_is_as_printed() -> None:
    """Algorithm 3: everybody redraws after an exploration, and nothing stops explorations. Tight ones say otherwise."""
    made: dict[str, Any] = {"rng": SeededSource(1), "rounds": 200_000, "epsilon": 1.0, "delta": 1e-6}
    printed = paper.bandit_dp(4, 2, calibration="paper", **made)
    by_name = LEARNERS["bandit-dp:calibration=paper"].for_setting(
        Setting(4, 2, 200_000, "bandit"), rng=SeededSource(1)
    )
    for learner in (printed, by_name):
        assert learner.parameters["exploring"] == constants.paper_exploring(4, 2, 200_000) < 1
        assert (learner.parameters["cap"], learner.parameters["resample"]) == (None, "all")
    tight = paper.bandit_dp(4, 2, **made)
    assert (tight.parameters["cap"] is not None, tight.parameters["resample"]) == (True, "own")
    other = paper.bandit_dp(4, 2, calibration="paper", resample="own", capped=True, **made)
    assert (other.parameters["cap"] is not None, other.parameters["resample"]) == (True, "own")


def test_an_uncapped_run_that_a_ledger_cannot_pay_for_is_refused_with_advice() -> None:
    ledger = Ledger(Budget(0.01, 1e-6))
    with pytest.raises(OverBudget, match="capped=True"):
        paper.bandit_dp(4, 2, 200_000, 1.0, 1e-6, calibration="paper", ledger=ledger)
    assert ledger.spent() == 0


# Ledgers, horizons, snapshots.


def spent(ledger: Ledger) -> float:
    return float(ledger._tally.total)


def test_draws_are_paid_for_as_they_come_and_no_further() -> None:
    ledger = Ledger(Budget(1.0, 1e-6))
    learner = paper.fi_dp(12, 3, 2_000, 1.0, 1e-6, ledger=ledger, rng=SeededSource(1))
    learner.choose()
    assert not ledger.charges, "the first slate knows nothing and is free"
    learner.choose()
    assert len(ledger.charges) == 1
    learner.replay(USERS[:1_998])
    whole = Selections(3 * 1_999, 2 * learner.parameters["rate"])
    assert spent(ledger) == pytest.approx(float(budgeted(whole)), rel=1e-12)
    assert ledger.spent() <= 1.0
    assert not ledger.guarantee().secure_rng, "seeded draws are worth nothing"
    with pytest.raises(InvalidInput, match="2,000 rounds"):
        learner.choose()
    with pytest.raises(InvalidInput, match="2,000 rounds"):
        learner.replay(USERS[:1])
    assert learner.rounds == 2_000


@pytest.mark.parametrize("make", [paper.fi_dp, paper.bandit_dp, paper.direct_bandit])
def test_going_on_from_a_snapshot_is_paid_for_again(make: Any, tmp_path: Path) -> None:
    """A crash after the snapshot: what was drawn since is spent, and what is drawn now is charged anew."""
    with Ledger.open(tmp_path / "ledger", Budget(1.0, 1e-6)) as ledger:
        first = make(12, 3, 500, 1.0, 1e-6, ledger=ledger)
        first.replay(USERS[:100])
        kept = first.snapshot()
        first.replay(USERS[100:450])
        before = spent(ledger)
    with Ledger.open(tmp_path / "ledger") as again:
        assert spent(again) == before
        second = LEARNERS[first.name].restore(kept, ledger=again)
        assert spent(again) == before, "restoring alone shows nothing"
        with pytest.raises(OverBudget):
            second.replay(USERS[100:500])
        assert again.spent() <= 1.0
        assert spent(again) > before
        assert second.rounds < 500


@pytest.mark.parametrize("resample", ["own", "all", "every"])
def test_whoever_is_behind_draws_nothing_for_free_after_a_restore(resample: Any) -> None:
    """Restored again and again: no expert makes more redraws than were charged for since, however far behind it is."""
    ledger = Ledger(Budget(40.0, 1e-6))
    first = BanditDp(
        12, 3, exploring=0.5, cap=2_000, resample=resample, horizon=2_000, rate=0.01, epsilon=1.0, delta=1e-6,
        ledger=ledger, rng=SeededSource(1),
    )  # fmt: skip
    first.replay(USERS[:120])
    kept, before = first.snapshot(), inside(first)._exploring.redraws.copy()
    assert resample != "own" or len(set(before)) > 1
    for seed in range(3):
        charged = len(ledger.charges)
        again = BanditDp.restore(kept, ledger=ledger, rng=SeededSource(seed))
        for _ in range(300):
            again.choose()
            paid = sum(getattr(charge.event, "count", 0) for charge in ledger.charges[charged:])
            assert (inside(again)._exploring.redraws - before).max() <= paid


def test_without_its_ledger_a_paid_snapshot_does_not_go_on() -> None:
    for make, kind in ((paper.fi_dp, FiDp), (paper.bandit_dp, BanditDp)):
        first = make(12, 3, 500, 1.0, 1e-6, ledger=Ledger(Budget(1.0, 1e-6)), rng=SeededSource(1))
        with pytest.raises(InvalidInput, match="paid for on a ledger"):
            kind.restore(first.snapshot(), rng=SeededSource(2))
    pure = paper.fi_pure(12, 3, 500, 1.0, ledger=Ledger(Budget(1.0, 0.0, accountant="pure")))
    with pytest.raises(InvalidInput, match="paid for on a ledger"):
        FiPure.restore(pure.snapshot())


def test_a_ledger_in_a_file_takes_no_seeded_draws(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger", Budget(1.0, 1e-6)) as ledger:
        learner = paper.fi_dp(12, 3, 50, 1.0, 1e-6, ledger=ledger, rng=SeededSource(1))
        learner.choose()
        with pytest.raises(InvalidInput, match="SystemSource"):
            learner.choose()
        assert not ledger.charges


PRIVATE: dict[str, Any] = {
    "fi-dp": lambda: paper.fi_dp(12, 3, 400, 1.0, 1e-6),
    "bandit-dp": lambda: paper.bandit_dp(12, 3, 400, 1.0, 1e-6),
    "fi-pure": lambda: paper.fi_pure(12, 3, 400, 1.0),
}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("make", PRIVATE.values(), ids=PRIVATE)
def test_private_learners_are_not_forked(make: Any) -> None:
    learner = make()
    learner.choose()
    read, write = os.pipe()
    if (child := os.fork()) == 0:  # pragma: no cover
        try:
            learner.choose()
            os.write(write, b"drawn")
        except LedgerInUse:
            os.write(write, b"refused")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 10) == b"refused"
    learner.choose()


@pytest.mark.parametrize("make", PRIVATE.values(), ids=PRIVATE)
def test_threads_take_turns(make: Any) -> None:
    learner = make()
    seen: list[int] = []

    def work() -> None:
        try:
            while True:
                seen.append(learner.choose().round)
        except InvalidInput:
            return

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(400))


@pytest.mark.parametrize("make", PRIVATE.values(), ids=PRIVATE)
def test_choosing_while_a_replay_is_under_way_does_not_pass_the_horizon(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = make()
    monkeypatch.setattr("diminuendo.learners.base.frame.STRIDE", 64)  # so that it reports often

    def meddle(done: int) -> None:
        with contextlib.suppress(InvalidInput):
            learner.choose()

    with pytest.raises(InvalidInput, match="400 rounds"):
        learner.replay(USERS[:400], meddle)
    assert learner.rounds <= 400


def budgeted(event: Selections) -> Fraction:
    return event.count * Fraction(event.span) ** 2 / 8


def test_numbers_of_any_kind_and_wrong_words_at_the_door() -> None:
    for kind in (np.float32, np.float64, np.float16):
        learner = paper.fi_dp(np.int64(12), np.int32(3), np.int64(500), kind(0.5), 1e-6)  # type: ignore[arg-type]
        assert type(inside(learner).budget.epsilon) is float
        assert learner.guarantee.epsilon <= 0.5
    assert paper.fi_pure(np.int64(12), 3, np.int64(500), 0.5).horizon == 500  # type: ignore[arg-type]
    for make in (paper.fi_dp, paper.bandit_dp, paper.direct_bandit, paper.presampled_bandit):
        with pytest.raises(InvalidInput, match="calibration"):
            make(12, 3, 500, 1.0, 1e-6, calibration="papr")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="SeededSource"):
        paper.fi_dp(12, 3, 500, 1.0, 1e-6, rng=7)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="choose"):
        paper.fi_dp(12, 3, 500, 1.0, 1e-6).observe(None, USERS[0])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="in memory"):
        paper.presampled_bandit(50, 5, 10**9, 1.0, 1e-6)


def test_beyond_its_proof_the_papers_rate_says_what_it_costs() -> None:
    with pytest.warns(OutOfRange, match="costs epsilon 148"):
        learner = paper.fi_dp(2, 1, 50, 10.0, 0.99, calibration="paper", rng=SeededSource(1))
    assert inside(learner).claim.epsilon == pytest.approx(10.0)
    assert learner.guarantee.epsilon > 100
    users = taste_groups(50, 2, groups=1, items_per_group=1)
    learner.replay(users)  # and runs to the end


def test_the_claim_knows_the_tail_of_the_proof() -> None:
    small = BanditDp(
        4, 2, exploring=0.001, cap=5, resample="all", horizon=10_000, rate=0.1, epsilon=1.0, delta=1e-6
    )
    assert inside(small).claim.delta == pytest.approx(1e-6 + math.exp(-8 * 0.01), rel=1e-9)
    assert inside(paper.direct_bandit(4, 2, 100, 1.0, 1e-6)).claim.delta == 1e-6
    assert constants.exploring_cap(5 * 10**9, 0.01) == pytest.approx(
        5e7 + 6.2 * math.sqrt(5e7 * 0.99), rel=1e-4
    )


def test_caps_hold_and_redraws_never_exceed_them() -> None:
    for resample, cap in itertools.product(("all", "own"), (0, 1, 7)):
        learner = BanditDp(
            12, 3, exploring=0.5, cap=cap, resample=resample, horizon=1_000, rate=0.01, epsilon=1.0, delta=1e-6,  # type: ignore[arg-type]
            rng=SeededSource(4),
        )  # fmt: skip
        learner.replay(USERS[:1_000])
        explored, redraws = inside(learner)._exploring.explored, inside(learner)._exploring.redraws
        assert (explored.max() if resample == "own" else explored.sum()) == cap
        assert redraws.max() == cap
        assert inside(learner)._draws.paid[0] >= redraws.max()


def test_exploring_rounds_slots_and_items_follow_their_law() -> None:
    learner = BanditDp(
        3, 2, exploring=0.3, cap=None, resample="all", horizon=40_000, rate=1e-4, epsilon=1.0, delta=1e-6,
        rng=SeededSource(8),
    )  # fmt: skip
    users = taste_groups(40_000, 3, groups=2, items_per_group=2, seed=3)
    learner.replay(users[:20_000])
    probes = [learner.choose().probe for _ in range(20_000)]
    cells = [0 if probe is None else 1 + 3 * probe[0] + probe[1] for probe in probes]
    assert_follows(cells, np.array([0.7] + [0.05] * 6))
    assert_rejects(cells, np.array([0.66] + [0.34 / 6] * 6))


def test_presampled_rounds_are_explored_and_no_others() -> None:
    learner = BanditDp(
        12, 3, exploring=0.0, cap=None, explore_at=[0, 3, 4, 99], horizon=100, rate=0.01, epsilon=1.0, delta=1e-6,
        rng=SeededSource(1),
    )  # fmt: skip
    assert [t for t in range(100) if learner.choose().probe is not None] == [0, 3, 4, 99]
    assert "explore_at" not in learner.parameters
    assert learner.parameters["explorations"] == 4
    for wrong in ([3, 3], [4, 1], [-1, 2]):
        with pytest.raises(InvalidInput, match="explore_at"):
            BanditDp(
                12, 3, exploring=0.0, cap=None, explore_at=wrong, horizon=100, rate=0.01, epsilon=1.0, delta=1e-6
            )  # fmt: skip


def test_private_hedge_pays_stops_and_hides() -> None:
    ledger = Ledger(Budget(1.0, 1e-6))
    expert = paper.private_hedge(5, 50, 1.0, 1e-6, ledger=ledger, rng=SeededSource(3))
    for _ in range(50):
        assert 0 <= expert.draw() < 5
        expert.learn(np.array([1.0, np.nan, 5.0, -1.0, 0.2]))
        expert.learn(np.ones(5))  # a second answer changes nothing
    totals = expert._expert._state.classes.totals[:, 0] / 2**20
    np.testing.assert_allclose(totals, [50, 0, 50, 0, 10], atol=1e-4)
    assert 0.99 < ledger.spent() <= 1.0
    with pytest.raises(InvalidInput, match="All 50 rounds"):
        expert.draw()
    assert repr(expert) == "<PrivateHedge over 5 items, 50 of 50 rounds>"


def test_warnings_are_about_the_line_that_asked() -> None:
    far, many = Setting(2, 1, 50, "full", 10.0, 0.99), Setting(20, 5, 100, "bandit")
    ways: list[Callable[[], Any]] = [
        lambda: LEARNERS["fi-dp:calibration=paper"].for_setting(far),
        lambda: paper.fi_dp(2, 1, 50, 10.0, 0.99, calibration="paper"),
        lambda: LEARNERS["bandit-dp:calibration=paper"].for_setting(many),
        lambda: LEARNERS["bandit-dp:calibration=paper,draw=presampled"].for_setting(many),
        lambda: paper.presampled_bandit(20, 5, 100, 1.0, 1e-6, calibration="paper"),
    ]
    for make in ways:
        with pytest.warns(OutOfRange) as noted:
            make()
        assert [Path(warning.filename) for warning in noted] == [Path(__file__)] * len(noted)


# What is proved of the regret.


@pytest.mark.parametrize(
    "name", ["fi-dp", "bandit-dp", "bandit-dp:draw=direct", "bandit-dp:draw=presampled", "fi-pure"]
)
def test_bounds_are_of_the_whole_run(name: str) -> None:
    entry = LEARNERS[name]
    learner = entry.for_setting(Setting(12, 3, 5_000, min(entry.reads)), rng=SeededSource(1))
    whole = learner.regret_bound()
    assert whole is not None
    assert whole == learner.regret_bound(5_000)
    assert learner.regret_bound(100) != whole


def test_bounds_of_learners_that_are_made_for_ever_need_a_number_of_rounds() -> None:
    for name in ("hedge", "hedge-bandit", "streeter-golovin", "streeter-golovin-bandit"):
        entry = LEARNERS[name]
        learner = entry.for_setting(Setting(12, 3, 5_000, min(entry.reads)))
        assert learner.regret_bound() is None
        assert (learner.regret_bound(5_000) or 0) > 0
        with pytest.raises(InvalidInput, match="promises nothing"):
            entry.for_setting(Setting(12, 3, 5_000, min(entry.reads)), ledger=Ledger(Budget(1.0, 1e-6)))
    assert OrderedExperts(12, 3, rate=0.1).regret_bound(5_000) is None


def test_pure_experts_lose_more_where_users_come_back() -> None:
    """One round of three may cost a third, so there is three times the noise, with the same curvature."""
    once, thrice = (
        FiPure(12, 3, horizon=480, epsilon=1.0, curvature=2.0, max_rounds_per_user=max_rounds_per_user)
        for max_rounds_per_user in (1, 3)
    )
    noise = pure_noise(12, 3, 480, 1.0)
    for learner, longer in ((once, 1), (thrice, 3)):
        known = 3 * pftal_bound(1.0, math.sqrt(12), 480, 2.0, longer * noise)
        assert learner.regret_bound() == pytest.approx(known, rel=1e-12)
