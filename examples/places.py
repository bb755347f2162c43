"""Where to put three depots for users scattered over a city."""

import numpy as np

import diminuendo as dim

rng = np.random.default_rng(1)
centres = np.array([[52.52, 13.40], [52.50, 13.33], [52.49, 13.45]])
points = centres[rng.integers(0, 3, 4000)] + rng.normal(0, 0.01, size=(4000, 2))

sites = dim.grid(52.45, 52.56, 13.28, 13.50, rows=8, columns=8)  # fixed beforehand: looks at nobody
users = dim.from_places(points, sites, reach_km=3.0)

learner = dim.OrderedExperts(users.n_items, slots=3)
reward = users.values(learner.replay(users)).mean()
print(f"online {reward:.3f}, greedy {dim.greedy(users, 3).value:.3f}, best {dim.optimum(users, 3).upper:.3f}")
