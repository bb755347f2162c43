"""Parts of pages: slates, bars, the timeline of slates, the health of processes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from urllib.parse import quote

from diminuendo.service.dashboard.accounts import Account
from diminuendo.service.dashboard.html import Html, fill, joined
from diminuendo.service.dashboard.views import Health, Moment, PlacementView, Slate, State
from diminuendo.service.dashboard.words import count, epsilon, percent, when
from diminuendo.service.store.fencing import is_closed

ROW, GAP = 38, 6
MOST_MENUS = 60
"""Menus in the timeline, at most; the last ones."""
WIDE, VERY_WIDE = 9.0, 24.0
"""Percent of the timeline from which a name is written into its bar: on a large screen, on a phone."""

STATES = {"healthy": "healthy", "late": "late", "away": "no heartbeat"}
"""The state of a process, in words."""


def page(title: str, subtitle: object, state: State, body: Html, crumb: Html | None = None) -> Html:
    """A page with its header."""
    return fill(
        '<header class="head"><div>{}<h1>{}</h1><p class="soft">{}</p></div>{}</header>{}',
        "" if crumb is None else fill('<p class="crumb">{}</p>', crumb),
        title,
        subtitle,
        _health(state),
        body,
    )


def link(kind: str, name: str, words: str = "", place: str = "") -> Html:
    """A link to the page of a placement or a population, or to a section of it."""
    return fill('<a href="/{}/{}{}">{}</a>', Html(kind), quote(name, safe=""), Html(place), words or name)


def slate(view: PlacementView, row: Slate, marked: Sequence[int] = ()) -> Html:
    """The items of a slate by slot; `marked` ones are highlighted."""
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
    """Names of items, in one line."""
    return joined((fill("<b>{}</b>", view.named(item)) for item in items), ", ")


def budget_bar(account: Account, mine: str = "") -> Html:
    """The spent part of a budget, by placement, or one placement before the others."""
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
    """The spent epsilon, of the budget's."""
    whole = account.budget.epsilon if account.budget else 0.0
    return f"ε {epsilon(account.spent)} of {epsilon(whole)}"


def timeline(view: PlacementView, now: float) -> Html:
    """Which item was in which slot, menu by menu. Items that are shown now are coloured."""
    moments = view.history[-MOST_MENUS:]
    step = 100 / len(moments)
    bars = []
    for slot in range(view.spec.slots):
        at = 0
        for item, run in groupby(moments, key=lambda one: one.slate[slot] if slot < len(one.slate) else -1):
            menus = list(run)
            bars.append(_bar(view, item, menus, slot, at * step, len(menus) * step))
            at += len(menus)
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


def _health(state: State) -> Html:
    """Trainers, store and front ends, and how many populations have stopped."""
    trainers = [one for one in state.health if one.name.startswith("trainer")]
    fronts = [one for one in state.health if one.name.startswith("front")]
    if len(trainers) > 1:
        result = [_several("Trainers", trainers)]
    else:
        of_it, age = (trainers[0].state, trainers[0].age) if trainers else ("away", None)
        result = [_dot(of_it, "Trainer", "no heartbeat yet" if age is None else STATES[of_it])]
    result.append(_dot("healthy", "Store", "reachable"))
    if fronts:
        result.append(_several("Front ends", fronts))
    if held := [name for name in state.stopped if not is_closed(name)]:
        result.append(_dot("away", "Ledgers", f"{len(held)} stopped"))
    return fill('<ul class="health">{}</ul>', joined(result))


def _several(who: str, those: Sequence[Health]) -> Html:
    healthy = sum(one.state == "healthy" for one in those)
    state = "healthy" if healthy == len(those) else "late" if healthy else "away"
    return _dot(state, who, f"{healthy} of {len(those)} healthy")


def _dot(state: str, who: str, text: str) -> Html:
    return fill('<li class="{}"><b>{}</b> {}</li>', Html(state), who, text)


def points(identity: str, x: Sequence[float], y: Sequence[float], ceiling: float | None = None) -> Html:
    """The numbers of a chart that a script draws."""
    data = {"x": [round(one, 3) for one in x], "y": [float(f"{one:.6g}") for one in y], "ceiling": ceiling}
    return fill('<data id="{}" hidden value="{}"></data>', Html(identity), json.dumps(data))


def chart(identity: str, title: str) -> Html:
    """The place where a script draws the numbers of that name."""
    return fill(
        '<figure class="chart"><figcaption>{}</figcaption>'
        '<div data-chart="{}" role="img" aria-label="{}" hx-morph-skip></div></figure>',
        title, Html(identity), title,
    )  # fmt: skip
