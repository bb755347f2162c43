"""Records: what front ends, trainer and store hand to each other. Whatever is not encrypted is public.

Front ends import this and nothing that is compiled, so that they start fast and stay small.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

from msgspec import MsgspecError, Struct, field
from msgspec.json import decode

ID_BLOCK_HOLDS, ID_BLOCK_LASTS = 0.5, 1.5
"""Seconds: the traffic that an ID block is sized for, and its lifetime."""
Kind = Literal["one", "types", "rounds", "groups", "random"]


class PopulationSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """The specification of a population, whose users share a budget. Public, and never changed."""

    epsilon: float = 1.0
    delta: float = 1e-6
    max_rounds_per_user: int = 1
    """How many impressions of one user count, in each placement."""


class PlacementSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """The specification of a placement. Public, and never changed."""

    population: str
    items: tuple[str, ...]
    """Names of the items by number."""
    slots: int
    feedback: Literal["full", "bandit", "click"]
    users: int | None = None
    """How many users are expected; None if unknown."""
    learner: str = "private"
    objective: str = "noisy-or"
    """With full feedback: the objective, a family without parameters."""
    epsilon: float = 1.0
    """Its part of the population's budget, as the epsilon of a setting."""
    delta: float = 1e-6
    max_rounds_per_user: int = 1
    contexts: dict[str, tuple[str, ...]] = {}
    """Categories by feature."""
    private_contexts: bool = False
    exclusions: bool = False
    pinned: dict[int, str] = {}
    """Items by the slot that always shows them."""
    caps: tuple[tuple[tuple[str, ...], int], ...] = ()
    """Sets of items, and how many of each may be shown."""
    retention: int | None = None
    """Rounds after which learners that store users delete them; None: no limit."""
    sample: int = 1
    """One in so many users is learned from, by a public coin; all are served."""
    response_count: float = 0.0
    """The share of the population's budget for publishing a noisy count of responses."""
    response_rate: float = 1.0
    """The share of users who respond, from other data than their feedback."""
    deadline: float = 600.0
    """Seconds for which an answer counts after its slate was chosen."""
    per_second: float = 10.0
    """How many decisions a second are expected at most: blocks and memory are made for that."""
    publish_interval: float = 1.0
    """Seconds: menus take effect at multiples of this on the store's clock ..."""
    publish_delay: float = 2.0
    """... at least this long after the impressions they are made of were closed."""

    @property
    def rounds(self) -> int | None:
        """How many impressions are planned, of all users or the sample; None if unknown."""
        return None if self.users is None else -(-self.users // self.sample)

    @property
    def hidden(self) -> bool:
        """Whether slates and contexts are private, so that they are never sent unencrypted."""
        return self.private_contexts or self.exclusions


class NoisyCount(Struct, frozen=True):
    """A noisy count of responses (trainer/response_count.py)."""

    answers: float
    rounds: int
    """It counts impressions before this one."""
    deviation: float
    """The standard deviation of the noise in it."""


class Lists(Struct, frozen=True):
    """What each slot may show, for random slates and backfill (learners/base/rules/lists.py)."""

    starts: tuple[int, ...]
    items: tuple[int, ...]
    pinned: tuple[int, ...] = ()
    inside: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    most: tuple[int, ...] = ()


class PublicMenu(Struct, frozen=True, omit_defaults=True):
    """A serving policy: what is shown in which impression, with what probability. For front ends and browsers.

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
    """Its first impression."""
    end: int | None
    """Its end (exclusive); None: it holds until the next menu."""
    fallback: tuple[int, ...]
    """The fallback slate; feedback on it counts for nothing."""
    slates: tuple[tuple[int, ...], ...] = ()
    """Rows of items, -1 for a slot that is empty."""
    shown: tuple[int, ...] = ()
    groups: tuple[int, ...] = ()
    decks: tuple[tuple[int, ...], ...] = ()
    propensities: bool = True
    """Whether the probability of a slate is public."""
    lists: Lists | None = None
    own: tuple[tuple[int, ...], ...] = ()
    """Backfill for excluded items by context (for the kind `groups`: by group), best first."""
    ranking: tuple[int, ...] = ()
    """The same for all contexts."""
    releases: int = 0
    """The number of releases behind it."""
    head: str = ""
    """The head of the ledger that paid for them: a front end that has seen it recognises an older ledger."""
    remembers_from: int = 0
    """Data of impressions before this one is not used any more, because published values show drift."""
    spent: tuple[float, ...] = ()
    """Epsilon spent up to that head, and the population's budget."""
    response_count: NoisyCount | None = None
    """The noisy count of responses, where it is published."""
    guarantee: dict[str, Any] = {}
    """What the learner guarantees (`Guarantee.as_json`), with the learner's name."""
    signal: str = ""
    """Whether published rewards show that feedback arrives in time; "" if no rewards are published."""
    seal: str = ""
    """The number of the trainer's public key, a colon, and the key in hexadecimal digits."""


class Report(Struct, frozen=True, omit_defaults=True):
    """The usage of an ID block, which its front end reports when it reserves the next. Public."""

    first: int
    """The first ID of the block."""
    used: int
    """How many of its IDs were shown, from the first on."""
    silent: tuple[int, ...] = ()
    """Those of users who were over quota."""
    types: tuple[int, ...] = ()
    """Their context IDs, if contexts are public."""


class ItemsChanged(Struct, frozen=True):
    """An event: items that appear or retire, by name."""

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
    """The content of a token: which impression showed which slate in which context."""

    placement: int
    round: int
    version: int
    counts: bool
    """False for fallback slates and impressions over quota."""
    slate: tuple[int, ...]
    """Items by slot, -1 for an empty slot."""
    type: int = 0


class Said(Struct, frozen=True, array_like=True):
    """Validated feedback with what was shown, as it is encrypted."""

    shown: Shown
    ratings: dict[int, float] | None = None
    """With full feedback: ratings from 0 to 1, by item."""
    reward: float | None = None
    click: int | None = field(default=None)
    """The slot that was clicked first; None where nothing was."""
    padding: bytes = b""
    """Makes the encrypted length independent of the feedback."""
