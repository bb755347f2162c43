"""Algorithm 2 with the purely private experts of Thakurta and Smith in place of Hedge. Real arithmetic only.

Expert i follows the leader on noisy sums of its gains (experts/noisy_leader.py). The noise in every score is of order
k N log T / epsilon, so it takes many more people than that before anything is learned.

A round's contribution enters the sums when the round expires, `patience` rounds later, whether an answer came or not;
whoever answers later than that has said nothing. So patience is short here, and memory grows with it.

Regret     at most k times `experts.pftal.pftal_bound` with R = 1, L = sqrt N (docs/maths/paper.md, Theorem P4).
Guarantee  (epsilon, 0), epsilon / k for each expert (docs/maths/paper.md, Theorem P4); one round of a person who has m
           costs epsilon / m (docs/maths/accounting.md, Theorem A9). Real numbers only: not for serving people.
References Perez-Salazar & Cummings (2021), AISTATS, section 3, remark; Thakurta & Smith (2013), NIPS 26.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from diminuendo import _validate
from diminuendo._numba import inline, kernel
from diminuendo.errors import InvalidInput
from diminuendo.experts.noisy_leader import (
    PureState,
    best_curvature,
    catch_up,
    new_leaders,
    next_slate,
    paper_curvature,
    pure_noise,
)
from diminuendo.learners.base.old_feedback import FullInformation, Read
from diminuendo.learners.base.old_private import PrivateLearner
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.hedge.constants import Calibration, checked
from diminuendo.objectives.family import GainBuffer, Table, add, gains, start
from diminuendo.objectives.person import largest_state
from diminuendo.privacy.budget import Guarantee
from diminuendo.privacy.events import Laplace
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.rounding import lowered
from diminuendo.randomness.coins import Coins
from diminuendo.randomness.words import PublicWords, SecretWords
from diminuendo.streams.people import People, shown_before
from diminuendo.types import EMPTY_SLOT, Floats, Items


class FiPure(FullInformation, PrivateLearner):
    """Algorithm 2 with PFTAL experts."""

    name: ClassVar[str] = "fi-pure"
    calibration: ClassVar[Calibration] = "tight"
    summary: ClassVar[str] = (
        "Algorithm 2 with Thakurta and Smith's experts: delta 0, far more noise; real arithmetic"
    )

    def __init__(
        self,
        n_items: int,
        slots: int,
        *,
        horizon: int,
        epsilon: float,
        curvature: float,
        visits: int = 1,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
        patience: int = 1,
    ) -> None:
        PrivateLearner.__init__(
            self,
            n_items,
            slots,
            horizon=horizon,
            visits=visits,
            ledger=ledger,
            coins=coins,
            patience=patience,
        )
        self.epsilon = _validate.positive_float(epsilon, "epsilon")
        self.curvature = _validate.positive_float(curvature, "curvature")
        self._experts = new_leaders(
            self.n_items, self.slots, self.horizon, self.one_round, self.curvature, self._decisions.patience
        )
        self._paid = False

    @classmethod
    def for_setting(
        cls, setting: Setting, *, coins: Coins | None = None, ledger: Ledger | None = None
    ) -> Self:
        """With the curvature of its calibration. Delta is not used: it stays 0."""
        return cls.calibrated(setting, cls.calibration, coins=coins, ledger=ledger)

    @classmethod
    def calibrated(
        cls,
        setting: Setting,
        calibration: Calibration,
        *,
        coins: Coins | None = None,
        ledger: Ledger | None = None,
    ) -> Self:
        """With the paper's curvature, or the one that makes our bound least."""
        n, k, rounds, epsilon = setting.n_items, setting.slots, setting.rounds, setting.epsilon
        one_round = epsilon / setting.visits
        if checked(calibration) == "paper":
            curvature = paper_curvature(n, max(2, rounds), one_round / k)
        else:
            curvature = best_curvature(1.0, math.sqrt(n), rounds, pure_noise(n, k, rounds, one_round))
        return cls(
            n,
            k,
            horizon=rounds,
            epsilon=epsilon,
            curvature=curvature,
            visits=setting.visits,
            ledger=ledger,
            coins=coins,
        )

    @property
    def one_round(self) -> float:
        """What one round may cost: `visits` of them no more than epsilon."""
        whole = Fraction(self.epsilon)
        return lowered(self.epsilon / self.visits, lambda cost: self.visits * Fraction(cost) <= whole)

    @property
    def guarantee(self) -> Guarantee:
        """Pure, for real numbers."""
        proof = "docs/maths/paper.md, Theorem P4"
        return Guarantee(self.epsilon, 0.0, str(self.unit), proof, self.coins.secure, exact=False)

    @property
    def claim(self) -> Guarantee:
        """The paper claims the same."""
        return Guarantee(
            self.epsilon,
            0.0,
            str(self.unit),
            "Perez-Salazar & Cummings (2021), section 3, remark",
            self.coins.secure,
            exact=False,
        )

    def _config(self) -> dict[str, Any]:
        return super()._config() | {
            "epsilon": self.epsilon,
            "curvature": self.curvature,
        }

    def _admit(self, rounds: int) -> None:
        super()._admit(rounds)
        if (
            self._given is not None and not self._paid
        ):  # whoever goes on from a snapshot publishes, and pays, anew
            about = f"{self.name}: all sums of {self.horizon} rounds"
            self._given.charge(Laplace(self.one_round), about, secure=self.coins.secure)
            self._paid = True

    def _state(self) -> Any:
        tree = self._experts.tree
        return tree.done, tree.nodes, tree.published, self._experts.pending

    def _restored(self) -> None:
        super()._restored()
        tree, pending = self._experts.tree, self._experts.pending
        done = int(tree.done[0])
        empty = [level for level in range(len(tree.nodes)) if not done >> level & 1]
        sound = (
            done == max(0, self.rounds - self._decisions.patience)
            and not tree.nodes[empty].any()
            and not tree.published[empty].any()
            and ((tree.nodes >= 0) & (tree.nodes <= done)).all()
            and np.isfinite(tree.published.sum(axis=0)).all()
            and ((pending >= 0) & (pending <= 1)).all()
        )
        if not sound:
            raise InvalidInput("The snapshot holds sums that could not have come about; it was altered.")
        if done:
            self._experts.sums[...] = tree.published.sum(axis=0)
            catch_up(self._experts)

    def _draw(self, row: Items, probe: Items) -> bool:
        return bool(_draw_slate(self._experts, row, self.rounds, self._public.view, self._secret.view))

    def _learn(self, place: int, answer: Read) -> None:
        table, person, leaves = answer
        state = np.empty(largest_state(table, person, person + 1))
        _learn_person(
            self._experts, place, table, person, self._decisions.rows[place], state, self._bag(leaves)
        )

    def _replay(self, people: People, slates: Items, done: int) -> int:
        return int(
            _replay(
                self._experts,
                people.table,
                slates,
                done,
                self.rounds - done,
                self._public.view,
                self._secret.view,
                np.empty(people.largest_state),
                self._bag(people.family.leaves),
            )
        )


