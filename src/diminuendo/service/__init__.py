"""Service: private learners behind HTTP. Front ends choose and take answers, a trainer releases, a store remembers.

What is needed to choose is public by the theorems, so front ends hold a menu and nothing private: they lease numbers of
rounds, show what the menu says, sign tokens and put answers, sealed to the trainer, into the store. The trainer reads
the answers of rounds that are settled, pays, draws, and publishes the next menu. Safety rests on the store, not on a
lock: a release is what its table says.
"""
