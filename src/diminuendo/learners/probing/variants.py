r"""Six learners that probe in balanced blocks: what a probe shows, which feedback comes back, with noise or without.

`bandit-blocks` tries an item behind the slots before its own and shows nothing after it, as ordered experts need it.
`bandit-blocks-full` tries it in place of one slot and keeps the others: a slate stays whole, and a probe loses at most
what one slot adds. Its experts draw independently of each other, may name the same item, and are held to one half.
`ranked-clicks` puts the item that is tried into its slot; those from there on move down, and the last drops out. (If
the item was there already, further down, it moves up and nothing drops out.) Whether just that slot is clicked says, on
average, what the item adds to the slots before it: one bit, for the one cell that coins chose.
Names that end in `-open` publish cells as they are. They promise nothing, and show what noise takes away.

Regret     at most `regret_bound()`, for people who do not react to slates; with Laplace noise, for people who react to
           nothing but what was published before their block (docs/maths/blocks.md). Payoffs: of order
           k (N log N)^(1/3) T^(2/3) (Theorem K2). Clicks: (k N log N)^(1/3) T^(2/3) for many slots (Theorem K4).
           `bandit-blocks-full`: `bound_to_aim()`, to half of the best slate (Theorem K3), for the latter people.
           For few people bounds may exceed what there is to gain; then they say nothing.
Guarantee  docs/maths/blocks.md, Theorem K1.
Assumes    for regret: people are monotone submodular, with values in [0, 1]; who clicks, clicks slot i first with
           probability f(first i items) - f(first i - 1 items), and payoff is whether anything is clicked. For privacy:
           nothing.
References Streeter & Golovin (2008), NIPS 21, for experts that explore; Agarwal & Singh (2017), ICML, for noise as part
           of gains; Kalai & Vempala (2005), JCSS 71, for noise of which only the law in each round matters;
           Radlinski, Kleinberg & Joachims (2008), ICML, for ranked experts that learn from clicks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Concatenate, ParamSpec

from diminuendo import _validate
from diminuendo.learners.base.entry import Advice, Entry, Shape
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.patience import Patient
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.probing import menu, schedule
from diminuendo.learners.probing.policy import CLICK_ON_PROBE, PAYOFF_OF_PROBE, ProbingPolicy, WayToProbe
from diminuendo.learners.probing.schedule import PAYOFF_TICKS, Noise, Plan, planned, spread_ahead
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import Coins
from diminuendo.sums.clip import Clip
from diminuendo.sums.private_sum import ExactSum, PrivateSum

P = ParamSpec("P")

PROBES_END_THE_SLATE = WayToProbe(menu.SHORT, schedule.short, PAYOFF_OF_PROBE)
PROBES_KEEP_THE_OTHERS = WayToProbe(menu.FULL, schedule.full, PAYOFF_OF_PROBE, reacting=True)
PROBES_ARE_PUT_IN = WayToProbe(menu.INSERTED, schedule.inserted, CLICK_ON_PROBE)

STRATEGY = {"laplace": "independent", "gaussian": "blt"}
"""Each block by itself, or running sums."""


def with_noise(
    name: str,
    way: WayToProbe,
    n_items: int,
    slots: int,
    *,
    horizon: int,
    epsilon: float,
    delta: float,
    visits: int = 1,
    ledger: Ledger | None = None,
    coins: Coins | None = None,
    patience: Patient = None,
) -> Learner:
    """Cells are published with the noise, and by the plan, whose bound is least; all releases are paid for here."""
    frame = Frame(
        name, n_items, slots, horizon=horizon, visits=visits, ledger=ledger, coins=coins, patience=patience
    )
    horizon = _validate.positive_int(horizon, "horizon")
    asked = Budget(epsilon, delta, frame.unit, "zcdp" if delta else "pure")
    theorem, plans = way.theorem(frame.slots), list[tuple[float, Plan]]()
    for noise in _noises(way, asked, frame.ledger):
        limit = float(_spent(asked, noise).limit)
        plan = planned(theorem, frame.n_items, horizon, noise, limit, PAYOFF_TICKS, frame.patience.ahead)
        plans.append((plan.bound(theorem, spread_ahead(noise, plan.blocks, limit), PAYOFF_TICKS), plan))
    plan = min(plans, key=lambda found: found[0])[1]
    budget = _spent(asked, plan.noise)
    cells = PrivateSum(
        frame.slots * frame.n_items,
        schedule=plan.contributions,
        cost=budget.share(),
        ledger=Ledger(budget) if frame.ledger is None else frame.ledger,
        strategy=STRATEGY[plan.noise],
        clip=Clip("cell", ticks=PAYOFF_TICKS),
        name=frame.name,
    )
    return Learner(
        ProbingPolicy(frame, way, plan, cells, budget, {"epsilon": asked.epsilon, "delta": asked.delta})
    )


def _noises(way: WayToProbe, asked: Budget, ledger: Ledger | None) -> tuple[Noise, ...]:
    """Which noise may be taken; of two, that with the lesser bound is."""
    if way.reacting or asked.delta == 0:
        return ("laplace",)
    if ledger is not None:
        return ("laplace",) if ledger.budget.accountant == "pure" else ("gaussian",)
    return ("laplace", "gaussian")


def _spent(asked: Budget, noise: Noise) -> Budget:
    """What is spent of the budget with that noise: with Laplace noise no delta."""
    if noise == "laplace":
        return Budget(asked.epsilon, 0.0, asked.unit, "pure")
    return Budget(asked.epsilon, asked.delta, asked.unit, "continuous-gaussian")


def without_noise(
    name: str,
    way: WayToProbe,
    n_items: int,
    slots: int,
    *,
    horizon: int,
    coins: Coins | None = None,
    patience: Patient = None,
) -> Learner:
    """Cells are published as they are. Planned for `horizon` rounds, after which nothing more is learned."""
    frame = Frame(name, n_items, slots, coins=coins, patience=patience)
    horizon = _validate.positive_int(horizon, "horizon")
    plan = planned(
        way.theorem(frame.slots), frame.n_items, horizon, "none", 1.0, PAYOFF_TICKS, frame.patience.ahead
    )
    cells = ExactSum(
        frame.slots * frame.n_items, schedule=plan.contributions, clip=Clip("cell", ticks=PAYOFF_TICKS)
    )
    return Learner(ProbingPolicy(frame, way, plan, cells, None, {"horizon": horizon}))


def _entry(
    name: str,
    way: WayToProbe,
    recipe: Callable[Concatenate[str, WayToProbe, P], Learner],
    summary: str,
    advice: Advice,
    audited_on: tuple[Shape, ...] = (),
) -> Entry[P]:
    """An entry for one way to probe. A recipe without noise has to know for how many rounds to plan."""
    make, private = partial(recipe, name, way), recipe == with_noise

    def for_its_rounds(setting: Setting, *, coins: Coins | None, ledger: Ledger | None) -> Learner:
        sizes = setting.n_items, setting.slots
        return without_noise(
            name, way, *sizes, horizon=setting.rounds, coins=coins, patience=setting.patience
        )

    fits, reads = None if private else for_its_rounds, way.worth.reader.kinds
    return Entry(name, make, reads, summary, advice, fits=fits, private=private, audited_on=audited_on)


BanditBlocks = _entry(
    "bandit-blocks",
    PROBES_END_THE_SLATE,
    with_noise,
    "Hedge experts that probe in balanced blocks, published with noise; bandit; private; proved",
    Advice("(ε, δ)", "T^(2/3)", "sums", "with one reward per slate, where a bound is wanted"),
    audited_on=((1, 1, 4),),
)
OpenBanditBlocks = _entry(
    "bandit-blocks-open",
    PROBES_END_THE_SLATE,
    without_noise,
    "bandit-blocks without noise; not private; proved",
    Advice("none", "T^(2/3)", "sums", "as what bandit blocks could learn without noise"),
)
BanditBlocksFull = _entry(
    "bandit-blocks-full",
    PROBES_KEEP_THE_OTHERS,
    with_noise,
    "as bandit-blocks, and slates stay full while items are tried; private; proved to half of the best",
    Advice("(ε, 0)", "½: T^(2/3)", "sums", "as bandit blocks, but no slate is short"),
    audited_on=((1, 1, 2),),
)
OpenBanditBlocksFull = _entry(
    "bandit-blocks-full-open",
    PROBES_KEEP_THE_OTHERS,
    without_noise,
    "bandit-blocks-full without noise; not private; proved to half of the best",
    Advice("none", "½: T^(2/3)", "sums", "as the same without noise"),
)
RankedClicks = _entry(
    "ranked-clicks",
    PROBES_ARE_PUT_IN,
    with_noise,
    "Hedge experts that probe one slot at a time and read clicks, published with noise; private; proved",
    Advice("(ε, δ)", "T^(2/3)", "sums", "with clicks, where a bound is wanted"),
    audited_on=((1, 1, 2),),
)
OpenRankedClicks = _entry(
    "ranked-clicks-open",
    PROBES_ARE_PUT_IN,
    without_noise,
    "ranked-clicks without noise; not private; proved",
    Advice("none", "T^(2/3)", "sums", "as what ranked clicks could learn without noise"),
)
