"""The same sweep on a Ray cluster, of whose workers one is killed in the middle."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from diminuendo.errors import InvalidInput
from diminuendo.simulate import sweep
from diminuendo.streams import taste_groups
from tests.simulate.test_store import children, rows, until

USERS = taste_groups(20_000, 15, groups=4, items_per_group=5, seed=2)
ROOT = Path(__file__).parents[2]


def small(out: Path, ray: str | None, jobs: int) -> None:
    sweep(
        USERS,
        slots=3,
        learners=["fi-dp", "hedge"],
        epsilon=[0.5, 5.0],
        seeds=20,
        jobs=jobs,
        ray=ray,
        out=out,
    )


def workers(driver: int) -> list[int]:
    """Those of the cluster that `driver` started which are at a task."""
    return [worker for node in children(driver, "raylet") for worker in children(node, "ray::_do_there")]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs pip install 'diminuendo[ray]'")
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")
def test_a_cluster_makes_the_same_rows_although_a_worker_is_killed(tmp_path: Path) -> None:
    out, here = tmp_path / "cluster", tmp_path / "here"
    driver = subprocess.Popen(
        [sys.executable, "-W", "error::UserWarning", "-m", "tests.simulate.test_ray", str(out)],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"RAY_TMPDIR": "/tmp"},
    )
    until(lambda: len(list((out / "rows").glob("*.json"))) > 2 or driver.poll() is not None)
    started = children(driver.pid)
    until(lambda: bool(workers(driver.pid)) or driver.poll() is not None)
    targets = workers(driver.pid)
    os.kill(targets[0], signal.SIGKILL)
    finished = len(list((out / "rows").glob("*.json")))
    _, said = driver.communicate(timeout=120)
    assert driver.returncode == 0, said
    assert 2 < finished < 60, "killed in the middle, or this shows nothing"
    small(here, None, jobs=1)
    assert rows(out) == rows(here)
    assert len(rows(here)) == 60
    until(lambda: not any(Path(f"/proc/{process}").exists() for process in [*started, *targets]))


def test_ray_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InvalidInput, match=r"pip install 'diminuendo\[ray\]'"):
        sweep(USERS, slots=3, learners="random", seeds=2, ray="local")


def test_nobody_loads_ray_who_did_not_ask_for_it() -> None:
    asked = "import sys, diminuendo.cli.app, diminuendo.simulate; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0


if __name__ == "__main__":
    small(Path(sys.argv[1]), "local", jobs=2)
