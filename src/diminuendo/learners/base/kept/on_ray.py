"""People who are kept on Ray actors, each of which holds some of them and answers for them.

An actor is a process, perhaps on another machine, that lives as long as the learner. What people said goes to it once,
when they are kept; questions of a release go to all actors, and whole numbers come back, which are added up here. They
are as private as what people said: actors, and whoever reaches the cluster, belong to the trusted side.

An actor that is lost is replaced, and its people are given to the new one again: by those who kept them, where they are
still at hand, as in a replay (`remembers`). A chain of questions that it was in the midst of ends there, as after a
crash: nothing that was published would have to agree with what is known now.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import cloudpickle
import numpy as np
from numpy.typing import NDArray

from diminuendo._cluster import cores, joined
from diminuendo._plugins import Carried
from diminuendo._sparse import SparseRows
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.kept.engines import OnRay
from diminuendo.learners.base.kept.one_place import Arrived, Kept
from diminuendo.learners.base.stored_objectives import cut_people, together
from diminuendo.objectives.family import Family, Table
from diminuendo.objectives.person import Person
from diminuendo.sums.chains.people.entries import Entries, cut_entries, entries_together
from diminuendo.sums.chains.people.frozen import AskedPeople, PeopleLost
from diminuendo.sums.chains.people.parted import added
from diminuendo.sums.clip import Clip
from diminuendo.types import Floats, Ints, Objective

SPARSE = 4
"""Sums of which at most one in SPARSE is not 0 travel as places and numbers."""


class Gift(NamedTuple):
    """Something that an actor was told, and can be told again."""

    name: str
    given: Callable[[], tuple[Any, ...]]
    batch: int | None
    """Of the people in it; None where it is not about keeping people."""


class KeptOnRay:
    """People on actors; here is only what it takes to tell them again."""

    def __init__(self, how: OnRay, n_items: int, clip: Clip, n_types: int) -> None:
        self._how, self._n_items = how, n_items
        self._ray, leave = joined(how.address, how.actors or cores(), people=True)
        many = how.actors or max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self._made = cloudpickle.dumps((n_items, clip, n_types, Carried.packed()))
        self._actors = [self._new() for _ in range(many)]
        self._told: list[list[Gift]] = [[] for _ in self._actors]
        self._sizes, self._releases = [0] * many, 0
        self._last: list[tuple[int, int]] = []  # to whom those went who were kept last, and how many
        self._close = weakref.finalize(self, leave)

    def __repr__(self) -> str:
        return f"<KeptOnRay, {len(self._actors)} actors>"

    def __len__(self) -> int:
        """How many: as private as whether somebody answered."""
        return sum(self._all(lambda actor: actor.size.remote()))

    def _new(self) -> Any:
        # Without a core of its own: it is idle between releases, and there may be more learners than cores.
        actor: Any = self._ray.remote(max_restarts=0, scheduling_strategy="SPREAD")(Holder)
        return actor.remote(self._made)

    # Private: people are kept.

    def keep(self, person: Objective, items: Ints, worth: Floats, batch: int, kind: int = 0) -> None:
        """One person; she goes to the actor that has the fewest. Python functions must be such as can travel."""
        who = int(np.argmin(self._sizes))
        if type(person) is Person:
            one = _rows_of(person.family, person.table, range(person.index, person.index + 1), person.n_items)
            self._tell(who, "keep_person", (person.family, one, items, worth, batch, kind), batch)
        else:
            try:
                packed = cloudpickle.dumps(person)
            except Exception:  # whatever foreign code raises; she is told nothing of others
                raise InvalidInput(
                    "This person's function cannot be sent to an actor; keep people here."
                ) from None
            self._tell(who, "keep_function", (packed, items, worth, batch, kind), batch)
        self._sizes[who] += 1
        self._last = [(who, 1)]

    def keep_rows(self, came: Arrived) -> None:
        """Several people: each actor gets those who come one after the other, so that all have about as many."""
        self._last, first = [], 0
        for who, many in _shared_out(self._sizes, len(came.rows)):
            some = slice(first, first + many)
            mine = came._replace(rows=came.rows[some], kinds=came.kinds[some])
            first += many
            held = mine if came.again is None else mine._replace(table=None)
            later = partial(_read_again, held, self._n_items)
            self._tell(who, "keep_rows", _ready(mine, self._n_items), came.batch, later)
            self._sizes[who] += many
            self._last.append((who, many))

    def mark(self, rounds: Sequence[int] | Ints) -> None:
        """Those who were kept last came in these rounds."""
        numbers, first = np.asarray(rounds, dtype=np.int64), 0
        for who, many in self._last:
            self._tell(who, "mark", (numbers[first : first + many],), None)
            first += many

    def erase(self, rounds: Ints) -> None:
        """Drop everybody who came in these rounds."""
        for who in range(len(self._actors)):
            self._tell(who, "erase", (np.asarray(rounds),), None)

    def forget(self, before: int) -> None:
        """Drop everybody of batches before that one; nor are they told again."""
        for who, told in enumerate(self._told):
            if not any(gift.name == "mark" for gift in told):
                told[:] = [gift for gift in told if gift.batch is None or gift.batch >= before]
            self._tell(who, "forget", (before,), None)

    def _tell(
        self,
        who: int,
        name: str,
        given: tuple[Any, ...],
        batch: int | None,
        later: Callable[[], tuple[Any, ...]] | None = None,
    ) -> Any:
        """Something that changes who is kept; an actor that is lost is told with all the rest when it is asked.

        `later`: how to have what is given again, where it is not to be held. What comes back can be waited for.
        """
        if self._how.remembers:
            self._told[who].append(Gift(name, (lambda: given) if later is None else later, batch))
        return getattr(self._actors[who], name).remote(*given)

    def _all(self, ask: Callable[[Any], Any]) -> list[Any]:
        """What each actor says, once all are there."""
        try:
            return self.got([ask(actor) for actor in self._actors])
        except PeopleLost:
            self.mend()
            return self.got([ask(actor) for actor in self._actors])

    def got(self, waiting: list[Any]) -> list[Any]:
        """What was asked of actors, once it is there."""
        try:
            found: list[Any] = self._ray.get(waiting)
        except self._ray.exceptions.RayActorError:  # its message names processes and machines
            raise PeopleLost("An actor that kept people is not there any more.") from None
        except self._ray.exceptions.RayTaskError as error:
            raise error.as_instanceof_cause() from None
        return found

    def mend(self) -> list[int]:
        """Let others take the place of actors that are lost, and tell them all that those were told; who they are."""
        found = []
        for who, actor in enumerate(self._actors):
            try:
                self.got([actor.size.remote()])
            except PeopleLost:
                if not self._how.remembers:
                    raise PeopleLost(
                        "An actor that kept people is not there any more, and nobody remembers them; go on from a "
                        "snapshot."
                    ) from None
                self._actors[who] = self._new()
                for gift in self._told[who]:
                    getattr(self._actors[who], gift.name).remote(*gift.given())
                self.got([self._actors[who].size.remote()])
                found.append(who)
        return found

    # The door.

    def begin(self, weights: Ints, factors: Floats) -> AskedPeople:
        """The people of a release, as they are now."""
        return AskedOnRay(self, weights, factors)

    def next_release(self) -> int:
        """A number for a release, by which actors know it."""
        self._releases += 1
        return self._releases

    def actors(self) -> Sequence[Any]:
        """Those who hold people now."""
        return self._actors

    # What a snapshot holds.

    def written(self) -> tuple[list[NDArray[Any]], dict[str, NDArray[Any]]]:
        """Everybody, actor after actor."""
        found = self._all(lambda actor: actor.written.remote())
        return entries_together([entries for entries, _ in found]), together([rows for _, rows in found])

    def read(self, entries: Sequence[NDArray[Any]], rows: dict[str, NDArray[Any]]) -> None:
        """Each actor gets as many, of those who came one after the other; refuse what is not in step."""
        try:
            ends = [len(entries[0]) * (who + 1) // len(self._actors) for who in range(len(self._actors) - 1)]
            parts = zip(cut_entries(entries, ends), cut_people(rows, ends), strict=True)
            waiting = [self._tell(who, "read", part, None) for who, part in enumerate(parts)]
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise InvalidInput(f"The snapshot's people cannot be read: {error}.") from error
        self.got(waiting)
        self._sizes = self._all(lambda actor: actor.size.remote())


class AskedOnRay:
    """The people of one release, on actors."""

    def __init__(self, kept: KeptOnRay, weights: Ints, factors: Floats) -> None:
        self._kept, self._release = kept, kept.next_release()
        self._given = weights, factors
        self._begun = self._cut = False  # whether a chain goes on, and whether somebody in it was lost
        self._ask("begin", *self._given)

    def __repr__(self) -> str:
        return f"<AskedOnRay, {len(self._kept.actors())} actors>"

    def _ask(self, name: str, *given: Any) -> list[Any]:
        """What all say. Should an actor be lost, another takes its place, with people as they are then."""
        try:
            return self._got(name, *given)
        except PeopleLost:
            new = self._kept.mend()
            self._cut = self._cut or self._begun
            anew = [self._kept.actors()[who].begin.remote(self._release, *self._given) for who in new]
            self._kept.got(anew)
            return self._got(name, *given)

    def _got(self, name: str, *given: Any) -> list[Any]:
        return self._kept.got(
            [getattr(actor, name).remote(self._release, *given) for actor in self._kept.actors()]
        )

    def _ask_on(self, name: str, *given: Any) -> list[Any]:
        """What all say along a chain that has begun: it ends where somebody is lost."""
        if self._cut:
            raise PeopleLost("Some of those who were asked are not there any more.")
        try:
            return self._got(name, *given)
        except PeopleLost:
            self._cut = True
            raise

    def sums(self, whose: Ints, many: int) -> Ints:
        """What is left of everybody."""
        return added([_dense(part) for part in self._ask_on("sums", whose, many)])

    def singles(self, whose: Ints, many: int) -> Ints:
        """What was there at first."""
        found = added([_dense(part) for part in self._ask("singles", whose, many)])
        self._begun = True
        return found

    def row(self, joining: Ints, questions: Ints, many: int) -> Ints:
        """What is lost as items join."""
        return added([_dense(part) for part in self._ask_on("row", joining, questions, many)])

    def take(self, joining: Ints) -> None:
        """These items have joined. Nobody waits: whoever is lost meanwhile is missed at the next question."""
        for actor in self._kept.actors():
            actor.take.remote(self._release, joining)

    def around(self, slate: Ints) -> Ints:
        """What is said around a slate."""
        return added([_dense(part) for part in self._ask("around", slate)])

    def counts(self, of_type: Ints, size: int, unit: int) -> Ints:
        """How often each value is there."""
        return added([_dense(part) for part in self._ask("counts", of_type, size, unit)])


class Holder:
    """In an actor: some people, and those of the release that is going on."""

    def __init__(self, made: bytes) -> None:
        self._n_items, clip, n_types, plugins = cloudpickle.loads(made)
        plugins.unpack()
        self._kept = Kept(self._n_items, clip, Entries(self._n_items, n_types, clip.ceiling))
        self._release, self._asked = -1, cast(AskedPeople, None)

    def __repr__(self) -> str:
        return "<Holder>"

    def size(self) -> int:
        """How many are kept."""
        return len(self._kept)

    def keep_rows(
        self, family: Family, rows: Sequence[SparseRows], batch: int, kinds: Ints, missing: NDArray[np.bool_]
    ) -> None:
        """Several people."""
        table, every = family.table(rows, self._n_items), range(rows[0].shape[0])
        self._kept.keep_rows(Arrived(family, table, every, batch, _own(kinds), _own(missing)))

    def keep_person(
        self, family: Family, rows: Sequence[SparseRows], items: Ints, worth: Floats, batch: int, kind: int
    ) -> None:
        """One person."""
        person = Person(family, self._n_items, family.table(rows, self._n_items), 0)
        self._kept.keep(person, _own(items), _own(worth), batch, kind)

    def keep_function(self, person: bytes, items: Ints, worth: Floats, batch: int, kind: int) -> None:
        """One person who is a Python function."""
        self._kept.keep(cloudpickle.loads(person), _own(items), _own(worth), batch, kind)

    def mark(self, rounds: Ints) -> None:
        """Those who were kept last came in these rounds."""
        self._kept.mark(rounds)

    def erase(self, rounds: Ints) -> None:
        """Drop those of these rounds."""
        self._kept.erase(rounds)

    def forget(self, before: int) -> None:
        """Drop those of earlier batches."""
        self._kept.forget(before)

    def begin(self, release: int, weights: Ints, factors: Floats) -> None:
        """A release: who is here now is asked, and those of the release before are not any more."""
        self._release, self._asked = release, self._kept.begin(_own(weights), _own(factors))

    def sums(self, release: int, whose: Ints, many: int) -> Any:
        """What is left."""
        return _sparse(self._people(release).sums(_own(whose), many))

    def singles(self, release: int, whose: Ints, many: int) -> Any:
        """What was there at first."""
        return _sparse(self._people(release).singles(_own(whose), many))

    def row(self, release: int, joining: Ints, questions: Ints, many: int) -> Any:
        """What is lost."""
        return _sparse(self._people(release).row(_own(joining), _own(questions), many))

    def take(self, release: int, joining: Ints) -> None:
        """These items have joined."""
        self._people(release).take(_own(joining))

    def around(self, release: int, slate: Ints) -> Any:
        """What is said around a slate."""
        return _sparse(self._people(release).around(_own(slate)))

    def counts(self, release: int, of_type: Ints, size: int, unit: int) -> Any:
        """How often each value is there."""
        return _sparse(self._people(release).counts(_own(of_type), size, unit))

    def _people(self, release: int) -> AskedPeople:
        """Those who were here when that release began: others would say more than was charged."""
        if release != self._release:
            raise PeopleLost("Another release has begun, and those of this one are not known any more.")
        return self._asked

    def written(self) -> tuple[list[NDArray[Any]], dict[str, NDArray[Any]]]:
        """What a snapshot holds."""
        return self._kept.written()

    def read(self, entries: Sequence[NDArray[Any]], rows: dict[str, NDArray[Any]]) -> None:
        """Those of a snapshot."""
        self._kept.read([_own(part) for part in entries], {name: _own(part) for name, part in rows.items()})


def _own(array: NDArray[Any]) -> NDArray[Any]:
    """A copy: what Ray hands out is read-only, for which kernels would have to be compiled again."""
    return np.array(array)


def _rows_of(family: Family, table: Table, rows: range | Ints, n_items: int) -> list[SparseRows]:
    """Some rows of a table, ready to travel."""
    if isinstance(rows, range):
        parts = [part.between(rows.start, rows.stop) for part in family.rows(table, n_items)]
    else:
        parts = [part.only(np.asarray(rows)) for part in family.rows(table, n_items)]
    return [SparseRows(part.indptr, part.indices, part.data, part.shape) for part in parts]


def _ready(came: Arrived, n_items: int) -> tuple[Any, ...]:
    """What an actor is told of people who came."""
    rows = _rows_of(came.family, came.table, came.rows, n_items)
    return came.family, rows, came.batch, came.kinds, came.missing


def _read_again(came: Arrived, n_items: int) -> tuple[Any, ...]:
    """The same, of a table that is at hand, or is read again."""
    return _ready(came if came.again is None else came._replace(table=came.again().table), n_items)


def _shared_out(sizes: Sequence[int], more: int) -> list[tuple[int, int]]:
    """How many of those who come go to whom, so that all have about as many afterwards."""
    goal = -(-(sum(sizes) + more) // len(sizes))
    found = []
    for who in np.argsort(sizes, kind="stable").tolist():
        many = min(more, max(0, goal - sizes[who]))
        if many:
            found.append((who, many))
            more -= many
    return found


def _sparse(sums: Ints) -> Any:
    """Sums as they travel: those that are not 0 alone, where they are few."""
    places = np.flatnonzero(sums)
    if len(places) * SPARSE > sums.size:
        return sums
    narrow = places.astype(np.int32) if sums.size < 2**31 else places
    return sums.shape, narrow, sums.reshape(-1)[places]


def _dense(told: Any) -> Ints:
    if isinstance(told, np.ndarray):
        return told
    shape, places, numbers = told
    total = np.zeros(shape, dtype=np.int64)
    total.reshape(-1)[places] = numbers
    return total
