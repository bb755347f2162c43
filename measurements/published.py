"""Two published experiments on private slates of sites for Uber pickups, run with this package.

Chaturvedi, Nguyen & Zakynthinou (2021), AAAI: 100 users, 20 sites and 80 copies of one corner. Their sites and their
box are read from the source that they published, where rows of the grid are 1/19 of the box apart. Zadicario & Milo
(2026): 20,000 users, 200 sites and 800 copies; the hull is that of public source that matches their description.
docs/published.md says what was found.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.spatial import Delaunay

from diminuendo import BestMatch, SeededSource, Users, greedy
from diminuendo.offline import private_greedy
from diminuendo.offline.private_greedy import rate_per_tick
from diminuendo.privacy import Budget
from diminuendo.randomness.ticks import TICKS
from diminuendo.simulate.figures.style import COLOURS, INK, WIDTH, style, write
from diminuendo.simulate.table import mean_and_band
from diminuendo.types import Floats
from measurements.pickups import PICKUPS
from measurements.results import DIGITS, rounded
from measurements.streams import check_source

SHA256 = "369d08766db93e4b65e4a45670dce03ed6fe02436a52ffc90b8cf60cc68e05f1"
SLOTS = (10, 16, 25)
EPSILON, DELTA, USERS = 0.1, 1e-3, 100
RUNS = 4
"""Runs for each draw of users, so that 100 draws are 400 runs, as many as they made."""
PRINTED = {
    "greedy": (88.85, 88.85, 88.98),
    "their rate": (76.23, 79.99, 84.90),
    "continuous greedy": (76.17, 81.65, 84.76),
    "random": (72.32, 79.84, 84.17),
}
RERUN = {"greedy": (89.04, 88.95, 88.82), "random": (75.04, 80.39, 84.12)}
"""What they report (results/reported_aaai_exp1.csv in their repository), and a second run that they keep (exp1.csv)."""

FIRST_BOX = SOUTH, WEST, EAST, NORTH = np.array(
    [(40.7, -73.99197), (40.71315, -74.03), (40.80, -73.93), (40.82, -73.96)]
)
SECOND_BOX = np.array([(lat, lon) for lat in (40.743775, 40.814381) for lon in (-74.003862, -73.931548)])
"""The corners of the boxes of their two experiments."""
POLICIES = {
    "greedy": "greedy, not private",
    "G3": "ours, Theorem G3",
    "G1": "ours, Theorem G1, δ = 0",
    "their rate": "their private greedy",
    "continuous greedy": "their continuous greedy",
    "random": "random slates",
}
"""Rows of the table and of the picture. Continuous greedy is not run here."""
VARIANTS = {"": 19, "box of experiment 2": 19, "grid over the whole box": 3}
"""What is varied to explain their numbers -> into how many parts rows divide the box."""

MANY, MANY_SLOTS, MANY_EPSILON, MANY_RUNS = 20_000, 6, 0.2, 30
"""The large task: users, slots, epsilon and runs. Delta is users to the power of -1.5."""
_LATITUDES = (
    *(40.7005038, 40.7112088, 40.7282434, 40.7418214, 40.7754746, 40.7974885, 40.8350989),
    *(40.8713327, 40.8769142, 40.8512745, 40.7607748, 40.7474382, 40.7125758),
)
_LONGITUDES = (
    *(-74.0144209, -73.9776851, -73.9720702, -73.9733576, -73.9430232, -73.9296695, -73.9354202),
    *(-73.9109482, -73.9269985, -73.9448513, -74.0040745, -74.0115323, -74.0182271),
)
MANHATTAN = np.column_stack([_LATITUDES, _LONGITUDES])
"""Corners of the hull within which they take pickups and sites."""


def composed_rate(epsilon: float, delta: float, slots: int) -> float:
    """The rate of both papers: half the epsilon of one pick, by basic or advanced composition, whichever is larger."""
    log = 2 * math.log(1 / delta) / slots
    return max(epsilon / slots, math.sqrt(log + epsilon / slots) - math.sqrt(log)) / 2


def at_rate(rate: float, slots: int) -> Budget:
    """The budget that makes private greedy draw at this rate (Theorem G1, b)."""
    return Budget((slots + 1) * rate, 0.0, accountant="pure")


def budgets(epsilon: float, delta: float, slots: int) -> dict[str, tuple[Budget, str]]:
    """The policies that are compared: their budget, and how private greedy is to count."""
    return {
        "G3": (Budget(epsilon, delta), "telescoping"),
        "G1": (Budget(epsilon, 0.0, accountant="pure"), "pure"),
        "their rate": (at_rate(composed_rate(epsilon, delta, slots), slots), "pure"),
    }


def rates(epsilon: float, delta: float, slots: int) -> dict[str, float]:
    """The rates that they draw at, per user who gains a whole unit."""
    compared = budgets(epsilon, delta, slots)
    return {policy: rate_per_tick(budget, slots, way) * TICKS for policy, (budget, way) in compared.items()}


def nearness(points: Floats, sites: Floats, norm: float) -> Users:
    """Users at points, who like a site by 1 less its L1 distance as a part of `norm`."""
    near = np.subtract.outer(points[:, 0], sites[:, 0])
    np.abs(near, out=near)  # in place: of 20,000 users and 1,000 sites each such table takes 160 MB
    near += np.abs(np.subtract.outer(points[:, 1], sites[:, 1]))
    np.subtract(1.0, np.divide(near, norm, out=near), out=near)
    return Users(BestMatch(), np.maximum(0.0, near, out=near))


def measure(seeds: int) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Values per 100 users: of the small task for every draw of users, and of the large one."""
    check_source("published", PICKUPS, SHA256)
    cells = dict[str, list[float]]()
    for seed in range(seeds):
        for cell, value in one_draw(seed).items():
            cells.setdefault(cell, []).append(value)
    return {cell: rounded(values) for cell, values in cells.items()}, large()


