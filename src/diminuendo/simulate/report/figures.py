"""The pictures of one simulation, each with a text alternative."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from diminuendo.simulate.figures.earned import about, price_figure, regret_figure, reward_figure
from diminuendo.simulate.figures.seeds import seeds_figure
from diminuendo.simulate.figures.slates import MARK, chosen_items, label, shares_of, slates_figure
from diminuendo.simulate.figures.spending import SIGNS, arrival_figure, average, spending_figure, varies
from diminuendo.simulate.figures.style import WIDTH, LineStyle, line_styles, save, style
from diminuendo.simulate.result import Result, Simulation

WHOLE = 200
"""Signs of a name where there is room for it."""


@dataclass(frozen=True)
class Picture:
    """A file, and its text alternative."""

    svg: Path
    alt: str

    @property
    def address(self) -> str:
        """The picture itself as an address, so that the page needs no other file. Nothing in it is executed there."""
        return f"data:image/svg+xml;base64,{b64encode(self.svg.read_bytes()).decode()}"


@dataclass(frozen=True)
class Plate:
    """One figure of the page: pictures with a heading and a caption."""

    key: str
    heading: str
    caption: str
    pictures: list[Picture]


def plates(simulation: Simulation, folder: Path, prefix: str) -> Iterator[Plate]:
    """Draw everything into `folder`, one figure after the other."""
    for make in (_over_time, _price, _budget, _slates):
        with style():
            heading, caption, drawn = make(simulation)
            pictures = [
                Picture(save(figure, folder / f"{prefix}-{name}"), alt) for name, alt, figure in drawn
            ]
        if pictures:
            yield Plate(make.__name__.strip("_").replace("_", "-"), heading, caption, pictures)


DrawnPlate = tuple[str, str, list[tuple[str, str, Figure]]]
"""Heading, caption, and pictures: name of the file, what can be seen, figure."""


def _over_time(simulation: Simulation) -> DrawnPlate:
    runs = simulation.by_learner(simulation.middle_epsilon).items()
    final = ", ".join(f"{name} {np.mean([run.mean_reward for run in group]):.3f}" for name, group in runs)
    lost = ", ".join(
        f"{name} {np.mean([run.regret_to_greedy * run.rounds for run in group]):,.0f}" for name, group in runs
    )
    greedy = simulation.benchmarks.greedy.value
    caption = (
        f"{about(simulation)} Greedy in hindsight shows one slate to all users and knows them all beforehand. "
        "Regret to greedy: what greedy earns in as many rounds, minus what was earned."
    )
    seen = f"Reward per user against users so far. At the end: {final}; greedy {greedy:.3f}."
    seen_lost = f"Regret to hindsight greedy against users so far. At the end: {lost}."
    pictures = [("reward", seen, reward_figure(simulation)), ("regret", seen_lost, regret_figure(simulation))]
    return "Over time", caption, pictures


def _price(simulation: Simulation) -> DrawnPlate:
    epsilons = simulation.epsilons
    worst, runs = _runs(simulation)
    pictures = [("runs", f"Every run; the worst: {worst}.", runs)]
    caption = "Reward as a share of greedy's in hindsight. Each run is a mark; bar: mean; ring: worst."
    if len(epsilons) > 1:
        shares = [f"epsilon {epsilon:g}: {_shares(simulation, epsilon)}" for epsilon in epsilons]
        seen = f"Share of greedy's reward. {'; '.join(shares)}."
        pictures.insert(0, ("price", seen, price_figure(simulation)))
        caption += " Bands: 95 % interval of the mean (Student's t)."
        if any(run.asked_epsilon is None for run in simulation.results):
            caption += " Learners that ignore epsilon are the same for every epsilon."
    return "The price of privacy", caption, pictures


def _shares(simulation: Simulation, epsilon: float) -> str:
    groups = simulation.by_learner(epsilon)
    return ", ".join(f"{name} {simulation.shares(runs).mean():.3f}" for name, runs in groups.items())


def _runs(simulation: Simulation) -> tuple[str, Figure]:
    groups: dict[str, dict[str, list[float]]] = {}
    rows: dict[str, LineStyle] = {}
    look = line_styles(simulation.by_learner())
    for run in simulation.results:
        name = run.learner if run.asked_epsilon is None else f"{run.learner}, ε {run.asked_epsilon:g}"
        groups.setdefault(name, {"": []})[""].append(float(simulation.shares([run])[0]))
        rows[name] = look[run.learner]
    worst = ", ".join(f"{name} {min(runs['']):.3f}" for name, runs in groups.items())
    return worst, seeds_figure(groups, "share of greedy", width=WIDTH, rows=rows)


def _budget(simulation: Simulation) -> DrawnPlate:
    epsilon = simulation.middle_epsilon
    groups = simulation.by_learner(epsilon).items()
    spent = {name: runs[0].spending for name, runs in groups if runs[0].spending}
    if not spent:
        return "Budget by purpose", "", []
    said = "; ".join(
        f"{name}: " + ", ".join(f"{record['what']} {average(record):.1%}" for record in records)
        for name, records in spent.items()
    )
    pictures = [("budget", f"Charged for the average round. {said}.", spending_figure(spent))]
    for name, records in spent.items():
        if varies(records):
            alt = f"What {name} charges a round, by when it was."
            pictures.append((f"arrival-{name}", alt, arrival_figure(name, records)))
    pure, rho, square = (SIGNS[unit] for unit in ("epsilon", "rho", "mu^2"))
    caption = (
        f"At epsilon {epsilon:g}: what the feedback of one round is charged for, as a share of {_whole(simulation)}. "
        f"Costs add up in the unit in brackets: {pure} where privacy is pure, {square} where noise is Gaussian, else "
        f"{rho} (zCDP). What is not charged is not used. All of it is public, and fixed before the first user arrives."
    )
    return "Budget by purpose", caption, pictures


def _whole(simulation: Simulation) -> str:
    """What charges of one round are shares of."""
    max_rounds_per_user = simulation.results[0].max_rounds_per_user
    if max_rounds_per_user == 1:
        return "the budget asked for"
    return f"what one round of a user may cost; up to {max_rounds_per_user:,} rounds of one user share it"


def _slates(simulation: Simulation) -> DrawnPlate:
    epsilon = simulation.middle_epsilon
    runs = [group[0] for name, group in simulation.by_learner(epsilon).items() if name != "random"]
    items = chosen_items(simulation, runs)
    slate = "; ".join(label(simulation, int(item), WHOLE) for item in simulation.benchmarks.greedy.slate)
    at = "" if epsilon is None else f", private learners at epsilon {epsilon:g}"
    caption = (
        f"The first run of each{at}. Darker: shown to more of the users of that time. "
        f"{MARK.strip()} in hindsight greedy shows {slate}."
    )
    if any(np.isnan(shares_of(run, items)).any() for run in runs):
        caption += " Grey: not among the most shown items of the run; when it was shown is not recorded."
    pictures = [
        (f"slates-{run.learner}", _seen(simulation, run), slates_figure(simulation, run, items))
        for run in runs
    ]
    return "Slates over time", caption, pictures


def _seen(simulation: Simulation, run: Result) -> str:
    both = zip(run.shown.items, run.shown.shares, strict=True)
    most = [f"{label(simulation, item, WHOLE)} {part[-1]:.0%}" for item, part in both]
    return f"Which items {run.learner} showed when. At the end, of users: {', '.join(most[: run.slots])}."
