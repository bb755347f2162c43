"""Blocks of pages: tables and sentences, each rendered from the entries that it names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from diminuendo.simulate.table import mean_and_band
from measurements import published as papers
from measurements.entries import ENTRIES, TABLE
from measurements.results import Kept, Results

FULL = {
    "full-msweb": "MSWeb: 32,711 visitors, 294 areas",
    "full-groceries": "groceries: 9,835 baskets, 169 products",
    "full-uber": "Uber: 20,000 pickups, 150 depots",
    "full-taste-groups": "taste groups: 50,000 simulated users, 100 items",
    "full-renamed": "MSWeb, all items renamed at half time (best *fixed* slate = 1)",
    "full-movielens": "MovieLens: 671 users, 300 films †",
}
LESS = {
    "rewards-taste-groups": "rewards, taste groups: 300,000 simulated users, 50 items",
    "rewards-uber": "rewards, Uber: 65,000 pickups, 150 depots",
    "rewards-msweb": "rewards, MSWeb: 32,711 visitors, 294 areas",
    "clicks-msweb": "clicks, MSWeb",
    "clicks-groceries": "clicks, groceries: 9,835 baskets, 169 products",
    "clicks-uber": "clicks, Uber: 20,000 pickups, 150 depots",
    "clicks-renamed": "clicks, MSWeb, all items renamed at half time (best *fixed* slate = 1)",
}
HELD_OUT = {
    "held-out-retail": "retail: 88,162 baskets, 500 products",
    "held-out-jester5k": "Jester: 5,000 readers, 100 jokes",
    "held-out-uk-accidents": "road accidents: 20,000 accidents, 300 depots",
    "held-out-rewards-retail": "rewards, retail",
    "held-out-rewards-jester5k": "rewards, Jester",
    "held-out-rewards-uk-accidents": "rewards, road accidents",
    "held-out-clicks-retail": "clicks, retail",
    "held-out-clicks-jester5k": "clicks, Jester",
    "held-out-clicks-uk-accidents": "clicks, road accidents",
}
CONTEXTS = {
    "contexts-entry": "MSWeb, context: the area of entry, 294 categories",
    "contexts-labels": "taste groups, context: a label that is right nine times in ten",
    "contexts-chance": "taste groups, context: a label without information",
}
"""Rows of the tables in docs/results.md, by entry."""


class Compared(NamedTuple):
    """A row of README's table."""

    private: str
    """The entry that has `private` and random slates."""
    yardstick: str
    """The entry that has the non-private learner."""
    stream: str


FRONT = (
    Compared("clicks-msweb", "yardstick-clicks-msweb", "clicks, MSWeb: 32,711 visitors, 294 areas"),
    Compared(
        "clicks-groceries", "yardstick-clicks-groceries", "clicks, groceries: 9,835 baskets, 169 products"
    ),
    Compared(
        "held-out-clicks-retail", "yardstick-clicks-retail", "clicks, retail †: 88,162 baskets, 500 products"
    ),
    Compared(
        "held-out-clicks-jester5k", "yardstick-clicks-jester5k", "clicks, Jester †: 5,000 readers, 100 jokes"
    ),
    Compared(
        "held-out-clicks-uk-accidents",
        "yardstick-clicks-uk-accidents",
        "clicks, accidents †: 20,000 accidents, 300 depots",
    ),
    Compared("rewards-msweb", "yardstick-rewards-msweb", "one reward per slate, MSWeb"),
    Compared("held-out-rewards-retail", "yardstick-rewards-retail", "one reward per slate, retail †"),
    Compared("full-msweb", "yardstick-full-msweb", "full information, MSWeb"),
    Compared("held-out-retail", "yardstick-full-retail", "full information, retail †"),
)

