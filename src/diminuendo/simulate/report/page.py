"""The report as one HTML file that needs no other and asks nothing of the network.

The page has a section for each simulation (what was run, the answer, the guarantee, figures, numbers) and ends with how
to get the same numbers again. Whatever comes from data (names of streams, items, learners) goes through `escaped`, so
that it stays text.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from math import nan
from string import Template

import diminuendo
from diminuendo.learners import LEARNERS
from diminuendo.learners.base.entry import options_in
from diminuendo.privacy.sentence import factor, guarantee_sentence
from diminuendo.simulate.report.contexts import contexts_section
from diminuendo.simulate.report.figures import Plate
from diminuendo.simulate.report.html import escaped, table
from diminuendo.simulate.report.text import (
    COLUMNS,
    headlines,
    seeded_note,
    table_rows,
)
from diminuendo.simulate.result import Result, Simulation
from diminuendo.simulate.table import comers, health_said, main_learner, rules_said

CAME_BACK = {
    "full": "Afterwards all of the user's ratings came back (full feedback).",
    "bandit": "Afterwards one reward for the slate came back (bandit feedback).",
    "click": "Afterwards the slot of the first click came back, if there was one (click feedback).",
}

PAPER = (
    "Sebastian Perez-Salazar and Rachel Cummings (2021). Differentially Private Online Submodular Maximization. "
    "International Conference on Artificial Intelligence and Statistics (AISTATS)."
)

SHELL = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="generator" content="diminuendo $version">
<title>$title</title>
<style>
$style
</style>
</head>
<body>
<main>
$body
</main>
</body>
</html>
""")


def page(title: str, body: str, version: str) -> str:
    """The whole HTML file."""
    style = resources.files("diminuendo.simulate.report").joinpath("page.css").read_text(encoding="utf-8")
    return SHELL.substitute(title=escaped(title), body=body, version=escaped(version), style=style.strip())


def section(simulation: Simulation, plates: Iterable[Plate], anchor: str, *, alone: bool, notice: str) -> str:
    """One simulation, `alone` on its page or not. The notice is put before the guarantee."""
    level = "h1" if alone else "h2"
    figures = {plate.key: _figure(plate, anchor) for plate in plates}
    numbers = table("Means over runs, per user.", COLUMNS, table_rows(simulation))
    return (
        f'<section id="{anchor}"><{level}>{escaped(heading(simulation))}</{level}>'
        f"<p>{escaped(lead(simulation))}</p>{was_read(simulation)}{answer(simulation)}{notice}"
        f"{promises(simulation)}{contexts_section(simulation)}{''.join(figures.values())}"
        f"<h3>The numbers</h3>{numbers}{of_health(simulation)}</section>"
    )


def heading(simulation: Simulation) -> str:
    """A name for it, in plain text."""
    stream = simulation.stream
    return (
        f"{stream['name']}: {simulation.slots} of {stream['items']:,} items for {comers(stream)}"
        + ("" if simulation.feedback == "full" else f", {simulation.feedback} feedback")
        + (f", {simulation.waited}" if simulation.waited else "")
    )


def lead(simulation: Simulation) -> str:
    """What was run, in plain text."""
    stream, groups = simulation.stream, simulation.by_learner()
    seeds = len({run.seed for run in simulation.results})
    budgets = ", ".join(f"{epsilon:g}" for epsilon in simulation.epsilons)
    return (
        f"{comers(stream)} of the stream {stream['name']} arrived one after the other. Each was shown "
        f"{simulation.slots} of {stream['items']:,} items, chosen before their ratings were known "
        f"({stream['objective']}). {CAME_BACK[simulation.feedback]} {len(groups)} learners did the choosing, "
        f"{seeds} {'time' if seeds == 1 else 'times'} each"
        + (f", at epsilon {budgets}." if budgets else ".")
        + (" Pictures and means count every round as a user." if "users" in stream else "")
        + (f" {rules_said(simulation)}" if simulation.rules else "")
        + (f" Context of each user: {simulation.contexts.said}." if simulation.contexts else "")
    )


def of_health(simulation: Simulation) -> str:
    """Whether released rewards show that users responded in time; empty if no learner releases any."""
    said = health_said(simulation)
    return f'<p class="soft">{escaped(said)}</p>' if said else ""


