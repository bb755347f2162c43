"""The whole audit: every shipped learner is cleared, verdicts follow from findings, and a seed repeats it."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest

from diminuendo.audit import EFFORTS, METHODS, Audit, Finding, audit
from diminuendo.audit.effort import FALSE_ALARM
from diminuendo.audit.figure import audit_shares, plot_audit
from diminuendo.audit.run import promised
from diminuendo.audit.subjects import Subject
from diminuendo.audit.variants import learner_of, tried
from diminuendo.errors import InvalidInput
from diminuendo.learners import LEARNERS, Setting, with_variants
from tests.kit.slow import MECHANISMS, mostly_slow

QUICK = EFFORTS["quick"]
FEW = dataclasses.replace(QUICK, training=100, scored=100, paths=1, views=200)
PROMISING = [name for name in with_variants() if math.isfinite(promised(name, 1.0, 1e-6, faults=False))]
VARIANTS = [variant for name in PROMISING for variant in tried(name)]
QUICK_VARIANTS = ("slate-clicks, private, exclusions",)
"""Variants that every run tries; overlap-greedy with private contexts is tried in test_pathwise.py."""


def finding(subject: str, shown: float, claimed: float = 1.0, method: str = "exact") -> Finding:
    return Finding(method, subject, "her", claimed, 0.0, shown, 1.0, 1)


def audited(*findings: Finding, faults: bool = False) -> Audit:
    subjects = tuple(dict.fromkeys(result.subject for result in findings))
    return Audit(1.0, 1e-6, "quick", 5, faults, subjects, findings, ())


@pytest.mark.parametrize("name", mostly_slow([*PROMISING, *VARIANTS], [*MECHANISMS, *QUICK_VARIANTS]))
def test_a_quick_audit_clears_every_shipped_learner(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variants one by one: an audit of a learner is about all of them."""
    monkeypatch.setattr("diminuendo.audit.run.tried", lambda learner: [])
    monkeypatch.setattr("diminuendo.audit.run.LEARNERS", {name: LEARNERS[learner_of(name)]})
    monkeypatch.setattr("diminuendo.audit.run.why_unsuitable", lambda learner: "")  # asked of plugins alone
    result = audit([name], effort=QUICK, seed=1)
    assert result.subjects == (name,)
    assert result.passed, [str(one) for one in result.findings]
    assert "black box" in {one.method for one in result.findings}
    assert all(math.isfinite(one.claimed) for one in result.findings)


def test_who_promises_nothing_is_attacked_when_named() -> None:
    """And the attack has power: without noise the first answer decides what is published."""
    result = audit(["hedge"], effort=QUICK, seed=1)
    assert result.subjects == ("hedge",) == tuple(result.learners)
    assert result.passed, "nothing was promised"


def test_who_promises_nothing_is_left_out_and_named() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("diminuendo.audit.run.METHODS", {"none": lambda *given: []})
        result = audit(None, effort=QUICK, seed=1)
    assert set(result.learners) | set(result.promise_nothing) == set(with_variants())
    assert result.subjects[: len(result.learners)] == tuple(result.learners)
    assert {"hedge", "slate-totals:private=false", "cascade-thompson"} <= set(result.promise_nothing)
    assert {"random", "fi-dp", "overlap-greedy", "slate-clicks"} <= set(result.subjects)


