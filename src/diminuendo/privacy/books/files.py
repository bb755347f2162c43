"""Books in files: the ledger is one, what was released on it lies in a folder beside it, and so does who came."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from diminuendo.errors import refuse_copies
from diminuendo.privacy.books.contribution_file import ContributionFile
from diminuendo.privacy.books.durable import AppendOnly
from diminuendo.privacy.books.releases import Releases


class FileBooks:
    """The file of that path, held by this process; made if there is none and `create` says so."""

    __getstate__ = refuse_copies

    def __init__(self, path: Path, create: bool) -> None:
        self.lines = AppendOnly(path, create)
        self._visits: dict[str, ContributionFile] = {}

    def __repr__(self) -> str:
        return f"<FileBooks {self.lines.path}>"

    @cached_property
    def releases(self) -> Releases:
        """In a folder that is made when it is first asked for: a file of another kind gets none."""
        return Releases(Path(f"{self.lines.path}.releases"))

    def visits_of(self, learner: str) -> ContributionFile:
        """How many rounds of whom counted for the learner of that name."""
        if learner not in self._visits:
            path = Path(f"{self.lines.path}.visits") / quote(learner, safe="")
            self._visits[learner] = ContributionFile(path, learner)
        return self._visits[learner]

    def close(self) -> None:
        """Let another process have the files."""
        for file in self._visits.values():
            file.close()
        self.lines.close()
