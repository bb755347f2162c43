"""k ordered Hedge experts with bandit feedback, as printed: one fixed rate, repeats allowed.

A round is in exploring.py, the private ones are in bandit_dp.py. Here is what they share, and the original of Streeter
and Golovin, which is not private.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.experts.hedge import check_fixed, learned, new_hedge
from diminuendo.learners import constants
from diminuendo.learners.answers import read_payoff
from diminuendo.learners.explore_exploit import default_exploring
from diminuendo.learners.exploring import (
    EVERY,
    EVERYBODY,
    OWN,
    Rules,
    draw_round,
    learn_payoff,
    new_exploring,
    replay_rounds,
)
from diminuendo.learners.learner import Learner, Setting
from diminuendo.privacy.budget import Guarantee, no_privacy
from diminuendo.privacy.meter import UNLIMITED
from diminuendo.randomness.coins import Coins
from diminuendo.streams.people import People
from diminuendo.types import EMPTY_SLOT, Decision, FeedbackKind, Ints, Items


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
                self._public.handful,
                self._secret.handful,
            )
        )

    def _read(self, decision: Decision, feedback: Any) -> float:
        return read_payoff(self, feedback)

    def _learn(self, place: int, answer: float) -> None:
        learn_payoff(self._experts, self._desk.probes[place], answer)

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
                self._public.handful,
                self._secret.handful,
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
