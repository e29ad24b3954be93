"""Draw the plots that `plots.json` tells; runs in the guest, where matplotlib is, and nothing of ours.

A bar goes to the right where ours is quicker, and to the left where it is slower. There is no background, and
every colour can be read on white and on black. The same data gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl  # type: ignore[import-not-found]  # only the guest has it
from matplotlib.figure import Figure  # type: ignore[import-not-found]  # the same
from matplotlib.patches import Patch  # type: ignore[import-not-found]  # the same

TIMES = "\N{MULTIPLICATION SIGN}"
GREY = "#7a7a7a"
COLOURS = ("#3d85c6", "#d9812e", "#4a9e62", "#a06cc4")
WIDTH_INCHES = 9
BAR_INCHES = 0.17
GAP_INCHES = 0.13
"""Between two groups."""
REST_INCHES = 0.9
"""For the legend and the axis."""
STYLE = {
    "svg.hashsalt": "carrel",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": GREY,
    "axes.edgecolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
}


def draw(plot: Any) -> None:  # Any: as JSON tells it
    """Write one plot to its file."""
    groups = plot["groups"]
    bars = [bar for _, group in groups for bar in group]
    ways = list(dict.fromkeys(bar["way"] for bar in bars))
    colours = dict(zip(ways, COLOURS, strict=False))
    height = len(bars) * BAR_INCHES + len(groups) * GAP_INCHES + REST_INCHES
    figure = Figure(figsize=(WIDTH_INCHES, height), layout="constrained")
    axes = figure.add_subplot()
    top, middles = 0.0, []
    for _, group in groups:
        middles.append(top + (len(group) - 1) * BAR_INCHES / 2)
        for bar in group:
            axes.barh(top, bar["times"] - 1, BAR_INCHES * 0.86, left=1, color=colours[bar["way"]])
            tell(axes, top, bar["times"])
            top += BAR_INCHES
        top += GAP_INCHES
    axes.set_yticks(middles, [label for label, _ in groups])
    axes.set_ylim(top - GAP_INCHES, -BAR_INCHES)
    scale(axes, [bar["times"] for bar in bars])
    handles = [Patch(color=colours[way], label=way) for way in ways]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(ways), frameon=False, fontsize=10)
    figure.savefig(plot["file"], transparent=True, metadata={"Date": None, "Creator": None})


def tell(axes: Any, where: float, times: float) -> None:  # Any: the guest's matplotlib
    """Write the ratio at the end of its bar."""
    right = times >= 1
    axes.annotate(
        f"{number(times)}{TIMES}" if right else f"1/{number(1 / times)}",
        (times, where),
        xytext=(3 if right else -3, 0),
        textcoords="offset points",
        ha="left" if right else "right",
        va="center_baseline",
        fontsize=8,
    )


def number(times: float) -> str:
    """Two digits are as exact as these ratios are."""
    return f"{times:,.0f}" if times >= 9.95 else f"{times:.1f}"


def scale(axes: Any, times: Sequence[float]) -> None:  # Any: the guest's matplotlib
    """Make the axis logarithmic, with words at the powers of ten, and room for the numbers at both ends."""
    axes.set_xscale("log")
    axes.set_xlim(min([*times, 0.5]) / 2, max([*times, 2]) * 2)
    axes.xaxis.set_major_formatter(lambda value, _: words(value))
    axes.xaxis.set_minor_formatter(lambda value, _: "")
    axes.axvline(1, color=GREY, linewidth=1)
    axes.grid(visible=True, axis="x", color=GREY, alpha=0.3, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)


def words(value: float) -> str:
    """What a place on the axis means."""
    if value == 1:
        return "even"
    return f"{value:,.0f}{TIMES} quicker" if value > 1 else f"{1 / value:,.0f}{TIMES} slower"


if __name__ == "__main__":
    mpl.rcParams.update(STYLE)
    for each in json.loads(Path("plots.json").read_text("utf-8")):
        draw(each)
