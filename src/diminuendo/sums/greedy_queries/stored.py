r"""Users who are kept, and asked again at every release, with weights.

A batch of users may enter many releases, if the squares of its weights are accounted for: release b multiplies the
users of batch j by a whole number W_bj, and each batch pays for itself (`NormalColumns` events; the ledger refuses the
release that would take any batch over the budget). Weights in proportion to t_j / t_b let all users be asked again at
every release at a bounded price, and averages over releases then lose nothing however many there are.

Guarantee  that of the ledger's budget, counted as zcdp or as continuous-gaussian: docs/maths/sums.md, Theorems S4
           and S6. A release is charged before its first noise is drawn.
Assumes    one entry per user-round, its batch the one open when the slate was chosen; it may come late.
Excludes   timing, and the memory of the process, which holds what users said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput, refuse_copies
from diminuendo.privacy.ledger import Ledger, Paid
from diminuendo.randomness.words import SecretRandomness
from diminuendo.sums.clip import Clip
from diminuendo.sums.greedy_queries.cells import (
    CellRelease,
    Deviations,
    SharedQueryWeights,
    ValueColumn,
    checked_shares,
    deviations,
)
from diminuendo.sums.greedy_queries.cost import (
    AROUND,
    UNIT,
    cost_of_one,
    deviation_for,
    partition,
    release_cost,
    split_deviations,
    squared_shifts,
)
from diminuendo.sums.greedy_queries.participants import Participants
from diminuendo.sums.greedy_queries.query_weights import FULL, QueryWeights, checked_query_weights
from diminuendo.sums.greedy_queries.release import GreedyRelease
from diminuendo.sums.greedy_queries.swap import SwapRelease, checked_slate
from diminuendo.sums.private_sum import ROOM
from diminuendo.sums.schedule import Schedule
from diminuendo.types import Floats, Ints

FreezeUsers = Callable[[Ints, Floats], Participants]
"""From the weights of batches and the factors of items to the users of a release, as they are now."""


class StoredUsers:
    """Releases over stored users: charged here, and drawn of sums over those who are stored elsewhere."""

    __getstate__ = refuse_copies

    def __init__(
        self,
        n_items: int,
        *,
        schedule: Schedule,
        ledger: Ledger,
        clip: Clip | None = None,
        name: str = "users",
        columns: Sequence[ValueColumn] = (),
        participants: FreezeUsers,
    ) -> None:
        self.n_items = _validate.positive_int(n_items, "n_items")
        self.schedule, self.ledger, self.name, self._participants = schedule, ledger, name, participants
        self.clip = Clip() if clip is None else clip
        if self.clip.norm != "l2" or self.clip.signed:
            raise InvalidInput("Stored users contribute gains: an l2 clip of entries that are not negative.")
        widest = (
            self.clip.limit if columns else self.clip.largest
        )  # counts of users are in units of the limit
        if schedule.rounds * widest * UNIT > ROOM:
            raise InvalidInput(
                f"{schedule.rounds:,} users of {self.clip.ticks} ticks could overflow; take fewer."
            )
        self.columns = tuple(columns)
        """What is known of users of each type; none without contexts."""
        self.n_types = len(self.columns[0].of_type) if self.columns else 1
        ledger.hold(name)
        self._partition = partition(name, schedule)
        self.added = 0
        """How many users have come so far."""

    def __repr__(self) -> str:
        return f"<StoredUsers, {self.n_items} items>"

    def begin_greedy(
        self,
        number: int,
        weights: Sequence[int] | Ints,
        sigmas: tuple[float, float],
        query_weights: QueryWeights,
        secret: SecretRandomness,
    ) -> GreedyRelease:
        """Begin release `number`, in which users of batch j have weights[j]. Charge it before anything is drawn.

        `sigmas` are the planned deviations of singleton values and of marginal losses; query weights divide the same
        cost anew. They are stored with the release. After a crash, calling again with the same number and weights
        resumes with the stored query weights and earlier draws; the argument is then ignored.
        """
        whole, query_weights = _checked_weights(weights), checked_query_weights(query_weights, self.n_items)
        paid = self._bought(number, whole, sigmas, "a chain over")
        kept = query_weights.kept(paid, secret)
        split = split_deviations(squared_shifts(self.n_items, self.clip), sigmas, kept.share)
        return GreedyRelease(self._participants(whole, kept.factors), paid, split, kept.factors)

    def swap(
        self,
        number: int,
        weights: Sequence[int] | Ints,
        sigmas: tuple[float, float],
        slate: Sequence[int] | Ints,
        query_weights: QueryWeights,
        secret: SecretRandomness,
    ) -> SwapRelease:
        """Publish a swap query around a slate as release `number`, in place of a query sequence of the same cost.

        `sigmas`: those of the query sequence. A number that was charged as one kind is refused as the other.
        """
        whole, shown = _checked_weights(weights), checked_slate(slate, self.n_items)
        query_weights = checked_query_weights(query_weights, self.n_items)
        paid = self._bought(number, whole, sigmas, f"{AROUND} {len(shown)} of")
        factors = query_weights.kept(paid, secret).factors
        cost = cost_of_one(squared_shifts(self.n_items, self.clip), sigmas)
        sigma = deviation_for(cost, self.clip.sensitivity_squared((len(shown) + 1) * self.n_items))
        return SwapRelease(self._participants(whole, factors), shown, paid, sigma, factors)

    def in_contexts(
        self,
        number: int,
        weights: Sequence[int] | Ints,
        sigmas: tuple[float, float],
        query_weights: SharedQueryWeights,
        secret: SecretRandomness,
    ) -> tuple[GreedyRelease, CellRelease]:
        """As `begin_greedy` at the same cost, with a query sequence per context and sums in cells of columns."""
        whole, paid, kept = self._shared(number, weights, sigmas, query_weights, "a chain over", secret)
        shifts, users = (
            squared_shifts(self.n_items, self.clip),
            self._participants(whole, kept.weights / FULL),
        )
        apart = self._apart(kept, sigmas, shifts[1])
        prefix = GreedyRelease(
            users, paid, (apart.singletons, apart.others), kept.weights / FULL, self.n_types
        )
        return prefix, CellRelease(users, self.columns, self.clip, paid, apart, self.n_items)

    def swap_in_contexts(
        self,
        number: int,
        weights: Sequence[int] | Ints,
        sigmas: tuple[float, float],
        slate: Sequence[int] | Ints,
        query_weights: SharedQueryWeights,
        secret: SecretRandomness,
    ) -> tuple[SwapRelease, CellRelease]:
        """As `swap` at the same cost, and sums in cells of columns."""
        shown = checked_slate(slate, self.n_items)
        about = f"{AROUND} {len(shown)} of"
        whole, paid, kept = self._shared(number, weights, sigmas, query_weights, about, secret)
        size, users = (len(shown) + 1) * self.n_items, self._participants(whole, kept.weights / FULL)
        apart = self._apart(kept, sigmas, self.clip.sensitivity_squared(size))
        swap = SwapRelease(users, shown, paid, apart.others, kept.weights / FULL)
        return swap, CellRelease(users, self.columns, self.clip, paid, apart, self.n_items)

    def _shared(
        self,
        number: int,
        weights: Sequence[int] | Ints,
        sigmas: tuple[float, float],
        query_weights: SharedQueryWeights,
        about: str,
        secret: SecretRandomness,
    ) -> tuple[Ints, Paid, SharedQueryWeights]:
        whole, query_weights = (
            _checked_weights(weights),
            checked_shares(query_weights, self.n_items, len(self.columns)),
        )
        paid = self._bought(number, whole, sigmas, about)
        return whole, paid, query_weights.kept(paid, secret)

    def _apart(
        self, query_weights: SharedQueryWeights, sigmas: tuple[float, float], others: int
    ) -> Deviations:
        cost = cost_of_one(squared_shifts(self.n_items, self.clip), sigmas)
        return deviations(query_weights, cost, self.clip, [column.size for column in self.columns], others)

    def _bought(self, number: int, weights: Ints, sigmas: tuple[float, float], about: str) -> Paid:
        name = f"{self.name}-{_validate.whole(number, 0, None, 'number'):06d}"
        event = release_cost(weights, squared_shifts(self.n_items, self.clip), sigmas, self._partition)
        known = "".join(f", by {column.size} values" for column in self.columns)
        return self.ledger.bought(event, name, f"{about} {self.n_items} items{known}")

    def admit(self, users: int, batch: int) -> None:
        """`users` more come in a batch; refuses more than there was room for."""
        _validate.whole(batch, 0, len(self.schedule) - 1, "batch")
        if self.added + users > self.schedule.rounds:
            raise InvalidInput(f"More than the {self.schedule.rounds} users that there was room for.")
        self.added += users


def _checked_weights(weights: Sequence[int] | Ints) -> Ints:
    whole = np.array(weights)
    if whole.ndim != 1 or len(whole) == 0 or not np.issubdtype(whole.dtype, np.integer):
        raise InvalidInput(f"weights must be whole numbers, one per batch; got {weights!r}.")
    if whole.min() < 0 or whole.max() > UNIT:
        raise InvalidInput(f"weights must be from 0 to {UNIT}; got {whole.min()} to {whole.max()}.")
    return whole
