"""Exploring experts, as the paper prints them: k ordered Hedge experts with one fixed rate and bandit feedback.

A round begins with the redraws that the round before it made due; whether they are due is decided by that round's
coins, never by whether an answer came. Then the coins of this round: whether it explores, and if so which slot and
item. All or nothing: where words run out, or a redraw is not paid for yet, nothing has happened.

`ExploringPolicy` is what all of them are; what differs is an argument: how much is explored and who redraws (`Rules`),
and what is paid for draws. The private ones are made in bandit_dp.py; here is the original of Streeter and Golovin.

Readable   paper/algorithms.py, `bandit_dp` and `streeter_golovin_bandit`: the same slates from the same words.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from diminuendo import _validate
from diminuendo._numba import as_kernel, inline, kernel
from diminuendo.errors import InvalidInput
from diminuendo.experts.hedge import HedgeState, learned, new_hedge, rebuild
from diminuendo.learners.base.decisions import NO_PROBE
from diminuendo.learners.base.entry import Advice, Entry
from diminuendo.learners.base.feedback import Rewards
from diminuendo.learners.base.feedback_window import Patient
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.hedge import bounds, constants
from diminuendo.learners.hedge.bandit import COIN, default_exploring, learn_probe, learn_reward, reward_of
from diminuendo.learners.hedge.private_draws import Draws, FreeDraws, SecretScoresPolicy, Use
from diminuendo.objectives.family import Table
from diminuendo.privacy.draw_budget import UNLIMITED, paid_for
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.score_classes import draw
from diminuendo.randomness.sources import RandomSource
from diminuendo.randomness.words import UNFINISHED, PublicWords, SecretWords, begin, below, undo
from diminuendo.streams.users import Users, shown_before
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items

ALL, OWN, EVERY = range(3)
"""Who redraws: everybody after an exploration, only the expert that explored, everybody in every round."""

NOBODY, EVERYBODY = -1, -2


class ExploringState(NamedTuple):
    """What the algorithm carries from round to round, beside what the experts learned. All of it is public."""

    current: Items
    """(k,) the experts' items, repeats included; -1 before the first draw."""
    due: Ints
    """(1,) who redraws before the next round: an expert, NOBODY or EVERYBODY."""
    redraws: Ints
    """(k,) of each expert; its first draw, which knows nothing, is not counted."""
    explored: Ints
    """(k,) explorations of each expert, answered or not."""
    rounds: Ints
    """(1,) so far."""

    def __repr__(self) -> str:
        return "<ExploringState>"


class Rules(NamedTuple):
    """How it was made; fixed."""

    share: float
    cap: int
    resample: int
    schedule: Ints = np.empty(0, dtype=np.int64)
    """Rounds that explore, in order, where they were drawn beforehand; else `share` decides."""
    presampled: bool = False


@inline
def next_round(
    experts: HedgeState,
    state: ExploringState,
    rules: Rules,
    paid: Ints,
    row: Items,
    probe: Items,
    rng: PublicWords,
    secret: SecretWords,
) -> bool:
    """The next slate and probe (slot, item, 0); False, with nothing changed, when it must be resumed."""
    begin(rng)
    begin(secret)
    k, first, due = len(row), state.rounds[0] == 0, state.due[0]
    for slot in range(k):
        row[slot] = state.current[slot]
        if due in (EVERYBODY, slot):
            if not first and not paid_for(paid, slot, state.redraws[slot]):
                undo(secret)
                return False
            item = draw(experts.classes, slot, secret)
            if item == UNFINISHED:
                undo(secret)
                return False
            row[slot] = item
    slot, item = NO_PROBE, NO_PROBE
    coin = below(COIN, rng)
    if coin != UNFINISHED and _explores(state, rules, coin):
        slot = below(k, rng)
        item = below(experts.classes.totals.shape[0], rng)
        coin = item
    if coin == UNFINISHED:
        undo(rng)
        undo(secret)
        return False
    for j in range(k):  # from here on nothing can fail
        if not first and due in (EVERYBODY, j):
            state.redraws[j] += 1
        state.current[j] = row[j]
    state.rounds[0] += 1
    used = state.explored[slot] if rules.resample == OWN else state.explored.sum()
    if slot != NO_PROBE and used >= rules.cap:
        slot = NO_PROBE
    state.due[0] = EVERYBODY if rules.resample == EVERY else NOBODY
    if slot != NO_PROBE:
        state.explored[slot] += 1
        if rules.resample != EVERY:
            state.due[0] = slot if rules.resample == OWN else EVERYBODY
    _show(row, slot, item)
    probe[0], probe[1], probe[2] = slot, item, 0
    return True


