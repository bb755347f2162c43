"""Bodies of requests and replies. The OpenAPI document is made of these types."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from diminuendo.service.records import PlacementSpec, PublicMenu

MOST_AT_ONCE = 1000
"""Decisions or feedback rows of one request."""
MOST_EXCLUDED = 10_000
"""Items that one request may exclude. A public limit, so that nobody's exclusions hold up others."""

Name = Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9._-]{0,63}$")]
UserId = Annotated[str, Meta(min_length=1, max_length=500)]
Token = Annotated[str, Meta(max_length=60_000)]

USER_ID = (
    "A stable name of the user. Required where the placement's max_rounds_per_user is more than 1; such a request is "
    "one decision, without count and contexts. Optional where max_rounds_per_user is 1."
)
EXCLUDE = (
    f"Names of items that must not be shown, at most {MOST_EXCLUDED:,}. Unknown names are ignored. A longer list is "
    "refused, and its decisions count as made."
)


NULL = Raw(b"null")


class DecisionRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Users to decide for, and what is known of them.

    Contexts and exclusions may be private, so they are decoded by themselves: what is wrong in them must not keep a
    request from using an impression, which others could see.
    """

    user_id: Annotated[UserId | None, Meta(description=USER_ID)] = None
    """Hashed with a key before it is stored."""
    count: Annotated[int, Meta(ge=1, le=MOST_AT_ONCE)] | None = None
    """Number of decisions for users without IDs; the reply is a list. Only where max_rounds_per_user is 1."""
    context: Raw = field(default_factory=lambda: NULL)
    """Features of the user, by name or in order; of all users of the request, where it is for several."""
    contexts: Annotated[list[Raw], Meta(max_length=MOST_AT_ONCE)] | None = None
    """Features of each user."""
    exclude: Annotated[Raw, Meta(description=EXCLUDE)] = field(default_factory=lambda: NULL)


class DecisionBody(Struct, frozen=True):
    """A slate, and the token that feedback on it needs."""

    slate: list[str | None]
    """Names of items, by slot; null for an empty slot."""
    propensity: float | None
    """The probability of this slate; null where it is not public."""
    token: str
    expires_at: str
    """The deadline for feedback, as RFC 3339 writes times."""


class DecisionList(Struct, frozen=True):
    """Several decisions."""

    decisions: list[DecisionBody]


class MenuBody(PublicMenu, frozen=True, kw_only=True, omit_defaults=True):
    """The menu in effect, and what its numbers mean: with it a client chooses by itself."""

    items: tuple[str, ...]
    """Names of the items by number."""
    columns: list[tuple[str, tuple[str, ...]]]
    """Features in order, with their categories. A context ID is a number with one digit per feature, the last feature
    last: the number of the category, from 1 on, or 0 for unknown."""


class FeedbackBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Feedback on one decision: ratings, reward or click, as the placement's feedback says."""

    token: Token
    ratings: list[str] | dict[str, Annotated[float, Meta(ge=0, le=1)]] | UnsetType = UNSET
    """With full feedback: names of wanted items, or ratings from 0 to 1 by name."""
    reward: float | UnsetType = UNSET
    """Clipped to the range from 0 to 1."""
    click: int | UnsetType | None = UNSET
    """The slot that was clicked first, from 0 on; null for no click."""


class Erasure(Struct, frozen=True, forbid_unknown_fields=True):
    """Feedback to erase: that of one token, or all of a user at a placement."""

    token: Token | None = None
    user_id: UserId | None = None
    placement: Name | None = None


class ItemChange(Struct, frozen=True, forbid_unknown_fields=True):
    """Items that appear or retire with the next menu. Public, as is the reason."""

    appear: list[str] = []
    retire: list[str] = []
    why: Annotated[str, Meta(max_length=500)] = ""


class Named(Struct, frozen=True):
    """A placement in a list."""

    name: str


class VersionBody(Struct, frozen=True):
    """One menu that was published."""

    version: int
    effective_at: float
    releases: int
    head: str
    leading: list[str | None]
    """Its leading slate."""
    slates: int
    """How many slates it shows."""
    remembers_from: int
    """Data of impressions before this one is not used any more, because published values show drift."""


class PlacementBody(Struct, frozen=True):
    """A placement and its state."""

    name: str
    created_at: float
    spec: PlacementSpec
    menu: VersionBody | None
    """The menu in effect; null before the first."""
    retired: list[str]
    """Items that are not shown: they have retired, or have not appeared."""


class PlacementList(Struct, frozen=True):
    """All placements."""

    placements: list[Named]


class VersionList(Struct, frozen=True):
    """Menus, by version."""

    versions: list[VersionBody]
    after: int
    """The cursor for what follows."""


class LedgerBody(Struct, frozen=True):
    """Lines of a ledger; each carries the hash of the one before."""

    lines: list[str]
    after: int
    """The cursor for what follows."""


class GuaranteeBody(Struct, frozen=True, omit_defaults=True):
    """The guarantee of a placement."""

    sentence: str
    """To quote."""
    guarantee: dict[str, Any]
    """Its parameters, and the learner that was chosen."""
    closed: str = ""
    """Of a closed placement: what that means."""


class Health(Struct, frozen=True, omit_defaults=True):
    """Whether a front end can serve."""

    healthy: bool
    store_writable: bool
    """Whether the last write probe was stored a few seconds ago, and nothing has failed since."""
    last_probe_at: float | None
    """When a write probe was last stored, by the store's clock."""
    placements: dict[str, bool]
    """By name, whether there is a menu."""
    why: str = ""
    """The reason from a closed list; empty where it is healthy."""


FIELDS = frozenset(
    name for kind in (DecisionRequest, FeedbackBody, Erasure, ItemChange) for name in kind.__struct_fields__
)
"""Names of our own fields, which errors may repeat."""
