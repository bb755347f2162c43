"""Parts of pages: slates, bars, the picture of what stood where, dots that say who is well."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from itertools import groupby
from urllib.parse import quote

from diminuendo.service.accounts import Account
from diminuendo.service.dashboard.html import Html, fill, joined
from diminuendo.service.dashboard.words import count, epsilon, percent, when
from diminuendo.service.public import Health, Moment, PlacementView, Slate
from diminuendo.service.store.fencing import is_closed

ROW, GAP = 38, 6
MOST_MENUS = 60
"""As many menus are in the picture at most, the last ones."""
WIDE, VERY_WIDE = 9.0, 24.0
"""From how many percent of the picture on a name is written into its bar: on a large screen, on a phone."""

STATES = {"well": "healthy", "late": "late", "away": "no heartbeat"}
"""What pages call the state of a process."""


def link(kind: str, name: str, words: str = "", place: str = "") -> Html:
    """A link to the page of a placement or a population, or to a place on it."""
    return fill('<a href="/{}/{}{}">{}</a>', Html(kind), quote(name, safe=""), Html(place), words or name)


def slate(view: PlacementView, row: Slate, marked: Sequence[int] = ()) -> Html:
    """The items of a slate by slot; `marked` stand out."""
    items = joined(
        fill(
            "<li{}><span>{}</span></li>",
            Html(' class="new"' if item in marked else ""),
            view.named(item) if item >= 0 else "nothing",
        )
        for item in row
    )
    return fill('<ol class="slate">{}</ol>', items)


def names(view: PlacementView, items: Sequence[int]) -> Html:
    """Names of items in a line of text."""
    return joined((fill("<b>{}</b>", view.named(item)) for item in items), ", ")


def budget_bar(account: Account, mine: str = "") -> Html:
    """What is spent of a budget, placement by placement, or one of them before all others."""
    parts = [(one.placement, one.part) for one in account.placements()]
    if mine:
        own = account.part_of(mine)
        parts = [(mine, own), ("others", account.part - own)]
    result, at = [], 0.0
    for number, (name, part) in enumerate(parts):
        result.append(
            fill(
                '<rect x="{:.2f}%" width="{:.2f}%" height="100%" class="part{}"><title>{}: {}</title></rect>',
                100 * at,
                100 * part,
                min(number, 3) if not mine else 3 * number,
                name or "all placements",
                percent(part),
            )
        )
        at += part
    return fill(
        '<svg class="bar" role="img" aria-label="{} of the budget is spent"><rect width="100%" height="100%" '
        'class="rest"/>{}</svg>',
        percent(account.part),
        joined(result),
    )


def spent_of(account: Account) -> str:
    """Epsilon of epsilon, in words."""
    whole = account.budget.epsilon if account.budget else 0.0
    return f"ε {epsilon(account.spent)} of {epsilon(whole)}"


def timeline(view: PlacementView, now: float) -> Html:
    """Which item stood in which slot from menu to menu. What is shown now is coloured, also where it stood before."""
    moments = view.history[-MOST_MENUS:]
    step = 100 / len(moments)
    bars = []
    for slot in range(view.spec.slots):
        at = 0
        for item, run in groupby(moments, key=lambda one: one.slate[slot] if slot < len(one.slate) else -1):
            result = list(run)
            bars.append(_bar(view, item, result, slot, at * step, len(result) * step))
            at += len(result)
    slots = joined(fill("<li>{}</li>", slot + 1) for slot in range(view.spec.slots))
    first, last = moments[0], moments[-1]
    return fill(
        '<figure class="timeline"><ol aria-hidden="true">{}</ol><svg role="img" height="{}" aria-label="{}">{}</svg>'
        "<figcaption><span>menu {}, {}</span><span>menu {}, {}</span></figcaption></figure>",
        slots, view.spec.slots * ROW - GAP,
        f"Which item was in which of {view.spec.slots} slots over {count(len(moments), 'menu')}; "
        "what changed is listed below", joined(bars), first.version, when(first.effective_at, now), last.version,
        when(last.effective_at, now),
    )  # fmt: skip


def _bar(view: PlacementView, item: int, run: list[Moment], slot: int, left: float, wide: float) -> Html:
    name = view.named(item) if item >= 0 else "nothing"
    how = "stands" if run[-1] is view.history[-1] else "still" if item in view.slate else "past"
    words = Html("")
    if wide >= WIDE:
        kind = "" if wide >= VERY_WIDE else ' class="short"'
        words = fill('<text x="10" y="21"{}>{}</text>', Html(kind), name)
    versions = f"menu {run[0].version}" + (f" to {run[-1].version}" if len(run) > 1 else "")
    return fill(
        '<svg x="{:.3f}%" y="{}" width="{:.3f}%" height="{}" class="{}"><title>{}, slot {}, {}</title>'
        '<rect width="100%" height="100%" rx="5"/>{}</svg>',
        left, slot * ROW, wide, ROW - GAP, Html(how), name, slot + 1, versions, words,
    )  # fmt: skip


def dots(health: Sequence[Health], stopped: Collection[str] = ()) -> Html:
    """Trainers, store and front ends: who is well, in words beside a colour; and populations that were stopped."""
    trainers = [one for one in health if one.name.startswith("trainer")]
    fronts = [one for one in health if one.name.startswith("front")]
    result = [_dot("well", "Store", "reachable")]
    if len(trainers) > 1:
        result.insert(0, _several("Trainers", trainers))
    else:
        state, age = (trainers[0].state, trainers[0].age) if trainers else ("away", None)
        result.insert(0, _dot(state, "Trainer", "no heartbeat yet" if age is None else STATES[state]))
    if fronts:
        result.append(_several("Front ends", fronts))
    if held := [name for name in stopped if not is_closed(name)]:
        result.append(_dot("away", "Ledgers", f"{len(held)} stopped"))
    return fill('<ul class="health">{}</ul>', joined(result))


def _several(who: str, those: Sequence[Health]) -> Html:
    well = sum(one.state == "well" for one in those)
    state = "well" if well == len(those) else "late" if well else "away"
    return _dot(state, who, f"{well} of {len(those)} healthy")


def _dot(state: str, who: str, said: str) -> Html:
    return fill('<li class="{}"><b>{}</b> {}</li>', Html(state), who, said)


def points(identity: str, x: Sequence[float], y: Sequence[float], ceiling: float | None = None) -> Html:
    """Numbers for a chart that a script draws."""
    said = {"x": [round(one, 3) for one in x], "y": [float(f"{one:.6g}") for one in y], "ceiling": ceiling}
    return fill('<data id="{}" hidden value="{}"></data>', Html(identity), json.dumps(said))


def chart(identity: str, title: str) -> Html:
    """Where a script draws the numbers of that name."""
    return fill(
        '<figure class="chart"><figcaption>{}</figcaption>'
        '<div data-chart="{}" role="img" aria-label="{}" hx-morph-skip></div></figure>',
        title, Html(identity), title,
    )  # fmt: skip
