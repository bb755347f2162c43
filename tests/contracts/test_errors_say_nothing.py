"""No error repeats what a user said: not in its message, and not in any error that it came from.

Errors are read by others, in logs and on screens. They may name a place (argument, row, column) and what was expected.
Every public door for what users say is tried here with answers that can be told again wherever they turn up.
"""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import sparse

from diminuendo import Functions, Oracle, SeededSource, SystemSource, Users, paper
from diminuendo.continuous import (
    Box,
    BudgetAllocation,
    ConcaveOfLinear,
    MultilinearCoverage,
    MultilinearNoisyOr,
    Quadratic,
    multilinear,
)
from diminuendo.contract.case import N_ITEMS, Case
from diminuendo.errors import DiminuendoError
from diminuendo.evaluate import Log
from diminuendo.experts import EXPERTS
from diminuendo.learners.base.replay import replay
from diminuendo.objectives import FAMILIES, user
from diminuendo.offline import private_greedy
from diminuendo.privacy import Budget, Ledger
from diminuendo.privacy.events import Laplace
from diminuendo.randomness import SecretRandomness
from diminuendo.streams import from_places, from_ratings, read
from diminuendo.sums import Clip, PrivateSum, equal
from diminuendo.sums.gamma_tree import GammaTree
from diminuendo.sums.private_counts import PrivateCounts
from diminuendo.types import Decision
from tests.contracts.test_learner_contract import cases
from tests.kit.families import specimens
from tests.kit.slow import is_variant
from tests.kit.stored import UsersByHand

NUMBER, WHOLE, TEXT = 17.123456789, 17123456789, "prawns-in-aspic"
TELLING = ("17.12", "1712345", "17123", TEXT)


class Telling:
    """Tells what it is to whoever prints it, and cannot be read as a number."""

    def __repr__(self) -> str:
        return f"<{TEXT} {NUMBER}>"

    def __float__(self) -> float:
        raise RuntimeError(TEXT)

    def __index__(self) -> int:
        raise ValueError(TEXT)


class TellingArray(Telling):
    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError(TEXT)


