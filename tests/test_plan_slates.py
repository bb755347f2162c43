"""Plans where rewards or clicks come back: who is taken, what a first look takes, and how far off forecasts are."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats
from typer.testing import CliRunner

from diminuendo import LEARNERS, SeededSource, Setting, Users, greedy, make, msweb
from diminuendo.cli.app import app
from diminuendo.learners.recommend import RULES
from diminuendo.learners.slates.policy import SlatePolicy
from diminuendo.plan import plan
from diminuendo.plan.first_look import ENOUGH, TOO_FEW, FirstLook, first_look
from diminuendo.plan.model import PublicModel
from diminuendo.plan.noise import SURE
from diminuendo.plan.price import (
    MOST_SHOWN,
    MOST_TRIED,
    STRETCH,
    Price,
    _half_way,
    _run,
    _sample,
    prices,
    short_run,
)
from diminuendo.types import FeedbackKind, Floats
from tests.kit import real_data
from tests.kit.slow import mostly_slow
from tests.kit.statistics import ALPHA

RUNNER = CliRunner()
TAKEN: dict[FeedbackKind, str] = {"bandit": "slate-totals", "click": "slate-clicks"}
BOTH = pytest.mark.parametrize("feedback", list(TAKEN))


# Who is taken.


@BOTH
def test_the_same_learner_is_planned_and_made(feedback: FeedbackKind) -> None:
    for delta, max_rounds_per_user, store in itertools.product((0.0, 1e-6), (1, 3), (True, False)):
        result = plan(
            50,
            5,
            10_000,
            delta=delta,
            feedback=feedback,
            max_rounds_per_user=max_rounds_per_user,
            store_users=store,
        )
        assert result.recommended == TAKEN[feedback]
        assert make("private", result.setting).name == TAKEN[feedback]
        promise = result[result.recommended].guarantee
        assert promise.epsilon == pytest.approx(1.0)
        assert promise.delta == 0.0
        assert result.setting.max_rounds_per_user == max_rounds_per_user
        assert max_rounds_per_user == 1 or f"{max_rounds_per_user} rounds" in str(promise)
        why = next(rule.why for rule in RULES if rule.learner == TAKEN[feedback])
        assert result.why == why
        assert "No regret bound is proved" in why


# The first look.


SIZES = [(60, 5, 4_000, 1.0, 1), (61, 5, 4_000, 0.3, 2), (300, 4, 900, 0.1, 1), (7, 3, 60, 5.0, 1)]


@BOTH
@pytest.mark.parametrize(("n", "k", "rounds", "epsilon", "max_rounds_per_user"), SIZES)
def test_the_first_look_is_what_the_learner_does(
    n: int, k: int, rounds: int, epsilon: float, max_rounds_per_user: int, feedback: FeedbackKind
) -> None:
    setting = Setting(n, k, rounds, feedback, epsilon, 0.0, max_rounds_per_user)
    learner = LEARNERS[TAKEN[feedback]].for_setting(setting, rng=SeededSource(1))
    look = first_look(learner)
    assert look is not None
    learner.choose(0)
    policy = learner.policy
    assert isinstance(policy, SlatePolicy)
    block = policy._blocks[-1].block
    assert set(block.sizes) == {look.users}
    assert look.took == min(rounds, block.sizes.sum())
    assert look.seen == len(set(block.slates.ravel()))
    scale = policy._counts.scale(1) / policy._counts.ticks
    assert look.deviation == pytest.approx(math.sqrt(2) * scale, rel=1e-3)


def test_two_slates_are_told_apart_as_often_as_is_said() -> None:
    look = first_look(make("private", Setting(60, 5, 4_000, "bandit", 0.5, 0.0)))
    assert look is not None
    law = stats.laplace(scale=look.deviation / math.sqrt(2))

    def ahead(apart: float) -> float:
        """How often a number that is larger by so much stays larger when both get noise."""
        ranges = [(-200, -apart), (-apart, 0), (0, 200)]
        return sum(
            integrate.quad(lambda noise: law.pdf(noise) * law.cdf(apart + noise), *ends)[0] for ends in ranges
        )

    assert ahead(look.apart) == pytest.approx(SURE, abs=1e-7)
    assert ahead(1.01 * look.apart) > SURE + 1e-4, "one percent off would be noticed"


def looked(n: int, k: int, rounds: int, epsilon: float, max_rounds_per_user: int = 1) -> FirstLook:
    result = plan(
        n, k, rounds, epsilon=epsilon, feedback="click", max_rounds_per_user=max_rounds_per_user
    ).first_look
    assert result is not None
    return result


def test_what_it_would_take_would_be_enough() -> None:
    for max_rounds_per_user in (1, 3):
        few = looked(300, 5, 2_000, 0.3, max_rounds_per_user)
        assert few.too_few
        assert few.epsilon is not None
        more = looked(300, 5, few.enough, 0.3, max_rounds_per_user)
        assert more.epsilon == pytest.approx(0.3, rel=1e-3), "so many users would need just this epsilon"
        louder = looked(300, 5, 2_000, few.epsilon, max_rounds_per_user)
        assert louder.enough == pytest.approx(2_000, rel=1e-3), (
            "with that epsilon just these users are needed"
        )
        assert not more.too_few
        assert not louder.too_few
    edge = math.ceil(TOO_FEW * looked(300, 5, 2_000, 0.3).whole)
    assert not looked(300, 5, edge, 0.3).too_few
    assert looked(300, 5, edge - 10, 0.3).too_few
    assert looked(300, 5, 1_000, 0.3).epsilon is None, "eight users for each of 60 slates, four times over"
    for other in ("fi-dp", "slate-clicks:private=false"):
        kind = LEARNERS[other]
        reads: FeedbackKind = "full" if "full" in kind.reads else "click"
        assert first_look(kind.for_setting(Setting(10, 2, 100, reads))) is None


def way(found: list[float], low: float, high: float) -> float:
    """How much of the way from random choice to hindsight is made."""
    return (float(np.mean(found)) - low) / (high - low)


@pytest.mark.slow
@BOTH
def test_how_far_a_run_comes_with_too_few_users_and_with_enough(feedback: FeedbackKind) -> None:
    """As first_look.py says: little with half a first look, much with four."""
    model, made = PublicModel(60, 3.0), {}
    for looks in (0.5, ENOUGH):
        rounds = int(looks * looked(60, 5, 1_000, 0.5).whole)
        setting = Setting(60, 5, rounds, feedback, 0.5, 0.0)
        runs = []
        for seed in range(6):
            users = model.users(rounds, seed)
            learner = make("private", setting, rng=SeededSource(seed))
            runs.append(float(users.values(learner.replay(users)).mean()))
        made[looks] = way(runs, model.random(5), model.greedy(5))
    assert made[0.5] < 0.2
    assert 0.29 < made[ENOUGH] < 0.86


# Short runs.


def test_short_runs_where_little_comes_back() -> None:
    short = Setting(MOST_TRIED, 5, MOST_SHOWN, "click", 0.1, 0.0)
    same = short_run("slate-clicks", short)
    assert same.setting == short
    assert (same.later, same.each) == (0, 1.0)
    assert same.said(short) == ""
    long = Setting(MOST_TRIED, 5, 3 * MOST_SHOWN, "click", 0.1, 0.0)
    first = short_run("slate-clicks", long)
    assert first.setting == short, "the same epsilon"
    assert first.later == 2 * MOST_SHOWN
    assert "40,000 users are simulated" in first.said(long)
    quick = short_run("random", Setting(50, 5, 10**6, "bandit", 0.1, 0.0))
    assert (quick.setting.rounds, quick.later) == (400_000, 600_000)
    wide = Setting(4 * MOST_TRIED, 5, 8_000, "bandit", 0.1, 0.0)
    narrow = short_run("slate-totals", wide)
    assert (narrow.setting.n_items, narrow.setting.rounds) == (MOST_TRIED, 2_000)
    assert (narrow.later, narrow.each) == (0, 4.0)
    assert "1,000 most wanted things" in narrow.said(wide)
    values = np.concatenate([np.zeros(70), np.ones(10)])  # the last eighth earns everything
    assert same.mean(values) == pytest.approx(1 / 8)
    assert first._replace(later=160).mean(values) == pytest.approx((10 + 160) / 240)


def runs(setting: Setting, count: int) -> list[tuple[float, Floats]]:
    """What single runs lose, and what their slates are worth."""
    model, name = PublicModel(setting.n_items, 3.0), TAKEN[setting.feedback]
    short = short_run(name, setting)
    result = []
    for seed in range(count):
        learner = make(name, short.setting, rng=SeededSource(seed))
        result.append(_run(learner, short, _sample(model, short.setting, seed)))
    return result


# Forecasts.


def test_half_way_is_the_first_good_stretch() -> None:
    model, setting = PublicModel(20, 3.0), Setting(20, 3, 1_000, "click", 1.0, 0.0)
    wanted = (model.random(3) + model.greedy(3)) / 2
    short = short_run("slate-clicks", setting)
    worth = np.zeros(1_000)
    assert _half_way(worth, model, setting, short) is None
    assert _half_way(worth + wanted, model, setting, short) == 0
    worth[4 * STRETCH :] = wanted
    assert _half_way(worth, model, setting, short) == 4 * STRETCH
    worth[STRETCH] = 1.0  # one good slate is luck
    assert _half_way(worth, model, setting, short) == 4 * STRETCH
    assert _half_way(worth, model, setting, short._replace(each=3.0)) == 12 * STRETCH
    assert _half_way(worth, model, Setting(20, 3, 1_000, "full"), short) is None, "others have a formula"


def test_what_slates_are_worth_is_what_users_get() -> None:
    """The mean reward of a run is the mean of the probabilities that half way is read from, but for chance."""
    (loss, worth), *_ = runs(Setting(30, 4, 4_000, "bandit", 1.0, 0.0), 1)
    users = PublicModel(30, 3.0).users(4_000, 0)
    spread = math.sqrt(0.25 / 4_000) * float(stats.norm.isf(ALPHA / 2))
    assert (1 - loss) * greedy(users, 4).value == pytest.approx(worth.mean(), abs=spread)
    wrong = np.random.default_rng(0).permutation(worth - 2 * spread)
    assert abs((1 - loss) * greedy(users, 4).value - wrong.mean()) > spread, "a little less would be noticed"


@pytest.mark.slow
@BOTH
def test_forecasts_improve_with_epsilon_and_with_users(feedback: FeedbackKind) -> None:
    sizes = {"little epsilon": (2_000, 0.05), "few users": (150, 2.0), "enough": (2_000, 2.0)}
    losses = {
        name: [loss for loss, _ in runs(Setting(24, 3, rounds, feedback, epsilon, 0.0), 12)]
        for name, (rounds, epsilon) in sizes.items()
    }
    for worse in ("little epsilon", "few users"):
        result = stats.ttest_ind(losses[worse], losses["enough"], alternative="greater", equal_var=False)
        assert result.pvalue < ALPHA


def test_a_plan_with_prices() -> None:
    bare = plan(30, 3, 1_500, feedback="click", cares_about=3.0)
    assert bare.prices == ()
    assert bare.half_way is None
    assert bare.noise is None
    told = bare.with_prices(epsilons=(0.1,))
    assert [price.epsilon for price in told.prices] == [0.1, 1.0]
    assert told.prices == prices("slate-clicks", bare.setting, 3.0, epsilons=(0.1,)), (
        "the same facts, the same"
    )
    assert told.price is told.prices[1]
    assert told.half_way == told.prices[1].half_way
    assert told.half_way is not None
    assert told.prices[0].loss > told.prices[1].loss
    assert told.prices[0].apart == pytest.approx(10 * (told.prices[1].apart or 0))
    record = json.loads(json.dumps(told.as_json(), allow_nan=False))
    assert record["first_look"] == record["forecast"]["prices"][1]["look"]
    assert record["first_look"]["took"] == 160, "ten slates of three things, for 16 users each"
    assert record["forecast"]["prices"][0]["look"]["seen"] == 6, "two slates for 88 of 225 users"
    assert record["too_few"] is None
    several = plan(30, 3, 1_500, feedback="click", cares_about=3.0, epsilon=3.0, max_rounds_per_user=3)
    (shared,) = several.with_prices(epsilons=()).prices
    assert told.price is not None
    assert shared.losses == told.price.losses, "three visits share a budget of 3, each has 1"
    assert record["forecast"]["half_way"] == told.half_way


# On the command line.


ASK = ["plan", "--items", "24", "--slots", "3", "--cares-about", "3"]


@pytest.mark.parametrize("feedback", mostly_slow(TAKEN, ["click"]))
def test_both_on_the_command_line(feedback: FeedbackKind, tmp_path: Path) -> None:
    file, plot = tmp_path / "plan.json", tmp_path / "plan.svg"
    ask = [*ASK, "--rounds", "900", "--feedback", feedback, "--json", str(file), "--plot", str(plot)]
    result = RUNNER.invoke(app, ask)
    assert result.exit_code == 0, result.output
    said, record = " ".join(result.output.split()), json.loads(file.read_text())
    assert f"Learner {TAKEN[feedback]} Why" in said
    assert "(1, 0)-differentially private" in said
    look = record["first_look"]
    assert f"The first {look['took']} users see all items, each slate 16 users." in said
    assert [price["epsilon"] for price in record["forecast"]["prices"]] == [0.1, 0.3, 1, 3, 10]
    assert all(len(price["losses"]) == 2 for price in record["forecast"]["prices"])
    for heading in ("resolution", "first look", "half way after", "runs"):
        assert heading in said
    assert max(map(len, result.output.splitlines())) <= 80
    assert "…" not in said, "nothing is cut off"
    assert "Warning" not in said
    assert plot.read_text().startswith("<?xml")


def test_too_few_users_are_told_what_it_would_take() -> None:
    for rounds, epsilon, epilogue in (
        (300, 0.2, "or an epsilon of about 5.8."),
        (200, 0.2, "alone is not enough."),
    ):
        found = plan(24, 3, rounds, epsilon=epsilon, feedback="bandit")
        assert found.too_few is not None
        # 8 slates for 48 users each, and four times as many
        assert (
            f"requires 384 users to show every item once, and {rounds} are expected: expect little"
            in found.too_few
        )
        assert "about 1,536 users" in found.too_few
        assert found.too_few.endswith(epilogue)
    assert plan(24, 3, 400, epsilon=0.2, feedback="bandit").too_few is None
    result = RUNNER.invoke(app, [*ASK, "--rounds", "200", "--epsilon", "0.2", "--feedback", "click"])
    assert "Warning" in result.output


def test_a_forecast_that_is_hardly_better_than_chance_is_too_few() -> None:
    bare = plan(24, 3, 2_000, feedback="click")
    assert bare.too_few is None
    for share, expected in ((0.79, False), (0.81, True)):
        price = Price(1.0, (share * bare.random_loss,), None, None)
        told = replace(bare, prices=(price,)).too_few
        assert (told is not None) == expected
    assert told is not None
    assert "more users or more epsilon" in told, "as many come as the rule of thumb asks for"


# Real users.


def real(
    users: Users, feedback: FeedbackKind, epsilon: float, seeds: int
) -> tuple[int | None, float, list[float]]:
    """After how many users slates earn half way to hindsight, read off as forecasts are; and the mean loss."""
    setting = Setting(users.n_items, 5, len(users), feedback, epsilon, 0.0)
    best, losses, curves = greedy(users, 5).value, [], []
    floor = make("random", setting, rng=SeededSource(7)).replay(users)
    chance = float(users.values(floor).mean())
    for seed in range(seeds):
        slates = make("private", setting, rng=SeededSource(100 + seed)).replay(users)
        losses.append(1 - float(users.values(slates).mean()) / best)
        shown, which = np.unique(slates, axis=0, return_inverse=True)
        curves.append(np.array([users.values(slate).mean() for slate in shown])[which.ravel()])
    curve, begin = np.mean(curves, axis=0), 0
    while begin < len(curve):
        end = begin + max(STRETCH, begin // 10)
        if curve[begin:end].mean() >= (chance + best) / 2:
            return begin, float(np.mean(losses)), losses
        begin = end
    return None, float(np.mean(losses)), losses


STREAMS = {
    "msweb": (msweb, 3.0),
    "groceries": (real_data.groceries, 4.4),
    "uber": (lambda: real_data.uber(20_000), 15.4),
}


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("name", [pytest.param(name, marks=real_data.needs(name)) for name in STREAMS])
def test_losses_of_real_users_are_as_far_off_as_plans_say(name: str, feedback: FeedbackKind) -> None:
    load, cares = STREAMS[name]
    users = load()
    result = plan(users.n_items, 5, len(users), feedback=feedback, cares_about=cares)
    foretold = result.with_prices(epsilons=())
    _, loss, _ = real(users, feedback, 1.0, seeds=2)
    assert foretold.price is not None
    assert 0.75 * foretold.price.loss < loss < 6 * foretold.price.loss
    assert "between three quarters of their forecast and 6 times" in result.model
