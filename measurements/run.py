"""Runs entries: literally the command that is printed, with a folder of its own in which finished runs are kept.

An entry that was interrupted goes on where it stopped. Finished runs are known by stream, setting and the package's
sources: where a source has changed, they are not used again.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

from diminuendo.audit.figure import AuditShares
from diminuendo.audit.finding import share
from diminuendo.cli.simulate import DEMO_EPSILONS, DEMO_LEARNERS
from diminuendo.simulate.figures.earned import curves
from diminuendo.simulate.figures.prices import PriceCurve
from diminuendo.simulate.sweeps import simulate
from diminuendo.streams import msweb
from examples import leak
from measurements import continuous, published
from measurements.entries import Entry, Kind
from measurements.results import DIGITS, ROOT, Kept, rounded
from measurements.streams import write_stream
from measurements.tables import published as published_table

OUT = ROOT / "out" / "measurements"
"""Finished runs, in a folder for each entry."""
METHODS = ("exact", "pathwise", "black box")
"""The columns of an audit."""
FAR = 100.0
"""Shares of what is claimed are kept up to this; pictures draw what is far less as an arrow."""

Say = Callable[[str], None]


class Failed(Exception):
    """A command ended with an error, or was interrupted."""

    def __init__(self, command: str, status: int) -> None:
        super().__init__(f"{command} ended with status {status}.")
        self.status = status


def measure(entry: Entry, seeds: int, jobs: int, say: Say) -> Kept:
    """Run the entry, or what is left of it."""
    if entry.stream is not None:
        write_stream(entry.stream, ROOT / entry.typed.split()[2])
    return _MEASURED[entry.kind](entry, seeds, jobs, say)


def _simulated(entry: Entry, seeds: int, jobs: int, say: Say) -> Kept:
    folder = OUT / entry.name
    typed(entry.command(seeds), "--out", str(folder), jobs=jobs)
    result = simulation(folder, entry.command(seeds), seeds)
    return replace(result, drawn=over_time(folder, seeds)) if entry.name == "demo" else result


def simulation(folder: Path, command: str, seeds: int) -> Kept:
    """What a finished simulation in this folder came to: rewards as shares of greedy's."""
    result = json.loads((folder / "simulation.json").read_text())
    greedy, rewards = result["benchmarks"]["greedy"], dict[str, dict[int, float]]()
    for run in result["results"]:
        rewards.setdefault(cell(run), {})[run["seed"]] = run["mean_reward"] / greedy
    cells = {key: rounded(runs[seed] for seed in range(seeds)) for key, runs in rewards.items()}
    return Kept(command, seeds, cells, {"greedy": round(greedy, 4)})


def over_time(folder: Path, seeds: int) -> dict[str, Any]:
    """What learners of the demo had earned by and by, from its finished runs."""
    result = simulate(
        msweb(), slots=5, learners=DEMO_LEARNERS, epsilon=DEMO_EPSILONS, seeds=seeds, out=folder
    )
    plain = curves(result)._asdict()
    lines = {part: {name: rounded(line) for name, line in plain[part].items()} for part in ("mean", "half")}
    return plain | lines


def cell(run: Mapping[str, Any]) -> str:
    """What was run: the learner, and epsilon where it listens to that."""
    epsilon = run["asked_epsilon"]
    return run["learner"] if epsilon is None else f"{run['learner']} {epsilon:g}"


