"""The peers and floors of the privacy benchmarks compute what ours computes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from benchmarks import draws, selection
from benchmarks.charges import AMPLE, KINDS, charge_all, charged_lines, in_turns, some_events, write_and_sync
from benchmarks.contributions import agreed, clipped, scatter
from benchmarks.flat import uniform_people
from benchmarks.laws import FALSE_ALARM, Law
from benchmarks.noise_costs import check_spread
from benchmarks.report import Disagreement
from diminuendo import SeededCoins
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import SecretRandomness, noise, select
from diminuendo.randomness.score_classes import new_score_classes, probabilities
from diminuendo.randomness.ticks import TICKS
from diminuendo.sums.batch import OpenBatch
from diminuendo.sums.clip import Clip
from diminuendo.sums.schedule import equal

pytestmark = pytest.mark.slow

RATE = 0.5


@pytest.fixture(scope="module")
def gains() -> draws.Gains:
    return draws.some_gains(rounds=150, n_items=20, nnz=4, experts=3)


def test_everybody_draws_by_the_same_laws(gains: draws.Gains) -> None:
    law = Law(draws.laws(gains, RATE))
    seeds = range(30)
    by_urns = [
        draws.exact(gains, new_score_classes(20, 3, RATE / TICKS), SecretRandomness(SeededCoins(seed)))
        for seed in seeds
    ]
    by_choice = [draws.choice(gains, RATE, np.random.default_rng(seed)) for seed in seeds]
    tuned = [draws.tuned(gains, RATE, np.random.default_rng(seed)) for seed in seeds]
    wrong = [draws.tuned(gains, 1.5 * RATE, np.random.default_rng(seed)) for seed in seeds]
    for drawn in (by_urns, by_choice, tuned):
        assert law.p_value(np.array(drawn), len(seeds)) > 1e-6
    assert law.p_value(np.array(wrong), len(seeds)) < FALSE_ALARM


def test_laws_are_those_of_the_urns(gains: draws.Gains) -> None:
    classes = new_score_classes(20, 3, RATE / TICKS)
    draws.exact(
        draws.Gains(gains.items[:-1], gains.ticks[:-1], 3, 20), classes, SecretRandomness(SeededCoins(0))
    )
    last = draws.laws(gains, RATE).reshape(150, 3, 20)[-1]
    for expert in range(3):
        assert last[expert] == pytest.approx(probabilities(classes, expert))


def test_everybody_selects_by_the_same_law() -> None:
    scores = np.array([0, 50, 100, 200, 300])
    law = Law(selection.law_of(scores)[None, :])
    rng = np.random.default_rng(0)
    secret = SecretRandomness(SeededCoins(0))
    noisy_max = selection.opendp_select()
    ways: list[Callable[[], int]] = [
        lambda: select(scores, selection.RATE, secret),
        lambda: selection.choice(scores, rng),
        lambda: selection.gumbel(scores, rng),
        lambda: noisy_max(scores),
    ]
    for one in ways:
        assert law.p_value(np.array([one() for _ in range(2_000)]), 2_000) > FALSE_ALARM
    doubled = Law(selection.law_of(2 * scores)[None, :])
    assert (
        doubled.p_value(np.array([selection.gumbel(scores, rng) for _ in range(2_000)]), 2_000) < FALSE_ALARM
    )


@pytest.mark.parametrize("clip", [Clip(), Clip("l1", bound=0.5, ticks=100)], ids=["l2", "l1"])
def test_the_floor_adds_up_to_the_same(clip: Clip) -> None:
    matrix = sparse.csr_array(uniform_people(200, 30, 10).matrices[0])
    collector = OpenBatch(30, clip, equal(rounds=200, batches=1))
    collector.add_rows(matrix)
    floor = scatter(clipped(matrix, clip), np.zeros(30, dtype=np.int64))
    assert floor.sum() > 0
    agreed([collector._cells.entries()], [floor])
    with pytest.raises(Disagreement, match="differ"):
        agreed([collector._cells.entries()], [floor + 1])


def test_noise_of_another_spread_is_noticed() -> None:
    drawn = noise.gaussian(np.zeros(20_000, dtype=np.int64), 50.0, SecretRandomness(SeededCoins(0)))
    check_spread("it", drawn, 50.0)
    with pytest.raises(Disagreement, match="variance"):
        check_spread("it", drawn, 45.0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_floor_writes_what_a_ledger_writes(kind: str, tmp_path: Path) -> None:
    events = some_events(KINDS[kind], 5)
    with Ledger.open(tmp_path / "ours", AMPLE) as ledger:
        charge_all(ledger, events)
    with (tmp_path / "floor").open("ab", buffering=0) as file:
        for line in charged_lines(tmp_path / "ours", events):
            write_and_sync(file, line)
    assert (tmp_path / "ours").read_bytes().endswith((tmp_path / "floor").read_bytes())
    with pytest.raises(Disagreement, match="hold"):
        charged_lines(tmp_path / "ours", events[1:])


def test_charges_take_turns() -> None:
    heard: list[str] = []
    took = in_turns(*([partial(heard.append, f"{who}{turn}") for turn in range(3)] for who in "ab"))
    assert heard == ["a0", "b0", "a1", "b1", "a2", "b2"]
    assert took.shape == (2, 3)
    assert (took > 0).all()
