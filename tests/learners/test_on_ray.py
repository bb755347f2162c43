"""Queries as tasks of Ray itself: the same numbers, also where a worker is lost. Slow: Ray takes seconds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diminuendo.learners.base import users
from diminuendo.learners.base.engines import OnRay
from diminuendo.learners.base.users import Block
from diminuendo.learners.overlap.participants import walk_of
from tests.learners.test_engines import USERS, filled, participants, played, results, terms_of

ray: Any = pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """One for all tests; learners that find it running use it."""
    settings = {"automatic_object_spilling_enabled": False}
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, _system_config=settings)
    yield
    ray.shutdown()


def test_tasks_give_the_same_numbers_and_write_no_rows_to_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "BLOCK", 50)
    store = filled(USERS)
    expected = results(participants(store), 12)
    np.testing.assert_equal(results(participants(store, OnRay()), 12), expected)
    session = Path(ray._private.worker._global_node.get_session_dir_path())
    assert not [path for path in session.rglob("*") if "spill" in path.name and path.is_file()]


def test_a_learner_publishes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    slates, drawn, _ = played(None)
    monkeypatch.setattr(users, "BLOCK", 100)
    others, same, _ = played(OnRay())
    np.testing.assert_array_equal(slates, others)
    assert drawn == same


def dies_once(block: Block, terms: Any, folder: Path) -> Any:
    """The first worker that comes to this block is lost."""
    try:
        (folder / f"{int(block.spec.rounds[0])}").touch(exist_ok=False)
    except FileExistsError:
        return walk_of(block, terms)
    os._exit(1)


def test_a_lost_worker_is_a_task_that_runs_again(tmp_path: Path) -> None:
    store, terms, whose = filled(USERS, functions=False), terms_of(12), np.zeros(2, dtype=np.int64)
    expected = participants(store).sums((), whose, 1)
    asked = OnRay().over(store.blocks, partial(dies_once, terms=terms, folder=tmp_path))
    np.testing.assert_array_equal(asked.total("add_left", (1, 12), (), whose), expected)
    assert list(tmp_path.iterdir()), "somebody was lost"
