"""What a report says, in plain text: the answer in three numbers, all numbers in a table, the guarantee, the command.

The guarantee is put into words that can be quoted: who is protected, of what, from whom, how much, and on which
conditions. (epsilon, delta)-differential privacy says of everything that may be seen: its probability under one answer
is at most e^epsilon times its probability under another, plus delta. The words say just that, with numbers rounded
upwards. (That odds move by no more than e^epsilon *except with probability delta* is often said, and is not the same.)
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any, NamedTuple

import numpy as np

from diminuendo.learners.base.replay import AT_ONCE
from diminuendo.objectives import NoisyOr
from diminuendo.simulate.result import Result, Simulation
from diminuendo.simulate.table import (
    BY_TYPE,
    DIGITS,
    EVERYBODY,
    SHUFFLED,
    as_written,
    earned,
    mean_and_band,
    plain,
    rounded_up,
    share_of,
    speed,
    upwards,
    upwards_short,
)
from diminuendo.streams.builtin import FROM_ROWS

COLUMNS = (
    "learner",
    "played by",
    "ε asked",
    "ε proved",
    "δ",
    "payoff",
    "± 95 %",
    "of greedy",
    "worst run",
    "regret",
    "people/s",
)


class Headline(NamedTuple):
    """One number of the answer, and whose it is."""

    share: str
    whose: str


def main_learner(simulation: Simulation) -> str:
    """Whom the report is about: `private`, or the first learner that promises something, or the first one."""
    names = list(simulation.by_learner())
    promising = [run.learner for run in simulation.results if run.epsilon is not None and run.epsilon > 0]
    return "private" if "private" in names else (promising or names)[0]


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
        yield Headline(_percent(share), "random choice")


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
            "nothing" if first.epsilon is None else upwards(first.epsilon),
            "" if first.delta is None else upwards_short(first.delta),
            *earned(runs, reference),
            f"{np.mean([run.regret for run in runs]):.4f}",
            f"{speed(runs):,.0f}",
        ]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def _give_or_take(half: float) -> str:
    """Nothing for one run, of which nobody knows."""
    if np.isnan(half):
        return ""
    return " (±\N{NO-BREAK SPACE}" + (f"{half:.0f})" if half >= 9.5 else f"{half:.1g})")


SMALL = Decimal("0.1")
"""Below, what e^epsilon is more than 1 gets all the digits: 1.01 would say ten times what epsilon 0.001 means."""


def guarantee_sentence(guarantee: Mapping[str, Any], *, visits: int = 1) -> str:
    """What a guarantee (as `Guarantee.as_json()` writes it) promises to a person who has up to `visits` rounds."""
    epsilon, delta = guarantee["epsilon"], guarantee["delta"]
    if epsilon is None:
        return "Nothing is promised: what is shown may reveal what any one person answered."
    if epsilon == 0 and delta == 0:
        return (
            "What is shown does not depend on what anybody answered, so nobody can learn anything about an answer from "
            "it: (0, 0)-differential privacy."
        )
    rounds, names = "in one round", ""
    if visits > 1:
        rounds = f"in up to {visits:,} rounds together"
        names = ", where everybody comes under one name of her own"
    plus = f", plus at most {chance(delta)}" if delta > 0 else ""
    real = "" if guarantee["exact"] else ", for real numbers, which the numbers computed with only resemble"
    jointly = guarantee.get("view", EVERYBODY) != EVERYBODY
    whatever, other, joint = f"Whatever any one person answers {rounds}", "had she answered anything else", ""
    every = "Others are all who see every slate and every released number of the whole run"
    shown: list[str] = []
    if jointly:
        whatever = f"Whatever is known of any one person, and whatever she answers, {rounds}"
        other, joint = "had anything else been known of her, or had she answered anything else", "joint "
        every = (
            "Others are all but herself, together: all who see every slate but hers and every released number"
        )
        shown = ["Her own slates follow from what is known of her; whoever sees them may learn it."]
    return " ".join(
        [
            f"{whatever}, and whether she answers at all: the probability of anything that others may come to see is "
            f"at most {factor(epsilon)} times what it would be {other}, or nothing{plus}.",
            f"{every}, whatever else they know and however long they compute.",
            *shown,
            "That she came is not hidden.",
            f"This is {joint}({upwards(epsilon)}, {upwards(delta)})-differential privacy ({guarantee['neighbours']}), "
            f"proved in {guarantee['proof']} of diminuendo{real}.",
            "It holds where random numbers come from the operating system and stay secret, where every answer is given "
            f"to the decision that it answers{names}, and where nothing else that depends on answers, such as payoffs "
            "or click rates, is published.",
        ]
    )


def seeded_note(guarantee: Mapping[str, Any]) -> str:
    """What must be said beside the sentence where the coins were seeded, as in every simulation; otherwise nothing."""
    if guarantee["secure_coins"] or not guarantee["epsilon"]:
        return ""
    return (
        "The runs of this report were seeded, so that they can be repeated; whoever knows the seed can undo the noise. "
        "The sentence is about the same learner with the same settings and the operating system's random numbers."
    )


def factor(epsilon: float) -> str:
    """e^epsilon, as a power and as a number that is not less."""
    power = f"e^{upwards(epsilon)}"
    if epsilon > math.log(1e9):
        return f"{power} (more than a billion)"
    grown = rounded_up(as_written(epsilon)).exp()
    if grown - 1 < SMALL:
        return f"{power} = {plain(1 + rounded_up(grown - 1))}"
    return f"{power} = {plain(rounded_up(grown, max(DIGITS, grown.adjusted() + 1)))}"


def chance(delta: float) -> str:
    """A small probability in words that is not less than it."""
    times = math.floor(1 / as_written(delta))
    for name, size in (("billion", 10**9), ("million", 10**6)):
        if times >= size:
            many = Context(prec=DIGITS, rounding=ROUND_FLOOR).plus(Decimal(times) / size)
            return f"one in {'a' if many == 1 else plain(many)} {name}"
    return f"one in {times:,}"


def command(simulation: Simulation) -> str:
    """What to type to run it again."""
    first, stream = simulation.results[0], simulation.stream
    private = [run for run in simulation.results if run.asked_epsilon is not None]
    words = ["diminuendo", "simulate", stream["name"]]
    if stream["objective"] != NoisyOr.name and stream["objective"] in FROM_ROWS:
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
    if first.visits > 1:
        words += ["--visits", str(first.visits)]
    if first.late != str(AT_ONCE):
        words += ["--late", first.late]
    if first.answering < 1:
        words += ["--answering", _written(first.answering)]
    words += ["--seeds", str(len({run.seed for run in simulation.results}))]
    return shlex.join(str(word) for word in words)


def _written(number: float) -> str:
    """All its digits, and no more."""
    return repr(float(number)).removesuffix(".0")
