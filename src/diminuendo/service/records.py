"""Records: what front ends, trainer and store hand to each other. Whatever is not encrypted is public.

Front ends import this and nothing that is compiled, so that they start fast and stay small.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

from msgspec import MsgspecError, Struct, field
from msgspec.json import decode

ID_BLOCK_HOLDS, ID_BLOCK_LASTS = 0.5, 1.5
"""Seconds: of traffic that an ID block of rounds is for, and for which they are reserved."""
Kind = Literal["one", "types", "rounds", "groups", "random"]


class PopulationSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """What a population was made with: the budget of users who are protected together. Public, and never changed."""

    epsilon: float = 1.0
    delta: float = 1e-6
    max_rounds_per_user: int = 1
    """How many rounds one user may have, in each placement."""


class PlacementSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """What a placement was made with. Public, and never changed."""

    population: str
    items: tuple[str, ...]
    """The shop's own names of the items; item a is the a-th of them."""
    slots: int
    feedback: Literal["full", "bandit", "click"]
    users: int | None = None
    """How many users it is made for; None if that is not known. All of them have rounds, unless there is a sample."""
    learner: str = "private"
    objective: str = "noisy-or"
    """With full feedback: what wishes mean together, a family that needs no parameters."""
    epsilon: float = 1.0
    """What it may spend of its population's budget, as the epsilon of a setting."""
    delta: float = 1e-6
    max_rounds_per_user: int = 1
    contexts: dict[str, tuple[str, ...]] = {}
    """By column its values, listed beforehand."""
    private_contexts: bool = False
    exclusions: bool = False
    pinned: dict[int, str] = {}
    """By slot the item that it always shows."""
    caps: tuple[tuple[tuple[str, ...], int], ...] = ()
    """Sets of items, and how many of each are shown at most."""
    retention: int | None = None
    """For how many rounds users are kept at most, by learners that keep users; None: as long as they like."""
    sample: int = 1
    """Of how many users one has a round and is learned from, by a public coin; all are served."""
    response_count: float = 0.0
    """The part of the population's budget, from 0 to 1, that is spent on saying how many users answer, about."""
    response_rate: float = 1.0
    """The share of users who answer at all; a guess that was not made from what these users say."""
    deadline: float = 600.0
    """Seconds for which an answer counts after its slate was chosen."""
    per_second: float = 10.0
    """How many decisions a second are expected at most: blocks and memory are made for that."""
    publish_interval: float = 1.0
    """Seconds: menus take effect at whole ticks of the store's clock ..."""
    publish_delay: float = 2.0
    """... at least this long after what they are made of was settled."""

    @property
    def rounds(self) -> int | None:
        """How many rounds it is made for: of all users, or of the sample; None if that is not known."""
        return None if self.users is None else -(-self.users // self.sample)

    @property
    def hidden(self) -> bool:
        """Whether slates are private, so that neither they nor types may travel in the open."""
        return self.private_contexts or self.exclusions


class NoisyCount(Struct, frozen=True):
    """How many answered, about: published with noise (trainer/heard.py)."""

    answers: float
    rounds: int
    """It is about rounds before this one."""
    deviation: float
    """The standard deviation of the noise in it."""


class Lists(Struct, frozen=True):
    """What each slot may show, for random slates and for what stands in (learners/base/rules/lists.py)."""

    starts: tuple[int, ...]
    items: tuple[int, ...]
    pinned: tuple[int, ...] = ()
    inside: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    most: tuple[int, ...] = ()


class PublicMenu(Struct, frozen=True, omit_defaults=True):
    """What is shown next, to which rounds and with what chance: plain numbers, for front ends and browsers.

    The row of `slates` that is shown in round r to a user of type t:

        one       row 0
        types     row t
        rounds    row shown[r - first]
        groups    row decks[groups[t]][r - first]
        random    none: items are drawn, slot by slot from `lists`, nothing twice
    """

    version: int
    kind: Kind
    slots: int
    first: int
    """The first round that it is for."""
    end: int | None
    """No round from this one on is shown by it; None: it holds until the next menu."""
    fallback: tuple[int, ...]
    """What is shown where no round can be had; answers to that count for nothing."""
    slates: tuple[tuple[int, ...], ...] = ()
    """Rows of items, -1 for a slot that is empty."""
    shown: tuple[int, ...] = ()
    groups: tuple[int, ...] = ()
    decks: tuple[tuple[int, ...], ...] = ()
    propensities: bool = True
    """Whether it is said with what chance a slate was shown."""
    lists: Lists | None = None
    own: tuple[tuple[int, ...], ...] = ()
    """By type (of kind groups: by group), what takes the place of what a user excludes, the best first."""
    ranking: tuple[int, ...] = ()
    """The same for all users."""
    releases: int = 0
    """How many releases it is made of."""
    head: str = ""
    """The head of the ledger that paid for them: a front end that has seen it recognises an older ledger."""
    remembers_from: int = 0
    """Rounds before this one are forgotten: tastes have changed, as what was published says."""
    spent: tuple[float, ...] = ()
    """What was spent up to that head, and the population's budget, as epsilons."""
    response_count: NoisyCount | None = None
    """How many answered, about, where that is published."""
    guarantee: dict[str, Any] = {}
    """What the learner guarantees (`Guarantee.as_json`), with the learner's name."""
    signal: str = ""
    """Whether what was published up to that head shows that anybody answers in time; "" where no rewards are."""
    seal: str = ""
    """The number of the trainer's key that answers are encrypted to, and that key, in hexadecimal digits with
    a colon."""


class Report(Struct, frozen=True, omit_defaults=True):
    """What became of an ID block, as its front end says when it asks for the next. All of it is public."""

    first: int
    """Which ID block: its first round."""
    used: int
    """How many of its rounds were shown, from the first on."""
    silent: tuple[int, ...] = ()
    """Rounds among them whose users had all their visits before."""
    types: tuple[int, ...] = ()
    """The types of the users of these rounds, where contexts are public."""


class ItemsChanged(Struct, frozen=True):
    """What an operator wrote down: items that appear or retire, by the shop's names."""

    appear: list[str] = []
    retire: list[str] = []
    why: str = ""


T = TypeVar("T")


def read(kind: type[T], written: bytes | str | None) -> T | None:
    """A value from JSON; None if it is nothing of that kind, so that a reader goes on with other rows."""
    try:
        return None if written is None else decode(written, type=kind)
    except (MsgspecError, ValueError, RecursionError):
        return None


class Shown(Struct, frozen=True, array_like=True):
    """What a token says, for the trainer: which round showed which slate to a user of which type."""

    placement: int
    round: int
    version: int
    counts: bool
    """False: a fallback slate, or a round over quota."""
    slate: tuple[int, ...]
    """The row, -1 for a slot that is empty."""
    type: int = 0


class Said(Struct, frozen=True, array_like=True):
    """One answer as it is encrypted: what was shown, and the feedback to it, validated."""

    shown: Shown
    ratings: dict[int, float] | None = None
    """With full feedback: ratings from 0 to 1, by item."""
    reward: float | None = None
    click: int | None = field(default=None)
    """The slot that was clicked first; None where nothing was."""
    padding: bytes = b""
    """Nothing: so that the length of what is encrypted does not depend on the ratings."""
