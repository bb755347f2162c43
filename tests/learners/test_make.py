"""Learners by name: every option through `make`, a ledger that fits, and back from a snapshot."""

from __future__ import annotations

import inspect
import pydoc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import diminuendo as dim
from diminuendo.errors import InvalidInput, LedgerInUse, OverBudget, UnknownEvent, UnknownName
from diminuendo.learners import LEARNERS, ROLES
from diminuendo.privacy import Budget, Ledger, Unit
from diminuendo.streams import taste_groups

N_ITEMS = 12
FULL = dim.Setting(N_ITEMS, 3, 400, "full", epsilon=1.0, delta=1e-6)
CLICK = replace(FULL, feedback="click")
PRIVATE = [
    (name, feedback) for name, entry in LEARNERS.items() if entry.private for feedback in sorted(entry.reads)
]
WISHES = dim.user(dim.NoisyOr(), {1: 0.5, 4: 0.9}, n_items=N_ITEMS)


def setting_for(feedback: Any) -> dim.Setting:
    return replace(FULL, feedback=feedback)


def same(one: dim.Learner, other: dim.Learner) -> bool:
    return one.snapshot() == other.snapshot() and one.parameters == other.parameters


def test_options_reach_the_recipe() -> None:
    prior = np.linspace(0, 0.5, N_ITEMS)
    options: dict[str, Any] = {
        "prior": prior,
        "prior_users": 7,
        "absent": [0, 3],
        "feedback_window": 5,
        "max_rounds_per_user": 2,
    }
    made = dim.make("private", FULL, **options, rng=dim.SeededSource(1))
    by_hand = dim.OverlapGreedy(
        N_ITEMS, 3, horizon=400, epsilon=1.0, delta=1e-6, **options, rng=dim.SeededSource(1)
    )
    assert same(made, by_hand)
    assert made.max_rounds_per_user == 2
    assert made.feedback_window == dim.FeedbackWindow(rounds=5)
    assert made.choose("ada").slate == by_hand.choose("ada").slate
    assert 0 not in made.choose("bob").slate
    assert not same(made, dim.make("private", FULL, rng=dim.SeededSource(1)))


def test_options_that_a_setting_has_are_said_otherwise() -> None:
    contexts = dim.Contexts(country=["DE", "FR"], private=True)
    made = dim.make("private", FULL, contexts=contexts, epsilon=0.5, rules=dim.SlateRules(pinned=[2]))
    assert made.contexts == contexts
    assert 2 in made.choose(context={"country": "DE"}).slate
    assert made.guarantee.epsilon == pytest.approx(0.5)
    assert dim.make("private", FULL, exclusions=True).choose(exclude=[1]).slate
    assert dim.make("private", FULL, delta=0.0).name == "epoch-greedy"  # the role follows what is said
    assert dim.make("overlap-greedy", FULL, horizon=None).horizon != 400
    shelves = [[0, 1], [2, 3], [4, 5]]
    eligible = dim.make("private", FULL, eligible=shelves)
    row = eligible.row_of(eligible.choose())
    assert all(item in shelf for item, shelf in zip(row, shelves, strict=True))


def test_options_of_one_learner_alone() -> None:
    assert dim.make("epoch-greedy", FULL, epoch=7).parameters["epoch"] == 7
    given = dim.make("fi-dp", FULL, rate=0.01)  # instead of the rate that follows from the setting
    assert given.parameters["rate"] == 0.01
    assert dim.make("fi-dp", FULL).parameters["rate"] != 0.01


def test_constants_follow_from_the_setting_or_are_all_said() -> None:
    bandit = replace(FULL, feedback="bandit")
    with pytest.raises(InvalidInput, match=r"say cap, exploring too, or leave rate out"):
        dim.make("bandit-dp", bandit, rate=0.01)
    assert dim.make("bandit-dp", bandit, rate=0.01, cap=20, exploring=0.1).parameters["rate"] == 0.01


def test_what_can_be_read_once_is(tmp_path: Path) -> None:
    learner = dim.make("private", FULL, absent=(item for item in range(9)), ledger=tmp_path / "people.ledger")
    assert set(learner.choose().slate) == {9, 10, 11}


