"""Compiled code on disk is reused, and never after any source file has changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import diminuendo

PROGRAM = """
from diminuendo import NoisyOr, person
from diminuendo.objectives.person import _value_of
print(person(NoisyOr(), {0: 0.5}, 2).value([0]), sum(_value_of.stats.cache_hits.values()))
"""


NO_FOLDER = """
import numba.core.caching
numba.core.caching.CacheImpl._locator_classes = []
"""


def run(folder: Path, program: str = PROGRAM) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return result.stdout.split()


def test_a_change_in_another_file_is_noticed(tmp_path: Path) -> None:
    shutil.copytree(
        Path(diminuendo.__file__).parent,
        tmp_path / "diminuendo",
        ignore=shutil.ignore_patterns("__pycache__", "data"),
    )
    assert run(tmp_path) == ["0.5", "0"]
    assert run(tmp_path) == ["0.5", "1"]  # reused
    family = tmp_path / "diminuendo" / "objectives" / "noisy_or.py"
    family.write_text(
        family.read_text().replace("return float(1.0 - state[at])", "return float(2.0 - state[at])")
    )
    assert run(tmp_path) == ["1.5", "0"]  # the kernel in person.py was compiled anew
    family.write_text(family.read_text().replace("NoisyOrTable", "OtherTable"))
    assert run(tmp_path) == ["1.5", "0"]  # although what is on disk names a type that is no more


def test_no_folder_to_write_to_is_no_reason_to_fail() -> None:
    assert run(Path(diminuendo.__file__).parents[1], NO_FOLDER + PROGRAM) == ["0.5", "0"]
