"""A private learner, a person at a time: the loop that a service runs."""

import diminuendo as dim

people = dim.msweb()[:3000]
setting = dim.Setting(
    people.n_items, slots=5, rounds=len(people) + 1, feedback="full", epsilon=1.0, delta=1e-6
)
learner = dim.make("private", setting)

late = []
earned = 0.0
for t, person in enumerate(people):
    decision = learner.choose()  # before we know what she wants
    earned += person.value(decision.slate)
    if t % 10 == 0:
        late.append((decision, person))  # this person answers tomorrow
    else:
        learner.observe(decision, person)  # afterwards: what she wanted
for decision, person in late:
    learner.observe(decision, person)

saved = learner.snapshot()  # survives a restart; holds what people said, so keep it safe
learner = dim.OverlapGreedy.restore(saved)

best = dim.greedy(people, 5)
print(
    f"earned {earned / len(people):.3f} per person; greedy in hindsight {best.value:.3f}; {learner.guarantee}"
)
print("now showing:", ", ".join(people.labels[item] for item in learner.choose().slate if people.labels))
