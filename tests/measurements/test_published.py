"""The experiments of other papers: their rates, sites and users are as they say, and what is kept is what runs give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from diminuendo.privacy import Budget
from measurements import published
from measurements.results import read_results
from measurements.streams import MissingData
from tests.kit.real_data import needs


def test_rates_are_those_of_composition() -> None:
    for epsilon, delta, slots in ((0.1, 1e-3, 10), (0.1, 1e-3, 25), (0.2, 20_000**-1.5, 6)):
        assert published.composed_rate(epsilon, delta, slots) == pytest.approx(epsilon / slots / 2)
    each = 2 * published.composed_rate(0.1, 1e-3, 400)  # so many picks are cheaper by advanced composition
    assert each > 0.1 / 400
    assert 400 * each**2 + 2 * each * np.sqrt(2 * 400 * np.log(1e3)) == pytest.approx(0.1)


def test_private_greedy_draws_at_their_rate_and_ours_is_larger() -> None:
    small, large = published.rates(0.1, 1e-3, 10), published.rates(0.2, 20_000**-1.5, 6)
    assert small["their rate"] == pytest.approx(0.005)
    assert small["G1"] == pytest.approx(0.1 / 11)
    assert small["G3"] > small["G1"]
    assert large["their rate"] == pytest.approx(0.2 / 12)
    assert max(large.values()) == large["G1"] == pytest.approx(12 / 7 * large["their rate"])
    assert Budget(0.1, 0.0, accountant="pure") == published.budgets(0.1, 1e-3, 10)["G1"][0]


def test_sites_lie_as_their_source_has_them() -> None:
    narrow, wide = published.sites(19), published.sites(3)
    for result in (narrow, wide):
        assert len(result) == 100
        assert len(np.unique(result, axis=0)) == 21
    np.testing.assert_allclose(narrow[4], (40.80, -73.93))
    np.testing.assert_allclose(narrow[15], (40.7 + 0.01315 * 3 / 19, -73.99197 - 0.03803 * 3 / 19))
    np.testing.assert_allclose(wide[15], (40.71315, -74.03))
    assert pytest.approx(0.10685 + 0.08) == published.NORM, "south-west to north-east corner"


def test_a_lattice_is_within_its_hull_and_spread_over_it() -> None:
    points = published.lattice(published.MANHATTAN, 200)
    assert points.shape == np.unique(points, axis=0).shape == (200, 2)
    assert len(published.within(published.MANHATTAN, points)) == 200
    assert ConvexHull(points).volume > 0.9 * ConvexHull(published.MANHATTAN).volume


def test_users_like_what_is_near() -> None:
    rng = np.random.default_rng(3)
    points, sites = rng.random((7, 2)), rng.random((4, 2))
    users = published.nearness(points, sites, 0.8)
    for user, point in enumerate(points):
        for slate in ((0,), (3, 1)):
            nearest = min(abs(point - sites[site]).sum() for site in slate)
            assert users.values(slate)[user] == pytest.approx(max(0.0, 1 - nearest / 0.8))


def test_missing_pickups_are_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(published, "PICKUPS", tmp_path / "pickups.csv")
    with pytest.raises(MissingData, match="DIMINUENDO_DATA"):
        published.measure(1)
    (tmp_path / "pickups.csv").write_text("ts,lat,lon\n")
    with pytest.raises(MissingData, match="another file"):
        published.measure(1)


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=needs("uber")) for seed in (0, 1)])
def test_a_draw_of_users_earns_what_is_kept(seed: int) -> None:
    kept = read_results()["published"].cells
    fresh = published.one_draw(seed)
    assert fresh.keys() == kept.keys()
    for cell, value in fresh.items():
        assert value == pytest.approx(kept[cell][seed], abs=1e-4), "run `make published`"


def test_what_the_page_says_in_words() -> None:
    cells, spec = read_results()["published"].cells, read_results()["published"].spec
    mean = {cell: float(np.mean(runs)) for cell, runs in cells.items()}
    for place, slots in enumerate(published.SLOTS):
        printed = {policy: line[place] for policy, line in published.PRINTED.items()}
        assert mean[f"greedy {slots}"] > mean[f"G3 {slots}"] > mean[f"their rate {slots}"]
        assert mean[f"G3 {slots}"] > max(printed["their rate"], printed["continuous greedy"])
        # What they print is met, up to three standard errors of the difference. Theirs follow from the deviations that
        # they report; greedy has only 40 runs that differ, one for each draw of users.
        for policy, theirs in (("greedy", 0.5 / np.sqrt(40)), ("their rate", (12.1, 9.7, 4.3)[place] / 20)):
            spread = 3 * np.hypot(np.std(cells[f"{policy} {slots}"], ddof=1) / 10, theirs)
            assert abs(mean[f"{policy} {slots}"] - printed[policy]) < spread
        assert abs(mean[f"G1 {slots}"] - mean[f"their rate {slots}"]) < 0.5, (
            "changes nothing that can be seen"
        )
        assert 0 < mean[f"their rate {slots}"] - mean[f"random {slots}"] < 1.5, "hardly better than random"
        assert mean[f"grid over the whole box greedy {slots}"] > printed["greedy"] + 5
        assert mean[f"box of experiment 2 random {slots}"] > mean[f"random {slots}"]
    assert spec["greedy"] > spec["G1"] > spec["their rate"] > spec["random"]
    ours = np.std(cells["random 10"], ddof=1) / 10
    assert round(float(ours), 2) == 0.64
    below = (mean["random 10"] - published.PRINTED["random"][0]) / np.hypot(0.70, ours)
    assert 2 < below < 3, "some two and a half standard errors"
    assert published.RERUN["random"][0] > mean["random 10"]
