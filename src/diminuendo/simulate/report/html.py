"""Text and tables as HTML in which whatever comes from data stays text."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from html import escape

LOST = "\N{REPLACEMENT CHARACTER}"


def escaped(value: object) -> str:
    """Anything as text that stays text, also where a name holds tags, quotes, or signs that no page may hold."""
    return escape("".join(LOST if _unwanted(sign) else sign for sign in str(value)), quote=True)


def _unwanted(sign: str) -> bool:
    """Control signs, and halves of signs."""
    return unicodedata.category(sign) in ("Cc", "Cs") and sign not in "\n\t"


def table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], words: Sequence[int] = ()
) -> str:
    """Numbers in a box that scrolls by itself on narrow screens. The first column says whose they are.

    `words`: columns that hold words instead of numbers.
    """
    kind = [' class="word"' if number in words else "" for number in range(len(columns))]
    head = "".join(
        f'<th scope="col"{how}>{escaped(column)}</th>' for column, how in zip(columns, kind, strict=True)
    )
    lines = []
    for first, *others in rows:
        cells = "".join(f"<td{how}>{escaped(cell)}</td>" for cell, how in zip(others, kind[1:], strict=True))
        lines.append(f'<tr><th scope="row">{escaped(first)}</th>{cells}</tr>')
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(caption)}"><table>'
        f"<caption>{escaped(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )
