"""The overview pages: placements with what they show and cost, populations with their budgets."""

from __future__ import annotations

from diminuendo.service.dashboard import parts
from diminuendo.service.dashboard.accounts import Account
from diminuendo.service.dashboard.html import Html, fill, joined
from diminuendo.service.dashboard.views import PlacementView, Public
from diminuendo.service.dashboard.words import count, percent, span, when
from diminuendo.service.store.fencing import CLOSED, is_closed

FEEDBACK = {"full": "full feedback", "bandit": "rewards", "click": "clicks"}
NO_PLACEMENT = Html(
    '<section class="empty"><h2>No placement yet</h2><p>A placement is a place with a few slots that are filled for '
    "each visitor: a front page, a basket, a letter.</p></section>"
)
NO_POPULATION = Html(
    '<section class="empty"><h2>No population yet</h2><p>Users who share a privacy budget form a population.</p>'
    "</section>"
)


def overview(public: Public) -> Html:
    """All placements."""
    state = public.state()
    views = state.placements
    accounts = {name: public.account(name) for name in {view.row.population for view in views}}
    total = sum(view.impressions for view in views)
    cards = joined(_card(view, accounts[view.row.population], state.now) for view in views)
    return parts.page(
        "Placements",
        f"{count(total, 'impression')} in {count(len(views), 'placement')}",
        state,
        fill('<div class="cards">{}</div>', cards) if views else NO_PLACEMENT,
    )


def populations(public: Public) -> Html:
    """All populations, with what is spent of each."""
    state, cards = public.state(), []
    for name in public.populations():
        account = public.account(name)
        mine = [view.row.name for view in state.placements if view.row.population == name]
        cards.append(
            fill(
                '<article class="card"><header><h2>{}</h2><p class="soft">{}</p></header>{}<p class="under">'
                "<span>{}</span><span>{} left</span></p></article>",
                parts.link("populations", name),
                joined((parts.link("placements", each) for each in mine), ", ") or "no placement yet",
                parts.budget_bar(account),
                parts.spent_of(account),
                percent(1 - account.part),
            )
        )
    return parts.page(
        "Populations",
        "Users who share one privacy budget, and its ledger",
        state,
        fill('<div class="cards">{}</div>', joined(cards)) if cards else NO_POPULATION,
    )


def now_shown(view: PlacementView) -> Html:
    """What is shown now."""
    menu = view.menu
    if is_closed(view.row.name):
        return fill(
            '<p class="none">Closed: the store was restored from a copy. Count its whole budget as spent. {} replaces '
            "it.</p>",
            view.row.name.partition(CLOSED)[0],
        )
    if view.stopped or view.failed:
        warning = Html(
            '<p class="warning">The store was rolled back: releases have stopped. The page of the population says what '
            "to do. Decisions continue.</p>"
            if view.stopped
            else '<p class="warning">The trainer failed here and retries. Decisions continue.</p>'
        )
        return warning if menu is None else joined([warning, parts.slate(view, view.slate)])
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
        note = f"In {percent(first)} of impressions; {count(len(view.shares) - 1, 'other slate')} alternate."
    elif len(view.segments) > 1:
        note = f"Leading slate; {count(len(view.segments), 'segment')} with slates of their own."
    return joined(
        [parts.slate(view, view.slate), fill('<p class="soft note">{}</p>', note) if note else Html("")]
    )


def _card(view: PlacementView, account: Account, now: float) -> Html:
    since, menu = view.shown_since, view.menu
    facts = [("Impressions", fill("{:,}", view.impressions))]
    if since is not None and menu is not None and menu.kind != "random":
        shown = max(0, view.impressions - since.first)
        facts += [
            (
                "Shown for",
                fill("{}<small>{}</small>", span(now - since.effective_at), count(shown, "impression")),
            ),
            ("Menu", fill("{}<small>{}</small>", menu.version, when(view.history[-1].effective_at, now))),
        ]
    if menu is not None and menu.signal:
        facts.append(("Signal", fill("{}", menu.signal)))
    return fill(
        '<article class="card"><header><h2>{}</h2><p class="soft">{}, {}</p></header>{}<dl class="facts">{}</dl>'
        '<div class="foot">{}<p class="under"><span>{} spent</span><span>{}</span></p></div></article>',
        parts.link("placements", view.row.name), parts.link("populations", view.row.population),
        FEEDBACK[view.spec.feedback], now_shown(view),
        joined(fill("<div><dt>{}</dt><dd>{}</dd></div>", *fact) for fact in facts),
        parts.budget_bar(account, view.row.name), parts.spent_of(account),
        f"{percent(account.part_of(view.row.name))} of the budget here",
    )  # fmt: skip