draw_round = as_kernel(next_round)


@inline
def _explores(state: ExploringState, rules: Rules, coin: int) -> bool:
    if rules.presampled:
        number = state.explored.sum()
        return bool(number < len(rules.schedule) and rules.schedule[number] == state.rounds[0])
    return coin < rules.share * COIN


@inline
def _show(row: Items, slot: int, item: int) -> None:
    """What is seen of the experts' items: repeats leave slots empty; an exploration ends the slate."""
    for j in range(len(row)):
        if slot != NO_PROBE and j > slot:
            row[j] = EMPTY_SLOT
        else:
            shown = item if j == slot else row[j]
            row[j] = EMPTY_SLOT if shown_before(row, j, shown) else shown


@kernel
def replay_rounds(
    experts: HedgeState,
    state: ExploringState,
    rules: Rules,
    paid: Ints,
    table: Table,
    slates: Items,
    done: int,
    rng: PublicWords,
    secret: SecretWords,
    user: Floats,
    probe: Items,
) -> int:
    """Rounds from `done` on, each answered at once, until one must be resumed."""
    while done < slates.shape[0] and next_round(
        experts, state, rules, paid, slates[done], probe, rng, secret
    ):
        if probe[0] != NO_PROBE:
            learn_probe(experts, probe, reward_of(table, done, slates[done], user))
        done += 1
    return done


class ExploringPolicy(SecretScoresPolicy):
    """Experts that learn from exploring rounds only, and draw again only when their rules say so."""

    reader = Rewards()

    def __init__(
        self, frame: Frame, rate: float, rules: Rules, draws: Draws, options: dict[str, Any]
    ) -> None:
        self.frame, self.budget, self._draws, self._options = frame, draws.budget, draws, options
        self.rate, self.rules = rate, rules
        self._experts = new_hedge(frame.n_items, frame.slots, rate)
        self._exploring = ExploringState(
            np.full(frame.slots, EMPTY_SLOT, dtype=np.int32),
            np.array([EVERYBODY]),
            np.zeros(frame.slots, dtype=np.int64),
            np.zeros(frame.slots, dtype=np.int64),
            np.zeros(1, dtype=np.int64),
        )

    # What is promised.

    def regret_bound(self, rounds: int | None = None) -> float | None:
        """What is proved, unless it never explores."""
        rules, n_items, slots = self.rules, self.frame.n_items, self.frame.slots
        rounds = rounds or self.frame.horizon
        if rounds is None:
            return None
        if rules.presampled:
            planned = int((rules.schedule < rounds).sum())
            return bounds.presampled_bandit(n_items, slots, rounds, self.rate, planned) if planned else None
        if rules.share == 0:
            return None
        capped = slots if rules.resample == OWN else 1  # how many caps there are
        extra = capped * bounds.cap_excess(rounds, rules.share / capped, rules.cap)
        return bounds.bandit(n_items, slots, rounds, self.rate, rules.share, extra=extra)

    # The door: scores are secret, so every redraw passes through it, paid for before it is made.

    def draw(self, row: Items, probe: Items) -> bool:
        """The next slate and probe; False, with nothing changed, where a redraw is not paid for yet."""
        words = self.frame.public.view, self.frame.secret.view
        return draw_round(self._experts, self._exploring, self.rules, self._draws.paid, row, probe, *words)

    def resume(self, rounds: int = 1) -> None:
        """More words; and pay for the redraws that the next round begins with."""
        self.frame.resume(rounds)
        self._draws.pay(self._due())

    def _due(self) -> list[Use]:
        """The redraws that the next round begins with; an expert's first draw, which knows nothing, is not one."""
        due = int(self._exploring.due[0])
        if self.frame.rounds == 0 or due == NOBODY:
            return []
        experts = range(self.frame.slots) if due == EVERYBODY else (due,)
        return [(int(self._exploring.redraws[expert]), expert) for expert in experts]

    # Private: the expert that explored learns the reward as the gain of the item that it tried.

    def learn(self, place: int, answer: float) -> None:
        """Of an exploring round, the reward; of others, nothing."""
        learn_reward(self._experts, self.frame.decisions.probes[place], answer)

    def replay(self, users: Users, slates: Items, done: int) -> int:
        """Draw and learn, round by round, compiled."""
        made = self._experts, self._exploring, self.rules, self._draws.paid
        frame, room = self.frame, (np.empty(users.largest_state), np.empty(3, dtype=np.int32))

        def play(done: int, stop: int) -> int:
            words = frame.public.view, frame.secret.view
            return replay_rounds(*made, users.table, slates[:stop], done, *words, *room)

        return frame.stride(play, done, len(users))

    # What a snapshot holds.

    def parameters(self) -> dict[str, Any]:
        """The public numbers that it was made with; exploring rounds drawn beforehand are only counted."""
        if not self.rules.presampled:
            return dict(self._options)
        kept = {name: self._options[name] for name in ("rate", "epsilon", "delta")}
        return kept | {"explorations": len(self.rules.schedule)}

    def state(self) -> Any:
        """What experts have learned, and what is carried from round to round."""
        return learned(self._experts), self._exploring

    def restored(self) -> None:
        """Score classes follow from scores; what was paid for beyond the last redraw may be used up."""
        rebuild(self._experts)
        self._draws.restored(self._exploring.redraws)


