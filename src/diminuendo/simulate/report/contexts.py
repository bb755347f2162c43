"""The part of a report about contexts: what they are worth, and the slates of each context.

Whatever comes from data goes through `escaped`. Rewards for each type are for evaluation, as all of the report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from diminuendo.simulate.report.html import escaped, table
from diminuendo.simulate.result import Result, Simulation
from diminuendo.simulate.table import BY_TYPE, SHUFFLED, mean_and_band, share_of, worth_of_contexts

MOST_ROWS = 20
"""Values of a column, and slates, in a table: those of most users."""
MOST_NAMED = 4
"""Types that are named where several are shown the same."""
USES = {
    "none": "not used",
    "slates by type": "a slate per context",
    "separate": "a learner per context",
}
"""How learners use contexts, by the word in results."""
PUBLIC = "Here they are public: the guarantee covers feedback, and slates may reveal contexts."
PRIVATE = (
    "Here they are private: what all others see hides a user's context together with their feedback. A user's own "
    "slate follows from their context, and may reveal it to anyone who sees that slate."
)


def contexts_section(simulation: Simulation) -> str:
    """A part of the section of one simulation; empty without contexts."""
    known = simulation.contexts
    if known is None:
        return ""
    said = f"Contexts are what was known of users on arrival. {PRIVATE if known.private else PUBLIC}"
    epsilons = _epsilons(simulation)
    columns = ["learner", *("share" if e is None else f"ε = {e:g}" for e in epsilons), "contexts"]
    caption = "Reward as a share of greedy's, which shows one slate to all users."
    compared = table(caption, columns, _compared(simulation), words=[len(columns) - 1])
    return (
        f"<h3>What contexts are worth</h3><p>{escaped(said)}</p><p>{escaped(worth_of_contexts(simulation))}</p>"
        f"{compared}{_rewards(simulation)}{''.join(_slates(simulation))}"
    )


def _epsilons(simulation: Simulation) -> list[float | None]:
    """The budgets; None alone if no learner uses them."""
    return [*simulation.epsilons] or [None]


def _compared(simulation: Simulation) -> Iterator[list[str]]:
    """Hindsight, then learners, each at every epsilon."""
    known, reference = simulation.contexts, simulation.benchmarks.greedy.value
    assert known is not None
    epsilons = _epsilons(simulation)
    for name, value in (("greedy", reference), (BY_TYPE, known.greedy), (SHUFFLED.strip(), known.shuffled)):
        yield [f"{name}, in hindsight", *[share_of(value, reference)] * len(epsilons), ""]
    for name, runs in simulation.by_learner().items():
        cells = []
        for epsilon in epsilons:
            mean, half = mean_and_band(simulation.shares(simulation.by_learner(epsilon)[name]))
            cells.append(f"{mean:.3f}" + ("" if half != half else f" ± {half:.3f}"))
        yield [name, *cells, USES[runs[0].contexts["use"]]]


def _rewards(simulation: Simulation) -> str:
    """Reward per user of each category: greedy by context, and learners that are private or use contexts."""
    groups = {
        name: runs
        for name, runs in simulation.by_learner(simulation.middle_epsilon).items()
        if runs[0].asked_epsilon is not None or runs[0].contexts["use"] != "none"
    }
    known = simulation.contexts
    assert known is not None
    rows, seen = [], Counter[str]()
    for number, value in enumerate(known.values):
        seen[value["column"]] += 1
        if seen[value["column"]] > MOST_ROWS:
            continue
        means = [
            sum(run.contexts["values"][number]["reward"] for run in runs) / len(runs)
            for runs in groups.values()
        ]
        column = "" if len(known.columns) == 1 else f"{value['column']} "
        named = "not known" if value["value"] is None else value["value"]
        cells = (f"{mean:.3f}" for mean in means)
        rows.append([f"{column}{named}", f"{value['users']:,}", f"{value['greedy']:.3f}", *cells])
    at = "" if simulation.middle_epsilon is None else f" at epsilon {simulation.middle_epsilon:g}"
    most = f", for the {MOST_ROWS} categories of most users" if max(seen.values()) > MOST_ROWS else ""
    return table(f"Reward per user{at}{most}.", ["category", "users", "greedy by context", *groups], rows)


def _slates(simulation: Simulation) -> Iterator[str]:
    """The last slates of each context, in the first run of every learner that has slates per context."""
    for name, runs in simulation.by_learner(simulation.middle_epsilon).items():
        if runs[0].contexts["use"] != "none":
            yield _slate_table(simulation, name, runs[0])


def _slate_table(simulation: Simulation, name: str, run: Result) -> str:
    """Slates in words, each once; bold: items that are not in greedy's global slate."""
    common = simulation.benchmarks.greedy.slate
    kinds: dict[tuple[int, ...], list[dict[str, Any]]] = {}
    for kind in run.contexts["shown"]:
        kinds.setdefault(tuple(kind["slate"]), []).append(kind)
    lines = []
    for slate, some in list(kinds.items())[:MOST_ROWS]:
        items = "; ".join(_item(simulation, item, plain=item in common) for item in slate)
        users = sum(kind["users"] for kind in some)
        lines.append(
            f'<tr><th scope="row">{escaped(_joined(some))}</th><td>{users:,}</td><td class="words">{items}</td></tr>'
        )
    at = "" if simulation.middle_epsilon is None else f" at epsilon {simulation.middle_epsilon:g}"
    caption = f"What {name} shows at the end of its first run{at}, for the contexts of most users."
    head = "".join(f'<th scope="col">{column}</th>' for column in ("contexts", "users", "slate"))
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(caption)}"><table class="wraps"><caption>'
        f"{escaped(caption)} Bold: not in greedy's global slate.</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _joined(kinds: list[dict[str, Any]]) -> str:
    """The contexts that share a slate."""
    named = "; ".join(said_of(kind["context"]) for kind in kinds[:MOST_NAMED])
    more = len(kinds) - MOST_NAMED
    return f"{named}; {more} more" if more > 0 else named


def _item(simulation: Simulation, item: int, *, plain: bool) -> str:
    labels: Sequence[str] | None = simulation.stream.get("labels")
    name = escaped(item if labels is None else labels[item])
    return name if plain else f"<b>{name}</b>"


def said_of(context: dict[str, Any]) -> str:
    """A context in words; of a single feature the category alone."""
    if not context:
        return "unknown"
    return (
        ", ".join(context.values())
        if len(context) == 1
        else ", ".join(f"{k} {v}" for k, v in context.items())
    )
