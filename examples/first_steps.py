"""A private learner, a user at a time: the loop that a service runs."""

import diminuendo as dim

users = dim.msweb()[:3000]
setting = dim.Setting(users.n_items, slots=5, rounds=len(users) + 1, feedback="full", epsilon=1.0, delta=1e-6)
learner = dim.make("private", setting)

delay = []
earned = 0.0
for t, user in enumerate(users):
    decision = learner.choose()  # before we know what she wants
    earned += user.value(decision.slate)
    if t % 10 == 0:
        delay.append((decision, user))  # this user answers tomorrow
    else:
        learner.observe(decision, user)  # afterwards: what she wanted
for decision, user in delay:
    learner.observe(decision, user)

saved = learner.snapshot()  # survives a restart; holds what users said, so keep it safe
learner = dim.OverlapGreedy.restore(saved)

best = dim.greedy(users, 5)
print(f"earned {earned / len(users):.3f} per user; greedy in hindsight {best.value:.3f}; {learner.guarantee}")
print("now showing:", ", ".join(users.labels[item] for item in learner.choose().slate if users.labels))
