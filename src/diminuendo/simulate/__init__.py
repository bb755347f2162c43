"""Simulate: learners against streams, with everything known afterwards. Not private."""

from diminuendo._extras import extra

with extra("simulate"):
    from diminuendo.simulate.benchmarks import Benchmarks, benchmarks, expert_regrets
    from diminuendo.simulate.result import Result, Shown, Simulation, Sweep
    from diminuendo.simulate.sweeps import Experiment, simulate, sweep

__all__ = [
    "Benchmarks",
    "Experiment",
    "Result",
    "Shown",
    "Simulation",
    "Sweep",
    "benchmarks",
    "expert_regrets",
    "simulate",
    "sweep",
]
