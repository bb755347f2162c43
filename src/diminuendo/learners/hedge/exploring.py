"""One round of the paper's bandit algorithms, compiled: who redraws, whether to explore, what is shown.

A round begins with the redraws that the round before it made due; whether they are due is decided by that round's
coins, never by whether an answer came. Then the coins of this round: whether it explores, and if so which slot and
item. All or nothing: where words run out, or a redraw is not paid for yet, nothing has happened.

k ordered Hedge experts with bandit feedback, as printed: one fixed rate, repeats allowed.

A round is in exploring.py, the private ones are in bandit_dp.py. Here is what they share, and the original of Streeter
and Golovin, which is not private.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from diminuendo import _validate
from diminuendo._numba import inline, kernel
from diminuendo.errors import InvalidInput
from diminuendo.experts.hedge import HedgeState, check_fixed, learn, learned, new_hedge
from diminuendo.learners.base.decisions import NO_PROBE
from diminuendo.learners.base.feedback import read_payoff
from diminuendo.learners.base.old_learner import Learner
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.hedge import constants
from diminuendo.learners.hedge.bandit import default_exploring
from diminuendo.objectives.family import Table, add, start, value
from diminuendo.privacy.budget import Guarantee, no_privacy
from diminuendo.privacy.draw_budget import UNLIMITED, paid_for
from diminuendo.randomness.coins import Coins
from diminuendo.randomness.score_classes import draw, to_ticks
from diminuendo.randomness.words import UNFINISHED, PublicWords, SecretWords, begin, below, undo
from diminuendo.streams.people import People, shown_before
from diminuendo.types import EMPTY_SLOT, Decision, FeedbackKind, Floats, Ints, Items

COIN = 1 << 53
"""A coin lands on one of this many sides."""

ALL, OWN, EVERY = range(3)
"""Who redraws: everybody after an exploration, only the expert that explored, everybody in every round."""

NOBODY, EVERYBODY = -1, -2


class ExploringState(NamedTuple):
    """What the algorithm carries from round to round, beside what the experts learned. All of it is public."""

    current: Items
    """(k,) the experts' items, repeats included; -1 before the first draw."""
    due: Ints
    """(1,) who redraws before the next round: an expert, NOBODY or EVERYBODY."""
    redraws: Ints
    """(k,) of each expert; its first draw, which knows nothing, is not counted."""
    explored: Ints
    """(k,) explorations of each expert, answered or not."""
    rounds: Ints
    """(1,) so far."""

    def __repr__(self) -> str:
        return "<ExploringState>"


class Rules(NamedTuple):
    """How it was made; fixed."""

    share: float
    cap: int
    resample: int
    schedule: Ints
    """Rounds that explore, in order, where they were drawn beforehand; else `share` decides."""
    presampled: bool


