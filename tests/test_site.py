"""The site builds strictly, every link and anchor on it leads somewhere, and nothing on it needs a network."""

from __future__ import annotations

import importlib
import os
import pkgutil
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import diminuendo

ROOT = Path(__file__).parents[1]
NOT_FOR_USERS = {"cli", "service"}
PACKAGES = [
    package.name
    for package in pkgutil.iter_modules(diminuendo.__path__)
    if package.ispkg and not package.name.startswith("_") and package.name not in NOT_FOR_USERS
]


SMALL_SITE = """
site_name: small
theme: {name: mkdocs, highlightjs: false}
use_directory_urls: false
exclude_docs: _site/
hooks: [docs/_site/links.py]
nav: [index.md, privacy.md, {Theorems: maths/}, architecture.md, contributing.md, changelog.md]
"""


class Links(HTMLParser):
    """What a page points to and fetches, and the names of its places."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.fetched: list[str] = []
        self.places: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        result = {name: value or "" for name, value in attrs}
        self.places |= {result[name] for name in ("id", "name") if name in result}
        for name in ("href", "src"):
            if name in result:
                (self.targets if tag == "a" else self.fetched).append(result[name])


def broken_links(site: Path) -> list[str]:
    """Links to files and places that are not there, and whatever would be fetched from elsewhere."""
    pages = {page: Links(page.read_text()) for page in site.rglob("*.html") if page.name != "404.html"}
    broken = []
    for page, links in pages.items():
        for target in links.targets + links.fetched:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if target in links.fetched:
                    broken.append(f"{page.name} fetches {target}")
                continue
            file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            there = file.exists() and (file not in pages or unquote(parts.fragment) in pages[file].places)
            if not there:
                broken.append(f"{page.name} links to {target}")
    return broken


def build(source: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]  # not --quiet: then warnings pass unseen
    return subprocess.run(
        [*command, "--site-dir", str(site)],
        cwd=source,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},  # an advertisement of the theme
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_site_builds_and_holds_together(tmp_path: Path) -> None:
    """One test, because a build takes seconds."""
    built = build(ROOT, tmp_path)
    assert built.returncode == 0, built.stdout + built.stderr
    assert len(list(tmp_path.rglob("*.html"))) > 40
    assert broken_links(tmp_path) == []
    pages = {
        package: Links((tmp_path / "api" / f"{package}.html").read_text()).places for package in PACKAGES
    }
    missing = [
        f"diminuendo.{package}.{name}"
        for package in PACKAGES
        for name in importlib.import_module(f"diminuendo.{package}").__all__
        if not described(f"diminuendo.{package}.{name}", pages[package])
    ]
    assert missing == []
    reference = "".join(page.read_text() for page in (tmp_path / "api").glob("*.html"))
    assert "<dt>Guarantee</dt>" in reference  # terms are terms
    assert "&gt;&gt;&gt;" in reference  # examples are code
    assert "<blockquote>" not in reference  # and not quotations, as `>>>` would be


def described(name: str, places: set[str]) -> bool:
    """Whether a public name has a place on its page; a module has one if what is in it does."""
    return name in places or (name in sys.modules and any(place.startswith(f"{name}.") for place in places))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("[gone](gone.md)", "gone.md"),
        ("[gone](privacy.md#gone)", "#gone"),
        ("[gone](../GONE.md)", "GONE.md"),
        ("[here](../LICENSE), [there](../CONTRIBUTING.md), [theorems](maths/)", ""),
    ],
)
def test_a_broken_link_fails_the_build(line: str, complaint: str, tmp_path: Path) -> None:
    """On a site of a few pages, and without the Python reference, which takes seconds."""
    for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"):
        (tmp_path / name).write_text(f"# {name}\n")
    shutil.copytree(ROOT / "docs" / "_site", tmp_path / "docs" / "_site")
    (tmp_path / "docs" / "maths").mkdir()
    (tmp_path / "docs" / "maths" / "README.md").write_text("# Theorems\n")
    (tmp_path / "docs" / "privacy.md").write_text("# Privacy\n")
    (tmp_path / "docs" / "index.md").write_text(f"# Start\n\n{line}\n")
    settings = (ROOT / "mkdocs.yml").read_text()
    checks = settings[settings.index("validation:") : settings.index("nav:\n  - Start")]
    (tmp_path / "mkdocs.yml").write_text(SMALL_SITE + checks)
    built = build(tmp_path, tmp_path / "out")
    if complaint:
        assert built.returncode != 0
        assert complaint in built.stdout + built.stderr
    else:
        assert built.returncode == 0, built.stdout + built.stderr
        assert broken_links(tmp_path / "out") == []
        assert "here, <a" in (tmp_path / "out" / "index.html").read_text()  # not on the site: text
        page = tmp_path / "out" / "index.html"
        page.write_text(
            page.read_text() + '<a href="gone.html">x</a><script src="https://cdn/x.js"></script>'
        )
        assert broken_links(tmp_path / "out") == [
            "index.html links to gone.html",
            "index.html fetches https://cdn/x.js",
        ]
