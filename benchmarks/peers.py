"""The peers: apricot-select and submodlib-py, each fed what it likes best.

Both choose by greedy from the same matrix of people and items: the first item that a person wants, or, where the best
match counts, submodlib alone (apricot knows facilities only where people and sites are the same). They are optional: a
peer that is not installed is reported as missing. Where a library has a step that it repeats in every call but need
not (apricot compiles, submodlib copies sets), it also competes bare, without that step.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from benchmarks.stopwatch import Competitor
from diminuendo.objectives.rows import Matrix
from diminuendo.types import Slate

PEERS = {"apricot": "apricot-select", "submodlib": "submodlib-py"}
"""Modules, and what they are called on PyPI."""

BARE = ", bare"
"""Marks a competitor that is spared what its library repeats in every call."""

COMPILES = ("calculate_gains_sparse", "calculate_gains_sieve_sparse")
"""The functions of apricot that compile a kernel whenever they are called."""

Factories: TypeAlias = Mapping[str, Callable[..., Any]]


def installed(module: str) -> bool:
    """Whether a peer can be imported."""
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def peers(matrix: Matrix, slots: int) -> Iterator[Competitor]:
    """Every installed peer; each answers with (slate, number of people satisfied)."""
    if installed("apricot"):
        yield from _apricot(matrix, slots)
    if installed("submodlib"):
        yield from _submodlib(_SetCover(matrix), slots)


def best_match_peers(matrix: Matrix, slots: int) -> Iterator[Competitor]:
    """The same where the best match counts; each answers with (slate, sum of best matches)."""
    if installed("submodlib"):
        yield from _submodlib(_Facilities(matrix), slots)


def _apricot(matrix: Matrix, slots: int) -> Iterator[Competitor]:
    apricot: Any = importlib.import_module("apricot")
    as_it_comes, kept = _factories()

    def prepare(factories: Factories) -> Any:
        for name, factory in factories.items():
            setattr(_max_coverage(), name, factory)
        turned = sparse.csr_matrix(matrix.T)
        turned.indices = turned.indices.astype(np.int32)  # apricot's kernels accept no other type
        turned.indptr = turned.indptr.astype(np.int32)
        return turned

    def select(optimizer: str, turned: Any) -> tuple[Slate, float]:
        selected = apricot.MaxCoverageSelection(slots, optimizer=optimizer).fit(turned)
        return tuple(int(item) for item in selected.ranking), float(selected.gains.sum())

    for method, optimizer in (("lazy", "lazy"), ("plain", "naive")):
        run = partial(select, optimizer)
        yield Competitor(f"apricot {method}", lambda _: prepare(as_it_comes), run)
        yield Competitor(f"apricot {method}{BARE}", lambda _: prepare(kept), run)


def _max_coverage() -> ModuleType:
    return importlib.import_module("apricot.functions.maxCoverage")


@cache
def _factories() -> tuple[Factories, Factories]:
    """What apricot calls to compile its kernels, as it comes and remembering what was compiled."""
    originals = {name: getattr(_max_coverage(), name) for name in COMPILES}
    return originals, {name: cache(original) for name, original in originals.items()}


@dataclass(frozen=True)
class _SetCover:
    """What an item covers, as submodlib takes it: sets of people."""

    matrix: Matrix

    def given(self) -> list[set[int]]:
        turned = self.matrix.T.tocsr()
        return [set(turned.indices[low:high].tolist()) for low, high in pairwise(turned.indptr)]

    def build(self, given: list[set[int]]) -> Any:
        submodlib: Any = importlib.import_module("submodlib")
        n_people, n_items = self.matrix.shape
        return submodlib.SetCoverFunction(n_items, given, n_people)


@dataclass(frozen=True)
class _Facilities:
    """How well an item serves a person, as submodlib takes it: a full matrix of short floats."""

    matrix: Matrix

    def given(self) -> Any:
        return self.matrix.toarray().astype(np.float32)

    def build(self, given: Any) -> Any:
        submodlib: Any = importlib.import_module("submodlib")
        n_people, n_items = self.matrix.shape
        return submodlib.FacilityLocationFunction(
            n=n_items, n_rep=n_people, sijs=given, mode="dense", separate_rep=True
        )


def _submodlib(function: _SetCover | _Facilities, slots: int) -> Iterator[Competitor]:
    def select(optimizer: str, built: Any) -> tuple[Slate, float]:
        picked = built.maximize(slots, optimizer=optimizer, show_progress=False)
        return tuple(int(item) for item, _ in picked), sum(gain for _, gain in picked)

    def build_and_select(optimizer: str, given: Any) -> tuple[Slate, float]:
        return select(optimizer, function.build(given))

    for method, optimizer in (("lazy", "LazyGreedy"), ("plain", "NaiveGreedy")):
        yield Competitor(
            f"submodlib {method}", lambda _: function.given(), partial(build_and_select, optimizer)
        )
        yield Competitor(
            f"submodlib {method}{BARE}",
            lambda _: function.build(function.given()),
            partial(select, optimizer),
        )
