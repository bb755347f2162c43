"""What comes from outside the package is known by its name everywhere, and is held to the same rules."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import diminuendo as dim
from diminuendo import _plugins
from diminuendo._plugins import Carried, PluginNotLoaded, load
from diminuendo.audit import EFFORTS, audit
from diminuendo.audit.pathwise import pathwise
from diminuendo.audit.without_noise import without_noise
from diminuendo.contract import CHECKS, cases_of, releases
from diminuendo.contract.slates import check_rng_that_fail_for_a_while_lose_nothing
from diminuendo.errors import InvalidInput, UnknownName
from diminuendo.experts import EXPERTS, Hedge
from diminuendo.extend import ExactSum, register
from diminuendo.learners import LEARNERS, Setting, learner_class
from diminuendo.learners.base.replay import loop
from diminuendo.objectives import BestMatch
from diminuendo.plan.planner import candidate
from diminuendo.simulate import simulate
from diminuendo.simulate.report.page import _who
from diminuendo.simulate.task import Run, StreamSlice
from diminuendo.streams.builtin import from_rows
from diminuendo.types import NEVER
from tests.kit.pages import blocks
from tests.kit.plugins import plugins_forgotten

ROOT = Path(__file__).parents[1]
HOW_TO = ROOT / "docs" / "how-to" / "your-own-learner.md"
TEMPLATE, DRAWN = (block.text for block in blocks(HOW_TO) if block.file in ("popular.py", "drawn.py"))
BROKEN = (ROOT / "tests" / "kit" / "broken_learners.py").read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder of its own with the template in it; what is loaded from there is forgotten."""
    place = tmp_path / "mine"
    place.mkdir()
    (place / "popular.py").write_text(TEMPLATE)
    with plugins_forgotten():
        yield place


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command in that folder, as somebody would type it there."""
    return subprocess.run(
        [sys.executable, "-m", *words], cwd=folder, capture_output=True, text=True, check=False
    )


# Where plugins come from.


def test_a_file_is_loaded_by_its_path(folder: Path) -> None:
    with pytest.raises(UnknownName, match="There is no learner called 'popular'"):
        learner_class("popular", "full")
    assert load(str(folder / "popular.py")) == ["popular"]
    assert "popular" in list(LEARNERS)
    assert LEARNERS.origins["popular"].file == str(folder / "popular.py")
    assert candidate("popular", Setting(20, 3, 1000, "full")).guarantee.epsilon == pytest.approx(1)


def test_a_module_is_looked_for_in_the_present_folder_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "wishes").mkdir()
    (folder / "wishes" / "__init__.py").touch()
    (folder / "popular.py").rename(folder / "wishes" / "liked.py")
    monkeypatch.chdir(folder)
    assert load("wishes.liked") == ["popular"]
    assert LEARNERS.origins["popular"].module == "wishes.liked"
    (folder / "wishes" / "__init__.py").write_text("import wishes.liked\n")
    for said in ("wishes/", "wishes/__init__.py", str(folder / "wishes" / "liked.py")):
        assert load(said) == ["popular"]


@pytest.mark.parametrize(
    ("said", "text", "why"),
    [
        ("nowhere.py", None, "There is no plugin at"),
        ("./", None, "There is no plugin at"),
        ("nowhere", None, "No module named 'nowhere'"),
        ("quiet_one.py", "", "registers nothing"),
        ("bad_one.py", "1 / 0", "cannot be loaded: ZeroDivisionError"),
        ("json.py", "", "there is another one of that name"),
    ],
)
def test_what_is_no_plugin_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, said: str, text: str | None, why: str
) -> None:
    monkeypatch.chdir(folder)
    if text is not None:
        Path(said).write_text(text)
    with pytest.raises(InvalidInput, match=why):
        load(said)


def test_installed_packages_are_found_when_a_name_is_not_ours(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them cannot be loaded: it is named, and the others are there."""
    info = folder / "likes-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: likes\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[diminuendo.plugins]\ncracked = cracked\nliked = popular\n")
    (folder / "cracked.py").write_text("raise RuntimeError('cracked')")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(_plugins, "_looked", False)
    learner_class("private", "full")
    assert "overlap-greedy" in LEARNERS
    assert not _plugins._looked, "our own names need no look"
    with pytest.warns(PluginNotLoaded, match=r"'cracked' \(cracked\) of the installed package likes"):
        assert learner_class("popular", "full").name == "popular"
    assert "popular" in LEARNERS, "and they are looked for once"


# Names.


