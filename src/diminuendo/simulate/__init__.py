"""Simulate: learners against streams, with everything known afterwards. Not private."""

from diminuendo.simulate.benchmarks import Benchmarks, benchmarks
from diminuendo.simulate.regret import expert_regrets
from diminuendo.simulate.run import Result, Simulation, simulate

__all__ = ["Benchmarks", "Result", "Simulation", "benchmarks", "expert_regrets", "simulate"]
