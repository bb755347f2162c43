"""Bodies: what requests and replies hold. The OpenAPI document is made of these types."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from diminuendo.service.api.unfit import EPSILON, MOST
from diminuendo.service.records import PlacementSpec, PublicMenu

MOST_AT_ONCE = 1000
"""Decisions or answers of one request."""
MOST_EXCLUDED = 10_000
"""Items that one request may exclude. A public limit, so that nobody's exclusions hold up others."""

Name = Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9._-]{0,63}$")]
UserId = Annotated[str, Meta(min_length=1, max_length=500)]
Token = Annotated[str, Meta(max_length=60_000)]

WHO = (
    "Who it is: always the same name for the same user. Required where the placement's max_rounds_per_user "
    "are more than 1, and "
    "then one decision a request, without count and contexts; optional where max_rounds_per_user is 1."
)

WITHOUT = (
    f"Names of items that are not to be shown to these users, at most {MOST_EXCLUDED:,}. What is no item is left out; "
    "a longer list is refused, and its decisions count as made."
)


class AskDecisions(Struct, frozen=True, forbid_unknown_fields=True):
    """Who is there, and what is known of her."""

    user_id: Annotated[UserId | None, Meta(description=WHO)] = None
    """Her name. Needed where several rounds of one user count; it is hashed with a key before it is kept."""
    count: Annotated[int, Meta(ge=1, le=MOST_AT_ONCE)] | None = None
    """How many decisions, for users without names; the reply is a list then. Only where one round of a user counts."""
    context: Any = None
    """What is known of her, by column or in order; of all of them, where there are several."""
    contexts: Annotated[list[Any], Meta(max_length=MOST_AT_ONCE)] | None = None
    """What is known of each of them."""
    exclude: Annotated[Any, Meta(description=WITHOUT)] = None
    """Names of items that she is not to be shown; what is no item is left out."""


class DecisionBody(Struct, frozen=True):
    """What to show, and what to send back with her answer."""

    slate: list[str | None]
    """Names of items, by slot; null for a slot that is empty."""
    propensity: float | None
    """With what chance it was this slate; null where that is not said."""
    token: str
    answer_before: str
    """An answer counts until then; as RFC 3339 writes times."""


class DecisionList(Struct, frozen=True):
    """Several decisions."""

    decisions: list[DecisionBody]


class MenuBody(PublicMenu, frozen=True, kw_only=True, omit_defaults=True):
    """The menu in effect, and what its numbers mean: whoever has it can choose alone."""

    items: tuple[str, ...]
    """The shop's names; item a is the a-th of them."""
    columns: list[tuple[str, tuple[str, ...]]]
    """What may be known of users, in order, with the values that are listed. Somebody's type is a number whose digits
    are the numbers of her values, from 1 on, the last column's last; 0: not known."""


class Answer(Struct, frozen=True, forbid_unknown_fields=True):
    """What she said: one of wants, reward and click, as her placement asks."""

    token: Token
    wants: list[str] | dict[str, Annotated[float, Meta(ge=0, le=1)]] | UnsetType = UNSET
    """With full feedback: names of items that she wants, or how much she wants each, from 0 to 1."""
    reward: float | UnsetType = UNSET
    """What the slate was worth to her; counted as the nearest number from 0 to 1."""
    click: int | UnsetType | None = UNSET
    """The slot that she clicked first, from 0 on; null where she clicked nothing."""


class Erasure(Struct, frozen=True, forbid_unknown_fields=True):
    """Whose answers are to go: that of one token, or all of a user at a placement."""

    token: Token | None = None
    user_id: UserId | None = None
    placement: Name | None = None


class ItemChange(Struct, frozen=True, forbid_unknown_fields=True):
    """Items that appear or retire, with the next menu. Public, as is the reason."""

    appear: list[str] = []
    retire: list[str] = []
    why: Annotated[str, Meta(max_length=500)] = ""


class NewPopulation(Struct, frozen=True, forbid_unknown_fields=True):
    """Users whose budget is counted together, in one ledger."""

    name: Name
    epsilon: Annotated[float, Meta(gt=0, le=EPSILON)] = 1.0
    delta: Annotated[float, Meta(ge=0, lt=1)] = 1e-6
    max_rounds_per_user: Annotated[int, Meta(ge=1, le=MOST)] = 1
    """How many rounds of one user count, in each of its placements."""


class NewPlacement(Struct, frozen=True, forbid_unknown_fields=True):
    """A place where slates are shown, and the learner that chooses them."""

    name: Name
    spec: PlacementSpec


class Made(Struct, frozen=True):
    """What was made."""

    name: str


class ReleaseBody(Struct, frozen=True):
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
    """Rounds before this one are forgotten: tastes have changed, as what was published says."""


class PlacementBody(Struct, frozen=True):
    """A placement, and how it stands."""

    name: str
    made_at: float
    spec: PlacementSpec
    menu: ReleaseBody | None
    """The menu in effect; null where there is none yet."""
    gone: list[str]
    """Items that are not shown: they have retired, or have not appeared."""


class PlacementList(Struct, frozen=True):
    """All placements."""

    placements: list[Made]


class ReleaseList(Struct, frozen=True):
    """Menus, by version."""

    releases: list[ReleaseBody]
    after: int
    """Ask with this for those that follow."""


class LedgerBody(Struct, frozen=True):
    """Lines of a ledger, as they stand in it; each carries the head of the one before."""

    lines: list[str]
    after: int
    """Ask with this for those that follow."""


class GuaranteeBody(Struct, frozen=True):
    """What is promised."""

    sentence: str
    """To quote."""
    spec: dict[str, Any]


class PlanBody(Struct, frozen=True):
    """What a placement of these facts promises, or why there can be none."""

    plan: dict[str, Any] | None
    refused: str | None = None


class Health(Struct, frozen=True, omit_defaults=True):
    """Whether it is well."""

    well: bool
    store: bool
    """Whether answers can be stored: a canary was, a few seconds ago, and nothing has failed since."""
    write_probe: float | None
    """When a canary was last stored, by the store's clock."""
    placements: dict[str, bool]
    """By name, whether there is something to show."""
    why: str = ""
    """Why it is not well, from a closed list of reasons; empty where it is."""


FIELDS = frozenset(
    field
    for struct in (AskDecisions, Answer, Erasure, ItemChange, NewPopulation, NewPlacement, PlacementSpec)
    for field in struct.__struct_fields__
)
"""Names of our own fields, which errors may tell."""
