"""Files that commands write, and what the file system says, as sentences: what was found, and what to do."""

from __future__ import annotations

import errno
from pathlib import Path

NO_FOLDER = "{name} is a file; expected a folder. Name another folder, or move that file away."
NO_PERMISSION = "There is no permission for {name}. Name a place of your own, or ask for the permission."

SENTENCES = {
    errno.EEXIST: NO_FOLDER,
    errno.ENOTDIR: NO_FOLDER,
    errno.EISDIR: "{name} is a folder; expected a file. Name a file in it.",
    errno.ENOENT: "There is no file or folder {name}. Check how it is spelled, or make its folder first.",
    errno.EACCES: NO_PERMISSION,
    errno.EPERM: NO_PERMISSION,
    errno.EROFS: "{name} is on a disk that cannot be written to. Name another place.",
    errno.ENOSPC: "The disk is full; {name} was not written. Make room, or name a place on another disk.",
    errno.ENAMETOOLONG: "{name} is too long a name. Name a shorter one.",
}


def make_room(*files: Path | None) -> None:
    """Make the folders of files that are to be written, and raise now, before the work, what writing would raise."""
    for file in files:
        if file is None or str(file) == "-":
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        there = file.exists()
        file.open("a").close()
        if not there:
            file.unlink()


def sentence(error: OSError) -> str:
    """The error in words; where there are none for it, what the system said."""
    if error.errno not in SENTENCES or not isinstance(error.filename, str):
        return str(error)
    name = Path(error.filename)
    if SENTENCES[error.errno] == NO_FOLDER:  # perhaps not this one, but one on the way to it
        name = next((place for place in (*reversed(name.parents), name) if place.is_file()), name)
    return SENTENCES[error.errno].format(name=name)
