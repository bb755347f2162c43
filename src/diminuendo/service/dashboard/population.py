"""The page of a population: its budget, what was spent on what, and the ledger line by line."""

from __future__ import annotations

from diminuendo.service.dashboard import parts
from diminuendo.service.dashboard.accounts import Account, Line
from diminuendo.service.dashboard.html import Html, fill, joined, table
from diminuendo.service.dashboard.views import Public, State
from diminuendo.service.dashboard.words import epsilon, percent

PAGE, MOST_POINTS = 25, 200
"""Lines of the ledger on a page; points of a chart."""


def population(public: Public, name: str, page: int) -> Html:
    """The whole page; `page` is that of the ledger, 0 the newest."""
    account, state = public.account(name), public.state()
    sections = [
        _stopped(state.stopped.get(name, "")),
        _warning(account),
        _spending(state, name, account) if account.budget else Html(""),
        _ledger(account, page),
    ]
    crumb = Html('<a href="/populations">Population</a>')
    return parts.page(name, _budget(account), state, joined(sections), crumb)


def _budget(account: Account) -> str:
    """The budget, and its unit of privacy."""
    if account.budget is None:
        return "The ledger has no entry yet."
    budget, rounds = account.budget, account.budget.unit.rounds
    whom = "one round" if rounds == 1 else f"{rounds} rounds of one user"
    return (
        f"ε {epsilon(budget.epsilon)} at δ {epsilon(budget.delta)} for {whom}, accountant {budget.accountant}"
    )


def _stopped(why: str) -> Html:
    return fill('<p class="warning" role="alert"><b>This population is {}</b></p>', why) if why else Html("")


def _warning(account: Account) -> Html:
    if not account.damaged:
        return Html("")
    return fill(
        '<p class="warning" role="alert"><b>The ledger is damaged:</b> {}. The spent budget is unknown. Stop the '
        "trainer and restore the ledger from a copy.</p>",
        account.damaged,
    )


def _spending(state: State, name: str, account: Account) -> Html:
    numbers = (
        (
            f"ε {epsilon(account.spent)}",
            f"spent, of ε {epsilon(account.budget.epsilon if account.budget else 0)}",
        ),
        (percent(1 - account.part), "of the budget is left"),
        (f"{sum(line.kind == 'release' for line in account.lines):,}", "releases"),
    )
    rows = []
    for whole in account.placements():
        several = account.purposes(whole.placement)
        where = parts.link("placements", whole.placement) if whole.placement else "all placements"
        for number, one in enumerate(several if len(several) == 1 else [whole, *several]):
            rows.append(
                (
                    where if number == 0 else "",
                    one.purpose or "all",
                    one.charges,
                    epsilon(one.epsilon),
                    percent(one.part),
                )
            )
    moments = [m for view in state.placements if view.row.population == name for m in view.history]
    known = {
        (moment.effective_at, spent)
        for moment in sorted(moments, key=lambda one: one.effective_at)[:: 1 + len(moments) // MOST_POINTS]
        if (spent := account.spent_at(moment.head)) is not None
    }
    points = [*sorted(known), (state.now, account.spent)]
    return joined(
        [
            fill('<ul class="numbers">{}</ul>', joined(fill("<li><b>{}</b>{}</li>", *one) for one in numbers)),
            parts.budget_bar(account),
            fill(
                '<p class="soft">Shares of the budget add up; epsilons do not: with Gaussian noise, two releases of '
                "ε 1 cost less than ε 2 together. The number is the largest cost of any one user. It may be most of "
                "the budget early, because the first users take part in many releases and because learners charge in "
                "advance. The budget covers each running placement to the end of its run.</p>"
            ),
            table("Spending", ("Placement", "Purpose", "Charges", "ε alone", "Share of budget"), rows, 2)
            if rows
            else Html('<p class="none">Nothing is spent yet.</p>'),
            parts.chart("spent", "Epsilon spent, by menu") if len(points) > 1 else Html(""),
            parts.points(
                "spent", [at for at, _ in points], [spent for _, spent in points],
                account.budget.epsilon if account.budget else None,
            ) if len(points) > 1 else Html(""),
        ]
    )  # fmt: skip


def _ledger(account: Account, page: int) -> Html:
    if not account.lines:
        return Html('<section><h2 id="ledger">Ledger</h2><p class="none">It has no entry yet.</p></section>')
    pages = -(-len(account.lines) // PAGE)
    page = min(max(page, 0), pages - 1)
    newest = account.lines[::-1][page * PAGE : (page + 1) * PAGE]
    turn = [
        fill('<a href="?page={}#ledger" rel="{}">{}</a>', to, Html(rel), label)
        for to, rel, label in ((page - 1, "prev", "Newer"), (page + 1, "next", "Older"))
        if 0 <= to < pages
    ]
    return fill(
        '<section aria-labelledby="ledger"><h2 id="ledger">Ledger</h2><p>Each entry has a hash over itself and the '
        "entry before. Store the last hash, the head, elsewhere: a truncated ledger does not contain it.</p>"
        '<p class="hash"><code id="head">{}</code><button data-copy="head">Copy the head</button></p>{}'
        '<nav class="pages" aria-label="Pages of the ledger"><span class="soft">{}</span>{}</nav></section>',
        account.head,
        table("Newest entry first", ("Entry", "Kind", "Placement", "Name", "Query", "ε alone", "Hash"),
              [_row(account, line) for line in newest], words=5),
        f"{len(account.lines):,} entries, page {page + 1} of {pages}",
        joined(turn, " "),
    )  # fmt: skip


def _row(account: Account, line: Line) -> tuple[object, ...]:
    alone = "" if line.cost is None else epsilon(account.epsilon(line.cost))
    about = line.about if line.kind != "release" else ""
    short = fill('<code title="{}">{}</code>', line.head, line.head[:10])
    return (line.number, line.kind, line.placement, line.name, about, alone, short)
