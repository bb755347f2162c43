"""What do users want most? A private answer, paid for beforehand, from a real stream."""

import diminuendo as dim
from diminuendo.privacy import Budget, Ledger
from diminuendo.randomness import SecretRandomness, SystemSource
from diminuendo.sums import PrivateSum, equal

users = dim.msweb()
budget = Budget(epsilon=1.0, delta=1e-6)
ledger = Ledger(budget)  # Ledger.open("people.ledger", budget) survives crashes
plan = equal(len(users), batches=8)
wishes = PrivateSum(users.n_items, schedule=plan, cost=budget.share(), ledger=ledger)
secret = SecretRandomness(SystemSource())

(matrix,) = users.matrices
for number, (end, size) in enumerate(zip(plan.ends, plan.sizes, strict=True), start=1):
    wishes.add_rows(matrix[end - size : end])
    published = wishes.release(secret)
    best = published.argsort()[::-1][:5]
    print(f"after {end:6,} users: {best.tolist()}, noise +- {wishes.deviation(number):.0f} users")
print(ledger.guarantee())
