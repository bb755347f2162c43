"""The overview: every placement with what it shows now and what that has cost."""

from __future__ import annotations

from diminuendo.service.dashboard import parts
from diminuendo.service.dashboard.html import Html, fill, joined
from diminuendo.service.dashboard.words import count, percent, span, when
from diminuendo.service.public import PlacementView, Public
from diminuendo.service.store.fencing import CLOSED, is_closed

FEEDBACK = {"full": "full feedback", "bandit": "rewards", "click": "clicks"}
NOTHING = Html(
    '<section class="empty"><h2>No placement yet</h2><p>A placement is a place with a few slots that are filled for '
    "each visitor: a front page, a basket, a letter.</p></section>"
)


def overview(public: Public) -> Html:
    """All placements."""
    views, now = public.placements(), public.now()
    rounds = sum(view.rounds for view in views)
    said = f"{count(rounds, 'decision')} in {count(len(views), 'placement')}"
    cards = joined(_card(public, view, now) for view in views)
    return fill(
        '<header class="head"><div><h1>Placements</h1><p class="soft">{}</p></div>{}</header>{}',
        said,
        parts.dots(public.health(), public.stopped()),
        fill('<div class="cards">{}</div>', cards) if views else NOTHING,
    )


def populations(public: Public) -> Html:
    """All populations, with what is spent of each."""
    placed = public.placements()
    cards = []
    for name in public.populations():
        account = public.account(name)
        mine = [view for view in placed if view.row.population == name]
        where = joined((parts.link("placements", view.row.name) for view in mine), ", ")
        cards.append(
            fill(
                '<article class="card"><header><h2>{}</h2><p class="soft">{}</p></header>{}<p class="under">'
                "<span>{}</span><span>{} left</span></p></article>",
                parts.link("populations", name),
                where or "no placement yet",
                parts.budget_bar(account),
                parts.spent_of(account),
                percent(1 - account.part),
            )
        )
    body = fill('<div class="cards">{}</div>', joined(cards))
    empty = Html(
        '<section class="empty"><h2>No population yet</h2><p>Users who share a privacy budget form a population.</p>'
        "</section>"
    )
    return fill(
        '<header class="head"><div><h1>Populations</h1><p class="soft">Users who share one privacy budget, and '
        "its ledger</p></div>{}</header>{}",
        parts.dots(public.health(), public.stopped()),
        body if cards else empty,
    )


def now_shown(view: PlacementView) -> Html:
    """What is shown now, in a few words where it is no single slate."""
    menu = view.menu
    if is_closed(view.row.name):
        return fill(
            '<p class="none">Closed: the store was restored from a copy. Count its whole budget as spent. {} replaces '
            "it.</p>",
            view.row.name.partition(CLOSED)[0],
        )
    if view.stopped or view.waits:
        delay = Html(
            '<p class="warning">The store was rolled back: releases have stopped. The page of the population says what '
            "to do. Decisions continue.</p>"
            if view.stopped
            else '<p class="warning">The trainer failed here and retries. Decisions continue.</p>'
        )
        return delay if menu is None else joined([delay, parts.slate(view, view.slate)])
    if menu is None:
        return Html('<p class="none">No menu yet: the trainer is creating the learner.</p>')
    if menu.kind == "random":
        users = f"about {menu.end:,} users" if menu.end else "the first users"
        return fill(
            '<p class="none">Random slates of {} items. No release yet: the first comes after {}.</p>',
            f"{len(view.spec.items):,}",
            users,
        )
    note = ""
    if len(view.shares) > 1:
        first = next((share for row, share in view.shares if row == view.slate), 0.0)
        note = f"In {percent(first)} of rounds; {count(len(view.shares) - 1, 'other slate')} alternate."
    elif len(view.segments) > 1:
        note = f"Leading slate; {count(len(view.segments), 'segment')} with slates of their own."
    return joined(
        [parts.slate(view, view.slate), fill('<p class="soft note">{}</p>', note) if note else Html("")]
    )


def _card(public: Public, view: PlacementView, now: float) -> Html:
    account, since = public.account(view.row.population), view.shown_since
    spec = [("Decisions", fill("{:,}", view.rounds))]
    if since is not None and view.menu is not None and view.menu.kind != "random":
        shown = max(0, view.rounds - since.first)
        spec += [
            ("Shown for", fill("{:,}<small>rounds, {}</small>", shown, span(now - since.effective_at))),
            (
                "Menu",
                fill("{}<small>{}</small>", view.menu.version, when(view.history[-1].effective_at, now)),
            ),
        ]
    if view.menu is not None and view.menu.signal:
        spec.append(("Signal", fill("{}", view.menu.signal)))
    return fill(
        '<article class="card"><header><h2>{}</h2><p class="soft">{}, {}</p></header>{}<dl class="facts">{}</dl>'
        '<div class="foot">{}<p class="under"><span>{} spent</span><span>{}</span></p></div></article>',
        parts.link("placements", view.row.name), parts.link("populations", view.row.population),
        FEEDBACK[view.spec.feedback], now_shown(view),
        joined(fill("<div><dt>{}</dt><dd>{}</dd></div>", name, value) for name, value in spec),
        parts.budget_bar(account, view.row.name), parts.spent_of(account),
        f"{percent(account.part_of(view.row.name))} of the budget here",
    )  # fmt: skip
