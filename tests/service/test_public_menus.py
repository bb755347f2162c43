"""Public menus say what learners' menus say: the same slates to the same rounds, and what stands in."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from diminuendo import Learner, SeededSource, Setting, make
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.feedback_window import FeedbackWindow
from diminuendo.learners.remote_rounds import RemoteRounds
from diminuendo.offline.rules import SlateRules
from diminuendo.service.front.choose import Chooser
from diminuendo.service.menus import public_menu
from diminuendo.service.records import PublicMenu
from diminuendo.streams import taste_groups
from diminuendo.streams.contexts import Contexts
from diminuendo.streams.exclusions import exclusions_of
from diminuendo.types import Ints, Items
from tests.service.world import chosen

N_ITEMS, SLOTS, ROUNDS = 8, 3, 400
USERS = taste_groups(ROUNDS, N_ITEMS, groups=3, items_per_group=4, seed=4)
CASES = [
    ("one", "overlap-greedy", "full", {}),
    ("types", "overlap-greedy", "full", {"contexts": Contexts(group=3)}),
    ("rounds", "slate-totals", "bandit", {}),
    ("groups", "slate-clicks", "click", {"contexts": Contexts(group=3)}),
]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def learned(name: str, feedback: Any, more: dict[str, Any], rounds: int = 60) -> Learner:
    clock = Clock()
    feedback_window = FeedbackWindow(seconds=1.0, in_flight=ROUNDS, clock=clock)
    setting = Setting(N_ITEMS, SLOTS, ROUNDS, feedback, epsilon=8.0, feedback_window=feedback_window, **more)
    learner = make(name, setting, rng=SeededSource(1))
    learner.release()
    menu: Any = learner.menu
    many = rounds if menu.end is None else min(rounds, menu.end)
    door = RemoteRounds(learner)
    door.chosen(many, at=0.0)
    door.record_arrivals(0, [True] * many)
    if feedback == "full":
        rows: Items = np.tile(np.arange(SLOTS, dtype=np.int32), (many, 1))
        door.record_arrivals(0, [True] * many)
        door.answered(np.arange(many), rows, None, USERS[:many])
        clock.now = 1.5  # past the deadline
        learner.release()
    return learner


def test_a_menu_says_whether_there_is_a_signal() -> None:
    signal = public_menu(learned("slate-totals", "bandit", {}), 1).signal
    assert signal == "too early to tell"
    feedback_window = FeedbackWindow(seconds=1.0, in_flight=ROUNDS, clock=Clock())
    silent = make(
        "epoch-greedy", Setting(N_ITEMS, SLOTS, ROUNDS, "full", epsilon=8.0, feedback_window=feedback_window)
    )
    assert public_menu(silent, 1).signal == ""


@pytest.mark.parametrize("exclusions", [False, True])
@pytest.mark.parametrize(("kind", "name", "feedback", "more"), CASES, ids=[case[0] for case in CASES])
def test_the_same_slates_to_the_same_rounds(
    kind: str, name: str, feedback: str, more: dict[str, Any], exclusions: bool
) -> None:
    learner = learned(name, feedback, more | {"exclusions": exclusions})
    written = msgspec.json.encode(public_menu(learner, 3))
    result, menu = msgspec.json.decode(written, type=PublicMenu), learner.menu
    assert menu is not None
    assert (result.kind, result.version, result.first, result.end) == (kind, 3, menu.first, menu.end)
    rounds = 20 if menu.end is None else menu.end - menu.first
    types: Ints = np.arange(rounds) % 4 if "contexts" in more else np.zeros(0, dtype=np.int64)
    rows = np.zeros((rounds, SLOTS), dtype=np.int32)
    policy: Any = learner.policy
    policy.chooser.draw(menu.first, rows, np.empty((rounds, 3), np.int32), policy.frame.public.view, types)
    rng = np.random.default_rng(0)
    kinds = types.tolist() or [0] * rounds
    shown = [chosen(result, menu.first + each, kinds[each], rng) for each in range(rounds)]
    np.testing.assert_array_equal(shown, rows)
    assert result.propensities is not exclusions
    if exclusions:
        own, ranking = menu.backfill
        assert result.ranking == tuple(ranking.tolist())
        assert result.lists is not None
        assert menu.lists is not None
        for part, array in zip(msgspec.structs.astuple(result.lists), menu.lists, strict=True):
            assert part == tuple(np.asarray(array).tolist())
        for each in range(4 if result.own else 0):
            place = result.groups[each] if kind == "groups" else each
            assert result.own[place] == tuple(own[each].tolist())
    else:
        assert (result.ranking, result.own, result.lists) == ((), (), None)


@pytest.mark.parametrize(
    "rules", [None, SlateRules(pinned={1: 4}, caps=[([0, 1, 2, 3], 1)])], ids=["free", "rules"]
)
@pytest.mark.parametrize(("kind", "name", "feedback", "more"), CASES, ids=[case[0] for case in CASES])
def test_front_ends_leave_out_what_the_learner_would(
    kind: str, name: str, feedback: str, more: dict[str, Any], rules: SlateRules | None
) -> None:
    """Whatever somebody excludes, a front end that holds the public menu shows her what the learner would have."""
    learner = learned(name, feedback, more | {"exclusions": True, "rules": rules})
    policy: Any = learner.policy
    menu, rng = policy.menu, np.random.default_rng(3)
    front = Chooser(public_menu(learner, 1), [str(item) for item in range(N_ITEMS)], hidden=True)
    for each in range(40):
        number, kind_of = (
            menu.first + each % (1 if menu.end is None else menu.end - menu.first),
            int(rng.integers(4)),
        )
        kind_of = kind_of if "contexts" in more else 0
        types = np.array([kind_of]) if "contexts" in more else np.zeros(0, dtype=np.int64)
        excluded = sorted(rng.permutation(N_ITEMS)[: rng.integers(0, 7)].tolist())
        row = np.zeros((1, SLOTS), dtype=np.int32)
        policy.chooser.draw(number, row, np.empty((1, 3), np.int32), policy.frame.public.view, types)
        policy.chooser.without(row, exclusions_of([excluded], 1, N_ITEMS), types)
        assert front.slate(number, kind_of, set(excluded)) == tuple(row[0].tolist())


def test_random_slates_say_from_which_items() -> None:
    rules = SlateRules(pinned={0: 5})
    plain = public_menu(make("overlap-greedy", Setting(N_ITEMS, SLOTS, ROUNDS, "full")), 1)
    ruled = public_menu(make("overlap-greedy", Setting(N_ITEMS, SLOTS, ROUNDS, "full", rules=rules)), 1)
    assert (plain.kind, plain.propensities, ruled.propensities) == ("random", True, False)
    assert plain.lists is not None
    assert plain.lists.items == tuple(range(N_ITEMS))
    assert ruled.lists is not None
    assert ruled.lists.pinned == (5, -1, -1)
    assert ruled.fallback[0] == 5
    assert len(set(ruled.fallback)) == SLOTS


def test_a_filler_is_what_would_be_shown_without_a_round() -> None:
    learner = learned("slate-totals", "bandit", {}, rounds=ROUNDS)
    policy: Any = learner.policy
    policy._last = policy._last._replace(leading=np.array([2.0, 0.5, 0.01]))
    assert learner.due()
    assert public_menu(learner, 1).fallback == tuple(policy._last.block.slates[2].tolist())
    assert public_menu(learner, 1).fallback == learner.choose(release=False).slate


def test_private_contexts_say_no_chance() -> None:
    hidden = learned("slate-clicks", "click", {"contexts": Contexts(group=3, private=True)})
    assert not public_menu(hidden, 1).propensities


def test_who_has_no_such_menu_is_refused() -> None:
    with pytest.raises(InvalidInput, match="randomness that the learner has to know"):
        public_menu(make("lazy-hedge", Setting(N_ITEMS, SLOTS, ROUNDS, "full")), 1)
    with pytest.raises(InvalidInput, match="no menu that could be handed out"):
        public_menu(make("fi-pure", Setting(N_ITEMS, SLOTS, ROUNDS, "full")), 1)
