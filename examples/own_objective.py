"""Mixtures and functions of your own: relevance and variety at once, checked before use."""

import numpy as np

import diminuendo as dim

topics = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1]])  # public: item x topic
family = dim.Mixture((dim.NoisyOr(), dim.Coverage(topics)), shares=(0.7, 0.3))

rng = np.random.default_rng(0)
clicks = rng.random((500, 5)) * (rng.random((500, 5)) < 0.5)
weights = rng.dirichlet([1, 1, 1], size=500)
users = dim.Users(family, (clicks, weights), n_items=5)

assert dim.check(users[0]) is None
best = dim.optimum(users, 2)
print(f"best two items {best.slate}: {best.lower:.4f} per user, proven: {best.proven}")

wants_pairs = dim.Oracle(lambda items: 1.0 if len(items) >= 2 else 0.0, n_items=5)
print("a function that is not submodular:", dim.check(wants_pairs))
