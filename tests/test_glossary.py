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
