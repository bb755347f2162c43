"""HTML templates that escape what is filled in."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

LOST = "\N{REPLACEMENT CHARACTER}"
TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters that change the text direction: a name with one could rewrite the text beside it."""


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


class _Filling(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        return value if isinstance(value, Html) else escaped(format(value, format_spec))


def escaped(value: object) -> str:
    """Escaped text, without control characters."""
    signs = (LOST if unicodedata.category(s) in ("Cc", "Cs") or s in TURNING else s for s in str(value))
    return escape("".join(signs), quote=True)


def fill(template: str, /, *parts: object, **values: object) -> Html:
    """A template with values filled in; values that are not Html are escaped."""
    return Html(_Filling().vformat(template, parts, values))


def joined(parts: Iterable[Html], between: str = "") -> Html:
    """Concatenated pieces."""
    return Html(between.join(parts))


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]], words: int = 1) -> Html:
    """A table in a box that scrolls; the first `words` columns hold words, the others numbers."""
    kind = ["" if number < words else ' class="n"' for number in range(len(columns))]
    head = joined(fill('<th scope="col"{}>{}</th>', Html(k), c) for k, c in zip(kind, columns, strict=True))
    body = joined(
        fill(
            '<tr><th scope="row">{}</th>{}</tr>',
            first,
            joined(fill("<td{}>{}</td>", Html(k), c) for k, c in zip(kind[1:], others, strict=True)),
        )
        for first, *others in rows
    )
    return fill(
        '<div class="scroll" tabindex="0" role="region" aria-label="{0}"><table><caption>{0}</caption>'
        "<thead><tr>{1}</tr></thead><tbody>{2}</tbody></table></div>",
        caption,
        head,
        body,
    )
