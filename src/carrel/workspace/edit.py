"""Replace text in a file's content and describe the change as a unified diff.

The diff is built from the positions of the replacements, not by comparing the two contents, so its cost is
linear in the size of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from carrel.errors import EditError, TextError

CONTEXT_LINES = 3
"""Number of context lines on each side of a change in a diff."""
DIFF_CHARACTERS = 100_000
"""Maximum length of a diff in characters; a longer one is cut."""
LISTED_LINES = 10
"""Maximum number of lines listed in the error for an ambiguous text."""
_HUNK_BYTES = 4 * DIFF_CHARACTERS
"""Maximum size of a hunk in bytes; a larger one exceeds `DIFF_CHARACTERS` in any encoding."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """The new content, the number of replacements and the diff."""

    content: bytes
    count: int
    diff: str


def replace(content: bytes, old: str, new: str, *, replace_all: bool, path: str) -> Replaced:
    """Replace *old* by *new*; *old* must occur exactly once unless *replace_all*.

    A file with CRLF line ends is matched and written with those, even if *old* and *new* have LF.

    Raises:
        EditError: *old* is empty, equal to *new*, not found, or found several times.
        TextError: One contains an unpaired surrogate, which no file can hold.
    """
    if not old:
        raise EditError("empty", f"cannot edit {path!r}: the text to replace is empty", path=path)
    if old == new:
        raise EditError("identical", f"cannot edit {path!r}: old and new text are identical", path=path)
    before, after = _encode(old, path), _encode(new, path)
    count = content.count(before)
    if not count and b"\r\n" in content and b"\r\n" not in before:
        before, after = (text.replace(b"\n", b"\r\n") for text in (before, after))
        count = content.count(before)
    elif b"\r\n" in content and b"\r\n" not in before and b"\n" in after:
        after = _with_line_ends(after, content, count)
    if not count:
        raise EditError("not_found", f"cannot edit {path!r}: the text to replace was not found", path=path)
    if count > 1 and not replace_all:
        raise EditError(
            "ambiguous",
            f"cannot edit {path!r}: the text to replace matches {count} locations"
            f" ({_list_lines(content, before)})",
            path=path,
        )
    changed = content.replace(before, after)
    return Replaced(changed, count, _diff(content, before, after, path))


def _encode(text: str, path: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        start = error.start
    raise TextError(
        f"cannot edit {path!r}: character {start} of the text is an unpaired surrogate", path=path
    )


def _list_lines(content: bytes, text: bytes) -> str:
    """List the numbers of the first lines on which *text* begins."""
    numbers: list[str] = []
    number, at = 1, 0
    offset = content.find(text)
    while offset >= 0:
        if len(numbers) == LISTED_LINES:
            return f"lines {', '.join(numbers)} and more"
        number += content.count(b"\n", at, offset)
        numbers.append(str(number))
        at = offset
        # Each line is listed once; some contain the text a million times.
        line_end = content.find(b"\n", offset)
        offset = -1 if line_end < 0 else content.find(text, line_end + 1)
    return f"line{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"


def _with_line_ends(text: bytes, content: bytes, count: int) -> bytes:
    """Give *text* the line ends of a file that has CRLF only."""
    plain = content.count(b"\n") - content.count(b"\r\n")
    if plain or not count:
        return text
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


class _Hunk(NamedTuple):
    """A range of whole lines, and the offsets of the replacements in it."""

    begin: int
    end: int
    offsets: list[int]


def _diff(content: bytes, before: bytes, after: bytes, path: str) -> str:
    rendered = [f"--- {path}\n+++ {path}\n"]
    size = counted_to = first = shift = 0
    for begin, end, offsets in _hunks(content, before):
        grown = max(0, len(offsets) * (len(after) - len(before)))
        lines = content.count(b"\n", begin, end)
        if end - begin + grown > _HUNK_BYTES or lines > DIFF_CHARACTERS:
            hunk = ""
        else:
            first += content.count(b"\n", counted_to, begin)
            counted_to = begin
            old = content[begin:end]
            new = _rewritten(old, [offset - begin for offset in offsets], before, after)
            hunk, more = _render_hunk(old, new, first, shift)
            shift += more
            size += len(hunk)
        if not hunk or size > DIFF_CHARACTERS:
            rendered.append("... the rest of the diff is left out\n")
            break
        rendered.append(hunk)
    return "".join(rendered)


def _hunks(content: bytes, text: bytes) -> Iterator[_Hunk]:
    """Yield the lines around each *text*; the last hunk is incomplete if it is too long for a diff."""
    hunk: _Hunk | None = None
    line_end = 0
    for offset in _offsets(content, text):
        last = offset + len(text) - 1
        if hunk is not None and (hunk.end - hunk.begin > _HUNK_BYTES or len(hunk.offsets) > DIFF_CHARACTERS):
            break
        if hunk is not None and last < line_end:
            # In the same line as the previous one; there may be very many.
            hunk.offsets.append(offset)
            continue
        begin, line_end = _line_begin(content, offset), _line_end(content, last)
        end = line_end
        for _ in range(CONTEXT_LINES):
            begin = _line_begin(content, begin - 1) if begin else 0
            end = _line_end(content, end)
        if hunk is not None and begin <= hunk.end:
            hunk = hunk._replace(end=max(hunk.end, end))
            hunk.offsets.append(offset)
            continue
        if hunk is not None:
            yield hunk
        hunk = _Hunk(begin, end, [offset])
    if hunk is not None:
        yield hunk


def _offsets(content: bytes, text: bytes) -> Iterator[int]:
    at = content.find(text)
    while at >= 0:
        yield at
        at = content.find(text, at + len(text))


def _line_begin(content: bytes, at: int) -> int:
    return content.rfind(b"\n", 0, at) + 1


def _line_end(content: bytes, at: int) -> int:
    """Return the offset after the first newline at or after *at*."""
    end = content.find(b"\n", at)
    return len(content) if end < 0 else end + 1


def _rewritten(old: bytes, offsets: list[int], before: bytes, after: bytes) -> bytes:
    pieces: list[bytes] = []
    at = 0
    for offset in offsets:
        pieces += (old[at:offset], after)
        at = offset + len(before)
    return b"".join([*pieces, old[at:]])


def _render_hunk(old: bytes, new: bytes, first: int, shift: int) -> tuple[str, int]:
    """Render a hunk whose old text begins at line *first*; return it and the number of added lines."""
    olds, news = _lines(old), _lines(new)
    head = _common(olds, news)
    tail = _common(olds[head:][::-1], news[head:][::-1])
    body = [
        *(b" " + line for line in olds[:head]),
        *(b"-" + line for line in olds[head : len(olds) - tail]),
        *(b"+" + line for line in news[head : len(news) - tail]),
        *(b" " + line for line in olds[len(olds) - tail :]),
    ]
    text = "".join(_render_line(line) for line in body)
    ranges = f"-{_range(first, len(olds))} +{_range(first + shift, len(news))}"
    return f"@@ {ranges} @@\n{text}", len(news) - len(olds)


def _lines(content: bytes) -> list[bytes]:
    """Split into lines with their ends; only a newline ends one."""
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
    """Render a line range as in a unified diff."""
    if count == 1:
        return str(first + 1)
    return f"{first if count == 0 else first + 1},{count}"


def _render_line(line: bytes) -> str:
    text = line.decode("utf-8", "replace")
    return text if text.endswith("\n") else text + "\n\\ No newline at end of file\n"
