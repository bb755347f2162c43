"""The page around the sections: one HTML file that needs no other and asks nothing of the network.

Whatever comes from data (names of streams, items, learners) goes through `text`, so that it stays text.

One simulation as a section of the page: what was run, the answer, the guarantee, figures, numbers.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from math import nan
from string import Template

from diminuendo.simulate.figures.over_time import middle_epsilon
from diminuendo.simulate.report.figures import Plate
from diminuendo.simulate.report.text import (
    COLUMNS,
    factor,
    guarantee_sentence,
    headlines,
    main_learner,
    seeded_note,
    table_rows,
)
from diminuendo.simulate.result import Result, Simulation

CAME_BACK = {
    "full": "Afterwards all that she wants came back (full feedback).",
    "bandit": "Afterwards the payoff came back, one number (bandit feedback).",
    "click": "Afterwards it came back which slot she clicked first, if any (click feedback).",
}


def heading(simulation: Simulation) -> str:
    """A name for it, in plain text."""
    stream = simulation.stream
    return (
        f"{stream['name']}: {simulation.slots} of {stream['items']:,} things for {stream['rounds']:,} people"
        + ("" if simulation.feedback == "full" else f", {simulation.feedback} feedback")
    )


def lead(simulation: Simulation) -> str:
    """What was run, in plain text."""
    stream, groups = simulation.stream, simulation.by_learner()
    seeds = len({run.seed for run in simulation.results})
    asked = ", ".join(f"{epsilon:g}" for epsilon in simulation.epsilons)
    return (
        f"{stream['rounds']:,} people of the stream {stream['name']} came one after the other. Each was shown "
        f"{simulation.slots} of {stream['items']:,} things, chosen before it was known what she wants "
        f"({stream['objective']}). {CAME_BACK[simulation.feedback]} {len(groups)} learners did the choosing, "
        f"{seeds} {'time' if seeds == 1 else 'times'} each" + (f", at epsilon {asked}." if asked else ".")
    )


def answer(simulation: Simulation) -> str:
    """The answer in numbers."""
    cards = "".join(f"<li><b>{text(one.share)}</b>{text(one.whose)}</li>" for one in headlines(simulation))
    return (
        f'<ul class="numbers">{cards}</ul><p class="soft">Payoff, as a share of what greedy earns in hindsight, when '
        "it knows all people beforehand and shows one slate to everybody. ±: 95 % interval over runs.</p>"
    )


def promises(simulation: Simulation) -> str:
    """The sentence for the main learner, how it changes with epsilon, and what the others promise."""
    about, middle = main_learner(simulation), middle_epsilon(simulation)
    groups = simulation.by_learner(middle)
    first = groups[about][0]
    parts = [f"<h3>The guarantee</h3><p>{_who(first)}</p>", _quoted(first)]
    if note := seeded_note(first.guarantee):
        parts.append(f'<p class="soft">{text(note)}</p>')
    if others := list(_other_epsilons(simulation, about, middle)):
        parts.append(f"<p>The same sentence for other budgets: {'; '.join(others)}.</p>")
    rest = "".join(
        f"<p>{_who(runs[0])}</p>{_quoted(runs[0])}" for name, runs in groups.items() if name != about
    )
    if rest:
        parts.append(f"<details><summary>What the other learners promise</summary>{rest}</details>")
    return "".join(parts)


def section(simulation: Simulation, plates: Iterable[Plate], anchor: str, *, alone: bool, notice: str) -> str:
    """All of it; `alone` on its page or not. The notice is put before the guarantee."""
    level = "h1" if alone else "h2"
    figures = "".join(_figure(plate, anchor) for plate in plates)
    numbers = table("Means over runs, per person.", COLUMNS, table_rows(simulation))
    return (
        f'<section id="{anchor}"><{level}>{text(heading(simulation))}</{level}>'
        f"<p>{text(lead(simulation))}</p>{answer(simulation)}{notice}{promises(simulation)}{figures}"
        f"<h3>The numbers</h3>{numbers}</section>"
    )


def _figure(plate: Plate, anchor: str) -> str:
    pictures = "".join(
        f'<img src="{picture.address}" alt="{text(picture.alt)}">' for picture in plate.pictures
    )
    return (
        f'<h3 id="{anchor}-{plate.key}">{text(plate.heading)}</h3><figure><div class="pictures">{pictures}'
        f"</div><figcaption>{text(plate.caption)}</figcaption></figure>"
    )


def _who(run: Result) -> str:
    """Whose promise follows."""
    asked = "" if run.asked_epsilon is None else f", asked for epsilon {run.asked_epsilon:g}"
    own = "" if run.played_by == run.learner else f" (played by {text(run.played_by)})"
    return f"<b>{text(run.learner)}</b>{own}{asked}:"


def _quoted(run: Result) -> str:
    return f"<blockquote><p>{text(guarantee_sentence(run.guarantee, visits=run.visits))}</p></blockquote>"


def _other_epsilons(simulation: Simulation, name: str, middle: float | None) -> Iterable[str]:
    for epsilon in simulation.epsilons:
        run = next(
            (run for run in simulation.results if (run.learner, run.asked_epsilon) == (name, epsilon)), None
        )
        if run is not None and epsilon != middle and (run.epsilon or nan) > 0:
            yield f"at epsilon {epsilon:g} the factor is {text(factor(run.epsilon or 0.0))}"


LOST = "\N{REPLACEMENT CHARACTER}"

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
    """The whole file."""
    style = resources.files("diminuendo.simulate.report").joinpath("page.css").read_text(encoding="utf-8")
    return SHELL.substitute(title=text(title), body=body, version=text(version), style=style.strip())


def text(value: object) -> str:
    """Anything as text that stays text, also where a name holds tags, quotes, or signs that no page may hold."""
    return escape("".join(LOST if _unwanted(sign) else sign for sign in str(value)), quote=True)


def _unwanted(sign: str) -> bool:
    """Control signs, and halves of signs."""
    return unicodedata.category(sign) in ("Cc", "Cs") and sign not in "\n\t"


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Numbers in a box that scrolls by itself on narrow screens. The first column says whose they are."""
    head = "".join(f'<th scope="col">{text(column)}</th>' for column in columns)
    lines = []
    for first, *others in rows:
        cells = "".join(f"<td>{text(cell)}</td>" for cell in others)
        lines.append(f'<tr><th scope="row">{text(first)}</th>{cells}</tr>')
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(caption)}"><table>'
        f"<caption>{text(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )
