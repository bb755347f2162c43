"""The table of everything that is measured: a name, and the command that measures it, as it is printed on pages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from measurements import streams

SEEDS = 100
"""How many runs of everything, with seeds from 0 on."""

Kind = Literal["simulate", "continuous", "audit", "plan", "published", "leak"]


@dataclass(frozen=True)
class Entry:
    """One command, whose output becomes cells of tables or a picture."""

    name: str
    typed: str
    """The command; {seeds} stands for the number of runs."""
    kind: Kind = "simulate"
    stream: str | None = None
    """The stream file that is written beforehand, by its name in measurements/streams.py."""

    @property
    def seeded(self) -> bool:
        """Whether it is measured over several seeds."""
        return "{seeds}" in self.typed

    def command(self, seeds: int) -> str:
        """The command for this number of runs."""
        return self.typed.format(seeds=seeds)

    def commands(self, seeds: int) -> list[str]:
        """All that is to be typed, from the folder of the repository: the stream first, where it is a file."""
        first = [] if self.stream is None else [streams.command(self.stream)]
        return [*first, self.command(seeds)]


def _file(name: str) -> Path:
    return streams.FILES / f"{name}.npz"


def _private(name: str, users: str, *options: str, stream: str | None = None) -> Entry:
    """What `private` earns, with two budgets, and beside it random choice."""
    words = [
        "diminuendo simulate",
        users,
        *options,
        "--learners private,random --epsilon .1,1 --seeds {seeds}",
    ]
    return Entry(name, " ".join(words), stream=stream)


def _from_file(name: str, stream: str, *options: str) -> Entry:
    return _private(name, _file(stream).as_posix(), *options, stream=stream)


def _with_contexts(name: str, users: str) -> Entry:
    """What `private` earns with contexts and without, with two budgets."""
    learners = "--learners private,private-no-contexts,random"
    return Entry(name, f"diminuendo simulate {users} {learners} --epsilon .1,1 --seeds {{seeds}}")


def _yardstick(name: str, users: str, *options: str, stream: str | None = None) -> Entry:
    """What the non-private learner earns that `private` is compared with."""
    words = ["diminuendo simulate", users, *options, "--learners nonprivate --seeds {seeds}"]
    return Entry(name, " ".join(words), stream=stream)


PLACES = "--objective best-match"
REWARDS, CLICKS = "--feedback bandit", "--feedback click"

TABLE = (
    Entry("demo", "diminuendo demo --seeds {seeds}"),
    _private("full-msweb", "msweb"),
    _from_file("full-groceries", "groceries"),
    _from_file("full-uber", "uber-20000", PLACES),
    _from_file("full-taste-groups", "taste-groups-50000"),
    _private("full-renamed", "msweb-drift"),
    _from_file("full-movielens", "movielens-300"),
    _from_file("rewards-taste-groups", "taste-groups-300000", REWARDS),
    _from_file("rewards-uber", "uber-65000", PLACES, REWARDS),
    _private("rewards-msweb", "msweb", REWARDS),
    _private("clicks-msweb", "msweb", CLICKS),
    _from_file("clicks-groceries", "groceries", CLICKS),
    _from_file("clicks-uber", "uber-20000", PLACES, CLICKS),
    _private("clicks-renamed", "msweb-drift", CLICKS),
    _with_contexts("contexts-entry", "msweb-entry --context entry"),
    _with_contexts("contexts-labels", "taste-labels --context group"),
    _with_contexts("contexts-chance", "taste-labels --context chance"),
    _from_file("held-out-retail", "retail"),
    _from_file("held-out-jester5k", "jester5k"),
    _from_file("held-out-uk-accidents", "uk-accidents", PLACES),
    _from_file("held-out-rewards-retail", "retail", REWARDS),
    _from_file("held-out-rewards-jester5k", "jester5k", REWARDS),
    _from_file("held-out-rewards-uk-accidents", "uk-accidents", PLACES, REWARDS),
    _from_file("held-out-clicks-retail", "retail", CLICKS),
    _from_file("held-out-clicks-jester5k", "jester5k", CLICKS),
    _from_file("held-out-clicks-uk-accidents", "uk-accidents", PLACES, CLICKS),
    _yardstick("yardstick-clicks-msweb", "msweb", CLICKS),
    _yardstick("yardstick-clicks-groceries", _file("groceries").as_posix(), CLICKS, stream="groceries"),
    _yardstick("yardstick-clicks-retail", _file("retail").as_posix(), CLICKS, stream="retail"),
    _yardstick("yardstick-clicks-jester5k", _file("jester5k").as_posix(), CLICKS, stream="jester5k"),
    _yardstick(
        "yardstick-clicks-uk-accidents",
        _file("uk-accidents").as_posix(),
        PLACES,
        CLICKS,
        stream="uk-accidents",
    ),
    _yardstick("yardstick-rewards-msweb", "msweb", REWARDS),
    _yardstick("yardstick-rewards-retail", _file("retail").as_posix(), REWARDS, stream="retail"),
    _yardstick("yardstick-full-msweb", "msweb"),
    _yardstick("yardstick-full-retail", _file("retail").as_posix(), stream="retail"),
    Entry(
        "paper-constants",
        "diminuendo simulate msweb --learners fi-dp,paper,streeter-golovin,random "
        "--epsilon .1,.3,1,3,10,30,100 --seeds {seeds}",
    ),
    Entry("continuous", "python -m measurements --only continuous --seeds {seeds}", "continuous"),
    Entry("published", "python -m measurements --only published --seeds {seeds}", "published"),
    Entry("audit", "diminuendo audit --seed 2026", "audit"),
    Entry(
        "planning",
        "diminuendo plan --items 294 --slots 5 --rounds 30000 --cares-about 3 --plot docs/planning.png",
        "plan",
    ),
    Entry("leak", "python examples/leak.py docs/leak.png 2000", "leak"),
)

ENTRIES = {entry.name: entry for entry in TABLE}