@pytest.mark.parametrize(
    ("name", "setting", "option", "able"),
    [
        ("cascade-thompson", CLICK, {"prior": [0.1] * N_ITEMS}, "slate-clicks"),
        ("epoch-greedy", FULL, {"absent": [1]}, "overlap-greedy"),
        ("overlap-greedy", FULL, {"epoch": 3}, "epoch-greedy"),
        ("overlap-greedy", FULL, {"exploring": 0.1}, "hedge-bandit"),
        ("private", FULL, {"proir": [0.1] * N_ITEMS}, "No learner"),
        ("cascade-thompson", CLICK, {"rules": dim.SlateRules(pinned=[2])}, "private"),
        ("cascade-thompson", CLICK, {"exclusions": True}, "private"),
    ],
)
def test_what_a_learner_does_not_take_names_one_that_does(
    name: str, setting: dim.Setting, option: dict[str, Any], able: str
) -> None:
    with pytest.raises(InvalidInput, match=able) as result:
        dim.make(name, setting, **option)
    assert "0.1" not in str(result.value)


@pytest.mark.parametrize("name", LEARNERS)
def test_help_shows_the_options(name: str) -> None:
    entry = LEARNERS[name]
    text = pydoc.render_doc(entry, renderer=pydoc.TextDoc())
    assert inspect.signature(entry) == inspect.signature(entry.make)
    for option in inspect.signature(entry.make).parameters:
        assert option in text
    assert "'int'" not in text
    assert len(text) > 200


def test_make_shows_the_options_of_private() -> None:
    shown = set(inspect.signature(dim.make).parameters)
    decided = {"n_items", "slots", "horizon", "epsilon", "delta"}  # by the setting
    for role in ROLES["private"].values():
        assert set(LEARNERS[role].options) - decided <= shown
    text = pydoc.render_doc(dim.make, renderer=pydoc.TextDoc())
    assert "prior_users" in text


@pytest.mark.parametrize(("name", "feedback"), PRIVATE)
def test_a_ledger_in_a_file_fits_whoever_it_is_begun_for(name: str, feedback: str, tmp_path: Path) -> None:
    """Also with visits; and it goes on with what is in the file."""
    if name in ("bandit-dp", "bandit-dp:draw=presampled"):
        return  # the paper's rates cost more than is said, and a run whose explorations are drawn has its own tests
    setting = replace(setting_for(feedback), max_rounds_per_user=2)
    learner = dim.make(name, setting, ledger=tmp_path / "people.ledger")
    assert learner.ledger is not None
    assert learner.ledger.budget == learner.budget == dim.budget_for(name, setting)
    for number in range(5):
        learner.observe(learner.choose(number).id, answer(learner, feedback))
    snapshot = learner.snapshot()
    learner.ledger.close()
    again = dim.restore(snapshot, ledger=str(tmp_path / "people.ledger"))
    assert (again.name, again.rounds) == (name, 5)
    if again.menu is not None:  # others draw from secret scores, and pay for that again
        again.choose("ada")


def answer(learner: dim.Learner, feedback: str) -> Any:
    return {"full": WISHES, "bandit": 0.5, "click": None}[feedback]


@pytest.mark.parametrize(
    ("more", "relation"),
    [
        ({"contexts": dim.Contexts(country=["DE"], private=True)}, "replace-with-context"),
        ({"contexts": dim.Contexts(country=["DE"])}, "replace"),
        ({"exclusions": True}, "replace-with-exclusions"),
    ],
)
def test_a_ledger_in_a_file_has_the_relation(more: dict[str, Any], relation: str, tmp_path: Path) -> None:
    learner = dim.make("private", FULL, ledger=tmp_path / "people.ledger", max_rounds_per_user=3, **more)
    assert learner.ledger is not None
    assert learner.ledger.budget.unit == Unit(3, relation)  # type: ignore[arg-type]  # one of them