class Raises:
    """Whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"{TEXT}: {name}") if not name.startswith("__") else AttributeError(TEXT)


ANSWERS: list[Any] = [
    *(NUMBER, -NUMBER, NUMBER * 1e300, WHOLE, -WHOLE, WHOLE**40, complex(NUMBER, NUMBER)),
    *(TEXT, TEXT.encode(), str(NUMBER), Telling(), TellingArray()),
    *(
        [NUMBER],
        [TEXT],
        (TEXT, NUMBER),
        [[NUMBER], [NUMBER, NUMBER]],
        {TEXT: NUMBER},
        {WHOLE: 0.5},
        {2: NUMBER},
    ),
    *({TEXT: 0.5}, {2: TEXT}, {NUMBER: 0.5}, {2: Telling()}, [Telling()], {Telling()}),
    *(
        np.float64(NUMBER),
        np.int64(WHOLE),
        np.array([NUMBER]),
        np.array([TEXT]),
        np.array([Telling()], dtype=object),
    ),
    *(np.full(N_ITEMS, NUMBER), np.full(N_ITEMS, TEXT), np.full((2, N_ITEMS), NUMBER), [TEXT] * N_ITEMS),
    *([Telling()] * N_ITEMS, [[TEXT] * N_ITEMS], sparse.csr_array(np.full((2, N_ITEMS), NUMBER))),
]


class Feels:
    """An objective of foreign code, of which one part is something else."""

    def __init__(self, n_items: Any, answer: Any) -> None:
        self.n_items, self.answer = n_items, answer

    def value(self, slate: Any) -> Any:
        return self.answer

    def gains(self, prefix: Any) -> Any:
        return self.answer

    def gradients(self, points: Any) -> Any:
        return self.answer


class FeelsAndRaises(Feels):
    def value(self, slate: Any) -> Any:
        raise RuntimeError(TEXT)

    def gains(self, prefix: Any) -> Any:
        raise RuntimeError(TEXT)

    def gradients(self, points: Any) -> Any:
        raise RuntimeError(TEXT)


def objectives() -> Iterator[Any]:
    yield Raises()
    yield FeelsAndRaises(N_ITEMS, None)
    for answer in ANSWERS:
        yield Feels(N_ITEMS, answer)
        yield Feels(answer, np.zeros(N_ITEMS))
        yield Oracle(always(answer), N_ITEMS)


def telling(error: BaseException | None) -> bool:
    """Whether it, or anything that it came from, repeats what was said; also where Python would not print that."""
    if error is None:
        return False
    shown = " ".join([str(error), repr(error), *getattr(error, "__notes__", ())])
    inside = any(word in shown for word in TELLING)
    return inside or telling(error.__cause__) or telling(error.__context__)


def tried(door: Callable[..., Any], *given: Any, **named: Any) -> bool:
    """Whether the door refused, with an error that says nothing."""
    failed: Exception | None = None
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            door(*given, **named)
        except Exception as error:  # ours, or a TypeError of Python
            failed = error
    assert not telling(failed), f"{door}: {failed!r}"
    assert not any(word in str(note.message) for note in said for word in TELLING), door
    return isinstance(failed, DiminuendoError)


def test_what_tells_is_found() -> None:
    def chained() -> None:
        try:
            float(TEXT)
        except ValueError:
            raise DiminuendoError("Something was wrong.") from None

    with pytest.raises(AssertionError, match=TEXT):
        tried(float, TEXT)
    with pytest.raises(AssertionError):
        tried(chained)
    with pytest.raises(AssertionError):
        tried({}.__getitem__, WHOLE)
    with pytest.raises(AssertionError):
        tried(getattr, Raises(), "n_items")
    with pytest.raises(AssertionError):
        tried(warnings.warn, TEXT)


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.slow if is_variant(case.kind.name) else []) for case in cases()],
    ids=repr,
)
def test_learners(case: Case) -> None:
    learner, refused = case.fresh(rounds=2000), 0
    for answer in [*ANSWERS, *objectives()]:
        refused += tried(learner.observe, learner.choose(), answer)
        tried(learner.observe, answer, 1.0)
        if not isinstance(answer, (Raises, Feels, Oracle)):
            tried(learner.choose, user_id=answer)
            tried(learner.replay, USERS, user_ids=[answer, answer])
            tried(learner.replay, USERS, delay=answer)
    assert refused > 10 or case.kind.name == "random"
    for answer in ANSWERS:
        tried(replay, case.fresh(), Functions([always(answer)] * 3, N_ITEMS), case.feedback)


def always(answer: Any) -> Callable[[Any], Any]:
    """Whatever it is asked."""
    return lambda _: answer


USERS = Users(FAMILIES["noisy-or"](), np.full((2, N_ITEMS), 0.1))

EVERY_FAMILY = pytest.mark.parametrize(
    ("family", "n_items", "matrices"), [crowd for name in FAMILIES for crowd in specimens(name)]
)


@EVERY_FAMILY
def test_objectives(family: Any, n_items: int, matrices: Any) -> None:
    refused = 0
    for answer in [*ANSWERS, *({column: answer} for column in (0, 1) for answer in ANSWERS)]:
        refused += tried(user, family, answer, n_items)
        refused += tried(user, family, [answer] * family.leaves, n_items)
        refused += tried(Users, family, answer, n_items)
        refused += tried(Users, family, (answer,) * family.leaves, n_items)
        refused += tried(family.table, (answer,) * family.leaves, n_items)
    assert refused > 50


@EVERY_FAMILY
def test_rows_of_objectives(family: Any, n_items: int, matrices: Any) -> None:
    for number in (NUMBER, -NUMBER, NUMBER * 1e300, float(WHOLE)):
        for form in (np.asarray, sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.lil_array):
            wrong = [np.array(part, dtype=float) for part in matrices]
            for part in wrong:
                part[0, 0] = number
            assert tried(Users, family, tuple(form(part) for part in wrong), n_items)
    for places in ([WHOLE], [1, 0], [0, 0], [-WHOLE]):
        odd = tuple(sparse.csr_array(np.ones(np.shape(part))) for part in matrices)
        for rows in odd:
            rows.indices = np.array([*places, *rows.indices[len(places) :]])
        assert tried(Users, family, odd, n_items)
    tried(Users, family, tuple(np.full(np.shape(part), 0.917123) for part in matrices), n_items)


def test_functions() -> None:
    refused = 0
    for answer in ANSWERS:
        one, everybody = Oracle(always(answer), 4), Functions([always(answer)] * 2, 4)
        for door in (one.value, one.gains, everybody.values):
            refused += tried(door, [0, 1])
        refused += tried(everybody.click, 0, (0, 1))
        tried(private_greedy, everybody, 2, Budget(1.0, 1e-6))
    assert refused, "some answers are no numbers"


def no_gains(starts: Any, items: Any) -> Callable[[int], Any]:
    return lambda item: np.zeros(len(items))


def test_sums() -> None:
    ledger, secret, size, plan = (
        Ledger(Budget(9.0, 1e-6)),
        SecretRandomness(SystemSource()),
        12,
        equal(9999, 3),
    )
    pure = Ledger(Budget(9.0, 0.0, accountant="pure"))
    total = PrivateSum(size, schedule=plan, cost=Budget(0.5, 1e-6).share(), ledger=ledger)
    cells = PrivateSum(size, schedule=plan, cost=Laplace(0.1), ledger=pure, clip=Clip("cell"), name="cells")
    stored = UsersByHand(size, schedule=plan, ledger=ledger)
    counts = PrivateCounts(cost=Laplace(1.0), ticks=1, ledger=pure)
    counts.open([1, 1])
    stored.add(np.full(size, 0.5), batch=0)
    begun = stored.release(0, [1], (1e6, 1e6))
    begun.singletons(secret)
    doors: list[Callable[[Any], Any]] = [
        total.add,
        lambda said: total.add(said, [0]),
        lambda said: total.add([0.5], said),
        total.add_rows,
        lambda said: cells.add(said, [1]),
        lambda said: cells.add([1.0], said),
        cells.add_rows,
        lambda said: counts.add([0], said),
        lambda said: counts.add_one(0, said),
        lambda said: GammaTree(1, 2, 3, 1.0).add(said, secret),
    ]
    refused = sum(tried(door, said) for said in [*ANSWERS, *contradictions(size)] for door in doors)
    assert refused > 300


def contradictions(size: int) -> Iterator[Any]:
    """Sparse matrices that are none."""
    for indices, starts in (
        ([0, WHOLE], [0, 2]),
        ([0, 1], [0, WHOLE]),
        ([WHOLE, 1], [0, 1]),
        ([0, 1], [17123, 2]),
    ):
        lying = sparse.csr_array(np.array([[NUMBER, NUMBER] + [0.0] * (size - 2)]))
        lying.indices, lying.indptr = np.array(indices), np.array(starts)
        yield lying


@pytest.mark.parametrize("name", EXPERTS)
def test_experts(name: str) -> None:
    expert, secret = EXPERTS[name](3), SecretRandomness(SeededSource(1))
    one, refused = paper.private_hedge(3, 500, 1.0, 1e-6), 0
    for answer in ANSWERS:
        expert.draw(secret)
        one.draw()
        refused += tried(expert.learn, answer, 0) + tried(one.learn, answer)
    assert refused, "some answers are no numbers"


def test_continuous_choice() -> None:
    domain = Box([1.0] * 3)
    learner = paper.continuous(domain, 5000, 1.0, 1e-6, gradient_bound=1.0, smoothness=1.0)
    doors: list[Callable[[Any], Any]] = [
        lambda said: learner.observe(learner.choose(), said),
        MultilinearNoisyOr,
        lambda said: MultilinearCoverage(said, [[1, 0], [0, 1]]),
        ConcaveOfLinear,
        lambda said: Quadratic(said, np.zeros((3, 3))),
        lambda said: Quadratic([0.1] * 3, said),
        BudgetAllocation,
        lambda said: BudgetAllocation([[0.5]], said),
        multilinear,
        domain.maximise,
    ]
    heavy = [[0.917123] * 3, [[0.917123] * 2] * 3, np.full((3, 3), -NUMBER)]
    assert sum(tried(door, said) for said in [*ANSWERS, *objectives(), *heavy] for door in doors) > 300


def test_logs(tmp_path: Path) -> None:
    refused = 0
    for answer in ANSWERS:
        log, decision = Log(slots=1), Decision(0, (0,), propensity=0.5)
        refused += tried(log.add, decision, answer)
        refused += tried(log.answer, decision, answer)
        for rewards in (answer, [answer]):
            refused += tried(Log.from_arrays, [[0]], [0.5], rewards)
    for worth in (NUMBER, TEXT, [NUMBER], WHOLE):
        table = {"round": [0], "slate": [[0]], "propensity": [0.5], "reward": [worth]}
        pa.parquet.write_table(pa.table(table), tmp_path / "log.parquet")
        refused += tried(Log.read, tmp_path / "log.parquet")
    assert refused, "some answers are no rewards"


def test_streams_in_memory() -> None:
    doors: list[Callable[[Any], Any]] = [
        lambda said: from_ratings(said, [1], [0.5]),
        lambda said: from_ratings([1], said, [0.5], n_items=3),
        lambda said: from_ratings([1], [1], said),
        lambda said: from_ratings([said], [1], [0.5]),
        lambda said: from_ratings([1], [said], [0.5], n_items=3),
        lambda said: from_ratings([1], [1], [said]),
        lambda said: from_ratings([said, said], [said, said], [0.5, 0.5]),
        lambda said: from_places(said, [[0, 0]], reach_km=1.0),
        lambda said: from_places([[said, 0]], [[0, 0]], reach_km=1.0),
    ]
    assert sum(tried(door, said) for said in ANSWERS for door in doors) > 100
    assert tried(from_ratings, [TEXT, TEXT], [TEXT, TEXT], [0.5, 0.4])
    assert tried(from_ratings, [WHOLE, WHOLE], [1, 1], [0.5, 0.4], n_items=3)


FILES = {
    "value.csv": f"user,item,value\nada,tea,{NUMBER}\n",
    "text.csv": f"user,item,value\nada,tea,0.5\nada,soap,{TEXT}\n",
    "short.csv": f"user,item,value\n{TEXT},{NUMBER}\n",
    "long.csv": f"user,item,value\nada,tea,0.5,{TEXT}\n",
    "twice.csv": f"user,item,value\n{TEXT},{WHOLE},0.5\n{TEXT},{WHOLE},0.4\n",
    "item.csv": f"user,item,value\nada,{WHOLE},0.5\n",
    "letters.txt": f"0 1\n{TEXT}\n",
    "range.txt": f"0 1\n{WHOLE}\n",
    "twice.txt": "0 1\n17123 17123\n",
}


@pytest.mark.parametrize("name", FILES)
def test_files(name: str, tmp_path: Path) -> None:
    plain, packed = tmp_path / name, tmp_path / f"{name}.gz"
    plain.write_text(FILES[name])
    packed.write_bytes(gzip.compress(FILES[name].encode()))
    for path in (plain, packed):
        numbered = tried(read, path, n_items=5)
        assert tried(read, path) or numbered


def test_matrices_in_files(tmp_path: Path) -> None:
    sparse.save_npz(tmp_path / "people.npz", sparse.csr_array(np.full((2, 3), NUMBER)))
    assert tried(read, tmp_path / "people.npz")
