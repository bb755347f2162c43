"""Would another slate have done better? Asked of a log of random slates, on six pages of a real site.

Visitors are shown two of six pages at random, and decisions are logged with their propensities. Then every pair of
pages is judged by that one log, and, since this is a real stream that we know all of, compared with what it would in
truth have earned.
"""

import itertools

import numpy as np

import diminuendo as dim
from diminuendo.evaluate import AnyOrder, Log, evaluate, evaluate_privately
from diminuendo.learners import RandomSlates
from diminuendo.privacy import Budget, Ledger
from diminuendo.randomness import SecretRandomness, SystemSource

max_rounds_per_user = dim.msweb()[:3_000]
(matrix,) = max_rounds_per_user.matrices
pages = np.sort(np.asarray(matrix.sum(axis=0)).ravel().argsort()[-6:])
users = dim.Users(dim.NoisyOr(), matrix[:, pages])

learner = RandomSlates(6, 2)
log = Log(slots=2)
for user in users:
    decision = learner.choose()
    log.add(decision)  # at once: who is in the log must not depend on who answers
    reward = user.value(decision.slate)
    learner.observe(decision, reward)
    log.answer(decision, reward)
print(f"the log itself earned {log.rewards.mean():.3f}\n")

print("pages    truth  doubly robust          rounds it is worth")
for pair in itertools.combinations(range(6), 2):
    truth = users.values(pair).mean()
    try:
        found = evaluate(log, AnyOrder(pair), method="doubly-robust", interval="normal")
        print(
            f"{pair}   {truth:.3f}  {found.value:.3f} [{found.low:.3f}, {found.high:.3f}]   {found.effective:,.0f}"
        )
    except dim.DiminuendoError:
        print(f"{pair}   {truth:.3f}  seen too rarely to say")

best = max(itertools.combinations(range(6), 2), key=lambda pair: users.values(pair).mean())
print(f"\npages {best}, in whatever order, at any number of visitors:")
print(evaluate(log, AnyOrder(best)))
print("\nthe same, to be published:")
ledger, secret = Ledger(Budget(0.5, 0.0, accountant="pure")), SecretRandomness(SystemSource())
print(evaluate_privately(log, AnyOrder(best), epsilon=0.5, ledger=ledger, secret=secret, most_weight=20))
print(ledger.guarantee())
