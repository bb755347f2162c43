"""How long people wait for a slate while a release runs in another thread: kernels let go of Python's lock."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.flat import uniform_people
from benchmarks.report import Part, verdict
from diminuendo import SeededCoins, Setting, make
from diminuendo.learners.base.learner import Learner
from diminuendo.types import FeedbackKind, Floats

N_ITEMS, SLOTS, WISHES, ROUNDS = 10_000, 5, 10, 60_000
REPLAYED, SERVED, SECONDS = 12_000, 30_000, 20.0
"""How many people are replayed before, how many are served one by one at most, and for how long at most."""
INTERVALS = (0.005, 0.0005)
"""After how many seconds Python lets another thread have its lock: as it comes, and as a service would set it."""
TARGET = 1.0
"""Milliseconds."""


def waiting() -> Iterator[Part]:
    """The longest of all waits, and how many were longer than a millisecond."""
    part = Part(
        "waiting",
        f"choose() while another thread releases: {SLOTS} of {N_ITEMS:,} items, milliseconds",
        [
            "feedback",
            "switch interval",
            "waits",
            "releases",
            "longest release",
            "half",
            "99 %",
            "longest",
            "over 1 ms",
        ],
    )
    for feedback in ("full", "bandit", "click"):
        for interval in INTERVALS:
            with switching_every(interval):
                waits, releases = _served(feedback)
            half, most, longest = (float(np.quantile(waits, share)) for share in (0.5, 0.99, 1.0))
            over = int((waits > TARGET).sum())
            part.rows.append(
                [feedback, interval, len(waits), len(releases), max(releases), half, most, longest, over]
            )
            part.numbers[f"longest wait, {feedback}, {interval:g}"] = longest
            if interval == min(INTERVALS):
                said = f"{feedback}: nobody waits for longer than {TARGET:g} ms while a release runs: {longest:.3g}"
                part.notes.append(verdict(said, longest <= TARGET))
    yield part


@contextmanager
def switching_every(seconds: float) -> Iterator[None]:
    """Python lets another thread have its lock after that long."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _served(feedback: FeedbackKind) -> tuple[Floats, list[float]]:
    """How long each choose() took that began while a release ran, and how long releases took, in milliseconds."""
    people = uniform_people(SERVED, N_ITEMS, WISHES)
    setting = Setting(N_ITEMS, SLOTS, ROUNDS, feedback, patience=2_000)
    for seed in (0, 1):  # once before, so that everything is compiled
        learner = make("private", setting, coins=SeededCoins(seed))
        learner.replay(people[:REPLAYED])
    over, releasing, took = threading.Event(), threading.Event(), list[float]()
    trainer = threading.Thread(target=_release_until, args=(learner, over, releasing, took))
    trainer.start()
    waits, began = list[float](), time.perf_counter()
    for number in range(SERVED):
        if time.perf_counter() - began > SECONDS:
            break
        busy, asked = releasing.is_set(), time.perf_counter()
        decision = learner.choose(release=False)
        if busy:
            waits.append(1000 * (time.perf_counter() - asked))
        person = people[number]
        if feedback == "full":
            learner.observe(decision, person)
        elif feedback == "bandit":
            learner.observe(decision, person.value(decision.slate))
        else:
            learner.observe(decision, people.click(number, decision.slate))
    over.set()
    trainer.join()
    return np.array(waits), took


def _release_until(
    learner: Learner, over: threading.Event, releasing: threading.Event, took: list[float]
) -> None:
    while not over.is_set():
        if learner.due():
            began = time.perf_counter()
            releasing.set()
            learner.release()
            releasing.clear()
            took.append(1000 * (time.perf_counter() - began))
        else:
            time.sleep(0.001)