def one_draw(seed: int) -> dict[str, float]:
    """What every policy earns of the 100 users of this draw, as the mean of its runs."""
    rng, earned = np.random.default_rng(seed), dict[str, float]()
    for variant, parts in VARIANTS.items():
        places = pickups("second" if variant == "box of experiment 2" else "first")
        users = nearness(places[rng.choice(len(places), USERS, replace=False)], sites(parts), NORM)
        for slots in SLOTS:
            for policy, values in _runs(users, slots, rng, seed, EPSILON, DELTA, RUNS, private=not variant):
                earned[f"{variant} {policy} {slots}".strip()] = float(np.mean(values))
    return earned


def large() -> dict[str, float]:
    """The large task: the mean value of every policy, and half the width of its 95 % interval."""
    rng, places = np.random.default_rng(0), pickups("Manhattan")
    chosen = places[rng.choice(len(places), MANY, replace=False)]
    pole = MANHATTAN[MANHATTAN[:, 0].argmax()]
    users = nearness(chosen, np.vstack([lattice(MANHATTAN, 200), np.tile(pole, (800, 1))]), 0.26)
    spec = dict[str, float]()
    for policy, values in _runs(users, MANY_SLOTS, rng, 0, MANY_EPSILON, MANY**-1.5, MANY_RUNS):
        middle, half = mean_and_band(values)
        spec |= {policy: float(middle)} | ({} if np.isnan(half) else {f"{policy} ±": float(half)})
    return {fact: round(value, DIGITS) for fact, value in spec.items()}


def _runs(
    users: Users,
    slots: int,
    rng: np.random.Generator,
    seed: int,
    epsilon: float,
    delta: float,
    runs: int,
    *,
    private: bool = True,
) -> Iterator[tuple[str, list[float]]]:
    """Each policy, and the value of its slate in every run, per 100 users."""

    def value(slate: Any) -> float:
        return 100 * float(users.values(slate).mean())

    yield "greedy", [value(greedy(users, slots).slate)]
    for policy, (budget, way) in budgets(epsilon, delta, slots).items() if private else ():
        draw = partial(private_greedy, users, slots, budget=budget, calibration=way)
        yield policy, [value(draw(rng=SeededSource(seed * runs + run)).slate) for run in range(runs)]
    yield "random", [value(rng.choice(users.n_items, slots, replace=False)) for _ in range(runs)]


@cache
def pickups(box: str) -> Floats:
    """Latitude and longitude of the pickups in Manhattan, or of those of April in the box of an experiment."""
    with duckdb.connect() as database:
        table = database.execute("SELECT lat, lon, ts FROM read_csv($1)", [str(PICKUPS)]).fetchnumpy()
    places = np.column_stack([table["lat"], table["lon"]])
    if box == "Manhattan":
        return within(MANHATTAN, places)
    in_april = places[table["ts"].astype("datetime64[M]") == np.datetime64("2014-04")]
    return within(FIRST_BOX if box == "first" else SECOND_BOX, in_april)


