"""Text that cannot forge a second line or move the cursor of a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """*text* on one line, with every character escaped that does not print."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
