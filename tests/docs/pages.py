"""The pages of the documentation, and the blocks of code in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])

_BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_PRINTS = re.compile(r"\s*It prints:\s*\Z")


@dataclass(frozen=True, slots=True)
class Example:
    """A block of code, and what the page says that it prints."""

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
        if following and _PRINTS.match(text, block.end(), following.start()):
            prints = following["text"]
        made.append(Example(block["language"], block["text"], prints))
    return [example for example in made if example.language == language]
