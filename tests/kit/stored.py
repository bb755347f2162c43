"""Stored users by hand: tests say what each user would answer, and begin plain chains, which are the oracle of focus.

Learners store users in `learners/base/users.py` and begin every release with a focus. Here a user is an entry of a
list, and may say anything whenever they are queried: `row` and `publish` take it along.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo._validate import as_floats
from diminuendo.privacy import calibrate
from diminuendo.privacy.events import ContinuousGaussian, Gaussian
from diminuendo.randomness import SecretRandomness
from diminuendo.sums.batch import csr_rows
from diminuendo.sums.clip import Clip, cut_all, dense_row, sparse_row
from diminuendo.sums.greedy_queries.cost import squared_shifts
from diminuendo.sums.greedy_queries.participants import Answers, Moved, Prefix, PrefixWalk
from diminuendo.sums.greedy_queries.release import GreedyRelease
from diminuendo.sums.greedy_queries.stored import StoredUsers
from diminuendo.sums.greedy_queries.swap import SwapRelease
from diminuendo.types import EMPTY_SLOT, Floats, Ints


class HandWalk:
    """Users along a growing slate, who say what was given first for it."""

    def __init__(self, hand: ByHand) -> None:
        self._hand, self._chain = hand, b""

    def moved_by(self, joining: Ints, types: NDArray[Any]) -> Iterator[Moved]:
        chain = self._chain + joining.tobytes()
        gains, asked = self._hand.said[chain]
        who = np.flatnonzero(asked & (joining != EMPTY_SLOT)[types])
        mine = np.isin(np.arange(len(types)), who)
        yield Moved(who, gains[np.repeat(mine, np.diff(self._hand.users.starts))], chain)

    def join(self, further: Any) -> None:
        self._chain = further

    def swap(self, slate: Sequence[int]) -> Iterator[tuple[Ints, Floats]]:
        starts, first = self._hand.users.starts, 0
        for begin, gains in self._hand.said_around:
            assert starts[begin] == starts[first], "users come one after the other, each once"
            end = int(np.searchsorted(starts, starts[first] + gains.shape[1], side="right")) - 1
            yield np.arange(first, end), gains
            first = end


class ByHand:
    """The users of one release."""

    def __init__(self, users: Answers, clip: Clip, factors: Floats) -> None:
        self.users, self._n_items = users, len(factors)
        self.said: dict[bytes, tuple[Floats, NDArray[np.bool_]]] = {}
        self.said_around: Iterable[tuple[int, Floats]] = ()
        self._walk = PrefixWalk(users, lambda: HandWalk(self), clip, factors)

    def say(self, chain: Prefix, gains: Any, asked: NDArray[np.bool_] | None) -> None:
        everybody = np.ones(len(self.users.weights), dtype=np.bool_) if asked is None else asked
        key = b"".join(joining.astype(np.int64).tobytes() for joining in chain)
        self.said.setdefault(key, (as_floats(gains), everybody))

    def _total(self, query: str, shape: tuple[int, ...], *given: Any) -> Ints:
        total = np.zeros(shape, dtype=np.int64)
        getattr(self._walk, query)(*given, total)
        return total

    def sums(self, chain: Prefix, whose: Ints, many: int) -> Ints:
        return self._total("add_left", (many, self._n_items), chain, whose)

    def losses(self, chain: Prefix, joining: Ints, questions: Ints, many: int) -> Ints:
        return self._total("add_lost", (many, self._n_items), chain, joining, questions)

    def swap(self, slate: Ints) -> Ints:
        return self._total("add_swap", (1 + len(slate), self._n_items), slate)

    def counts(self, of_type: Ints, size: int, unit: int) -> Ints:
        return self._total("add_counts", (size,), of_type, unit)


class HandSequence(GreedyRelease):
    """A chain whose users say what is given with each row: one gain per entry (`items`), of those who are `asked`."""

    @property
    def items(self) -> NDArray[Any]:
        return self._users.users.items  # type: ignore[attr-defined, no-any-return]

    def losses(
        self, item: int, gains: Any, secret: SecretRandomness, asked: NDArray[np.bool_] | None = None
    ) -> Ints:
        return self.losses_by_type(np.full(self.n_types, item), gains, secret, asked)[0]  # type: ignore[no-any-return]

    def residual(self, secret: SecretRandomness) -> Ints:
        return self.residual_by_type(secret)[0]  # type: ignore[no-any-return]

    def losses_by_type(  # type: ignore[override]
        self, items: Ints, gains: Any, secret: SecretRandomness, asked: NDArray[np.bool_] | None = None
    ) -> Ints:
        self._users.say((*self._prefix, items), gains, asked)  # type: ignore[attr-defined]
        return super().losses_by_type(items, secret)


class HandSwap(SwapRelease):
    """An around whose users say what is given: of some users, the first of them and (parts, entries)."""

    @property
    def users(self) -> Answers:
        return self._users.users  # type: ignore[attr-defined, no-any-return]

    def publish(  # type: ignore[override]
        self, gains: Iterable[tuple[int, Floats]], secret: SecretRandomness
    ) -> Ints:
        self._users.said_around = gains  # type: ignore[attr-defined]
        return super().publish(secret)


class HandUser(NamedTuple):
    batch: int
    kind: int
    items: Ints
    values: Floats


class UsersByHand(StoredUsers):
    """What each item is worth to users by itself, each user with the batch they belong to."""

    def __init__(self, n_items: int, **options: Any) -> None:
        super().__init__(n_items, participants=self.stored, **options)
        self.users = list[HandUser]()

    def add(self, values: Any, indices: Any = None, *, batch: int, kind: int = 0) -> None:
        """One user of that batch and of the context id `kind`."""
        row, places = gains_row(values, indices, self.n_items)
        self.admit(1, batch)
        self.users.append(HandUser(batch, kind, places, cut_all(row, self.clip.ceiling)))

    def add_rows(self, rows: Any, *, batch: int) -> None:
        """Many users of one batch at once: one per row of a scipy CSR matrix."""
        starts, places, values = csr_rows(rows, self.n_items)
        for low, high in zip(starts.tolist(), starts[1:].tolist(), strict=False):
            self.add(values[low:high], places[low:high], batch=batch)

    def forget(self, before: int) -> None:
        """Drop everybody of batches before that one."""
        self.users = [user for user in self.users if user.batch >= before]

    def stored(self, weights: Ints, factors: Floats) -> ByHand:
        """Everybody as they are now."""
        none = np.zeros(0, dtype=np.int64)
        batches, kinds = (np.array([user[part] for user in self.users], dtype=np.int64) for part in (0, 1))
        padded = np.append(weights, np.zeros(len(self.schedule), dtype=np.int64)).astype(np.int32)
        users = Answers(
            np.cumsum([0, *(len(user.items) for user in self.users)]),
            np.concatenate([none, *(user.items for user in self.users)]).astype(np.int32),
            np.concatenate([none * 0.0, *(user.values for user in self.users)]),
            padded[batches],
            kinds.astype(np.int32),
        )
        return ByHand(users, self.clip, factors)

    def begin_greedy(self, *given: Any) -> HandSequence:
        chain: HandSequence = _as(HandSequence, super().begin_greedy(*given))
        return chain

    def swap(self, *given: Any) -> HandSwap:
        swap: HandSwap = _as(HandSwap, super().swap(*given))
        return swap

    def in_contexts(self, *given: Any) -> tuple[HandSequence, Any]:
        chain, cells = super().in_contexts(*given)
        return _as(HandSequence, chain), cells

    def swap_in_contexts(self, *given: Any) -> tuple[HandSwap, Any]:
        swap, cells = super().swap_in_contexts(*given)
        return _as(HandSwap, swap), cells

    def sigmas(self, weights: Ints, cost: Gaussian | ContinuousGaussian, singletons: float = 0.5) -> Any:
        """Deviations of noise on singles and on rows with which releases with these weights cost `cost` together.

        `weights`: (releases, batches). `singles`: the share of the cost that they get.
        """
        square = max(int(total) for total in (weights.astype(object) ** 2).sum(axis=0))
        rho = cost.rho if isinstance(cost, Gaussian) else cost.mu**2 / 2
        return tuple(
            calibrate.gaussian_sigma(rho * share * (1 - 2.0**-48), squared * square)
            for share, squared in zip(
                (singletons, 1 - singletons), squared_shifts(self.n_items, self.clip), strict=True
            )
        )

    def release(
        self, number: int, weights: Sequence[int] | Ints, sigmas: tuple[float, float]
    ) -> HandSequence:
        """Begin release `number` without a focus: users of batch j enter with weights[j]."""
        whole, factors = np.array(weights), np.ones(self.n_items)
        paid = self._bought(number, whole, sigmas, "a chain over")
        return HandSequence(self.stored(whole, factors), paid, sigmas, factors)


def _as(kind: Any, release: Any) -> Any:
    release.__class__ = kind
    return release


def gains_row(values: object, indices: object, size: int) -> tuple[Floats, Ints]:
    """What items are worth to one user, at the door: a whole vector, of which only gains above 0 count, or sparse."""
    if indices is not None:
        return sparse_row(values, indices, size)
    row = dense_row(values, size)
    places = np.flatnonzero(row > 0)
    return row[places], places
