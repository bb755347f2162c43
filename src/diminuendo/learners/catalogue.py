"""The catalogue: what each learner promises, what is proved of its regret, what it keeps, and when to take it.

Said in a few words each, for people who choose. What exactly is promised and proved stands in the learner's own module.
"""

from __future__ import annotations

from dataclasses import dataclass

NOT_FOR_USE = "to reproduce the paper; not for use"

READ_SO = (
    "Privacy: what is proved of everything it shows. Regret: the order of what is proved, to (1 - 1/e) of the best "
    "slate (½: to half of it), whatever people want. Scores: one secret number for each slot and item. Sums and "
    "counts: over people, published with noise."
)
"""How to read the entries."""


@dataclass(frozen=True)
class Entry:
    """One learner, in a few words each."""

    guarantee: str
    """What is proved about everything it lets out."""
    bound: str
    """The order of its proved regret to (1 - 1/e) of the best slate, whatever people want."""
    memory: str
    """What it keeps of people between rounds."""
    when: str
    """When to take it."""
    keeps_people: bool = False
    """Whether what single people said is kept, not only sums over them."""


CATALOGUE: dict[str, Entry] = {
    "random": Entry("perfect", "-", "nothing", "as the floor that learners must clear"),
    "hedge": Entry("none", "k√(T log N)", "scores", "as the yardstick: what can be learned without privacy"),
    "hedge-bandit": Entry("none", "T^(2/3)", "scores", "as the yardstick where only payoffs come back"),
    "fi-dp": Entry("(ε, δ)", "√T / ε", "scores", "for the paper's Algorithm 2 at its best"),
    "fi-dp-paper": Entry("below ε", "√T / ε", "scores", NOT_FOR_USE),
    "fi-pure": Entry("(ε, 0) in reals", "√(NT/ε)", "sums", "to study pure privacy; far more noise"),
    "fi-pure-paper": Entry("(ε, 0) in reals", "√(NT/ε)", "sums", NOT_FOR_USE),
    "bandit-dp": Entry("(ε, δ)", "T^(2/3)", "scores", "where only payoffs come back, and millions come"),
    "bandit-dp-paper": Entry("below ε", "T^(2/3)", "scores", NOT_FOR_USE),
    "bandit-direct": Entry("(ε, δ)", "T^(3/4)", "scores", "to see why Algorithm 3 redraws so rarely"),
    "bandit-direct-paper": Entry("below ε", "T^(3/4)", "scores", NOT_FOR_USE),
    "bandit-presampled": Entry("(ε, δ)", "T^(2/3)", "scores", "to study exploring rounds drawn beforehand"),
    "bandit-presampled-paper": Entry("below ε", "T^(2/3)", "scores", NOT_FOR_USE),
    "streeter-golovin": Entry("none", "√(kT log N)", "scores", "as what the paper builds on"),
    "streeter-golovin-bandit": Entry("none", "T^(2/3)", "scores", "as what the paper builds on"),
    "overlap-greedy": Entry(
        "(ε, δ)",
        "-",
        "people",
        "first: loses least where tastes are steady or rarely change",
        keeps_people=True,
    ),
    "overlap-sums": Entry("(ε, δ)", "-", "sums", "where single people must not be kept"),
    "epoch-greedy": Entry(
        "(ε, 0)",
        "-",
        "an epoch's people",
        "where delta is 0, or people want very many things",
        keeps_people=True,
    ),
    "boosted": Entry(
        "(ε, δ)", "k√(T√N / ε)", "sums", "where a bound is wanted, and people may react to slates"
    ),
    "bandit-blocks": Entry("(ε, δ)", "T^(2/3)", "sums", "where only payoffs come back and a bound is wanted"),
    "bandit-blocks-open": Entry("none", "T^(2/3)", "sums", "as what bandit blocks could learn without noise"),
    "bandit-blocks-full": Entry("(ε, 0)", "½: T^(2/3)", "sums", "as bandit blocks, but no slate is short"),
    "bandit-blocks-full-open": Entry("none", "½: T^(2/3)", "sums", "as the same without noise"),
    "ranked-clicks": Entry("(ε, δ)", "T^(2/3)", "sums", "where clicks come back and a bound is wanted"),
    "ranked-clicks-open": Entry("none", "T^(2/3)", "sums", "as what ranked clicks could learn without noise"),
    "cascade-thompson": Entry("none", "-", "counts", "as the yardstick where clicks come back"),
    "slate-totals": Entry("(ε, 0)", "-", "counts", "first, where only payoffs come back"),
    "slate-totals-open": Entry("none", "-", "counts", "as what slate totals could learn without noise"),
    "slate-clicks": Entry("(ε, 0)", "-", "counts", "first, where clicks come back"),
    "slate-clicks-open": Entry("none", "-", "counts", "as what slate clicks could learn without noise"),
    "noisy-hedge": Entry("(ε, δ)", "√(kT log N)", "sums", "where a bound is wanted, and people do not react"),
}
"""By the name users type. Every registered learner has an entry."""
