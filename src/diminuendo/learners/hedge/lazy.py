r"""Lazy Hedge: k ordered experts that keep their items and seldom draw others; the least proved regret of all learners.

Rounds are divided into batches. Expert i holds an item, which slot i shows to every user of a batch; if an earlier slot
shows that item already, slot i shows another one at random. Users say what each item would have added to the slots
before; the sums of these gains stay secret. After a batch of B rounds in which item a gains X(a), an expert keeps its
item x with probability exp(-rate * (2 B - X(x))), and otherwise draws an item in proportion to exp(rate * total gains).
Its item then has the law of Hedge, which draws anew for every user, at any time (Theorem Z1). Coins and draws are all
that is released. There are few draws to pay for, and there is no noise that grows with the number of items.

Regret     at most `LazyPlan.bound`, of order sqrt(k T log N) + k (k T / rho)^(1/3) log N up to factors from batches,
           where rho is about epsilon^2 / (4 log(1 / delta)); for users who do not react to slates (docs/maths/lazy.md,
           Theorem Z5).
Guarantee  docs/maths/lazy.md, Theorem Z3. The ledger is charged for all coins and draws when the learner is made.
Assumes    for regret: users are monotone submodular, with values in [0, 1]. For privacy: nothing; gains are clipped to
           [0, 1] in fixed point, and an answer that comes after its batch has closed counts as nothing.
Excludes   timing, and the memory of the process.
References Geulen, Vocking & Winkler (2010), COLT, for the shrinking dartboard; Asi, Feldman, Koren & Talwar (2023),
           COLT, and Asi, Koren, Liu & Talwar (2024), NeurIPS 37, for its privacy; Streeter & Golovin (2008), NIPS 21.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy

from diminuendo import _validate
from diminuendo._numba import kernel
from diminuendo.errors import InvalidInput, OverBudget, refuse_copies
from diminuendo.learners.base import propensity
from diminuendo.learners.base.entry import Advice, Entry
from diminuendo.learners.base.feedback import CompiledObjective, CompiledObjectives
from diminuendo.learners.base.feedback_window import Patient
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.menu import Chooser, Menu
from diminuendo.learners.base.policy import MenuPolicy
from diminuendo.objectives.family import GainBuffer, Table, add, gains, new_gain_buffer, start
from diminuendo.objectives.user import largest_state
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Composed, ContinuousGaussian, Event, Repeated, Selections
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.rounding import lowered
from diminuendo.randomness.exponential import select, survives
from diminuendo.randomness.shares import FINE, GuideTable, draw_other, guided, softmax
from diminuendo.randomness.sources import RandomSource
from diminuendo.randomness.words import UNFINISHED, PublicWords, SecretRandomness, begin, undo
from diminuendo.streams.contexts import NOBODY
from diminuendo.streams.users import Users, shown_before
from diminuendo.sums.batch import BatchView
from diminuendo.sums.clip import Clip, clip_row
from diminuendo.sums.private_sum import RunningSum
from diminuendo.sums.schedule import Schedule, equal
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items

NOTHING = -1
"""What an expert holds before its first draw."""

MOST_LOST = 2
"""The loss per round of an item that gains nothing. With 1, an item that gains all there is would be kept with
certainty, and its leaving would reveal a user."""

ITEM_TICKS = 1 << 16
"""Fixed-point units to one unit of gain."""

CERTAIN = 1e3
"""The score of an item that is held, where others have 0: each of those is left a share of 2^-40."""

AT_ONCE = 1 << 12
"""Rounds that are replayed in one go: more would let progress wait, fewer take longer."""

MOST_WAITING = 32
"""Batches that wait for feedback at once, about."""

MOST_RELEASES = 1 << 17
"""The ledger keeps each of them: all together in less than 100 megabytes of memory, or as files."""

CLOSE = 1 - 2.0**-30
"""How close to the budget a rate is sought: floats err by less."""

SAFE = 1 + 2.0**-30
"""More than what the library's normal quantiles err by, at the differences that matter."""


# The plan: how long batches are, how fast experts learn, how often each may draw. It follows from public numbers.


