"""The pages of the documentation, and the blocks of code in them."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])

_BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_PRINTS = re.compile(r"\s*(?:It|On Python (?P<version>3\.\d+) it) prints:\s*\Z")
_VERSION = "{}.{}".format(*sys.version_info)


@dataclass(frozen=True, slots=True)
class Example:
    """A code block and the output that its page gives for this Python, if any."""

    language: str
    text: str
    prints: str | None


def name_of(page: Path) -> str:
    """Return the path of a page relative to the project."""
    return page.relative_to(ROOT).as_posix()


def examples(page: Path, language: str) -> list[Example]:
    """Return the blocks of *page* in *language*, in order."""
    text = page.read_text()
    found = list(_BLOCK.finditer(text))
    result = []
    for block, following in zip(found, [*found[1:], None], strict=False):
        prints = None
        label = following and _PRINTS.match(text, block.end(), following.start())
        if following and label and label["version"] in (None, _VERSION):
            prints = following["text"]
        result.append(Example(block["language"], block["text"], prints))
    return [example for example in result if example.language == language]
