"""Pseudocode of the maths names what runs: every file beside it exists, and has the functions that are named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.kit.pages import blocks

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "diminuendo"
PAGES = {
    "overlap": ("learners/overlap",),
    "contexts": ("learners/overlap/contexts",),
    "counts": ("learners/slates",),
    "contexts-counts": ("learners/slates/contexts", "learners/slates"),
}
"""Pages that begin with pseudocode, and below which folders its files are where nothing else is said."""
BESIDE = re.compile(r"(?P<files>[\w/]+\.py(?:, [\w/]+\.py)*)(?:\s{2,}(?P<names>[\w.]+(?:, [\w.]+)*))?$")


def missing(line: str, folders: tuple[str, ...]) -> list[str]:
    """What a line of pseudocode names on its right, and is not there."""
    result = BESIDE.search(line)
    if result is None:
        return []
    absent = []
    for file in result["files"].split(", "):
        places = [PACKAGE / folder / file for folder in (*folders, ".")]
        path = next((place for place in places if place.exists()), None)
        if path is None:
            absent.append(file)
            continue
        text = path.read_text()
        for name in (result["names"] or "").split(", "):
            absent += [
                f"{file}: {part}"
                for part in name.split(".")
                if part and not re.search(rf"^\s*(def|class) {part}\b", text, flags=re.M)
            ]
    return absent


@pytest.mark.parametrize("page", PAGES)
def test_what_stands_beside_pseudocode_runs(page: str) -> None:
    texts = [
        block.text for block in blocks(ROOT / "docs" / "maths" / f"{page}.md") if block.language == "text"
    ]
    lines = [line for text in texts for line in text.splitlines()]
    assert sum(bool(BESIDE.search(line)) for line in lines) > 8
    assert [gone for line in lines for gone in missing(line, PAGES[page])] == []


@pytest.mark.parametrize(
    ("line", "gone"),
    [
        ("  pick one    pick.py   SlatePicker.slate", []),
        ("  pick one    pick.py   SlatePicker.slates", ["pick.py: slates"]),
        ("  pick one    picks.py  SlatePicker.slate", ["picks.py"]),
        ("  release     sums/greedy_queries/release.py  GreedyRelease", []),
        ("  nothing is named here", []),
    ],
)
def test_what_is_gone_is_noticed(line: str, gone: list[str]) -> None:
    assert missing(line, PAGES["overlap"]) == gone
