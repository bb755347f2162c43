"""The audit: every method against every guarantee, and the findings.

Each learner is attacked by each method that applies to it, also with contexts and exclusions where it takes them
(variants.py); findings are put together and compared with what was promised. With faults it is the other way round:
learners have no noise (without_noise.py), and the audit fails where it overlooks one.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from diminuendo import _validate
from diminuendo._compile_progress import report_to, reported_by_workers
from diminuendo._plugins import Carried
from diminuendo.audit.black_box import black_box
from diminuendo.audit.effort import FALSE_ALARM, MOST_SUBJECTS, Effort
from diminuendo.audit.exact import exact
from diminuendo.audit.finding import Finding
from diminuendo.audit.pathwise import pathwise
from diminuendo.audit.subjects import Subject
from diminuendo.audit.variants import learner_of, tried, tried_subject
from diminuendo.audit.without_noise import WITHOUT_NOISE, without_noise
from diminuendo.contract import cases_of
from diminuendo.contract.releases import (
    check_a_snapshot_holds_what_was_learned,
    check_something_is_learned_in_time,
)
from diminuendo.errors import InvalidInput, OutOfRange
from diminuendo.learners import LEARNERS, Setting, with_variants
from diminuendo.types import Progress

Method = Callable[[Subject, float, float, Effort, int], list[Finding]]
"""From a subject, the epsilon and delta it is made for, effort and seed to what was found; [] if it does not apply."""

METHODS: dict[str, Method] = {"black box": black_box, "pathwise": pathwise, "exact": exact}
"""Every way to attack a promise; the slowest first, so that no core is left waiting for it."""


@dataclass(frozen=True)
class Audit:
    """All findings of one audit.

    Attributes
    ----------
    epsilon, delta : float
        The guarantee that was asked of every learner.
    effort : str
        Name of the effort.
    seed : int
        As given.
    faults : bool
        Whether learners were attacked without their noise, all of which should be found.
    subjects : tuple of str
        Learners and their variants, or learners without noise.
    findings : tuple of Finding
        One for each attack that applies.
    promise_nothing : tuple of str
        Learners that were left out, because they promise nothing.
    unsuitable : dict of str to str
        Learners of plug-ins that were not attacked, and why.

    """

    epsilon: float
    delta: float
    effort: str
    seed: int
    faults: bool
    subjects: tuple[str, ...]
    findings: tuple[Finding, ...]
    promise_nothing: tuple[str, ...]
    unsuitable: dict[str, str] = field(default_factory=dict)

    def about(self, subject: str) -> dict[str, Finding]:
        """Return, by method, the finding about a subject that comes closest to its guarantee, or exceeds it most."""
        result: dict[str, Finding] = {}
        for finding in self.findings:
            if finding.subject == subject:
                best = result.setdefault(finding.method, finding)
                if finding.shown - finding.claimed > best.shown - best.claimed:
                    result[finding.method] = finding
        return result

    @property
    def learners(self) -> list[str]:
        """Whose guarantees were attacked, or learners without noise."""
        return list(self.subjects) if self.faults else list(dict.fromkeys(map(learner_of, self.subjects)))

    @property
    def violators(self) -> list[str]:
        """Subjects that were shown to leak more than promised."""
        broken = {finding.subject for finding in self.findings if finding.violation}
        return [subject for subject in self.subjects if subject in broken]

    @property
    def silent(self) -> list[str]:
        """Subjects that published nothing while they were watched, so that nothing was tested."""
        quiet = {finding.subject for finding in self.findings if finding.silent and not finding.violation}
        return [subject for subject in self.subjects if subject in quiet and subject not in self.violators]

    @property
    def overlooked(self) -> list[str]:
        """Learners without noise that were not found."""
        return [subject for subject in self.subjects if subject not in self.violators] if self.faults else []

    @property
    def passed(self) -> bool:
        """Whether no learner leaked more than promised, was silent or unsuitable; or missing noise was always found."""
        return not (self.overlooked if self.faults else [*self.violators, *self.silent, *self.unsuitable])

    @property
    def confidence(self) -> float:
        """Probability, at least, that no learner was accused that keeps its guarantee."""
        return 1.0 - FALSE_ALARM

    def as_json(self) -> dict[str, Any]:
        """Return the audit as plain values, as files hold it."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "effort": self.effort,
            "seed": self.seed,
            "faults_planted": self.faults,
            "passed": self.passed,
            "confidence": self.confidence,
            "violations": self.violators,
            "silent": self.silent,
            "overlooked": self.overlooked,
            "unsuitable": self.unsuitable,
            "promise_nothing": list(self.promise_nothing),
            "findings": [finding.as_json() for finding in self.findings],
        }


