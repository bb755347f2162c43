"""A learner without its noise, so that an audit of it has something to find: `diminuendo audit --faults`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

from diminuendo import _validate
from diminuendo.audit.subjects import Subject, changed, play, shipped
from diminuendo.audit.taps import NOISE, Taps
from diminuendo.audit.worlds import Script
from diminuendo.errors import InvalidInput
from diminuendo.learners import LEARNERS, Setting
from diminuendo.randomness import noise
from diminuendo.randomness import rounded_normal as normal
from diminuendo.randomness.sources import SeededSource

WITHOUT_NOISE = " without noise"


@contextmanager
def noiseless() -> Iterator[None]:
    """Sums and counts are published as they are."""

    def as_it_is(values: Any, scale: float, secret: Any) -> Any:
        return np.array(values)

    with (
        mock.patch.object(noise, "laplace", as_it_is),
        mock.patch.object(noise, "gaussian", as_it_is),
        mock.patch.object(normal, "rounded_normal", as_it_is),
    ):
        yield


def without_noise(learner: str) -> Subject:
    """A learner whose sums and counts are published as they are; refused where it publishes none."""
    entry = _validate.lookup(LEARNERS, learner, "learner")
    subject = changed(learner + WITHOUT_NOISE, entry, lambda policy: None, noiseless)
    setting, taps = Setting(4, 2, 512, subject.feedback), Taps()
    play(shipped(learner), setting, Script(setting.rounds, ()), SeededSource(0), taps)
    if not any(crossing.law in NOISE for crossing in taps.crossings):
        raise InvalidInput(
            f"{learner!r} adds no noise to sums or counts in {setting.rounds} rounds: none can be left out."
        )
    return subject
