r"""One slate for each type of users: what is shown between releases, and what the next release asks.

Two levels of singleton values are published: of all users, and of each value of each column (columns.py). What is
believed of a type is the whole, and for each column whose gate is open the deviation of its value; several columns
add up, each compared with what those before it say (backfitting). Chains are shared as long as types agree (pick.py).
While all gates are closed all users are shown the same slate, and releases may make swap queries as they do without
contexts.

All of it is public: it is made of what was published, and, where contexts are public, of how many users have each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.base.menu import Menu, SlateByType
from diminuendo.learners.overlap.contexts.columns import ColumnMeans, ColumnView
from diminuendo.learners.overlap.contexts.counts import TypeCounts
from diminuendo.learners.overlap.contexts.pick import BACKFILL, TypedSlates, pick_by_type
from diminuendo.learners.overlap.contexts.shares import open_sizes, shared_query_weights, trial_shares
from diminuendo.learners.overlap.global_slate import GlobalSlate, ReleaseContext
from diminuendo.learners.overlap.pick import Picked
from diminuendo.learners.overlap.posterior import Posterior, from_singletons
from diminuendo.learners.overlap.query_weights import Standing, singletons_share
from diminuendo.learners.overlap.running_means import Measured, RunningMeans
from diminuendo.learners.overlap.schedule import OverlapPlan
from diminuendo.learners.overlap.stored import ReleasedCells, StoredQuestions, StoredSwap, UsersMemory
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items

KNOWN = 3.0
"""The whole is known once its best item stands out by KNOWN deviations of the noise."""
OPENS_AFTER = 10.0
"""Slates may differ after OPENS_AFTER nu of users."""
SURE = 2.0
"""Whether any user has a value is known if its share is more than SURE deviations of the noise in it."""


class Looked(NamedTuple):
    """What the cells of a release say."""

    columns: list[ColumnMeans]
    views: list[ColumnView]
    counts: list[tuple[Floats, float] | None]
    shares: Floats
    """Of users, by type."""
    published: list[tuple[RunningMeans, list[int], Measured]]
    """Sums over all values of a column: one more measurement of all users."""


class Chosen(NamedTuple):
    """What a release gave."""

    looked: Looked
    common: Picked
    """What it gave for all users together."""
    by_type: TypedSlates | None
    """The slates of types, where they differ."""
    known: float


class SlatePerContext:
    """The slates of the last release; before the first the best by a prior, or random ones.

    `common`: what is shown as long as all gates are closed; means of what was published are its own.
    """

    def __init__(
        self,
        items: ItemAvailability,
        plan: OverlapPlan,
        memory: UsersMemory,
        counts: TypeCounts,
        common: GlobalSlate,
    ) -> None:
        self._items, self._plan, self._memory, self._counts = items, plan, memory, counts
        self.common, contexts = common, counts.contexts
        self.columns = tuple(
            ColumnMeans(len(column), items.n_items, symmetric=column.symmetric) for column in contexts.columns
        )
        self._known: Floats = np.zeros(1)
        self.slates: Items = np.tile(common.slate, (contexts.n_types, 1))
        self.backfill: Items = np.full((contexts.n_types, BACKFILL), EMPTY_SLOT, dtype=np.int32)

    def __repr__(self) -> str:
        return f"<SlatePerContext: {len(np.unique(self.slates, axis=0))} slates>"

    def menu(self, first: int, end: int | None, words: int, *, released: bool) -> Menu:
        """The slate of each type, if there are any: by a release, or by a prior. Else random ones."""
        items = self._items
        if not self.common.shows(released):
            return items.random_menu(first, end, words)
        more: dict[str, Any] = {}
        if items.exclusions:
            ranking = items.ranking(self.common.picker.gains)
            more = {"lists": items.lists(), "own": self.backfill.copy(), "ranking": ranking}
        return SlateByType(items.n_items, items.slots, first, end, words, self.slates.copy(), **more)

    # A release.

    def release(self, context: ReleaseContext) -> Chosen:
        """Charge and draw a query sequence for each type, or a swap query where all see one slate; with cells."""
        number, first, users, *_ = context
        evidence = [column.evidence for column in self.columns]
        shares = self._counts.shares_since(first, number, users)
        sizes = [
            users * float((self._counts.value_shares(column, shares) ** 2).sum())
            for column in range(len(self.columns))
        ]
        trial = trial_shares(evidence, float(self._known[0]), sizes, self._plan.nu)
        query_weights, private = self.common.query_weights, self._counts.contexts.private
        before, same = self._memory.was_swap(number), all(each.weight == 0 for each in evidence)
        if before if before is not None else same and self.common.settled(context):
            weights = query_weights.for_swap(users).weights
            shared = shared_query_weights(
                weights, evidence, trial, singletons=0.5, private=private, swap=True
            )
            queries, cells = self._memory.begin_swap_by_type(number, first, self.common.slate, shared)
            return self._swap(queries, cells, context)
        singletons = singletons_share(query_weights.wishes, self._plan.nu, open_sizes(evidence, sizes, users))
        weights = query_weights.weights.copy()
        shared = shared_query_weights(
            weights, evidence, trial, singletons=singletons, private=private, swap=False
        )
        questions, cells = self._memory.begin_by_type(number, first, shared)
        return self._sequences(questions, cells, context)

    def _swap(self, queries: StoredSwap, cells: ReleasedCells, context: ReleaseContext) -> Chosen:
        looked, _ = self._look(cells, None, context)
        return Chosen(looked, self.common.picker.improved(queries), None, float(self._known[0]))

    def _sequences(self, queries: StoredQuestions, cells: ReleasedCells, context: ReleaseContext) -> Chosen:
        singletons = queries.singletons()
        looked, (whole, known) = self._look(cells, singletons, context)
        if all(view.evidence.weight == 0 for view in looked.views):
            return Chosen(looked, self.common.picker.slate(queries), None, known)
        present, picker = self._counts.present(), self.common.picker
        mean, variance = self._type_posteriors(looked.views, whole, present)
        result = pick_by_type(self._items, picker, queries, present, looked.shares, Posterior(mean, variance))
        wanted = np.maximum(whole.mean, 0.0) + np.sqrt(whole.variance)
        standing = _standing(
            result.places, wanted, result.slates, float(picker.worth.preview([0], singletons)[0].sum())
        )
        new = [(picker.worth, [0], singletons), *result.published]
        nobody = int(np.flatnonzero(present == 0)[0])
        common = Picked(result.slates[nobody], [], result.gains[nobody], new, standing)
        return Chosen(looked, common, result, known)

    def _look(
        self, release: ReleasedCells, singletons: Measured | None, context: ReleaseContext
    ) -> tuple[Looked, tuple[Posterior, float]]:
        """The posterior of all users, and how well that is known; and of the values of columns."""
        counts, counted = (
            self._counts.with_counts(release.counts),
            [release.counts(each) for each in range(len(self.columns))],
        )
        shares = release.type_shares(counts)
        columns, together = self._with_cells(release, shares)
        worth = self.common.picker.worth
        (mean,), (deviation,) = worth.preview([0], *together, *([] if singletons is None else [singletons]))
        whole = from_singletons(mean, deviation)
        best = int(np.argmax(whole.mean))
        known = min(1.0, max(0.0, float(whole.mean[best])) / (KNOWN * float(deviation[best])))
        views = list[ColumnView]()
        for number, column in enumerate(columns):
            centres = np.tile(whole.mean, (counts.contexts.sizes[number], 1))
            for other, view in enumerate(views):  # what columns before it say is in what it is compared with
                centres += counts.together(number, other, shares) @ view.deviations
            mine, apart = column.shares(), 0.0
            if counts.contexts.private:
                mine, apart = counts.published(number)
            views.append(
                column.look(
                    centres,
                    whole,
                    context.users,
                    self._items.slots,
                    np.maximum(mine, 0.0),
                    surely=SURE * apart,
                    opens=known >= 1.0 and context.users >= OPENS_AFTER * self._plan.nu,
                )
            )
        published = [(worth, [0], each) for each in together]
        return Looked(columns, views, counted, shares, published), (whole, known)

    def _with_cells(self, release: ReleasedCells, shares: Floats) -> tuple[list[ColumnMeans], list[Measured]]:
        """The means of columns with what was published of their values, and sums over all values of a column."""
        columns, together = list[ColumnMeans](), list[Measured]()
        for number, column in enumerate(self.columns):
            result = release.cells(number)
            if result is not None:
                mine = self._counts.value_shares(number, shares)
                everybody = result.units * float(mine.sum())
                column = column.with_cells(result, mine)
                together.append(Measured(result.sums.sum(axis=0), everybody, result.sigma * len(mine) ** 0.5))
            columns.append(column)
        return columns, together

    def _type_posteriors(
        self, views: list[ColumnView], whole: Posterior, present: Ints
    ) -> tuple[Floats, Floats]:
        """(types, items): what is believed of each type that is present."""
        mean = np.tile(whole.mean, (len(present), 1))
        variance = np.tile(whole.variance, (len(present), 1))
        for view, values in zip(views, self._counts.values[present].T, strict=True):
            if view.evidence.weight > 0:
                known = values >= 0
                mean[known] += view.deviations[values[known]]
                variance[known] = np.maximum(variance[known], view.variances[values[known]])
        return mean, variance

    def take(self, picked: Chosen, context: ReleaseContext, new: NDArray[np.bool_]) -> None:
        """Go on from what was published, and show the slates."""
        looked = picked.looked
        for mine, theirs, view in zip(self.columns, looked.columns, looked.views, strict=True):
            mine.take(theirs, view)
        for number, counted in enumerate(looked.counts):
            if counted is not None:
                self._counts.publish(number, *counted)
        for means, key, result in looked.published:
            means.add((key, result))
        self._known[0] = picked.known
        self.common.take(picked.common, context, new)
        self.slates[:] = self.common.slate
        self.backfill[:] = EMPTY_SLOT
        if picked.by_type is not None:
            self.slates[picked.by_type.present] = picked.by_type.slates
            self.backfill[picked.by_type.present] = picked.by_type.backfill

    def forget(self) -> None:
        """After drift: nothing that was published before counts any more."""
        self.common.forget()
        self._counts.forget()
        for column in self.columns:
            column.forget()
        self._known[0] = 0.0

    def appear(self, items: Ints) -> None:
        """These items are there from now on."""
        self.common.appear(items)

    def items_changed(self, *, released: bool) -> None:
        """Items that are gone make way for the best of those that are there: of a type's own first."""
        self.common.items_changed(released=released)
        if not self.common.shows(released):
            return
        gains = self.common.picker.gains
        self.slates[:] = self._items.kept(self.slates)
        for slate, others in zip(self.slates, self.backfill, strict=True):
            if (slate == EMPTY_SLOT).any():
                own = gains.copy()
                ranked = others[others != EMPTY_SLOT]
                own[ranked] = gains.max() + np.arange(len(ranked), 0, -1)
                while best := self._items.pick(own, slate):
                    slate[best[0]] = best[1]

    # What a snapshot holds.

    @property
    def arrays(self) -> tuple[Any, Any, Any]:
        """Slates, what was learned, and what the next release pays attention to."""
        slate, learned, query_weights = self.common.arrays
        columns = tuple(column.arrays for column in self.columns)
        return (
            slate,
            (learned, self.slates, self.backfill, self._known, columns, self._counts.arrays),
            query_weights,
        )


def _standing(places: Floats, wanted: Floats, slates: Items, wishes: float) -> Standing:
    shown = np.unique(slates[slates != EMPTY_SLOT])
    return Standing(places, wanted, float(np.median(wanted[shown])), wishes)
