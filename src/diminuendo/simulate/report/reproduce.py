"""How to get the same numbers again, and how to cite them."""

from __future__ import annotations

import shlex

import diminuendo
from diminuendo.objectives import NoisyOr
from diminuendo.simulate.report.page import text
from diminuendo.simulate.result import Simulation
from diminuendo.streams.builtin import BUILTIN, FROM_ROWS

PAPER = (
    "Sebastian Perez-Salazar and Rachel Cummings (2021). Differentially Private Online Submodular Maximization. "
    "International Conference on Artificial Intelligence and Statistics (AISTATS)."
)


def again(simulations: list[Simulation], typed: str | None = None) -> str:
    """The end of the page. `typed`: the command that was given, where there was one."""
    version = diminuendo.__version__
    commands = typed or "\n".join(dict.fromkeys(command(simulation) for simulation in simulations))
    files = typed is None and any(simulation.stream["name"] not in BUILTIN for simulation in simulations)
    return (
        f"<footer><h2>The same numbers again</h2><p>diminuendo {text(version)}; seeds are whole numbers from 0 on. The "
        "same version with the same seeds gives the same slates and payoffs; only people/s differ, and bounds on the "
        "optimum where it was not proven in time.</p>"
        f"<pre>{text(commands)}</pre>"
        + (
            "<p>A stream that is not built in stands there by its name; give its file instead.</p>"
            if files
            else ""
        )
        + f"<h3>How to cite</h3><p>diminuendo, version {text(version)}: private online choice. The algorithms called "
        f"paper and fi-dp are from: {text(PAPER)}</p></footer>"
    )


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
    words += ["--learners", ",".join(simulation.by_learner())]
    if private:
        words += ["--epsilon", ",".join(map(_written, simulation.epsilons))]
        words += ["--delta", _written(private[0].asked_delta or 0.0)]
    if first.visits > 1:
        words += ["--visits", str(first.visits)]
    words += ["--seeds", str(len({run.seed for run in simulation.results}))]
    return shlex.join(str(word) for word in words)


def _written(number: float) -> str:
    """All its digits, and no more."""
    return repr(float(number)).removesuffix(".0")
