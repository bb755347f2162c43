"""How much luck is in it: several runs of `private` from rewards and from clicks, each drawn as a dot.

python examples/seeds.py [out/seeds.png] [seeds] [rounds]
"""

import sys

import diminuendo as dim
from diminuendo.simulate import simulate
from diminuendo.simulate.figures.seeds import plot_seeds

given = sys.argv[1:]
out, seeds, rounds = given[0] if given else "out/seeds.png", int(given[1]) if given[1:] else 2, 1_000
users = dim.msweb()[: int(given[2]) if given[2:] else rounds]
groups = {}
for feedback in ("bandit", "click"):
    found = simulate(
        users, slots=5, learners="private", feedback=feedback, epsilon=3.0, seeds=seeds, time_limit=1
    )
    greedy = found.benchmarks.greedy.value
    groups[feedback] = {"epsilon 3": [run.mean_reward / greedy for run in found.results]}
print(plot_seeds(groups, out))
