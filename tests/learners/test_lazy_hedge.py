"""Lazy Hedge: its whole law on tiny streams against its claim, its plan, crashes, and its regret.

The law comes twice: from the learner, driven through `choose` and `observe` along every path of coins and draws, and
from the definition in docs/maths/lazy.md, written down here once more. Worst cases are then taken from the definition.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import scipy.stats

import diminuendo as dim
from diminuendo import NoisyOr, Oracle, SeededSource, Users
from diminuendo.errors import OverBudget
from diminuendo.learners import LazyHedge
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.hedge import lazy
from diminuendo.learners.hedge.lazy import LazyPlan, LazyPolicy, binomial_cap, coin_mu, lazy_plan
from diminuendo.privacy.accountants import ACCOUNTANTS
from diminuendo.privacy.budget import Budget, Unit
from diminuendo.privacy.ledger import Ledger
from diminuendo.streams import taste_groups
from diminuendo.types import Ints
from tests.kit.enumeration import Law, Stream, User, all_users, covering_users, mask, unit, worst
from tests.kit.slow import rows_mostly_slow

ROUNDING = 1e-12
"""Laws of a few coins and draws in floats: probabilities that differ by less are equal."""

HUGE = Budget(60.0, 1e-6)


# The law by its definition, where nothing is random in a slate: one slot, or two slots and two items.


def slate_of(held: tuple[int, ...], n: int) -> tuple[int, ...]:
    """With one slot the item that is held; with two slots and two items, that and the other."""
    return held if len(held) == 1 else (held[0], 1 - held[0])


def run_law(
    stream: Stream,
    n: int,
    sizes: tuple[int, ...],
    rate: float,
    most: int,
    first: tuple[int, ...],
    lost: int = 2,
) -> Law:
    """Of what k experts hold, and how often they have drawn, after each batch but the last; `first`: of slates."""
    k = len(first)
    branches: list[Any] = [((), 1.0, ((0.0,) * n,) * k, None)]
    begin = 0
    for size in sizes[:-1]:
        users, begin = stream[begin : begin + size], begin + size
        grown = []
        for seen, chance, totals, held in branches:
            shown = first if held is None else slate_of(held, n)
            batch = [
                [
                    sum(
                        0.0 if f is None else unit(f[mask((*shown[:i], a))] - f[mask(shown[:i])])
                        for f in users
                    )
                    if a not in shown[:i]
                    else 0.0
                    for a in range(n)
                ]
                for i in range(k)
            ]
            totals = tuple(tuple(np.add(totals[i], batch[i])) for i in range(k))
            drawn = seen[-1][1] if seen else (0,) * k
            choices = []
            for i in range(k):
                weights = [math.exp(rate * total) for total in totals[i]]
                law = [(a, drawn[i] + 1, weight / sum(weights)) for a, weight in enumerate(weights)]
                if held is not None:
                    keep = math.exp(-rate * (lost * size - batch[i][held[i]])) if drawn[i] < most else 1.0
                    law = [(a, count, (1 - keep) * share) for a, count, share in law if keep < 1]
                    law.append((held[i], drawn[i], keep))
                choices.append(law)
            for chosen in itertools.product(*choices):
                items, counts = tuple(c[0] for c in chosen), tuple(c[1] for c in chosen)
                share = math.prod(c[2] for c in chosen)
                grown.append(((*seen, (items, counts)), chance * share, totals, items))
        branches = grown
    return {seen: chance for seen, chance, _, _ in branches}


# The law as the learner has it.


def made(
    n: int, k: int, plan: LazyPlan, budget: Budget = HUGE, ledger: Ledger | None = None, seed: int = 1
) -> Any:
    frame = Frame("lazy-hedge", n, k, horizon=plan.rounds, rng=SeededSource(seed), ledger=ledger)
    return Learner(LazyPolicy(frame, budget, plan, Ledger(budget) if ledger is None else ledger))


class Tree:
    """Coins and draws that fall as told; where nothing is told, as the first of all. What else could have been?"""

    def __init__(self, path: tuple[int, ...]) -> None:
        self.path, self.options, self.chance = path, list[int](), 1.0

    def one(self, chances: list[float]) -> int:
        place = self.path[len(self.options)] if len(self.options) < len(self.path) else 0
        self.options.append(len(chances))
        self.chance *= chances[place]
        return place

    @contextmanager
    def falling(self) -> Iterator[None]:
        def select(scores: Ints, rate: float, secret: object) -> int:
            weights = np.exp(rate * (scores - scores.max()).astype(float))
            return self.one((weights / weights.sum()).tolist())

        def coin(rate: float, difference: int, secret: object) -> bool:
            yes = math.exp(rate * difference)
            return bool(self.one([1 - yes, yes]))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lazy, "select", select)
            patch.setattr(lazy, "survives", coin)
            yield


def answer(user: User, n: int) -> Oracle:
    assert user is not None
    return Oracle(lambda chosen: user[mask(chosen)], n)


def law_of(stream: Stream, n: int, k: int, plan: LazyPlan, delay: frozenset[int] = frozenset()) -> Law:
    """Along every path. Whoever is `delay` answers when her batch is over; everybody else answers twice."""
    law: Law = {}
    ends, todo = plan.schedule.ends, list[tuple[int, ...]]([()])
    while todo:
        tree, learner = Tree(todo.pop()), made(n, k, plan)
        seen, waiting = list[Any](), list[tuple[Any, Oracle]]()
        with tree.falling(), np.errstate(all="ignore"):
            for t, user in enumerate(stream):
                decision = learner.choose()
                if t in ends:
                    items = learner.policy.experts
                    seen.append((tuple(items._held.tolist()), tuple(items._drawn.tolist())))
                    assert decision.slate == slate_of(seen[-1][0], n)
                    for old, said in waiting:
                        learner.observe(old, said)
                    waiting = []
                if user is not None and t in delay:
                    waiting.append((decision, answer(user, n)))
                elif user is not None:
                    learner.observe(decision, answer(user, n))
                    learner.observe(decision, answer((1.0,) * 2**n, n))
        law[tuple(seen)] = law.get(tuple(seen), 0.0) + tree.chance
        for place in range(len(tree.path), len(tree.options)):
            head = (*tree.path, *[0] * (place - len(tree.path)))
            todo += [(*head, other) for other in range(1, tree.options[place])]
    return law


def first_slate(n: int, k: int, plan: LazyPlan) -> tuple[int, ...]:
    """What the first batch is shown, by public coins."""
    return tuple(made(n, k, plan).choose().slate)


def random_users(count: int, n: int, seed: int) -> list[User]:
    """Any functions at all, some values out of range or missing, and somebody who does not answer."""
    random = np.random.default_rng(seed)
    users: list[User] = [None]
    for _ in range(count - 1):
        f = random.uniform(-0.5, 1.5, size=1 << n)
        f[random.random(1 << n) < 0.1] = np.nan
        f[0] = 0.0
        users.append(tuple(float(value) for value in f))
    return [users[place] for place in random.permutation(count)]


QUICK_LAWS = [(2, 1, 4, 4), (3, 1, 5, 3), (2, 2, 6, 3)]


@pytest.mark.parametrize(
    ("n", "k", "rounds", "batches"),
    rows_mostly_slow([*QUICK_LAWS, (2, 2, 4, 4)], QUICK_LAWS),
)
def test_the_learner_has_the_law_of_its_definition(n: int, k: int, rounds: int, batches: int) -> None:
    for seed in range(3):
        plan = LazyPlan(n, k, rounds, batches, 0.5)
        stream, first = tuple(random_users(rounds, n, seed)), first_slate(n, k, plan)
        if (n, k) == (2, 1):
            object.__setattr__(plan, "most", 2)  # so that the limit is met
        if k > 1:  # in the first batch slates differ: only the first user speaks
            stream = (stream[0], *(None,) * (plan.schedule.sizes[0] - 1), *stream[plan.schedule.sizes[0] :])
        result = law_of(stream, n, k, plan)
        known = run_law(stream, n, plan.schedule.sizes, plan.rate, plan.most, first)
        assert math.fsum(known.values()) == pytest.approx(1, abs=ROUNDING)
        # Ticks are 2^-16 of a unit: per draw that moves a log-probability by less than rounds * rate * 2^-15.
        slack = math.expm1(k * rounds * rounds * plan.rate * 2.0**-15)
        for seen in known.keys() | result.keys():
            assert result.get(seen, 0.0) == pytest.approx(known.get(seen, 0.0), rel=slack, abs=ROUNDING)


def test_who_answers_when_her_batch_is_over_has_said_nothing() -> None:
    plan = LazyPlan(2, 1, 4, 4, 0.5)
    stream = tuple(covering_users(2))
    silent = (stream[0], None, *stream[2:])
    result, known = law_of(stream, 2, 1, plan, delay=frozenset({1})), law_of(silent, 2, 1, plan)
    assert result == pytest.approx(known, abs=ROUNDING)
    assert result != pytest.approx(law_of(stream, 2, 1, plan), abs=1e-3), "or it would not be noticed"


def test_its_item_has_the_law_of_hedge() -> None:
    """Theorem Z1, by the definition: after each batch the item of an expert is distributed as that of Hedge."""
    n, sizes, rate = 3, (1, 3, 2, 1), 0.8
    stream = tuple(random_users(sum(sizes), n, 5))
    law, totals, begin = run_law(stream, n, sizes, rate, 9, (0,)), np.zeros(n), 0
    for batch, size in enumerate(sizes[:-1]):
        for f in stream[begin : begin + size]:
            totals += [0.0 if f is None else unit(f[mask((a,))]) for a in range(n)]
        begin += size
        held = [sum(chance for seen, chance in law.items() if seen[batch][0] == (a,)) for a in range(n)]
        hedge = np.exp(rate * totals)
        np.testing.assert_allclose(held, hedge / hedge.sum(), rtol=1e-12)


# Privacy: worst cases by the definition, against the event that is charged.

CASES = [  # n, k, sizes, rate, most
    (2, 1, (1, 1, 1), 0.5, 9),
    (2, 1, (1, 1, 1, 1), 0.3, 9),
    (2, 1, (1, 1, 1, 1, 1), 0.1, 2),
    (2, 1, (2, 2, 1), 0.5, 9),
    (3, 1, (1, 1, 1), 0.7, 9),
    (2, 2, (1, 1, 1), 0.5, 9),
]


def claimed(n: int, k: int, sizes: tuple[int, ...], rate: float, most: int) -> tuple[float, Any]:
    """What is charged: rho, and the event."""
    plan = LazyPlan(n, k, sum(sizes), len(sizes), rate)
    assert plan.schedule.sizes in (sizes, sizes[::-1])
    object.__setattr__(plan, "most", min(most, len(sizes) - 1))
    return float(ACCOUNTANTS["zcdp"].tally(plan.event).total), plan.event  # type: ignore[attr-defined]


@pytest.mark.parametrize(("n", "k", "sizes", "rate", "most"), CASES)
def test_no_stream_is_worse_than_claimed(
    n: int, k: int, sizes: tuple[int, ...], rate: float, most: int
) -> None:
    rho, event = claimed(n, k, sizes, rate, most)
    users: list[User] = [*all_users(n, largest=k)] if k == 1 else [None, *covering_users(2)]
    choices = [users] * (sum(sizes) - sizes[-1]) + [users[:1]] * sizes[-1]
    first = (0,) if k == 1 else (0, 1)
    epsilons = [0.0, 0.25, 0.5, 1.0]
    result = worst(lambda stream: run_law(stream, n, sizes, rate, most, first), choices, epsilons)
    assert result.ratio(rho) <= 1 + 1e-9
    for epsilon, truth in result.delta.items():
        assert truth <= ACCOUNTANTS["zcdp"].delta(event, epsilon) + ROUNDING
    assert result.ratio(rho) > 0.2, "the claim is not far from the truth"


def test_rng_that_come_up_for_nothing_are_needed() -> None:
    """With losses 1 - gain an item that gains everything never leaves: to see it leave gives somebody away."""
    law = lambda stream: run_law(stream, 2, (1, 1, 1), 0.1, 9, (0,), lost=1)  # noqa: E731
    users = all_users(2, largest=1)
    assert worst(law, [users, users, users[:1]], [1.0]).divergence[2.0] == math.inf


def test_half_the_price_of_a_coin_would_be_noticed() -> None:
    """One coin by itself: its divergences come close to those of the Gaussian that it is read off."""
    for rate, least in ((0.01, 8), (0.3, 1), (0.001, 30)):
        mu = coin_mu(rate, least)
        p, q = (-math.expm1(-rate * loss) for loss in (least, least + 1))
        ratios = []
        for order in np.exp(np.linspace(0.01, 8, 400)):
            for one, other in ((p, q), (q, p)):
                logs = [order * math.log(one) + (1 - order) * math.log(other)]
                logs.append(order * math.log1p(-one) + (1 - order) * math.log1p(-other))
                divergence = float(np.logaddexp(*logs)) / (order - 1)
                ratios.append(divergence / (order * mu**2 / 2))
        assert 0.5 < max(ratios) <= 1
        for more in (1, 5, 50):  # later steps are shorter
            assert coin_mu(rate, least + more) < mu


# The plan.


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize(("n", "k", "rounds"), [(50, 5, 100_000), (1_000, 3, 5_000), (4, 2, 3), (7, 7, 1)])
@pytest.mark.parametrize("max_rounds_per_user", [1, 3])
def test_a_plan_is_within_its_budget_and_uses_it(
    n: int, k: int, rounds: int, epsilon: float, max_rounds_per_user: int
) -> None:
    budget = Budget(epsilon, 1e-6, Unit(max_rounds_per_user))
    plan = lazy_plan(n, k, rounds, budget)
    cost = budget.counting.tally(plan.event).total
    assert cost <= budget.limit
    freely = math.sqrt(k * math.log(n) / (0.4 * sum(size**2 for size in plan.schedule.sizes)))
    assert cost > 0.99 * float(budget.limit) or plan.rate > 0.5 * min(1.0, freely) or rounds == 1
    assert sum(plan.schedule.sizes) == rounds
    learner = LazyHedge(
        n,
        k,
        horizon=rounds,
        epsilon=epsilon,
        delta=1e-6,
        max_rounds_per_user=max_rounds_per_user,
        rng=SeededSource(1),
    )
    assert learner.guarantee.epsilon <= epsilon
    assert learner.regret_bound() == plan.bound


def test_the_bound_by_hand() -> None:
    n, k, rounds = 50, 5, 100_000
    plan = lazy_plan(n, k, rounds, Budget(1.0, 1e-6))
    size = rounds / plan.n_batches
    by_hand = k * math.log(n) / plan.rate + plan.rate * 0.4 * size * rounds
    assert plan.bound == pytest.approx(by_hand, rel=0.01)
    assert plan.bound / rounds < 0.073, "little more than half of .13"
    for other in (plan.n_batches // 3, 3 * plan.n_batches):  # the length of batches was chosen well
        slower = LazyPlan(n, k, rounds, other, plan.rate)
        while slower.rho > plan.rho:
            slower = LazyPlan(n, k, rounds, other, 0.999 * slower.rate)
        assert slower.bound > plan.bound


PAGE = Path(__file__).parents[2] / "docs" / "maths" / "lazy.md"
ROW = re.compile(r"^\| ([\d,]+) \| ([\d,]+) \| ([\d.]+) \| (.*) \|$", re.MULTILINE)
COMPARED = ("lazy-hedge", "fi-dp", "fi-dp:calibration=paper")


def test_the_table_of_bounds() -> None:
    """What the page says of all of them, to the digits that it says."""
    rows = ROW.findall(PAGE.read_text())
    assert len(rows) == 10
    for items, users, epsilon, said in rows:
        n_items, rounds = (int(number.replace(",", "")) for number in (items, users))
        setting = dim.Setting(n_items, 5, rounds, "full", float(epsilon), 1e-6)
        result = []
        for name in COMPARED:
            bound = dim.LEARNERS[name].for_setting(setting, rng=SeededSource(1)).regret_bound(rounds)
            assert bound is not None
            result.append(bound / rounds)
        best = min(result)
        shown = [f"{one:.3f}"[1:] if one < 1 else f"{one:.2g}" for one in result]
        assert said == " | ".join(
            f"**{text}**" if one == best else text for one, text in zip(result, shown, strict=True)
        )


def test_the_limit_of_draws_is_a_quantile() -> None:
    for count, chance, tail in ((1_000, 0.05, 1e-6), (12, 0.3, 0.01), (5, 0.9, 1e-9), (0, 0.5, 0.1)):
        cap = binomial_cap(count, chance, tail)
        assert scipy.stats.binom.sf(cap, count, chance) <= tail
        assert cap == 0 or scipy.stats.binom.sf(cap - 1, count, chance) > tail


# The run.


def lazy_hedge(n: int, k: int, *, horizon: int, epsilon: float = 2.0, seed: int = 1) -> Any:
    return LazyHedge(n, k, horizon=horizon, epsilon=epsilon, delta=1e-6, rng=SeededSource(seed))


def test_experts_draw_no_more_often_than_is_paid_for() -> None:
    """Users who always want something else: experts would draw in every batch."""
    plan = LazyPlan(6, 2, 400, 200, 1.0)
    object.__setattr__(plan, "most", 20)
    learner = made(6, 2, plan)
    wants = np.arange(400) % 6
    users = Users(NoisyOr(), np.eye(6)[wants])
    learner.replay(users)
    items = learner.policy.experts
    assert (items._drawn == 20).all()
    assert len(learner.policy.schedule) - 1 == items.batch
    with pytest.raises(OverBudget):
        items.release(learner._frame.secret)


def test_a_slate_stays_until_a_batch_is_over() -> None:
    users = taste_groups(3_000, 20, groups=3, items_per_group=4, seed=1)
    learner = lazy_hedge(20, 3, horizon=3_000)
    slates, sizes = learner.replay(users), learner.policy.schedule.sizes
    held = np.split(
        slates[:, 0], np.cumsum(sizes)[:-1]
    )  # the first slot shows its expert's item, whatever comes after
    assert all((batch == batch[0]).all() for batch in held[1:])
    assert all(len(set(row)) == 3 for row in slates.tolist())


def test_what_was_published_is_published_again_after_a_crash(tmp_path: Path) -> None:
    budget = Budget(2.0, 1e-6)
    users = taste_groups(600, 8, groups=2, items_per_group=3, seed=1)
    made_for: dict[str, Any] = {"horizon": 600, "epsilon": 2.0, "delta": 1e-6, "rng": dim.SystemSource()}
    with Ledger.open(tmp_path / "ledger", budget) as ledger:
        first: Any = LazyHedge(8, 2, ledger=ledger, **made_for)
        first.replay(users[:100])
        kept = first.snapshot()
        first.replay(users[100:300])
        items, spent = first.policy.experts, ledger.spent()
        after = items._held.copy(), items._drawn.copy(), items.batch
    with Ledger.open(tmp_path / "ledger", budget) as ledger:
        second: Any = LazyHedge.restore(kept, rng=dim.SystemSource(), ledger=ledger)
        second.replay(users[100:300])
        items = second.policy.experts
        assert items.batch == after[2] > 5
        np.testing.assert_array_equal(items._held, after[0], "as published, not drawn again")
        np.testing.assert_array_equal(items._drawn, after[1])
        assert ledger.spent() == spent


def test_a_release_that_failed_is_made_at_the_next_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it failed in its draw, or after it: what was drawn is shown, and nothing is drawn twice."""
    users, plan = taste_groups(100, 8, groups=2, items_per_group=3), LazyPlan(8, 2, 100, 5, 0.1)
    for owner, name in ((lazy, "select"), (LazyPolicy, "_follow")):
        learner = made(8, 2, plan)
        learner.replay(users[:20])
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, mock.Mock(side_effect=OSError("disk full")))
            with pytest.raises(OSError, match="disk full"):
                learner.choose()
        assert learner.rounds == 20
        slates = learner.replay(users[20:])
        items = learner.policy.experts
        assert (learner.policy._shown, items.batch) == (4, 4)
        assert slates[-1, 0] == items._held[0]


