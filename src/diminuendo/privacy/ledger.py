"""The ledger: the budget of one population, what was charged to it, what was drawn on it, what is left.

    with Ledger.open("people.ledger", Budget(1.0, 1e-6)) as ledger:
        paid = ledger.buy(event, "wishes", "of spring")  # refused, or on disk when this returns
        paid.once("000000", draw, secret)              # drawn once, kept, entered, and only then published

A charge is checked as a whole before anything is written, and written and synced before the caller may draw. So
whatever the moment of a crash, what was spent is never less than what could have been drawn. What is drawn is kept
beside the ledger, and entered with its hash: after a crash it is published as it was, and if it was lost, it is not
drawn again. A file cut back to an older state looks like an older file: keep `head` elsewhere and hand it to `open`.

Beside it, too, is who has had which of her rounds (`visits_of`), for learners that limit them. Files are one kind of
books; `Ledger.on` takes any other (privacy/books).

One process holds a ledger at a time, and its forked children may not charge. A charge takes no longer as the ledger
grows. Theorem A7 of docs/maths/accounting.md: events may be chosen in the light of everything released before.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from diminuendo.errors import InvalidInput, LedgerDamaged, LedgerInUse, OverBudget, refuse_copies
from diminuendo.privacy.accountants import BatchCosts
from diminuendo.privacy.books import Books, KeptReleases, ledger_file
from diminuendo.privacy.books.files import FileBooks
from diminuendo.privacy.books.ledger_file import Charge, Drawn
from diminuendo.privacy.books.releases import Releases, digest
from diminuendo.privacy.books.visit_file import VisitFile
from diminuendo.privacy.budget import Budget, Guarantee
from diminuendo.privacy.dp_event import to_dp_event
from diminuendo.privacy.events import Composed, Event, renamed
from diminuendo.privacy.process_guard import ProcessGuard
from diminuendo.randomness.words import SecretRandomness, require_secret
from diminuendo.types import Ints

if TYPE_CHECKING:
    from dp_accounting import DpEvent

Place: TypeAlias = str | Path
"""Where a ledger is, in a file."""


class Ledger:
    """A budget and what was done with it, in memory; `Ledger.open` keeps it in a file, `Ledger.on` in other books."""

    __getstate__ = refuse_copies

    def __init__(self, budget: Budget) -> None:
        if not isinstance(budget, Budget):
            raise InvalidInput(f"A ledger is begun with a Budget; got {type(budget).__name__}.")
        self.budget = budget
        self.head = ledger_file.chained("", ledger_file.header(budget))
        self.charges: list[Charge] = []
        self._bought: dict[str, Charge] = {}
        self._drawn: dict[str, Drawn] = {}
        self._in_use: set[str] = set()
        self._latest: dict[str, Paid] = {}
        self._seeded = False  # whether seeded draws were charged for
        self._limit, self._tally = budget.limit, BatchCosts()
        self._kept: KeptReleases = Releases()
        self._books: Books | None = None  # it is in memory alone
        self._guard, self._half_written = ProcessGuard(), False

    def __repr__(self) -> str:
        return f"<Ledger: {self.budget}; {len(self.charges)} charges, epsilon {self.spent():.6g} spent>"

    @classmethod
    def open(cls, path: Place, budget: Budget | None = None, *, expect: str | None = None) -> Self:
        """The ledger in that file; made if there is none and a budget is given. Releases lie in a folder beside it.

        `expect` is a `head` noted earlier: the file must still contain it.
        """
        return cls.on(FileBooks(Path(path), create=budget is not None), budget, expect=expect)

    @classmethod
    def on(cls, books: Books, budget: Budget | None = None, *, expect: str | None = None) -> Self:
        """The ledger in these books; begun if they are empty and a budget is given. They are closed with it.

        `expect` is a `head` noted earlier: the books must still contain it.
        """
        try:
            content, where = books.lines.read(), books.lines.path
            if b"\n" in content:
                ledger = cls._continued(books, content, budget, expect)
            elif budget is None:
                raise InvalidInput(f"{where} holds no ledger; give a budget to begin one.")
            elif expect is not None:
                raise LedgerDamaged(f"{where} is empty, but its head was noted once: the ledger was lost.")
            else:
                ledger = cls._begun(books, content, budget)
        except BaseException:
            books.close()
            raise
        return ledger

    @classmethod
    def open_or_begin(cls, path: Place, budget: Callable[[], Budget]) -> Self:
        """The ledger in that file, with the budget that it has; where there is none, one begun with `budget`."""
        try:
            return cls.open(path)
        except InvalidInput:  # no such file, or one that is empty or broke off in its first line
            return cls.open(path, budget())

    @classmethod
    def _begun(cls, books: Books, content: bytes, budget: Budget) -> Self:
        ledger = cls(budget)
        first = ledger_file.line(ledger_file.header(budget), ledger.head)
        if not first.startswith(content):  # more than the beginning of a first line that a crash cut short
            raise InvalidInput(
                f"{books.lines.path} is a file of another kind; give a ledger a file of its own."
            )
        ledger._hold(books)
        books.lines.cut(0)
        books.lines.append(first)
        return ledger

    @classmethod
    def _continued(cls, books: Books, content: bytes, budget: Budget | None, expect: str | None) -> Self:
        where = str(books.lines.path)
        found = ledger_file.parse(content, where)
        if budget is not None and budget != found.budget:
            raise InvalidInput(f"{where} was opened for {found.budget}; got {budget}. Budgets do not change.")
        ledger = cls._of(found, where, expect)
        ledger._hold(books)
        if found.torn:
            books.lines.cut(content.rindex(b"\n") + 1)
            ledger.charge(Composed(()), "an unfinished line was dropped: nothing had been drawn on it")
        elif not content.endswith(b"\n"):
            books.lines.append(b"\n")
        return ledger

    def _hold(self, books: Books) -> None:
        """Go on in these books, with what was released on them; all of that must have been paid for."""
        for name in books.releases.names():
            if not any(name[:end] in self._bought for end, letter in enumerate(name) if letter == "."):
                raise LedgerDamaged(
                    f"{books.lines.path} does not say who paid for the release {name} that lies beside it: the ledger "
                    "was lost or cut back, and what was spent is not known. Restore it from a copy; or, for other "
                    "people and a new budget, give a ledger another path."
                )
        self._books, self._kept = books, books.releases

    @classmethod
    def _of(cls, found: ledger_file.Record, name: str, expect: str | None) -> Self:
        """What a file says, in memory; it must contain the head that is expected."""
        found.must_contain(expect, name)
        ledger = cls(found.budget)
        for entry in found.entries:
            ledger._enter(entry)
        if ledger._tally.total > ledger._limit:
            raise LedgerDamaged(
                "The charges exceed the budget: no ledger accepted them. Restore the file from a copy."
            )
        ledger.head = found.heads[-1]
        return ledger

    def charge(self, event: Event, note: str = "", *, secure: bool = True) -> None:
        """Spend, or refuse with OverBudget. When this returns the charge is durable, and only then may one draw.

        `secure=False`: what is drawn on it is seeded, for simulation; only a ledger in memory takes that.
        """
        price = self.budget.counting.tally(event)
        if not isinstance(note, str) or len(note) > 200 or not note.isprintable():
            raise InvalidInput("note must be one public line of at most 200 characters.")
        if not secure and self._books is not None:
            raise InvalidInput(
                "A ledger that is written down is for people; seeded coins are for simulation. Use SystemCoins."
            )
        with self._guard.lock:
            self._check_hold()
            if self._tally.after(price) > self._limit:
                raise OverBudget(self._refusal(event, price))
            self._write(Charge(event, note), price)
            self._seeded |= not secure

    def named(self, name: str) -> _Named:
        """The same ledger for one of several learners: the budget is shared, names are its own.

            front = learners.OverlapGreedy(..., ledger=ledger.named("front-page"))
            basket = learners.OverlapGreedy(..., ledger=ledger.named("basket"))

        Always the same name for the same learner: by it, what was published before a crash is found again.
        """
        self._kept.check(name)
        if "@" in name:
            raise InvalidInput(f"Names of learners have no @ in them; got {name!r}.")
        return _Named(self, name)

    def hold(self, name: str) -> None:
        """Take a name for one object of this process: nobody else buys under it as long as the ledger is open."""
        with self._guard.lock:
            self._check_hold()
            self._kept.check(name)
            if name in self._in_use:
                raise InvalidInput(
                    f"{name!r} is in use on this ledger already, and a second of that name would be given what the "
                    "first has published. Give each a name of its own, as with ledger.named(...)."
                )
            self._in_use.add(name)

    def buy(self, event: Event, name: str, about: str) -> Paid:
        """Take a name, and charge for releases under it, or go on with what was charged for before a crash.

        `about` says in public what they are of; a name that was bought for something else is refused.
        """
        with self._guard.lock:
            self.hold(name)
            try:
                return self.bought(event, name, about)
            except BaseException:
                self._in_use.discard(name)
                raise

    def bought(self, event: Event, name: str, about: str) -> Paid:
        """As `buy`, for whoever holds this name, or one that it begins with; to be tried again where it failed.

        It is charged for once, and only what was returned last may draw.
        """
        wanted = Charge(event, f"{name}: {about}")
        with self._guard.lock:
            self._kept.check(name)
            if (before := self._bought.get(name)) is None:
                self.charge(wanted.event, wanted.note)
            elif before != wanted:
                raise InvalidInput(
                    f"{name!r} was bought for something else before ({before.note}); take another name."
                )
            self._latest[name] = Paid(self, name)
            return self._latest[name]

    def has_bought(self, name: str) -> bool:
        """Whether something was charged for under that name."""
        return self.cost_of(name) is not None

    def cost_of(self, name: str) -> Event | None:
        """What was charged for under that name; None, if nothing was."""
        return self._bought[name].event if name in self._bought else None

    def about(self, name: str) -> str | None:
        """What was said in public of releases under that name when they were charged for; None, if nothing was."""
        return self._bought[name].note.partition(": ")[2] if name in self._bought else None

    def affords(self, event: Event) -> bool:
        """Whether a charge would be accepted now."""
        return self._tally.after(self.budget.counting.tally(event)) <= self._limit

    def require(self, event: Event) -> None:
        """Refuse a whole run that could not be charged for now, and say why. Nothing is charged."""
        price = self.budget.counting.tally(event)
        if self._tally.after(price) > self._limit:
            raise OverBudget(self._refusal(event, price, "the whole run"))

    @property
    def drawn(self) -> tuple[Drawn, ...]:
        """What was released, in order."""
        return tuple(self._drawn.values())

    def spent(self) -> float:
        """Return the epsilon, at the budget's delta, of all charges so far: the largest cost of any one user.

        It may be most of the budget early in a run, because the first users take part in many releases and because
        learners charge in advance. If a charge depends on earlier releases, this number proves nothing: see
        `guarantee`.
        """
        return self.budget.worth(self._tally.total)

    def guarantee(self) -> Guarantee:
        """Return what is proved about everything drawn on this ledger, now and later: its budget.

        Theorem A7 proves a bound that holds on every path (a filter). A total so far is not such a bound, if somebody
        decides in the light of releases whether to charge again.
        """
        proof = "docs/maths/accounting.md, Theorem A7"
        secure = not self._seeded and all(drawn.secure for drawn in self.drawn)
        unit = self.budget.unit
        stated = max(self.budget.epsilon, self.spent())
        return Guarantee(stated, self.budget.delta, str(unit), proof, secure, view=unit.view)

    def to_dp_event(self, accountant: Literal["rdp", "pld"] = "rdp") -> DpEvent:
        """Translate all charges into one event of dp-accounting, for a user with as many rounds as the unit has.

        `accountant`, and what may be raised, as in `diminuendo.privacy.to_dp_event`.
        """
        charged = Composed(tuple(charge.event for charge in self.charges))
        return to_dp_event(charged, rounds=self.budget.unit.rounds, accountant=accountant)

    def close(self) -> None:
        """Let another process have the books."""
        if self._books is not None:
            self._books.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def visits_of(self, learner: str) -> VisitFile | None:
        """Where it is kept, in a folder beside the file, how many rounds of whom counted for the learner of that name.

        None where the ledger is in memory, then a learner keeps that itself; and in a store, where the service counts
        visits before a learner hears of them.
        """
        if self._books is None:
            return None
        with self._guard.lock:
            self._check_hold()
            return self._books.visits_of(learner)

    def _check_hold(self) -> None:
        """Refuse where nothing can be entered: in a forked copy, after a close, in books that are not ours any more."""
        self._guard.check()
        if self._half_written:
            raise LedgerInUse("The last entry was interrupted; open the ledger again.")
        if self._books is not None:
            self._books.lines.check()

    def _write(self, entry: Charge | Drawn, price: BatchCosts | None = None) -> None:
        """Enter it; where there are books, first there."""
        self._half_written = self._books is not None
        head = ledger_file.chained(self.head, entry.body())
        if self._books is not None:
            self._books.lines.append(ledger_file.line(entry.body(), head))
        self._enter(entry, price)
        self.head, self._half_written = head, False

    def _enter(self, entry: Charge | Drawn, price: BatchCosts | None = None) -> None:
        if isinstance(entry, Drawn):
            self._drawn[entry.name] = entry
        else:
            if price is None:  # it is read from a file: should that fail, there is no ledger
                tally = self._tally.add(self.budget.counting.tally(entry.event))
            else:
                tally = self._tally.plus(price)
            name = entry.note.partition(":")[0]
            at, first = len(self.charges), self._bought.get(name, entry)
            # In one go: what is counted is found again, and nothing is counted twice.
            self._tally, self.charges[at:], self._bought[name] = tally, [entry], first

    def _refusal(self, event: Event, price: BatchCosts, what: str = "this") -> str:
        alone = self.budget.counting.epsilon(event, self.budget.delta, self.budget.unit.rounds)
        advice = "Ask for less, or stop releasing."
        if self._tally.after(price) <= self._limit * (1 + Fraction(1, 10**9)):
            advice = (
                "It is too much by a rounding error only: a float like 0.1 is a little more than a tenth. "
                "Budget.share(0.1) is not."
            )
        return (
            f"Not charged: of epsilon {self.budget.epsilon:g} (delta {self.budget.delta:g}) {self.spent():.6g} is "
            f"spent, and {what} would cost {alone:.6g} by itself, counted as {self.budget.accountant}. "
            f"{self.budget.counted_otherwise(event, alone) or advice}"
        )


class _Named(Ledger):
    """A ledger as one of several sees it: whatever it is charged for, and whatever is published, has its name."""

    def __init__(self, whole: Ledger, name: str) -> None:
        self._whole, self._name = whole, name

    def __getattr__(self, what: str) -> Any:
        return getattr(self._whole, what)  # all else is the whole's

    def _mine(self, name: str) -> str:
        return f"{name}@{self._name}"

    def charge(self, event: Event, note: str = "", *, secure: bool = True) -> None:
        self._whole.charge(renamed(event, self._mine), self._mine(note), secure=secure)

    def hold(self, name: str) -> None:
        self._whole.hold(self._mine(name))

    def let_go(self) -> None:
        """Whoever held names here is gone, and whatever it had bought draws no more once they are bought again."""
        self._whole._check_hold()
        mine = self._mine("")
        self._whole._in_use -= {name for name in self._whole._in_use if name.endswith(mine)}

    def buy(self, event: Event, name: str, about: str) -> Paid:
        return self._whole.buy(renamed(event, self._mine), self._mine(name), about)

    def bought(self, event: Event, name: str, about: str) -> Paid:
        return self._whole.bought(renamed(event, self._mine), self._mine(name), about)

    def visits_of(self, learner: str) -> VisitFile | None:
        return self._whole.visits_of(self._mine(learner))

    def cost_of(self, name: str) -> Event | None:
        return self._whole.cost_of(self._mine(name))

    def about(self, name: str) -> str | None:
        return self._whole.about(self._mine(name))

    def require(self, event: Event) -> None:
        self._whole.require(renamed(event, self._mine))

    def affords(self, event: Event) -> bool:
        return self._whole.affords(renamed(event, self._mine))


class Paid:
    """Releases under one name that were paid for."""

    __getstate__ = refuse_copies

    def __init__(self, ledger: Ledger, name: str) -> None:
        self.name, self._ledger = name, ledger

    def __repr__(self) -> str:
        return f"<Paid: {self.name}>"

    def has(self, part: str) -> bool:
        """Whether that release was drawn already, before a crash perhaps."""
        name = f"{self.name}.{part}"
        # Kept, if not entered: it was drawn.
        return name in self._ledger._drawn or self._ledger._kept.has(name)

    def once(self, part: str, draw: Callable[[], Ints], secret: SecretRandomness) -> Ints:
        """The release `part`: drawn now, kept, entered and returned; or as it was drawn before."""
        require_secret(secret)
        name, ledger = f"{self.name}.{part}", self._ledger
        if ledger._books is not None and not secret.secure:
            raise InvalidInput(
                "A ledger that is written down is for people, and seeded coins protect nobody. "
                "Use SecretRandomness(SystemCoins()), or simulate with a ledger in memory: Ledger(budget)."
            )
        with ledger._guard.lock:
            ledger._check_hold()  # before anything is drawn or kept
            if ledger._latest.get(self.name) is not self:
                raise InvalidInput(f"{self.name!r} was begun again; go on with that one.")
            before = ledger._drawn.get(name)
            if before is not None and not ledger._kept.has(name):
                raise LedgerDamaged(
                    f"{name} was published and is lost; it is not drawn again. Restore it from a copy."
                )
            found = ledger._kept.once(name, draw)
            if before is None:
                ledger._write(Drawn(name, digest(found), secret.secure))
            elif before.digest != digest(found):
                raise LedgerDamaged(
                    f"{name} is not what was published under that name. Restore it from a copy."
                )
            return found


def audit(path: Place, *, expect: str | None = None) -> Ledger:
    """What a ledger file says, checked line by line, without taking hold of it. A copy: charging it spends nothing."""
    return Ledger._of(ledger_file.load(path), str(path), expect)
