"""Docstrings as pages: what is laid out for a terminal is laid out for a browser.

Docstrings of public names are numpydoc, whose sections mkdocstrings lays out. Before the first section, and in
docstrings of modules, there is prose with blocks: examples that begin with `>>>`, and terms with their text beside them
(`Guarantee  every release is ...`). Both would run together as Markdown, so they become fenced code and definition
lists. Names of documents become links. The docstring of a module is shown with the name that users import from it,
before the first numpydoc section.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

TERM = re.compile(r"([A-Z][a-z]+) {1,9}(?=\S)")
COLUMN = 11  # where the text of a term begins
DOCUMENT = re.compile(r"`?\bdocs/([\w/-]+)\.md`?")
SECTION = re.compile(r"^[A-Z][A-Za-z ]+\n-{3,}$", re.MULTILINE)
"""The head of a numpydoc section."""


class Docstrings(griffe.Extension):
    """Rewrites every docstring of a package once it is loaded."""

    def __init__(self) -> None:
        self._in_packages: dict[str, griffe.Function] = {}

    def on_function_instance(self, *, func: griffe.Function, **more: Any) -> None:
        """Remember functions of packages: a file of the same name, loaded later, takes their place."""
        self._in_packages[func.path] = func

    def on_package(self, *, pkg: griffe.Module, **more: Any) -> None:
        """All modules at once, because what a package exports decides where a module's text goes."""
        exported = {
            name for module in _modules(pkg) for name in module.exports or () if isinstance(name, str)
        }
        for module in _modules(pkg):
            _show_recipes(module, exported)
            _hand_over(module, exported)
        modules = _modules(pkg)
        for module in modules:
            _rewrite(module)
        for module in modules:
            _uncover(module, self._in_packages)


def as_markdown(text: str) -> str:
    """A docstring as Markdown; numpydoc sections stay as they are."""
    prose, sections = split(text)
    paragraphs = [_paragraph(paragraph.split("\n")) for paragraph in prose.split("\n\n")]
    return DOCUMENT.sub(r"[\1](../\1.md)", "\n\n".join([*paragraphs, *filter(None, [sections])]))


def split(text: str) -> tuple[str, str]:
    """The prose of a docstring, and its numpydoc sections."""
    first = SECTION.search(text)
    return (text, "") if first is None else (text[: first.start()].rstrip(), text[first.start() :])


def _paragraph(lines: list[str]) -> str:
    if lines[0].startswith(">>> "):
        return "\n".join(["```pycon", *lines, "```"])
    first = next((number for number, line in enumerate(lines) if _is_term(line)), len(lines))
    out = lines[:first]
    for line in lines[first:]:
        if _is_term(line):
            out += ["", line[:COLUMN].strip(), f":   {line[COLUMN:]}"]
        else:
            out.append(f"    {line.strip()}")
    return "\n".join(out).strip("\n")


def _is_term(line: str) -> bool:
    """`Assumes    nothing`: a capitalised word, then text at the column where all of them have it."""
    found = TERM.match(line)
    return found is not None and found.end() == COLUMN


def _show_recipes(module: griffe.Module, exported: set[str]) -> None:
    """An entry of the table of learners is called like its recipe: show it as that function, under its own name."""
    for name, member in list(module.members.items()):
        called = member.value if isinstance(member, griffe.Attribute) else None
        if (
            name not in exported
            or not isinstance(called, griffe.ExprCall)
            or str(called.function) not in ("Entry", "slate_entry")
        ):
            continue
        recipe = module.members[str(called.arguments[1])]
        assert isinstance(recipe, griffe.Function)
        entry = griffe.Function(
            name,
            parameters=recipe.parameters,
            returns=recipe.returns,
            lineno=recipe.lineno,
            endlineno=recipe.endlineno,
        )
        entry.docstring = recipe.docstring and _docstring(recipe.docstring.value, entry, recipe.docstring)
        module.set_member(name, entry)


def _hand_over(module: griffe.Module, exported: set[str]) -> None:
    """Give the text of a file to the exported name it is about: the one named like the file, or else the first.

    A file that is exported itself keeps its text.
    """
    if module.is_init_module or module.docstring is None:
        return
    package = module.parent
    if (
        package is not None
        and module.name in map(str, package.exports or ())
        and module.name not in module.members
    ):
        return
    ours = [
        member
        for name, member in module.members.items()
        if name in exported and isinstance(member, (griffe.Class, griffe.Function))
    ]
    named = [member for member in ours if member.name.lower() == module.name.replace("_", "")]
    for member in (named or ours)[:1]:
        prose, sections = split(member.docstring.value) if member.docstring else ("", "")
        text = "\n\n".join(filter(None, [prose, module.docstring.value, sections]))
        member.docstring = _docstring(text, member, module.docstring)


def _docstring(text: str, parent: Any, like: griffe.Docstring) -> griffe.Docstring:
    """Make a docstring that is parsed as another one is."""
    return griffe.Docstring(text, parent=parent, parser=like.parser, parser_options=like.parser_options)


def _rewrite(thing: Any) -> None:
    if thing.docstring is not None:
        thing.docstring.value = as_markdown(thing.docstring.value)
    for member in thing.members.values():
        if not member.is_alias and not member.is_module:
            _rewrite(member)


def _uncover(package: griffe.Module, functions: dict[str, griffe.Function]) -> None:
    """Where a file and a name that the package exports are the same (`offline/greedy.py`), show the latter."""
    for name in map(str, package.exports or ()):
        file = package.members.get(name)
        if not isinstance(file, griffe.Module):
            continue
        if name in file.members:
            package.set_member(name, griffe.Alias(name, file.members[name], parent=package))
        elif file.path in functions:
            _rewrite(functions[file.path])
            package.set_member(name, functions[file.path])


def _modules(package: griffe.Module) -> list[griffe.Module]:
    """The package and all modules below it."""
    below = [module for module in package.modules.values() if not module.is_alias]
    return [package, *(deeper for module in below for deeper in _modules(module))]