DEMO_EPSILONS = ("0.1", "1", "10")
WAYS = {
    "boosted, Gaussian": "boosted, Gaussian (delta = 1e-6)",
    "boosted, pure": "boosted, pure",
    "Algorithm 4, Gaussian": "Algorithm 4, Gaussian, copies released together (delta = 1e-6)",
    "Algorithm 4, pure": 'Algorithm 4, pure, `calibration="tight"`',
    "Algorithm 4, pure, the paper's constants": 'Algorithm 4, pure, `calibration="paper"`',
}
"""Rows of the table of continuous learners."""
WAY_EPSILONS = ("0.1", "0.3", "1", "3", "10")
AUDIT_SHOWN = ("random", "fi-dp", "overlap-greedy", "lazy-hedge", "slate-totals", "slate-clicks")
"""Of whom docs/auditing.md shows the lines as they are printed."""


@dataclass(frozen=True)
class Block:
    """What stands between two markers, and whence it comes."""

    entries: tuple[str, ...]
    render: Callable[[Results], str]


def number(value: float, digits: int = 3) -> str:
    """A number as pages write shares: .907, and 1.203."""
    said = f"{value:.{digits}f}"
    return said.removeprefix("0") if said.startswith("0.") else said


def mean(values: Sequence[float]) -> str:
    """The mean and half the width of its 95 % interval."""
    middle, half = mean_and_band(values)
    return number(float(middle)) + ("" if np.isnan(half) else f" ± {number(float(half))}")


def runs(kept: Iterable[Kept]) -> str:
    """How many runs there were of each, as the results say."""
    seeds = sorted({one.seeds for one in kept})
    return f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"


def commands(names: Iterable[str], results: Results) -> str:
    """What to type, folded away."""
    lines = dict.fromkeys(ENTRIES[name].command(results[name].seeds) for name in names)
    return "\n".join(
        ["<details><summary>The commands</summary>", "", "```sh", *lines, "```", "", "</details>", ""]
    )


