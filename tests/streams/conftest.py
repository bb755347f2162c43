"""What tests of readers share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

from diminuendo.streams import ReadNote


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What was guessed or left out is looked at in `was_read`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadNote)
        yield