@dataclass(frozen=True)
class LazyPlan:
    """Batches of nearly equal length, `rounds` rounds in all, and experts of that rate, per unit of gain."""

    n_items: int
    slots: int
    rounds: int
    n_batches: int
    rate: float

    @property
    def schedule(self) -> Schedule:
        """When batches close."""
        return equal(self.rounds, self.n_batches)

    @property
    def sizes(self) -> tuple[int, int]:
        """The fewest rounds of a batch, and the most."""
        return self.rounds // self.n_batches, -(-self.rounds // self.n_batches)

    @property
    def tosses(self) -> int:
        """How many coins each expert tosses: none after the first batch, when it draws, or after the last."""
        return max(0, self.n_batches - 2)

    @cached_property
    def most(self) -> int:
        """How often each expert may draw: more often with probability 1 / (k T) at most, were there no limit."""
        if self.n_batches == 1:
            return 0
        chance = -math.expm1(-MOST_LOST * self.rate * self.sizes[1])
        return 1 + binomial_cap(self.tosses, chance, 1 / (self.slots * self.rounds))

    @property
    def coin(self) -> float:
        """The mu of one coin: one user moves a loss, which is 1 for each round at least, by 1 at most."""
        return coin_mu(self.rate, self.sizes[0]) if self.tosses else 0.0

    @property
    def event(self) -> Event:
        """What the whole run costs (Theorem Z3)."""
        draws = Selections(self.slots * self.most, 2 * self.rate)
        return Composed((Repeated(ContinuousGaussian(self.coin), self.slots), draws))

    @property
    def rho(self) -> float:
        """The same, in floats."""
        return self.slots * (self.coin**2 + self.most * self.rate**2) / 2

    @property
    def bound(self) -> float:
        """On the expected regret to (1 - 1/e) of the best slate (Theorem Z5)."""
        k, (least, longest) = self.slots, self.sizes
        many = self.rounds - least * self.n_batches  # batches that have a round more
        squares = many * longest**2 + (self.n_batches - many) * least**2
        rounding = k * self.rounds * (1 / ITEM_TICKS + self.n_items / FINE)
        return (
            k * math.log(max(2, self.n_items)) / self.rate
            + self.rate * curvature(k, self.rate * longest) * squares
            + 1
            + rounding
        )


def curvature(slots: int, step: float) -> float:
    """What k experts together pay for a batch of B users, in units of rate * B^2; `step` is rate * B (Lemma Z4).

    (e^y - 1 - y)/y^2 times the most that their variances can add up to; or Hoeffding's 1/8 for each.
    """
    shared = 1 - 1 / slots if slots > 1 else 0.25
    convex = (math.expm1(step) - step) / step**2 if step > 1e-3 else 0.5 + step / 5
    return min(convex * shared, slots / 8)


def coin_mu(rate: float, least: int) -> float:
    """How far two coins are apart that survive losses of `least` and of one more, in deviations (Lemma Z2)."""
    closer, farther = (-float(scipy.special.ndtri_exp(-rate * loss)) for loss in (least, least + 1))
    return (farther - closer) * SAFE


def binomial_cap(count: int, chance: float, tail: float) -> int:
    """The least number that `count` coins exceed with probability at most `tail`."""
    low, high = -1, count
    while high - low > 1:
        middle = (low + high) // 2
        if scipy.special.betainc(middle + 1.0, count - middle, chance) <= tail:
            high = middle
        else:
            low = middle
    return high


def fastest(n_items: int, slots: int, rounds: int, n_batches: int, limit: float) -> LazyPlan | None:
    """The plan with that number of batches and the best rate that costs at most `limit`; None: there is none."""

    def at(log_rate: float) -> LazyPlan:
        return LazyPlan(n_items, slots, rounds, n_batches, math.exp(log_rate))

    # Where privacy does not matter, the rate that makes the bound least but for its convexity; faster is not better.
    per_batch = slots * math.log(max(2, n_items)) / (curvature(slots, 0.0) * n_batches)
    high = min(0.0, math.log(n_batches / rounds) + math.log(per_batch) / 2)
    if at(high).rho <= limit:
        return at(high)
    low = high - 40.0
    if at(low).rho > limit:
        return None
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle).rho <= limit else (low, middle)
    return at(low)


