"""A process that knows nothing but menus and public coins, and chooses by them.

Run as a program: python -m tests.kit.choose_by_menu FOLDER. Reads every menu in the folder, named CASE.NUMBER.menu, and
writes the slates and probes of its rounds as CASE.NUMBER.npz. Coins are seeded, and stand where the menu says. Where
there are contexts, the types of the users who come are in CASE.NUMBER.types.npy.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from diminuendo import SeededSource
from diminuendo.randomness import PublicSource
from diminuendo.streams.contexts import NOBODY
from diminuendo.types import Ints, Items
from tests.kit.menus import read_menu

SEED = 11


def chosen(written: bytes, rounds: int, types: Ints = NOBODY) -> tuple[Items, Items]:
    """The slates and probes of the first `rounds` rounds of a menu."""
    menu = read_menu(written)
    rng = PublicSource(SeededSource(SEED))
    rng.take(menu.words)
    chooser = menu.chooser()
    slates = np.full((rounds, menu.slots), -1, dtype=np.int32)
    probes = np.full((rounds, 3), -1, dtype=np.int32)
    done = 0
    while done < rounds:
        done += chooser.draw(menu.first + done, slates[done:], probes[done:], rng.view, types[done:])
        rng.resume()
    return slates, probes


def main(folder: Path) -> None:
    """Choose by every menu in the folder."""
    for file in sorted(folder.glob("*.menu")):
        rounds = int((folder / f"{file.stem}.rounds").read_text())
        known = folder / f"{file.stem}.types.npy"
        types = np.load(known) if known.exists() else NOBODY
        slates, probes = chosen(file.read_bytes(), rounds, types)
        np.savez(folder / f"{file.stem}.npz", slates=slates, probes=probes)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