NORM = float(np.abs(FIRST_BOX[:, None] - FIRST_BOX).sum(axis=-1).max())
"""The largest L1 distance within the first box."""


def sites(parts: int) -> Floats:
    """Twenty sites in rows of five from the south corner on, and 80 copies of the north corner."""
    grid = [
        SOUTH + (WEST - SOUTH) * row / parts + (EAST - SOUTH) * column / 4
        for row in range(4)
        for column in range(5)
    ]
    return np.vstack([grid, np.tile(NORTH, (80, 1))])


def lattice(corners: Floats, wanted: int) -> Floats:
    """So many points of a square lattice within the convex hull: the widest that has enough, thinned out evenly."""
    low, high = corners.min(axis=0), corners.max(axis=0)
    points, parts = np.empty((0, 2)), 0
    while len(points) < wanted:
        parts += 1
        steps = [np.arange(low[axis], high[axis], (high - low).max() / parts) for axis in (0, 1)]
        points = within(corners, np.stack(np.meshgrid(*steps), axis=-1).reshape(-1, 2))
    thinned: Floats = points[np.linspace(0, len(points) - 1, wanted).astype(int)]
    return thinned


def within(corners: Floats, points: Floats) -> Floats:
    """The points that lie in the convex hull of the corners."""
    inside: Floats = points[Delaunay(corners).find_simplex(points) >= 0]
    return inside


def shown(cells: dict[str, list[float]], spec: dict[str, float]) -> dict[str, Any]:
    """What the picture shows, a panel for each task: title, means and half widths of 95 % intervals, printed means."""
    panels: list[dict[str, Any]] = [
        {
            "title": f"{slots} of 100 sites, ε = {EPSILON:g} (2021)",
            "here": {
                policy: [float(part) for part in mean_and_band(cells[f"{policy} {slots}"])]
                for policy in POLICIES
                if f"{policy} {slots}" in cells
            },
            "printed": {policy: means[place] for policy, means in PRINTED.items()},
        }
        for place, slots in enumerate(SLOTS)
    ]
    large = {policy: [spec[policy], spec.get(f"{policy} ±", 0.0)] for policy in POLICIES if policy in spec}
    title = f"{MANY_SLOTS} of 1,000 sites, ε = {MANY_EPSILON:g} (2026)"
    return {"panels": [*panels, {"title": title, "here": large, "printed": {}}]}


def draw(shown: dict[str, Any], path: Path) -> Path:
    """A row for every policy, a panel for every task: dots are measured here, rings are printed there."""
    with style():
        figure = Figure(figsize=(WIDTH, 7.4), layout="constrained")
        axes_of = figure.subplots(len(shown["panels"]))
        for axes, panel in zip(axes_of, shown["panels"], strict=True):
            for row, policy in enumerate(POLICIES):
                if policy in panel["here"]:
                    mean, half = panel["here"][policy]
                    colour = COLOURS[0] if policy in ("G3", "G1") else INK
                    axes.errorbar(mean, -row, xerr=half, fmt="o", color=colour, markersize=6, capsize=2.5)
                if policy in panel["printed"]:
                    ring = {"color": COLOURS[1], "mfc": "none", "ms": 9, "mew": 1.6}
                    axes.plot(panel["printed"][policy], -row, "o", **ring)
            axes.set_yticks(-np.arange(len(POLICIES)), list(POLICIES.values()))
            axes.set_ylim(0.6 - len(POLICIES), 0.6)
            axes.set_title(panel["title"])
            axes.tick_params(left=False)
            axes.spines["left"].set_visible(False)
        for axes in axes_of[1:-1]:
            axes.sharex(axes_of[0])
        axes_of[-1].set_xlabel("value per 100 users")
        kinds = (("o", INK, INK, "measured here, 95 %"), ("o", COLOURS[1], "none", "printed"))
        dots = [Line2D([], [], ls="", marker=m, color=c, mfc=f, label=said) for m, c, f, said in kinds]
        figure.legend(handles=dots, loc="outside upper right", ncols=2)
        return write(figure, path)
