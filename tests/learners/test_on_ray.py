"""People on actors of Ray itself: the same numbers, and an actor that is killed comes back. Slow: Ray takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diminuendo.learners.base.kept.engines import Here, OnRay
from diminuendo.learners.base.kept.one_place import Arrived
from diminuendo.sums.chains.people.entries import Entries
from diminuendo.sums.chains.people.frozen import PeopleLost
from tests.learners.test_engines import (
    CLIP,
    PEOPLE,
    WEIGHTS,
    crowd,
    fill,
    made,
    noted,
    one_place,
    played,
    told,
)

ray: Any = pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def test_a_cluster_of_our_own_has_no_dashboard_and_writes_no_objects_to_disk() -> None:
    kept: Any = OnRay(1).room(12, CLIP, Entries(12, 1, CLIP.ceiling))
    assert ray._private.worker._global_node.webui_url in (None, "")
    nothing = np.zeros(12, dtype=np.bool_)
    kept.keep_rows(
        Arrived(PEOPLE.family, PEOPLE.table, range(900), 0, np.zeros(900, dtype=np.int64), nothing)
    )
    assert len(kept) == 900
    session = Path(ray._private.worker._global_node.get_session_dir_path())
    assert not [path for path in session.rglob("*") if "spill" in path.name and path.is_file()]
    assert ray.is_initialized()
    kept._close()
    assert not ray.is_initialized(), "who started it ends it"


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """One for all tests; learners that find it running use it."""
    settings = {"automatic_object_spilling_enabled": False}
    ray.init(num_cpus=16, include_dashboard=False, log_to_driver=False, _system_config=settings)
    yield
    ray.shutdown()


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("actors", [1, 2, 7])
def test_any_partition_over_actors_gives_the_same_numbers(actors: int) -> None:
    (people,) = crowd("noisy-or")
    factors, n_items = np.linspace(0.3, 1.0, people.n_items), people.n_items
    whole, there = one_place(n_items), OnRay(actors).room(n_items, CLIP, Entries(n_items, 2, CLIP.ceiling))
    for kept in (whole, there):
        fill(kept, people)
    expected, found = (told(kept.begin(WEIGHTS, factors), n_items) for kept in (whole, there))
    np.testing.assert_equal(found, expected)
    assert len(there) == len(whole)


@pytest.mark.usefixtures("cluster")
def test_a_learner_on_actors_publishes_the_same_and_survives_a_kill() -> None:
    _, expected, _ = played(None)
    learner = made(OnRay(2))
    drawn = noted(learner)
    learner.replay(PEOPLE[:600])
    ray.kill(learner.policy._memory._kept.actors()[1])
    learner.replay(PEOPLE[600:])
    assert drawn == expected


@pytest.mark.usefixtures("cluster")
def test_a_chain_is_cut_where_an_actor_is_killed() -> None:
    kept: Any = OnRay(2).room(12, CLIP, Entries(12, 1, CLIP.ceiling))
    here = Here().room(12, CLIP, Entries(12, 1, CLIP.ceiling))
    nobody = np.zeros(900, dtype=np.int64), np.zeros(12, dtype=np.bool_)
    for each in (kept, here):
        each.keep_rows(Arrived(PEOPLE.family, PEOPLE.table, range(900), 0, *nobody))
    whose = np.zeros(1, dtype=np.int64)
    asked, other = (each.begin(np.array([4096]), np.ones(12)) for each in (kept, here))
    np.testing.assert_array_equal(asked.singles(whose, 1), other.singles(whose, 1))
    ray.kill(kept.actors()[0])
    with pytest.raises(PeopleLost):
        asked.row(np.array([3]), whose, 1)
    again = kept.begin(np.array([4096]), np.ones(12))
    np.testing.assert_array_equal(again.singles(whose, 1), other.singles(whose, 1))
