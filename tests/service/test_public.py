"""What may leave: views are what the store says, ledgers are counted as ledgers count, and nothing private is asked."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from diminuendo.privacy import events
from diminuendo.privacy.ledger import audit
from diminuendo.service.accounts import Account, noise_of
from diminuendo.service.dashboard.overview import overview
from diminuendo.service.dashboard.parts import dots
from diminuendo.service.dashboard.population import population
from diminuendo.service.public import Public, Reads
from diminuendo.service.records import PlacementSpec
from diminuendo.streams import Contexts
from tests.service.fake_store import BEGAN, FakeStore, Private, tea_shop


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> FakeStore:
    return tea_shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture
def new(tmp_path: Path) -> tuple[FakeStore, int]:
    store = FakeStore(tmp_path)
    return store, store.placement("page", PlacementSpec("all", ("a", "b", "c", "d"), 2, "full", 100))


def one(slate: tuple[int, ...], **more: Any) -> dict[str, Any]:
    """A menu of one slate."""
    return {"kind": "one", "slots": 2, "end": None, "fallback": slate, "slates": (slate,), **more}


def test_nothing_private_can_be_asked(shop: FakeStore) -> None:
    asked = {name for name in vars(Reads) if not name.startswith("_")}
    assert asked == {
        "now",
        "populations",
        "placements",
        "menus",
        "id_blocks",
        "events",
        "heartbeats",
        "books",
    }
    for private in ("answers", "snapshot", "erase_user", "erased"):
        with pytest.raises(Private):
            getattr(shop, private)(1, 0, 9)


def test_a_ledger_is_counted_as_it_counts_itself(shop: FakeStore) -> None:
    account, ledger = Public(shop).account("customers"), audit(shop.folder / "customers")
    assert account.spent == ledger.spent()
    assert account.head == ledger.head
    assert sum(one.part for one in account.placements()) == pytest.approx(account.part, abs=1e-12)
    assert 0 < account.part < 1
    for whole in account.placements():
        assert sum(one.charges for one in account.purposes(whole.placement)) == whole.charges
    assert [one.purpose for one in account.purposes("front-page")] == ["users"]
    assert account.part_of("spring-sale") == 0


def test_lines_that_were_read_are_not_read_again_and_come_to_the_same(shop: FakeStore) -> None:
    content = (shop.folder / "customers").read_bytes()
    whole, grown = Account().read(content), Account()
    for size in (100, 1_000, 5_000, len(content)):  # in the midst of lines
        assert grown.read(content[:size]) is grown
    assert grown.lines == whole.lines
    assert grown.spent == whole.spent
    assert grown.placements() == whole.placements()
    cut = grown.read(content[: len(content) // 2])
    assert cut is not grown, "a ledger that was cut back is read from the start"
    assert len(cut.lines) < len(whole.lines)
    assert whole.spent_at(cut.head) == cut.spent


def test_a_ledger_that_was_changed_is_said_to_be(shop: FakeStore) -> None:
    content = (shop.folder / "customers").read_bytes()
    account = Account().read(content.replace(b"a chain over 24 items", b"a chain over 25 items", 1))
    assert "hash does not fit" in account.damaged
    assert not Account().read(content).damaged


def test_noise_is_as_wide_as_it_is() -> None:
    """Of a sum that one round moves by at most 1, with normal noise of deviation 20."""
    assert noise_of(events.Gaussian(1 / (2 * 20**2))) == pytest.approx(20)
    assert noise_of(events.ContinuousGaussian(1 / 20)) == pytest.approx(20)
    assert noise_of(events.NormalColumns(0, (1e-9, 1 / 20**2))) == pytest.approx(20), "to whom it costs most"
    assert noise_of(events.Laplace(math.sqrt(2) / 20)) == pytest.approx(20)
    two = (events.Gaussian(1 / (2 * 20**2)), events.Gaussian(1 / (2 * 5**2)))
    assert noise_of(events.Composed(two)) == pytest.approx(5)
    assert noise_of(events.Repeated(two[0], 7)) == pytest.approx(20)
    assert noise_of(events.Selections(3, 0.1)) is None
    assert noise_of(events.Composed(())) is None


def test_types_have_the_numbers_that_learners_give_them(tmp_path: Path) -> None:
    values: dict[str, tuple[str, ...]] = {"region": ("north", "south", "west"), "device": ("phone", "desk")}
    store = FakeStore(tmp_path)
    number = store.placement(
        "page", PlacementSpec("all", tuple("abcdefghijklmn"), 1, "full", 9, contexts=values)
    )
    store.menu(
        number,
        kind="types",
        slots=1,
        first=0,
        end=None,
        fallback=(13,),
        slates=tuple((t,) for t in range(12)),
    )
    view = Public(store).placement("page")
    assert view is not None
    shown = {segment.users: segment.slate for segment in view.segments}
    contexts = Contexts(values)
    for region in (None, *values["region"]):
        for device in (None, *values["device"]):
            kind = contexts.type_of({"region": region, "device": device})
            words = f"region {region or 'not said'}, device {device or 'not said'}"
            assert shown[words,] == (kind,)
    assert len(shown) == 12


def test_users_who_are_shown_the_same_are_one_segment(shop: FakeStore) -> None:
    view = Public(shop).placement("basket")
    assert view is not None
    assert [(len(one.users), one.own) for one in view.segments] == [(4, ()), (3, (19,)), (2, (6,))]


def test_groups_show_what_leads_in_their_deck(tmp_path: Path) -> None:
    store = FakeStore(tmp_path)
    spec = PlacementSpec("all", tuple("abcd"), 1, "click", 9, contexts={"device": ("phone", "desk")})
    number = store.placement("page", spec)
    rows = ((0,), (1,), (2,))
    store.menu(
        number, kind="groups", slots=1, first=0, end=4, fallback=(0,), slates=rows, groups=(0, 1, 1),
        decks=((0, 0, 1, 0), (2, 1, 2, 2)),
    )  # fmt: skip
    view = Public(store).placement("page")
    assert view is not None
    assert {one.users: one.slate for one in view.segments} == {
        ("device phone", "device desk"): (2,),
        ("device not said",): (0,),
    }


def test_what_changed_from_menu_to_menu(new: tuple[FakeStore, int]) -> None:
    store, number = new
    public = Public(store)
    for first, slate in ((0, (0, 1)), (10, (0, 1)), (20, (1, 0)), (30, (1, 2))):
        store.menu(number, **one(slate, first=first))
        store.hand_out(number, 10)
        store.clock += 5
        public.placements()
    (view,) = public.placements()
    assert [(c.moment.version, c.came, c.left, c.moved) for c in view.changes] == [
        (4, (2,), (0,), ()),
        (3, (), (), (1, 0)),
    ]
    assert view.rounds == 40
    assert view.shown_since == view.history[3]
    assert view.points == [(BEGAN + 5 * n, 10 * n + 10) for n in range(4)]


def test_a_menu_is_shown_from_its_time_on(new: tuple[FakeStore, int]) -> None:
    store, number = new
    public = Public(store)
    store.menu(number, **one((0, 1), first=0))
    store.menu(number, store.clock + 7.0, **one((2, 3), first=10))
    view = public.placement("page")
    assert view is not None
    assert (view.slate, view.next_menu(store.clock)[0]) == ((0, 1), None), "nor is it said that there is one"
    store.clock += 7
    view = public.placement("page")
    assert view is not None
    assert (view.slate, view.next_menu(store.clock)[0]) == ((2, 3), None)


def test_the_next_menu_waits_for_answers_and_for_a_whole_tick(tmp_path: Path) -> None:
    store = FakeStore(tmp_path)
    spec = PlacementSpec(
        "all", tuple("abcd"), 2, "click", 900, deadline=60.0, publish_delay=2.0, publish_interval=10.0
    )
    number = store.placement("page", spec)
    store.clock = 1000.0
    store.menu(
        number, kind="rounds", slots=2, first=0, end=20, fallback=(0, 1), slates=((0, 1),), shown=(0,) * 20
    )
    public = Public(store)
    store.hand_out(number, 15)
    view = public.placement("page")
    assert view is not None
    assert view.next_menu(1000.0) == (
        None,
        "It comes after 5 more rounds, at least 63 seconds after the last round that it learns from.",
    )
    store.hand_out(number, 5)
    view = public.placement("page")
    assert view is not None
    assert view.next_menu(1000.0)[0] == 1070.0, (
        "ID blocks end at 1005, answers at 1065, and 1067 is no whole tick"
    )


def test_no_menu_is_promised_when_all_rounds_are_handed_out(new: tuple[FakeStore, int]) -> None:
    store, number = new
    store.menu(number, **one((0, 1), first=0))
    for handed, over in ((99, False), (1, True)):
        store.hand_out(number, handed)
        (view,) = Public(store).placements()
        assert view.over is over
        assert ("planned rounds" in view.next_menu(store.clock)[1]) is over


def test_items_retire_and_come_back(new: tuple[FakeStore, int]) -> None:
    store, number = new
    public = Public(store)
    store.event(number, "items", {"retire": ["a", "b"], "appear": []}, "operate")
    store.event(number, "items", {"retire": [], "appear": ["b"]}, "operate")
    view = public.placement("page")
    assert view is not None
    assert view.retired == {"a"}


def test_health_is_what_was_said_last(shop: FakeStore) -> None:
    public, was = Public(shop), shop.clock
    states = []
    for shop.clock in (was + 5, was + 30, was + 90):
        states.append([one.state for one in public.health()])
    shop.clock = was
    assert states == [["well"] * 2, ["late"] * 2, ["away"] * 2]


def test_trainers_and_front_ends_of_the_last_hour_are_told_of(tmp_path: Path) -> None:
    store = FakeStore(tmp_path)
    for name in ("trainer-a-0", "trainer-b-0", "front-a-0"):
        store.heartbeat(name)
    store.clock += 4000
    assert [one.name for one in Public(store).health()] == ["trainer-a-0", "front-a-0"], (
        "the last of each kind"
    )
    store.heartbeat("trainer-b-0")
    store.heartbeat("trainer-c-0")
    store.clock += 5
    result = Public(store).health()
    assert [(one.name, one.state) for one in result if one.name != "front-a-0"] == [
        ("trainer-b-0", "well"), ("trainer-c-0", "well"),
    ]  # fmt: skip
    assert "2 of 2 healthy" in str(dots(result))
    assert "Ledgers</b> 1 stopped" in str(dots(result, {"users": "stopped: why"}))


def test_a_population_that_was_stopped_says_why(shop: FakeStore) -> None:
    public, why = Public(shop), "stopped: <b>somebody has seen more"
    assert not any(view.stopped for view in public.placements())
    shop.heartbeat("population customers", why)
    try:
        assert public.stopped() == {"customers": why}
        assert {view.row.population for view in public.placements() if view.stopped} == {"customers"}
        page = str(population(public, "customers", 0))
        assert "This population is stopped: &lt;b&gt;somebody" in page
        assert "rolled back" in str(overview(public))
    finally:
        shop.heartbeat("population customers")


def test_a_store_in_which_nothing_is(tmp_path: Path) -> None:
    public = Public(FakeStore(tmp_path))
    assert public.placements() == []
    assert public.health() == []
    assert public.stopped() == {}
    assert public.account("nobody").head == ""


def test_sizes_of_releases_are_those_of_what_is_kept(shop: FakeStore) -> None:
    public = Public(shop)
    release, charge = next(public.account("customers").releases("front-page"))
    assert (release.name, charge.about) == ("users-000021.sums", "a chain over 24 items")
    assert public.size_of("customers", release.release) == 24
    assert public.size_of("customers", "nothing") is None
