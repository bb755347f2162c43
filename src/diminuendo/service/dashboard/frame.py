"""The frame of every page: header, navigation, the part that is refreshed; and the login page."""

from __future__ import annotations

from diminuendo.service.dashboard.html import Html, fill, joined

EVERY = "2s"
"""How often pages refresh."""
MARK = Html(
    '<svg class="mark" viewBox="0 0 30 14" aria-hidden="true"><path d="M1 1 29 7 1 13" fill="none" '
    'stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/></svg>'
)
"""The sign for diminuendo, as in a score."""
PAGES = (("/", "Placements"), ("/populations", "Populations"))


def page(
    title: str, body: Html, *, path: str, version: str, live: bool = True, signed_in: bool = True
) -> Html:
    """A whole page; if `live`, its body refreshes every few seconds."""
    here = "/" + path.strip("/").split("/")[0].replace("placements", "")
    nav = joined(
        fill('<a href="{}"{}>{}</a>', Html(to), Html(' aria-current="page"' if to == here else ""), name)
        for to, name in PAGES
    )
    bar = fill(
        '<nav aria-label="Pages">{}</nav><div class="tools">{}<form method="post" action="/logout"><button '
        'class="quiet">Sign out</button></form></div>',
        nav,
        Html('<button class="quiet" id="pause" aria-pressed="false">Pause</button>' if live else ""),
    )
    attributes = fill(
        ' hx-get="{}" hx-trigger="every {}" hx-swap="innerMorph" aria-live="off"', path, Html(EVERY)
    )
    return fill(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title} · diminuendo</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        '<meta name="htmx-config" content="{config}">'
        '<link rel="icon" href="/static/mark.svg?{v}">'
        '<link rel="stylesheet" href="/static/dashboard.css?{v}">'
        '<script src="/static/htmx.min.js?{v}" defer></script><script src="/static/uplot.min.js?{v}" defer></script>'
        '<script src="/static/dashboard.js?{v}" defer></script></head><body>'
        '<a class="skip" href="#main">Skip to content</a>'
        '<header class="top"><div><a class="brand" href="/">{mark}<span>diminuendo</span></a>{bar}</div></header>'
        '<p class="lost" role="status">No connection: this is the last known state.</p>'
        '<main id="main" tabindex="-1"{live}>{body}</main></body></html>',
        title=title,
        config='{"history":false,"includeIndicatorCSS":false,"noSwap":[204,304,"4xx","5xx"]}',
        v=Html(version),
        mark=MARK,
        bar=bar if signed_in else Html(""),
        live=attributes if live else Html(""),
        body=body,
    )


def login(wrong: bool) -> Html:
    """The login page."""
    return fill(
        '<section class="login"><h1>Sign in</h1><p class="soft">With a key of the role <i>admin</i> or <i>auditor</i>. '
        "This dashboard shows released values only, never the feedback of a user.</p>"
        '<form method="post" action="/login"><input hidden name="user" '
        'autocomplete="username" value="dashboard"><label for="key">Key</label>'
        '<input id="key" name="key" type="password" '
        'autocomplete="current-password" required autofocus{}>{}<button>Sign in</button></form></section>',
        Html(' aria-invalid="true" aria-describedby="wrong"' if wrong else ""),
        Html('<p id="wrong" class="wrong" role="alert">This key has no such role.</p>' if wrong else ""),
    )


def trouble(title: str, text: str) -> Html:
    """A page that says why something cannot be shown."""
    return fill(
        '<section class="empty"><h1>{}</h1><p>{}</p><p><a href="/">All placements</a></p></section>',
        title,
        text,
    )
