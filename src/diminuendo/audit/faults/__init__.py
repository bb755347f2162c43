"""Planted faults: learners that break their promise in one small place, as programmers do. Audits must find them all.

Each is a shipped learner with one thing done wrong to its policy, or to what surrounds it. Mended, it is made by the
same code with nothing wrong, so that what an audit finds is the fault and not how it was planted. Never for use.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from diminuendo.audit.faults import (
    in_contexts,
    in_draws,
    in_exclusions,
    in_keeping,
    in_questions,
    in_sums,
    in_surroundings,
)
from diminuendo.audit.faults.planted import Fault, nothing
from diminuendo.audit.subjects import Subject, play, shipped
from diminuendo.audit.taps import NOISE, Taps
from diminuendo.audit.variants import FORGETS, PRIVATE, PUBLIC, SAMPLES, types_part_early
from diminuendo.audit.worlds import Script
from diminuendo.errors import InvalidInput
from diminuendo.learners import LEARNERS, Setting
from diminuendo.learners.epoch_greedy import EpochGreedy
from diminuendo.learners.hedge.bandit_dp import BanditDp
from diminuendo.learners.hedge.fi_dp import FiDp
from diminuendo.learners.overlap.recipes import OverlapGreedy, OverlapSums
from diminuendo.learners.slates.clicks import SlateClicks
from diminuendo.learners.slates.totals import SlateTotals
from diminuendo.randomness.coins import SeededCoins
from diminuendo.streams.contexts import Contexts


def by_type(
    contexts: Contexts,
    plant: Callable[[Any, bool], None] = nothing,
    around: Callable[[], AbstractContextManager[None]] = types_part_early,
) -> Fault:
    """A fault of overlap greedy that shows where people have contexts."""
    return Fault(OverlapGreedy, plant, around, contexts, types_part_early)


PLANTED: dict[str, Fault] = {
    "noise halved (overlap-greedy)": Fault(OverlapGreedy, around=in_surroundings.halved),
    "noise halved (slate-totals)": Fault(SlateTotals, around=in_surroundings.halved),
    "clipping left out (overlap-greedy)": Fault(OverlapGreedy, around=in_surroundings.unclipped),
    "clipping left out (overlap-sums)": Fault(OverlapSums, around=in_surroundings.unclipped),
    "running minimum left out (overlap-greedy)": Fault(OverlapGreedy, around=in_surroundings.without_minimum),
    "rising weights without a bound (overlap-greedy)": Fault(
        OverlapGreedy, in_questions.singles_out_of_focus, in_surroundings.rising_weights
    ),
    "weights from what people said (overlap-greedy)": Fault(OverlapGreedy, in_questions.weights_from_answers),
    "an around and a chain under one number (overlap-greedy)": Fault(
        OverlapGreedy, in_questions.two_under_one_number
    ),
    "two chains (overlap-greedy)": by_type(PRIVATE, in_contexts.two_chains),
    "exact counts of private contexts (overlap-greedy)": by_type(PRIVATE, in_contexts.exact_counts),
    "batch closed on one value (overlap-greedy)": by_type(PRIVATE, in_contexts.batch_ends_on_a_value),
    "only cells with people (overlap-greedy)": by_type(PRIVATE, around=in_contexts.only_cells_with_people),
    "moved and still in the old cell (overlap-greedy)": by_type(
        PUBLIC, around=in_contexts.still_in_the_old_cell
    ),
    "types from what people said (overlap-greedy)": by_type(PUBLIC, in_contexts.counts_follow_answers),
    "stand-ins by public coins (overlap-greedy)": Fault(
        OverlapGreedy, in_exclusions.stand_ins_by_public_coins, exclusions=True
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
    "noise from public coins (slate-totals)": Fault(SlateTotals, in_sums.public_noise),
    "propensity tells (slate-totals)": Fault(SlateTotals, in_sums.propensity_tells),
    "scale decided by data (slate-totals)": Fault(SlateTotals, in_sums.scale_follows_answers),
    "refusal decided by data (slate-totals)": Fault(SlateTotals, in_sums.refuses_when_unhappy),
    "last of a block counted again (slate-totals)": Fault(SlateTotals, in_sums.last_counted_again),
    "slates decided by data (slate-totals)": Fault(SlateTotals, in_sums.plans_on_answers),
    "duplicates counted (slate-clicks)": Fault(SlateClicks, in_draws.duplicates_counted),
    "batch closed on answers (overlap-greedy)": Fault(OverlapGreedy, in_draws.batch_ends_on_answers),
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

WITHOUT_NOISE = " without noise"


def without_noise(learner: str) -> Subject:
    """A learner of the catalogue whose sums and counts are published as they are: an audit that can see it finds it."""
    subject = Fault(LEARNERS[learner], around=in_surroundings.noiseless).subject(
        learner + WITHOUT_NOISE, broken=True
    )
    setting, taps = Setting(4, 2, 512, subject.feedback), Taps()
    play(shipped(learner), setting, Script(setting.rounds, ()), SeededCoins(0), taps)
    if not any(crossing.law in NOISE for crossing in taps.crossings):
        raise InvalidInput(
            f"{learner!r} adds no noise to sums or counts in {setting.rounds} rounds: none can be left out."
        )
    return subject


def fault_called(name: str) -> Subject | None:
    """A planted fault by its name, or a learner without its noise; None where there is no such thing."""
    learner = name.removesuffix(WITHOUT_NOISE)
    if name not in FAULTS and name != learner and learner in LEARNERS:
        return without_noise(learner)
    return FAULTS.get(name)


FAULTS: dict[str, Subject] = {name: fault.subject(name, broken=True) for name, fault in PLANTED.items()}
"""All of which an audit must find."""
