"""Places, synthetic users and the built-in stream are what they say."""

from __future__ import annotations

import numpy as np
import pytest

from diminuendo import Coverage, Users, from_places, grid, msweb
from diminuendo.errors import InvalidInput
from diminuendo.streams import adversary, drift, open_stream, taste_groups
from diminuendo.streams.places import flat, great_circle


def test_distances_are_kilometres() -> None:
    paris, london = np.array([[48.8566, 2.3522]]), np.array([[51.5074, -0.1278]])
    assert great_circle(paris, london)[0, 0] == pytest.approx(343.6, abs=0.5)
    here, there = np.array([[40.75, -73.99]]), np.array([[40.76, -73.98]])
    assert flat(here, there)[0, 0] == pytest.approx(great_circle(here, there)[0, 0], rel=0.01)


def test_places_serve_within_reach() -> None:
    sites = grid(40.70, 40.82, -74.02, -73.93, 15, 10)
    users = from_places(sites[[3, 77]], sites, reach_km=2.0)
    assert users.values([3])[0] == 1.0
    assert users.values([3])[1] == 0.0
    np.testing.assert_allclose(users[0].value([4]), 1 - great_circle(sites[[3]], sites[[4]])[0, 0] / 2)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([[91, 0]], "row 0: expected a latitude"),
        ([[0, np.nan]], "row 0"),
        ([1, 2, 3], "pairs"),
        ([[0, 181]], "row 0"),
    ],
)
def test_points_off_the_earth_are_refused(points: list[list[float]], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        from_places(points, [[0, 0]], reach_km=1)


def test_the_built_in_stream() -> None:
    users = msweb()
    assert (len(users), users.n_items, users.matrices[0].nnz) == (32_711, 294, 98_654)
    assert users.labels is not None
    assert users.labels[1] == "Support Desktop"


def test_drift_renames_items_half_way() -> None:
    users = taste_groups(1000, 30, groups=2, items_per_group=4, group_skew=0.0)
    moved = drift(users)
    np.testing.assert_array_equal(moved.values([0, 1])[:500], users.values([0, 1])[:500])
    assert not np.array_equal(moved.values([0, 1])[500:], users.values([0, 1])[500:])
    np.testing.assert_allclose(moved.values(range(30)), users.values(range(30)))


def test_renaming_needs_items_as_columns() -> None:
    users = Users(Coverage([[1, 0, 1], [0, 1, 0]]), [[0.5, 0.25, 0]], n_items=2)
    with pytest.raises(InvalidInput, match="topics"):
        users.permuted(np.array([1, 0]))


def test_whoever_follows_the_leader_earns_nothing() -> None:
    users = adversary(101, 4)
    totals, earned = np.zeros(4), 0.0
    for user in users:
        leader = int(np.argmax(totals)) if totals.any() else 3
        earned += user.value([leader])
        totals += user.gains([])
    assert earned == 0.0
    assert totals[:2].min() >= 50


def test_a_stream_can_be_read_under_another_objective() -> None:
    assert open_stream("taste-groups", "best-match").family_name == "best-match"
    with pytest.raises(KeyError, match="noisy-or, best-match, concave"):
        open_stream("msweb", "coverage")
