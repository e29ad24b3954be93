"""A short unified diff of two texts, for an answer."""

from __future__ import annotations

from collections.abc import Callable

from carrel.shell.line_diff import Change, changes

CONTEXT = 3
MOST_LINES = 60
"""Longer diffs are cut."""
MOST_CHARACTERS = 4000
MOST_BYTES = 2**18
"""Of larger contents no diff is made."""


def text_diff(old: bytes, new: bytes, path: str, check: Callable[[], None]) -> str | None:
    """How *old* became *new*, both contents of *path*; `None` if one is binary, too large, or both are equal.

    *check* may stop a long search.
    """
    if old == new or max(len(old), len(new)) > MOST_BYTES or b"\0" in old or b"\0" in new:
        return None
    before, after = _lines(old), _lines(new)
    rendered = [f"--- {path}", f"+++ {path}"]
    for group in _groups(changes(before, after, check)):
        rendered += _hunk(group, before, after)
        if len(rendered) > MOST_LINES:
            break
    return _cut(rendered)


def shortened(diff: str) -> str:
    """A whole unified *diff*, cut as those that are made here."""
    return _cut(diff.removesuffix("\n").split("\n"))


def _lines(content: bytes) -> list[str]:
    """The lines without their ends; a last one that has none says so."""
    *whole, rest = content.decode("utf-8", "replace").split("\n")
    return [*whole, f"{rest}\n\\ No newline at end of file"] if rest else whole


def _groups(found: list[Change]) -> list[list[Change]]:
    """Those that are so near to each other that they share a hunk."""
    groups: list[list[Change]] = []
    for change in found:
        if groups and change.old - groups[-1][-1].old_end <= 2 * CONTEXT:
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def _hunk(group: list[Change], before: list[str], after: list[str]) -> list[str]:
    first, last = group[0], group[-1]
    above = min(CONTEXT, first.old)
    below = min(CONTEXT, len(before) - last.old_end)
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
    """Line numbers as a unified diff writes them."""
    count = end - start
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"


def _cut(lines: list[str]) -> str:
    kept: list[str] = []
    room = MOST_CHARACTERS
    for line in lines[:MOST_LINES]:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    if len(kept) < len(lines):
        kept.append("... the rest of the diff is left out")
    return "\n".join(kept) + "\n"
