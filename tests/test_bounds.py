"""No kernel reads past an array, and none past its words: a build of all of them that looks at every index."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from diminuendo.learners import LEARNERS

ROOT = Path(__file__).parent.parent


def run_bounded(cache: Path, *options: str) -> list[str]:
    """In a process of its own, since numba decides once whether to look, and keeps what it compiled."""
    more = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "0", "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.kit.bounded", *options],
        cwd=ROOT,
        env=os.environ | more,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.split()


SOME = ("fi-dp",)
"""Exact draws read words in the most ways. All learners take a minute and a half to compile, and are in the slow
suite."""


def test_kernels_do_not_read_past_an_array(cache: pytest.Cache) -> None:
    """What was compiled is kept for the next run, as all kernels are: until a source changes that they build on."""
    assert run_bounded(cache.mkdir("kernels-that-look"), *SOME) == list(SOME)


@pytest.mark.slow
def test_no_kernel_does_whatever_the_family_of_users(tmp_path: Path) -> None:
    assert run_bounded(tmp_path, "--families", *LEARNERS) == list(LEARNERS)
