"""The privacy ledger of one population: its budget, what was charged, what was published, what is left.

    with Ledger.open("population.ledger", Budget(1.0, 1e-6)) as ledger:
        paid = ledger.buy(event, "wishes", "of spring")  # refused, or on disk when this returns
        paid.once("000000", draw, secret)                # drawn once, stored, entered, and only then published

A charge is checked as a whole before anything is written, and written and synced before the caller may draw. So after a
crash at any moment, what was spent is never less than what could have been drawn. A release is stored beside the ledger
and entered with its hash: after a crash it is published as it was, and if it was lost, it is not drawn again. A file
that was rolled back looks like an older file: note `head` elsewhere and hand it to `open`.

The rounds of each user are recorded beside the ledger too (`visits_of`), for learners that limit them. Files are one
backend; `Ledger.on` takes any other (privacy/books). A charge takes no longer as the ledger grows.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from diminuendo.errors import InvalidInput, LedgerDamaged, LedgerInUse, OverBudget, refuse_copies
from diminuendo.privacy.accountants import BatchCosts
from diminuendo.privacy.books import Books, KeptReleases, ledger_file
from diminuendo.privacy.books.contribution_file import ContributionFile
from diminuendo.privacy.books.files import FileBooks
from diminuendo.privacy.books.ledger_file import Charge, Drawn
from diminuendo.privacy.books.releases import Releases, digest
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
    """The privacy ledger of one population: its budget, what was charged to it, and what was published.

    `Ledger(budget)` is in memory, for simulation and tests. `Ledger.open` keeps it in a file, `Ledger.on` in other
    backends.

    Parameters
    ----------
    budget : Budget
        Fixes epsilon, delta, adjacency and accountant for good.

    Attributes
    ----------
    budget : Budget
        As given.
    head : str
        Hash of the latest entry, chained over all entries. Note it elsewhere, and hand it to `open` as `expect`, to
        detect a file that was rolled back.
    charges : list of Charge
        All charges in order, each with its event and its public note.

    Raises
    ------
    InvalidInput
        If `budget` is not a Budget.

    Notes
    -----
    A charge is durable before `charge` or `buy` returns, and only then may the caller draw. So after a crash the
    amount spent is never less than what could have been drawn. The refusal of a charge is a privacy filter: Theorem
    A7 of docs/maths/accounting.md proves (epsilon, delta)-DP of the budget for everything drawn on the ledger, also
    if charges are chosen in the light of earlier releases. Theorem A10 covers several learners on one ledger.

    One process holds a ledger at a time; its forked children may not charge.

    References
    ----------
    Feldman & Zrnic (2021), Individual privacy accounting via a Renyi filter, NeurIPS 34.

    Examples
    --------
    >>> from diminuendo.privacy import Budget, Gaussian, Ledger
    >>> ledger = Ledger(Budget(epsilon=1.0, delta=1e-6))
    >>> ledger.charge(Gaussian(rho=0.01), "weekly totals")
    >>> round(ledger.spent(), 3), ledger.affords(Gaussian(rho=0.5))
    (0.622, False)
    >>> ledger.charge(Gaussian(rho=0.5))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    diminuendo.errors.OverBudget: Not charged: of epsilon 1 (delta 1e-06) 0.62... is spent, ...
    >>> print(ledger.guarantee())
    (1, 1e-06)-differentially private (replace one round)
    """

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
        """Open the ledger in a file, or begin one there.

        Parameters
        ----------
        path : str or Path
            The file. Releases lie in a folder beside it.
        budget : Budget, optional
            If given, a missing file is begun with it, and an existing one must have it.
        expect : str, optional
            A `head` noted earlier, which the file must still contain.

        Returns
        -------
        Ledger
            A context manager; `close` lets another process open the file.

        Raises
        ------
        InvalidInput
            If there is no ledger and no budget, or the file has another budget.
        LedgerDamaged
            If the file was altered, cut, or does not contain `expect`.
        LedgerInUse
            If another process holds it.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from diminuendo.privacy import Budget, Laplace, Ledger
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name) / "population.ledger"
        >>> with Ledger.open(path, Budget(1.0, 0.0, accountant="pure")) as ledger:
        ...     ledger.charge(Laplace(0.25), "first release")
        ...     head = ledger.head
        >>> with Ledger.open(path, expect=head) as ledger:  # the budget is in the file
        ...     ledger.spent()
        0.25
        >>> folder.cleanup()
        """
        return cls.on(FileBooks(Path(path), create=budget is not None), budget, expect=expect)

    @classmethod
    def on(cls, books: Books, budget: Budget | None = None, *, expect: str | None = None) -> Self:
        """Open the ledger in a backend, or begin one there.

        Parameters
        ----------
        books : Books
            The backend (privacy/books), for instance a store of the service. It is closed with the ledger.
        budget : Budget, optional
            If given, an empty backend is begun with it, and others must have it.
        expect : str, optional
            A `head` noted earlier, which the backend must still contain.

        Returns
        -------
        Ledger

        Raises
        ------
        InvalidInput, LedgerDamaged, LedgerInUse
            As `open`.
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
        """Open the ledger in a file with the budget that it has, or begin one.

        Parameters
        ----------
        path : str or Path
            The file.
        budget : callable
            Called without arguments for the Budget of a new ledger; not called if there is one.

        Returns
        -------
        Ledger
        """
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
        result = ledger_file.parse(content, where)
        if budget is not None and budget != result.budget:
            raise InvalidInput(
                f"{where} was opened for {result.budget}; got {budget}. Budgets do not change."
            )
        ledger = cls._of(result, where, expect)
        ledger._hold(books)
        if result.torn:
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
                    "users and a new budget, give a ledger another path."
                )
        self._books, self._kept = books, books.releases

    @classmethod
    def _of(cls, record: ledger_file.Record, name: str, expect: str | None) -> Self:
        """What a file says, in memory; it must contain the head that is expected."""
        record.must_contain(expect, name)
        ledger = cls(record.budget)
        for entry in record.entries:
            ledger._enter(entry)
        if ledger._tally.total > ledger._limit:
            raise LedgerDamaged(
                "The charges exceed the budget: no ledger accepted them. Restore the file from a copy."
            )
        ledger.head = record.heads[-1]
        return ledger

    def charge(self, event: Event, note: str = "", *, secure: bool = True) -> None:
        """Spend, or refuse.

        When this returns the charge is durable. Only then may the caller draw.

        Parameters
        ----------
        event : Event
            Cost of what is about to be drawn.
        note : str, default ""
            A public line of at most 200 printable characters.
        secure : bool, default True
            False if what is drawn is seeded, for simulation. Only a ledger in memory takes that.

        Raises
        ------
        OverBudget
            If the event would exceed the budget. Nothing was charged, and nothing may be drawn.
        UnknownEvent
            If the accountant of the budget has no rule for the event.
        InvalidInput
            If the note is unfit, or seeded draws are charged to a ledger that is kept in a file.
        """
        price = self.budget.counting.tally(event)
        if not isinstance(note, str) or len(note) > 200 or not note.isprintable():
            raise InvalidInput("note must be one public line of at most 200 characters.")
        if not secure and self._books is not None:
            raise InvalidInput(
                "A ledger that is written down is for users; seeded randomness is for simulation. Use SystemSource."
            )
        with self._guard.lock:
            self._check_hold()
            if self._tally.after(price) > self._limit:
                raise OverBudget(self._refusal(event, price))
            self._write(Charge(event, note), price)
            self._seeded |= not secure

    def named(self, name: str) -> _Named:
        """Return a view of this ledger for one of several learners.

        The budget is shared; names of releases, partitions and users' round counts are the view's own.

        Parameters
        ----------
        name : str
            Always the same name for the same learner: after a crash, its releases are looked up by it.

        Returns
        -------
        Ledger

        Raises
        ------
        InvalidInput
            If the name contains `@`, or is not made of letters, digits, dots, dashes and underscores.

        Notes
        -----
        By Theorem A10 of docs/maths/accounting.md, costs of learners on one ledger add up. With a unit of m rounds,
        the ledger protects m rounds of a user with *each* of them.

        Examples
        --------
        >>> from diminuendo.privacy import Budget, Gaussian, Ledger
        >>> ledger = Ledger(Budget(1.0, 1e-6))
        >>> ledger.named("front-page").charge(Gaussian(rho=0.005))
        >>> ledger.named("basket").charge(Gaussian(rho=0.005))
        >>> round(ledger.spent(), 3)
        0.622
        """
        self._kept.check(name)
        if "@" in name:
            raise InvalidInput(f"Names of learners have no @ in them; got {name!r}.")
        return _Named(self, name)

    def hold(self, name: str) -> None:
        """Reserve a name for one object of this process, as long as the ledger is open.

        Parameters
        ----------
        name : str
            Name of releases.

        Raises
        ------
        InvalidInput
            If the name is in use on this ledger, or is not a name.
        """
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
        """Reserve a name and charge for releases under it, or continue with what was charged before a crash.

        Parameters
        ----------
        event : Event
            Cost of all releases under this name together.
        name : str
            Up to 80 letters, digits, dots, dashes and underscores.
        about : str
            Public description of the releases.

        Returns
        -------
        Paid
            Draws each release once: `paid.once(part, draw, secret)`.

        Raises
        ------
        OverBudget
            If the event would exceed the budget.
        InvalidInput
            If the name is in use, or was bought for another event or description.

        Examples
        --------
        >>> import numpy as np
        >>> from diminuendo import SeededSource
        >>> from diminuendo.privacy import Budget, Laplace, Ledger
        >>> from diminuendo.randomness import SecretRandomness
        >>> ledger, secret = Ledger(Budget(1.0, 0.0, accountant="pure")), SecretRandomness(SeededSource(1))
        >>> paid = ledger.buy(Laplace(0.5), "totals", "of the first week")
        >>> first = paid.once("000000", lambda: np.array([7]), secret)
        >>> paid.once("000000", lambda: np.array([9]), secret)  # written once: the second draw is not made
        array([7])
        """
        with self._guard.lock:
            self.hold(name)
            try:
                return self.bought(event, name, about)
            except BaseException:
                self._in_use.discard(name)
                raise

    def bought(self, event: Event, name: str, about: str) -> Paid:
        """Charge as `buy` does, for a caller that holds this name or a prefix of it.

        The charge is made once. If several objects bought under a name, only the latest may draw.

        Parameters
        ----------
        event : Event
            Cost of all releases under this name together.
        name : str
            Name of the releases.
        about : str
            Public description of the releases.

        Returns
        -------
        Paid

        Raises
        ------
        OverBudget, InvalidInput
            As `buy`.
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
        """Return whether releases under this name were charged for."""
        return self.cost_of(name) is not None

    def cost_of(self, name: str) -> Event | None:
        """Return the event that was charged for releases under this name, or None."""
        return self._bought[name].event if name in self._bought else None

    def about(self, name: str) -> str | None:
        """Return the public description of releases under this name, or None if nothing was charged."""
        return self._bought[name].note.partition(": ")[2] if name in self._bought else None

    def affords(self, event: Event) -> bool:
        """Return whether a charge of this event would be accepted now. Nothing is charged."""
        return self._tally.after(self.budget.counting.tally(event)) <= self._limit

    def require(self, event: Event) -> None:
        """Refuse a run that could not be charged for now. Nothing is charged.

        Parameters
        ----------
        event : Event
            Cost of the whole run.

        Raises
        ------
        OverBudget
            With what is spent, what the run costs, and whether another accountant would accept it.
        """
        price = self.budget.counting.tally(event)
        if self._tally.after(price) > self._limit:
            raise OverBudget(self._refusal(event, price, "the whole run"))

    @property
    def drawn(self) -> tuple[Drawn, ...]:
        """All releases in order, with name, hash, and whether the randomness was secure."""
        return tuple(self._drawn.values())

    def spent(self) -> float:
        """Return the epsilon, at the budget's delta, of all charges so far: the largest cost of any one user.

        Returns
        -------
        float
            It may be most of the budget early in a run, because the first users take part in many releases and
            because learners charge in advance.

        Notes
        -----
        If a charge depends on earlier releases, this number proves nothing (it is not an odometer): see
        `guarantee`.
        """
        return self.budget.worth(self._tally.total)

    def guarantee(self) -> Guarantee:
        """Return what is proved about everything drawn on this ledger, now and later: its budget.

        Returns
        -------
        Guarantee
            (epsilon, delta)-DP under the adjacency of the budget's unit. `secure_rng` is False if anything was
            seeded.

        Notes
        -----
        Theorem A7 of docs/maths/accounting.md proves a bound that holds on every path (a privacy filter). A total
        so far is not such a bound if the decision to charge again depends on releases.
        """
        proof = "docs/maths/accounting.md, Theorem A7"
        secure = not self._seeded and all(drawn.secure for drawn in self.drawn)
        unit = self.budget.unit
        stated = max(self.budget.epsilon, self.spent())
        return Guarantee(stated, self.budget.delta, str(unit), proof, secure, view=unit.view)

    def to_dp_event(self, accountant: Literal["rdp", "pld"] = "rdp") -> DpEvent:
        """Translate all charges into one event of dp-accounting, for a user with as many rounds as the unit has.

        Parameters
        ----------
        accountant : {"rdp", "pld"}, default "rdp"
            Which accountant of dp-accounting will price it, as in `diminuendo.privacy.to_dp_event`.

        Returns
        -------
        DpEvent

        Raises
        ------
        UnknownEvent, MissingExtra
            As `diminuendo.privacy.to_dp_event`.
        """
        charged = Composed(tuple(charge.event for charge in self.charges))
        return to_dp_event(charged, rounds=self.budget.unit.rounds, accountant=accountant)

    def close(self) -> None:
        """Release the file, so that another process may open it."""
        if self._books is not None:
            self._books.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def visits_of(self, learner: str) -> ContributionFile | None:
        """Return where the rounds of each user that count for a learner are recorded; None without files.

        In memory, a learner records them itself; in a store, the service counts rounds before a learner sees them.
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

    def release_names(self) -> None:
        """Release the names that are held here. A `Paid` that was bought before draws no more after a new purchase."""
        self._whole._check_hold()
        mine = self._mine("")
        self._whole._in_use -= {name for name in self._whole._in_use if name.endswith(mine)}

    def buy(self, event: Event, name: str, about: str) -> Paid:
        return self._whole.buy(renamed(event, self._mine), self._mine(name), about)

    def bought(self, event: Event, name: str, about: str) -> Paid:
        return self._whole.bought(renamed(event, self._mine), self._mine(name), about)

    def visits_of(self, learner: str) -> ContributionFile | None:
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
    """Releases under one name that were charged for. `Ledger.buy` returns it."""

    __getstate__ = refuse_copies

    def __init__(self, ledger: Ledger, name: str) -> None:
        self.name, self._ledger = name, ledger

    def __repr__(self) -> str:
        return f"<Paid: {self.name}>"

    def has(self, part: str) -> bool:
        """Return whether this release was drawn already, also before a crash."""
        name = f"{self.name}.{part}"
        # Kept, if not entered: it was drawn.
        return name in self._ledger._drawn or self._ledger._kept.has(name)

    def once(self, part: str, draw: Callable[[], Ints], secret: SecretRandomness) -> Ints:
        """Return the release `part`: drawn, stored and entered in the ledger now, or as it was drawn before.

        Parameters
        ----------
        part : str
            Name of the release below the name that was bought.
        draw : callable
            Called without arguments, at most once ever, for the released integer vector.
        secret : SecretRandomness
            The randomness that `draw` uses. A ledger in a file refuses seeded randomness.

        Returns
        -------
        ndarray of int
            The published vector.

        Raises
        ------
        LedgerDamaged
            If the release was published and is lost, or is not what was published. It is never drawn again.
        InvalidInput
            If `secret` is unfit, or the name was bought anew by another object.
        """
        require_secret(secret)
        name, ledger = f"{self.name}.{part}", self._ledger
        if ledger._books is not None and not secret.secure:
            raise InvalidInput(
                "A ledger that is written down is for users, and seeded randomness protects no one. "
                "Use SecretRandomness(SystemSource()), or simulate with a ledger in memory: Ledger(budget)."
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
            result = ledger._kept.once(name, draw)
            if before is None:
                ledger._write(Drawn(name, digest(result), secret.secure))
            elif before.digest != digest(result):
                raise LedgerDamaged(
                    f"{name} is not what was published under that name. Restore it from a copy."
                )
            return result


def audit(path: Place, *, expect: str | None = None) -> Ledger:
    """Read a ledger file and verify it line by line, without taking hold of it.

    Parameters
    ----------
    path : str or Path
        The file.
    expect : str, optional
        A `head` noted earlier, which the file must still contain.

    Returns
    -------
    Ledger
        A copy in memory: charging it spends nothing.

    Raises
    ------
    LedgerDamaged
        If hashes, releases or charges do not add up.
    """
    return Ledger._of(ledger_file.load(path), str(path), expect)
