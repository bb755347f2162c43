"""The pages at the root of the repository join the site, and links between all pages work in both places.

In the repository a page links to files: `../CONTRIBUTING.md`, `maths/`, `../src/...`. The site holds `docs/` and a few
pages of the root. So links to pages are turned to where the page stands on the site, links to a folder to its
README, and links to anything else in the repository become plain text. What does not exist at all is left as it is:
`mkdocs build --strict` then fails.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

FROM_ROOT = {
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages of the root, and where they stand on the site."""
REMOTE_ROUNDS = FROM_ROOT | {"README.md": "index.md"}
LINK = re.compile(r"\[([^\]\[]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """A folder in the navigation stands for its pages, in the order of their names, README first."""
    config.nav = _expanded(config.nav, Path(config.docs_dir))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root."""
    root = Path(config.docs_dir).parent
    for name, place in FROM_ROOT.items():
        files.append(File.generated(config, place, content=(root / name).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn the links of one page."""
    root = Path(config.docs_dir).parent
    here = page.file.src_uri
    folder = "" if here in FROM_ROOT.values() else posixpath.join("docs", posixpath.dirname(here))

    def turned(link: re.Match[str]) -> str:
        text, target, anchor = link[1], link[2], link[3] or ""
        path = posixpath.normpath(posixpath.join(folder, target))
        if ":" in target or not (root / path).exists():
            return link[0]
        if path in REMOTE_ROUNDS:
            place = REMOTE_ROUNDS[path]
        elif path.startswith("docs/"):
            place = path.removeprefix("docs/") + ("/README.md" if (root / path).is_dir() else "")
        else:
            return text
        return f"[{text}]({posixpath.relpath(place, posixpath.dirname(here) or '.')}{anchor})"

    return LINK.sub(turned, markdown)


def _expanded(nav: Any, docs: Path) -> Any:
    if isinstance(nav, list):
        return [_expanded(entry, docs) for entry in nav]
    if isinstance(nav, dict):
        return {title: _expanded(entry, docs) for title, entry in nav.items()}
    if not str(nav).endswith("/"):
        return nav
    pages = sorted((docs / nav).glob("*.md"), key=lambda page: (page.stem != "README", page.stem))
    return [page.relative_to(docs).as_posix() for page in pages]
