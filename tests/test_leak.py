"""examples/leak.py: slates of Thompson sampling tell who clicked, and those of `private` no more than it promises."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from diminuendo.randomness import noise
from diminuendo.randomness.words import SecretRandomness
from diminuendo.types import Ints
from examples import leak
from measurements.results import read_results
from tests.kit.slow import mostly_slow

GAMES = 100
SURE = 1 - 1e-4
"""Of each interval. Games are seeded, so a test that passes goes on to pass; it should also pass with other seeds."""


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return leak.attack(GAMES)


def called(one: dict[str, Any], visitors: str) -> tuple[int, int]:
    """How many visitors of a kind the attacker says have clicked, and how many there are."""
    seen, games = np.array(one[visitors])
    return int(games[seen >= one["guesses a click from"]].sum()), int(games.sum())


def interval(hits: int, games: int) -> tuple[float, float]:
    said = stats.binomtest(hits, games).proportion_ci(confidence_level=SURE, method="exact")
    return float(said.low), float(said.high)


def right(one: dict[str, Any]) -> tuple[float, float]:
    """How often the attacker is right, at least and at most."""
    (hits, clicks), (alarms, others) = (called(one, visitors) for visitors in ("clicked", "did not click"))
    return interval(hits + others - alarms, clicks + others)


def allowed(one: dict[str, Any], epsilon: float) -> bool:
    """Whether these guesses may come of an (epsilon, 0)-private learner, all intervals taken in its favour."""
    (hits, clicks), (alarms, others) = (called(one, visitors) for visitors in ("clicked", "did not click"))
    guesses = ((hits, clicks), (alarms, others)), ((clicks - hits, clicks), (others - alarms, others))
    factor = math.exp(epsilon)
    return right(one)[0] <= factor / (1 + factor) and all(
        interval(*likelier)[0] <= factor * interval(*other)[1]
        for guess in guesses
        for likelier, other in (guess, guess[::-1])
    )


def test_the_worlds_differ_in_the_first_visitor_alone() -> None:
    without, clicks = leak.visitors(False), leak.visitors(True)
    for shown in range(leak.ITEMS):
        slates = np.full((1 + leak.RELOADS, 1), shown, dtype=np.int32)
        assert (without.first_clicks(slates, 0) == -1).all()
        assert clicks.first_clicks(slates, 0).tolist() == [0] + [-1] * leak.RELOADS


def test_slates_of_thompson_sampling_tell_who_clicked(results: dict[str, Any]) -> None:
    thompson = results["attacks"]["Thompson sampling"]
    assert right(thompson)[0] > results["bound"]
    assert not allowed(thompson, results["epsilon"])


def test_private_tells_no_more_than_it_promises(results: dict[str, Any]) -> None:
    assert results["bound"] == pytest.approx(1 / (1 + math.exp(-1)))
    for name in ("private", "private's counts"):
        assert allowed(results["attacks"][name], results["epsilon"])
    at_least, at_most = right(results["attacks"]["private's counts"])
    assert at_least <= results["bound"] <= at_most, "who reads counts is as often right as anybody may be"


@pytest.mark.parametrize("noise_left", mostly_slow([0.0, 0.25], {0.0}))
def test_too_little_noise_is_found(noise_left: float, monkeypatch: pytest.MonkeyPatch) -> None:
    laplace = noise.laplace

    def quieter(values: Ints, scale: float, secret: SecretRandomness) -> Ints:
        return laplace(values, noise_left * scale, secret) if noise_left else values.copy()

    monkeypatch.setattr(noise, "laplace", quieter)
    result = leak.attack(GAMES)
    assert result["epsilon"] == 1, "which is claimed"
    assert not allowed(result["attacks"]["private's counts"], 1)


def test_frequencies_are_those_of_the_games(results: dict[str, Any]) -> None:
    for one in results["attacks"].values():
        (hits, clicks), (alarms, others) = (
            called(one, visitors) for visitors in ("clicked", "did not click")
        )
        assert clicks + others == results["games"] == GAMES
        shares = (hits + others - alarms) / GAMES, hits / clicks, alarms / others
        assert [one[kind][0] for kind in ("right", "true positives", "false positives")] == pytest.approx(
            shares, abs=1e-4
        )
        assert all(low <= share <= high for share, low, high in (one["right"], one["true positives"]))


@pytest.mark.slow
def test_the_picture_shows_games_that_can_be_played_again() -> None:
    kept = read_results()["leak"].drawn
    assert leak.attack(kept["games"]) == kept, "run `python -m measurements --only leak`"
