"""The lines around a change as they are now, with their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from carrel.tools.lines import numbered_line
from carrel.workspace.text import line_start

AROUND = 3
"""So many lines are shown before and after a change."""
MOST_LINES = 60
MOST_CHARACTERS = 400
"""Longer lines are cut."""

_HUNK = re.compile(r"@@ -[0-9,]+ \+([0-9]+)")
_GAP = "   ..."


def snippet(diff: str) -> str:
    """What a unified *diff* says about the lines that are there now; nothing if there are none."""
    lines: list[str] = []
    for line in _present(diff):
        if len(lines) == MOST_LINES:
            return "\n".join((*lines, _GAP))
        lines.append(line)
    return "\n".join(lines)


def _present(diff: str) -> Iterator[str]:
    number: int | None = None
    for line in diff.split("\n"):
        if hunk := _HUNK.match(line):
            if number is not None:
                yield _GAP
            number = int(hunk[1])
        elif number is not None and line[:1] in (" ", "+"):
            yield _shown(number, line[1:])
            number += 1


def surroundings(content: bytes, first: int, count: int) -> str:
    """The *count* lines of *content* from the index *first* on, and some before and after them."""
    begin = max(0, first - AROUND)
    end = first + count + AROUND
    rest = content[line_start(content, begin) :]
    near = rest[: line_start(rest, min(end - begin, MOST_LINES))].removesuffix(b"\n").split(b"\n")
    shown = [
        _shown(number, line.decode("utf-8", "replace").rstrip("\r\n"))
        for number, line in enumerate(near, begin + 1)
    ]
    return "\n".join([*shown, _GAP] if end - begin > MOST_LINES else shown)


def _shown(number: int, line: str) -> str:
    return numbered_line(number, line if len(line) <= MOST_CHARACTERS else f"{line[:MOST_CHARACTERS]}...")
