"""What leaks without privacy: an attacker reads one visitor's click off the slates of Thompson sampling.

python examples/leak.py [out/leak.png] [games]

A page has one slot and two items. A fair coin decides between two worlds: in one the first visitor clicks the item that
the page shows them, in the other they click nothing. Nothing else differs. Then the attacker reloads the page 100
times, clicks nothing, and guesses the world. There are three attacks:

    Thompson sampling   the attacker counts how often the reloads show the item that the visitor was shown
    private             the same attacker, which counts the same
    private's counts    the attacker reads the noisy count of clicks itself, from which all later slates are computed

The attacker knows all that is public: the learner, its settings, the visitor's slate, all later slates. It also knows
the feedback of all others, for they are the attacker itself. It lacks the visitor's feedback and the randomness. So it
plays both worlds at home, keeps the threshold that guesses best there, and is scored on fresh games.

The worlds are neighbours: they differ in the feedback to one round. So (epsilon, 0)-differential privacy limits *every*
attacker, whatever else it knows: P(guess click | click) <= e^epsilon P(guess click | no click), and the same of the
other guess. Hence true minus false positives are at most (e^epsilon - 1)/(e^epsilon + 1), and with a fair coin at most
e^epsilon/(1 + e^epsilon) of guesses are right: 73 % at epsilon 1. This is a promise about the worst case, and here the
counts reach it: 0 or 1 and discrete Laplace noise. Slates are computed from them, so they cannot tell more. The visitor
comes first, when one click moves Thompson sampling a lot. Games are seeded, so that they can be repeated.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

import diminuendo as dim
from diminuendo.audit.taps import Taps
from diminuendo.simulate.figures.style import COLOURS, FAINT, INK, style, write
from diminuendo.types import Ints

ITEMS, RELOADS, EPSILON, GAMES = 2, 100, 1.0, 400
SHOWN, COUNT = "reloads that show the item", "noisy count of clicks"
ATTACKS = {
    "Thompson sampling": ("cascade-thompson", SHOWN),
    "private": ("private", SHOWN),
    "private's counts": ("private", COUNT),
}
"""For each attack the learner, and what the attacker looks at."""


def visitors(clicks: bool) -> dim.Users:
    """The first visitor clicks what they are shown, or nothing; nobody else clicks."""
    ratings = np.zeros((1 + RELOADS, ITEMS))
    ratings[0] = clicks
    return dim.Users(dim.BestMatch(), ratings).clicking("cascade", seed=0)


def play(learner: str, first: int, games: int) -> tuple[Ints, dict[str, Ints]]:
    """In which world each game is, and what an attacker could look at; games have the seeds from `first` on."""
    worlds = np.random.default_rng(first).integers(2, size=games)
    users, seen = (visitors(False), visitors(True)), np.zeros((2, games), dtype=np.int64)
    setting = dim.Setting(ITEMS, slots=1, rounds=1 + RELOADS, feedback="click", epsilon=EPSILON)
    for game, world in enumerate(worlds):
        taps, rng = Taps(), dim.SeededSource(first + game)
        with taps.open():  # notes what is published
            slates = dim.make(learner, setting, rng=rng).replay(users[world])
        published = [int(crossing.out.sum()) for crossing in taps.crossings]
        seen[:, game] = (slates[1:] == slates[0]).sum(), published[0] if published else 0
    return worlds, dict(zip((SHOWN, COUNT), seen, strict=True))


def attack(games: int = GAMES) -> dict[str, Any]:
    """Learn a threshold in half as many games at home, then guess in `games`: frequencies, with exact intervals."""
    learners = {learner for learner, _ in ATTACKS.values()}
    attacked = {learner: play(learner, 0, games) for learner in learners}
    at_home = {learner: play(learner, games, games // 2) for learner in learners}
    result = {}
    for name, (learner, evidence) in ATTACKS.items():
        (tried, seen_at_home), (worlds, seen_by) = at_home[learner], attacked[learner]
        tries, seen, clicked = seen_at_home[evidence], seen_by[evidence], worlds == 1
        least = int(max(np.unique(tries), key=lambda level: ((tries >= level) == tried).mean()))
        guessed = seen >= least
        result[name] = {
            "evidence": evidence,
            "guesses a click from": least,
            "clicked": tally(seen[clicked]),
            "did not click": tally(seen[~clicked]),
            "right": frequency(guessed == clicked),
            "true positives": frequency(guessed[clicked]),
            "false positives": frequency(guessed[~clicked]),
        }
    return {"epsilon": EPSILON, "games": games, "bound": 1 / (1 + math.exp(-EPSILON)), "attacks": result}


def tally(seen: Ints) -> list[list[int]]:
    """What was seen, and in how many games each."""
    return [each.tolist() for each in np.unique(seen, return_counts=True)]


def frequency(hits: Any) -> list[float]:
    """How often it came, and the exact interval of 95 % (Clopper and Pearson)."""
    interval = stats.binomtest(int(hits.sum()), len(hits)).proportion_ci(method="exact")
    return [round(float(value), 4) for value in (hits.mean(), interval.low, interval.high)]


def draw(found: dict[str, Any], path: Path) -> Path:
    """Above, what the attacker sees of visitors who clicked and who did not; below, how many guesses are right."""
    with style():
        figure = Figure(figsize=(8.0, 5.0), layout="constrained")
        panels = figure.subplot_mosaic([list(ATTACKS), ["right"] * 3], height_ratios=(1.25, 1))
        below, bound = panels["right"], found["bound"]
        for row, (name, one) in enumerate(found["attacks"].items()):
            axes, counted, colour = panels[name], one["evidence"] == COUNT, COLOURS[0 if row else 1]
            bins = np.arange(-6.5, 8.0) if counted else np.arange(0.0, RELOADS + 5.0, 5.0)
            for who, look in (("did not click", FAINT), ("clicked", colour)):
                seen, games = np.clip(one[who][0], bins[0], bins[-1]), np.array(one[who][1])
                looks: dict[str, Any] = {"fc": (look, 0.4), "ec": look, "lw": 1.3, "histtype": "stepfilled"}
                axes.hist(seen, bins.tolist(), weights=games / games.sum(), label=who, **looks)
            axes.axvline(one["guesses a click from"] - 0.5, ymax=0.72, color=INK, linewidth=1, linestyle=":")
            axes.set(xlabel=one["evidence"], yticks=[], ylim=(0, 1.4 * axes.get_ylim()[1]))
            axes.set_title(name, color=colour, weight="bold")
            axes.spines["left"].set_visible(False)
            axes.legend(loc="upper left", fontsize=9.5, borderaxespad=0, handlelength=1.2)
            right, low, high = one["right"]
            below.plot([low, high], [-row] * 2, color=colour, lw=5, alpha=0.35, solid_capstyle="butt")
            below.plot(right, -row, "o", color=colour, markersize=9)
            below.text(low, -row, f"{right:.0%} ", color=colour, weight="bold", ha="right", va="center")
        below.axvspan(bound, 1.02, color=FAINT, alpha=0.1, linewidth=0)
        below.axvline(bound, color=INK, linewidth=1.4)
        below.text(bound, 0.7, f" epsilon {found['epsilon']:g} allows no attacker more than {bound:.0%}")
        below.set(xlim=(0.48, 1.02), ylim=(-2.5, 0.65), yticks=(0, -1, -2), yticklabels=list(ATTACKS))
        below.set_xticks(np.arange(0.5, 1.01, 0.1), ["50% (a coin)", "60%", "70%", "80%", "90%", "100%"])
        below.set_xlabel(f"guesses that are right, of {found['games']:,} (bar: exact 95% interval)")
        below.tick_params(axis="y", length=0)
        below.spines["left"].set_visible(False)
        below.grid(False, axis="y")
        return write(figure, path)


def main(path: Path, games: int) -> None:
    result = attack(games)
    print(f"{'':<22}{'guesses right':>13}{'95 % interval':>17}{'clicks found':>14}{'false alarms':>14}")
    for name, one in result["attacks"].items():
        right, low, high = one["right"]
        print(f"{name:<22}{right:>13.1%}{f'{low:.1%} to {high:.1%}':>17}", end="")
        print(f"{one['true positives'][0]:>14.1%}{one['false positives'][0]:>14.1%}")
    print(f"{'any attacker may have':<22}{result['bound']:>13.1%}   at epsilon {result['epsilon']:g}")
    print(f"Picture in {draw(result, path)}.")


if __name__ == "__main__":
    given = sys.argv[1:]
    main(Path(given[0] if given else "out/leak.png"), int(given[1]) if given[1:] else GAMES)
