"""Words, lists and tables of a page."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

NOTICE = "<!-- Made by docs/generate.py; do not edit. -->"


def page(title: str, *parts: str) -> str:
    """A whole page."""
    return "\n\n".join([f"# {title}", NOTICE, *(textwrap.dedent(part).strip() for part in parts)]) + "\n"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table; a bar in a cell does not end it."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def paragraph(text: str) -> str:
    """The same on one line."""
    return re.sub(r"\s+", " ", text).strip()


def wrapped(text: str) -> str:
    """The same on lines of a readable length."""
    return textwrap.fill(text, 110, break_long_words=False, break_on_hyphens=False)


def bullets(*texts: str) -> str:
    """A list of paragraphs."""
    return "\n".join(
        textwrap.fill(
            f"- {text}", 110, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
        for text in texts
    )


def plain(text: str) -> str:
    """A text in which an asterisk is one, as in a pattern."""
    return text.replace("*", "\\*")


def codes(names: Iterable[str]) -> str:
    """Codes of errors."""
    return ", ".join(f"`{name}`" for name in names)
