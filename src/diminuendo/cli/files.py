"""What the file system says, as sentences: what was found, and what to do."""

from __future__ import annotations

import errno

SENTENCES = {
    errno.EEXIST: "{name} is a file; expected a folder. Name another folder, or move that file away.",
    errno.ENOTDIR: "{name} is in a file, not in a folder. Name a folder that is there, or can be made.",
    errno.EISDIR: "{name} is a folder; expected a file. Name a file in it.",
    errno.ENOENT: "There is no file or folder {name}. Check how it is spelled, or make its folder first.",
    errno.EACCES: "There is no permission for {name}. Name a place of your own, or ask for the permission.",
    errno.EPERM: "There is no permission for {name}. Name a place of your own, or ask for the permission.",
    errno.EROFS: "{name} is on a disk that cannot be written to. Name another place.",
    errno.ENOSPC: "The disk is full; {name} was not written. Make room, or name a place on another disk.",
    errno.ENAMETOOLONG: "{name} is too long a name. Name a shorter one.",
}


def sentence(error: OSError) -> str:
    """The error in words; where there are none for it, what the system said."""
    if error.errno not in SENTENCES:
        return str(error)
    return SENTENCES[error.errno].format(name="it" if error.filename is None else error.filename)