def test_names_that_are_taken_are_refused_with_who_has_them(folder: Path) -> None:
    load(str(folder / "popular.py"))
    entry, known = LEARNERS["popular"], set(LEARNERS)
    with pytest.raises(InvalidInput, match=r"'popular', which popular \(.*popular.py\) has already"):
        register(entry)
    for taken, who in (("hedge", "diminuendo itself"), ("private", "a role")):
        with pytest.raises(InvalidInput, match=who):
            register(_renamed(entry, taken))
    for wrong in ("Mine", "a,b", "", "a b"):
        with pytest.raises(InvalidInput, match="small letters"):
            register(_renamed(entry, wrong))
    with pytest.raises(InvalidInput, match="diminuendo itself"):
        register(_renamed(entry, "new"), streams={"msweb": dim.msweb})
    assert set(LEARNERS) == known, "all of it, or nothing"
    register(_renamed(entry, "new"))
    register(_renamed(entry, "new"))  # the same module may do so again


def test_what_is_none_is_refused() -> None:
    wrong: Any
    more: Any
    for wrong in ((), ("popular",)):
        with pytest.raises(InvalidInput, match=r"nothing to register|as an Entry"):
            register(*wrong)
    for more in ({"families": [int]}, {"experts": {"mine": 3}}, {"streams": {"mine": None}}):
        with pytest.raises(InvalidInput, match=r"derived from Family|must be a function"):
            register(**more)


def _renamed(entry: Any, name: str) -> Any:
    made = object.__new__(type(entry))
    made.__dict__.update(entry.__dict__ | {"name": name})
    return made


class Chosen(BestMatch):
    """The best thing shown, under another name."""

    name = "chosen"


def test_experts_families_and_streams_are_known_too() -> None:
    with plugins_forgotten():
        register(
            families=[Chosen],
            experts={"mine": Hedge},
            streams={"few": lambda: dim.Users(Chosen(), (np.eye(4),), 4, name="few")},
        )
        assert dim.open_stream("few").family_name == "chosen"
        assert dim.FAMILIES["chosen"] is Chosen
        assert "chosen" in from_rows()
        learner = dim.OrderedExperts(4, 2, expert="mine", rng=dim.SeededSource(1))
        assert len(learner.choose().slate) == 2
    assert "mine" not in EXPERTS


# Defaults of policies.


@pytest.fixture
def popular(folder: Path) -> Any:
    load(str(folder / "popular.py"))
    return LEARNERS["popular"]


def test_a_replay_is_the_loop_where_answers_are_late_and_users_come_again(popular: Any) -> None:
    users = dim.open_stream("taste-groups")[:200]
    rng = np.random.default_rng(4)
    delay = np.where(rng.random(200) < 0.2, NEVER, rng.integers(8, size=200))
    delay = np.where(np.arange(200) + delay < 200, delay, NEVER)  # the loop ends before these answers come
    user_ids = rng.integers(120, size=200)
    setting = Setting(users.n_items, 3, 200, "full", 20.0, max_rounds_per_user=2, feedback_window=6)
    replayed, looped = (popular.for_setting(setting, rng=dim.SeededSource(5)) for _ in range(2))
    slates = replayed.replay(users, user_ids=user_ids, delay=delay)
    np.testing.assert_array_equal(slates, loop(looped, users, user_ids=user_ids, delay=delay))
    np.testing.assert_array_equal(
        replayed.policy.total.release(replayed._frame.secret),
        looped.policy.total.release(looped._frame.secret),
    )
    assert replayed.guarantee.neighbours == "replace one user's 2 rounds"


def test_who_has_a_budget_says_what_it_costs(popular: Any) -> None:
    policy = popular.for_setting(Setting(5, 2, 100, "full")).policy
    policy.sums = {"exact": ExactSum(5, schedule=policy.total.schedule, clip=policy.total.clip)}
    with pytest.raises(InvalidInput, match="does not say what it costs"):
        _ = policy.guarantee
    policy.sums = {"one": policy.total, "again": policy.total}
    assert policy.guarantee.epsilon > 1.3, "two sums cost more than what was asked for, and it says so"


# Simulations, workers and the report.


def test_what_is_carried_is_there_again(popular: Any) -> None:
    origin = LEARNERS.origins["popular"]
    with plugins_forgotten():
        carried = Carried.packed()
        register_as_main(popular, "in-a-notebook")
        carried_main = Carried.packed()
        del LEARNERS["popular"], LEARNERS["in-a-notebook"], sys.modules["popular"]
        sys.path.remove(str(Path(origin.file).parent))
        carried.unpack()
        assert LEARNERS.origins["popular"] == origin
        assert "in-a-notebook" not in LEARNERS
        carried_main.unpack()
        assert "in-a-notebook" in LEARNERS


