"""Options behind the name of a learner: what they make, how they are written, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import diminuendo as dim
from diminuendo import Setting
from diminuendo.cli.typed import learner_names
from diminuendo.errors import DiminuendoError, InvalidInput
from diminuendo.learners import LEARNERS, make, restore, with_variants
from diminuendo.learners.base.entry import options_in
from diminuendo.privacy import Ledger
from diminuendo.simulate import sweep
from diminuendo.streams import taste_groups

USERS = taste_groups(200, 8, groups=2, items_per_group=3, seed=1)
VARIANTS = [name for name in with_variants() if ":" in name]


def setting_for(name: str) -> Setting:
    return Setting(8, 2, 200, min(LEARNERS[name].reads), 1.0, 0.0 if "pure" in name else 1e-6)


def test_there_are_few_names_and_their_variants() -> None:
    assert len(LEARNERS) <= 16
    assert len(VARIANTS) == 9
    assert not any(":" in name for name in LEARNERS)
    assert "fi-dp:calibration=paper" in LEARNERS
    assert LEARNERS["fi-dp:calibration=tight"] is LEARNERS["fi-dp"]
    assert (
        LEARNERS["bandit-dp:draw=direct,calibration=paper"].name == "bandit-dp:calibration=paper,draw=direct"
    )


@pytest.mark.filterwarnings("ignore::diminuendo.errors.OutOfRange")
@pytest.mark.parametrize("name", VARIANTS)
def test_options_by_name_are_those_by_keyword(name: str) -> None:
    """And a snapshot of such a learner is read by the name of the learner alone."""
    learner, options = options_in(name)
    typed: dict[str, Any] = {option: {"false": False}.get(text, text) for option, text in options.items()}
    setting = setting_for(name)
    one, other = (
        make(name, setting, rng=dim.SeededSource(3)),
        make(learner, setting, rng=dim.SeededSource(3), **typed),
    )
    assert one.name == other.name == learner
    np.testing.assert_array_equal(one.replay(USERS[:100]), other.replay(USERS[:100]))
    assert one.snapshot() == other.snapshot()
    again = restore(one.snapshot(), rng=dim.SeededSource(4))
    assert (again.guarantee.epsilon, again.parameters) == (one.guarantee.epsilon, one.parameters)
    plain = make(learner, setting, rng=dim.SeededSource(3))
    assert plain.parameters != one.parameters or plain.guarantee != one.guarantee


def test_roles_take_options_too() -> None:
    setting = Setting(8, 2, 200, "bandit")
    for learner in (make("private", setting, private=False), make("private:private=false", setting)):
        assert (learner.name, learner.guarantee.epsilon) == ("slate-totals", float("inf"))
    with pytest.raises(InvalidInput, match="has no option 'calibration'"):
        make("private:calibration=paper", setting)


def test_without_noise_no_ledger_pays(tmp_path: Path) -> None:
    setting = Setting(8, 2, 200, "bandit")
    with pytest.raises(InvalidInput, match="promises nothing"):
        make("slate-totals", setting, private=False, ledger=tmp_path / "people.ledger")
    with pytest.raises(InvalidInput, match="promises nothing"):
        dim.budget_for("slate-totals:private=false", setting)
    budget = dim.budget_for("slate-totals", setting)
    with pytest.raises(InvalidInput, match="promises nothing"):
        make("slate-totals", setting, private=False, ledger=Ledger(budget))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fi-dp:calibration=papr", "option calibration of 'fi-dp' is tight or paper; got papr"),
        ("fi-dp:calib=paper", r"'fi-dp' has no option 'calib'. Its options: calibration=tight\|paper"),
        ("hedge:private=false", "'hedge' has no option 'private'. It has no options"),
        ("fi-dp:paper", "written name:key=value,key=value"),
        ("fi-dp:", "written name:key=value,key=value"),
        ("fi-dp:calibration=paper,calibration=tight", "each key once"),
        ("fi-dq:calibration=paper", "no learner called 'fi-dq'. Did you mean 'fi-dp'"),
    ],
)
def test_what_is_no_option_is_refused_with_those_that_are(name: str, said: str) -> None:
    with pytest.raises(DiminuendoError, match=said):
        make(name, Setting(8, 2, 200, "full"))
    with pytest.raises(DiminuendoError, match=said):
        sweep(USERS, slots=2, learners=name, seeds=1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"calibration": "printed"}, "is tight or paper; got printed"),
        ({"calibration": True}, "is tight or paper; got true"),
        ({"private": False}, "does not take 'private'. These do: slate-totals"),
        ({"calibration": "paper", "rate": 0.1}, "takes its constants from the setting; leave rate out"),
    ],
)
def test_keywords_that_do_not_fit_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        make("fi-dp", Setting(8, 2, 200, "full"), **options)
    with pytest.raises(InvalidInput, match="is true or false; got 0"):
        make("slate-totals", Setting(8, 2, 200, "bandit"), private=0)  # type: ignore[arg-type]


def test_commas_between_names_and_between_options() -> None:
    assert learner_names("private, bandit-dp:draw=direct,calibration=paper,random,") == [
        "private",
        "bandit-dp:draw=direct,calibration=paper",
        "random",
    ]


@pytest.mark.filterwarnings("ignore::diminuendo.errors.OutOfRange")
def test_rows_are_labelled_as_typed() -> None:
    (result,) = sweep(USERS, slots=2, learners=["fi-dp:calibration=paper", "fi-dp"], seeds=1).simulations
    assert [run.learner for run in result.results] == ["fi-dp:calibration=paper", "fi-dp"]
    assert [run.played_by for run in result.results] == ["fi-dp:calibration=paper", "fi-dp"]
