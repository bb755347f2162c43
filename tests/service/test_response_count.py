"""How many answer, about: published with noise, paid for, the same after a crash, and counted once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.sources import SeededSource
from diminuendo.randomness.words import SecretRandomness
from diminuendo.service.apply import budget_errors
from diminuendo.service.records import NoisyCount, PopulationSpec
from diminuendo.service.trainer.response_count import TIMES, ResponseCount
from tests.service.world import World, repeat_noise, spec

PLACE = spec("slate-totals", "bandit", epsilon=4.0, response_count=0.4)


def heard_of(ledger: Ledger) -> ResponseCount:
    return ResponseCount(PLACE, ledger)


@pytest.mark.parametrize("budget", [Budget(2.0, 0.0, accountant="pure"), Budget(2.0, 1e-6)])
def test_it_is_about_how_many_answered(budget: Budget) -> None:
    ledger, secret = Ledger(budget), SecretRandomness(SeededSource(3))
    response_count, answered = heard_of(ledger), np.flatnonzero(np.arange(3000) % 3)
    assert ledger.charges, "it is paid for before anybody comes"
    notes = []
    for end in range(100, 3001, 100):
        response_count.add(answered[(answered >= end - 100) & (answered < end)])
        if (note := response_count.published(end, secret)) is not None:
            notes.append(note)
    assert len(ledger.drawn) == TIMES
    assert [note.rounds for note in notes] == sorted({note.rounds for note in notes})
    last = notes[-1]
    assert abs(last.answers - 2000) < 6 * last.deviation
    assert 0 < last.deviation < 200
    assert all(note.answers != int(note.answers) or note.answers != 2000 for note in notes)


def test_a_round_in_a_batch_that_is_over_is_too_late() -> None:
    ledger, secret = Ledger(Budget(1e6, 0.0, accountant="pure")), SecretRandomness(SeededSource(3))
    response_count = heard_of(ledger)
    response_count.add(np.array([0, 1]))
    assert response_count.published(125, secret) == NoisyCount(2.0, 125, 0.0)
    response_count.add(np.array([3, 130, 5000]))
    assert response_count.published(125, secret) is None, "nothing is published twice"
    assert response_count.published(250, secret) == NoisyCount(3.0, 250, 0.0)


def test_nothing_is_drawn_or_paid_where_it_was_not_asked_for() -> None:
    ledger = Ledger(Budget(2.0, 0.0, accountant="pure"))
    response_count = ResponseCount(spec("slate-totals", "bandit"), ledger)
    response_count.add(np.arange(10))
    assert response_count.published(3000, SecretRandomness(SeededSource(3))) is None
    assert not ledger.charges
    assert response_count.snapshot() == b""


def test_who_does_not_say_how_many_come_has_batches_that_grow() -> None:
    ledger = Ledger(Budget(2.0, 0.0, accountant="pure"))
    ResponseCount(spec("slate-totals", "bandit", users=None, response_count=0.1), ledger)
    assert len(ledger.charges) == 1


def test_it_is_part_of_what_a_population_pays_for() -> None:
    population = PopulationSpec(4.0, 0.0)
    for epsilon, errors in ((3.0, []), (3.5, ["cannot pay for all its placements together"])):
        place = spec("slate-totals", "bandit", epsilon=epsilon, delta=0.0, response_count=0.2)
        result = list(budget_errors("users", population, {"place": place}))
        assert len(result) == len(errors)
        assert all(said in error for said, error in zip(errors, result, strict=True))


def test_the_trainer_says_it_and_says_the_same_after_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repeat_noise(monkeypatch)
    whole, cut = World(tmp_path / "whole", place=PLACE), World(tmp_path / "cut", place=PLACE)
    trainer = whole.trainer(whole.store)
    whole.play(60, trainer.step)
    for _ in range(60):
        cut.play(1, lambda: cut.trainer(cut.store).step())
    said = [world.menu().response_count for world in (whole, cut)]
    assert said[0] == said[1]
    note = said[0]
    assert note is not None
    said_so = sum(number < note.rounds for number in whole.front[1].said)
    assert 0.6 * said_so - 6 * note.deviation < note.answers < said_so + 6 * note.deviation, "some were late"
