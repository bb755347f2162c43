"""The page of a placement: slates now, over time and by segment; guarantee, releases, changes, specification."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from diminuendo.privacy.sentence import guarantee_sentence
from diminuendo.service.dashboard import parts
from diminuendo.service.dashboard.accounts import Account
from diminuendo.service.dashboard.html import Html, fill, joined, table
from diminuendo.service.dashboard.overview import FEEDBACK, now_shown
from diminuendo.service.dashboard.views import Change, PlacementView, Public, abbreviated
from diminuendo.service.dashboard.words import count, epsilon, percent, span, when
from diminuendo.service.records import read

MOST, FEW, MOST_POINTS = 12, 4, 200
"""Rows of tables, contexts of a segment, points of charts."""
NO_SIGNAL = (
    "Published rewards are consistent with no feedback in time. Check that feedback is sent, and that it arrives "
    "within the deadline. Where very few users click, a healthy run can look like this for a short time."
)


def placement(public: Public, name: str) -> Html | None:
    """The whole page; None if there is no such placement."""
    state = public.state(name)
    if not state.placements:
        return None
    (view,), now = state.placements, state.now
    account = public.account(view.row.population)
    items = len(view.spec.items) - len(view.retired)
    sections = [
        _section("now", "Shown now", _now(view, now)),
        _section("time", "Over time", _over_time(view, now)),
        _section("segments", "By segment", _segments(view)) if view.spec.contexts else Html(""),
        _section("promise", "Guarantee", _promise(view)),
        _section("published", "Releases", _published(public, view, account)),
        _section("catalogue", "Changes", _events(view, now)),
        _section("spec", "Specification", _specification(view, now)),
    ]
    subtitle = f"{count(view.spec.slots, 'slot')} of {count(items, 'item')}, {FEEDBACK[view.spec.feedback]}"
    crumb = parts.link("populations", view.row.population)
    return parts.page(view.row.name, subtitle, state, joined(sections), crumb)


def _section(identity: str, title: str, body: Html) -> Html:
    return fill(
        '<section aria-labelledby="{0}"><h2 id="{0}">{1}</h2>{2}</section>', Html(identity), title, body
    )


def _now(view: PlacementView, now: float) -> Html:
    since = view.shown_since
    at, why = view.next_menu(now)
    facts: list[tuple[str, object, object]] = [("Impressions", f"{view.impressions:,}", "assigned so far")]
    if since is not None and view.menu is not None and view.menu.kind != "random":
        facts += [
            (
                "Shown for",
                span(now - since.effective_at),
                count(max(0, view.impressions - since.first), "impression"),
            ),
            ("Menu", view.menu.version, fill("{}", when(view.history[-1].effective_at, now))),
        ]
    coming = when(at, now) if at is not None else _not_yet(view)
    facts.append(("Next menu", coming, why))
    if (noisy := view.responses) is not None:
        of = f"of the first {noisy.rounds:,} impressions, ± {2 * noisy.deviation:,.0f}"
        facts.append(("Responses, noisy", f"{max(0.0, noisy.answers):,.0f}", of))
    if view.menu is not None and view.menu.signal:
        facts.append(
            (
                "Signal",
                view.menu.signal,
                NO_SIGNAL if view.menu.signal == "no signal" else "from published rewards",
            )
        )
    numbers = joined(fill("<div><dt>{}</dt><dd>{}<small>{}</small></dd></div>", *fact) for fact in facts)
    shares = table(
        "Slates that alternate in this block",
        ("Slate", "Share of impressions"),
        [
            (abbreviated([view.named(item) for item in row], 9), percent(share))
            for row, share in view.shares[:MOST]
        ],
    )
    return fill('<div class="now"><div>{}</div><dl class="facts tall">{}</dl></div>{}', now_shown(view), numbers,
                shares if len(view.shares) > 1 else Html(""))  # fmt: skip


def _not_yet(view: PlacementView) -> str:
    """When the next menu comes, if its time is not known."""
    if view.over:
        return "at the end"
    return f"after {view.to_go:,}" if view.to_go else "not announced"


def _over_time(view: PlacementView, now: float) -> Html:
    if len(view.history) < 2:
        return Html('<p class="none">This chart starts with the second menu.</p>')
    known = {(moment.effective_at, moment.first) for moment in view.history} | set(view.points)
    points = [*sorted(known)[:: 1 + len(known) // MOST_POINTS], (now, view.impressions)]
    changes = joined(_change(view, change, now) for change in view.changes[:MOST])
    unchanged = fill(
        '<p class="soft">All {} have the same leading slate.</p>', count(len(view.history), "menu")
    )
    return joined(
        [
            parts.timeline(view, now),
            fill('<ol class="changes" reversed>{}</ol>', changes) if changes else unchanged,
            parts.chart("impressions", "Impressions so far"),
            parts.points(
                "impressions", [at for at, _ in points], list(accumulate((many for _, many in points), max))
            ),
        ]
    )


def _change(view: PlacementView, change: Change, now: float) -> Html:
    moves = [
        fill('<span class="{}">{} {}</span>', Html(kind), word, parts.names(view, items))
        for kind, word, items in (
            ("added", "in", change.added),
            ("removed", "out", change.removed),
            ("moved", "moved", change.moved),
        )
        if items and not (kind == "moved" and change.added)
    ]
    at = change.moment
    return fill(
        "<li><span>menu {}, {}</span>{}</li>", at.version, when(at.effective_at, now), joined(moves, " ")
    )


def _segments(view: PlacementView) -> Html:
    if not view.segments:
        return Html('<p class="none">One slate for all users so far.</p>')
    if len(view.segments) == 1:
        return Html('<p class="none">All contexts have the same slate.</p>')
    rows = [
        (
            _contexts(one.contexts),
            parts.slate(view, one.slate, one.own),
            parts.names(view, one.own) or Html("nothing"),
        )
        for one in view.segments[:50]
    ]
    return table(
        "Contexts with the same slate form one segment", ("Contexts", "Slate", "Differs in"), rows, words=3
    )


def _contexts(names: Sequence[str]) -> Html:
    more = [fill('<span class="soft">and {} more</span>', len(names) - FEW)] if len(names) > FEW else []
    return fill(
        '<div class="types">{}</div>', joined([*(fill("<span>{}</span>", one) for one in names[:FEW]), *more])
    )


def _promise(view: PlacementView) -> Html:
    if view.menu is None:
        return Html('<p class="none">The guarantee is published with the first menu.</p>')
    sentence = guarantee_sentence(view.menu.guarantee, max_rounds_per_user=view.spec.max_rounds_per_user)
    return fill(
        '<blockquote><p id="sentence">{}</p></blockquote><button data-copy="sentence">Copy the guarantee</button>',
        sentence,
    )


def _published(public: Public, view: PlacementView, account: Account) -> Html:
    rows: list[tuple[object, ...]] = []
    for release, charge in account.releases(view.row.name):
        if len(rows) == MOST:
            break
        size = public.size_of(view.row.population, release.release)
        noise = "" if charge.noise is None else f"{charge.noise:,.3g}"
        rows.append((release.name, charge.about, release.number, "" if size is None else f"{size:,}", noise))
    if not rows:
        end = view.menu.end if view.menu is not None else None
        after = f"about {end:,} users" if end else "the first batch of users"
        return fill('<p class="none">No release yet: the first comes after {}.</p>', after)
    shown = table(
        "Newest releases first",
        ("Release", "Query", "Ledger entry", "Values", "Noise, in users"),
        rows,
        words=2,
    )
    total = sum(1 for _ in account.releases(view.row.name))
    return fill(
        '{}<p class="soft">{} in all. Noise: a lower bound on its standard deviation, in units of the largest '
        "contribution of one user. Ledger entry: see {}.</p>",
        shown, count(total, "release"), parts.link("populations", view.row.population, "the ledger", "#ledger"),
    )  # fmt: skip


def _events(view: PlacementView, now: float) -> Html:
    events: list[tuple[float, tuple[object, ...]]] = [
        (event.at, (event.kind, _details(read(dict[str, Any], event.body) or {}), event.by))
        for event in view.events
    ]
    events += [
        (
            one.effective_at,
            ("drift", f"data before impression {one.remembers_from:,} is no longer used", "learner"),
        )
        for one in view.drifts
    ]
    if not events:
        return Html('<p class="none">No item was added or retired, and no drift was detected.</p>')
    newest = sorted(events, key=lambda one: one[0])[::-1][:MOST]
    rows = [(when(at, now), *rest) for at, rest in newest]
    return table("Newest first", ("Time", "Event", "Details", "By"), rows, words=4)


def _specification(view: PlacementView, now: float) -> Html:
    spec = view.spec
    limit = "" if spec.users is None else f", for {count(spec.users, 'user')}"
    limit += f", learns from a public sample of one in {spec.sample:,}" if spec.sample > 1 else ""
    limit += f", retention of {spec.retention:,} impressions" if spec.retention is not None else ""
    rows: list[tuple[str, object]] = [
        ("Created", fill("{}{}", when(view.row.made_at, now), limit)),
        (
            "Learner",
            f"{spec.learner}, {spec.objective if spec.feedback == 'full' else FEEDBACK[spec.feedback]}",
        ),
        (
            "Budget",
            f"ε {epsilon(spec.epsilon)} at δ {epsilon(spec.delta)}; at most "
            f"{count(spec.max_rounds_per_user, 'impression')} per user",
        ),
        ("Feedback deadline", span(spec.deadline)),
        (
            "Publication",
            f"every {spec.publish_interval:g} s at most, "
            f"{spec.publish_delay:g} s or more after the impressions of a menu are closed",
        ),
        (
            "Contexts",
            ", ".join(f"{name} ({len(values)} categories)" for name, values in spec.contexts.items())
            or "none",
        ),
        ("Retired", ", ".join(sorted(view.retired)) or "none"),
        ("Rules", "; ".join(_rules(view)) or "none"),
    ]
    return fill('<dl class="plain">{}</dl>', joined(fill("<dt>{}</dt><dd>{}</dd>", *row) for row in rows))


def _rules(view: PlacementView) -> list[str]:
    spec = view.spec
    result = [f"slot {slot + 1} always shows {name}" for slot, name in spec.pinned.items()]
    result += [f"at most {most} of {abbreviated(names)}" for names, most in spec.caps]
    return result + (["users may exclude items"] if spec.exclusions else [])


def _details(body: Any) -> Html:
    """The fields of an event."""
    if not isinstance(body, dict):
        return fill("{}", body)
    return joined(
        (
            fill("{} <b>{}</b>", key, ", ".join(map(str, value)) if isinstance(value, list) else value)
            for key, value in body.items()
            if value
        ),
        "; ",
    )