def streeter_golovin_bandit(
    n_items: int,
    slots: int,
    *,
    exploring: float,
    rate: float,
    rng: RandomSource | None = None,
    feedback_window: Patient = None,
) -> Learner:
    """Return Algorithm 3 without privacy: every expert draws in every round. Bandit feedback.

    Parameters
    ----------
    n_items : int
        Number of items.
    slots : int
        Number of items in a slate.
    exploring : float
        Share of rounds that explore, from 0 to 1.
    rate : float
        Learning rate of the Hedge experts, per unit of gain.
    rng : RandomSource, optional
        Randomness. By default SystemSource.
    feedback_window : FeedbackWindow or int, optional
        Feedback window.

    Returns
    -------
    Learner

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    References
    ----------
    Streeter & Golovin (2008), An online algorithm for maximizing submodular functions, NIPS 21.
    """
    frame = Frame("streeter-golovin-bandit", n_items, slots, rng=rng, feedback_window=feedback_window)
    share, rate = share_of_rounds(exploring), _validate.positive_float(rate, "rate")
    rules = Rules(share, UNLIMITED, EVERY)
    options = {"exploring": share, "rate": rate}
    return Learner(ExploringPolicy(frame, rate, rules, FreeDraws(frame), options))


def streeter_golovin_bandit_for(
    setting: Setting, *, rng: RandomSource | None = None, ledger: Ledger | None = None
) -> Learner:
    """The original with the constants that make the bound least; k (N log N / T)^(1/3) of the rounds explore."""
    n, k, rounds = setting.n_items, setting.slots, setting.rounds
    exploring = default_exploring(n, k, rounds)
    rate = math.sqrt(k * n * math.log(max(2, n)) / (exploring * rounds))
    return streeter_golovin_bandit(n, k, exploring=exploring, rate=min(constants.FASTEST, rate), rng=rng)


StreeterGolovinBandit = Entry(
    "streeter-golovin-bandit",
    streeter_golovin_bandit,
    reads=Rewards.kinds,
    summary="exploring Hedge experts as in 2008, textbook constants; not private",
    advice=Advice("none", "T^(2/3)", "scores", "as what the paper builds on"),
    fits=streeter_golovin_bandit_for,
    private=False,
)


def share_of_rounds(value: float) -> float:
    """A probability, 0 allowed."""
    if value == 0 and not isinstance(value, bool):
        return 0.0
    share = _validate.positive_float(value, "exploring")
    if share > 1:
        raise InvalidInput(f"exploring is a share of rounds, at most 1; got {value}.")
    return share
