"""Users who answer a chain of questions, kept or added up, with noise.

First how much each item is worth to a user by itself (*singles*); then, as the items of the chain join one after the
other, what every item loses (*rows*); and what is left at last (the *rest*). Rows and rest come out of her singles,
entry by entry: a running minimum sees to it (release.py). So together they are no longer than her singles, for any
function whatever and any length of the chain (docs/maths/sums.md, Theorem S4).
"""