def shares(rows: dict[str, str], caption: str) -> Callable[[Results], str]:
    """A table of what `private` earns with two budgets, and random choice."""

    def render(results: Results) -> str:
        lines = [
            f"\n{caption.format(runs=runs(results[name] for name in rows))}\n",
            "| stream | epsilon 1 | median | worst | epsilon .1 | median | worst | random |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for name, users in rows.items():
            cells = results[name].cells
            parts = [users]
            for epsilon in ("1", "0.1"):
                values = cells[f"private {epsilon}"]
                parts += [mean(values), number(float(np.median(values))), number(min(values))]
            lines.append(f"| {' | '.join([*parts, number(float(np.mean(cells['random'])))])} |")
        return "\n".join([*lines, "", commands(rows, results)])

    return render


def front(results: Results) -> str:
    """README's table: `private` with two budgets beside the non-private learner and random slates."""
    lines = [
        "",
        "| feedback and stream | `private`, ε = 1 | `private`, ε = .1 | not private | random |",
        "|---|---|---|---|---|",
    ]
    for row in FRONT:
        cells = results[row.private].cells
        shown = [
            f"{number(float(np.mean(values)))} ({number(min(values))})"
            for values in (
                cells["private 1"],
                cells["private 0.1"],
                next(
                    iter(results[row.yardstick].cells.values())
                ),  # of one learner, and one budget if it plans by it
            )
        ]
        lines.append(f"| {' | '.join([row.stream, *shown, number(float(np.mean(cells['random'])))])} |")
    footnote = (
        "† Held out: no constant was chosen on this stream. Constants were chosen on MSWeb, groceries, Uber and "
        "simulations, in part with this table's seeds."
    )
    return "\n".join([*lines, "", footnote, ""])


def contexts(results: Results) -> str:
    """A table of what `private` earns with contexts and without, with two budgets."""
    lines = [
        "",
        f"Share of hindsight with one global slate (mean of {runs(results[name] for name in CONTEXTS)} runs ± 95 %, "
        "and worst run). Constants were chosen on these streams too:",
        "",
        "| stream | epsilon 1, one slate | worst | slate per context | worst | epsilon .1, one slate | worst | "
        "slate per context | worst |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, users in CONTEXTS.items():
        cells, parts = results[name].cells, [users]
        for epsilon in ("1", "0.1"):
            for learner in ("private-no-contexts", "private"):
                values = cells[f"{learner} {epsilon}"]
                parts += [mean(values), number(min(values))]
        lines.append(f"| {' | '.join(parts)} |")
    return "\n".join([*lines, "", commands(CONTEXTS, results)])


def demo(results: Results) -> str:
    """The table as the demo prints it, and how lucky one has to be."""
    kept = results["demo"]
    learners = list(dict.fromkeys(cell.split(" ")[0] for cell in kept.cells))
    runs_of = {
        learner: [kept.cells.get(f"{learner} {e}", kept.cells.get(learner, [])) for e in DEMO_EPSILONS]
        for learner in learners
    }
    best_first = sorted(learners, key=lambda name: -float(np.mean(runs_of[name])))
    lines = ["", "```", f" {'learner':<11}" + "".join(f"{f'ε={e}':>12}" for e in DEMO_EPSILONS)]
    for name in best_first:
        cells = []
        for values in runs_of[name]:
            middle, half = mean_and_band(values)
            cells.append(f"{middle:.3f}" + ("" if np.isnan(half) else f"±{number(float(half))}"))
        lines.append(f" {name:<11}" + "".join(f"{said:>12}" for said in cells))
    worst = [number(min(values)) for values in runs_of["private"]]
    return "\n".join(
        [
            *lines,
            "```",
            "",
            "The reward is the share of visitors who were shown something they wanted. The table divides it by "
            f"{number(kept.spec['greedy'], 4)}, the reward of greedy selection when it knows all visitors beforehand;",
            f"no five areas do better (proved). Means of {kept.seeds} runs, ± 95 % (`{kept.command}`; without "
            f"`--seeds` it makes five). The worst run of `private` earns {', '.join(worst[:-1])} and {worst[-1]}.",
            "",
        ]
    )


def paper_warning(results: Results) -> str:
    """What the paper's constants earn, within the warning against them."""
    kept = results["paper-constants"]
    greedy, at = kept.spec["greedy"], kept.cells
    paper, tight, chance = (
        number(greedy * float(np.mean(at[cell]))) for cell in ("paper 1", "fi-dp 1", "random")
    )
    return (
        f"means of {kept.seeds} runs) Algorithm 2 with the printed rate earns {paper} per user, random slates "
        f"{chance}, greedy in hindsight {number(greedy)}, and the same algorithm with the largest rate that the same "
        f"guarantee allows {tight}"
    )


def paper_constants(results: Results) -> str:
    """The sentence below the picture."""
    kept = results["paper-constants"]
    paper, tight, chance, without = (
        mean(kept.cells[cell]) for cell in ("paper 1", "fi-dp 1", "random", "streeter-golovin")
    )
    return (
        "\nOn msweb at epsilon = 1, delta = 1e-6, as shares of what greedy in hindsight earns: the paper's constants "
        f'{paper}, `calibration="tight"` {tight}, random slates {chance}, not private (what the paper builds on) '
        f"{without}. Means of {kept.seeds} runs, ± 95 %; `{kept.command}`.\n"
    )


def continuous(results: Results) -> str:
    """The table of continuous learners."""
    kept = results["continuous"]
    without = number(float(np.mean(kept.cells["boosted, not private"])), 2)
    lines = [
        "",
        f"The picture is one synthetic stream, T = 4,000: means of {kept.seeds} seeds, and in brackets the worst, as "
        "shares of the best fixed point found in hindsight (`examples/continuous.py`, over all seeds by "
        f"`{kept.command}`). Spreading the budget evenly, without learning, earns "
        f"{number(kept.spec['spread evenly'], 2)}; without privacy boosted ascent earns {without} and Algorithm 4 "
        f"{number(kept.spec['Algorithm 4, not private'], 2)}:",
        "",
        "| epsilon | .1 | .3 | 1 | 3 | 10 |",
        "|---|---|---|---|---|---|",
    ]
    for way, said in WAYS.items():
        cells = [kept.cells[f"{way} {epsilon}"] for epsilon in WAY_EPSILONS]
        shown = [f"{number(float(np.mean(values)), 2)} ({number(min(values), 2)})" for values in cells]
        lines.append(f"| {said} | {' | '.join(shown)} |")
    spread = [
        number(float(np.std(kept.cells[f"{way} {epsilon}"], ddof=1)) if kept.seeds > 1 else 0.0)
        for way in ("boosted, Gaussian", "Algorithm 4, Gaussian")
        for epsilon in ("0.1", "1")
    ]
    return "\n".join(
        [
            *lines,
            "",
            f"Single runs of boosted ascent vary more than those of Algorithm 4, both Gaussian: a deviation of "
            f"{spread[0]} at epsilon .1 and {spread[1]} at 1, against {spread[2]} and {spread[3]}.",
            "",
        ]
    )


def audit_lines(results: Results) -> str:
    """Some lines of an audit as they are printed."""
    kept = results["audit"]
    lines = ["", "```", f" {'learner':<17}{'claimed':>9}{'exact':>9}{'pathwise':>10}{'black box':>11}"]
    for name in AUDIT_SHOWN:
        claimed, exact, pathwise, guessed = kept.rows[name]
        lines.append(f" {name:<17}{claimed:>9}{exact:>9}{pathwise:>10}{guessed:>11}")
    return "\n".join([*lines, "```", ""])


def audit_reading(results: Results) -> str:
    """One line of it in words."""
    claimed, _, pathwise, guessed = results["audit"].rows["slate-totals"]
    return (
        f"slate-totals claimed {claimed}; an attacker who looks inside can show at least {pathwise}, one who only "
        f"looks on at least {guessed}"
    )


def audit_table(name: str, first: str) -> Callable[[Results], str]:
    """All rows of an audit."""

    def render(results: Results) -> str:
        lines = ["", f"| {first} | claimed | exact | pathwise | black box |", "|---|---|---|---|---|"]
        lines += [f"| {subject} | {' | '.join(cells)} |" for subject, cells in results[name].rows.items()]
        return "\n".join([*lines, ""])

    return render


def published(results: Results) -> str:
    """Two published experiments: what policies earn here, and what was printed."""
    kept, slots = results["published"], papers.SLOTS
    heads = [head for k in slots for head in (f"{k} of 100", "printed")]
    lines = [
        "",
        f"| value per 100 users | {' | '.join(heads)} | 6 of 1,000 |",
        "|---" * (len(heads) + 2) + "|",
    ]
    for policy, said in papers.POLICIES.items():
        parts, printed = [said], papers.PRINTED.get(policy)
        for place, k in enumerate(slots):
            runs_of = kept.cells.get(f"{policy} {k}")
            parts += [
                _value(*mean_and_band(runs_of)) if runs_of else "-",
                f"{printed[place]:.2f}" if printed else "-",
            ]
        large = kept.spec.get(policy)
        parts.append("-" if large is None else _value(large, kept.spec.get(f"{policy} ±", np.nan)))
        lines.append(f"| {' | '.join(parts)} |")
    small = papers.rates(papers.EPSILON, papers.DELTA, slots[0])
    many = papers.rates(papers.MANY_EPSILON, papers.MANY**-1.5, papers.MANY_SLOTS)
    named = {"G3": "G3", "G1": "G1", "their rate": "theirs"}
    said_of = [
        ", ".join(f"{said} {number(at[policy], 4)}" for policy, said in named.items()) for at in (small, many)
    ]
    return "\n".join(
        [
            *lines,
            "",
            f"Rates, per user who gains a whole unit: with 10 of 100 {said_of[0]}; with 6 of 1,000 {said_of[1]}, so "
            f"ours is {max(many.values()) / many['their rate']:.2f} times theirs. Means ± 95 %: {kept.seeds} draws of "
            f"100 users, {papers.RUNS} runs on each; of the large task {papers.MANY_RUNS} runs (`{kept.command}`).",
            "",
        ]
    )


def _value(mean: float, half: float) -> str:
    """A value per 100 users, as the papers print it."""
    return f"{mean:.2f}" + ("" if np.isnan(half) else f" ± {half:.2f}")


def published_variants(results: Results) -> str:
    """What explains the printed numbers of greedy and of random slates, and what does not."""
    cells = results["published"].cells
    heads = [f"{policy}, {k}" for policy in ("greedy", "random") for k in papers.SLOTS]
    lines = ["", f"| | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for said, printed in (("printed", papers.PRINTED), ("their second run", papers.RERUN)):
        parts = [f"{value:.2f}" for policy in ("greedy", "random") for value in printed[policy]]
        lines.append(f"| {said} | {' | '.join(parts)} |")
    for variant in papers.VARIANTS:
        keys = [f"{variant} {policy} {k}".strip() for policy in ("greedy", "random") for k in papers.SLOTS]
        parts = [_value(*mean_and_band(cells[key])) for key in keys]
        lines.append(f"| {variant or 'here, as their source does it'} | {' | '.join(parts)} |")
    return "\n".join([*lines, ""])


def everything(results: Results) -> str:
    """Every entry with its command, but for those whose commands stand beside a table of docs/results.md."""
    lines = ["", "| entry | command | runs |", "|---|---|---|"]
    for entry in TABLE:
        if entry.name in results and entry.name not in {*FULL, *HELD_OUT, *LESS, *CONTEXTS}:
            seeds = results[entry.name].seeds
            lines.append(f"| {entry.name} | `{entry.command(seeds)}` | {seeds or ''} |")
    return "\n".join([*lines, ""])


BLOCKS = {
    "front": Block(tuple(name for row in FRONT for name in row[:2]), front),
    "demo": Block(("demo",), demo),
    "contexts": Block(tuple(CONTEXTS), contexts),
    "full": Block(
        tuple(FULL),
        shares(
            FULL,
            "Share of hindsight (5 slots, delta 1e-6; mean of {runs} runs ± 95 %, median and worst run). Constants "
            "were chosen on MSWeb, groceries, Uber and simulated streams, in part with the seeds of this table. † No "
            "constant was chosen on this stream:",
        ),
    ),
    "held-out": Block(
        tuple(HELD_OUT),
        shares(
            HELD_OUT,
            "No constant was chosen on these streams, for any kind of feedback. They are measured to be reported; no "
            "decision depends on them. Share of hindsight (5 slots, delta 1e-6 with full information, else 0; mean "
            "of {runs} runs ± 95 %, median and worst run):",
        ),
    ),
    "less": Block(
        tuple(LESS),
        shares(
            LESS,
            "Share of hindsight (5 slots, delta 0; mean of {runs} runs ± 95 %, median and worst run: single runs "
            "vary). Constants were chosen on simulated streams, and in part on MSWeb and Uber:",
        ),
    ),
    "paper-warning": Block(("paper-constants",), paper_warning),
    "paper-constants": Block(("paper-constants",), paper_constants),
    "continuous": Block(("continuous",), continuous),
    "audit-lines": Block(("audit",), audit_lines),
    "audit-reading": Block(("audit",), audit_reading),
    "audit": Block(("audit",), audit_table("audit", "learner")),
    "published": Block(("published",), published),
    "published-variants": Block(("published",), published_variants),
    "everything": Block((), everything),
}
"""By the name in the marker."""