def register_as_main(entry: Any, name: str) -> None:
    """As a notebook does: its names are those of `__main__`."""
    exec("register(entry)", {"__name__": "__main__", "register": register, "entry": _renamed(entry, name)})


def test_kept_runs_are_those_of_the_source_that_made_them(folder: Path, popular: Any) -> None:
    run_ = Run(StreamSlice(0, 5, "x"), "popular", 0, Setting(5, 2, 5, "full"), "")
    before = run_.key
    (folder / "popular.py").write_text(TEMPLATE + "# changed\n")
    assert run_.key != before
    (folder / "popular.py").write_text(TEMPLATE)
    assert run_.key == before


def test_the_report_says_where_it_comes_from(folder: Path, popular: Any) -> None:
    users = dim.open_stream("taste-groups")[:40]
    result = simulate(users, slots=2, learners=["popular"], seeds=1, time_limit=1)
    assert "from the plugin popular, whose author answers for it" in _who(result.results[0])


@pytest.mark.slow
def test_workers_import_it_by_themselves(folder: Path) -> None:
    few = ("--learners", "popular", "--rounds", "200", "--seeds", "2", "--jobs", "2")
    for more in ((), ("--ray", "local")):
        ran = run(folder, "diminuendo", "simulate", "taste-groups", "--plugin", "popular.py", *few, *more)
        assert ran.returncode == 0, ran.stderr
        assert "popular" in ran.stdout


def test_commands_know_it_without_its_being_installed(folder: Path) -> None:
    ran = run(folder, "diminuendo", "learners", "--plugin", "popular.py", "--json", "-")
    assert ran.returncode == 0, ran.stderr
    assert '"learner": "popular"' in ran.stdout


# Contract and audit.


@pytest.fixture
def broken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three learners that must not pass. Worlds are short: one is enough to see it."""
    (folder / "broken.py").write_text(BROKEN)
    load(str(folder / "broken.py"))
    monkeypatch.setattr(releases, "LENGTHS", (200,))
    return folder


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("silent", "depends on what users said"),
        ("at-the-end", "depends on what users said"),
        ("forgetful", "the snapshot (lacks|does not hold)"),
    ],
)
def test_who_is_silent_forgets_or_releases_at_the_end_fails_contract_and_audit(
    broken: Path, name: str, why: str
) -> None:
    (case,) = cases_of(LEARNERS[name])
    new = [check for check in CHECKS if check.__module__ == releases.__name__]
    said = []
    for check in new:
        try:
            check(case)
        except AssertionError as error:
            said.append(str(error))
    assert said
    result = audit([name], effort=EFFORTS["quick"], seed=1)
    assert not result.passed
    assert result.unsuitable.keys() == {name}
    assert all(re.search(why, each) for each in (*said, result.unsuitable[name]))
    for check in new:
        check(cases_of(LEARNERS["popular"])[0])


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.__name__))
def test_the_page_s_learner_without_a_menu_keeps_the_contract(folder: Path, check: Any) -> None:
    (folder / "drawn.py").write_text(DRAWN)
    assert load(str(folder / "drawn.py")) == ["drawn"]
    for case in cases_of(LEARNERS["drawn"]):
        check(case)


def test_words_that_are_taken_twice_in_a_draw_fail_the_contract(folder: Path) -> None:
    once = "rng = np.random.default_rng(self.frame.public.take(2))"
    assert once in DRAWN
    twice = "rng = np.random.default_rng([self.frame.public.take(1)[0] for _ in range(2)])"
    (folder / "drawn.py").write_text(DRAWN.replace(once, twice))
    load(str(folder / "drawn.py"))
    (case,) = cases_of(LEARNERS["drawn"])
    with pytest.raises(AssertionError, match="not equal"):
        check_rng_that_fail_for_a_while_lose_nothing(case)


def test_the_page_installs_what_its_commands_need() -> None:
    text = HOW_TO.read_text()
    optional = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert not any("pytest" in needed for needed in optional["all"])
    assert "pip install '.[all]' pytest" in text[: text.index("pytest --diminuendo")]


def test_the_audit_finds_it_without_its_noise(popular: Any) -> None:
    (result,) = pathwise(without_noise("popular"), 1.0, 1e-6, EFFORTS["quick"], 1)
    assert result.violation


def test_pytest_runs_the_contract(broken: Path) -> None:
    few = (
        "-k",
        "distinct or (forgetful and holds)",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "diminuendo.pytest_plugin",
    )
    ran = run(broken, "pytest", *few, "--diminuendo", "popular.py", "--diminuendo", "broken.py")
    assert "1 failed, 4 passed" in ran.stdout, ran.stdout
    assert "forgetful[full]-a_snapshot_holds_what_was_learned" in ran.stdout