def lazy_plan(n_items: int, slots: int, rounds: int, budget: Budget, ahead: int = 0) -> LazyPlan:
    """The plan whose bound is least; where feedback is late, with about MOST_WAITING open batches at most."""
    limit, shortest = float(budget.limit) * CLOSE, max(1, math.ceil(ahead / MOST_WAITING))
    shortest = max(shortest, math.ceil(rounds / MOST_RELEASES))
    plans: dict[int, LazyPlan] = {}

    def bound(users: float) -> float:
        n_batches = max(min(2, rounds), math.ceil(rounds / max(shortest, users)))
        if n_batches not in plans:
            plan = fastest(n_items, slots, rounds, n_batches, limit)
            if plan is not None:
                plans[n_batches] = plan
        return plans[n_batches].bound if n_batches in plans else math.inf

    best = min((2.0**power for power in range(rounds.bit_length())), key=bound)
    min((best * 2.0 ** (step / 4) for step in (-3, -2, -1, 1, 2, 3)), key=bound)
    if not plans:
        raise InvalidInput(f"epsilon = {budget.epsilon} is too small for {slots} slots: no rate is above 0.")
    plan = min(plans.values(), key=lambda one: one.bound)
    return LazyPlan(n_items, slots, rounds, plan.n_batches, affordable(plan, budget))


def affordable(plan: LazyPlan, budget: Budget) -> float:
    """The rate of the plan, or the next below it whose exact cost is within the budget."""
    sizes = plan.n_items, plan.slots, plan.rounds, plan.n_batches
    return lowered(
        plan.rate, lambda rate: budget.counting.tally(LazyPlan(*sizes, rate).event).total <= budget.limit
    )


# Private: gains are added up exactly; the items that experts hold are released.


def keeps(held: int, batch: Ints, rounds: int, rate: float, secret: SecretRandomness) -> bool:
    """Whether an expert keeps its item after a batch of `rounds` rounds; gains in ticks, the rate per tick."""
    return survives(rate, int(batch[held]) - MOST_LOST * rounds * ITEM_TICKS, secret)


def another(totals: Ints, rate: float, secret: SecretRandomness) -> int:
    """An item in proportion to exp(rate * total); totals in ticks, the rate per tick."""
    return select(totals, rate, secret)


class LazyItems(RunningSum):
    """A running sum of gains, slot by slot, of which only the items that k lazy experts hold are released.

    Released are the items and how often each expert has drawn: drawn once, written to the ledger, and then shown. An
    expert that has drawn `most` times keeps its item for good.
    """

    __getstate__ = refuse_copies

    def __init__(self, plan: LazyPlan, ledger: Ledger, name: str) -> None:
        size, schedule = plan.slots * plan.n_items, plan.schedule
        schedule = Schedule(schedule.ends[:-1] or schedule.ends)  # after the last batch no user arrives
        clip = Clip("l2", bound=math.sqrt(size) + 1, ticks=ITEM_TICKS)  # longer than anything: it never acts
        super().__init__(size, clip, schedule)
        self.n_items, self.rate, self.event, self.most = plan.n_items, plan.rate, plan.event, plan.most
        self._per_tick, self._sizes = plan.rate / ITEM_TICKS, schedule.sizes
        self._totals = np.zeros((plan.slots, plan.n_items), dtype=np.int64)
        self._held, self._drawn = np.full(plan.slots, NOTHING), np.zeros(plan.slots, dtype=np.int64)
        self._room, self._ticks = new_gain_buffer(self.n_items, 1), np.empty(self.n_items, np.int64)
        about = f"items of {plan.slots} experts among {plan.n_items}, {len(schedule)} times in "
        about += f"{schedule.rounds} rounds, rate {plan.rate!r}, {plan.most} draws each"
        self._paid = ledger.buy(self.event, name, about)

    def release(self, secret: SecretRandomness) -> None:
        """Close the batch and release what experts hold from now on. If it fails, nothing has happened."""
        with self._releasing:
            number = self.batch
            if number >= len(self.schedule):
                raise OverBudget(f"All {len(self.schedule)} releases that were paid for have been made.")
            with self._lock:  # answers to this batch are late from now on
                closed, batch = self._cells, self._cells.entries().reshape(self._totals.shape)
            released = self._paid.once(f"{number:06d}", lambda: self._next(batch, number, secret), secret)
            self._held[:], self._drawn[:] = released
            self._totals += batch
            with self._lock:
                self._open_next()
        closed.array[...] = 0

    def _next(self, batch: Ints, number: int, secret: SecretRandomness) -> Ints:
        """(2, k): which items experts hold from now on, and how often they have drawn."""
        held, drawn = self._held.copy(), self._drawn.copy()
        for slot, gained in enumerate(batch):
            fixed = drawn[slot] >= self.most  # first, so that no coin is tossed
            if fixed or (
                held[slot] != NOTHING
                and keeps(int(held[slot]), gained, self._sizes[number], self._per_tick, secret)
            ):
                continue
            held[slot] = another(self._totals[slot] + gained, self._per_tick, secret)
            drawn[slot] += 1
        return np.stack([held, drawn])

    def shares(self) -> Ints:
        """(N + 1, k) running sums of the shares by which slots draw: nearly all on the items that are held."""
        scores = np.zeros(self._totals.shape)
        if (self._held != NOTHING).all():
            scores[np.arange(len(self._held)), self._held] = CERTAIN
        return softmax(scores)

    def add_users(
        self, table: Table, leaves: int, first: int, slates: Items, state_size: int, batch: int
    ) -> None:
        """Gains of users from number `first` on, who were shown these slates, into that batch, if it is open."""
        if batch >= len(self.schedule):
            return
        with self.compiled_access(len(slates), batch=batch) as into:
            if into is not None:
                if len(self._ticks) < leaves * self.n_items:
                    self._room = new_gain_buffer(self.n_items, leaves)
                    self._ticks = np.empty(leaves * self.n_items, dtype=np.int64)
                _add_users(table, first, slates, np.empty(state_size), self._room, self._ticks, into)

    def _spec(self) -> tuple[Any, ...]:
        return (*super()._spec(), self.rate, self._paid.name)

    def _arrays(self) -> list[Any]:
        return [self._totals, self._held, self._drawn]


