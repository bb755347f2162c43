"""How pictures look: one colour, marker and line for each learner, names at the ends of lines, no text taken for maths.

Colours are those of Okabe and Ito (2008), which users with any colour vision can tell apart; and no picture speaks by
colour alone. Figures are narrow, one panel each, so that their words can still be read on a phone.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
INK, FAINT = "#222222", "#767676"
WIDTH = 5.2
"""The width of a figure in inches; two of them stand side by side on a desk."""
LONGEST_NAME = 30


class LineStyle(NamedTuple):
    """How one learner is drawn, everywhere."""

    colour: str
    marker: str
    line: str | tuple[int, tuple[float, ...]]


LineEnd = tuple[str, float, str]
"""The name, height and colour of a line at its right end."""

_DASHES, _DOTS = (0, (5.0, 1.6)), (0, (1.2, 1.4))
KNOWN = {
    "private": LineStyle(COLOURS[0], "o", "-"),
    "paper": LineStyle(COLOURS[1], "D", "-"),
    "nonprivate": LineStyle(COLOURS[2], "s", _DASHES),
    "fi-dp": LineStyle(COLOURS[3], "^", "-"),
    "bandit-dp": LineStyle(COLOURS[3], "^", "-"),
    "random": LineStyle(FAINT, "x", _DOTS),
}
"""Learners that are in most pictures look the same in all of them."""
OTHERS = [
    LineStyle(colour, marker, line)
    for line in ("-", _DASHES, _DOTS, (0, (5.0, 1.4, 1.2, 1.4)))
    for colour, marker in zip(COLOURS[4:] + COLOURS[:4], "vP<>*X", strict=True)
]


def line_styles(names: Iterable[str]) -> dict[str, LineStyle]:
    """A style for each learner: its own where it has one, otherwise the next that is free."""
    free, result = iter(OTHERS * 9), dict[str, LineStyle]()
    for name in dict.fromkeys(names):
        result[name] = KNOWN[name] if name in KNOWN else next(free)
    return result


@contextmanager
def style() -> Iterator[None]:
    """Within it figures are made and saved. Names are not maths: a "$" in one is a "$"."""
    ours: dict[str, Any] = {
        "text.parse_math": False,
        "svg.fonttype": "none",  # words stay words
        "svg.hashsalt": "diminuendo",  # the same figure is the same file
        "font.size": 10.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": FAINT,
        "axes.labelcolor": INK,
        "axes.titlesize": 11.5,
        "axes.titlelocation": "left",
        "axes.titlecolor": INK,
        "axes.axisbelow": True,
        "axes.grid": True,
        "grid.color": "#ececec",
        "xtick.color": INK,
        "ytick.color": INK,
        "text.color": INK,
        "legend.frameon": False,
        "lines.linewidth": 2.0,
    }
    with mpl.rc_context(cast(Any, ours)), warnings.catch_warnings():
        # A font may lack a letter of an item's name. The browser has others; the PNG shows a box.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        yield


def panel(height: float = 3.5) -> tuple[Figure, Axes]:
    """A figure of one panel."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.subplots()


def write(figure: Figure, path: Path, **how: Any) -> Path:
    """Write one file, in a folder that is made where there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, **how)
    return path


def save(figure: Figure, stem: Path) -> Path:
    """Write stem.png, stem.pdf and stem.svg; returns the last."""
    png, pdf, svg = (stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "pdf", "svg"))
    write(figure, png)
    figure.set_layout_engine("none")  # it is laid out now
    figure.savefig(pdf, metadata={"CreationDate": None})
    figure.savefig(svg, metadata={"Date": None})
    return svg


def thousands(axes: Axes, *, y: bool = False) -> None:
    """Large numbers with commas."""
    for axis in (axes.xaxis, axes.yaxis) if y else (axes.xaxis,):
        axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if abs(value) > 2 else f"{value:g}")
    axes.locator_params(axis="x", nbins=5)


def name_lines(axes: Axes, ends: Sequence[LineEnd]) -> None:
    """Names at the right, beside where their lines end. Pushed apart where they would touch."""
    tall = axes.figure.bbox.height / axes.figure.dpi
    to_share = axes.transScale + axes.transLimits  # from data, whatever its scale, to shares of the panel
    heights = [min(max(float(to_share.transform((1.0, height))[1]), 0.0), 1.0) for _, height, _ in ends]
    order = sorted(range(len(ends)), key=lambda i: heights[i])
    at = spread([heights[i] for i in order], 0.24 / tall, 0.0, 1.05)
    for i, share in zip(order, at, strict=True):
        name, _, colour = ends[i]
        axes.annotate(
            short(name),
            (1.0, share),
            xycoords="axes fraction",
            xytext=(6, 0),
            textcoords="offset points",
            color=colour,
            va="center",
            fontsize=10,
            annotation_clip=False,
        )


def spread(at: Sequence[float], apart: float, low: float, high: float) -> list[float]:
    """Places in rising order, moved as little as need be to stand `apart`; within bounds if they fit there."""
    placed: list[list[float]] = []  # clusters: [sum of wished centres, how many, centre]
    for y in at:
        placed.append([y, 1.0, y])
        while len(placed) > 1 and placed[-1][2] - placed[-2][2] < apart * (placed[-1][1] + placed[-2][1]) / 2:
            total, many, _ = placed.pop()
            placed[-1][0] += total
            placed[-1][1] += many
            half = apart * (placed[-1][1] - 1) / 2
            placed[-1][2] = min(max(placed[-1][0] / placed[-1][1], low + half), high - half)
    result: list[float] = []
    for _, many, centre in placed:
        result += [centre + apart * (i - (many - 1) / 2) for i in range(int(many))]
    return result


def short(name: str, longest: int = LONGEST_NAME) -> str:
    """A name that fits on a figure, without signs that cannot be drawn."""
    plain = " ".join("".join(sign if sign.isprintable() else " " for sign in str(name)).split())
    return plain if len(plain) <= longest else plain[: longest - 1].rstrip() + "…"
