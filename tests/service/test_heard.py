"""How many answer, about: published with noise, paid for, the same after a crash, and counted once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from diminuendo.service.prepare import check_affordable

from diminuendo.errors import InvalidInput
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.sources import SeededSource
from diminuendo.randomness.words import SecretRandomness
from diminuendo.service.records import HeardNote, PopulationSpec
from diminuendo.service.trainer.heard import TIMES, Heard
from tests.service.world import World, repeat_noise, spec

PLACE = spec("slate-totals", "bandit", epsilon=4.0, heard=0.4)


def heard_of(ledger: Ledger) -> Heard:
    return Heard(PLACE, ledger)


@pytest.mark.parametrize("budget", [Budget(2.0, 0.0, accountant="pure"), Budget(2.0, 1e-6)])
def test_it_is_about_how_many_answered(budget: Budget) -> None:
    ledger, secret = Ledger(budget), SecretRandomness(SeededSource(3))
    heard, answered = heard_of(ledger), np.flatnonzero(np.arange(3000) % 3)
    assert ledger.charges, "it is paid for before anybody comes"
    notes = []
    for end in range(100, 3001, 100):
        heard.add(answered[(answered >= end - 100) & (answered < end)])
        if (note := heard.published(end, secret)) is not None:
            notes.append(note)
    assert len(ledger.drawn) == TIMES
    assert [note.rounds for note in notes] == sorted({note.rounds for note in notes})
    last = notes[-1]
    assert abs(last.answers - 2000) < 6 * last.deviation
    assert 0 < last.deviation < 200
    assert all(note.answers != int(note.answers) or note.answers != 2000 for note in notes)


def test_a_round_in_a_batch_that_is_over_is_too_late() -> None:
    ledger, secret = Ledger(Budget(1e6, 0.0, accountant="pure")), SecretRandomness(SeededSource(3))
    heard = heard_of(ledger)
    heard.add(np.array([0, 1]))
    assert heard.published(125, secret) == HeardNote(2.0, 125, 0.0)
    heard.add(np.array([3, 130, 5000]))
    assert heard.published(125, secret) is None, "nothing is published twice"
    assert heard.published(250, secret) == HeardNote(3.0, 250, 0.0)


def test_nothing_is_drawn_or_paid_where_it_was_not_asked_for() -> None:
    ledger = Ledger(Budget(2.0, 0.0, accountant="pure"))
    heard = Heard(spec("slate-totals", "bandit"), ledger)
    heard.add(np.arange(10))
    assert heard.published(3000, SecretRandomness(SeededSource(3))) is None
    assert not ledger.charges
    assert heard.snapshot() == b""


def test_who_does_not_say_how_many_come_has_batches_that_grow() -> None:
    ledger = Ledger(Budget(2.0, 0.0, accountant="pure"))
    Heard(spec("slate-totals", "bandit", users=None, heard=0.1), ledger)
    assert len(ledger.charges) == 1


def test_it_is_part_of_what_a_population_pays_for() -> None:
    population = PopulationSpec(4.0, 0.0)
    check_affordable(
        "users", population, {"place": spec("slate-totals", "bandit", epsilon=3.0, delta=0.0, heard=0.2)}
    )
    with pytest.raises(InvalidInput, match="cannot pay for all its placements together"):
        check_affordable(
            "users",
            population,
            {"place": spec("slate-totals", "bandit", epsilon=3.5, delta=0.0, heard=0.2)},
        )


def test_the_trainer_says_it_and_says_the_same_after_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repeat_noise(monkeypatch)
    whole, cut = World(tmp_path / "whole", place=PLACE), World(tmp_path / "cut", place=PLACE)
    trainer = whole.trainer(whole.store)
    whole.play(60, trainer.step)
    for _ in range(60):
        cut.play(1, lambda: cut.trainer(cut.store).step())
    said = [world.menu().heard for world in (whole, cut)]
    assert said[0] == said[1]
    note = said[0]
    assert note is not None
    said_so = sum(number < note.rounds for number in whole.front[1].said)
    assert 0.6 * said_so - 6 * note.deviation < note.answers < said_so + 6 * note.deviation, "some were late"