def new_exploring(slots: int) -> ExploringState:
    """Before the first round."""
    return ExploringState(
        np.full(slots, EMPTY_SLOT, dtype=np.int32),
        np.array([EVERYBODY]),
        np.zeros(slots, dtype=np.int64),
        np.zeros(slots, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )


@inline
def next_round(
    experts: HedgeState,
    state: ExploringState,
    rules: Rules,
    paid: Ints,
    row: Items,
    probe: Items,
    coins: PublicWords,
    secret: SecretWords,
) -> bool:
    """The next slate and probe (slot, item, 0); False, with nothing changed, when it must be resumed."""
    begin(coins)
    begin(secret)
    k, first, due = len(row), state.rounds[0] == 0, state.due[0]
    for slot in range(k):
        row[slot] = state.current[slot]
        if due in (EVERYBODY, slot):
            if not first and not paid_for(paid, slot, state.redraws[slot]):
                undo(secret)
                return False
            item = draw(experts.classes, slot, secret)
            if item == UNFINISHED:
                undo(secret)
                return False
            row[slot] = item
    slot, item = NO_PROBE, NO_PROBE
    coin = below(COIN, coins)
    if coin != UNFINISHED and _explores(state, rules, coin):
        slot = below(k, coins)
        item = below(experts.classes.totals.shape[0], coins)
        coin = item
    if coin == UNFINISHED:
        undo(coins)
        undo(secret)
        return False
    for j in range(k):  # from here on nothing can fail
        if not first and due in (EVERYBODY, j):
            state.redraws[j] += 1
        state.current[j] = row[j]
    state.rounds[0] += 1
    used = state.explored[slot] if rules.resample == OWN else state.explored.sum()
    if slot != NO_PROBE and used >= rules.cap:
        slot = NO_PROBE
    state.due[0] = EVERYBODY if rules.resample == EVERY else NOBODY
    if slot != NO_PROBE:
        state.explored[slot] += 1
        if rules.resample != EVERY:
            state.due[0] = slot if rules.resample == OWN else EVERYBODY
    _show(row, slot, item)
    probe[0], probe[1], probe[2] = slot, item, 0
    return True


@inline
def _explores(state: ExploringState, rules: Rules, coin: int) -> bool:
    if rules.presampled:
        number = state.explored.sum()
        return bool(number < len(rules.schedule) and rules.schedule[number] == state.rounds[0])
    return coin < rules.share * COIN


@inline
def _show(row: Items, slot: int, item: int) -> None:
    """What is seen of the experts' items: repeats leave slots empty; an exploration ends the slate."""
    for j in range(len(row)):
        if slot != NO_PROBE and j > slot:
            row[j] = EMPTY_SLOT
        else:
            shown = item if j == slot else row[j]
            row[j] = EMPTY_SLOT if shown_before(row, j, shown) else shown


@kernel
def draw_round(
    experts: HedgeState,
    state: ExploringState,
    rules: Rules,
    paid: Ints,
    row: Items,
    probe: Items,
    coins: PublicWords,
    secret: SecretWords,
) -> bool:
    """`next_round`, to be called from outside."""
    return next_round(experts, state, rules, paid, row, probe, coins, secret)


@kernel
def learn_payoff(experts: HedgeState, probe: Items, payoff: float) -> None:
    """The expert that explored learns the payoff as the gain of the item it tried; others, nothing."""
    if probe[0] != NO_PROBE:
        learn(experts, probe[0], probe[1], to_ticks(payoff))


@kernel
def replay_rounds(
    experts: HedgeState,
    state: ExploringState,
    rules: Rules,
    paid: Ints,
    table: Table,
    slates: Items,
    done: int,
    coins: PublicWords,
    secret: SecretWords,
    person: Floats,
    probe: Items,
) -> int:
    """Rounds from `done` on, each answered at once, until one must be resumed."""
    while done < slates.shape[0] and next_round(
        experts, state, rules, paid, slates[done], probe, coins, secret
    ):
        if probe[0] != NO_PROBE:
            start(table, done, person, 0)
            for item in slates[done]:
                if item != EMPTY_SLOT:
                    add(table, done, person, 0, item)
            learn(experts, probe[0], probe[1], to_ticks(value(table, done, person, 0)))
        done += 1
    return done


class BanditExperts(Learner):
    """Experts that learn from exploring rounds only."""

    reads: ClassVar[frozenset[FeedbackKind]] = frozenset({"bandit"})
    rate: float

    @abstractmethod
    def _rules(self) -> Rules:
        """How much is explored, and who redraws."""

    @property
    @abstractmethod
    def _paid(self) -> Ints:
        """How many redraws of one expert are paid for."""

    def _start(self) -> None:
        self._experts = new_hedge(self.n_items, self.slots, self.rate)
        self._exploring = new_exploring(self.slots)
        self._fixed = self._rules()

    def _state(self) -> Any:
        return learned(self._experts), self._exploring

    def _check(self) -> None:
        check_fixed(self._experts, self.rate, self.rounds)
        state, rules, rounds = self._exploring, self._fixed, self.rounds
        used = state.explored.max() if rules.resample == OWN else sum(state.explored.tolist())
        planned = int((rules.schedule < rounds).sum())
        sound = (
            state.rounds[0] == rounds
            and EVERYBODY <= state.due[0] < self.slots
            and ((state.redraws >= 0) & (state.redraws <= max(0, rounds - 1))).all()
            and ((state.explored >= 0) & (state.explored <= rounds)).all()
            and used <= rules.cap
            and (rules.resample == EVERY or (state.redraws <= rules.cap).all())
            and (used == planned or not rules.presampled)
            and (state.current >= (0 if self.rounds else EMPTY_SLOT)).all()
            and (state.current < self.n_items).all()
        )
        if not sound:
            raise InvalidInput("The snapshot holds a slate that could not have come about; it was altered.")

    def _draw(self, row: Items, probe: Items) -> bool:
        return bool(
            draw_round(
                self._experts,
                self._exploring,
                self._fixed,
                self._paid,
                row,
                probe,
                self._public.view,
                self._secret.view,
            )
        )

    def _read(self, decision: Decision, feedback: Any) -> float:
        return read_payoff(self, feedback)

    def _learn(self, place: int, answer: float) -> None:
        learn_payoff(self._experts, self._decisions.probes[place], answer)

    def _replay(self, people: People, slates: Items, done: int) -> int:
        return int(
            replay_rounds(
                self._experts,
                self._exploring,
                self._fixed,
                self._paid,
                people.table,
                slates,
                done,
                self._public.view,
                self._secret.view,
                np.empty(people.largest_state),
                np.empty(3, dtype=np.int32),
            )
        )


class StreeterGolovinBandit(BanditExperts):
    """The original, not private: k (N log N / T)^(1/3) of the rounds explore, and everybody draws in every round."""

    name: ClassVar[str] = "streeter-golovin-bandit"
    summary: ClassVar[str] = "exploring Hedge experts as in 2008, textbook constants; not private"

    def __init__(
        self,
        n_items: int,
        slots: int,
        *,
        exploring: float,
        rate: float,
        coins: Coins | None = None,
        patience: int = 10_000,
    ) -> None:
        super().__init__(n_items, slots, coins=coins, patience=patience)
        self.exploring = share_of_rounds(exploring)
        self.rate = _validate.positive_float(rate, "rate")
        self._start()

    @classmethod
    def for_setting(cls, setting: Setting, *, coins: Coins | None = None) -> Self:
        """The constants that make the bound least."""
        n, k, rounds = setting.n_items, setting.slots, setting.rounds
        exploring = default_exploring(n, k, rounds)
        rate = math.sqrt(k * n * math.log(max(2, n)) / (exploring * rounds))
        return cls(n, k, exploring=exploring, rate=min(constants.FASTEST, rate), coins=coins)

    @property
    def guarantee(self) -> Guarantee:
        """None."""
        return no_privacy(self.coins.secure)

    @property
    def _paid(self) -> Ints:
        return np.full(self.slots, UNLIMITED)

    def _restored(self) -> None:
        super()._restored()
        self._check()

    def _rules(self) -> Rules:
        return Rules(self.exploring, UNLIMITED, EVERY, np.empty(0, dtype=np.int64), False)

    def _config(self) -> dict[str, Any]:
        return super()._config() | {"exploring": self.exploring, "rate": self.rate}


def share_of_rounds(value: float) -> float:
    """A probability, 0 allowed."""
    if value == 0 and not isinstance(value, bool):
        return 0.0
    share = _validate.positive_float(value, "exploring")
    if share > 1:
        raise InvalidInput(f"exploring is a share of rounds, at most 1; got {value}.")
    return share
