r"""A Markov chain over appeals and overlaps (model.py), given all that was published (likelihood.py). Public.

    log appeal      Normal(centre, width^2), where centre is Normal(log(1.5 / N), 1) and width^2 inverse Gamma(5, 7.5):
                    a user cares about a few items, and items differ by factors. Both are learned.
                    Where others are known, likeness * base_a is added for item a: by how much it is above the mean for
                    them, times a likeness that is Normal(0.5, 0.5^2), and learned.
    overlap         0 with probability q, otherwise uniform on [-0.3, 0.95], where q is Beta(5.6, 2.4). q is learned.

A sweep moves each appeal (a fresh one from the prior, a large and a small step), asks who of a slate it was (two items
exchange their appeals, or one gives a part to the other, which keeps their sum), moves overlaps of pairs that matter,
and draws the prior's own parameters. Every move is accepted by the rule of Metropolis and Hastings, so the draws
are of the posterior in the long run; nothing else is claimed of them. They serve to choose slates: they are functions
of published numbers and public coins, and cannot harm privacy however badly they mix.

References Metropolis et al. (1953), J. Chem. Phys. 21; Hastings (1970), Biometrika 57.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from diminuendo._numba import allocating_kernel, inline, kernel
from diminuendo.learners.slates.likelihood import Evidence, look_up
from diminuendo.learners.slates.model import join
from diminuendo.types import Floats, Ints

PRIOR_TOTAL_APPEAL = 1.5
"""The prior appeal of all items together: about how many items a user wants."""
PRIOR_WIDTH = 5.0, 7.5
"""Shape and scale of the inverse Gamma law of the squared width."""
PRIOR_NO_OVERLAP = 5.6, 2.4
"""The Beta law of the probability that a pair has no overlap."""
LEAST_OVERLAP, MOST_OVERLAP = -0.3, 0.95
"""Between these any overlap is possible."""
CENTRE, WIDTH, NO_OVERLAP, SHRINKAGE = range(4)
"""Places in the parameters of the prior; the last is there only if something is known of others."""
PRIOR_SHRINKAGE = 0.5, 0.5
"""Mean and deviation of the Normal law of the likeness: how far appeals follow those of others."""
LEADER_WIDTHS = 2.0
"""Leading items are this many widths above the centre: two or three in a hundred."""
LOG_ROUNDING = 1.0
"""Sums of logarithms of likelihoods are rounded by far less, in whatever order they are added."""


class Prior(NamedTuple):
    """What is believed of log appeals before anything was published: Normal(likeness * base + centre, width^2)."""

    base: Floats
    """By how much each item is above the centre for others; nothing, unless something is known of any (contexts/)."""
    centre: float
    """The mean of the centre, whose deviation is 1."""
    width: tuple[float, float]
    """Shape and scale of the inverse Gamma law of the squared width."""


def prior_of(n_items: int) -> Prior:
    """All items alike."""
    return Prior(np.zeros(n_items), math.log(PRIOR_TOTAL_APPEAL / n_items), PRIOR_WIDTH)


class ChainState(NamedTuple):
    """Where the chain stands; changed in place."""

    appeals: Floats
    overlaps: Floats
    prior: Floats
    """Centre and width of log appeals, the probability that a pair has no overlap, and perhaps the likeness."""


def initial_state(n_items: int, pairs: int = 0) -> ChainState:
    """The state of a chain before anything was published: all items alike, no pair overlaps."""
    prior = np.array([math.log(PRIOR_TOTAL_APPEAL / n_items), 1.3, 0.7])
    return ChainState(np.full(n_items, 1.0 / n_items), np.zeros(pairs), prior)


class Work(NamedTuple):
    """What a sweep reads, what it moves, and room for what it works out."""

    evidence: Evidence
    appeals: Floats
    overlaps: Floats
    prior: Floats
    base: Floats
    kept: Floats
    """Room for what each item of a slate has left of its appeal."""
    likely: Floats
    """The logarithm of the likelihood of each row."""
    rows: Ints
    new: Floats
    """Rows of a move, and their logarithms after it."""


@inline
def _row_log_likelihood(work: Work, row: int) -> float:
    """The logarithm of the likelihood of one row."""
    evidence = work.evidence
    slate, pairs, tables = evidence.slates[row], evidence.pairs[row], evidence.tables[row]
    appeal, before, total = 0.0, 0.0, 0.0
    for i in range(evidence.lengths[row]):
        appeal = join(slate, pairs, i, work.appeals, work.overlaps, work.kept, appeal)
        if evidence.which[row]:
            chance = 1 - math.exp(-appeal)
            total += look_up(tables[i], chance - before)
            before = chance
    return total if evidence.which[row] else look_up(tables[0], 1 - math.exp(-appeal))


@kernel
def _accepted(
    work: Work, rows: Ints, count: int, old: float, prior_gain: float, rng: Any
) -> tuple[bool, float]:
    """Whether a move is accepted by which these rows are as likely as `work.new` says, and their sum, which was `old`.

    `prior_gain` is what the move gains by the prior. A move that loses needs a random number, and many lose so much
    that a few rows tell. What the other rows can add at most is known. So the number is drawn as soon as it is certain
    that one is needed, and the rest of the rows are not looked at as soon as it is certain that it fails. The verdict
    is the same, and so are the numbers drawn.
    """
    evidence, out = work.evidence, work.new
    upper_bound = prior_gain - old
    for r in range(count):
        upper_bound += evidence.ceilings[rows[r]]
    drawn, coin, least = False, 0.0, -LOG_ROUNDING
    for r in range(count - 1, -1, -1):  # what was published last is about the most users, and tells most
        row = rows[r]
        out[r] = _row_log_likelihood(work, row)
        upper_bound += out[r] - evidence.ceilings[row]
        if upper_bound < least and not drawn:
            drawn, coin = True, rng.random()
            least = (math.log(coin) if coin > 0 else -math.inf) - LOG_ROUNDING
        if upper_bound < least:
            return False, old
    total = 0.0
    for r in range(count):
        total += out[r]
    gain = total - old + prior_gain
    if gain >= 0:
        return True, total
    if not drawn:
        coin = rng.random()
    return coin < math.exp(gain), total


@inline
def _store(work: Work, rows: Ints, count: int) -> None:
    for r in range(count):
        work.likely[rows[r]] = work.new[r]


def sweep(evidence: Evidence, chain: ChainState, given: Prior, rng: np.random.Generator) -> None:
    """Let every part of the chain move once."""
    base = given.base * chain.prior[SHRINKAGE] if len(chain.prior) > SHRINKAGE else given.base
    no_overlap = _sweep(evidence, chain.appeals, chain.overlaps, chain.prior, base, rng)
    _move_prior(chain, given, base, no_overlap, rng)


@allocating_kernel
def _sweep(
    evidence: Evidence, appeals: Floats, overlaps: Floats, prior: Floats, base: Floats, rng: Any
) -> int:
    n_items, n_rows, k = len(appeals), len(evidence.lengths), evidence.slates.shape[1]
    rows, new = np.empty(2 * n_rows + 1, dtype=np.int64), np.empty(2 * n_rows + 1)
    work = Work(evidence, appeals, overlaps, prior, base, np.empty(k), np.empty(n_rows), rows, new)
    for row in range(n_rows):
        work.likely[row] = _row_log_likelihood(work, row)
    _move_appeals(work, rng)
    # How large the appeals of good items are: by the prior, since a step must not depend on what it changes.
    leader = math.exp(prior[CENTRE] + base.max() + LEADER_WIDTHS * prior[WIDTH])
    if n_rows > 0:
        for attempt in range(2 * min(n_items, k * n_rows)):  # no more items than these were ever shown
            _exchange_appeals(work, leader, attempt, rng)
    return _move_overlaps(work, leader, rng)


@kernel
def _move_appeals(work: Work, rng: Any) -> None:
    evidence, appeals, likely = work.evidence, work.appeals, work.likely
    prior, base = work.prior, work.base
    width = prior[WIDTH]
    for item in range(len(appeals)):
        centre = prior[CENTRE] + base[item]
        rows = evidence.rows[evidence.row_starts[item] : evidence.row_starts[item + 1]]
        if len(rows) == 0:
            appeals[item] = math.exp(centre + width * rng.standard_normal())
            continue
        old = 0.0
        for row in rows:
            old += likely[row]
        for move in range(3):
            before = appeals[item]
            from_, to, prior_gain = math.log(before), 0.0, 0.0
            if move == 0:
                to = centre + width * rng.standard_normal()
            else:
                to = from_ + (0.6 if move == 1 else 0.1) * rng.standard_normal()
                prior_gain = ((from_ - centre) ** 2 - (to - centre) ** 2) / (2 * width**2)
            appeals[item] = math.exp(to)
            yes, result = _accepted(work, rows, len(rows), old, prior_gain, rng)
            if yes:
                old = result
                _store(work, rows, len(rows))
            else:
                appeals[item] = before


@kernel
def _exchange_appeals(work: Work, leader: float, attempt: int, rng: Any) -> None:
    """Two items of one slate exchange their appeals, or a part of them."""
    evidence, appeals, likely, rows = work.evidence, work.appeals, work.likely, work.rows
    prior, base = work.prior, work.base
    row = int(rng.random() * len(evidence.lengths))
    length = evidence.lengths[row]
    a = evidence.slates[row, int(rng.random() * length)]
    b = evidence.slates[row, int(rng.random() * length)]
    if a == b:
        return
    of_a, of_b, prior_gain, part = appeals[a], appeals[b], 0.0, 0.0
    if attempt % 2 == 1:
        part = leader * (0.3 if attempt % 4 == 1 else 0.075) * rng.standard_normal()
        if of_a + part <= 0 or of_b - part <= 0:
            return
    count, old, at, end = 0, 0.0, evidence.row_starts[a], evidence.row_starts[a + 1]
    for place in range(at, end):
        rows[count] = evidence.rows[place]
        old += likely[rows[count]]
        count += 1
    for place in range(evidence.row_starts[b], evidence.row_starts[b + 1]):
        other = evidence.rows[place]
        while at < end and evidence.rows[at] < other:  # both lists rise
            at += 1
        if at == end or evidence.rows[at] != other:
            rows[count] = other
            old += likely[other]
            count += 1
    width = prior[WIDTH]
    if attempt % 2 == 0:
        appeals[a], appeals[b] = of_b, of_a
        prior_gain = (math.log(of_b) - math.log(of_a)) * (base[a] - base[b]) / width**2
    else:
        appeals[a], appeals[b] = of_a + part, of_b - part
        for item, was, is_ in ((a, of_a, appeals[a]), (b, of_b, appeals[b])):
            centre = prior[CENTRE] + base[item]
            prior_gain += math.log(was / is_)
            prior_gain += ((math.log(was) - centre) ** 2 - (math.log(is_) - centre) ** 2) / (2 * width**2)
    if _accepted(work, rows, count, old, prior_gain, rng)[0]:
        _store(work, rows, count)
    else:
        appeals[a], appeals[b] = of_a, of_b


@kernel
def _move_overlaps(work: Work, leader: float, rng: Any) -> int:
    """Move overlaps, rarely those of small appeals, which hardly matter. Returns how many pairs have no overlap."""
    evidence, appeals, overlaps = work.evidence, work.appeals, work.overlaps
    prior, likely = work.prior, work.likely
    no_overlap = 0
    for pair in range(len(overlaps)):
        smaller = min(appeals[evidence.pair_items[pair, 0]], appeals[evidence.pair_items[pair, 1]])
        if rng.random() <= 0.05 + smaller / leader:
            rows = evidence.pair_rows[evidence.pair_starts[pair] : evidence.pair_starts[pair + 1]]
            old = 0.0
            for row in rows:
                old += likely[row]
            for move in range(2):
                before = overlaps[pair]
                to = before + 0.15 * rng.standard_normal() if before != 0 else 0.0
                if move == 0:
                    to = 0.0
                    if rng.random() >= prior[NO_OVERLAP]:
                        to = LEAST_OVERLAP + (MOST_OVERLAP - LEAST_OVERLAP) * rng.random()
                if to == before or not LEAST_OVERLAP <= to <= MOST_OVERLAP:
                    continue
                overlaps[pair] = to
                yes, result = _accepted(work, rows, len(rows), old, 0.0, rng)
                if yes:
                    old = result
                    _store(work, rows, len(rows))
                else:
                    overlaps[pair] = before
        no_overlap += overlaps[pair] == 0
    return no_overlap


def _move_prior(
    chain: ChainState, given: Prior, base: Floats, no_overlap: int, rng: np.random.Generator
) -> None:
    """Draw the prior's own parameters, exactly, given everything else."""
    n_items, prior = len(chain.appeals), chain.prior
    logs = np.log(chain.appeals) - base
    sure = n_items / prior[WIDTH] ** 2 + 1
    mean = (logs.sum() / prior[WIDTH] ** 2 + given.centre) / sure
    prior[CENTRE] = mean + rng.standard_normal() / math.sqrt(sure)
    shape, scale = given.width
    squares = ((logs - prior[CENTRE]) ** 2).sum()
    prior[WIDTH] = math.sqrt((scale + squares / 2) / rng.standard_gamma(shape + n_items / 2))
    yes, no = PRIOR_NO_OVERLAP
    prior[NO_OVERLAP] = rng.beta(yes + no_overlap, no + len(chain.overlaps) - no_overlap)
    if len(prior) > SHRINKAGE:
        mean, deviation = PRIOR_SHRINKAGE
        above = np.log(chain.appeals) - prior[CENTRE]
        sure = (given.base**2).sum() / prior[WIDTH] ** 2 + deviation**-2
        mean = ((above * given.base).sum() / prior[WIDTH] ** 2 + mean / deviation**2) / sure
        prior[SHRINKAGE] = mean + rng.standard_normal() / math.sqrt(sure)
