"""An entry of the table of learners: a recipe that puts parts together, and what is known about it beforehand."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import cleandoc, signature
from itertools import product
from typing import Any, Generic, ParamSpec, Protocol, TypeAlias

from diminuendo import _snapshots
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.feedback_window import FeedbackWindow
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.setting import Setting
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.sources import RandomSource
from diminuendo.types import FeedbackKind

P = ParamSpec("P")

Shape: TypeAlias = tuple[int, int, int]
"""A small world: items, slots, rounds."""

Value: TypeAlias = str | bool
"""What an option of a learner may be; as text, `paper`, `true` or `false`."""


UNFIT = {
    "contexts": "shows everybody the same, whatever is known of them. Make a Setting without contexts, or take "
    "'private'.",
    "rules": "shows any items together, and keeps to no rules. Make a Setting without rules, or take 'private', which "
    "keeps to them.",
    "exclusions": "ranks no items behind its slates, so nobody can exclude any. Make a Setting without exclusions, or "
    "take 'private'.",
    "retention": "keeps users, and cannot be told for how many rounds. Make a Setting without retention, or take "
    "'private', which forgets in time or keeps nobody.",
    "sample": "learns from everybody. Make a Setting without a sample, or take a learner whose recipe has the option "
    "`sample`, as 'private' has with full feedback.",
}
"""Why a learner cannot satisfy a setting, by the option that its recipe lacks."""


@dataclass(frozen=True)
class Advice:
    """What users should know of a learner before they choose it. One phrase each.

    Attributes
    ----------
    guarantee : str
        What is proved about everything that it publishes.
    bound : str
        Order of the proved regret against (1 - 1/e) of the best slate, for any sequence of users.
    memory : str
        What it keeps of users between rounds.
    when : str
        When to take it.
    keeps_users : bool, default False
        Whether single users' data is kept, not only sums over users.

    """

    guarantee: str
    bound: str
    memory: str
    when: str
    keeps_users: bool = False


class Fits(Protocol):
    """Makes a learner with its defaults for what is known beforehand."""

    def __call__(self, setting: Setting, *, rng: RandomSource | None, ledger: Ledger | None) -> Learner:
        """Everything follows from the setting."""
        ...


@dataclass(frozen=True)
class Entry(Generic[P]):
    """One learner of the table `LEARNERS`: its recipe, and what is known about it beforehand.

    Call it with the arguments of the recipe, or use `for_setting`, which calibrates.

    Parameters
    ----------
    name : str
        What users type.
    make : callable
        The recipe: takes `n_items`, `slots` and options by name, and returns a Learner of this name.
    reads : frozenset of str
        Kinds of feedback that it learns from.
    summary : str
        One line: what it is.
    advice : Advice
        When to take it.
    fits : callable, optional
        (setting, rng, ledger) -> Learner, if constants do not follow from the arguments of the recipe.
    private : bool, default True
        Whether it promises privacy; then it has a horizon, a contribution bound and a ledger.
    pure : bool, default False
        Whether its delta is 0.
    slow : bool, default False
        Whether forecasts simulate it with fewer users.
    audited_on : tuple of (n_items, slots, rounds), optional
        Smallest worlds in which it spends its budget, for audits; or functions of epsilon that return one.
    choices : mapping of str to tuple, optional
        Options by which it has variants: the values of each, the default first.
    vary : callable, optional
        Given a value for each of `choices`, returns the fields of the entry that differ.

    Examples
    --------
    >>> import diminuendo as dim
    >>> entry = dim.LEARNERS["fi-dp"]
    >>> sorted(entry.reads), entry.private, entry.advice.guarantee
    (['full'], True, '(ε, δ)')

    """

    name: str
    make: Callable[P, Learner]
    reads: frozenset[FeedbackKind]
    summary: str
    advice: Advice
    fits: Fits | None = None
    private: bool = True
    pure: bool = False
    slow: bool = False
    audited_on: tuple[Shape | Callable[[float], Shape], ...] = field(default=(), repr=False)
    choices: Mapping[str, tuple[Value, ...]] = field(default_factory=dict, repr=False, compare=False)
    vary: Callable[..., dict[str, Any]] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Let `help` show the options of the recipe, and what they mean."""
        described = getattr(self.make, "func", self.make).__doc__
        options = re.sub(
            r"(: |-> )'([^']*)'", r"\1\2", str(signature(self.make))
        )  # annotations without quotes
        text = f"{self.name}{options}\n\n{cleandoc(described or self.summary)}"
        object.__setattr__(self, "__signature__", signature(self.make))
        object.__setattr__(self, "__doc__", text)

    @property
    def learner(self) -> str:
        """The name of its learners, which is that of the entry without the options of a variant."""
        return self.name.partition(":")[0]

    def variant(self, **chosen: Value) -> Entry[P]:
        """The entry with these options; this one, where all of them have their default."""
        for option, value in chosen.items():
            if option not in self.choices:
                raise InvalidInput(f"{self.name!r} has no option {option!r}. {self.choices_in_words()}")
            if not any(type(value) is type(each) and value == each for each in self.choices[option]):
                values = " or ".join(map(spelled, self.choices[option]))
                raise InvalidInput(f"The option {option} of {self.name!r} is {values}; got {spelled(value)}.")
        usual = {option: values[0] for option, values in self.choices.items()}
        wanted = usual | chosen
        if self.vary is None or wanted == usual:
            return self
        other = [
            f"{option}={spelled(wanted[option])}"
            for option in sorted(wanted)
            if wanted[option] != usual[option]
        ]
        return replace(
            self, name=f"{self.name}:{','.join(other)}", choices={}, vary=None, **self.vary(**wanted)
        )

    def spelled_variant(self, options: Mapping[str, str]) -> Entry[P]:
        """The entry with options that were given as text; text that is no value is refused."""
        known = {
            option: {spelled(value): value for value in values} for option, values in self.choices.items()
        }
        return self.variant(
            **{option: known.get(option, {}).get(text, text) for option, text in options.items()}
        )

    def variants(self) -> list[Entry[P]]:
        """This entry, and then those with other options."""
        return [
            self.variant(**dict(zip(self.choices, values, strict=True)))
            for values in product(*self.choices.values())
        ]

    def choices_in_words(self) -> str:
        """Which options there are, with their values, the default first."""
        said = [f"{option}={'|'.join(map(spelled, values))}" for option, values in self.choices.items()]
        return f"Its options: {', '.join(said)}." if said else "It has no options."

    @property
    def options(self) -> tuple[str, ...]:
        """The names of its options, in the order of its recipe."""
        return tuple(signature(self.make).parameters)

    @property
    def uses_epsilon(self) -> bool:
        """Whether its behaviour depends on epsilon: of private learners, and of their variants without noise, whose
        plans are the same."""
        return self.takes("epsilon")

    def takes(self, option: str) -> bool:
        """Whether its recipe has this option."""
        return option in self.options

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Learner:
        """A learner with these options."""
        return self._named(self.make(*args, **kwargs))

    def _named(self, learner: Learner) -> Learner:
        if learner.name != self.learner:
            raise InvalidInput(
                f"A learner of {self.learner!r} cannot have another name; got {learner.name!r}."
            )
        return learner

    def for_setting(
        self,
        setting: Setting,
        *,
        rng: RandomSource | None = None,
        ledger: Ledger | None = None,
        **options: Any,
    ) -> Learner:
        """Return a learner calibrated for a setting.

        Parameters
        ----------
        setting : Setting
            What is known before the first user arrives.
        rng : RandomSource, optional
            Randomness. By default SystemSource.
        ledger : Ledger, optional
            What is charged. By default a ledger of its own, in memory.
        **options
            Options of the recipe. Constants that follow from the setting do so only if no option is given.

        Returns
        -------
        Learner

        Raises
        ------
        InvalidInput
            If the learner cannot satisfy the setting, such as its contexts or rules.
        """
        if not self.private and ledger is not None:
            raise InvalidInput(f"{self.name!r} promises nothing; no ledger can pay for what it shows.")
        unfit = {
            "contexts": setting.contexts is not None,
            "rules": setting.rules is not None,
            "exclusions": setting.exclusions,
            "retention": setting.retention is not None and self.advice.keeps_users,
            "sample": setting.sample > 1 and self.private,
        }
        for option, message in UNFIT.items():
            if unfit[option] and not self.takes(option):
                raise InvalidInput(f"{self.name!r} {message}")
        if options and "calibration=" in self.name:
            raise InvalidInput(
                f"{self.name!r} takes its constants from the setting; leave {', '.join(options)} out, or say all of "
                f"them to {self.learner!r}."
            )
        if self.fits is not None and not options:
            return self.fits(setting, rng=rng, ledger=ledger)
        decided = setting.arguments() | {"ledger": ledger}
        for name in ("n_items", "slots"):
            del decided[name]
        said = {name: decided[name] for name in decided if self.takes(name)} | options
        wanted = {
            name for name, each in signature(self.make).parameters.items() if each.default is each.empty
        }
        if missing := wanted - {"n_items", "slots", *said}:
            raise InvalidInput(
                f"{self.name!r} takes its constants from the setting, or all of them as said: say "
                f"{', '.join(sorted(missing))} too, or leave {', '.join(options)} out."
            )
        make: Callable[..., Learner] = self.make
        return make(setting.n_items, setting.slots, rng=rng, **said)

    def restore(
        self,
        snapshot: bytes,
        *,
        rng: RandomSource | None = None,
        ledger: Ledger | None = None,
        clock: Callable[[], float] | None = None,
        engine: Any = None,
    ) -> Learner:
        """Return the learner of a snapshot. See `diminuendo.restore`, which looks up the entry.

        Parameters
        ----------
        snapshot : bytes
            Of a learner of this name.
        rng : RandomSource, optional
            Randomness. By default SystemSource.
        ledger : Ledger, optional
            The ledger that paid for it. Required if it had one.
        clock : callable, optional
            Required if the feedback window is in seconds.
        engine : optional
            Where stored users' data is evaluated.

        Returns
        -------
        Learner

        Raises
        ------
        InvalidInput
            If the snapshot is damaged, of another learner, or lacks its ledger or clock.
        """
        header, result = _snapshots.of_learner(snapshot, self.learner)
        more: dict[str, Any] = {} if ledger is None else {"ledger": ledger}
        if engine is not None and self.takes("engine"):
            more["engine"] = engine
        if header.get("ledger") and ledger is None:
            raise InvalidInput(
                "The learner of this snapshot was paid for on a ledger: restore(snapshot, ledger=...) with the same "
                "one. Without it nobody would know what was drawn since."
            )
        config = dict(header["config"])
        window = config.get("feedback_window")
        if clock is None and isinstance(window, dict) and "seconds" in window:
            raise InvalidInput(
                "The learner of this snapshot waits for answers in seconds, so it needs a clock: "
                "restore(snapshot, clock=time.time), or the one that it had."
            )
        make: Callable[..., Learner] = self.make
        try:
            if isinstance(window, dict):
                config["feedback_window"] = FeedbackWindow(**window, clock=clock)
            learner = make(**config, rng=rng, **more)
        except (TypeError, KeyError, ValueError, OverflowError, AttributeError) as error:
            raise InvalidInput(f"The snapshot's configuration does not fit this learner: {error}.") from error
        self._named(learner)
        learner._take_snapshot(result)
        return learner


def spelled(value: object) -> str:
    """A value of an option as text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def options_in(name: str) -> tuple[str, dict[str, str]]:
    """The name of a learner or role, and the options behind it: `fi-dp:calibration=paper`."""
    learner, colon, rest = name.partition(":")
    pairs = [part.strip().partition("=") for part in rest.split(",")] if colon else []
    options = {option: value for option, _, value in pairs}
    if not all(option and value for option, _, value in pairs) or len(options) < len(pairs):
        raise InvalidInput(
            f"Options of a learner are written name:key=value,key=value, each key once; got {name!r}."
        )
    return learner, options


AnyEntry: TypeAlias = Entry[...]
"""An entry whatever its options."""
