"""Ordered experts, not private: one per slot, of Hedge or of any other kind.

An expert that draws an item shown already draws again, and after a few attempts takes one of the others at random:
slates are always full, and no expert gains less by it (docs/maths/hedge.md, remark e).

Hedge experts are compiled (full.py says how they learn). Experts of any other kind (experts/__init__.py) are Python
objects, asked one after the other: `replay` is then a loop in Python, as slow as `choose` and `observe`.

Regret     (1 - 1/e) of the best slate in hindsight minus our reward is at most the sum of the experts'
           regrets (docs/maths/hedge.md, Theorem 2), of Hedge experts O(sqrt(k T log N)) with nothing to tune.
Guarantee  none. This is the yardstick for the price of privacy.
References Streeter & Golovin (2008), NIPS 21; Perez-Salazar & Cummings (2021), AISTATS, Algorithm 2 without noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from diminuendo import _validate
from diminuendo._numba import kernel
from diminuendo.errors import InvalidInput
from diminuendo.experts import EXPERTS, Expert
from diminuendo.learners.base.entry import Advice, Entry
from diminuendo.learners.base.feedback import CompiledObjective, CompiledObjectives
from diminuendo.learners.base.feedback_window import Patient
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.hedge.full import ATTEMPTS, FullInformationPolicy, find_gains_of_slots, not_shown
from diminuendo.learners.hedge.private_draws import FreeDraws, SecretScoresPolicy
from diminuendo.objectives.family import Table, new_gain_buffer
from diminuendo.objectives.user import largest_state
from diminuendo.randomness.sources import RandomSource
from diminuendo.randomness.words import UNFINISHED, SecretWords, begin, below, undo
from diminuendo.types import EMPTY_SLOT, Items


class AnyExpertsPolicy(SecretScoresPolicy):
    """k ordered experts of any kind, not private."""

    reader = CompiledObjectives()

    def __init__(self, frame: Frame, experts: Sequence[Expert], options: dict[str, Any]) -> None:
        self.frame, self._draws, self._options = frame, FreeDraws(frame), options
        self._experts = list(experts)

    # The door: every slate is drawn from what experts have learned, and nothing is paid.

    def draw(self, row: Items, probe: Items) -> bool:
        """One item of each expert, all different."""
        row[:] = EMPTY_SLOT
        for slot, expert in enumerate(self._experts):
            row[slot] = self._new_item(expert, row, slot)
        return True

    def _new_item(self, expert: Expert, row: Items, slot: int) -> int:
        """What the expert draws, if that is not shown yet; after a few attempts, any item that is not."""
        secret = self.frame.secret
        for _ in range(ATTEMPTS):
            item = expert.draw(secret)
            if item not in row[:slot]:
                return item
        with secret.lock:
            while (item := int(_any_other(self.frame.n_items, row, slot, secret.view))) == UNFINISHED:
                secret.resume()
        return item

    # Private: every expert learns what each item would have gained.

    def learn(self, place: int, answer: CompiledObjective) -> None:
        """Every expert learns what each item would have added to the slots before its own."""
        self._learn(*answer, self.frame.decisions.rows[place])

    def _learn(self, table: Table, user: int, n_matrices: int, row: Items) -> None:
        n_items, state = self.frame.n_items, np.empty(largest_state(table, user, user + 1))
        result = np.zeros((len(row), n_items))
        find_gains_of_slots(table, user, row, state, new_gain_buffer(n_items, n_matrices), result)
        for expert, row_of_gains, drawn in zip(self._experts, result, row.tolist(), strict=True):
            expert.learn(row_of_gains, drawn)

    # What a snapshot holds.

    def state(self) -> Any:
        """What each expert has learned."""
        return tuple(expert.state() for expert in self._experts)

    def restored(self) -> None:
        """Let each expert rebuild what follows from its state."""
        for expert in self._experts:
            expert.restored()


def ordered_experts(
    n_items: int,
    slots: int,
    *,
    rate: float | None = None,
    expert: str = "hedge",
    rng: RandomSource | None = None,
    feedback_window: Patient = None,
) -> Learner:
    """Return k ordered experts, one per slot. Full information, not private: the yardstick for the price of privacy.

    Parameters
    ----------
    n_items : int
        Number of items.
    slots : int
        Number of items in a slate.
    rate : float, optional
        Learning rate of Hedge experts. By default each finds its own.
    expert : str, default "hedge"
        Kind of expert, by its name in `experts.EXPERTS`. Other kinds than Hedge are not compiled.
    rng : RandomSource, optional
        Randomness. By default SystemSource.
    feedback_window : FeedbackWindow or int, optional
        Feedback window.

    Returns
    -------
    Learner

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Notes
    -----
    Expected regret O(sqrt(k T log N)) against (1 - 1/e) of the best slate with own rates (Theorem 2 of
    docs/maths/hedge.md).

    References
    ----------
    Streeter & Golovin (2008), An online algorithm for maximizing submodular functions, NIPS 21.

    Examples
    --------
    >>> import diminuendo as dim
    >>> learner = dim.OrderedExperts(20, 3, rng=dim.SeededSource(1))
    >>> learner.guarantee.epsilon, round(learner.regret_bound(10_000))
    (inf, 1499)
    """
    frame = Frame("hedge", n_items, slots, rng=rng, feedback_window=feedback_window)
    if _validate.one_of(expert, tuple(EXPERTS), "expert") == "hedge":
        options = {"rate": rate}
        return Learner(FullInformationPolicy(frame, rate, FreeDraws(frame), repeats=False, options=options))
    if rate is not None:
        raise InvalidInput(
            f"A rate is for 'hedge' experts; got rate={rate!r} for experts of kind {expert!r}."
        )
    return Learner(
        AnyExpertsPolicy(
            frame, [EXPERTS[expert](frame.n_items) for _ in range(frame.slots)], {"expert": expert}
        )
    )


OrderedExperts = Entry(
    "hedge",
    ordered_experts,
    reads=CompiledObjectives.kinds,
    summary="one Hedge expert per slot, full information; not private; the yardstick",
    advice=Advice("none", "k√(T log N)", "scores", "as the non-private yardstick"),
    private=False,
)


@kernel
def _any_other(n_items: int, row: Items, slot: int, secret: SecretWords) -> int:
    """An item that is not shown in slots before `slot`; UNFINISHED, nothing used, to be resumed."""
    begin(secret)
    number = below(n_items - slot, secret)
    if number == UNFINISHED:
        undo(secret)
        return number
    return not_shown(row, slot, number)