class FiPurePaper(FiPure):
    """The same with the paper's curvature."""

    name: ClassVar[str] = "fi-pure-paper"
    summary: ClassVar[str] = "Thakurta and Smith's experts with the paper's own curvature"
    calibration: ClassVar[Calibration] = "paper"


@inline
def _take_gains(
    experts: PureState, place: int, table: Table, person: int, row: Items, state: Floats, bag: GainBuffer
) -> None:
    start(table, person, state, 0)
    for slot in range(len(row)):
        for j in range(gains(table, person, state, 0, bag, 0)):
            item, gain = bag.items[j], bag.gains[j]
            if gain > 0.0 and not shown_before(row, slot, item):  # NaN is not
                experts.pending[place, slot, item] = min(gain, 1.0)
        if row[slot] != EMPTY_SLOT:
            add(table, person, state, 0, row[slot])


@kernel
def _draw_slate(experts: PureState, row: Items, number: int, coins: PublicWords, secret: SecretWords) -> bool:
    return next_slate(experts, row, number, coins, secret)


@kernel
def _learn_person(
    experts: PureState, place: int, table: Table, person: int, row: Items, state: Floats, bag: GainBuffer
) -> None:
    _take_gains(experts, place, table, person, row, state, bag)


@kernel
def _replay(
    experts: PureState,
    table: Table,
    slates: Items,
    done: int,
    before: int,
    coins: PublicWords,
    secret: SecretWords,
    state: Floats,
    bag: GainBuffer,
) -> int:
    patience = experts.pending.shape[0]
    while done < slates.shape[0] and next_slate(experts, slates[done], before + done, coins, secret):
        _take_gains(experts, (before + done) % patience, table, done, slates[done], state, bag)
        done += 1
    return done
