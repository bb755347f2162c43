"""An audit as a picture: for each learner what is promised, and how much of it each method could show."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from diminuendo._extras import extra
from diminuendo.audit.finding import share
from diminuendo.audit.run import METHODS, Audit

with extra("simulate"):
    import matplotlib as mpl
    import matplotlib.pyplot as plt

mpl.use("Agg")  # files only; no screen is needed

# Okabe and Ito's colours, which users with any colour vision can tell apart.
COLOURS = {"exact": "#0072B2", "pathwise": "#009E73", "black box": "#E69F00"}
MARKS = {"exact": "D", "pathwise": "s", "black box": "o"}
BROKEN, INK = "#D55E00", "#222222"
BEYOND = 2.0
"""Shares of the promise are drawn up to here; what is more is drawn as an arrow."""


class AuditShares(NamedTuple):
    """What is drawn of an audit, in plain numbers."""

    faults: bool
    epsilon: float
    delta: float
    effort: str
    shares: dict[str, dict[str, float]]
    """For each subject, by method: epsilon that can be shown, as a share of what is claimed."""
    violators: list[str]


def audit_shares(data: Audit) -> AuditShares:
    """How much of what is claimed each method could show."""
    return AuditShares(
        data.faults,
        data.epsilon,
        data.delta,
        data.effort,
        {
            subject: {
                method: share(finding.shown, finding.claimed)
                for method, finding in data.about(subject).items()
            }
            for subject in data.subjects
        },
        list(data.violators),
    )


def plot_audit(data: AuditShares, path: Path) -> Path:
    """Write a picture: one row for each learner, shares of the epsilon that it claims."""
    rows = list(reversed(data.shares))
    figure, axis = plt.subplots(figsize=(9, 1.6 + 0.29 * len(rows)), layout="constrained")
    edge = 1.08 * BEYOND if data.violators else 1.2
    axis.axvspan(1, edge, color=BROKEN, alpha=0.07, linewidth=0)
    axis.axvline(1, color=INK, linewidth=1.2)
    for method in METHODS:
        shares = [
            (data.shares[row][method], place) for place, row in enumerate(rows) if method in data.shares[row]
        ]
        for far, mark, size, name in ((False, MARKS[method], 8, method), (True, ">", 11, None)):
            points = [(min(shown, BEYOND), place) for shown, place in shares if (shown > BEYOND) == far]
            axis.plot(
                [x for x, _ in points],
                [y for _, y in points],
                marker=mark,
                markersize=size,
                label=name,
                color=COLOURS[method],
                linestyle="none",
                markeredgecolor="white",
            )
    axis.set_yticks(range(len(rows)), rows)
    for place, subject in enumerate(rows):
        axis.axhline(place, color="#eeeeee", zorder=0)
        if subject in data.violators:
            axis.get_yticklabels()[place].set_color(BROKEN)
    axis.set(xlim=(-0.03, edge), ylim=(-0.7, len(rows) - 0.3))
    axis.set_xlabel("epsilon that can be shown / epsilon that is claimed")
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.tick_params(axis="y", length=0)
    axis.text(1.01, len(rows) - 0.45, "more than promised", color=BROKEN, fontsize=9, va="bottom")
    axis.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.6 / len(rows) - 0.03), ncols=3)
    what = "Planted faults" if data.faults else "Promises"
    title = f"{what} at epsilon {data.epsilon:g}, delta {data.delta:g} ({data.effort} audit)\n"
    axis.set_title(title, loc="left", color=INK, fontsize=12)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, bbox_inches="tight")
    plt.close(figure)
    return path
