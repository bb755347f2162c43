"""What is proved of the regret, privately and not, before anybody arrives: one picture against the number of users.

python examples/bounds.py [out/bounds.png]
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

import diminuendo as dim
from diminuendo.types import ONE_MINUS_1_OVER_E

SLOTS, EPSILON, DELTA = 5, 1.0, 1e-6
ITEMS = (50, 1_000)
USERS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
INK, FAINT = "#222222", "#767676"
LOOKS = {
    "fi-dp:calibration=paper": ("the paper", "#D55E00", "D", "-"),
    "fi-dp": ("the paper's algorithm,\ncounted tightly", "#CC79A7", "^", "-"),
    "lazy-hedge": ("lazy-hedge", "#0072B2", "o", "-"),
    "streeter-golovin": ("not private", "#009E73", "s", "--"),
}


def bound_of(name: str, n_items: int, users: int) -> float:
    """What is proved of a learner's regret, per user."""
    setting = dim.Setting(n_items, SLOTS, users, "full", EPSILON, DELTA)
    bound = dim.LEARNERS[name].for_setting(setting).regret_bound(users)
    assert bound is not None
    return bound / users


def bounds() -> dict[int, dict[str, list[float]]]:
    """Of all learners, for all numbers of items and users."""
    return {n: {name: [bound_of(name, n, users) for users in USERS] for name in LOOKS} for n in ITEMS}


def draw(found: dict[int, dict[str, list[float]]], path: Path) -> None:
    """The picture: one panel for each number of items."""
    figure, panels = plt.subplots(1, len(found), figsize=(10.5, 4.6), layout="constrained", sharey=True)
    for axis, (n_items, lines) in zip(panels, found.items(), strict=True):
        for name, line in lines.items():
            label, colour, marker, style = LOOKS[name]
            axis.plot(USERS, line, color=colour, marker=marker, markersize=5, linestyle=style, label=label)
        axis.axhline(
            ONE_MINUS_1_OVER_E, color=FAINT, linestyle=":", linewidth=1.4, label="above this\nnothing is said"
        )
        axis.set(xscale="log", yscale="log", xlabel="users", ylim=(0.005, 100))
        axis.set_title(f"{SLOTS} of {n_items:,} things", loc="left", color=INK)
        axis.set_xticks((1e3, 1e4, 1e5, 1e6), ("1,000", "10,000", "100,000", "1,000,000"))
        axis.set_yticks((0.01, 0.1, 1, 10, 100), (".01", ".1", "1", "10", "100"))
        axis.minorticks_off()
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(color="#eeeeee")
        axis.set_axisbelow(True)
    panels[0].set_ylabel("regret per user is at most")
    handles, labels = panels[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, labelspacing=0.9)
    figure.suptitle(f"epsilon {EPSILON:g}, delta {DELTA:g}", x=0.01, ha="left", fontsize=11, color=INK)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(path: Path) -> None:
    result = bounds()
    draw(result, path)
    at = USERS.index(100_000)
    for n_items, lines in result.items():
        said = ", ".join(f"{name} {line[at]:.3f}" for name, line in lines.items())
        print(f"{SLOTS} of {n_items:,} things, {USERS[at]:,} users: {said}")
    print(f"Picture in {path}.")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/bounds.png"))
