"""What learning over HTTP earns: MSWeb's visitors at a site, against the simulator with the same lateness.

Lateness follows from public rules: a round is settled when its lease is over and its deadline has passed, and what is
made of it is shown after the allowance, at a whole tick. How many rounds were handed out by then, on average over the
ends of batches, is what the simulator is told as patience. A trainer that is slow, fillers and rounds that nobody used
are the service's own loss.
"""

from __future__ import annotations

import math
import tempfile
import threading
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

import msgspec
import numpy as np
import uvloop
from numpy.typing import NDArray

import diminuendo
from benchmarks.report import Part, verdict
from benchmarks.service_site import People, site
from diminuendo.learners import make
from diminuendo.learners.base.patience import Patience
from diminuendo.learners.base.replay import replay
from diminuendo.learners.base.setting import Setting
from diminuendo.randomness.coins import SeededCoins
from diminuendo.service.front.tokens import Tokens
from diminuendo.service.keys import read_keys
from diminuendo.service.records import PublicMenu
from diminuendo.service.store import LeaseRow, MenuRow, open_store

RATE, SLOTS, SEEDS, LAPS = 500.0, 5, 5, 3
"""Visits a second; slots; runs of the simulator; and runs over HTTP, which vary as much as those."""
RULES = {"deadline": 0.5, "tick": 0.1, "allowance": 0.2}
CLOSE = 0.01
"""How much payoff may differ."""


def payoff() -> Iterator[Part]:
    """Full feedback and clicks, at epsilon 1."""
    part = Part(
        "payoff",
        f"MSWeb over HTTP, {RATE:.0f} visitors a second at 32 connections, and the simulator with the same lateness",
        [
            "feedback",
            "lateness",
            "simulator",
            "its spread",
            "over HTTP",
            "worst",
            "without fillers",
            "fillers",
            "unused",
            "menus",
        ],
    )
    stream = diminuendo.msweb()
    wants = stream.matrices[0].toarray() > 0
    for feedback in ("full", "click"):
        laps = [_over_http(feedback, wants) for _ in range(LAPS)]
        late = [_lateness(leases, _ends(stream, feedback, menus)) for _, _, leases, menus in laps]
        setting = _setting(stream, feedback, round(mean(late)))
        runs = [
            _earned(replay(make("private", setting, coins=SeededCoins(seed)), stream), wants).mean()
            for seed in range(SEEDS)
        ]
        earned = [float(served.mean()) for served, _, _, _ in laps]
        part.rows.append(
            [feedback, round(mean(late)), mean(runs), pstdev(runs), mean(earned), min(earned),
             mean(float(served[counts].mean()) for served, counts, _, _ in laps),
             mean(int((~counts).sum()) for _, counts, _, _ in laps),
             mean(leases[-1].end - int(counts.sum()) for _, counts, leases, _ in laps),
             mean(len(menus) for _, _, _, menus in laps)]
        )  # fmt: skip
        lost = mean(runs) - mean(earned)
        part.numbers[f"{feedback}: lost"] = lost
        claim = f"{feedback}: at most {CLOSE} less than the simulator, everybody counted: {lost:.4f}"
        part.notes.append(verdict(claim, lost <= CLOSE))
    yield part


def _setting(stream: Any, feedback: Any, rounds: int) -> Setting:
    delta = 1e-6 if feedback == "full" else 0.0
    return Setting(stream.n_items, SLOTS, len(stream), feedback, 1.0, delta, 1, Patience(rounds=rounds))


def _earned(slates: NDArray[Any], wants: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Who was shown something that she wants."""
    padded = np.pad(wants, ((0, 0), (0, 1)))
    return np.asarray(np.take_along_axis(padded, slates, axis=1).any(axis=1))  # -1 is the padding


def _over_http(
    feedback: str, wants: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], list[LeaseRow], list[MenuRow]]:
    """Who was pleased, and who had a round; all leases, and all menus."""
    rows = [{str(item) for item in np.flatnonzero(row)} for row in wants]

    def says(number: int, slate: list[str]) -> dict[str, Any]:
        if feedback == "full":
            return {"wants": sorted(rows[number])}
        return {"click": next((slot for slot, item in enumerate(slate) if item in rows[number]), None)}

    delta = 1e-6 if feedback == "full" else 0.0
    facts: dict[str, Any] = {
        "items": wants.shape[1],
        "slots": SLOTS,
        "feedback": feedback,
        "people": len(rows),
    }
    facts |= {"epsilon": 1.0, "delta": delta, "per_second": RATE} | RULES
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with site(folder, **facts) as running, open_store(str(folder / "site.db")) as store:
            leases, over = dict[int, LeaseRow](), threading.Event()

            def watch() -> None:
                while not over.wait(0.2):
                    leases.update({lease.first: lease for lease in store.leases(1, max(leases, default=0))})

            watching = threading.Thread(target=watch)
            watching.start()
            people = People(running, RATE, says)
            uvloop.run(people.come(len(rows)))
            over.set()
            watching.join()
            assert not people.problems
            menus = store.menus(1)
        tokens = Tokens(read_keys(folder / "keys").tokens, 1)
        shown = [tokens.open(people.tokens[number]) for number in range(len(rows))]
    slates = np.array([each.slate for each in shown], dtype=np.int32)
    counts = np.array([each.counts for each in shown])
    return _earned(slates, wants), counts, [leases[first] for first in sorted(leases)], menus


def _lateness(leases: list[LeaseRow], ends: Collection[int]) -> int:
    """How many rounds are handed out, on average, from the last of a batch until what is made of it is shown."""
    tick, settled, found = RULES["tick"], 0.0, list[int]()
    for lease in leases:
        settled = max(settled, lease.expires_at + RULES["deadline"])
        at = math.ceil((settled + RULES["allowance"]) / tick) * tick
        by_then = max(other.end for other in leases if other.at < at)
        found += [
            by_then - end for end in ends if lease.first < end <= lease.end and by_then < leases[-1].end
        ]
    return round(mean(found))


def _ends(stream: Any, feedback: str, menus: Sequence[MenuRow]) -> set[int]:
    """The round after the last one of each batch."""
    if feedback == "full":  # its schedule does not depend on anything that happens
        policy: Any = make("private", _setting(stream, feedback, 1), coins=SeededCoins(0)).policy
        return set(policy.plan.schedule.ends)
    return {end for row in menus if (end := msgspec.json.decode(row.body, type=PublicMenu).end) is not None}
