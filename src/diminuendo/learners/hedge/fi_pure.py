"""Algorithm 2 with the purely private experts of Thakurta and Smith in place of Hedge. Real arithmetic only.

Expert i follows the leader on noisy sums of its gains (experts/noisy_leader.py). The noise in every score is of order
k N log^1.5 T / epsilon, so it takes many more users than that before anything is learned.

A round's contribution enters the sums when the round expires, whether an answer came or not: as soon as more than
`feedback_window` further rounds are chosen. Later feedback is ignored. So the window is
short here, and memory grows with it.

Regret     at most k times `experts.noisy_leader.pftal_bound` with R = 1, L = sqrt N: of order k^1.5 N sqrt(T / epsilon)
           up to logarithms, and N^1.5 with the paper's curvature (docs/maths/paper.md, Theorem P4).
Guarantee  (epsilon, 0), epsilon / k for each expert (docs/maths/paper.md, Theorem P4); one round of a user who has m
           costs epsilon / m (docs/maths/accounting.md, Theorem A9). Real numbers only: not for serving users.
Readable   paper/algorithms.py, `fi_pure`: the same slates from the same words.
References Perez-Salazar & Cummings (2021), AISTATS, section 3, remark; Thakurta & Smith (2013), NIPS 26.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from diminuendo import _validate
from diminuendo._numba import kernel
from diminuendo.experts.noisy_leader import (
    PureState,
    best_curvature,
    catch_up,
    draw_slate,
    new_leaders,
    next_slate,
    paper_curvature,
    pftal_bound,
    pure_noise,
)
from diminuendo.learners.base.entry import Advice, Entry
from diminuendo.learners.base.feedback import CompiledObjective, CompiledObjectives
from diminuendo.learners.base.feedback_window import Patient
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.policy import Policy
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.hedge.constants import CALIBRATIONS, NOT_FOR_USE, Calibration, checked
from diminuendo.learners.hedge.full import find_gains_of_slots, gains_of_slots
from diminuendo.learners.hedge.private_draws import recipe_arguments
from diminuendo.objectives.family import GainBuffer, Table, new_gain_buffer
from diminuendo.objectives.user import largest_state
from diminuendo.privacy.budget import Budget, Guarantee
from diminuendo.privacy.events import Laplace
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.rounding import lowered
from diminuendo.randomness.sources import RandomSource
from diminuendo.randomness.words import PublicWords, SecretWords
from diminuendo.streams.users import Users
from diminuendo.types import Floats, Items

NAME = "fi-pure"


class FiPurePolicy(Policy):
    """Algorithm 2 with PFTAL experts, made for `horizon` rounds."""

    reader = CompiledObjectives()
    purpose = "releases of one running sum"
    budget: Budget

    def __init__(self, frame: Frame, horizon: int, budget: Budget, curvature: float) -> None:
        self.frame, self.horizon, self.budget, self.curvature = frame, horizon, budget, curvature
        max_rounds_per_user, epsilon = frame.max_rounds_per_user, budget.epsilon
        self.one_round = lowered(
            epsilon / max_rounds_per_user,
            lambda cost: max_rounds_per_user * Fraction(cost) <= Fraction(epsilon),
        )
        """What one round costs, by which noise is drawn: `max_rounds_per_user` of them no more than epsilon."""
        self._experts = new_leaders(
            frame.n_items, frame.slots, horizon, self.one_round, curvature, frame.decisions.remembered
        )
        self._is_paid = False

    # What is promised.

    @property
    def events(self) -> Laplace:
        """What the whole run costs one round."""
        return Laplace(self.one_round)

    @property
    def guarantee(self) -> Guarantee:
        """Pure, for real numbers."""
        return self._pure("docs/maths/paper.md, Theorem P4")

    @property
    def claim(self) -> Guarantee:
        """The paper claims what is proved here."""
        return self._pure("Perez-Salazar & Cummings (2021), section 3, remark")

    def _pure(self, proof: str) -> Guarantee:
        frame, worth = self.frame, self.budget.worth_of(self.events, self.frame.max_rounds_per_user)
        return Guarantee(worth, 0.0, str(frame.unit), proof, frame.rng.secure, exact=False)

    def regret_bound(self, rounds: int | None = None) -> float | None:
        """That of one expert, once for each, with the noise of the whole run; None if gains wait for late answers."""
        if self.frame.decisions.remembered > 1:
            return None
        n_items, slots = self.frame.n_items, self.frame.slots
        noise = pure_noise(n_items, slots, self.horizon, self.one_round)
        return slots * pftal_bound(1.0, math.sqrt(n_items), rounds or self.horizon, self.curvature, noise)

    # The door: all sums are paid for before the first slate; noise is drawn by the kernel as rounds expire.

    def due(self) -> bool:
        """Whether its ledger has not paid yet: a learner that is restored publishes, and pays, again."""
        return self.frame.ledger is not None and not self._is_paid

    def release(self) -> None:
        """Pay for all sums of the whole run."""
        frame = self.frame
        if frame.ledger is not None:
            about = f"{frame.name}: all sums of {frame.horizon} rounds"
            frame.ledger.charge(self.events, about, secure=frame.rng.secure)
        self._is_paid = True

    def draw(self, row: Items, probe: Items) -> bool:
        """Publish the sums with the round that expires, and draw one item from each expert's point."""
        frame = self.frame
        return draw_slate(self._experts, row, frame.rounds, frame.public.view, frame.secret.view)

    # Private: gains wait until their round expires.

    def learn(self, place: int, answer: CompiledObjective) -> None:
        """What every item would have added to the slots before each expert's, clipped to [0, 1]."""
        table, user, n_matrices = answer
        state = np.empty(largest_state(table, user, user + 1))
        row, room = self.frame.decisions.rows[place], new_gain_buffer(self.frame.n_items, n_matrices)
        find_gains_of_slots(table, user, row, state, room, self._experts.pending[place])

    def replay(self, users: Users, slates: Items, done: int) -> int:
        """Draw and learn, round by round, compiled."""
        frame, before = self.frame, self.frame.rounds - done
        room = np.empty(users.largest_state), new_gain_buffer(frame.n_items, users.family.leaves)

        def play(done: int, stop: int) -> int:
            words = frame.public.view, frame.secret.view
            return _replay(self._experts, users.table, slates[:stop], done, before, *words, *room)

        return frame.stride(play, done, len(users))

    # What a snapshot holds.

    def config(self) -> dict[str, Any]:
        """Epsilon, and the curvature."""
        return {"epsilon": self.budget.epsilon, "curvature": self.curvature}

    def state(self) -> Any:
        """The tree of sums, and gains that wait."""
        tree = self._experts.tree
        return tree.done, tree.nodes, tree.published, self._experts.pending

    def restored(self) -> None:
        """Points follow from sums."""
        tree = self._experts.tree
        if tree.done[0]:
            self._experts.sums[...] = tree.published.sum(axis=0)
            catch_up(self._experts)


