"""Planted faults: learners that break their promise in one small place, as programmers do. Audits must find them all.

Each is a shipped learner with one thing done wrong to its policy, or to what surrounds it. Mended, it is made by the
same code with nothing wrong, so that what an audit finds is the fault and not how it was planted. Never for use.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from diminuendo.audit.subjects import Subject
from diminuendo.audit.variants import FORGETS, PRIVATE, PUBLIC, SAMPLES, types_part_early
from diminuendo.learners.epoch_greedy import EpochGreedy
from diminuendo.learners.hedge.bandit_dp import BanditDp
from diminuendo.learners.hedge.fi_dp import FiDp
from diminuendo.learners.overlap.recipes import OverlapGreedy
from diminuendo.learners.slates.clicks import SlateClicks
from diminuendo.learners.slates.totals import SlateTotals
from diminuendo.streams.contexts import Contexts
from tests.audit.faults import (
    in_contexts,
    in_draws,
    in_exclusions,
    in_keeping,
    in_questions,
    in_sums,
    in_surroundings,
)
from tests.audit.faults.planted import Fault, nothing


def by_type(
    contexts: Contexts,
    plant: Callable[[Any, bool], None] = nothing,
    around: Callable[[], AbstractContextManager[None]] = types_part_early,
) -> Fault:
    """A fault of overlap greedy that shows where users have contexts."""
    return Fault(OverlapGreedy, plant, around, contexts, types_part_early)


PLANTED: dict[str, Fault] = {
    "noise halved (overlap-greedy)": Fault(OverlapGreedy, around=in_surroundings.halved),
    "noise halved (slate-totals)": Fault(SlateTotals, around=in_surroundings.halved),
    "clipping left out (overlap-greedy)": Fault(OverlapGreedy, around=in_surroundings.unclipped),
    "running minimum left out (overlap-greedy)": Fault(OverlapGreedy, around=in_surroundings.without_minimum),
    "rising weights without a bound (overlap-greedy)": Fault(
        OverlapGreedy, in_questions.singles_out_of_focus, in_surroundings.rising_weights
    ),
    "weights from what users said (overlap-greedy)": Fault(OverlapGreedy, in_questions.weights_from_answers),
    "an around and a chain under one number (overlap-greedy)": Fault(
        OverlapGreedy, in_questions.two_under_one_number
    ),
    "two chains (overlap-greedy)": by_type(PRIVATE, in_contexts.two_chains),
    "exact counts of private contexts (overlap-greedy)": by_type(PRIVATE, in_contexts.exact_counts),
    "batch closed on one value (overlap-greedy)": by_type(PRIVATE, in_contexts.batch_ends_on_a_value),
    "only cells with users (overlap-greedy)": by_type(PRIVATE, around=in_contexts.only_cells_with_users),
    "moved and still in the old cell (overlap-greedy)": by_type(
        PUBLIC, around=in_contexts.still_in_the_old_cell
    ),
    "types from what users said (overlap-greedy)": by_type(PUBLIC, in_contexts.counts_follow_answers),
    "backfill by public coins (overlap-greedy)": Fault(
        OverlapGreedy, in_exclusions.stand_ins_by_public_rng, exclusions=True
    ),
    "rounds with exclusions refunded (overlap-greedy)": Fault(
        OverlapGreedy, in_exclusions.refunded_rounds, exclusions=True
    ),
    "coin decided by data (overlap-greedy)": Fault(OverlapGreedy, in_keeping.coin_by_answers, kept=SAMPLES),
    "a reservoir of answers (overlap-greedy)": Fault(OverlapGreedy, in_keeping.reservoir),
    "forgotten by how many answered (overlap-greedy)": Fault(
        OverlapGreedy, in_keeping.forgotten_by_answers, kept=FORGETS
    ),
    "forgotten and still asked (overlap-greedy)": Fault(
        OverlapGreedy, in_keeping.forgotten_and_still_asked, kept=FORGETS
    ),
    "noise used again (overlap-greedy)": Fault(OverlapGreedy, in_sums.noise_used_again),
    "secret words in part used again (overlap-greedy)": Fault(OverlapGreedy, in_sums.words_given_back),
    "last of a batch counted again (overlap-greedy)": Fault(OverlapGreedy, in_keeping.last_counted_again),
    "batch closed on answers (overlap-greedy)": Fault(OverlapGreedy, in_draws.batch_ends_on_answers),
    "noise from public coins (slate-totals)": Fault(SlateTotals, in_sums.public_noise),
    "propensity tells (slate-totals)": Fault(SlateTotals, in_sums.propensity_tells),
    "scale decided by data (slate-totals)": Fault(SlateTotals, in_sums.scale_follows_answers),
    "refusal decided by data (slate-totals)": Fault(SlateTotals, in_sums.refuses_when_unhappy),
    "last of a block counted again (slate-totals)": Fault(SlateTotals, in_sums.last_counted_again),
    "slates decided by data (slate-totals)": Fault(SlateTotals, in_sums.plans_on_answers),
    "duplicates counted (slate-clicks)": Fault(SlateClicks, in_draws.duplicates_counted),
    "rate doubled (fi-dp)": Fault(FiDp, in_draws.rate_doubled),
    "rate doubled (bandit-dp)": Fault(BanditDp, in_draws.rate_doubled),
    "answers counted twice (fi-dp)": Fault(FiDp, in_draws.learns_twice),
    "secret words used again (fi-dp)": Fault(FiDp, in_draws.words_used_again),
    "exploration decided by data (bandit-dp)": Fault(BanditDp, in_draws.explores_when_unhappy),
    "redraw decided by data (bandit-dp)": Fault(BanditDp, in_draws.redraws_on_arrival),
    "duplicates counted (fi-dp)": Fault(FiDp, in_draws.duplicates_counted),
    "epoch closed on answers (epoch-greedy)": Fault(EpochGreedy, in_draws.epoch_ends_on_answers),
}
"""What is wrong, in which learner; how that is done, and what surrounds it."""

FAULTS: dict[str, Subject] = {name: fault.subject(name, broken=True) for name, fault in PLANTED.items()}
"""All of which an audit must find."""
