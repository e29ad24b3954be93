"""A docstring as a part of a page."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from docs.reference_pages.markdown import bullets, paragraph, wrapped

_SECTION = re.compile(r"(Args|Raises|Returns|Yields):")
_ENTRY = re.compile(r" {4}(\*{0,2}[\w.]+): (.*)")
_WORDS = {"Args": "", "Raises": "Raises:", "Returns": "Returns:", "Yields": "Yields:"}
"""The line above the entries of each section."""


def parts_of(thing: object) -> Iterator[str]:
    """The paragraphs, the examples, and the parameters and errors as lists."""
    for block in (inspect.getdoc(thing) or "").split("\n\n"):
        head, _, rest = block.partition("\n")
        section = _SECTION.fullmatch(head)
        if section is not None:
            yield from _entries(section[1], rest)
        elif head.startswith(">>> "):
            yield f"```pycon\n{block}\n```"
        else:
            yield wrapped(paragraph(block))


def summary_of(thing: object) -> str:
    """The first line, which is a sentence."""
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def raised_by(thing: object) -> set[str]:
    """The errors in its section `Raises`."""
    _, _, raises = (inspect.getdoc(thing) or "").partition("Raises:\n")
    return {entry[1] for line in raises.splitlines() if (entry := _ENTRY.match(line))}


def _entries(section: str, lines: str) -> Iterator[str]:
    entries: list[str] = []
    for line in lines.splitlines():
        entry = _ENTRY.match(line)
        if entry is not None:
            entries.append(f"`{entry[1]}`: {entry[2]}")
        elif entries:
            entries[-1] += f" {line.strip()}"
        else:
            entries.append(line.strip())
    if _WORDS[section]:
        yield _WORDS[section]
    yield bullets(*entries)