def fi_pure(
    n_items: int,
    slots: int,
    *,
    horizon: int,
    epsilon: float,
    curvature: float,
    max_rounds_per_user: int = 1,
    ledger: Ledger | None = None,
    rng: RandomSource | None = None,
    feedback_window: Patient = 0,
) -> Learner:
    """Return Algorithm 2 with the purely private experts of Thakurta and Smith. Full information; real arithmetic only.

    Parameters
    ----------
    n_items : int
        Number of items.
    slots : int
        Number of items in a slate.
    horizon : int
        Number of rounds.
    epsilon : float
        Privacy budget.
    curvature : float
        Strong convexity of the regulariser of each expert.
    max_rounds_per_user : int, default 1
        Contribution bound: how many rounds of one user count.
    ledger : Ledger, optional
        What is charged. By default a ledger of its own, in memory.
    rng : RandomSource, optional
        Randomness. By default SystemSource.
    feedback_window : FeedbackWindow or int, default 0
        Feedback window, in rounds. Memory grows with it.

    Returns
    -------
    Learner

    Raises
    ------
    OverBudget
        If the ledger cannot pay for the run.
    InvalidInput
        If an argument is out of range.

    Notes
    -----
    (epsilon, 0)-DP in real arithmetic, epsilon / k for each expert (Theorem P4 of docs/maths/paper.md). The noise
    is drawn in floats, so this is for study and not for serving users.

    References
    ----------
    Perez-Salazar & Cummings (2021), AISTATS, section 3. Thakurta & Smith (2013), (Nearly) optimal algorithms for
    private online learning in full-information and bandit settings, NIPS 26.
    """
    frame = Frame(
        NAME,
        n_items,
        slots,
        horizon=horizon,
        max_rounds_per_user=max_rounds_per_user,
        ledger=ledger,
        rng=rng,
        feedback_window=feedback_window,
    )
    budget = Budget(_validate.positive_float(epsilon, "epsilon"), 0.0, frame.unit, "pure")
    rounds = _validate.positive_int(horizon, "horizon")
    return Learner(FiPurePolicy(frame, rounds, budget, _validate.positive_float(curvature, "curvature")))


def calibrated(
    setting: Setting,
    calibration: Calibration,
    *,
    rng: RandomSource | None = None,
    ledger: Ledger | None = None,
) -> Learner:
    """With the paper's curvature, or the one that makes our bound least. Delta is not used: it stays 0."""
    n, k, rounds, epsilon = setting.n_items, setting.slots, setting.rounds, setting.epsilon
    one_round = epsilon / setting.max_rounds_per_user
    if checked(calibration) == "paper":
        curvature = paper_curvature(n, max(2, rounds), one_round / k)
    else:
        curvature = best_curvature(1.0, math.sqrt(n), rounds, pure_noise(n, k, rounds, one_round))
    arguments = recipe_arguments(setting, rng, ledger)
    del arguments["delta"]
    return fi_pure(**arguments, curvature=curvature)


def _with_calibration(calibration: Calibration) -> dict[str, Any]:
    """The entry for another calibration than `tight`."""
    return {
        "summary": "Thakurta and Smith's experts with the paper's own curvature",
        "advice": Advice("(ε, 0) in reals", "√(N³T/ε)", "sums", NOT_FOR_USE),
        "fits": partial(calibrated, calibration=calibration),
    }


FiPure = Entry(
    NAME,
    fi_pure,
    reads=CompiledObjectives.kinds,
    summary="Algorithm 2 with Thakurta and Smith's experts: delta 0, far more noise; real arithmetic",
    advice=Advice("(ε, 0) in reals", "N√(T/ε)", "sums", "to study pure privacy; far more noise"),
    fits=partial(calibrated, calibration="tight"),
    pure=True,
    audited_on=((2, 1, 4),),
    choices=CALIBRATIONS,
    vary=_with_calibration,
)


@kernel
def _replay(
    experts: PureState,
    table: Table,
    slates: Items,
    done: int,
    before: int,
    rng: PublicWords,
    secret: SecretWords,
    state: Floats,
    bag: GainBuffer,
) -> int:
    waiting = experts.pending.shape[0]
    while done < slates.shape[0] and next_slate(experts, slates[done], before + done, rng, secret):
        gains_of_slots(table, done, slates[done], state, bag, experts.pending[(before + done) % waiting])
        done += 1
    return done
