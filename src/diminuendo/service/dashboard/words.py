"""Numbers and times in words."""

from __future__ import annotations

from datetime import UTC, datetime

from diminuendo.privacy.sentence import upwards
from diminuendo.service.dashboard.html import Html, fill

UNITS = (("day", 86_400), ("hour", 3_600), ("min", 60), ("s", 1))


def span(seconds: float) -> str:
    """A length of time in one unit: 3 min, 2 hours."""
    for unit, size in UNITS:
        if seconds >= size or size == 1:
            many = int(seconds // size)
            return f"{many} {unit}{'s' if many != 1 and unit in ('day', 'hour') else ''}"
    raise AssertionError


def when(at: float, now: float) -> Html:
    """A time relative to now; the exact one is in the tooltip."""
    text = f"in {span(at - now)}" if at > now + 1 else "in a moment" if at > now else f"{span(now - at)} ago"
    moment = datetime.fromtimestamp(at, UTC)
    exact = f"{moment:%Y-%m-%d %H:%M:%S} UTC"
    return fill('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact, text)


def epsilon(value: float) -> str:
    """A privacy cost in a few digits, rounded upwards."""
    return upwards(value) if value else "0"


def percent(part: float) -> str:
    """A share; little is not rounded to nothing, nor nearly all to all."""
    if 0 < part < 0.01:
        return "under 1 %"
    return f"{min(99, round(100 * part)) if part < 1 else 100} %"


def count(many: int, what: str) -> str:
    """A number of things."""
    return f"{many:,} {what}{'' if many == 1 else 's'}"
