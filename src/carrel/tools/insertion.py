"""Lines put between those of a file."""

from __future__ import annotations

from carrel.workspace.text import line_count, line_start


def inserted(content: bytes, after: int, text: bytes) -> bytes:
    """The *content* with *text* behind its line *after*, which it must have; 0 is before the first.

    The text becomes lines of its own, whose ends are those of the file. Only behind a last line that is not
    ended, the text needs no end either.
    """
    if b"\r\n" in content and content.count(b"\n") == content.count(b"\r\n"):
        end, text = b"\r\n", text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    else:
        end = b"\n"
    if content and after == line_count(content) and not content.endswith(b"\n"):
        return b"".join((content, end, text))
    if not text.endswith(b"\n"):
        text += end
    at = line_start(content, after)
    return b"".join((content[:at], text, content[at:]))
