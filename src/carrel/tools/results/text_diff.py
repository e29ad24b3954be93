"""Short unified diffs of two texts, and the numbered lines around a change."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from carrel.shell.text.line_diff import LineChange, line_changes
from carrel.tools.results.lines import numbered_line
from carrel.workspace.text import line_start

CONTEXT_LINES = 3
MAX_DIFF_LINES = 60
"""Longer diffs are truncated."""
MAX_DIFF_CHARACTERS = 4000
"""Longer diffs are truncated."""
MAX_DIFF_INPUT_BYTES = 2**18
"""Larger contents are not compared."""


def text_diff(old: bytes, new: bytes, path: str, check: Callable[[], None]) -> str | None:
    """Return a unified diff of two contents of *path*; `None` if they are equal, binary or too large.

    *check* is called between steps and may raise to stop a long comparison.
    """
    if old == new or max(len(old), len(new)) > MAX_DIFF_INPUT_BYTES or b"\0" in old or b"\0" in new:
        return None
    before, after = _lines(old), _lines(new)
    rendered = [f"--- {path}", f"+++ {path}"]
    for group in _groups(line_changes(before, after, check)):
        rendered += _hunk(group, before, after)
        if len(rendered) > MAX_DIFF_LINES:
            break
    return _truncate(rendered)


def shorten_diff(diff: str) -> str:
    """Truncate a complete unified *diff* to the same limits."""
    return _truncate(diff.removesuffix("\n").split("\n"))


def _lines(content: bytes) -> list[str]:
    """Return the lines without newlines; a missing newline at the end is noted as diff does."""
    *whole, rest = content.decode("utf-8", "replace").split("\n")
    return [*whole, f"{rest}\n\\ No newline at end of file"] if rest else whole


def _groups(changes: list[LineChange]) -> list[list[LineChange]]:
    """Group changes that are close enough to share a hunk."""
    groups: list[list[LineChange]] = []
    for change in changes:
        if groups and change.old - groups[-1][-1].old_end <= 2 * CONTEXT_LINES:
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def _hunk(group: list[LineChange], before: list[str], after: list[str]) -> list[str]:
    first, last = group[0], group[-1]
    above = min(CONTEXT_LINES, first.old)
    below = min(CONTEXT_LINES, len(before) - last.old_end)
    old = _range(first.old - above, last.old_end + below)
    new = _range(first.new - above, last.new_end + below)
    lines = [f"@@ -{old} +{new} @@"]
    at = first.old - above
    for change in group:
        lines += [f" {line}" for line in before[at : change.old]]
        lines += [f"-{line}" for line in before[change.old : change.old_end]]
        lines += [f"+{line}" for line in after[change.new : change.new_end]]
        at = change.old_end
    return lines + [f" {line}" for line in before[at : at + below]]


def _range(start: int, end: int) -> str:
    """Render line numbers in unified diff notation."""
    count = end - start
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"


def _truncate(lines: list[str]) -> str:
    kept: list[str] = []
    room = MAX_DIFF_CHARACTERS
    for line in lines[:MAX_DIFF_LINES]:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    if len(kept) < len(lines):
        kept.append("... the rest of the diff is left out")
    return "\n".join(kept) + "\n"


SURROUNDING_LINES = 3
"""Lines shown before and after a change."""
MAX_SNIPPET_LINES = 60
"""Longer snippets are truncated."""
MAX_SNIPPET_LINE_CHARACTERS = 400
"""Longer lines are truncated."""

_HUNK = re.compile(r"@@ -[0-9,]+ \+([0-9]+)")
_GAP = "   ..."


def snippet(diff: str) -> str:
    """Return the lines of a unified *diff* that exist after the change, numbered."""
    lines: list[str] = []
    for line in _new_lines(diff):
        if len(lines) == MAX_SNIPPET_LINES:
            return "\n".join((*lines, _GAP))
        lines.append(line)
    return "\n".join(lines)


def _new_lines(diff: str) -> Iterator[str]:
    number: int | None = None
    for line in diff.split("\n"):
        if hunk := _HUNK.match(line):
            if number is not None:
                yield _GAP
            number = int(hunk[1])
        elif number is not None and line[:1] in (" ", "+"):
            yield _snippet_line(number, line[1:])
            number += 1


def surrounding_lines(content: bytes, first: int, count: int) -> str:
    """Return *count* lines of *content* from index *first* on, numbered, with the lines around them."""
    begin = max(0, first - SURROUNDING_LINES)
    end = first + count + SURROUNDING_LINES
    rest = content[line_start(content, begin) :]
    near = rest[: line_start(rest, min(end - begin, MAX_SNIPPET_LINES))].removesuffix(b"\n").split(b"\n")
    lines = [
        _snippet_line(number, line.decode("utf-8", "replace").rstrip("\r\n"))
        for number, line in enumerate(near, begin + 1)
    ]
    return "\n".join([*lines, _GAP] if end - begin > MAX_SNIPPET_LINES else lines)


def _snippet_line(number: int, line: str) -> str:
    return numbered_line(
        number,
        line if len(line) <= MAX_SNIPPET_LINE_CHARACTERS else f"{line[:MAX_SNIPPET_LINE_CHARACTERS]}...",
    )
