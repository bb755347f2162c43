"""The glossary names what is there, and CONTRIBUTING's words are the glossary's."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
ROWS = re.findall(
    r"^\| ([a-z ]+) \|[^|]*\| `([\w.]+)` \|", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE
)
WORDS = [word for word, _ in ROWS]


def found(path: str) -> bool:
    """Whether a dotted path below `diminuendo` leads to a module, a name in it, or a field of a class in it."""
    module, names = "diminuendo", path.split(".")
    while names:
        try:
            module = importlib.import_module(f"{module}.{names[0]}").__name__
            names = names[1:]
        except ModuleNotFoundError:
            break
    thing: Any = importlib.import_module(module)
    for name in names:
        if not hasattr(thing, name) and name not in getattr(thing, "__annotations__", {}):
            return False
        thing = getattr(thing, name, None)
    return True


@pytest.mark.parametrize(("word", "path"), ROWS)
def test_what_the_glossary_names_is_there(word: str, path: str) -> None:
    assert found(path)


def test_what_is_not_there_is_noticed() -> None:
    assert not found("types.Purse")
    assert not found("learners.base.nowhere")


def test_each_word_stands_there_once() -> None:
    assert len(ROWS) >= 40
    assert len(set(WORDS)) == len(WORDS)


def test_contributing_lists_the_same_words() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    listed = text[text.index("## Words") :].split("\n\n")[1]
    names = listed.split(":", 1)[1].split(".", 1)[0].replace("\n", " ")
    assert [name.strip() for name in names.split(",")] == WORDS


METAPHORS = (
    "purse", "handful", "desk", "custody", "attic", "drawer", "shelf", "keeper", "overheard", "teller", "urn", "urns",
    "nameless file", "open twin", "foretell", "so many", "quota", "deal of before",
)  # fmt: skip
"""Words that hid what plain words say."""


def test_metaphors_stay_out_of_the_code() -> None:
    """In names and docstrings; what people read on a screen or in a figure may say what it likes."""
    word = re.compile(r"(?<![a-z])(" + "|".join(METAPHORS) + r")(?![a-z])", re.IGNORECASE)
    assert word.search("def purse_of(handful):")
    assert not word.search("return returns, dashboard")
    found = [
        f"{path.name}: {said.group(0)}"
        for path in (ROOT / "src").rglob("*.py")
        if path.parts[-2] not in ("cli", "figures", "plan")
        and path.name not in ("recommend.py", "problems.py")
        for said in word.finditer(path.read_text())
    ]
    assert not found
