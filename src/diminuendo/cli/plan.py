"""The command `plan`: what to take and why, what to expect, what epsilon buys, and all candidates."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from diminuendo.cli.screen import Plugins, console, make_room, progress_bars, say, write_json
from diminuendo.cli.simulate import FEEDBACKS
from diminuendo.cli.typed import (
    MaxRoundsPerUser,
    PrivateContext,
    ResponseRate,
    Retention,
    Sample,
    numbers_in,
)
from diminuendo.errors import InvalidInput

if TYPE_CHECKING:
    from diminuendo.learners import Setting
    from diminuendo.learners.base.entry import Advice
    from diminuendo.plan import Candidate, FirstLook, Plan
    from diminuendo.privacy.budget import Guarantee
    from diminuendo.types import FeedbackKind


def plan_command(
    items: Annotated[int, typer.Option(help="Number of items.")],
    slots: Annotated[int, typer.Option(help="Items in a slate.")],
    rounds: Annotated[int, typer.Option(help="Expected number of users.")],
    epsilon: Annotated[float, typer.Option(help="Privacy budget.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Privacy budget; 0 for pure privacy.")] = 1e-6,
    feedback: Annotated[str, typer.Option(help=f"What comes back: {', '.join(FEEDBACKS)}.")] = "full",
    store: Annotated[
        bool, typer.Option("--store/--no-store", help="Whether feedback of single users may be stored.")
    ] = True,
    adversarial: Annotated[
        bool,
        typer.Option(
            "--adversarial",
            help="Choose the learner with the least proved regret for every sequence of users.",
        ),
    ] = False,
    cares_about: Annotated[
        float | None, typer.Option(help="How many items one user cares about, if that is known.")
    ] = None,
    max_rounds_per_user: MaxRoundsPerUser = 1,
    delay: Annotated[
        str,
        typer.Option(
            help="Feedback delay in rounds, also waited for; as 1000, or exponential:1000 (the mean)."
        ),
    ] = "0",
    response_rate: ResponseRate = 1.0,
    contexts: Annotated[
        str | None,
        typer.Option(help="Categories of each feature; as 20 or 20,24: 20 countries, 24 hours."),
    ] = None,
    private_context: PrivateContext = False,
    retention: Retention = None,
    sample: Sample = 1,
    plot: Annotated[
        Path | None, typer.Option(help="Draw loss against epsilon into this file, .png or .svg.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write all of it to this file; - for the screen.")
    ] = None,
    plugin: Plugins = None,
) -> None:
    """Which learner to use, its guarantee, and what a budget will cost; from public facts alone."""
    from diminuendo import _validate
    from diminuendo.plan import plan

    kind = cast("FeedbackKind", _validate.one_of(feedback, FEEDBACKS, "--feedback"))
    sizes = None if contexts is None else numbers_in(contexts, int, "--contexts")
    result = plan(
        items,
        slots,
        rounds,
        epsilon=epsilon,
        delta=delta,
        feedback=kind,
        store_users=store,
        adversarial=adversarial,
        cares_about=cares_about,
        max_rounds_per_user=max_rounds_per_user,
        delay=delay,
        response_rate=response_rate,
        contexts=sizes,
        private_context=private_context,
        retention=retention,
        sample=sample,
    )
    if plot is not None:
        plottable(result, plot)  # refused before any work is done
    make_room(plot, json_file)
    with progress_bars() as bars:
        result = result.with_prices(progress=bars)
    if plot is not None:
        # Here, because matplotlib takes its time to load.
        from diminuendo.simulate.figures.prices import plot_prices, price_curve

        plot_prices(price_curve(result), plot)
    content = result.as_json()
    if str(json_file) == "-":
        print(json.dumps(content, indent=2, allow_nan=False))
        return
    show_plan(result)
    if plot is not None:
        say(f"Plot: {plot}")
    write_json("Numbers", json_file, content)


def show_plan(plan: Plan) -> None:
    """The answer first, then the numbers behind it."""
    setting = plan.setting
    say(
        f"{setting.slots} of {setting.n_items:,} items, {setting.rounds:,} users, {setting.feedback} feedback, "
        f"epsilon {setting.epsilon:g}, delta {setting.delta:g}{_waits(setting)}"
    )
    console.print()
    console.print(_answer(plan))
    console.print()
    if plan.prices:
        say("Forecast by epsilon")
        console.print(_price_table(plan))
    if plan.half_way is not None or plan.prices:
        say(plan.model, style="dim")
        console.print()
    say("All learners for this setting")
    console.print(_candidates(plan))
    say(
        "ε: proved here, and by the paper's own analysis. Regret: proved, at most this much per user below "
        "(1 - 1/e) of the best slate, for every sequence of users; - where that is vacuous.",
        style="dim",
    )
    for note in dict.fromkeys(note for one in plan.candidates for note in one.notes):
        say(f"Note: {note}")
    for name, reason in plan.left_out.items():
        say(f"Left out: {name}. {reason}")


def _waits(setting: Setting) -> str:
    """How late answers are, and how many come; nothing where all come at once."""
    from diminuendo.learners.base.feedback_window import as_feedback_window
    from diminuendo.learners.base.replay import Delay

    feedback_window = as_feedback_window(setting.feedback_window)
    said = Delay(feedback_window.ahead, response_rate=feedback_window.response_rate).said()
    if not said:
        return ""
    share = feedback_window.ahead / setting.rounds
    lost = f" (of the first {share:.1%} of users no feedback is in time)" if feedback_window.ahead else ""
    return f", {said}{lost}"


def plottable(plan: Plan, path: Path) -> None:
    """Refuse a picture that could not be drawn."""
    if path.suffix not in (".png", ".svg"):
        raise InvalidInput(f"A plot is a .png or an .svg file; got {path}.")
    if plan.recommended == "random":
        raise InvalidInput(f"There is nothing to plot: {plan.why}")


def _answer(plan: Plan) -> Table:
    """What to take, why, and what to expect: a word to the left, sentences to the right."""
    from diminuendo.learners import LEARNERS

    best, rounds = plan[plan.recommended], plan.setting.rounds
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="dim")
    table.add_column()
    table.add_row("Learner", Text(best.name, style="bold"))
    table.add_row("Why", plan.why)
    with_contexts = None if plan.contexts is None else plan.contexts.promise
    table.add_row("Guarantee", f"{with_contexts or best.guarantee}.")
    if best.name in LEARNERS:
        table.add_row("Stores", _kept(LEARNERS[best.name].advice))
    table.add_row("Regret", _proved(best, rounds))
    if plan.noise is not None:
        table.add_row("Noise", _noise(plan))
    if plan.first_look is not None:
        table.add_row("Noise", _slate_noise(plan.first_look, plan.setting.n_items))
    if plan.too_few is not None:
        table.add_row("Warning", Text(plan.too_few, style="bold"))
    if plan.recommended != "random":
        table.add_row("Forecast", _forecast(plan))
    if plan.contexts is not None:
        table.add_row("Contexts", plan.contexts.said)
    return table


def _kept(advice: Advice) -> str:
    kept = advice.memory.capitalize()
    return (
        f"{kept}, in memory and in snapshots." if advice.keeps_users else f"{kept}, no data of a single user."
    )


def _proved(best: Candidate, rounds: int) -> str:
    if best.bound is None:
        return "No bound is proved: adversarial users are not covered."
    if not best.says_something(rounds):
        return f"At most {best.bound / rounds:,.2f} per user, which is vacuous: no reward is larger."
    return f"At most {best.bound / rounds:.3f} per user, for every sequence of users."


def _noise(plan: Plan) -> str:
    """The noise of privacy at the last release, in users."""
    assert plan.noise is not None
    users, apart = plan.noise.users, plan.noise.apart
    sampled = " of the sample" if plan.setting.sample > 1 else ""
    cares = f"if a user wants {plan.cares_about:g} item{'' if plan.cares_about == 1 else 's'}"
    if apart > users:
        return (
            f"After {users:,} users{sampled}, no two items can be told apart: demand would have to differ "
            f"by {apart:,.0f} users, {cares}."
        )
    return (
        f"After {users:,} users{sampled}, items whose demand differs by about {apart:,.0f} users can be told "
        f"apart: the better one ranks first 19 times in 20, {cares}."
    )


def _slate_noise(look: FirstLook, n_items: int) -> str:
    """The noise of privacy at the first release, in users."""
    items = "all items" if look.seen == n_items else f"{look.seen:,} items"
    return (
        f"The first {look.took:,} users see {items}, each slate {look.users:,} users. Two slates whose rewards differ "
        f"by {_few(look.apart)} of these users can be told apart: the better one ranks first 19 times in 20."
    )


def _forecast(plan: Plan) -> str:
    said = []
    if plan.half_way is not None:
        said.append(f"Half of the way from random slates to hindsight after about {plan.half_way:,} users.")
    elif plan.noise is not None or (plan.first_look is not None and plan.prices):
        said.append("This is too few users to get half of the way from random slates to hindsight.")
    here = plan.price
    if here is not None:
        said.append(
            f"Loss over the whole run: {percent(here.loss)} of the reward of hindsight; random slates lose "
            f"{percent(plan.random_loss)}."
            + (" Use random slates, which cost no budget." if here.loss >= plan.random_loss else "")
        )
    return " ".join(said) or "None for this learner."


def _price_table(plan: Plan) -> Table:
    """One row for every epsilon."""
    sums, slates, rows = plan.noise is not None, plan.first_look is not None, plan.prices
    columns: dict[str, list[str]] = {
        "epsilon": [("→ " if row is plan.price else "") + f"{row.epsilon:g}" for row in rows]
    }
    if sums or slates:
        columns["resolution"] = ["-" if row.apart is None else f"{_few(row.apart)} users" for row in rows]
    if slates:
        columns["first look"] = ["-" if row.look is None else f"{row.look.took:,} users" for row in rows]
    if sums or slates or any(row.half_way is not None for row in rows):
        columns["half way after"] = [
            "never" if row.half_way is None else f"{row.half_way:,} users" for row in rows
        ]
    columns["loss"] = [percent(row.loss) for row in rows]
    # Runs differ more than where users say all they want.
    if slates and any(len(row.losses) > 1 for row in rows):
        columns["runs"] = [", ".join(percent(loss) for loss in sorted(row.losses)) for row in rows]
    table = Table(box=box.SIMPLE_HEAD)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for row, *cells in zip(rows, *columns.values(), strict=True):
        table.add_row(*cells, style="bold" if row is plan.price else None)
    return table


def _few(users: float) -> str:
    """A number of users, and a digit more where it is next to nothing."""
    return f"{users:,.0f}" if users >= 1.5 else f"{users:.1f}"


def percent(share: float) -> str:
    """A share in percent, to one or two digits: forecasts are not known better."""
    if share < 0.0005:
        return "under 0.1 %"
    if share > 0.995:
        return "over 99 %"
    return f"{100 * share:.1f} %" if share < 0.0095 else f"{100 * share:.0f} %"


def _candidates(plan: Plan) -> Table:
    """All candidates, the recommended one marked."""
    rounds = plan.setting.rounds
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    rows = [_row(one, rounds) for one in plan.candidates]
    shown = [name for name in rows[0] if name == "learner" or any(row[name] for row in rows)]
    for name in shown:
        table.add_column(name, justify="left" if name == "learner" else "right", no_wrap=True)
    for one, row in zip(plan.candidates, rows, strict=True):
        best = one.name == plan.recommended
        row["learner"] = ("→ " if best else "  ") + row["learner"]
        table.add_row(*(row[name] for name in shown), style="bold" if best else None)
    return table


def _row(one: Candidate, rounds: int) -> dict[str, str]:
    return {
        "learner": one.name,
        "ε": _epsilon(one.guarantee),
        "paper's ε": "" if one.claim is None else _epsilon(one.claim),
        "rate": f"{one.parameters['eta']:.3g}" if "eta" in one.parameters else "",
        "explores": f"{one.parameters['gamma']:.3f}" if "gamma" in one.parameters else "",
        "regret": f"{one.bound / rounds:.3f}" if one.bound and one.says_something(rounds) else "-",
    }


def _epsilon(guarantee: Guarantee) -> str:
    return "none" if math.isinf(guarantee.epsilon) else f"{guarantee.epsilon:.3g}"