def regret_of(learner: Learner, users: Users) -> float:
    """What the best item gains beyond those that were shown, where there is one slot."""
    slates = learner.replay(users)[:, 0]
    gains = np.array([[user.value([a]) for a in range(learner.n_items)] for user in users])
    return float(gains.sum(axis=0).max() - gains[np.arange(len(slates)), slates].sum())


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 100.0])
def test_streams_that_turn_are_held_to_the_bound(epsilon: float) -> None:
    """In every batch users want the item that earned less so far: whoever follows the leader is wrong."""
    rounds, result = 1_000, []
    for seed in range(3):
        learner = lazy_hedge(2, 1, horizon=rounds, epsilon=epsilon, seed=seed)
        sizes = learner.policy.schedule.sizes
        wants = np.concatenate([np.full(size, b % 2) for b, size in enumerate(sizes)])
        wants[: sizes[0] // 2] = 1
        users = Users(NoisyOr(), np.eye(2)[wants])
        result.append(regret_of(learner, users))
    bound = learner.regret_bound()
    assert bound is not None
    assert np.mean(result) <= bound < rounds / 4
    if epsilon == 100.0:  # a planted fault: far above the rate that the bound is for
        fast = LazyPlan(2, 1, rounds, len(sizes), 1_000 * learner.policy.plan.rate)
        wrong = made(2, 1, fast, Budget(1e8, 1e-6))
        assert regret_of(wrong, users) > bound, "following too fast is noticed"
