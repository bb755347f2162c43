"""Stored users who answer a greedy query sequence, with noise.

First how much each item is worth to a user by itself (*singleton values*); then, as the items of the sequence join one
after the other, what every item loses (*marginal losses*); and what is left at last (the *residual*). Losses and
residual come out of a user's singleton values, entry by entry: a running minimum sees to it (release.py). So together
they are no longer than those values, for any function and any length of the sequence (docs/maths/sums.md, Theorem S4).
"""
