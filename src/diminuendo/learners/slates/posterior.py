"""Beliefs about slates: what was heard, Markov chains that make sense of it, and their last few thoughts.

Chains take turns, so that neighbouring draws are of different ones. A single chain may be long in finding out that
it took one item for another; several rarely agree on the same mistake, and slates that are good for all of them are
good. All of it follows from published numbers and public coins.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput
from diminuendo.learners.slates.likelihood import Heard
from diminuendo.learners.slates.mcmc import LEAST, MOST, WIDTH, Chain, new_chain, sweep
from diminuendo.learners.slates.model import Draws, best_slate, chances
from diminuendo.types import Floats, Ints, Items

KEPT = 32
"""So many draws are kept: what the chains thought in their last sweeps."""
CHAINS = 8
FAR = 1e9
"""No appeal is so large; one that is was altered."""


class Beliefs:
    """What slates may be worth."""

    def __init__(self, n_items: int, slots: int) -> None:
        self.n_items, self.slots = n_items, slots
        self.heard = Heard(n_items, slots)
        self.forget()

    def forget(self) -> None:
        """Begin anew: nothing was heard."""
        self.heard.forget()
        start = new_chain(self.n_items)  # the appeals of which are never written to
        self._chains = [start._replace(prior=start.prior.copy()) for _ in range(CHAINS)]
        self._draws = Draws(np.zeros((KEPT, self.n_items)), np.zeros((KEPT, 0)))
        self._thoughts = self._held = 0

    def hear(self, slate: Items, question: int, people: int, said: Floats, scale: float) -> None:
        """A number, or one per slot, was published about a slate."""
        self.heard.add(slate, question, people, said, scale)

    def think(self, sweeps: int, coins: np.random.Generator) -> None:
        """Let the chains go on."""
        self._make_room(self.heard.n_pairs)
        evidence = self.heard.evidence()
        for _ in range(sweeps):
            which, at = self._thoughts % CHAINS, self._thoughts % KEPT
            appeals = self._draws.appeals[at]  # where a chain stands is its last draw, and lies there
            appeals[:] = self._chains[which].appeals
            chain = self._chains[which] = self._chains[which]._replace(appeals=appeals)
            sweep(evidence, chain, coins)
            self._draws.overlaps[at] = chain.overlaps
            self._thoughts, self._held = self._thoughts + 1, min(self._held + 1, KEPT)

    def rest(self, ahead: int) -> None:
        """Nothing is asked until after `ahead` more sweeps: the draws that those take the place of count no more."""
        self._held = min(self._held, max(CHAINS, KEPT - ahead))

    def _places(self) -> Ints:
        """The places of all draws that are held, rising."""
        return np.sort(self._last(KEPT))

    def _make_room(self, pairs: int) -> None:
        """Pairs that were not shown together before have no overlap, also in what was thought before."""
        more, draws = pairs - self._draws.overlaps.shape[1], self._draws
        if more:
            self._draws = draws._replace(overlaps=np.hstack([draws.overlaps, np.zeros((KEPT, more))]))
            self._chains = [
                chain._replace(overlaps=np.concatenate([chain.overlaps, np.zeros(more)]))
                for chain in self._chains
            ]

    def _last(self, count: int) -> Ints:
        """Where the last `count` draws lie."""
        count = min(count, self._held)
        return np.asarray((self._thoughts - 1 - np.arange(count)) % KEPT)

    def best(self, draws: int, passes: int) -> Items:
        """The slate that pays most on average over the last so many draws."""
        slate = np.zeros(self.slots, dtype=np.int32)
        best_slate(self._draws, self._last(draws), self.heard.neighbours(), slate, passes)
        return slate

    def rivals(self, back: int, leader: Items) -> Items:
        """What the slate that is best for a single draw, so many draws ago, has that `leader` has not."""
        slate = np.zeros(self.slots, dtype=np.int32)
        draw = np.array([(self._thoughts - 1 - back) % KEPT])
        best_slate(self._draws, draw, self.heard.neighbours(), slate, 1)
        return slate[~np.isin(slate, leader)]

    def chances(self, slate: Items) -> Floats:
        """For each draw and slot: how likely a click is up to there."""
        out = np.zeros((self._held, self.slots))
        chances(slate, self._draws, self._places(), self.heard.neighbours(), out)
        return out

    def arrays(self) -> dict[str, NDArray[Any]]:
        """For a snapshot."""
        chains = zip(Chain._fields, zip(*self._chains, strict=True), strict=True)
        chain = {f"chain.{name}": np.stack(parts) for name, parts in chains}
        draws = {"draws.appeals": self._draws.appeals[self._places()], "draws.overlaps": self._draws.overlaps}
        heard = {f"heard.{name}": part for name, part in self.heard.arrays().items()}
        return chain | draws | heard | {"thoughts": np.array([self._thoughts])}

    def take(self, found: dict[str, Any]) -> None:
        """Go on from what `arrays` gave; refuse what it could not have given."""
        self.forget()
        self.heard.take({name: found.pop(f"heard.{name}", np.empty(0)) for name in self.heard.arrays()})
        nothing: NDArray[Any] = np.empty(0)
        chain = Chain(*(found.pop(f"chain.{name}", nothing) for name in Chain._fields))
        draws = Draws(*(found.pop(f"draws.{name}", nothing) for name in Draws._fields))
        thoughts = found.pop("thoughts", nothing)
        pairs, held = draws.overlaps.size // KEPT, len(draws.appeals)
        sizes = self.n_items, pairs
        shapes = (*[(CHAINS, size) for size in (*sizes, 3)], (held, self.n_items), (KEPT, pairs), (1,))
        parts = (*chain, *draws, thoughts)
        kinds = (*[np.dtype(np.float64)] * 5, np.dtype(np.int64))
        sound = (
            all(
                part.shape == shape and part.dtype == kind
                for part, shape, kind in zip(parts, shapes, kinds, strict=True)
            )
            and pairs <= self.heard.n_pairs
            and all(np.isfinite(part).all() for part in parts)
            and ((chain.appeals > 0) & (chain.appeals < FAR)).all()
            and ((draws.appeals >= 0) & (draws.appeals < FAR)).all()
            and all(((part >= LEAST) & (part <= MOST)).all() for part in (chain.overlaps, draws.overlaps))
            and (chain.prior[:, WIDTH] > 0).all()
            and 0 <= thoughts[0] < 1 << 62
            and min(CHAINS, thoughts[0]) <= held <= min(KEPT, thoughts[0])
        )
        if not sound:
            raise InvalidInput("The snapshot holds beliefs that could not have been formed; it was altered.")
        self._chains = [Chain(*parts) for parts in zip(*chain, strict=True)]
        self._thoughts, self._held = int(thoughts[0]), held
        appeals = self._draws.appeals
        appeals[self._places()] = draws.appeals
        self._draws = Draws(appeals, draws.overlaps)
        for thought in range(
            self._thoughts - min(CHAINS, held), self._thoughts
        ):  # chains stand at their last draws
            which = thought % CHAINS
            self._chains[which] = self._chains[which]._replace(appeals=appeals[thought % KEPT])
