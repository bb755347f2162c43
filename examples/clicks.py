"""All that comes back is which slot was clicked: a private learner in a loop of one's own, and what to log of it.

python examples/clicks.py [rounds]
"""

import sys

import numpy as np

import diminuendo as dim

rounds = int(sys.argv[1]) if sys.argv[1:] else 4_000
visitors = dim.msweb()[:rounds].clicking(
    "cascade", seed=1
)  # they read from the top and click what they wanted
site = dim.Setting(visitors.n_items, slots=5, rounds=rounds, feedback="click", epsilon=1.0)
learner = dim.make("private", site)

log = []  # public: slates, and how likely each was when it was shown
for t in range(rounds):
    decision = learner.choose()
    clicked = visitors.click(t, decision.slate)  # in real life: what the visitor did, or None
    learner.observe(decision, clicked)
    log.append((decision.slate, decision.propensity))

print(f"{learner.guarantee}")
rewards = visitors.values(np.array([slate for slate, _ in log]))  # for evaluation; not private
greedy = dim.greedy(visitors, 5).value
for part, mean in zip(("first", "second", "third", "last"), np.array_split(rewards, 4), strict=True):
    print(f"{part:>6} quarter of the visitors: {mean.mean() / greedy:.2f} of what hindsight gives")
