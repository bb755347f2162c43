"""One person at a time, from Python: choose, show, observe. Ours against obp and MABWiser on the same people.

This is how a service calls a learner. `replay` is faster by far, but somebody who has to show a slate before the next
person comes cannot use it. Here everybody is asked for a slate of k items, is told what the person felt about it, and
goes on to the next: ours with what it needs to be private (secret randomness of the system, a ledger, releases), with
late and double answers refused, safe for threads and against Ctrl-C; the peers without any of that.

Choosing and observing are timed apart, call by call, and of every call the best of all laps counts: whatever else the
machine does hits single calls. Medians are of a round without a release; the mean over the run has all releases in
it. Before anybody is timed, the loop of each of ours is compared with its replay, slate for slate;
afterwards everybody must have shown whole slates, and the peers must have been told about every item of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import diminuendo
from benchmarks.bandit_peers import Peer, bandit_peers, missing
from benchmarks.flat import uniform_people
from benchmarks.kept_people import kept_people
from benchmarks.report import Disagreement, Part, verdict
from benchmarks.stopwatch import Competitor, race
from diminuendo import Learner, NoisyOr, People, SeededCoins, Setting
from diminuendo.learners import make
from diminuendo.types import EMPTY_SLOT, FeedbackKind, Floats, Items

SLOTS = 5
LAPS = 3

OURS: tuple[tuple[str, FeedbackKind], ...] = (
    ("private", "bandit"),
    ("private", "click"),
    ("private", "full"),
    ("hedge", "full"),
)
"""What a service would take, and the yardstick without privacy."""

BANDIT = "ours: private, bandit"
"""The one that is told what the peers are told."""

CHECKED = 300
"""People for whom the loop and the replay are compared."""

GOAL = 10.0
"""How many times faster than a peer."""


class Timed(NamedTuple):
    """One run: seconds of each call, what was shown, and what it was worth."""

    choose: Floats
    observe: Floats
    slates: Items
    payoffs: Floats

    @property
    def median(self) -> float:
        """Of a round, in us."""
        return 1e6 * float(np.median(self.choose) + np.median(self.observe))

    @property
    def mean(self) -> float:
        """Of a round, releases and all, in us."""
        return 1e6 * float((self.choose + self.observe).mean())


def best_of(laps: list[Timed]) -> Timed:
    """Every call at its best. What it does is the same in all laps: releases come at the same times."""
    choose, observe = (np.min([getattr(lap, name) for lap in laps], axis=0) for name in ("choose", "observe"))
    return laps[0]._replace(choose=choose, observe=observe)


@dataclass(frozen=True)
class Audience:
    """The people, and how they answer."""

    people: People
    feedback: FeedbackKind

    def answer(self, number: int, slate: Any) -> Any:
        """What that person says."""
        if self.feedback == "full":
            return self.people[number]
        if self.feedback == "click":
            return self.people.click(number, slate)
        return self.people[number].value(slate)


def one_by_one() -> Iterator[Part]:
    """Real people first, then many items; then people who are kept."""
    yield _part("msweb", diminuendo.msweb())
    yield _part("10,000 items", pleased_or_not(8_000, 10_000, 10))
    yield from kept_people()


def pleased_or_not(n_people: int, n_items: int, nnz: int) -> People:
    """People whom any of `nnz` items pleases, and nothing else: payoffs are 0 or 1, as MABWiser wants them."""
    (wants,) = uniform_people(n_people, n_items, nnz).matrices
    return People(NoisyOr(), wants.astype(np.bool_).astype(np.float64))


def _part(name: str, people: People) -> Part:
    for learner, feedback in OURS:
        same_as_replay(learner, Audience(people[:CHECKED], feedback))
    competitors = list(_ours(people))
    competitors += [
        Competitor(who, made, partial(play_peer, people, rounds))
        for who, made, rounds in bandit_peers(people.n_items, SLOTS)
    ]
    results = race(competitors, LAPS, fewest=LAPS)
    part = Part(
        f"one by one, {name}",
        f"One person at a time: {SLOTS} of {people.n_items:,} items, {len(people):,} people; us, best lap",
        ["who", "choose", "observe", "both", "mean with releases", "payoff", "people"],
    )
    runs = {}
    for who, result in results.items():
        for lap in result.answers:
            whole_slates(who, lap.slates, people.n_items)
        run = runs[who] = best_of(result.answers)
        choose, observe = (1e6 * float(np.median(times)) for times in (run.choose, run.observe))
        payoff = float(np.mean([lap.payoffs for lap in result.answers]))
        part.rows.append([who, choose, observe, run.median, run.mean, payoff, len(run.slates)])
    _compare(part, runs)
    return part


def _compare(part: Part, runs: dict[str, Timed]) -> None:
    """Verdicts on ours that is told what the peers are told."""
    ours = runs[BANDIT]
    part.notes += [
        "choose, observe, both: medians, of rounds without a release. payoff: the mean over these people; those of "
        "ours are private at epsilon 1, but for hedge.",
        *missing(),
    ]
    for who, run in runs.items():
        if who.startswith("ours"):
            continue
        usual, whole = run.median / ours.median, run.mean / ours.mean
        part.numbers |= {f"{who} / ours, median": usual, f"{who} / ours, mean with releases": whole}
        part.notes.append(
            verdict(
                f"a round of ours, bandit, is {GOAL:.0f} times faster than one of {who}: "
                f"{usual:.3g} times ({whole:.3g} with releases)",
                usual >= GOAL,
            )
        )
    part.notes.append(
        "Where it does not hold: a round of ours is a few dozen small steps of Python (whether her answer counts, how "
        "likely the slate was, which answers are out, Ctrl-C held back), however many items there are; obp's "
        "epsilon-greedy is a division and a sort, in proportion to the items, and does not know who was asked what."
    )
    part.notes.append(
        f"{1 - ours.median / ours.mean:.0%} of the time of ours, bandit, goes into releases: after each, Markov "
        "chains work out what the totals of slates say about items. No peer does that."
    )


def _ours(people: People) -> Iterator[Competitor]:
    for name, feedback in OURS:
        setting = Setting(people.n_items, SLOTS, len(people), feedback)
        run = partial(play_learner, Audience(people, feedback))
        yield Competitor(f"ours: {name}, {feedback}", partial(_fresh, name, setting), run)


def _fresh(name: str, setting: Setting, lap: int) -> tuple[Learner, int]:
    """With the system's own randomness, as it is deployed; in the warm-up, for a few people only."""
    return make(name, setting), CHECKED if lap < 0 else setting.rounds


