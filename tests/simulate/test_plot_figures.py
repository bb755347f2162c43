"""What is drawn is what was found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from diminuendo.simulate import Shown, Simulation
from diminuendo.simulate.figures.earned import curves, plot_reward, price_figure, regret_figure, reward_figure
from diminuendo.simulate.figures.slates import NOT_KEPT, chosen_items, shares_of, slates_figure
from diminuendo.simulate.figures.spending import arrival_figure, average, spending_figure, varies
from diminuendo.simulate.figures.style import line_styles, style
from diminuendo.simulate.result import items_kept
from diminuendo.types import Floats
from tests.simulate.specimens import small, tiny


@pytest.fixture(autouse=True)
def in_style() -> Iterator[None]:
    with style():
        yield


def line_of(axes: Axes, colour: str) -> tuple[Floats, Floats]:
    """Where the one line of that colour runs."""
    (line,) = [line for line in axes.lines if line.get_color() == colour]
    return np.asarray(line.get_xdata(), dtype=np.float64), np.asarray(line.get_ydata(), dtype=np.float64)


def rewards(simulation: Simulation, name: str, epsilon: float | None) -> Floats:
    return np.array(
        [r.mean_reward for r in simulation.results if (r.learner, r.asked_epsilon) == (name, epsilon)]
    )


def test_the_epsilon_nearest_to_one_is_drawn() -> None:
    assert small().middle_epsilon == 1.0
    assert tiny(epsilons=(0.1, 5.0)).middle_epsilon == 5.0
    assert tiny(learners=("random",)).middle_epsilon is None


def test_lines_over_time_end_where_the_numbers_are() -> None:
    simulation, greedy = small(), small().benchmarks.greedy.value
    earned, lost = reward_figure(simulation).axes[0], regret_figure(simulation).axes[0]
    for name, look in line_styles(simulation.by_learner()).items():
        reward = rewards(simulation, name, None if name in ("nonprivate", "random") else 1.0).mean()
        for axes, expected in ((earned, reward), (lost, 1_500 * (greedy - reward))):
            at, line = line_of(axes, look.colour)
            assert at[-1] == 1_500
            assert line[-1] == pytest.approx(expected)
    assert len(earned.collections) == len(lost.collections) == 5, "a band each"


def test_who_gains_on_hindsight_is_drawn_on_plain_axes() -> None:
    simulation = tiny()
    assert regret_figure(simulation).axes[0].get_yscale() == "log"
    (run,) = simulation.results
    ahead = replace(run, curve=[2.0 * x for x in range(len(run.curve))])
    assert regret_figure(replace(simulation, results=[ahead])).axes[0].get_yscale() == "linear"


def test_the_price_of_privacy() -> None:
    simulation = small()
    axes, greedy = price_figure(simulation).axes[0], simulation.benchmarks.greedy.value
    look = line_styles(simulation.by_learner())
    at, private = line_of(axes, look["private"].colour)
    expected = [rewards(simulation, "private", epsilon).mean() / greedy for epsilon in (1.0, 10.0)]
    np.testing.assert_allclose(at, [1, 10])
    np.testing.assert_allclose(private, expected)
    _, level = line_of(axes, look["nonprivate"].colour)
    np.testing.assert_allclose(level, rewards(simulation, "nonprivate", None).mean() / greedy)
    said = {text.get_text() for text in axes.texts}
    assert said == {*simulation.by_learner(), "greedy in hindsight"}


def test_bars_are_as_long_as_the_charges() -> None:
    runs = {name: group[0].spending for name, group in small().by_learner(1.0).items()}
    figure = spending_figure(runs)
    bars = [bar.get_width() for bar in figure.axes[0].patches if isinstance(bar, Rectangle)]
    charged = [average(record) for records in runs.values() for record in records]
    np.testing.assert_allclose(bars, charged)
    assert average({"until": [1, 4], "shares": [1.0, 0.2]}) == pytest.approx(0.4)
    assert varies(runs["private"])
    assert not varies(runs["fi-dp"])
    steps = arrival_figure("private", runs["private"]).axes[0].patches
    top = steps[-1].get_data()  # type: ignore[attr-defined]
    np.testing.assert_allclose(top.values, np.sum([record["shares"] for record in runs["private"]], axis=0))


def test_slates_show_who_was_shown_what() -> None:
    simulation = small()
    run = simulation.by_learner(1.0)["private"][0]
    items = chosen_items(simulation, [run])
    assert items[:3] == list(simulation.benchmarks.greedy.slate)
    one, other, *_ = run.shown.items
    few = replace(run, shown=Shown([one], run.shown.ends, run.shown.shares[:1]))
    figure = slates_figure(simulation, few, [other, one])
    (mesh,) = [part for part in figure.axes[0].collections if isinstance(part, QuadMesh)]
    np.testing.assert_allclose(
        np.asarray(mesh.get_array()), [[0.0] * len(run.shown.ends), run.shown.shares[0]]
    )


def test_what_was_not_kept_is_not_drawn_as_shown_to_nobody() -> None:
    simulation = small()
    run = simulation.by_learner(1.0)["private"][0]
    kept = list(range(items_kept(run.slots)))
    full = replace(run, shown=Shown(kept, [1_500], [[0.3]] * len(kept)))
    fewer = replace(run, shown=Shown(kept[:-1], [1_500], [[0.3]] * (len(kept) - 1)))
    np.testing.assert_array_equal(shares_of(full, [0, 99]), [[0.3], [np.nan]])
    np.testing.assert_array_equal(shares_of(fewer, [0, 99]), [[0.3], [0.0]])
    figure = slates_figure(simulation, full, [0, 11])
    (mesh,) = [part for part in figure.axes[0].collections if isinstance(part, QuadMesh)]
    assert to_hex(tuple(mesh.get_cmap().get_bad())) == NOT_KEPT


def test_who_shows_everything_alike_does_not_choose_the_items() -> None:
    simulation = tiny()
    (run,) = simulation.results
    flat = replace(run, shown=Shown([7, 8], [300], [[2 / 10], [2 / 10]]))
    steep = replace(run, shown=Shown([3], [300], [[1.0]]))
    slate = set(simulation.benchmarks.greedy.slate)
    assert set(chosen_items(simulation, [flat, steep])) == slate | {3}


def test_the_picture_of_the_read_me(tmp_path: Path) -> None:
    drawn = plot_reward(curves(small()), tmp_path / "deep" / "reward.png")
    assert drawn.read_bytes().startswith(b"\x89PNG")