def audit(
    names: Sequence[str] | None = None,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    effort: Effort,
    seed: int,
    faults: bool = False,
    jobs: int = 1,
    progress: Callable[[str, int], Progress] | None = None,
) -> Audit:
    """Attack the guarantees of learners: list all views exactly, follow runs pathwise, and guess as a black box.

    Parameters
    ----------
    names : sequence of str, optional
        Learners. By default all that promise anything.
    epsilon : float, default 1.0
        What is asked of them.
    delta : float, default 1e-6
        What is asked of them.
    effort : Effort
        `EFFORTS["quick"]` or `EFFORTS["full"]`.
    seed : int
        Of all runs.
    faults : bool, default False
        Attack the learners without their noise instead: each must be found.
    jobs : int, default 1
        Runs at the same time; -1: one per core. Results do not depend on it.
    progress : callable, optional
        Called with a description and a number of attacks; returns what is called as they finish.

    Returns
    -------
    Audit

    Raises
    ------
    InvalidInput
        If there is no such learner, or more than 100 subjects.

    Notes
    -----
    A violation is proved up to the stated confidence; the absence of violations proves nothing. The error rate is
    that of the whole audit, 1/1000 (Theorem U4 of docs/maths/audit.md).

    Examples
    --------
    >>> from diminuendo.audit import EFFORTS, audit
    >>> result = audit(["random"], effort=EFFORTS["quick"], seed=1)  # slates that depend on no user
    >>> result.passed, [finding.method for finding in result.findings]
    (True, ['black box', 'pathwise', 'exact'])
    """
    if unknown := [name for name in names or () if name not in LEARNERS]:
        raise InvalidInput(f"There is no learner called {unknown[0]!r}. There are: {', '.join(LEARNERS)}.")
    if faults:
        if not names:
            raise InvalidInput("With faults, name the learners that are to be attacked without their noise.")
        names = [without_noise(name).name for name in names]
    if jobs == 0:
        raise InvalidInput("jobs must be a number of runs at the same time, or -1 for one per core; got 0.")
    _validate.whole(seed, 0, None, "seed")
    wanted = list(dict.fromkeys(names or with_variants()))
    promising = [name for name in wanted if names or math.isfinite(promised(name, epsilon, delta, faults))]
    unsuitable = {} if faults else {name: why for name in promising if (why := why_unsuitable(name))}
    promising = [name for name in promising if name not in unsuitable]
    more = [] if faults else [variant for name in promising for variant in tried(name)]
    subjects = [*promising, *more]
    if len(subjects) > MOST_SUBJECTS:
        raise InvalidInput(
            f"One audit is for {MOST_SUBJECTS} learners and variants at most; got {len(subjects)}."
        )
    tasks = [(method, name) for some in (promising, more) for method in METHODS for name in some]
    seeds = np.random.SeedSequence(seed).generate_state(len(tasks), dtype=np.uint64)
    tick = progress("attacking", len(tasks)) if progress else lambda done: None
    result: dict[int, list[Finding]] = {}
    plugins = Carried.packed()
    attacks = (
        delayed(_attack)(plugins, number, method, name, faults, epsilon, delta, effort, int(seeds[number]))
        for number, (method, name) in enumerate(tasks)
    )
    with reported_by_workers() as compiling:
        runner = Parallel(
            n_jobs=min(jobs, max(1, len(tasks))),
            return_as="generator_unordered",
            initializer=report_to,
            initargs=(compiling,),
        )
        for number, findings in runner(attacks):
            result[number] = findings
            tick(1)
    in_order = tuple(finding for number in range(len(tasks)) for finding in result[number])
    left_out = tuple(name for name in wanted if name not in [*promising, *unsuitable])
    return Audit(epsilon, delta, effort.name, seed, faults, tuple(subjects), in_order, left_out, unsuitable)


def why_unsuitable(name: str) -> str:
    """Why it would say nothing to attack a plugin's learner; "" where nothing speaks against it. Ours were tested."""
    for case in cases_of(LEARNERS[name]) if name in LEARNERS.origins else ():
        for check in (check_something_is_learned_in_time, check_a_snapshot_holds_what_was_learned):
            try:
                check(case)
            except AssertionError as error:
                return str(error)
    return ""


def subject_of(name: str, faults: bool) -> Subject:
    """A learner, perhaps a variant of it, or without its noise."""
    return without_noise(name.removesuffix(WITHOUT_NOISE)) if faults else tried_subject(name)


def promised(name: str, epsilon: float, delta: float, faults: bool) -> float:
    """The epsilon that a learner claims, asked for that one."""
    subject = subject_of(name, faults)
    with _paper_in_peace():
        return subject.promise(Setting(2, 1, 4, subject.feedback, epsilon, delta)).epsilon


def _attack(
    plugins: Carried,
    number: int,
    method: str,
    name: str,
    faults: bool,
    epsilon: float,
    delta: float,
    effort: Effort,
    seed: int,
) -> tuple[int, list[Finding]]:
    plugins.unpack()
    with _paper_in_peace():
        return number, METHODS[method](subject_of(name, faults), epsilon, delta, effort, seed)


def _paper_in_peace() -> warnings.catch_warnings[None]:
    """The paper's constants are meant for more rounds than are run here, which they would say again and again."""
    return warnings.catch_warnings(action="ignore", category=OutOfRange)
