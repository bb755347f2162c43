"""What do people want most? A private answer, paid for beforehand, from a real stream."""

import diminuendo as dim
from diminuendo.privacy import Budget, Ledger
from diminuendo.randomness import SecretRandomness, SystemCoins
from diminuendo.sums import PrivateSum, equal

people = dim.msweb()
budget = Budget(epsilon=1.0, delta=1e-6)
ledger = Ledger(budget)  # Ledger.open("people.ledger", budget) survives crashes
plan = equal(len(people), batches=8)
wishes = PrivateSum(people.n_items, schedule=plan, cost=budget.share(), ledger=ledger)
secret = SecretRandomness(SystemCoins())

(matrix,) = people.matrices
for number, (end, size) in enumerate(zip(plan.ends, plan.sizes, strict=True), start=1):
    wishes.add_rows(matrix[end - size : end])
    published = wishes.release(secret)
    best = published.argsort()[::-1][:5]
    print(f"after {end:6,} people: {best.tolist()}, noise +- {wishes.deviation(number):.0f} people")
print(ledger.guarantee())
