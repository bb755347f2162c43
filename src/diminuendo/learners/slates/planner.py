"""The planner of slates: the next block, from all that was published. Public.

Noise is paid per published number, so few numbers, each about a whole slate and many users, teach more than one for
every slot and item. What they say about single items is worked out afterwards, for free (posterior.py).

    first       all items, in random slates, each shown to a few users; where users are few, only some of the items
    then        in blocks: two exploring slates, each the best on average over a few draws of the Markov chain, so that
                what may be good is tried and what was tried long enough is not; beside them slates of items that
                were given up, for a few users; and from some time on the slate that is best on average over all
                draws, shown to the greater part of users

An item that was given up is tried again whenever a chain, which never forgets how unsure it is, draws it high: so no
run loses a good item for good because it was unlucky once.
When users stop wanting what they were known to want, all is forgotten, and learning begins again (drift).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.learners.base.setting import Prior
from diminuendo.learners.slates.blocks import SlateBlock, merged
from diminuendo.learners.slates.builder import SlateBuilder
from diminuendo.learners.slates.posterior import N_DRAWS, SlatePosterior
from diminuendo.learners.slates.questions import Noise, Questions
from diminuendo.types import Floats, Ints, Items

USERS_PER_SLATE = 8.0
"""Users per slate at first, times 1 + 1 / epsilon: enough to see a good item through noise."""
FIRST_SHARE = 0.15
"""The share of users who see random slates at first. Items for which they are too few are left for later."""
PRIOR_TRIED = 8
"""What a prior calls best is tried first, by this many times as many users as a slate is shown to at first."""
GROWTH = 60
"""Later slates are shown to one in GROWTH of the users who came so far: the number of releases is logarithmic."""
BOLD_DRAWS, WARY_DRAWS = 4, 8
"""Each block tries two slates: the best on average over BOLD_DRAWS draws, and over WARY_DRAWS. The latter number
doubles as epsilon falls to 1/4: where noise is larger there is more to be unsure about, and single draws are worth
less."""
ROUNDS_AHEAD = 16
"""Where answers come late, a slate is shown at least to one in ROUNDS_AHEAD of the users who come meanwhile."""
SWEEPS = 2
"""Sweeps of Markov chains before each exploring slate, for each draw of the wary one."""
DRIFT_SHARE, DRIFT_DEVIATIONS = 0.6, 3.0
"""Drift: leading slates earn less than DRIFT_SHARE of what was expected, by DRIFT_DEVIATIONS."""
DRIFT_WINDOWS = (1, 2, 4, 8, 16)
"""How many of the last blocks are looked at together."""
NO_LEADER = -1.0
"""In the place of the leading slate's row, where no slate leads in the block."""


def nobody_leads() -> Floats:
    """In the place of what is expected of a leading slate: there is none."""
    return np.array([NO_LEADER, 0.0, 0.0])