def test_whoever_takes_contexts_or_exclusions_is_tried_with_them() -> None:
    """By every method, with neighbours of that relation; a learner that takes none is tried as it is."""
    tried = dict[str, tuple[str, Subject]]()

    def note(subject: Subject, *given: object) -> list[Finding]:
        tried[subject.name] = str(subject.promise(Setting(3, 1, 8, subject.feedback))), subject
        return []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("diminuendo.audit.run.METHODS", {"none": note})
        names = ["epoch-greedy", "overlap-greedy", "slate-totals", "slate-clicks"]
        result = audit(names, effort=QUICK, seed=1)
    assert tuple(tried) == result.subjects
    assert result.learners == names
    for name, entry in LEARNERS.items():
        ways = {subject.partition(", ")[2] for subject in tried if subject.partition(", ")[0] == name}
        if name in names:
            wanted = {""} | ({"contexts", "private contexts"} if entry.takes("contexts") else set())
            wanted |= {"exclusions", "private, exclusions"} if entry.takes("exclusions") else set()
            wanted |= {"retention"} if entry.takes("retention") else set()
            wanted |= {"sample"} if entry.takes("sample") else set()
            assert ways == wanted
    for name, (promise, subject) in tried.items():
        assert ("with its context" in promise) == ("private" in name), name
        assert ("with its exclusions" in promise) == (name.partition(", ")[2] == "exclusions")
        assert (subject.contexts is not None) == ("contexts" in name or "private" in name)
        assert subject.exclusions == ("exclusions" in name)


def test_one_audit_is_of_no_more_subjects_than_false_alarms_are_shared_by() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("diminuendo.audit.run.MOST_SUBJECTS", 4)
        with pytest.raises(InvalidInput, match="at most; got 7"):
            audit(["overlap-greedy"], effort=QUICK, seed=1)


def test_a_seed_repeats_an_audit_wherever_it_runs() -> None:
    names = ["random", "epoch-greedy"]
    once, again, remote_rounds = (audit(names, effort=FEW, seed=9, jobs=jobs) for jobs in (1, 1, 2))
    assert once.as_json() == again.as_json() == remote_rounds.as_json()
    other = audit(names, effort=FEW, seed=10)
    assert other.as_json()["findings"] != once.as_json()["findings"]


def test_the_verdict_is_that_of_the_worst_finding() -> None:
    good = audited(finding("a", 0.4), finding("b", 0.9), finding("b", 0.2, method="black box"))
    assert good.passed
    assert good.violators == []
    bad = audited(finding("a", 0.4), finding("b", 0.9), finding("b", 1.1, method="black box"))
    assert not bad.passed
    assert bad.violators == ["b"]
    assert bad.about("b")["black box"].shown == 1.1
    assert not audited(finding("a", math.inf)).passed
    assert not audited(finding("a", 1e-3, claimed=0.0)).passed


def test_all_missing_noise_must_be_found() -> None:
    half = audited(finding("a", 1.4), finding("b", 0.9), faults=True)
    assert not half.passed
    assert half.overlooked == ["b"]
    assert audited(finding("a", 1.4), finding("b", 2.0), faults=True).passed


def test_findings_are_plain_json() -> None:
    result = audited(finding("a", math.inf), finding("b", 0.5)).as_json()
    read = json.loads(json.dumps(result, allow_nan=False))
    assert read["violations"] == ["a"]
    assert read["confidence"] == 1 - FALSE_ALARM
    assert [one["epsilon_shown"] for one in read["findings"]] == ["infinite", 0.5]


def test_unknown_names_and_numbers_are_refused_before_any_work() -> None:
    with pytest.raises(InvalidInput, match="no learner called 'nobody'"):
        audit(["nobody"], effort=QUICK, seed=1)
    with pytest.raises(InvalidInput, match="name the learners"):
        audit(effort=QUICK, seed=1, faults=True)
    with pytest.raises(InvalidInput, match="'fi-dp' adds no noise"):
        audit(["fi-dp"], effort=QUICK, seed=1, faults=True)
    with pytest.raises(InvalidInput, match="got 0"):
        audit(["random"], effort=QUICK, seed=1, jobs=0)
    with pytest.raises(InvalidInput, match="seed"):
        audit(["random"], effort=QUICK, seed=-1)


def test_it_draws_what_was_found(tmp_path: Path) -> None:
    result = audited(*(finding("a", 0.4, method=method) for method in METHODS), finding("b", math.inf))
    shares = audit_shares(result)
    assert shares.shares == {"a": dict.fromkeys(METHODS, 0.4), "b": {"exact": math.inf}}
    assert shares.violators == ["b"]
    assert plot_audit(shares, tmp_path / "new" / "audit.png").stat().st_size > 5_000