@kernel
def _add_users(
    table: Table, first: int, slates: Items, state: Floats, room: GainBuffer, ticks: Ints, into: BatchView
) -> None:
    """For every slot what each item would have added to the slots before; nothing exceeds the clip of them all."""
    n_items = len(into.cells) // slates.shape[1]
    for number in range(len(slates)):
        row = slates[number]
        start(table, first + number, state, 0)
        for slot in range(len(row)):
            count = gains(table, first + number, state, 0, room, 0)
            clip_row(into.rule, room.gains, 0, count, ticks)
            for j in range(count):
                if not shown_before(row, slot, room.items[j]):
                    into.cells[slot * n_items + room.items[j]] += ticks[j]
            if row[slot] != EMPTY_SLOT:
                add(table, first + number, state, 0, row[slot])


# Public: slates by what experts hold.


@dataclass(frozen=True, eq=False)
class ExpertsInTurn(Menu):
    """Each slot's expert draws by its own shares, one after the other, among the items that are not shown yet."""

    kind: ClassVar[str] = "experts in turn"
    ends: Ints
    """(N + 1, k) running sums of the experts' shares."""

    def __post_init__(self) -> None:
        sound = (
            self.ends.shape == (self.n_items + 1, self.slots)
            and not self.ends[0].any()
            and (np.diff(self.ends, axis=0) > 0).all()
        )
        if not sound:
            raise InvalidInput("These running sums are not those of experts' shares.")

    def chooser(self) -> DrawsInTurn:
        """What draws slates by this menu."""
        return DrawsInTurn(self)


class DrawsInTurn(Chooser):
    """Expert after expert, slate by slate."""

    def __init__(self, menu: ExpertsInTurn) -> None:
        self.menu: ExpertsInTurn = menu
        self._guide = guided(menu.ends)

    def draw(self, number: int, slates: Items, probes: Items, rng: PublicWords, types: Ints = NOBODY) -> int:
        """Each slot in proportion to its expert's shares."""
        return int(_draw_slates_in_turn(self._guide, slates, rng))

    def propensity(self, number: int, row: Items) -> float:
        """The chance of that row, expert after expert."""
        return float(propensity.in_turn(self.menu.ends.T, row))


@kernel
def _draw_slates_in_turn(guide: GuideTable, slates: Items, rng: PublicWords) -> int:
    """Each slot by its expert, among the items that are not shown yet; how many, before more words are needed."""
    for done in range(len(slates)):
        begin(rng)
        row = slates[done]
        for slot in range(len(row)):
            item = draw_other(guide, slot, row, slot, rng)
            if item == UNFINISHED:
                undo(rng)
                return done
            row[slot] = item
    return len(slates)


