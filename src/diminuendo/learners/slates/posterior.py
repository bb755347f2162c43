"""The posterior of slates: what was published, Markov chains that make sense of it, and their last draws. Public.

Chains take turns, so that neighbouring draws are of different ones. A single chain may be long in finding out that
it took one item for another; several rarely agree on the same mistake, and slates that are good for all of them are
good. All of it follows from published numbers and public coins.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.slates.builder import SlateBuilder
from diminuendo.learners.slates.likelihood import Observations
from diminuendo.learners.slates.mcmc import (
    PRIOR_SHRINKAGE,
    ChainState,
    Prior,
    initial_state,
    prior_of,
    sweep,
)
from diminuendo.learners.slates.model import Draws, chances
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items

N_DRAWS = 32
"""The number of draws that are kept: those of the chains' last sweeps."""
N_CHAINS = 8
"""The number of chains, which take turns."""


class SlatePosterior:
    """What slates may be worth, by draws of Markov chains; `builder` makes slates, where not any items will do."""

    def __init__(
        self, n_items: int, slots: int, response_rate: float = 1.0, builder: SlateBuilder | None = None
    ) -> None:
        self.n_items, self.slots = n_items, slots
        self.builder = SlateBuilder(ItemAvailability(n_items, slots)) if builder is None else builder
        self.observations = Observations(n_items, slots, response_rate)
        self.forget()

    def forget(self) -> None:
        """Forget everything that was published."""
        self.observations.forget()
        self._given = prior_of(self.n_items)
        start = initial_state(self.n_items)  # the appeals of which are never written to
        self._chains = [start._replace(prior=start.prior.copy()) for _ in range(N_CHAINS)]
        self._draws = Draws(np.zeros((N_DRAWS, self.n_items)), np.zeros((N_DRAWS, 0)))
        self._n_sweeps = self._held = 0

    def expect(self, shares: Floats, users: int) -> None:
        """Begin with which share of users each item pleases: as if `users` had been shown it alone, and said so."""
        slate: Items = np.full(self.slots, EMPTY_SLOT, dtype=np.int32)
        for item, share in enumerate(shares.tolist()):
            slate[0] = item
            self.add(
                slate, self.slots, users, np.array([self.observations.response_rate * share * users]), 0.0
            )
        least = 0.5 / (1 + users)
        appeals = -np.log1p(-np.clip(shares, least, 1 - least))  # where chains begin
        self._chains = [chain._replace(appeals=appeals) for chain in self._chains]

    def begin_from(self, whole: SlatePosterior, width: tuple[float, float]) -> None:
        """Begin with what is believed of others, as far as appeals are like theirs, and a `width`. Both are learned."""
        self.forget()
        logs = np.log(whole._draws.appeals[whole._places()]).mean(axis=0)
        base, centre, shrinkage = logs - logs.mean(), float(logs.mean()), PRIOR_SHRINKAGE[0]
        self._given = Prior(base, centre, width)
        start = np.array([centre, math.sqrt(width[1] / (1 + width[0])), 0.7, shrinkage])
        appeals = np.exp(centre + shrinkage * base)
        self._chains = [ChainState(appeals, np.zeros(0), start.copy()) for _ in range(N_CHAINS)]

    def add(
        self, slate: Items, question: int, users: int, published: Floats, scale: float, unsure: float = 0.0
    ) -> None:
        """A number, or one per slot, was published about a slate, with noise of that scale.

        `unsure`: the variance of the number of users, where that is not known exactly.
        """
        self.observations.add(slate, question, users, published, scale, unsure)

    def sample(self, sweeps: int, rng: np.random.Generator) -> None:
        """Let the chains go on by `sweeps` sweeps, each of which gives a draw."""
        self._add_pairs(self.observations.n_pairs)
        evidence = self.observations.evidence()
        for _ in range(sweeps):
            which, at = self._n_sweeps % N_CHAINS, self._n_sweeps % N_DRAWS
            appeals = self._draws.appeals[at]  # where a chain stands is its last draw, and lies there
            appeals[:] = self._chains[which].appeals
            chain = self._chains[which] = self._chains[which]._replace(appeals=appeals)
            sweep(evidence, chain, self._given, rng)
            self._draws.overlaps[at] = chain.overlaps
            self._n_sweeps, self._held = self._n_sweeps + 1, min(self._held + 1, N_DRAWS)

    def thin(self, ahead: int) -> None:
        """Nothing is asked until after `ahead` more sweeps: the draws that those will replace count no more."""
        self._held = min(self._held, max(N_CHAINS, N_DRAWS - ahead))

    def _places(self) -> Ints:
        """The places of all draws that are held, rising."""
        return np.sort(self._last(N_DRAWS))

    def _add_pairs(self, pairs: int) -> None:
        """Pairs that were not shown together before have no overlap, in earlier draws too."""
        more, draws = pairs - self._draws.overlaps.shape[1], self._draws
        if more:
            self._draws = draws._replace(overlaps=np.hstack([draws.overlaps, np.zeros((N_DRAWS, more))]))
            self._chains = [
                chain._replace(overlaps=np.concatenate([chain.overlaps, np.zeros(more)]))
                for chain in self._chains
            ]

    def _last(self, count: int) -> Ints:
        """The places of the last `count` draws."""
        count = min(count, self._held)
        return np.asarray((self._n_sweeps - 1 - np.arange(count)) % N_DRAWS)

    def best(self, draws: int, passes: int) -> Items:
        """The slate that pays most on average over the last `draws` draws."""
        return self.builder.best(self._draws, self._last(draws), self.observations.neighbours(), passes)

    def challengers(self, leader: Items, count: int) -> Items:
        """At most `count` items that are not in `leader`, of slates that are best for single draws, the last first."""
        result: dict[int, None] = {}  # in the order in which they are found
        for draw in self._last(N_DRAWS):
            if len(result) >= count:
                break
            slate = self.builder.best(self._draws, np.array([draw]), self.observations.neighbours(), 1)
            result |= dict.fromkeys(slate[~np.isin(slate, [*leader, EMPTY_SLOT])].tolist())
        return np.array(list(result)[:count], dtype=np.int32)

    def shown_least(self, users: int, others: Items) -> Items:
        """Items shown to fewer than `users` users, and none of `others`; what appeals most comes first."""
        few = (self.observations.shown < users) & ~np.isin(np.arange(self.n_items), others)
        few &= self.builder.items.available
        order = np.argsort(-self.appeals, kind="stable")
        return order[few[order]].astype(np.int32)

    @property
    def appeals(self) -> Floats:
        """The appeal of every item, on average over all draws; all alike, where there are none."""
        return np.asarray(
            self._draws.appeals[self._places()].mean(axis=0) if self._held else np.ones(self.n_items)
        )

    def chances(self, slate: Items) -> Floats:
        """For each draw and slot: how likely a click is up to there."""
        shown, out = slate[slate != EMPTY_SLOT], np.zeros((self._held, self.slots))
        chances(shown, self._draws, self._places(), self.observations.neighbours(), out)
        if 0 < len(shown) < self.slots:  # slots that are empty come last, and add nothing
            out[:, len(shown) :] = out[:, len(shown) - 1, None]
        return out

    def arrays(self) -> dict[str, NDArray[Any]]:
        """For a snapshot. The names are those of a format."""
        chains = zip(ChainState._fields, zip(*self._chains, strict=True), strict=True)
        chain = {f"chain.{name}": np.stack(parts) for name, parts in chains}
        draws = {"draws.appeals": self._draws.appeals[self._places()], "draws.overlaps": self._draws.overlaps}
        observations = {f"observations.{name}": part for name, part in self.observations.arrays().items()}
        given = self._given
        if given.base.any():  # else it is as at first
            observations["given.base"] = given.base
            observations["given.others"] = np.array([given.centre, *given.width])
        return chain | draws | observations | {"n_sweeps": np.array([self._n_sweeps])}

    def take(self, arrays: dict[str, Any]) -> None:
        """Go on from what `arrays` gave."""
        self.forget()
        names = self.observations.arrays()
        observations = {name: arrays.pop(f"observations.{name}") for name in names}
        if "observations.unsure" in arrays:
            observations["unsure"] = arrays.pop("observations.unsure")
        self.observations.take(observations)
        if "given.base" in arrays:
            centre, *width = arrays.pop("given.others").tolist()
            self._given = Prior(arrays.pop("given.base"), centre, (width[0], width[1]))
        chain = ChainState(*(arrays.pop(f"chain.{name}") for name in ChainState._fields))
        draws = Draws(*(arrays.pop(f"draws.{name}") for name in Draws._fields))
        self._chains = [ChainState(*parts) for parts in zip(*chain, strict=True)]
        self._n_sweeps, self._held = int(arrays.pop("n_sweeps")[0]), len(draws.appeals)
        appeals = self._draws.appeals
        appeals[self._places()] = draws.appeals
        self._draws = Draws(appeals, draws.overlaps)
        for number in range(
            self._n_sweeps - min(N_CHAINS, self._held), self._n_sweeps
        ):  # chains stand at their last draws
            which = number % N_CHAINS
            self._chains[which] = self._chains[which]._replace(appeals=appeals[number % N_DRAWS])
