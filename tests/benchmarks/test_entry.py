"""What is timed in new processes is what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

import diminuendo
from benchmarks.entry import agreed, process
from benchmarks.report import Disagreement


def test_a_process_keeps_its_modules_where_it_is_told_to(tmp_path: Path) -> None:
    said = process(["-c", "import diminuendo; print(diminuendo.__version__)"], tmp_path, tmp_path / "kernels")
    assert said.printed == diminuendo.__version__
    assert 0 < said.own < said.seconds + 1  # the processor's clock is coarse
    assert list((tmp_path / "modules").rglob("_lazy.*.pyc")), (
        "compiled modules are kept, as they are for people"
    )
    assert not (tmp_path / "kernels").exists(), "no kernel was needed"


def test_other_slates_are_a_disagreement() -> None:
    agreed(["a", "a"], "a")
    with pytest.raises(Disagreement, match="same slates"):
        agreed(["a", "b"], "a")
    with pytest.raises(Disagreement, match="same slates"):
        agreed([], "a")
