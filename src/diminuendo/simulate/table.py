"""Tables of a simulation or a sweep, for the terminal.

Numbers of a guarantee are written in a few digits and rounded upwards, because less than what is proved would not be
true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from diminuendo._extras import extra
from diminuendo.learners.health import ADVICE, NOT_AVAILABLE
from diminuendo.privacy.sentence import EVERYBODY, as_written, rounded_up, upwards
from diminuendo.simulate.result import NOTE, Result, Simulation, Sweep

if TYPE_CHECKING:
    from rich.table import Table

BY_TYPE, SHUFFLED = "greedy by context", "  labels shuffled"
"""Hindsight with a slate for each type of users, and with labels that say nothing."""
TODAY = "today's slate"
"""The fixed slate that all users are shown now."""
MOST_NAMED = 6
"""Items of a rule that are named."""
LITTLE = 0.02
"""If contexts are worth less than this share of greedy's reward, learners do not reach it."""


def main_learner(simulation: Simulation) -> str:
    """The main learner of the report: `private`, or the first one with a guarantee, or the first one."""
    names = list(simulation.by_learner())
    promising = [run.learner for run in simulation.results if run.epsilon is not None and run.epsilon > 0]
    return "private" if "private" in names else (promising or names)[0]


def mean_and_band(values: ArrayLike) -> tuple[Any, Any]:
    """The mean of runs, and half the width of its 95 percent interval (Student's t); NaN for one run.

    A run is a number, or a row of several.
    """
    runs = np.asarray(values, dtype=np.float64)
    mean = runs.mean(axis=0)
    if len(runs) < 2:
        return mean, np.nan * mean
    return mean, stdtrit(len(runs) - 1, 0.975) * (runs.std(axis=0, ddof=1) / len(runs) ** 0.5)


def earned(runs: Sequence[Result], reference: float) -> list[str]:
    """The reward of runs, half the width of its interval, and of the reference the share of their mean and worst."""
    rewards = [run.mean_reward for run in runs]
    mean, half = mean_and_band(rewards)
    shares = [share_of(value, reference) for value in (mean, min(rewards))]
    return [f"{mean:.4f}", "" if np.isnan(half) else f"{half:.4f}", *shares]


def speed(runs: Sequence[Result]) -> float:
    """Users per second of the median run."""
    return runs[0].rounds / max(1e-9, float(np.median([run.seconds for run in runs])))


def tables(sweep: Sweep) -> list[Table]:
    """One table for each simulation: all columns for one epsilon, or a column for each of several."""
    return [by_epsilon(one) if len(one.epsilons) > 1 else as_table(one) for one in sweep.simulations]


def comers(stream: Mapping[str, Any]) -> str:
    """The number of users, or of rounds and users."""
    rounds = f"{stream['rounds']:,} "
    return rounds + (f"rounds of {stream['users']:,} users" if "users" in stream else "users")


