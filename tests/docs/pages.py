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
    """A block of code, and what the page says that it prints with this Python."""

    language: str
    text: str
    prints: str | None


def name_of(page: Path) -> str:
    """The path of a page in the project."""
    return page.relative_to(ROOT).as_posix()


def examples(page: Path, language: str) -> list[Example]:
    """The blocks of *page* in *language*, in order."""
    text = page.read_text()
    found = list(_BLOCK.finditer(text))
    made = []
    for block, following in zip(found, [*found[1:], None], strict=False):
        prints = None
        said = following and _PRINTS.match(text, block.end(), following.start())
        if following and said and said["version"] in (None, _VERSION):
            prints = following["text"]
        made.append(Example(block["language"], block["text"], prints))
    return [example for example in made if example.language == language]