class LazyPolicy(MenuPolicy):
    """Shows what k lazy experts hold; before they hold anything, random items."""

    reader = CompiledObjectives()
    budget: Budget
    proof, purpose = "docs/maths/lazy.md, Theorem Z3", "coins and draws of lazy experts"

    def __init__(self, frame: Frame, budget: Budget, plan: LazyPlan, ledger: Ledger) -> None:
        self.frame, self.budget, self.plan, self.schedule = frame, budget, plan, plan.schedule
        self.experts = LazyItems(plan, ledger, frame.name)
        self.sums = {"sum": self.experts}
        self._follow()

    def regret_bound(self, rounds: int | None = None) -> float | None:
        """Theorem Z5, for feedback that comes before the next round; with late feedback nothing is proved."""
        return None if self.frame.feedback_window.ahead else self.plan.bound

    def _follow(self) -> None:
        """From the next round on, to the end of the batch, show what experts hold."""
        frame, batch = self.frame, self.experts.batch
        end = frame.published_at(self.schedule.ends[batch])
        sizes = frame.n_items, frame.slots, frame.rounds, end, frame.public.passed
        self._chooser, self._shown = ExpertsInTurn(*sizes, self.experts.shares()).chooser(), batch

    def due(self) -> bool:
        """Whether a batch is closed that was not released, or a release has no menu yet; the last batch has none."""
        closed = min(self.schedule.closed_by(self.frame.closed), len(self.schedule) - 1)
        return self._shown < max(closed, self.experts.batch)

    def release(self) -> None:
        """Release what experts hold from now on, unless that was done and had no menu yet; show it."""
        frame = self.frame
        if self._shown == self.experts.batch:
            self.experts.release(frame.secret)
        with frame.guard.answers, frame.guard.lock:  # others may choose meanwhile
            self._follow()

    def learn(self, place: int, answer: CompiledObjective) -> None:
        """Add what the user would have gained, if their batch is still open."""
        table, user, leaves = answer
        decisions = self.frame.decisions
        size = int(largest_state(table, user, user + 1))
        batch = self.schedule.batch_of(decisions.round_at(place))
        self.experts.add_users(table, leaves, user, decisions.rows[place][None, :], size, batch)

    def replay(self, users: Users, slates: Items, done: int) -> int:
        """To the end of the batch, or to the next release, at most: every user before it has been counted."""
        frame = self.frame
        batch = self.schedule.batch_of(frame.rounds)
        end = self.stop(users, done, self.schedule.ends[batch], self.menu.end, frame.rounds + AT_ONCE)
        drawn = self.draw_rows(slates[done:end])
        if drawn:
            rows, leaves = slates[done : done + drawn], users.family.leaves
            self.experts.add_users(users.table, leaves, done, rows, users.largest_state, batch)
        return done + drawn

    def restored(self) -> None:
        """The menu follows from the items that experts hold."""
        self._follow()


def lazy_hedge(
    n_items: int,
    slots: int,
    *,
    horizon: int,
    epsilon: float,
    delta: float,
    max_rounds_per_user: int = 1,
    ledger: Ledger | None = None,
    rng: RandomSource | None = None,
    feedback_window: Patient = None,
) -> Learner:
    """k lazy Hedge experts, with batches and a rate for which the bound on their regret is least."""
    frame = Frame(
        "lazy-hedge", n_items, slots, horizon=horizon, max_rounds_per_user=max_rounds_per_user, ledger=ledger,
        rng=rng, feedback_window=feedback_window
    )  # fmt: skip
    horizon = _validate.positive_int(horizon, "horizon")
    budget = Budget(epsilon, delta, frame.unit)
    plan = lazy_plan(frame.n_items, frame.slots, horizon, budget, frame.feedback_window.ahead)
    return Learner(LazyPolicy(frame, budget, plan, Ledger(budget) if ledger is None else ledger))


LazyHedge = Entry(
    "lazy-hedge",
    lazy_hedge,
    reads=CompiledObjectives.kinds,
    summary="one Hedge expert per slot that seldom draws again; full information; private; proved, no noise at all",
    advice=Advice("(ε, δ)", "√(kT log N)", "sums", "where a bound is wanted, and there are many items"),
    audited_on=((3, 1, 4),),
)