class SlatePlanner:
    """Explores slates and shows the best, by the posterior of what was published."""

    def __init__(
        self,
        n_items: int,
        slots: int,
        horizon: int,
        questions: Questions,
        noise: Noise,
        *,
        ahead: int = 0,
        response_rate: float = 1.0,
        builder: SlateBuilder | None = None,
        prior: Prior | None = None,
    ) -> None:
        self.n_items, self.slots, self.horizon = n_items, slots, horizon
        self.noise, self.ahead, self.response_rate = noise, ahead, response_rate
        self.posterior = SlatePosterior(n_items, slots, response_rate, builder)
        self._prior = prior
        if prior is not None:
            self.posterior.expect(prior.scores, prior.users)
        self.explores = 1.0
        """Before a slate leads, and beside it, exploring slates are shown to this many times the usual users."""
        self.since: Ints = np.zeros(1, dtype=np.int64)
        """The round with which learning began, or began again."""
        # Of the leading slate of the open block: its row, the share that it should earn, and the variance of that.
        self._leading = nobody_leads()
        # Of leading slates before: what was published, what was expected, and the variance of the difference.
        self._checks = np.zeros((0, 3))
        self._questions = questions

    # Planning.

    @property
    def users_at_first(self) -> float:
        """To how many users each slate is shown at first: enough to see a good item through noise and chance.

        Chance has no say in how many, where that would take more than half of FIRST_SHARE of all users.
        """
        left = self.horizon - int(self.since[0])
        spare = FIRST_SHARE / 2 * left * self.slots / max(1, self.posterior.builder.n_available)
        return max(
            USERS_PER_SLATE * (1 + 1 / self.noise.epsilon), min(self._questions.enough_for_chance, spare)
        )

    def expected(self, rounds: int) -> int:
        """For how many rounds to plan, if it is not known: as many again, and enough to show all items once."""
        each = USERS_PER_SLATE * (1 + 1 / self.noise.epsilon) / self.response_rate
        least = math.ceil(math.ceil(self.n_items / self.slots) * each / FIRST_SHARE)
        return int(self.since[0]) + max(least, 2 * (rounds - int(self.since[0])))

    def next_block(self, rounds: int, rng: np.random.Generator, in_flight: int = 0) -> SlateBlock:
        """What to do with the rounds after the first `rounds`; `rng` are public.

        `in_flight`: how many of these rounds are in blocks of which nothing is published yet.
        """
        wary = int(WARY_DRAWS * min(2.0, max(1.0, self.noise.epsilon**-0.5)))
        block = self._planned(rounds, in_flight, SWEEPS * wary, wary, rng)
        self.posterior.thin(SWEEPS * wary)
        return block

    def _planned(
        self, rounds: int, in_flight: int, sweeps: int, wary: int, rng: np.random.Generator
    ) -> SlateBlock:
        """The next block; there are `sweeps` sweeps before each exploring slate, except in the first blocks."""
        self.forget_leader()
        left = self.horizon - int(self.since[0])
        lately = max(1, rounds - in_flight - int(self.since[0]))
        n, k = max(1, self.posterior.builder.n_available), self.slots
        few = min(self.users_at_first / self.response_rate, self.horizon - rounds)  # no more users come
        if not len(self.posterior.observations):
            return self._first_block(max(1, int(few)), int(FIRST_SHARE * left), rng)
        if self._prior is not None and rounds == 0:
            return self._prior_tried(int(PRIOR_TRIED * few), rng)
        few = int(max(4, min(few, FIRST_SHARE * left * k / n)))
        users = int(max(few, lately / GROWTH, self.ahead / ROUNDS_AHEAD))
        planned = []
        for draws in (BOLD_DRAWS, wary):
            self.posterior.sample(sweeps, rng)
            planned.append(self.with_question(self.posterior.best(draws, 1), users))
        leader = self.posterior.best(N_DRAWS, 2)
        retests = self._questions.retests(leader, users, few, left, self.posterior)
        planned += [self.with_question(slate, size) for slate, size in retests]
        share = self.explores * (n * left**2) ** (1 / 3) / lately
        if share >= 1:
            return merged(planned)
        shown = math.ceil(sum(size for _, size, _ in planned) * (1 - share) / share)
        leading = self.with_question(leader, shown)
        block = merged([*planned, leading])
        self.predict(block, *leading)
        return block

    def _prior_tried(self, users: int, rng: np.random.Generator) -> SlateBlock:
        """What the prior calls best: if that earns far less than it says, the prior is forgotten as tastes are."""
        self.posterior.sample(N_DRAWS, rng)
        slate, _, _ = self.with_question(self.posterior.best(N_DRAWS, 2), users)
        leading = slate, users, self.slots  # one number: that has the least noise
        block = merged([leading])
        self.predict(block, *leading)
        return block

    def _first_block(self, users: int, most: int, rng: np.random.Generator) -> SlateBlock:
        """Random slates, no item twice as long as there are others; for `most` users at most, or one slate."""
        self.posterior.sample(N_DRAWS, rng)
        slates = self.posterior.builder.random(rng, max(1, most // users))
        return merged([self.with_question(slate, users) for slate in slates])

    def with_question(self, slate: Items, users: int) -> tuple[Items, int, int]:
        """A slate in the order in which to show it to a number of users, that number, and what to ask them."""
        ordered, question = self._questions.ask(
            slate, round(self.response_rate * users), self.posterior, self.noise
        )
        return ordered, users, question

    # What was published.

    def add(
        self,
        block: SlateBlock,
        published: list[Floats],
        rounds: int,
        leading: Floats,
        spread: list[tuple[float, float]] | None = None,
    ) -> bool:
        """A block was published, after `rounds` rounds: for each of its slates one number, or one per slot.

        `leading`: what was expected of its leading slate. `spread`: for each slate the scale of its noise, and the
        variance of the number of its users. Whether so much less was published that all is forgotten.
        """
        if spread is None:
            spread = [(self.noise.of(question), 0.0) for question in block.questions.tolist()]
        for slate, size, question, numbers, unknown in zip(*block, published, spread, strict=True):
            if size:
                self.posterior.add(slate, int(question), int(size), numbers, *unknown)
        drifted = leading[0] != NO_LEADER and self._has_drifted(block, published, leading, spread)
        if drifted:
            self.posterior.forget()
            self.since[0], self._checks = rounds, np.zeros((0, 3))
        return drifted

    @property
    def leading(self) -> Floats:
        """Of the block planned last: the row of the leading slate, the share it should earn, the variance of that."""
        return self._leading.copy()

    def forget_leader(self) -> None:
        """No slate leads in the open block; or it is not the one that was planned last."""
        self._leading[:] = nobody_leads()

    def predict(self, block: SlateBlock, slate: Items, users: int, question: int) -> None:
        """What the leading slate should earn, if users are as the posterior says."""
        same = (block.slates == slate).all(axis=1) & (block.questions == question)
        chance = self.posterior.chances(slate)[:, (question or self.slots) - 1]
        self._leading[:] = np.flatnonzero(same)[0], chance.mean(), chance.var()

    def _has_drifted(
        self,
        block: SlateBlock,
        published: list[Floats],
        leading: Floats,
        noisy: list[tuple[float, float]],
    ) -> bool:
        """Whether leading slates lately earned far less than expected."""
        row, mean, unsure = (
            int(leading[0]),
            self.response_rate * leading[1],
            self.response_rate**2 * leading[2],
        )
        users, numbers = int(block.sizes[row]), len(published[row])
        scale, strange = noisy[row]
        noise = 2 * numbers * scale**2
        variance = users**2 * unsure + users * mean * (1 - mean) + noise + strange * mean**2
        check = np.array([[published[row].sum(), users * mean, variance]])
        self._checks = np.concatenate([check, self._checks])[: DRIFT_WINDOWS[-1]]
        for window in DRIFT_WINDOWS:
            earned, expected, spread = self._checks[:window].sum(axis=0)
            earned = max(0.0, earned)  # whatever noise says
            least = DRIFT_SHARE * expected - DRIFT_DEVIATIONS * math.sqrt(spread)
            if window <= len(self._checks) and earned < least:
                return True
        return False

    # What a snapshot holds.

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of no fixed size; the names are those of a format."""
        return self.posterior.arrays() | {"checks": self._checks}

    def take(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take out of `found` what `arrays` gave."""
        self._checks = arrays.pop("checks")
        self.posterior.take(arrays)
