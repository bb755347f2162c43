"""The paper's Algorithm 2 for people who name every item, and draws among a million items.

Where everybody names every item, a round must multiply and add in every slot for every item: k saxpys, which are the
floor. Numpy, as one would write it, also computes every item's probability in every slot. Ours puts the additions off
and does them for many rounds at once, and draws without looking at most items (randomness/score_classes.py).

Among a million items every look at memory is a look into far memory. The floor of a round is one random read for each
expert, from as much memory as the totals take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from scipy import sparse

from benchmarks.laws import Law
from benchmarks.report import Disagreement, Part, verdict
from benchmarks.stopwatch import Competitor, Result, race
from diminuendo import NoisyOr, People, SeededCoins, Setting
from diminuendo._numba import inline
from diminuendo.learners.base.replay import loop
from diminuendo.learners.hedge.fi_dp import FiDp, FiDpPaper
from diminuendo.randomness import SecretRandomness
from diminuendo.randomness.score_classes import (
    TICKS,
    ScoreClasses,
    draw,
    draw_looking,
    new_score_classes,
    probabilities,
    sort_again,
)
from diminuendo.randomness.words import UNFINISHED, SecretWords, begin, undo
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items

SLOTS = 10
LAPS = 24
PIECES = {1_000: 500, 10_000: 150}
"""Items, and people in one lap. Learners go on from lap to lap: a lap is short enough to be left alone now and then."""
HORIZON = 20_000
COMPARED = 4
"""Pieces that are also gone through round by round, the ordinary way."""

SMALL, FEW, SEEDS, FAST = 64, 300, 30, 0.5
"""Items, people, runs and rate of the check of laws: a rate at which laws are far from uniform."""

OURS, CHOICE, TUNED, SAXPY = "ours", "numpy, choice", "numpy, tuned", "floor: saxpy"

MANY, ROUNDS, MANY_LAPS = 1_000_000, 500, 60
SPREADS = {"hardly": 0.1, "much": 8.0}
"""How uneven totals are: the heaviest item weighs e to this times the lightest."""
DRAWN, LOOKED, READ = "ours", "ours, looking at every total", "floor: random reads"


def dense() -> Iterator[Part]:
    """One table for each number of items, then the draws."""
    laws = _check_laws()
    for n_items, size in PIECES.items():
        yield _replayed(n_items, size, laws)
    for name, spread in SPREADS.items():
        yield _drawn(name, spread)


def dense_people(n_people: int, n_items: int, seed: int = 0) -> People:
    """Everybody names every item; some are wanted more than others."""
    rng = np.random.default_rng(seed)
    wanted = rng.beta(1, 4, n_items) * (1.0 - rng.random((n_people, n_items)))  # above 0
    columns = np.tile(np.arange(n_items, dtype=np.int32), n_people)
    starts = np.arange(n_people + 1) * n_items
    return People(NoisyOr(), sparse.csr_array((wanted.ravel(), columns, starts), shape=wanted.shape))


# Replay.


class PlainFiDp:
    """Algorithm 2 in numpy, with floats. `tuned`: all slots in one go, and a search in running sums for `choice`."""

    def __init__(self, n_items: int, slots: int, rate: float, seed: int, tuned: bool = False) -> None:
        self.rate, self.tuned, self.rng = rate, tuned, np.random.default_rng(seed)
        self.totals = np.zeros((slots, n_items))

    def choose(self) -> Items:
        """One item per slot; a slot that repeats an earlier one stays empty."""
        drawn = self._drawn_at_once() if self.tuned else [self._drawn(row) for row in self.totals]
        slate = np.full(len(drawn), EMPTY_SLOT, dtype=np.int32)
        for slot, item in enumerate(drawn):
            if item not in slate[:slot]:
                slate[slot] = item
        return slate

    def _drawn(self, totals: Floats) -> int:
        weights = np.exp(self.rate * (totals - totals.max()))
        return int(self.rng.choice(len(totals), p=weights / weights.sum()))

    def _drawn_at_once(self) -> list[int]:
        sums = np.exp(self.rate * (self.totals - self.totals.max(axis=1, keepdims=True)))
        np.cumsum(sums, axis=1, out=sums)
        points = self.rng.random(len(sums)) * sums[:, -1]
        return [int(row.searchsorted(point, side="right")) for row, point in zip(sums, points, strict=True)]

    def learn(self, slate: Items, chances: Floats) -> None:
        """What each item would have added to the slots before; what is shown there adds nothing."""
        missed = factors_of(slate, chances)
        if self.tuned:
            self.totals += missed[:, None] * chances
        else:
            for row, factor in zip(self.totals, missed, strict=True):
                row += factor * chances
        for slot, item in enumerate(slate[:-1]):
            if item != EMPTY_SLOT:
                self.totals[slot + 1 :, item] -= missed[slot + 1 :] * chances[item]

    def replay(self, rows: Floats) -> Items:
        """The slates shown to people with these chances."""
        slates = np.empty((len(rows), len(self.totals)), dtype=np.int32)
        for t, chances in enumerate(rows):
            slates[t] = self.choose()
            self.learn(slates[t], chances)
        return slates


def factors_of(slate: Items, chances: Floats) -> Floats:
    """For each slot the chance that nothing in the slots before it is clicked."""
    passed = np.where(slate == EMPTY_SLOT, 1.0, 1.0 - chances[slate])
    return np.concatenate([[1.0], np.cumprod(passed[:-1])])


@inline
def saxpy(rows: Floats, factors: Floats, totals: Floats) -> None:
    """totals[s] += factors[t, s] * rows[t], for all t and s."""
    for t in range(rows.shape[0]):
        row = rows[t]
        for s in range(totals.shape[0]):
            factor, sums = factors[t, s], totals[s]
            for a in range(len(row)):
                sums[a] += factor * row[a]


def _replayed(n_items: int, size: int, laws: dict[str, float]) -> Part:
    pieces = [dense_people(size, n_items, seed) for seed in range(LAPS + 1)]
    rows = [piece.table.values.reshape(size, n_items) for piece in pieces]
    setting = Setting(n_items, SLOTS, HORIZON, "full", 1.0, 1e-6)

    def fresh() -> FiDpPaper:
        return FiDpPaper.for_setting(setting, coins=SeededCoins(1))

    ours, again = fresh(), fresh()
    plain, tuned = (PlainFiDp(n_items, SLOTS, ours.rate, 1, tuned) for tuned in (False, True))
    factors, totals = np.tile(0.9 ** np.arange(SLOTS), (size, 1)), np.zeros((SLOTS, n_items))
    results = race(
        [
            Competitor(OURS, lambda lap: pieces[lap + 1], ours.replay),
            Competitor(CHOICE, lambda lap: rows[lap + 1], plain.replay),
            Competitor(TUNED, lambda lap: rows[lap + 1], tuned.replay),
            Competitor(SAXPY, lambda lap: rows[lap + 1], lambda piece: saxpy(piece, factors, totals)),
        ],
        LAPS,
    )
    slates = [again.replay(piece) for piece in pieces]
    _check_replay(pieces, rows, slates, results[OURS], again, loop_of=fresh())
    part = Part(
        f"dense, N={n_items}",
        f"fi-dp-paper, {SLOTS} of {n_items:,} items, people who name all of them, rate {ours.rate:.2g}",
        ["who", "us per person", "/ ours", "/ floor", "p of its law", "laps"],
    )
    for who, result in results.items():
        part.rows.append(
            [
                who,
                1e6 * result.run / size,
                result.run / results[OURS].run,
                result.run / results[SAXPY].run,
                laws.get(who, "-"),
                result.laps,
            ]
        )
    faster, slower = (results[CHOICE].run / results[OURS].run, results[OURS].run / results[SAXPY].run)
    part.numbers |= {f"{CHOICE} / ours": faster, "ours / saxpy": slower}
    part.numbers[f"{TUNED} / ours"] = results[TUNED].run / results[OURS].run
    part.notes += [
        f"Everybody goes on from lap to lap, each of {size} people; the best lap counts.",
        "Beside the additions ours has draws, which do not grow with the number of items, and what a call from Python "
        "takes: that weighs more where items are few. With a ledger, it also returns for a hundred payments.",
        f"p of its law: first slots of {SEEDS} runs with {SMALL} items at rate {FAST}, where laws are known.",
        f"Checked: the first {COMPARED * size} slates are those of `choose` and `observe`, round by round; all "
        "totals are those that numpy adds up from the same slates.",
        verdict(f"ours is at least 60 times faster than {CHOICE}: {faster:.3g} times", faster >= 60),
        verdict(f"ours takes at most 2 times as long as {SLOTS} saxpys: {slower:.3g} times", slower <= 2),
    ]
    return part


def _check_replay(
    pieces: list[People],
    rows: list[Floats],
    slates: list[Items],
    timed: Result,
    learner: FiDpPaper,
    loop_of: FiDpPaper,
) -> None:
    """Ours repeats itself; is the ordinary way, slate for slate; and has learned what numpy learns."""
    if not all(np.array_equal(*both) for both in zip(timed.answers, slates[1:], strict=False)):
        raise Disagreement("Two runs of ours with the same coins showed different slates.")
    for piece, shown in zip(pieces[:COMPARED], slates, strict=False):
        if not np.array_equal(loop(loop_of, piece), shown):
            raise Disagreement("Replay in blocks and round by round showed different slates.")
    totals = learner._experts.classes.totals.T / TICKS
    plain = PlainFiDp(learner.n_items, learner.slots, learner.rate, 0)
    for some, shown in zip(rows, slates, strict=True):
        for chances, slate in zip(some, shown, strict=True):
            plain.learn(slate, chances)
    worst = float(np.abs(plain.totals - totals).max())
    if worst > learner.rounds / TICKS:  # each gain was rounded down by less than a tick
        raise Disagreement(f"Totals of ours and of numpy differ by {worst:.3g}.")


def _check_laws() -> dict[str, float]:
    """What the first slot gains does not depend on what was drawn, so its laws are known."""
    people = dense_people(FEW, SMALL)
    rows = people.table.values.reshape(FEW, SMALL)
    totals = np.cumsum(rows, axis=0) - rows
    weights = np.exp(FAST * (totals - totals.max(axis=1, keepdims=True)))
    law = Law(weights / weights.sum(axis=1, keepdims=True))

    def ours(seed: int) -> Items:
        learner = FiDp(SMALL, 3, horizon=FEW, rate=FAST, epsilon=1.0, delta=1e-6, coins=SeededCoins(seed))
        return learner.replay(people)

    runs: dict[str, Callable[[int], Items]] = {
        OURS: ours,
        CHOICE: lambda seed: PlainFiDp(SMALL, 3, FAST, seed).replay(rows),
        TUNED: lambda seed: PlainFiDp(SMALL, 3, FAST, 1_000 + seed, tuned=True).replay(rows),
    }
    return {
        who: law.check(who, np.array([one(seed)[:, 0] for seed in range(SEEDS)]), SEEDS)
        for who, one in runs.items()
    }


# Draws among very many.


def uneven_urns(n_items: int, experts: int, spread: float) -> ScoreClasses:
    """As after a run: most items have gained little, a few much, and later experts less; weights span e^spread."""
    rng = np.random.default_rng(n_items)
    gained = rng.beta(1, 6, (n_items, experts)) / np.arange(1, experts + 1)
    classes = new_score_classes(n_items, experts, spread / (1_000 * TICKS))
    classes.totals[:] = 1_000 * TICKS * gained
    sort_again(classes)
    return classes


@inline
def _rounds(classes: ScoreClasses, secret: SecretWords, drawn: Ints, done: int, looking: bool) -> int:
    while done < len(drawn):
        begin(secret)
        for expert in range(drawn.shape[1]):
            drawn[done, expert] = (
                draw_looking(classes, expert, secret) if looking else draw(classes, expert, secret)
            )
            if drawn[done, expert] == UNFINISHED:
                undo(secret)
                return done
        done += 1
    return done


def draw_rounds(classes: ScoreClasses, rounds: int, looking: bool, secret: SecretRandomness) -> Ints:
    """(rounds, experts) items, drawn exactly; `looking`: at the total of every item that is proposed."""
    drawn = np.zeros((rounds, classes.totals.shape[1]), dtype=np.int64)
    done = 0
    while (done := int(_rounds(classes, secret.view, drawn, done, looking))) < rounds:
        secret.resume()
    return drawn


@inline
def read_all(totals: Ints, items: Ints) -> int:
    """One read for each expert in each round."""
    found = 0
    for t in range(items.shape[0]):
        for expert in range(items.shape[1]):
            found += totals[items[t, expert], expert]
    return found


def _drawn(name: str, spread: float) -> Part:
    classes = uneven_urns(MANY, SLOTS, spread)
    law = Law(np.array([probabilities(classes, expert) for expert in range(SLOTS)]))
    rng = np.random.default_rng(0)
    results = race(
        [
            *(
                Competitor(
                    who,
                    lambda lap: SecretRandomness(SeededCoins(lap + 1)),
                    partial(draw_rounds, classes, ROUNDS, looking),
                )
                for who, looking in ((DRAWN, False), (LOOKED, True))
            ),
            Competitor(
                READ,
                lambda _: rng.integers(0, MANY, size=(ROUNDS, SLOTS)),
                lambda items: read_all(classes.totals, items),
            ),
        ],
        MANY_LAPS,
    )
    if not np.array_equal(results[DRAWN].answers, results[LOOKED].answers):
        raise Disagreement("Draws that look at totals only where needed found other items.")
    part = Part(
        f"draws, N={MANY}, {name} uneven",
        f"One exact draw of each of {SLOTS} experts among {MANY:,} items, totals {name} uneven (up to e^{spread:g})",
        ["who", "us per round", "/ ours", "/ floor", "p of its law", "laps"],
    )
    for who, result in results.items():
        p = "-" if who == READ else law.check(who, np.array(result.answers), ROUNDS * result.laps)
        per_round, base, floor = (1e6 * results[one].run / ROUNDS for one in (who, DRAWN, READ))
        part.rows.append([who, per_round, per_round / base, per_round / floor, p, result.laps])
    ratio = results[DRAWN].run / results[READ].run
    part.numbers["ours / floor"] = ratio
    part.notes += [
        f"floor: {SLOTS} random reads from the {classes.totals.nbytes // 10**6:,} MB of the totals, at known places.",
        verdict(
            f"a round of draws takes at most 12 times as long as the reads: {ratio:.3g} times", ratio <= 12
        ),
    ]
    return part