def as_table(simulation: Simulation) -> Table:
    """Learners against hindsight, best first."""
    base = simulation.benchmarks
    table = _empty(simulation, f"Hindsight shows one slate to all users{_or_by_type(simulation)} {NOTE}")
    for column in ("reward", "± 95%", "of greedy", "worst", "users/s"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("privacy", no_wrap=True)
    baselines = baseline_rewards(simulation)
    for name, value in baselines.items():
        whose = "fixed" if name == TODAY else "hindsight"
        cells = f"{value:.4f}", "", share_of(value, base.greedy.value), "", "", whose
        table.add_row(name, *cells, style="dim", end_section=name == list(baselines)[-1])
    for name, runs in _best_first(simulation):
        first, promise = runs[0], "none"
        if first.epsilon is not None:
            promise = f"ε={upwards(first.epsilon)} δ={upwards_short(first.delta or 0.0)}"
        table.add_row(name, *earned(runs, base.greedy.value), f"{speed(runs) / 1000:,.0f}k", promise)
    return table


def baseline_rewards(simulation: Simulation) -> dict[str, float]:
    """The rewards of fixed slates, by name: the optimum, greedy, slates per context where there are any, today's."""
    base = simulation.benchmarks
    best, known = base.optimum, base.contexts
    result = {"optimum, proven" if best.proven else f"optimum, ≤ {best.upper:.4f}": best.lower}
    result["greedy"] = base.greedy.value
    if known is not None:
        result |= {BY_TYPE: known.greedy, SHUFFLED: known.shuffled}
    if simulation.today is not None:
        result[TODAY] = simulation.today.value
    return result


def by_epsilon(simulation: Simulation) -> Table:
    """What share of greedy's reward each learner reaches with each epsilon, best first."""
    reference = simulation.benchmarks.greedy.value
    seeds = len({run.seed for run in simulation.results})
    table = _empty(
        simulation,
        f"Share of the reward of greedy in hindsight ({reference:.4f}): mean of {seeds} seeds"
        + (", ± half its 95% interval" if seeds > 1 else "")
        + f". A learner that ignores epsilon has one number for all.{_using(simulation)} {NOTE}",
    )
    for epsilon in simulation.epsilons:
        table.add_column(f"ε={epsilon:g}", justify="right", no_wrap=True)
    for name, _ in _best_first(simulation):
        cells = []
        for epsilon in simulation.epsilons:
            runs = simulation.by_learner(epsilon)[name]
            mean, half = mean_and_band([run.mean_reward for run in runs])
            known = reference and not np.isnan(half)
            spread = f"±{half / reference:.3f}".replace("±0.", "±.") if known else ""
            cells.append(share_of(mean, reference) + spread)
        table.add_row(name, *cells)
    if simulation.today is not None:
        same = share_of(simulation.today.value, reference)
        table.add_row(TODAY, *[same] * len(simulation.epsilons), style="dim")
    return table


def _or_by_type(simulation: Simulation) -> str:
    said = "." if simulation.contexts is None else ", or one per context where the row says so."
    return said + _using(simulation)


def _using(simulation: Simulation) -> str:
    """Which learners use contexts, where there are any."""
    if simulation.contexts is None:
        return ""
    groups = {name: runs[0] for name, runs in simulation.by_learner().items()}
    using = [name for name, run in groups.items() if run.contexts["use"] != "none"]
    said = f" Contexts are used by {' and '.join(using) or 'none of these learners'}."
    if jointly := [name for name, run in groups.items() if run.guarantee.get("view", EVERYBODY) != EVERYBODY]:
        said += (
            f" The guarantee of {' and '.join(jointly)} is joint DP: it holds in the view of all other users."
        )
    return said


def worth_of_contexts(simulation: Simulation) -> str:
    """What contexts are worth in hindsight, in a few sentences; nothing where there are none."""
    known, reference = simulation.contexts, simulation.benchmarks.greedy.value
    if known is None or not reference:
        return ""
    own, chance = known.greedy / reference, known.shuffled / reference
    said = (
        f"In hindsight, one slate for each of {known.types:,} contexts earns {own:.3f} of greedy's reward; with "
        f"shuffled labels, which carry no information, {chance:.3f}. "
    )
    if own - chance < LITTLE:
        return said + "The difference is the information in the contexts: next to none here."
    return (
        said
        + f"The difference, {own - chance:.3f}, is the information in the contexts: about the most that they can earn."
    )


def health_said(simulation: Simulation) -> str:
    """Whether released rewards show that users responded in time; empty if no learner releases any."""
    said, lost = list[str](), False
    for name, runs in simulation.by_learner().items():
        states = Counter(run.health for run in runs if run.health != NOT_AVAILABLE.state)
        lost |= "no signal" in states
        if states:
            said.append(
                f"{name} "
                + ", ".join(f"{state} in {many} of {len(runs)} runs" for state, many in states.items())
            )
    advice = f" {ADVICE['no signal']}" if lost else ""
    return f"Health, from published rewards: {'; '.join(said)}.{advice}" if said else ""


def rules_said(simulation: Simulation) -> str:
    """The rules that slates kept to, in a sentence; nothing where there are none."""
    rules, labels = simulation.rules, simulation.stream.get("labels")
    if rules is None:
        return ""

    def named(items: Sequence[int]) -> str:
        names = [str(item) if labels is None else labels[item] for item in items[:MOST_NAMED]]
        return "; ".join(names) + (
            f" and {len(items) - MOST_NAMED:,} others" if len(items) > MOST_NAMED else ""
        )

    said = [f"{named([item])} always in slot {slot + 1}" for slot, item in rules.pinned]
    said += [f"at most {most} of {named(items)}" for items, most in rules.caps]
    said += ["slots with items of their own"] if rules.eligible else []
    return f"Slates follow the rules, also those of hindsight and the random ones: {', '.join(said)}."


def _empty(simulation: Simulation, caption: str) -> Table:
    with extra("cli"):
        from rich import box
        from rich.table import Table

    stream = simulation.stream
    table = Table(
        title=f"{stream['name']}: {comers(stream)}, {stream['items']:,} items, "
        f"{simulation.slots} slots, {stream['objective']}, {simulation.feedback} feedback"
        + (f", {simulation.waited}" if simulation.waited else "")
        + (f", contexts: {simulation.contexts.said}" if simulation.contexts else ""),
        caption=caption,
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("learner", no_wrap=True)
    return table


def _best_first(simulation: Simulation) -> list[tuple[str, list[Result]]]:
    groups = simulation.by_learner()
    return sorted(groups.items(), key=lambda group: -float(np.mean([run.mean_reward for run in group[1]])))


def share_of(value: float, reference: float) -> str:
    """As a share of the reference, where that is anything."""
    return f"{value / reference:.3f}" if reference > 0 else "-"


def upwards_short(value: float) -> str:
    """A number in a few digits that is not less than it, where there is little room, as 1e-6."""
    return f"{float(rounded_up(as_written(value))):g}".replace("e-0", "e-")
