"""Pages: what stands between markers is rendered from what is kept, and never typed by hand.

    <!-- measured: NAME -->
    the table
    <!-- end -->

A marker may also stand within a sentence.
"""

from __future__ import annotations

import re
from pathlib import Path

from measurements.results import ROOT, Results
from measurements.tables import BLOCKS

MARKED = re.compile(r"(<!-- measured: ([a-z-]+) -->)(.*?)(<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    """All pages of the repository that users read."""
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def rendered(text: str, results: Results) -> str:
    """The page with what is kept between its markers; a block whose entries were never measured is left as it is."""

    def one(found: re.Match[str]) -> str:
        begin, name, old, end = found.groups()
        block = BLOCKS[name]
        new = block.render(results) if all(entry in results for entry in block.entries) else old
        return f"{begin}{new}{end}"

    return MARKED.sub(one, text)


def write_pages(results: Results) -> list[Path]:
    """Write pages that say something else than what is kept, and tell which."""
    changed = []
    for page in pages():
        text = page.read_text()
        if (new := rendered(text, results)) != text:
            page.write_text(new)
            changed.append(page)
    return changed