def typed(command: str, *more: str, jobs: int | None = None) -> None:
    """Run a command as it is printed, and options that decide where and how, but nothing of what comes out."""
    words = shlex.split(command)
    assert words[0] == "diminuendo", command
    if jobs is not None:
        more = (*more, "--jobs", str(jobs))
    ran = subprocess.run(
        [sys.executable, "-m", *words, *more],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    if ran.returncode:
        raise Failed(command, ran.returncode)


def _continuous(entry: Entry, seeds: int, jobs: int, say: Say) -> Kept:
    cells, spec = continuous.measure(OUT / f"{entry.name}.jsonl", seeds, jobs)
    return Kept(entry.command(seeds), seeds, cells, spec)


def _audited(entry: Entry, seeds: int, jobs: int, say: Say) -> Kept:
    findings = OUT / entry.name / "audit.json"
    findings.unlink(missing_ok=True)
    try:
        typed(entry.command(seeds), "--out", str(findings.parent), jobs=jobs)
    except Failed:
        if not findings.exists():
            raise
    result = json.loads(
        findings.read_text()
    )  # also of an audit that accuses somebody: pages say what was found
    if not result["passed"]:
        say(f"{entry.name}: THE AUDIT FAILED. {', '.join(result['violations'])}.")
    runs = sum(finding["runs"] for finding in result["findings"])
    spec = {"runs": runs, "passed": int(result["passed"])}
    rows, drawn = audit_rows(result["findings"]), audit_drawn(result)
    return Kept(entry.command(seeds), 0, rows=rows, spec=spec, drawn=drawn)


def closest(findings: list[dict[str, Any]]) -> dict[str, dict[str, dict[str, Any]]]:
    """For each learner, by method, the finding that comes closest to what is claimed, or exceeds it most."""
    subjects: dict[str, dict[str, dict[str, Any]]] = {}
    for finding in findings:
        by_method = subjects.setdefault(finding["learner"], {})
        best = by_method.setdefault(finding["method"], finding)
        if _margin(finding) > _margin(best):
            by_method[finding["method"]] = finding
    return subjects


def audit_drawn(found: dict[str, Any]) -> dict[str, Any]:
    """What the picture of an audit shows."""
    shares = {
        subject: {
            method: round(min(share(_shown_epsilon(one), float(one["epsilon_claimed"])), FAR), DIGITS)
            for method, one in by_method.items()
        }
        for subject, by_method in closest(found["findings"]).items()
    }
    setting = found["epsilon"], found["delta"], found["effort"]
    return AuditShares(False, *setting, shares, found["violations"])._asdict()


def audit_rows(findings: list[dict[str, Any]]) -> dict[str, list[str]]:
    """For each learner or fault: what is claimed, and what each method shows; bold where that is more."""
    rows = {}
    for subject, by_method in closest(findings).items():
        claimed = max(float(finding["epsilon_claimed"]) for finding in by_method.values())
        rows[subject] = [
            f"{claimed:.2f}",
            *(_shown(by_method.get(method), f"{claimed:.2f}") for method in METHODS),
        ]
    return rows


def _margin(finding: dict[str, Any]) -> float:
    """By how much more was shown than claimed."""
    return _shown_epsilon(finding) - float(finding["epsilon_claimed"])


def _shown_epsilon(finding: dict[str, Any]) -> float:
    shown = finding["epsilon_shown"]
    return inf if shown == "infinite" else float(shown)


def _shown(finding: dict[str, Any] | None, claimed: str) -> str:
    if finding is None:
        return "-"
    shown, here = finding["epsilon_shown"], f"{finding['epsilon_claimed']:.2f}"
    said = shown if shown == "infinite" else f"{shown:.2f}"
    said += "" if here == claimed else f" of {here}"
    return f"**{said}**" if finding["violation"] else said


def _planned(entry: Entry, seeds: int, jobs: int, say: Say) -> Kept:
    result = OUT / f"{entry.name}.json"
    typed(entry.command(seeds), "--json", str(result))
    return Kept(entry.command(seeds), 0, drawn=plan_drawn(json.loads(result.read_text())))


def plan_drawn(found: dict[str, Any]) -> dict[str, Any]:
    """What the picture of a plan shows."""
    setting, forecast = found["setting"], found["forecast"]
    return PriceCurve(
        f"{found['recommended']}: {setting['slots']} of {setting['n_items']:,} items for "
        f"{setting['rounds']:,} users",
        forecast["model"],
        setting["epsilon"],
        [price["epsilon"] for price in forecast["prices"]],
        [rounded(price["losses"]) for price in forecast["prices"]],
        forecast["random_loss"],
    )._asdict()


def _published(entry: Entry, seeds: int, jobs: int, say: Say) -> Kept:
    cells, spec = published.measure(seeds)
    result = Kept(entry.command(seeds), seeds, cells, spec)
    say(published_table({entry.name: result}))
    return result


def _leaked(entry: Entry, seeds: int, jobs: int, say: Say) -> Kept:
    command = entry.command(seeds)
    drawn = leak.attack(games=int(command.split()[-1]))
    rows = {
        name: [
            f"{value:.4f}" for kind in ("right", "true positives", "false positives") for value in one[kind]
        ]
        for name, one in drawn["attacks"].items()
    }
    return Kept(command, 0, rows=rows, drawn=drawn)


_MEASURED: dict[Kind, Callable[[Entry, int, int, Say], Kept]] = {
    "simulate": _simulated,
    "continuous": _continuous,
    "audit": _audited,
    "plan": _planned,
    "published": _published,
    "leak": _leaked,
}
