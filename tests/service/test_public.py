"""The read model of the dashboard: views follow the store, accounts follow ledgers, and nothing private is read."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from diminuendo.privacy import events
from diminuendo.privacy.ledger import audit
from diminuendo.service.dashboard.accounts import Account, noise_of
from diminuendo.service.dashboard.overview import overview
from diminuendo.service.dashboard.population import population
from diminuendo.service.dashboard.views import PlacementView, Public, Reads
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


def view_of(public: Public, name: str = "page") -> PlacementView:
    (view,) = public.state(name).placements
    return view


def test_nothing_private_can_be_read(shop: FakeStore) -> None:
    reads = {name for name in vars(Reads) if not name.startswith("_")}
    assert reads == {
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


def test_an_account_agrees_with_the_audit_of_its_ledger(shop: FakeStore) -> None:
    account, ledger = Public(shop).account("customers"), audit(shop.folder / "customers")
    assert account.spent == ledger.spent()
    assert account.head == ledger.head
    assert sum(one.part for one in account.placements()) == pytest.approx(account.part, abs=1e-12)
    assert 0 < account.part < 1
    for whole in account.placements():
        assert sum(one.charges for one in account.purposes(whole.placement)) == whole.charges
    assert [one.purpose for one in account.purposes("front-page")] == ["users"]
    assert account.part_of("spring-sale") == 0


def test_an_account_that_is_read_in_pieces_is_the_same(shop: FakeStore) -> None:
    content = (shop.folder / "customers").read_bytes()
    whole, grown = Account().read(content), Account()
    for size in (100, 1_000, 5_000, len(content)):  # in the midst of lines
        assert grown.read(content[:size]) is grown
    assert grown.lines == whole.lines
    assert grown.spent == whole.spent
    assert grown.placements() == whole.placements()
    cut = grown.read(content[: len(content) // 2])
    assert cut is not grown, "a truncated ledger is read from the start"
    assert len(cut.lines) < len(whole.lines)
    assert whole.spent_at(cut.head) == cut.spent


def test_a_changed_ledger_is_damaged(shop: FakeStore) -> None:
    content = (shop.folder / "customers").read_bytes()
    account = Account().read(content.replace(b"a chain over 24 items", b"a chain over 25 items", 1))
    assert "hash does not fit" in account.damaged
    assert not Account().read(content).damaged


def test_noise_is_a_lower_bound_on_its_standard_deviation() -> None:
    """Of a sum that one round moves by at most 1, with normal noise of deviation 20."""
    assert noise_of(events.Gaussian(1 / (2 * 20**2))) == pytest.approx(20)
    assert noise_of(events.ContinuousGaussian(1 / 20)) == pytest.approx(20)
    assert noise_of(events.NormalColumns(0, (1e-9, 1 / 20**2))) == pytest.approx(20), "for the largest cost"
    assert noise_of(events.Laplace(math.sqrt(2) / 20)) == pytest.approx(20)
    two = (events.Gaussian(1 / (2 * 20**2)), events.Gaussian(1 / (2 * 5**2)))
    assert noise_of(events.Composed(two)) == pytest.approx(5)
    assert noise_of(events.Repeated(two[0], 7)) == pytest.approx(20)
    assert noise_of(events.Selections(3, 0.1)) is None
    assert noise_of(events.Composed(())) is None


def test_context_ids_are_those_of_learners(tmp_path: Path) -> None:
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
    view = view_of(Public(store))
    shown = {segment.contexts: segment.slate for segment in view.segments}
    contexts = Contexts(values)
    for region in (None, *values["region"]):
        for device in (None, *values["device"]):
            kind = contexts.type_of({"region": region, "device": device})
            words = f"region {region or 'unknown'}, device {device or 'unknown'}"
            assert shown[words,] == (kind,)
    assert len(shown) == 12


def test_contexts_with_the_same_slate_are_one_segment(shop: FakeStore) -> None:
    view = view_of(Public(shop), "basket")
    assert [(len(one.contexts), one.own) for one in view.segments] == [(4, ()), (3, (19,)), (2, (6,))]


def test_groups_show_the_most_frequent_slate_of_their_deck(tmp_path: Path) -> None:
    store = FakeStore(tmp_path)
    spec = PlacementSpec("all", tuple("abcd"), 1, "click", 9, contexts={"device": ("phone", "desk")})
    number = store.placement("page", spec)
    rows = ((0,), (1,), (2,))
    store.menu(
        number, kind="groups", slots=1, first=0, end=4, fallback=(0,), slates=rows, groups=(0, 1, 1),
        decks=((0, 0, 1, 0), (2, 1, 2, 2)),
    )  # fmt: skip
    view = view_of(Public(store))
    assert {one.contexts: one.slate for one in view.segments} == {
        ("device phone", "device desk"): (2,),
        ("device unknown",): (0,),
    }


def test_changes_from_menu_to_menu(new: tuple[FakeStore, int]) -> None:
    store, number = new
    public = Public(store)
    for first, slate in ((0, (0, 1)), (10, (0, 1)), (20, (1, 0)), (30, (1, 2))):
        store.menu(number, **one(slate, first=first))
        store.hand_out(number, 10)
        store.clock += 5
        view = view_of(public)
    assert [(c.moment.version, c.added, c.removed, c.moved) for c in view.changes] == [
        (4, (2,), (0,), ()),
        (3, (), (), (1, 0)),
    ]
    assert view.impressions == 40
    assert view.shown_since == view.history[3]
    assert view.points == [(BEGAN + 5 * n, 10 * n + 10) for n in range(4)]


def test_a_menu_is_shown_from_its_time_on(new: tuple[FakeStore, int]) -> None:
    store, number = new
    public = Public(store)
    store.menu(number, **one((0, 1), first=0))
    store.menu(number, store.clock + 7.0, **one((2, 3), first=10))
    view = view_of(public)
    assert (view.slate, view.next_menu(store.clock)[0]) == ((0, 1), None), "and no sign of the next"
    store.clock += 7
    view = view_of(public)
    assert (view.slate, view.next_menu(store.clock)[0]) == ((2, 3), None)


def test_the_next_menu_waits_for_feedback_and_a_whole_interval(tmp_path: Path) -> None:
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
    view = view_of(public)
    assert view.next_menu(1000.0) == (
        None,
        "It comes after 5 more impressions, at least 63 seconds after the last impression it learns from.",
    )
    store.hand_out(number, 5)
    view = view_of(public)
    assert view.next_menu(1000.0)[0] == 1070.0, (
        "blocks expire at 1005, feedback at 1065, and 1067 is no whole interval"
    )


def test_no_menu_is_announced_when_all_impressions_are_assigned(new: tuple[FakeStore, int]) -> None:
    store, number = new
    store.menu(number, **one((0, 1), first=0))
    for handed, over in ((99, False), (1, True)):
        store.hand_out(number, handed)
        view = view_of(Public(store))
        assert view.over is over
        assert ("planned impressions" in view.next_menu(store.clock)[1]) is over


def test_items_retire_and_appear(new: tuple[FakeStore, int]) -> None:
    store, number = new
    public = Public(store)
    store.event(number, "items", {"retire": ["a", "b"], "appear": []}, "admin")
    store.event(number, "items", {"retire": [], "appear": ["b"]}, "admin")
    view = view_of(public)
    assert view.retired == {"a"}


def test_health_follows_heartbeats(shop: FakeStore) -> None:
    public, was = Public(shop), shop.clock
    states = []
    for shop.clock in (was + 5, was + 30, was + 90):
        states.append([one.state for one in public.state().health])
    shop.clock = was
    assert states == [["healthy"] * 2, ["late"] * 2, ["away"] * 2]


def test_processes_of_the_last_hour_are_listed(tmp_path: Path) -> None:
    store = FakeStore(tmp_path)
    for name in ("trainer-a-0", "trainer-b-0", "front-a-0"):
        store.heartbeat(name)
    store.clock += 4000
    assert [one.name for one in Public(store).state().health] == ["trainer-a-0", "front-a-0"], (
        "the last of each kind"
    )
    store.heartbeat("trainer-b-0")
    store.heartbeat("trainer-c-0")
    store.clock += 5
    store.heartbeat("population users", "stopped: why")
    result = Public(store).state().health
    assert [(one.name, one.state) for one in result if one.name != "front-a-0"] == [
        ("trainer-b-0", "healthy"), ("trainer-c-0", "healthy"),
    ]  # fmt: skip
    page = str(overview(Public(store)))
    assert "2 of 2 healthy" in page
    assert "Ledgers</b> 1 stopped" in page


def test_a_stopped_population_says_why(shop: FakeStore) -> None:
    public, why = Public(shop), "stopped: <b>a newer menu was seen"
    assert not any(view.stopped for view in public.state().placements)
    shop.heartbeat("population customers", why)
    try:
        assert public.state().stopped == {"customers": why}
        assert {view.row.population for view in public.state().placements if view.stopped} == {"customers"}
        page = str(population(public, "customers", 0))
        assert "This population is stopped: &lt;b&gt;a newer" in page
        assert "rolled back" in str(overview(public))
    finally:
        shop.heartbeat("population customers")


def test_an_empty_store(tmp_path: Path) -> None:
    public = Public(FakeStore(tmp_path))
    state = public.state()
    assert (state.placements, state.health, state.stopped) == ([], [], {})
    assert public.account("nobody").head == ""


def test_sizes_of_releases(shop: FakeStore) -> None:
    public = Public(shop)
    release, charge = next(public.account("customers").releases("front-page"))
    assert (release.name, charge.about) == ("users-000021.sums", "a chain over 24 items")
    assert public.size_of("customers", release.release) == 24
    assert public.size_of("customers", "nothing") is None
