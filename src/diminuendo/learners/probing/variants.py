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

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.entry import Advice, Entry, Fits
from diminuendo.learners.base.feedback import Clicks, Payoffs
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.patience import Patient
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.probing import draw, schedule
from diminuendo.learners.probing.policy import ProbingPolicy, WayToProbe
from diminuendo.learners.probing.schedule import PAYOFF_TICKS, Noise, Plan, planned, spread_ahead
from diminuendo.learners.probing.worth import ClickOnProbe, PayoffOfProbe
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import Coins
from diminuendo.sums.clip import Clip
from diminuendo.sums.exact_sum import ExactSum
from diminuendo.sums.private_sum import PrivateSum

PROBES_END_THE_SLATE = WayToProbe(draw.SHORT, schedule.short, PayoffOfProbe())
PROBES_KEEP_THE_OTHERS = WayToProbe(draw.FULL, schedule.full, PayoffOfProbe(), reacting=True)
PROBES_ARE_PUT_IN = WayToProbe(draw.INSERTED, schedule.inserted, ClickOnProbe())

STRATEGY = {"laplace": "independent", "gaussian": "blt"}
"""Each block by itself, or running sums."""


def bandit_blocks(
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
    """Payoffs; probes end the slate; cells are published with noise."""
    frame = Frame(
        "bandit-blocks", n_items, slots, horizon=horizon, visits=visits, ledger=ledger, coins=coins, patience=patience
    )  # fmt: skip
    return _with_noise(frame, PROBES_END_THE_SLATE, horizon, epsilon, delta)


def bandit_blocks_full(
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
    """Payoffs; probes keep the other slots; cells are published with noise."""
    frame = Frame(
        "bandit-blocks-full", n_items, slots, horizon=horizon, visits=visits, ledger=ledger, coins=coins,
        patience=patience,
    )  # fmt: skip
    return _with_noise(frame, PROBES_KEEP_THE_OTHERS, horizon, epsilon, delta)


def ranked_clicks(
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
    """Clicks; the item that is tried is put into its slot; cells are published with noise."""
    frame = Frame(
        "ranked-clicks", n_items, slots, horizon=horizon, visits=visits, ledger=ledger, coins=coins, patience=patience
    )  # fmt: skip
    return _with_noise(frame, PROBES_ARE_PUT_IN, horizon, epsilon, delta)


def bandit_blocks_open(
    n_items: int, slots: int, *, horizon: int, coins: Coins | None = None, patience: Patient = None
) -> Learner:
    """Payoffs; probes end the slate; no noise. Planned for `horizon` rounds, after which nothing more is learned."""
    frame = Frame("bandit-blocks-open", n_items, slots, coins=coins, patience=patience)
    return _without_noise(frame, PROBES_END_THE_SLATE, horizon)


def bandit_blocks_full_open(
    n_items: int, slots: int, *, horizon: int, coins: Coins | None = None, patience: Patient = None
) -> Learner:
    """Payoffs; probes keep the other slots; no noise. Planned for `horizon` rounds, as `bandit_blocks_open`."""
    frame = Frame("bandit-blocks-full-open", n_items, slots, coins=coins, patience=patience)
    return _without_noise(frame, PROBES_KEEP_THE_OTHERS, horizon)


def ranked_clicks_open(
    n_items: int, slots: int, *, horizon: int, coins: Coins | None = None, patience: Patient = None
) -> Learner:
    """Clicks, without noise. Planned for `horizon` rounds, after which nothing more is learned."""
    frame = Frame("ranked-clicks-open", n_items, slots, coins=coins, patience=patience)
    return _without_noise(frame, PROBES_ARE_PUT_IN, horizon)


def _with_noise(frame: Frame, way: WayToProbe, horizon: int, epsilon: float, delta: float) -> Learner:
    """The noise, and the plan for it, whose bound is least; all releases are paid for here."""
    horizon = _validate.positive_int(horizon, "horizon")
    asked = Budget(epsilon, delta, frame.unit, "zcdp" if delta else "pure")
    theorem, plans = way.theorem(frame.slots), list[tuple[float, Plan]]()
    for noise in _noises(way, asked, frame.ledger):
        limit = float(_spent(asked, noise).limit)
        plan = planned(theorem, frame.n_items, horizon, noise, limit, PAYOFF_TICKS)
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


def _without_noise(frame: Frame, way: WayToProbe, horizon: int) -> Learner:
    horizon = _validate.positive_int(horizon, "horizon")
    plan = planned(way.theorem(frame.slots), frame.n_items, horizon, "none", 1.0, PAYOFF_TICKS)
    cells = ExactSum(
        frame.slots * frame.n_items, schedule=plan.contributions, clip=Clip("cell", ticks=PAYOFF_TICKS)
    )
    return Learner(ProbingPolicy(frame, way, plan, cells, None, {"horizon": horizon}))


def _for_its_rounds(name: str, make: Callable[..., Learner]) -> Fits:
    """A recipe without noise needs to know for how many rounds to plan, and no ledger can pay for it."""

    def fits(setting: Setting, *, coins: Coins | None, ledger: Ledger | None) -> Learner:
        if ledger is not None:
            raise InvalidInput(f"{name!r} promises nothing; no ledger can pay for what it shows.")
        return make(setting.n_items, setting.slots, horizon=setting.rounds, coins=coins)

    return fits


BanditBlocks = Entry(
    "bandit-blocks",
    bandit_blocks,
    reads=Payoffs.kinds,
    summary="Hedge experts that probe in balanced blocks, published with noise; bandit; private; proved",
    advice=Advice("(ε, δ)", "T^(2/3)", "sums", "where only payoffs come back and a bound is wanted"),
    audited_on=((1, 1, 4),),
)
OpenBanditBlocks = Entry(
    "bandit-blocks-open",
    bandit_blocks_open,
    reads=Payoffs.kinds,
    summary="bandit-blocks without noise; not private; proved",
    advice=Advice("none", "T^(2/3)", "sums", "as what bandit blocks could learn without noise"),
    fits=_for_its_rounds("bandit-blocks-open", bandit_blocks_open),
    private=False,
)
BanditBlocksFull = Entry(
    "bandit-blocks-full",
    bandit_blocks_full,
    reads=Payoffs.kinds,
    summary="as bandit-blocks, and slates stay full while items are tried; private; proved to half of the best",
    advice=Advice("(ε, 0)", "½: T^(2/3)", "sums", "as bandit blocks, but no slate is short"),
    audited_on=((1, 1, 2),),
)
OpenBanditBlocksFull = Entry(
    "bandit-blocks-full-open",
    bandit_blocks_full_open,
    reads=Payoffs.kinds,
    summary="bandit-blocks-full without noise; not private; proved to half of the best",
    advice=Advice("none", "½: T^(2/3)", "sums", "as the same without noise"),
    fits=_for_its_rounds("bandit-blocks-full-open", bandit_blocks_full_open),
    private=False,
)
RankedClicks = Entry(
    "ranked-clicks",
    ranked_clicks,
    reads=Clicks.kinds,
    summary="Hedge experts that probe one slot at a time and read clicks, published with noise; private; proved",
    advice=Advice("(ε, δ)", "T^(2/3)", "sums", "where clicks come back and a bound is wanted"),
    audited_on=((1, 1, 2),),
)
OpenRankedClicks = Entry(
    "ranked-clicks-open",
    ranked_clicks_open,
    reads=Clicks.kinds,
    summary="ranked-clicks without noise; not private; proved",
    advice=Advice("none", "T^(2/3)", "sums", "as what ranked clicks could learn without noise"),
    fits=_for_its_rounds("ranked-clicks-open", ranked_clicks_open),
    private=False,
)