def play_learner(audience: Audience, ready: tuple[Learner, int]) -> Timed:
    """One of ours, for so many people."""
    learner, rounds = ready
    return play(audience, learner.choose, learner.observe, lambda decision: decision.slate, rounds)


def play_peer(people: People, rounds: int, peer: Peer) -> Timed:
    """A peer, which must have been told about every item that it showed."""
    run = play(Audience(people, "bandit"), peer.choose, peer.observe, _as_slate, rounds)
    expected = run.slates.size, SLOTS * float(run.payoffs.sum())
    if peer.heard() != expected:
        raise Disagreement(f"A peer was told {peer.heard()} and not {expected}.")
    return run


def play(
    audience: Audience,
    choose: Callable[[], Any],
    observe: Callable[[Any, Any], None],
    slate_of: Callable[[Any], tuple[int, ...]],
    rounds: int,
) -> Timed:
    """So many rounds, each call timed."""
    clock = time.perf_counter
    times = np.zeros((2, rounds))
    slates, payoffs = np.full((rounds, SLOTS), EMPTY_SLOT, dtype=np.int32), np.zeros(rounds)
    for number in range(rounds):
        began = clock()
        decision = choose()
        chosen = clock()
        slate = slate_of(decision)
        answer = audience.answer(number, slate)
        asked = clock()
        observe(decision, answer)
        told = clock()
        times[:, number] = chosen - began, told - asked
        slates[number, : len(slate)] = slate
        payoffs[number] = audience.people[number].value(slate)
    return Timed(times[0], times[1], slates, payoffs)


def _as_slate(items: Any) -> tuple[int, ...]:
    return tuple(int(item) for item in items)


def same_as_replay(name: str, audience: Audience) -> None:
    """With the same coins the loop that is timed shows what the replay shows."""
    people = audience.people
    setting = Setting(people.n_items, SLOTS, len(people), audience.feedback)
    one, other = (make(name, setting, coins=SeededCoins(1)) for _ in range(2))
    if not np.array_equal(play_learner(audience, (one, len(people))).slates, other.replay(people)):
        raise Disagreement(f"{name} shows other slates one by one than in its replay.")


def whole_slates(who: str, slates: Items, n_items: int) -> None:
    """Everybody showed items that there are, each once."""
    shown = np.sort(slates, axis=1)
    twice = (np.diff(shown, axis=1) == 0) & (shown[:, 1:] != EMPTY_SLOT)
    short = (shown[:, 0] == EMPTY_SLOT).any()
    if twice.any() or short or shown.max() >= n_items or (shown[:, -1] == EMPTY_SLOT).any():
        raise Disagreement(f"{who} showed slates that are not {SLOTS} different items.")
