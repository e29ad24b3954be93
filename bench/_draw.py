"""Draw the plots described in `plots.json`; runs in the guest, which has matplotlib but not carrel.

A bar points to the right where ours is quicker, and to the left where it is slower. The background is
transparent, and every colour is legible on white and on black. The same data gives the same bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl  # type: ignore[import-not-found]  # only the guest has it
from matplotlib.figure import Figure  # type: ignore[import-not-found]  # the same
from matplotlib.patches import Patch  # type: ignore[import-not-found]  # the same

TIMES = "\N{MULTIPLICATION SIGN}"
GREY = "#7f7f7f"
COLOURS = ("#3d85c6", "#d9812e", "#4a9e62", "#a06cc4")
EVEN = 1.05
"""Ratios up to this count as even."""
WIDTH_INCHES = 9
BAR_INCHES = 0.17
GAP_INCHES = 0.13
"""Between two groups."""
TOP_INCHES, BOTTOM_INCHES, RIGHT_INCHES = 0.6, 0.3, 0.1
"""Around the bars, for the legend and the axis."""
CHARACTER_INCHES = 0.07
RATIO_INCHES = 0.5
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


def draw(plot: Any) -> None:  # Any: from JSON
    """Write one plot to its file."""
    groups = plot["groups"]
    bars = [bar for _, group in groups for bar in group]
    ways = list(dict.fromkeys(bar["way"] for bar in bars))
    colours = dict(zip(ways, COLOURS, strict=False))
    height = len(bars) * BAR_INCHES + len(groups) * GAP_INCHES + TOP_INCHES + BOTTOM_INCHES
    figure = Figure(figsize=(WIDTH_INCHES, height))
    left = max(len(label) for label, _ in groups) * CHARACTER_INCHES + 0.15
    width = WIDTH_INCHES - left - RIGHT_INCHES
    axes = figure.add_axes(frame(height, left, width))
    top, middles = 0.0, []
    for _, group in groups:
        middles.append(top + (len(group) - 1) * BAR_INCHES / 2)
        for bar in group:
            axes.barh(top, bar["times"] - 1, BAR_INCHES * 0.86, left=1, color=colours[bar["way"]])
            tell(axes, top, bar["times"], bar["note"])
            top += BAR_INCHES
        top += GAP_INCHES
    axes.set_yticks(middles, [label for label, _ in groups])
    axes.set_ylim(top - GAP_INCHES, -BAR_INCHES)
    scale(axes, bars, width)
    handles = [Patch(color=colours[way], label=way) for way in ways]
    figure.legend(handles=handles, loc="upper center", ncols=len(ways), frameon=False, fontsize=10)
    figure.savefig(plot["file"], transparent=True, metadata={"Date": None, "Creator": None})


def frame(height: float, left: float, width: float) -> tuple[float, float, float, float]:
    """The area of the bars, as fractions of the figure; computed, because matplotlib takes long for it."""
    bars = height - TOP_INCHES - BOTTOM_INCHES
    return left / WIDTH_INCHES, BOTTOM_INCHES / height, width / WIDTH_INCHES, bars / height


def tell(axes: Any, where: float, times: float, note: str) -> None:  # Any: the guest's matplotlib
    """Write the ratio at the end of its bar, and the note where there is room."""
    style = {"textcoords": "offset points", "va": "center_baseline", "fontsize": 8}
    if times >= 1:
        axes.annotate(f"{ratio(times)}  {note}", (times, where), xytext=(3, 0), ha="left", **style)
    else:
        axes.annotate(ratio(times), (times, where), xytext=(-3, 0), ha="right", **style)
        axes.annotate(note, (1, where), xytext=(3, 0), ha="left", **style)


def ratio(times: float) -> str:
    """The ratio as text, with two digits."""
    if 1 / EVEN <= times <= EVEN:
        return "even"
    more = max(times, 1 / times)
    digits = f"{more:,.0f}" if more >= 9.95 else f"{more:.1f}"
    return f"{digits}{TIMES}" if times > 1 else f"1/{digits}"


def scale(axes: Any, bars: Sequence[Any], inches: float) -> None:  # Any: matplotlib, and values from JSON
    """Make the axis logarithmic, with room for the texts at both ends, and label its sides."""
    times = [bar["times"] for bar in bars]
    low, high = math.log10(min([*times, 0.5])), math.log10(max([*times, 2]))
    note = max(len(bar["note"]) for bar in bars if bar["times"] >= max(times) / 10)
    left, right = RATIO_INCHES, RATIO_INCHES + note * CHARACTER_INCHES
    decade = (inches - left - right) / (high - low)
    axes.set_xscale("log")
    axes.set_xlim(10 ** (low - left / decade), 10 ** (high + right / decade))
    steps = (1, 2, 5) if high - low < 2 else (1,)
    marks = [step * 10**power for power in range(-7, 8) for step in steps]
    shown = [mark for mark in marks if 10**low / 1.1 <= mark <= 10**high * 1.1]
    axes.set_xticks(shown, [mark_name(mark) for mark in shown])
    axes.minorticks_off()
    axes.axvline(1, color=GREY, linewidth=1)
    axes.grid(visible=True, axis="x", color=GREY, alpha=0.3, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    style = {"xycoords": axes.get_xaxis_transform(), "textcoords": "offset points", "fontsize": 9}
    axes.annotate("ours is slower \N{LEFTWARDS ARROW}", (1, 1), xytext=(-6, 2), ha="right", **style)
    axes.annotate("\N{RIGHTWARDS ARROW} ours is quicker", (1, 1), xytext=(6, 2), ha="left", **style)


def mark_name(mark: float) -> str:
    """The label of a mark on the axis."""
    if mark == 1:
        return "even"
    return f"{mark:,.0f}{TIMES}" if mark > 1 else f"1/{1 / mark:,.0f}"


if __name__ == "__main__":
    mpl.rcParams.update(STYLE)
    for each in json.loads(Path("plots.json").read_text("utf-8")):
        draw(each)
