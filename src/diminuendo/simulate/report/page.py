"""The page around the sections: one HTML file that needs no other and asks nothing of the network.

Whatever comes from data (names of streams, items, learners) goes through `text`, so that it stays text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from string import Template

LOST = "\N{REPLACEMENT CHARACTER}"

SHELL = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="generator" content="diminuendo $version">
<title>$title</title>
<style>
$style
</style>
</head>
<body>
<main>
$body
</main>
</body>
</html>
""")


def page(title: str, body: str, version: str) -> str:
    """The whole file."""
    style = resources.files("diminuendo.simulate.report").joinpath("page.css").read_text(encoding="utf-8")
    return SHELL.substitute(title=text(title), body=body, version=text(version), style=style.strip())


def text(value: object) -> str:
    """Anything as text that stays text, also where a name holds tags, quotes, or signs that no page may hold."""
    return escape("".join(LOST if _unwanted(sign) else sign for sign in str(value)), quote=True)


def _unwanted(sign: str) -> bool:
    """Control signs, and halves of signs."""
    return unicodedata.category(sign) in ("Cc", "Cs") and sign not in "\n\t"


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Numbers in a box that scrolls by itself on narrow screens. The first column says whose they are."""
    head = "".join(f'<th scope="col">{text(column)}</th>' for column in columns)
    lines = []
    for first, *others in rows:
        cells = "".join(f"<td>{text(cell)}</td>" for cell in others)
        lines.append(f'<tr><th scope="row">{text(first)}</th>{cells}</tr>')
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(caption)}"><table>'
        f"<caption>{text(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )
