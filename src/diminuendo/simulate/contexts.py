"""Contexts in a simulation: which learners get them, one learner per context, and results per context.

If a stream has contexts, learners that take contexts get them. Two further names are for comparison:

    private-no-contexts    the same learner without contexts
    private-separate       one such learner per context, made for the number of users of that context

Every user has one of the separate learners, so together they guarantee what one of them does (parallel composition).
This holds only for public contexts: a private context would decide which learner counts its user.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput
from diminuendo.learners import Learner, Setting, entry_for, make
from diminuendo.learners.base.entry import AnyEntry
from diminuendo.learners.base.feedback_window import NO_FEEDBACK_WINDOW
from diminuendo.learners.base.menu import SlateByType
from diminuendo.learners.base.replay import replay
from diminuendo.offline import greedy_by_type, shuffled
from diminuendo.randomness import SeededSource
from diminuendo.streams.contexts import UNKNOWN, Contexts
from diminuendo.streams.users import Stream, Users
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items, Progress

NO_CONTEXTS, SEPARATE = "-no-contexts", "-separate"
"""Ends of names of learners, where contexts are simulated."""
MOST_KEPT = 100
"""For how many types, and values of a column, those of most users, it is kept what they were shown and earned."""


def plain_name(name: str) -> str:
    """The name of the learner itself, without how it is given contexts."""
    return name.removesuffix(NO_CONTEXTS).removesuffix(SEPARATE)


def entry_of(name: str, setting: Setting) -> AnyEntry:
    """The entry that plays by this name, by the rule by which `private` is taken."""
    return entry_for(plain_name(name), setting)


def comparison(
    names: list[str], setting: Setting, contexts: Contexts | None, *, at_once: bool = True
) -> list[str]:
    """These learners, each private one followed by what to compare it with where something is known of users.

    `at_once`: whether answers come at once; separate learners are simulated only then.
    """
    if contexts is None:
        return names
    result = []
    for name in names:
        result.append(name)
        entry = entry_of(name, setting)
        if entry.private and entry.takes("contexts"):
            result.append(name + NO_CONTEXTS)
        if entry.private and not contexts.private and at_once:
            result.append(name + SEPARATE)
    return result


def given(name: str, setting: Setting, contexts: Contexts | None) -> Setting:
    """The setting of a learner: with contexts, where there are any and it is to have them."""
    if plain_name(name) == name:
        return replace(setting, contexts=contexts if entry_of(name, setting).takes("contexts") else None)
    if contexts is None:
        raise InvalidInput(
            f"{name} is for users with contexts; name their columns (--context on the command line, "
            f"users.with_contexts(..)), or take {plain_name(name)}."
        )
    if name.endswith(SEPARATE) and contexts.private:
        raise InvalidInput(
            f"{name} would not hide private contexts: a context decides which learner counts its user. Take "
            f"{plain_name(name)}, or make contexts public."
        )
    if name.endswith(SEPARATE) and setting.feedback_window != NO_FEEDBACK_WINDOW:
        raise InvalidInput(f"{name} is simulated only where answers come at once; leave it or lateness out.")
    return setting


def replay_separately(
    name: str,
    setting: Setting,
    stream: Users,
    seed: int,
    progress: Progress | None = None,
    user_ids: NDArray[Any] | None = None,
) -> tuple[Items, Learner]:
    """The slates of one learner per context, and the learner of most users."""
    slates = np.full((len(stream), setting.slots), EMPTY_SLOT, dtype=np.int32)
    largest: tuple[int, Learner] | None = None
    for kind, rows in by_type(stream):
        alone = replace(setting, rounds=len(rows), contexts=None)
        learner = make(plain_name(name), alone, rng=SeededSource((seed << 32) + kind))
        some = None if user_ids is None else user_ids[rows]
        slates[rows] = replay(learner, stream[rows], setting.feedback, progress, user_ids=some)
        if largest is None or len(rows) > largest[0]:
            largest = len(rows), learner
    assert largest is not None
    return slates, largest[1]


def by_type(stream: Stream) -> Iterator[tuple[int, Ints]]:
    """Context ids, the most frequent first, and the rounds of each."""
    assert stream.types is not None
    order = np.argsort(stream.types, kind="stable")
    present, starts, counts = np.unique(stream.types[order], return_index=True, return_counts=True)
    rows = np.split(order, starts[1:])
    for number in np.lexsort((present, -counts)).tolist():
        yield int(present[number]), rows[number]


def for_each_value(stream: Stream, rewards: Floats, name: str) -> list[dict[str, Any]]:
    """The mean reward, under that name, of users who have each value of each column, the most frequent first.

    None is the category of users whose category is unknown.
    """
    contexts, types = stream.contexts, stream.types
    assert contexts is not None
    assert types is not None
    result: list[dict[str, Any]] = []
    for column, numbers in zip(contexts.columns, contexts.values_of(types).T, strict=True):
        present, place, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        means = np.bincount(place, weights=rewards) / counts
        result += [
            {
                "column": column.name,
                "value": None if present[some] == UNKNOWN else column.values[present[some]],
                "users": int(counts[some]),
                name: float(means[some]),
            }
            for some in np.lexsort((present, -counts)).tolist()[:MOST_KEPT]
        ]
    return result


@dataclass(frozen=True)
class ContextBenchmarks:
    """What contexts could be worth, in hindsight: a slate per context, compared with one global slate."""

    columns: dict[str, list[str]]
    """The values of each column."""
    private: bool
    types: int
    """How many contexts occurred."""
    greedy: float
    """What greedy on the users of each type earns, per user."""
    shuffled: float
    """The same with shuffled labels, which carry no information."""
    shown: list[dict[str, Any]]
    """For the most frequent types: context, users, greedy (what its slate earns, per user) and slate."""
    values: list[dict[str, Any]]
    """For the most frequent values of each column: column, value, users, and greedy as above."""

    def as_json(self) -> dict[str, Any]:
        """As it is written to files."""
        return asdict(self)

    @property
    def said(self) -> str:
        """Which contexts they are, as `country (3 values), hour (24 values), public`."""
        parts = [f"{name} ({len(values):,} values)" for name, values in self.columns.items()]
        return f"{', '.join(parts)}; {'private' if self.private else 'public'}"


def context_benchmarks(stream: Stream, slots: int) -> ContextBenchmarks | None:
    """Hindsight per context, and the same with shuffled labels; None without contexts."""
    contexts, types = stream.contexts, stream.types
    if contexts is None or types is None:
        return None
    result = greedy_by_type(stream, slots)
    shown = [
        {
            "context": contexts.said(kind),
            "users": len(rows),
            "greedy": result.slates[kind].value,
            "slate": list(result.slates[kind].slate),
        }
        for kind, rows in list(by_type(stream))[:MOST_KEPT]
    ]
    chance = greedy_by_type(stream, slots, shuffled(types)).value
    by_number = np.zeros((contexts.n_types, slots), dtype=np.int32)
    for kind, hindsight in result.slates.items():
        by_number[kind] = hindsight.slate
    values = for_each_value(stream, stream.values(by_number[types]), "greedy")
    columns: dict[str, list[str]] = contexts.config()["columns"]
    return ContextBenchmarks(
        columns, contexts.private, len(result.slates), result.value, chance, shown, values
    )


def for_each_type(stream: Stream, slates: Items, rewards: Floats, learner: Learner | None) -> dict[str, Any]:
    """The last slates and rewards of the most frequent contexts in a run; empty without contexts.

    `learner`: the one of all users; None if each context had its own.
    """
    contexts = stream.contexts
    if contexts is None:
        return {}
    menu = None if learner is None else learner.menu
    use = "separate" if learner is None else "none" if learner.contexts is None else "slates by type"
    shown = []
    for kind, rows in list(by_type(stream))[:MOST_KEPT]:
        last = menu.slates[kind] if isinstance(menu, SlateByType) else slates[rows[-1]]
        shown.append(
            {
                "context": contexts.said(kind),
                "users": len(rows),
                "reward": float(rewards[rows].mean()),
                "slate": [item for item in last.tolist() if item != EMPTY_SLOT],
            }
        )
    return {"use": use, "shown": shown, "values": for_each_value(stream, rewards, "reward")}
