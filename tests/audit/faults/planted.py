"""A planted fault: a learner, and what is done wrong to it; and how that is put between its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from diminuendo.audit.subjects import Subject, changed
from diminuendo.learners.base.entry import AnyEntry


def nothing(policy: Any, broken: bool) -> None:
    """The fault is in what surrounds the learner."""


@dataclass(frozen=True)
class Fault:
    """A learner, and what is done wrong to it."""

    learner: AnyEntry
    plant: Callable[[Any, bool], None] = nothing
    """Changes a policy; only if it is told to, so that it is broken."""
    around: Callable[[], AbstractContextManager[None]] = nullcontext
    """What else is wrong with the world while the learner lives."""
    mended: Callable[[], AbstractContextManager[None]] = nullcontext
    """What surrounds it where nothing is wrong."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `Setting`, such as contexts."""

    def subject(self, name: str, *, broken: bool) -> Subject:
        """The learner with its fault; or, not broken, made by the same code with nothing wrong."""
        around = self.around if broken else self.mended
        name = name if broken else f"{name}, mended"
        return changed(
            name,
            self.learner,
            lambda policy: self.plant(policy, broken),
            around,
            **self.options,
        )


def after(policy: Any, name: str, then: Callable[..., None]) -> None:
    """Let `then` follow each call of that method; it is given what came of the call, and its arguments."""
    method = getattr(policy, name)

    def both(*given: Any) -> Any:
        came = method(*given)
        then(came, *given)
        return came

    setattr(policy, name, both)
