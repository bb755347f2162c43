"""The commands `demo`, `simulate` and `streams`: learners against streams, next to hindsight."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich import box
from rich.table import Table

from diminuendo.cli.opened import opened
from diminuendo.cli.screen import (
    Plugins,
    console,
    errors,
    make_room,
    progress_bars,
    say,
    say_plainly,
    write_json,
)
from diminuendo.cli.typed import (
    MaxRoundsPerUser,
    PrivateContext,
    ResponseRate,
    Retention,
    Sample,
    how_to_read,
    learner_names,
    numbers_in,
    rules_of,
    today_in,
)
from diminuendo.errors import InvalidInput

if TYPE_CHECKING:
    from diminuendo.simulate.result import Sweep
    from diminuendo.simulate.sweeps import Experiment, Tell
    from diminuendo.streams import Users
    from diminuendo.types import FeedbackKind, Progress

# Names that help texts list, written down once more, because the tables they come from take long to load. A test
# compares them with the tables.

STREAMS = ("msweb", "msweb-drift", "msweb-entry", "taste-groups", "taste-labels", "adversary")
"""The names in streams.builtin.BUILTIN."""
FROM_ROWS = ("noisy-or", "best-match", "concave")
"""The names in streams.builtin.FROM_ROWS."""
FEEDBACKS: tuple[FeedbackKind, ...] = ("full", "bandit", "click")
"""The names in types.FEEDBACKS."""
CLICKS = ("cascade", "independent")
"""The names in streams.clicks.MODELS."""

DEMO_LEARNERS = ("nonprivate", "private", "fi-dp", "paper", "random")
DEMO_EPSILONS = (0.1, 1.0, 10.0)
PERSONAL_LEARNERS = ("private", "private-no-contexts", "random")


def demo(
    out: Annotated[Path, typer.Option(help="Where the report and the numbers go.")] = Path("out/demo"),
    seeds: Annotated[int, typer.Option(help="Runs of each learner.")] = 5,
    jobs: Annotated[int, typer.Option(help="Runs at the same time; -1: one per core.")] = -1,
) -> None:
    """Show 5 of 294 items to 32,711 real visitors of a web site, and compare learners with hindsight.

    Then again with the area of entry of each visitor as a context.
    """
    from diminuendo.simulate import Experiment
    from diminuendo.streams import msweb, open_stream

    def experiment(stream: Users, learners: tuple[str, ...]) -> Experiment:
        return Experiment(stream, 5, epsilon=DEMO_EPSILONS, learners=learners, seeds=seeds)

    _run(experiment(msweb(), DEMO_LEARNERS), out, jobs=jobs)
    say_plainly("\nNow with the area of entry as a context; the other areas are to be predicted:")
    entries = open_stream("msweb-entry", context="entry")
    _run(experiment(entries, PERSONAL_LEARNERS), out / "personal", jobs=jobs)


def simulate_command(
    stream: Annotated[list[str], typer.Argument(help=f"Files, or some of: {', '.join(STREAMS)}.")],
    slots: Annotated[str, typer.Option(help="Items in a slate; as 5 or 5,10.")] = "5",
    objective: Annotated[
        str | None, typer.Option(help=f"How to read the rows: {', '.join(FROM_ROWS)}. Default: noisy-or.")
    ] = None,
    feedback: Annotated[str, typer.Option(help=f"What comes back: {', '.join(FEEDBACKS)}.")] = "full",
    clicks: Annotated[str, typer.Option(help=f"Click model: {', '.join(CLICKS)}.")] = "cascade",
    learners: Annotated[
        str | None,
        typer.Option(
            help="Names, separated by commas, with options as in fi-dp:calibration=paper; see `diminuendo learners`. "
            "Default: private (where there is one), nonprivate, random; with --context also private-no-contexts and "
            "private-separate, to compare with."
        ),
    ] = None,
    epsilon: Annotated[str, typer.Option(help="Privacy budgets of private learners; as 1 or .1,1,10.")] = "1",
    delta: Annotated[float, typer.Option(help="Privacy budget of private learners.")] = 1e-6,
    max_rounds_per_user: MaxRoundsPerUser = 1,
    delay: Annotated[
        str,
        typer.Option(
            help="Feedback delay in rounds, also waited for; as 1000, 0,100,1000 or exponential:1000 (the mean)."
        ),
    ] = "0",
    response_rate: ResponseRate = 1.0,
    retention: Retention = None,
    sample: Sample = 1,
    pinned: Annotated[
        str | None,
        typer.Option(help="What the first slots always show: names or numbers of items, as tea,soap."),
    ] = None,
    cap: Annotated[
        list[str] | None,
        typer.Option(help="How many of some items are shown at most; as 2:tea,soap,jam. May be given again."),
    ] = None,
    today: Annotated[
        str | None,
        typer.Option(
            help="The slate that all users are shown now, to compare with: names or numbers, as tea,soap,jam."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each learner with each budget.")] = 5,
    rounds: Annotated[
        str | None, typer.Option(help="Only the first so many rounds; as 1000 or 1000,10000.")
    ] = None,
    items: Annotated[int | None, typer.Option(help="The number of items; else read off the file.")] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="Columns of a table: who, what and how much, as user,film,stars; or who and what, as customer,sku, "
            "where every row is an item that the user wanted. Default: guessed by their names."
        ),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(
            help="The rating that means nothing, and the one that means everything; as 1,5. Default: 0,1."
        ),
    ] = None,
    keep_last: Annotated[
        bool, typer.Option("--keep-last", help="If a user rated an item twice, the last row counts.")
    ] = False,
    time: Annotated[
        str | None, typer.Option(help="The column of a table that says when. Default: guessed by its name.")
    ] = None,
    round_: Annotated[
        str | None,
        typer.Option(
            "--round",
            help="A round is: user (all rows of a user), order or order:COLUMN, session or session:MINUTES (of a "
            "pause), day. Default: an order or session, if users have several, else a user.",
        ),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out rows that cannot be read, and say how many.")
    ] = False,
    ignore_case: Annotated[
        bool, typer.Option("--ignore-case", help="Tea and tea are one item, ADA and ada one user.")
    ] = False,
    users_without: Annotated[
        int,
        typer.Option(
            help="Add so many users, spread evenly, who want nothing: a table has no rows of theirs."
        ),
    ] = 0,
    context: Annotated[
        str | None,
        typer.Option(
            help="Features of a user on arrival: columns of the file, or of NAME.contexts.csv beside it, as "
            "country,time:hour; of baskets entry, the first item."
        ),
    ] = None,
    private_context: PrivateContext = False,
    out_of_core: Annotated[
        bool,
        typer.Option(
            "--out-of-core",
            help="For Parquet files larger than memory: map their rows from a temporary folder on disk. Rows of a "
            "user are adjacent, and a user is a round.",
        ),
    ] = False,
    jobs: Annotated[int, typer.Option(help="Runs at the same time; -1: one per core.")] = -1,
    ray: Annotated[
        str | None,
        typer.Option(help="Let the Ray cluster at this address do the work; local: start one here."),
    ] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds for each exact optimum.")] = 20.0,
    out: Annotated[
        Path | None, typer.Option(help="Keep finished runs, numbers and a report in this folder.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the numbers to this file.")] = None,
    plugin: Plugins = None,
) -> None:
    """Run learners against streams and compare them with hindsight; several slots, budgets and rounds make a sweep."""
    from diminuendo import _validate

    # What was typed wrong is refused before anything else is loaded, and what cannot be read before the rest is.
    _validate.one_of(feedback, FEEDBACKS, "--feedback")
    _validate.one_of(clicks, CLICKS, "--clicks")
    if private_context and context is None:
        raise InvalidInput(
            "--private-context says how contexts are treated; name them too, as --context country."
        )
    how = how_to_read(columns, scale) | {
        "keep_last": keep_last,
        "time": time,
        "round": round_,
        "skip_bad": skip_bad,
        "ignore_case": ignore_case,
        "users_without": users_without,
        "context": context,
        "private_context": private_context,
    }
    counts = numbers_in(slots, int, "--slots")
    now = today_in(today)
    cuts = None if rounds is None else numbers_in(rounds, int, "--rounds")
    budgets = numbers_in(epsilon, float, "--epsilon")
    make_room(json_file)
    crowds = opened(stream, objective, items, how, out_of_core, max_rounds_per_user)
    rules = rules_of(pinned, cap or [], crowds)
    names = _names(learners, feedback, ruled=rules is not None)
    if learners is None and context is not None:
        names = _compared(names, crowds[0], feedback, delta, delay.split(","), response_rate)
    from diminuendo.simulate import Experiment

    experiment = Experiment(
        crowds,
        counts,
        cuts,
        epsilon=budgets,
        learners=names,
        feedback=cast("FeedbackKind", feedback),
        delta=delta,
        max_rounds_per_user=max_rounds_per_user,
        clicks=clicks,
        delay=delay.split(","),
        response_rate=response_rate,
        retention=retention,
        sample=sample,
        rules=rules,
        today=now,
        seeds=seeds,
        time_limit=time_limit,
    )
    _run(experiment, out, json_file, jobs=jobs, ray=ray)


def streams_command(plugin: Plugins = None) -> None:
    """Built-in streams, and the files that can be read."""
    from diminuendo.streams import BUILTIN

    table = Table(title="Built-in streams", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("name")
    table.add_column("users", justify="right")
    table.add_column("items", justify="right")
    table.add_column("objective")
    table.add_column("contexts")
    for name, make in BUILTIN.items():
        users = make()
        known = () if users.contexts is None else (column.name for column in users.contexts.columns)
        table.add_row(name, f"{len(users):,}", f"{users.n_items:,}", users.family_name, ", ".join(known))
    console.print(table)
    console.print(
        "Files: scipy CSR [bold].npz[/] (row = user, column = item, value in [0, 1]); tables "
        "[bold].csv[/], [bold].tsv[/], [bold].json[/] (also .gz), [bold].parquet[/] with rows that say "
        "who wants what; baskets [bold].txt[/], [bold].txt.gz[/], one line of item numbers per user. "
        "Contexts, features of users on arrival: other columns of tables; for the others, "
        "NAME.contexts.csv beside the file."
    )


def _names(given: str | None, feedback: str, *, ruled: bool = False) -> list[str]:
    """The learners to simulate: those that are named, or the default ones that fit the feedback and the rules."""
    from diminuendo.learners import ROLES, learner_class

    if given is None:
        kind = cast("FeedbackKind", feedback)
        usual = [role for role in ("private", "nonprivate") if feedback in ROLES[role]] + ["random"]
        return [name for name in usual if not ruled or learner_class(name, kind).takes("rules")]
    return learner_names(given)


def _compared(
    names: list[str], users: Users, feedback: str, delta: float, delay: list[str], response_rate: float
) -> list[str]:
    """These learners, and those to compare them with where something is known of users."""
    from diminuendo.learners import Setting
    from diminuendo.learners.base.replay import as_delay
    from diminuendo.simulate.contexts import comparison

    kind = cast("FeedbackKind", feedback)
    setting = Setting(users.n_items, 1, len(users), kind, delta=delta)
    at_once = not any(as_delay(said, response_rate).said() for said in delay)
    return comparison(names, setting, users.contexts, at_once=at_once)


def _run(
    experiment: Experiment,
    out: Path | None,
    json_file: Path | None = None,
    *,
    jobs: int,
    ray: str | None = None,
) -> None:
    """Run it and print the results; when interrupted, say which runs are stored and how to go on."""
    try:
        with progress_bars() as bars:
            result = experiment.run(jobs=jobs, ray=ray, out=out, progress=_said(bars))
        _show(result, out, json_file)
    except KeyboardInterrupt:
        from diminuendo.simulate.store import finished_runs

        said = "Interrupted. Nothing is kept without --out."
        if out is not None:
            then, count = "Nothing was finished yet; start again with:", finished_runs(out)
            if count:
                kept = f"{count:,} finished {'run is' if count == 1 else 'runs are'} kept in {out}"
                then = f"{kept}; this goes on from there:"
            said = f"Interrupted. {then}\n  {_typed()}"
        say_plainly(said)
        raise typer.Exit(130) from None


def _said(bars: Tell) -> Tell:
    """The bars; where there is no terminal to draw them on, a line when work begins."""

    def begin(what: str, size: int) -> Progress:
        if not errors.is_terminal:
            say_plainly(f"{what}: {size:,}.")
        return bars(what, size)

    return begin


def _typed() -> str:
    """The command, as it was given."""
    return f"diminuendo {shlex.join(sys.argv[1:])}"


def _show(sweep: Sweep, out: Path | None, json_file: Path | None) -> None:
    from diminuendo.simulate.table import health_said, rules_said, tables, worth_of_contexts

    for one, table in zip(sweep.simulations, tables(sweep), strict=True):
        console.print()
        console.print(table)
        labels, slate = one.stream.get("labels"), one.benchmarks.greedy.slate
        names = [str(item) if labels is None else labels[item] for item in slate]
        say(f"Greedy's slate in hindsight: {'; '.join(names)}")
        if one.rules is not None:
            say(rules_said(one))
        if one.contexts is not None:
            say(worth_of_contexts(one))
        if health := health_said(one):
            say(health)
    _write(sweep, out, json_file)


def _write(sweep: Sweep, out: Path | None, json_file: Path | None) -> None:
    """Files, where they are asked for."""
    if out is not None:
        from diminuendo.simulate.report import write_report  # here, because matplotlib takes its time to load

        report = write_report(sweep, out, _typed())
        json_file = json_file or out / "simulation.json"
        say(f"Report: {report}")
        say(f"Rows: {out / 'results.parquet'}")
    write_json("Numbers", json_file, sweep.as_json())
