"""Replace text in a file's content, and say what changed as a unified diff.

The diff is made from the places that were replaced, not by comparing the two contents, so it costs time in
proportion to the file.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from carrel.errors import EditError

CONTEXT_LINES = 3
DIFF_CHARACTERS = 100_000
"""Longer diffs are cut; the file is changed all the same."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """The new content and how it came about."""

    content: bytes
    count: int
    diff: str


def replace(content: bytes, old: str, new: str, *, replace_all: bool, path: str) -> Replaced:
    """Replace *old*, which must be there exactly once unless *replace_all*.

    A file with CRLF line ends is matched and written with those, also when *old* and *new* have plain ones.

    Raises:
        EditError: *old* is empty, is the same as *new*, is not there or is there several times.
    """
    if not old:
        raise EditError("empty", f"cannot edit {path!r}: the text to replace is empty", path=path)
    if old == new:
        raise EditError("identical", f"cannot edit {path!r}: old and new text are identical", path=path)
    before, after = old.encode("utf-8", "surrogateescape"), new.encode("utf-8", "surrogateescape")
    places = _find_all(content, before)
    if not places and b"\r\n" in content and b"\r\n" not in before:
        before, after = (text.replace(b"\n", b"\r\n") for text in (before, after))
        places = _find_all(content, before)
    elif b"\r\n" in content and b"\r\n" not in before and b"\n" in after:
        after = _with_line_ends(after, content, places)
    if not places:
        raise EditError("not_found", f"cannot edit {path!r}: the text to replace was not found", path=path)
    if len(places) > 1 and not replace_all:
        raise EditError(
            "ambiguous",
            f"cannot edit {path!r}: the text to replace matches {len(places)} locations;"
            " give more of what surrounds it, or replace all",
            path=path,
        )
    changed = content.replace(before, after)
    return Replaced(changed, len(places), _diff(content, places, before, after, path))


def _find_all(content: bytes, text: bytes) -> list[int]:
    places: list[int] = []
    at = content.find(text)
    while at >= 0:
        places.append(at)
        at = content.find(text, at + len(text))
    return places


def _with_line_ends(text: bytes, content: bytes, places: list[int]) -> bytes:
    """Give *text* the line ends of a file that has CRLF only."""
    plain = content.count(b"\n") - content.count(b"\r\n")
    if plain or not places:
        return text
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def _diff(content: bytes, places: list[int], before: bytes, after: bytes, path: str) -> str:
    starts = _line_starts(content)
    rendered = [f"--- {path}\n+++ {path}\n"]
    size = 0
    shift = 0
    for first, last, inside in _hunks(places, len(before), starts):
        old = content[starts[first] : starts[last]]
        new = _rewritten(old, [place - starts[first] for place in inside], before, after)
        hunk, grown = _render_hunk(old, new, first, shift)
        shift += grown
        size += len(hunk)
        if size > DIFF_CHARACTERS:
            rendered.append("... the rest of the diff is left out\n")
            break
        rendered.append(hunk)
    return "".join(rendered)


def _line_starts(content: bytes) -> list[int]:
    """Where each line begins, and the end of the content."""
    starts = [0]
    at = content.find(b"\n")
    while at >= 0:
        starts.append(at + 1)
        at = content.find(b"\n", at + 1)
    if starts[-1] != len(content):
        starts.append(len(content))
    return starts


def _hunks(places: list[int], length: int, starts: list[int]) -> list[tuple[int, int, list[int]]]:
    """Ranges of lines (first, one past the last) around the places, each with its places."""
    hunks: list[tuple[int, int, list[int]]] = []
    for place in places:
        first = max(0, bisect_right(starts, place) - 1 - CONTEXT_LINES)
        last = min(len(starts) - 1, bisect_right(starts, place + length - 1) + CONTEXT_LINES)
        if hunks and first <= hunks[-1][1]:
            start, end, inside = hunks[-1]
            inside.append(place)
            hunks[-1] = (start, max(end, last), inside)
        else:
            hunks.append((first, last, [place]))
    return hunks


def _rewritten(old: bytes, places: list[int], before: bytes, after: bytes) -> bytes:
    pieces: list[bytes] = []
    at = 0
    for place in places:
        pieces += (old[at:place], after)
        at = place + len(before)
    return b"".join([*pieces, old[at:]])


def _render_hunk(old: bytes, new: bytes, first: int, shift: int) -> tuple[str, int]:
    """One hunk whose old text begins at line *first*, and by how many lines it grew."""
    olds, news = _lines(old), _lines(new)
    head = _common(olds, news)
    tail = _common(olds[head:][::-1], news[head:][::-1])
    body = [
        *(b" " + line for line in olds[:head]),
        *(b"-" + line for line in olds[head : len(olds) - tail]),
        *(b"+" + line for line in news[head : len(news) - tail]),
        *(b" " + line for line in olds[len(olds) - tail :]),
    ]
    text = "".join(_shown(line) for line in body)
    ranges = f"-{_range(first, len(olds))} +{_range(first + shift, len(news))}"
    return f"@@ {ranges} @@\n{text}", len(news) - len(olds)


def _lines(content: bytes) -> list[bytes]:
    """The lines with their ends; only a newline ends one."""
    *whole, rest = content.split(b"\n")
    lines = [line + b"\n" for line in whole]
    return [*lines, rest] if rest else lines


def _common(one: list[bytes], other: list[bytes]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _range(first: int, count: int) -> str:
    """Line numbers as a unified diff writes them."""
    if count == 1:
        return str(first + 1)
    return f"{first if count == 0 else first + 1},{count}"


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace")
    return text if text.endswith("\n") else text + "\n\\ No newline at end of file\n"
