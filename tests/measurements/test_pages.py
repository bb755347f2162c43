"""Pages and pictures say what is kept, and no measured number stands on a page by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from measurements.entries import ENTRIES
from measurements.pages import MARKED, pages, rendered
from measurements.pictures import PICTURES, carried
from measurements.results import ROOT, Kept, digest, read_results, write_results
from measurements.streams import RECIPES
from measurements.tables import BLOCKS, FRONT, mean, number
from tests.kit.pages import FENCE, RUN

BY_OTHER_MEANS = {
    "docs/maths/lazy.md": "bounds, which are formulas; compared by tests/learners/test_lazy_hedge.py",
    "docs/planning.md": "forecasts beside single real runs, held against each other by tests/test_plan_forecast.py "
    "and tests/test_plan_slates.py",
    "docs/maths/private-greedy.md": "bounds, computed from formulas",
    "docs/scaling.md": "cores, reckoned by benchmarks/scaling.py from what it measured; compared by its test",
}
"""Pages with tables of shares that are not measured by an entry, and why."""

SHARE = re.compile(r"\**[01]?\.\d{2,4}\b|\d+(\.\d+)? %")
"""How a cell begins that says what was earned or shown."""


def hand_typed(text: str) -> list[str]:
    """Lines of tables and of blocks that are only shown, outside all markers, with two shares or more."""
    outside = MARKED.sub("", text)
    blocks = [
        result[3] for result in FENCE.finditer(outside) if result[2] not in (*RUN, "sh", "yaml", "toml")
    ]
    rows = [line for line in FENCE.sub("", outside).splitlines() if line.startswith("|")]
    cells = [(line, [cell.strip() for cell in line.split("|")]) for line in rows]
    cells += [(line, line.split()) for block in blocks for line in block.splitlines()]
    return [line for line, parts in cells if sum(bool(SHARE.match(part)) for part in parts) >= 2]


def test_pages_say_what_is_kept() -> None:
    results = read_results()
    for page in pages():
        text = page.read_text()
        assert text == rendered(text, results), f"{page.name}: run `python -m measurements --write`"


def test_a_page_that_says_something_else_is_noticed() -> None:
    page, results = (ROOT / "docs" / "results.md").read_text(), read_results()
    (_, name, shown, _), *_ = MARKED.findall(page)
    typed = page.replace(shown, re.sub(r"\d", "7", shown, count=1))
    assert name in BLOCKS
    assert typed != page
    assert rendered(typed, results) == page


def test_every_block_stands_somewhere_and_every_marker_names_one() -> None:
    named = [result[1] for page in pages() for result in MARKED.findall(page.read_text())]
    assert sorted(named) == sorted(BLOCKS)
    assert {entry for block in BLOCKS.values() for entry in block.entries} <= set(ENTRIES)


def test_held_out_streams_are_told_from_those_that_constants_were_chosen_on() -> None:
    assert "on which constants were chosen" in (ROOT / "docs" / "results.md").read_text()
    held_out = {name for name, recipe in RECIPES.items() if recipe.sha256}
    assert held_out == {"retail", "jester5k", "uk-accidents"}
    shown = {block: {ENTRIES[name].stream for name in BLOCKS[block].entries} for block in BLOCKS}
    assert shown.pop("held-out") == held_out
    shown.pop("front")
    assert not any(streams & held_out for streams in shown.values())
    for private, yardstick, label in FRONT:
        assert ENTRIES[private].stream == ENTRIES[yardstick].stream
        assert ("†" in label) == (ENTRIES[private].stream in held_out)


def test_everything_was_measured_by_the_command_that_is_printed() -> None:
    results = read_results()
    assert list(results) == list(ENTRIES), "run `make numbers`"
    for name, kept in results.items():
        assert kept.command == ENTRIES[name].command(kept.seeds), (
            f"run `python -m measurements --only {name}`"
        )
        assert all(len(runs) == kept.seeds for runs in kept.cells.values())
        assert bool(kept.seeds) == ENTRIES[name].seeded


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_no_measured_number_is_typed_by_hand(page: Path) -> None:
    place = page.relative_to(ROOT).as_posix()
    if place not in BY_OTHER_MEANS:
        assert not hand_typed(page.read_text()), "let measurements/ render it"


def test_pages_that_are_let_off_need_to_be() -> None:
    for place in BY_OTHER_MEANS:
        assert hand_typed((ROOT / place).read_text()), f"{place} has no such table any more"


@pytest.mark.parametrize(
    "typed",
    [
        "| MSWeb | .907 ± .013, worst .84 | .647 ± .022 |\n",
        "| fault | 1.00 | - | **1.90** |\n",
        "| groceries | 0.1 | 46 % | 62 % |\n",
        "```\n nonprivate   0.996±.000  0.996±.000\n```\n",
    ],
)
def test_a_number_that_is_typed_by_hand_is_noticed(typed: str) -> None:
    assert len(hand_typed(f"Before.\n\n{typed}\nAfter.\n")) == 1
    assert not hand_typed(f"Before.\n\n<!-- measured: demo -->\n{typed}<!-- end -->\nAfter.\n")


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_show_what_is_kept(name: str) -> None:
    results, picture = read_results(), PICTURES[name]
    again = "make numbers" if picture.screenshot else "python -m measurements --write"
    assert carried(ROOT / "docs" / name) == digest(results, picture.entries), f"docs/{name}: run `{again}`"


def test_a_picture_of_other_numbers_is_noticed() -> None:
    results = read_results()
    kept = results["rewards-msweb"]
    changed = kept.cells | {"private 1": [0.5, *kept.cells["private 1"][1:]]}
    results["rewards-msweb"] = Kept(kept.command, kept.seeds, changed, kept.spec)
    assert carried(ROOT / "docs" / "seeds.png") != digest(results, PICTURES["seeds.png"].entries)


def test_every_picture_of_the_docs_that_is_measured_has_an_entry() -> None:
    assert {path.name for path in (ROOT / "docs").glob("*.png")} == set(PICTURES)


def test_what_is_kept_is_read_back(tmp_path: Path) -> None:
    results = read_results()
    write_results(results, tmp_path / "results.json")
    assert read_results(tmp_path / "results.json") == results


def test_numbers_as_pages_write_them() -> None:
    assert [number(value) for value in (0.9071, 1.2034, 1.0, 0.99999)] == [".907", "1.203", "1.000", "1.000"]
    assert mean([0.5]) == ".500"
    assert mean([0.5, 0.6]) == ".550 ± .635", "Student's t with one degree of freedom: 12.706 times .05"


def test_what_the_paper_page_says_in_words_of_continuous_learners() -> None:
    cells = read_results()["continuous"].cells
    earned = {cell: sum(runs) / len(runs) for cell, runs in cells.items()}
    for epsilon in ("0.1", "0.3", "1", "3", "10"):
        boosted, pure = (earned[f"boosted, {noise} {epsilon}"] for noise in ("Gaussian", "pure"))
        assert boosted > earned[f"Algorithm 4, Gaussian {epsilon}"], "ahead of Algorithm 4 at every epsilon"
        assert pure > earned[f"Algorithm 4, pure {epsilon}"], "ahead of Algorithm 4 at every epsilon"
    printed = "Algorithm 4, pure, the paper's constants"
    assert min(cells["boosted, Gaussian 0.1"]) < min(cells["Algorithm 4, Gaussian 0.1"]), (
        "its worst earns less"
    )
    assert all(earned[f"{printed} {e}"] > earned[f"Algorithm 4, pure {e}"] for e in ("1", "3", "10"))
    private = {cell: mean for cell, mean in earned.items() if cell.endswith(" 10")}
    assert max(private, key=lambda cell: private[cell]) == f"{printed} 10", (
        "ahead of everything at epsilon 10"
    )