def test_a_file_that_is_there_is_gone_on_with_or_refused(tmp_path: Path) -> None:
    file = tmp_path / "people.ledger"
    with Ledger.open(file, replace(dim.budget_for("private", FULL), epsilon=3.0)):
        pass
    learner = dim.make("private", FULL, ledger=file)
    assert learner.ledger is not None
    assert learner.ledger.budget.epsilon == 3.0
    with pytest.raises(LedgerInUse, match=r"ledger\.named\("):
        dim.make("private", FULL, ledger=file)
    learner.ledger.close()
    with pytest.raises(InvalidInput, match="rounds of one user") as kept:
        dim.make("private", FULL, ledger=file, max_rounds_per_user=2)
    with Ledger.open(file):  # whoever was refused has let go of the file, though the error is looked at
        assert kept.tb is not None
    snapshot = dim.make("private", CLICK).snapshot()
    with pytest.raises(dim.DiminuendoError) as other:
        dim.restore(snapshot, ledger=file)  # which counts otherwise
    with Ledger.open(file):
        assert other.tb is not None
    (tmp_path / "torn").write_bytes(b"")
    dim.make("private", FULL, ledger=tmp_path / "torn")
    (tmp_path / "letter").write_text("Dear Ada,\n")
    with pytest.raises(dim.DiminuendoError):
        dim.make("private", FULL, ledger=tmp_path / "letter")
    with pytest.raises(InvalidInput, match="promises nothing"):
        dim.make("random", FULL, ledger=tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_several_learners_on_one_ledger() -> None:
    """Each with its part of the budget, to the end of their runs; a third has no room."""
    whole = dim.budget_for("private", FULL)
    part, users = whole.split(2).epsilon, taste_groups(400, N_ITEMS, groups=3, items_per_group=4, seed=1)
    ledger = Ledger(whole)
    pair = [
        dim.make("private", FULL, epsilon=part, ledger=ledger.named(name), rng=dim.SeededSource(seed))
        for seed, name in enumerate(("front-page", "basket"))
    ]
    with pytest.raises(InvalidInput, match=r"ledger\.named\("):
        dim.make("private", FULL, epsilon=part, ledger=ledger.named("basket"))
    for learner in pair:
        learner.replay(users)
    assert 0.98 < ledger.spent() <= 1
    with pytest.raises(OverBudget, match="Ask for less"):
        dim.make("private", FULL, epsilon=part, ledger=ledger.named("checkout"))


@pytest.mark.parametrize(
    ("name", "given", "kind", "wanted"),
    [
        ("overlap-greedy", Budget(1.0, 1e-6), OverBudget, "continuous-gaussian"),
        ("slate-clicks", Budget(1.0, 1e-6), OverBudget, "pure"),
        ("fi-dp", Budget(1.0, 0.0, accountant="pure"), OverBudget, "zcdp"),
        ("overlap-greedy", Budget(1.0, 0.0, accountant="pure"), UnknownEvent, "continuous-gaussian"),
        ("slate-clicks", Budget(1.0, 1e-6, accountant="continuous-gaussian"), UnknownEvent, "pure"),
        ("fi-dp", Budget(1.0, 1e-6, accountant="continuous-gaussian"), UnknownEvent, "zcdp"),
    ],
)
def test_a_ledger_that_counts_otherwise_names_the_accountant(
    name: str, given: Budget, kind: type[Exception], wanted: str
) -> None:
    setting = replace(FULL, feedback="click" if name == "slate-clicks" else "full")
    with pytest.raises(kind) as result:
        dim.make(name, setting, ledger=Ledger(given))
    said = str(result.value)
    assert f"'{wanted}'" in said
    assert given.accountant in said.replace(f"'{wanted}'", "")
    assert "make(.., ledger=FILE)" in said
    assert dim.budget_for(name, setting).accountant == wanted


def test_a_run_that_is_too_dear_however_it_is_counted_says_so() -> None:
    ledger = Ledger(Budget(0.1, 1e-6))
    with pytest.raises(OverBudget, match=r"of epsilon 0\.1 .*Ask for less") as result:
        dim.make("overlap-greedy", FULL, ledger=ledger)
    assert "accountant=" not in str(result.value)
    assert not ledger.charges


def test_what_cannot_be_restored() -> None:
    with pytest.raises(InvalidInput, match="learner"):
        dim.restore(b"nothing of the kind")
    with pytest.raises(InvalidInput, match="same one"):
        dim.restore(dim.make("private", FULL, ledger=Ledger(dim.budget_for("private", FULL))).snapshot())
    with pytest.raises(UnknownName, match="overlap-greedi"):
        dim.make("overlap-greedi", FULL)
