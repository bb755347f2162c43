"""An audit does not pass a learner that said nothing while it was watched."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest

from diminuendo.audit import pathwise as audited
from diminuendo.audit.effort import EFFORTS
from diminuendo.audit.finding import Finding
from diminuendo.audit.pathwise import pathwise
from diminuendo.audit.run import Audit
from diminuendo.audit.subjects import Subject, changed, shipped
from diminuendo.cli.audit import show_audit
from diminuendo.learners import Learner, Setting
from diminuendo.learners.epoch_greedy import EpochGreedy
from diminuendo.learners.random_slates import RandomSlates
from diminuendo.randomness.sources import RandomSource

QUICK = EFFORTS["quick"]


def audit_of(*findings: Finding) -> Audit:
    return Audit(1.0, 0.0, "quick", 1, False, tuple(f.subject for f in findings), findings, ())


def never(policy: Any) -> None:
    """It never releases anything."""
    vars(policy)["due"] = lambda: False


def test_who_never_releases_anything_does_not_pass(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audited, "LONGER", (1, 4))
    (finding,) = pathwise(changed("never", EpochGreedy, never), 1.0, 0.0, QUICK, 1)
    assert finding.silent
    assert not finding.violation
    assert "nothing was released: nothing was tried" in str(finding)
    result = audit_of(finding)
    assert result.silent == ["never"]
    assert not result.passed
    assert result.as_json()["silent"] == ["never"]
    show_audit(result)
    assert "NOTHING TRIED" in capsys.readouterr().out


def delay(noisy: bool) -> Subject:
    """Epochs that are longer than the shortest worlds; without noise, items that users want most are drawn."""

    def make(setting: Setting, rng: RandomSource) -> Learner:
        return EpochGreedy(
            setting.n_items, setting.slots, horizon=setting.rounds, epsilon=1.0, epoch=60, rng=rng
        )

    def best(scores: np.ndarray, rate: float, secret: object) -> int:
        return int(np.argmax(scores))

    around = mock.patch("diminuendo.learners.epoch_greedy.select", best) if not noisy else mock.patch.dict({})
    return Subject("delay", "full", make, lambda: around)  # type: ignore[arg-type,return-value]


def test_who_releases_late_is_met_in_longer_worlds() -> None:
    """In the shortest worlds nothing is released; in longer ones its noise is seen, or that it has none."""
    (finding,) = pathwise(delay(noisy=True), 1.0, 0.0, QUICK, 1)
    assert not finding.silent
    assert not finding.violation
    assert finding.shown > 0
    assert audit_of(finding).passed
    (broken,) = pathwise(delay(noisy=False), 1.0, 0.0, QUICK, 1)
    assert broken.violation
    assert not audit_of(broken).passed


def test_that_takes_longer_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audited, "LONGER", (1,))
    (finding,) = pathwise(delay(noisy=False), 1.0, 0.0, QUICK, 1)
    assert finding.silent, "as it was: certain that there is no violation"


def test_who_promises_that_nothing_is_told_may_be_silent() -> None:
    (finding,) = pathwise(shipped(RandomSlates.name), 1.0, 0.0, QUICK, 1)
    assert finding.claimed == 0
    assert not finding.silent
    assert audit_of(finding).passed
