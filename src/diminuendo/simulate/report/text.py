"""What a report says, in plain text: the answer in three numbers, all numbers in a table, the guarantee, the command.

The guarantee in words is that of privacy/sentence.py.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from diminuendo._plugins import Origin
from diminuendo.learners import LEARNERS
from diminuendo.learners.base.entry import options_in
from diminuendo.learners.base.replay import AT_ONCE
from diminuendo.objectives import FAMILIES, NoisyOr
from diminuendo.privacy.sentence import upwards
from diminuendo.simulate.result import Result, Simulation
from diminuendo.simulate.table import (
    BY_TYPE,
    SHUFFLED,
    TODAY,
    earned,
    main_learner,
    mean_and_band,
    share_of,
    speed,
    upwards_short,
)
from diminuendo.simulate.today import joined
from diminuendo.streams.builtin import BUILTIN, from_rows

COLUMNS = (
    "learner",
    "algorithm",
    "ε asked",
    "ε proved",
    "δ",
    "reward",
    "± 95 %",
    "of greedy",
    "worst run",
    "regret to greedy",
    "users/s",
)


class Headline(NamedTuple):
    """One number of the answer, and whose it is."""

    share: str
    whose: str


def headlines(simulation: Simulation) -> Iterator[Headline]:
    """What the main learner earns, what one without privacy does, what chance does."""
    groups, about = simulation.by_learner(simulation.middle_epsilon), main_learner(simulation)
    wanted = [about, *(name for name in ("nonprivate", "random") if name in groups and name != about)]
    for name in wanted:
        runs = groups[name]
        mean, half = mean_and_band(simulation.shares(runs))
        asked = "" if runs[0].asked_epsilon is None else f" at epsilon {runs[0].asked_epsilon:g}"
        yield Headline(_percent(mean), f"{name}{asked}{_give_or_take(100 * half)}")
    if "random" not in groups:
        base = simulation.benchmarks
        share = base.random / base.greedy.value if base.greedy.value else 1.0
        yield Headline(_percent(share), "random slates")
    if simulation.today is not None:
        base = simulation.benchmarks
        share = simulation.today.value / base.greedy.value if base.greedy.value else 1.0
        yield Headline(_percent(share), TODAY)


def table_rows(simulation: Simulation) -> Iterator[list[str]]:
    """Hindsight, then every learner at every epsilon."""
    base = simulation.benchmarks
    best, reference = base.optimum, base.greedy.value
    bound = "optimum, proven" if best.proven else f"optimum, at most {best.upper:.4f}"
    nothing, known = [""] * 4, base.contexts
    hindsight = {bound: best.lower, "greedy in hindsight": reference}
    if known is not None:
        hindsight |= {
            f"{BY_TYPE}, in hindsight": known.greedy,
            f"{SHUFFLED.strip()}, in hindsight": known.shuffled,
        }
    if simulation.today is not None:
        hindsight[TODAY] = simulation.today.value
    for name, value in hindsight.items():
        yield [name, *nothing, f"{value:.4f}", "", share_of(value, reference), "", "", ""]
    groups: dict[tuple[str, float | None], list[Result]] = {}
    for run in simulation.results:
        groups.setdefault((run.learner, run.asked_epsilon), []).append(run)
    for (name, asked), runs in groups.items():
        first = runs[0]
        yield [
            name,
            first.played_by,
            "" if asked is None else f"{asked:g}",
            "none" if first.epsilon is None else upwards(first.epsilon),
            "" if first.delta is None else upwards_short(first.delta),
            *earned(runs, reference),
            f"{np.mean([run.regret_to_greedy for run in runs]):.4f}",
            f"{speed(runs):,.0f}",
        ]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def _give_or_take(half: float) -> str:
    """Nothing for one run, of which nobody knows."""
    if np.isnan(half):
        return ""
    return " (±\N{NO-BREAK SPACE}" + (f"{half:.0f})" if half >= 9.5 else f"{half:.1g})")


def seeded_note(guarantee: Mapping[str, Any]) -> str:
    """What must be said beside the sentence where the coins were seeded, as in every simulation; otherwise nothing."""
    if guarantee["secure_rng"] or not guarantee["epsilon"]:
        return ""
    return (
        "The runs of this report were seeded, so that they can be repeated; whoever knows the seed can undo the noise. "
        "The sentence is about the same learner with the same settings and the operating system's random numbers."
    )


def command(simulation: Simulation) -> str:
    """What to type to run it again."""
    first, stream = simulation.results[0], simulation.stream
    private = [run for run in simulation.results if run.asked_epsilon is not None]
    words = ["diminuendo", "simulate", stream["name"]]
    if stream["objective"] != NoisyOr.name and stream["objective"] in from_rows():
        words += ["--objective", stream["objective"]]
    words += ["--slots", str(first.slots), "--rounds", str(first.rounds), "--feedback", first.feedback]
    if first.clicks:
        words += ["--clicks", first.clicks]
    if simulation.contexts is not None:
        words += ["--context", ",".join(simulation.contexts.columns)]
        words += ["--private-context"] if simulation.contexts.private else []
    words += ["--learners", ",".join(simulation.by_learner())]
    if private:
        words += ["--epsilon", ",".join(map(_written, simulation.epsilons))]
        words += ["--delta", _written(private[0].asked_delta or 0.0)]
    if first.max_rounds_per_user > 1:
        words += ["--max-rounds-per-user", str(first.max_rounds_per_user)]
    if first.delay != str(AT_ONCE):
        words += ["--delay", first.delay]
    if first.response_rate < 1:
        words += ["--response-rate", _written(first.response_rate)]
    if simulation.retention is not None:
        words += ["--retention", str(simulation.retention)]
    if simulation.sample > 1:
        words += ["--sample", str(simulation.sample)]
    if (
        simulation.rules is not None
    ):  # slots of their own, and pins elsewhere than in the first slots, have no option
        pinned = tuple(item for _, item in simulation.rules.pinned)
        words += ["--pinned", joined(pinned, stream.get("labels"))] if pinned else []
        for items, most in simulation.rules.caps:
            words += ["--cap", f"{most}:{joined(items, stream.get('labels'))}"]
    if simulation.today is not None:
        words += ["--today", joined(simulation.today.slate, stream.get("labels"))]
    words += ["--seeds", str(len({run.seed for run in simulation.results}))]
    for origin in outsiders(simulation):
        words += ["--plugin", origin.file or origin.module]
    return shlex.join(str(word) for word in words)


def outsiders(simulation: Simulation) -> list[Origin]:
    """The plugins that its learners, its users and their objective came from."""
    stream = simulation.stream
    result = [BUILTIN.origins.get(stream["name"]), FAMILIES.origins.get(stream["objective"])]
    result += [LEARNERS.origins.get(options_in(run.played_by)[0]) for run in simulation.results]
    return list(dict.fromkeys(origin for origin in result if origin is not None))


def _written(number: float) -> str:
    """All its digits, and no more."""
    return repr(float(number)).removesuffix(".0")