def was_read(simulation: Simulation) -> str:
    """How the file of the stream was read, if it is a table."""
    if "read" not in simulation.stream:
        return ""
    lines = "".join(f"<li>{escaped(line)}</li>" for line in simulation.stream["read"]["said"])
    return f"<details><summary>What was read</summary><ul>{lines}</ul></details>"


def answer(simulation: Simulation) -> str:
    """The answer in numbers."""
    cards = "".join(
        f"<li><b>{escaped(one.share)}</b>{escaped(one.whose)}</li>" for one in headlines(simulation)
    )
    return (
        f'<ul class="numbers">{cards}</ul><p class="soft">Reward, as a share of what greedy earns in hindsight, when '
        "it knows all users beforehand and shows one slate to all users. ±: 95 % interval over runs.</p>"
    )


def promises(simulation: Simulation) -> str:
    """The guarantee of the main learner, its factor for other budgets, and the guarantees of other learners."""
    about, middle = main_learner(simulation), simulation.middle_epsilon
    groups = simulation.by_learner(middle)
    first = groups[about][0]
    parts = [f"<h3>Guarantee</h3><p>{_who(first)}</p>", _quoted(first)]
    if note := seeded_note(first.guarantee):
        parts.append(f'<p class="soft">{escaped(note)}</p>')
    if others := list(_other_epsilons(simulation, about, middle)):
        parts.append(f"<p>The same sentence for other budgets: {'; '.join(others)}.</p>")
    rest = "".join(
        f"<p>{_who(runs[0])}</p>{_quoted(runs[0])}" for name, runs in groups.items() if name != about
    )
    if rest:
        parts.append(f"<details><summary>Guarantees of the other learners</summary>{rest}</details>")
    return "".join(parts)


def _figure(plate: Plate, anchor: str) -> str:
    pictures = "".join(
        f'<img src="{picture.address}" alt="{escaped(picture.alt)}">' for picture in plate.pictures
    )
    return (
        f'<h3 id="{anchor}-{plate.key}">{escaped(plate.heading)}</h3><figure><div class="pictures">{pictures}'
        f"</div><figcaption>{escaped(plate.caption)}</figcaption></figure>"
    )


def _who(run: Result) -> str:
    """A line that names the learner whose guarantee follows."""
    budget = "" if run.asked_epsilon is None else f", at epsilon {run.asked_epsilon:g}"
    own = "" if run.played_by == run.learner else f" (played by {escaped(run.played_by)})"
    origin = LEARNERS.origins.get(options_in(run.played_by)[0])
    plugin = (
        "" if origin is None else f"; from the plugin {escaped(origin.module)}, whose author answers for it"
    )
    return f"<b>{escaped(run.learner)}</b>{own}{budget}{plugin}:"


def _quoted(run: Result) -> str:
    sentence = guarantee_sentence(run.guarantee, max_rounds_per_user=run.max_rounds_per_user)
    return f"<blockquote><p>{escaped(sentence)}</p></blockquote>"


def _other_epsilons(simulation: Simulation, name: str, middle: float | None) -> Iterable[str]:
    for epsilon in simulation.epsilons:
        run = next(
            (run for run in simulation.results if (run.learner, run.asked_epsilon) == (name, epsilon)), None
        )
        if run is not None and epsilon != middle and (run.epsilon or nan) > 0:
            yield f"at epsilon {epsilon:g} the factor is {escaped(factor(run.epsilon or 0.0))}"


def again(command: str | None = None) -> str:
    """The end of the page. `command`: the one that was typed, where there was one."""
    version = diminuendo.__version__
    return (
        f"<footer><h2>The same numbers again</h2><p>diminuendo {escaped(version)}; seeds are whole numbers from 0 on. "
        "The same version with the same seeds gives the same slates and rewards; only users/s differ, and bounds on "
        "the optimum where it was not proven in time.</p>"
        + (f"<pre>{escaped(command)}</pre>" if command else "")
        + f"<h3>How to cite</h3><p>diminuendo, version {escaped(version)}: recommendations that reveal no user. The "
        f"algorithms called paper and fi-dp are from: {escaped(PAPER)}</p></footer>"
    )
