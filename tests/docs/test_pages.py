"""Links have targets, data blocks parse, and pages have the required structure."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import PAGES, ROOT, examples, name_of

LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
ADR = ROOT / "docs" / "adr"
DATA: dict[str, Callable[[str], object]] = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}
"""The parser of each kind of data block."""
OTHER_PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]


def anchors(page: Path) -> set[str]:
    """Return the anchors of *page*."""
    return {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in HEADING.findall(page.read_text())
    }


@pytest.mark.parametrize("page", [*PAGES, *OTHER_PAGES], ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text()):
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_has_one_title_and_no_path_of_a_machine(page: Path) -> None:
    text = page.read_text()
    assert text.startswith("# ")
    assert not re.search(r"/(?:home|root|work|Users)/", text)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_block_of_data_can_be_read(page: Path) -> None:
    for language, read in DATA.items():
        for block in examples(page, language):
            assert read(block.text), block.text


def test_every_page_of_the_docs_is_in_the_index() -> None:
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / target).resolve() for target, _ in LINK.findall(index.read_text())}
    missing = {page for page in PAGES if page.is_relative_to(ROOT / "docs") and page != index} - linked
    assert not missing


def test_decisions_are_numbered_without_a_gap() -> None:
    numbers = [int(page.name[:4]) for page in PAGES if page.parent == ADR]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent == ADR], ids=name_of)
def test_a_decision_says_why_and_what_follows(page: Path) -> None:
    titles = HEADING.findall(page.read_text())
    assert titles[1:] == ["Context", "Decision", "Consequences"]


def test_the_codes_of_troubleshooting_are_codes_of_errors() -> None:
    rows = re.findall(
        r"^\|.*?\| (`[a-z]+\.[^|]*) \|", (ROOT / "docs/how-to/troubleshooting.md").read_text(), re.MULTILINE
    )
    codes = {code for row in rows for code in re.findall(r"`([a-z_.]+)`", row)}
    assert len(codes) > 30
    assert codes <= set(re.findall(r"`([a-z]+\.[a-z_]+)`", (ROOT / "docs/reference/errors.md").read_text()))


def test_the_glossary_is_in_order() -> None:
    page = (ROOT / "docs/reference/glossary.md").read_text()
    terms = re.findall(r"^\| ([\w ]+) \|", page, re.MULTILINE)[1:]
    assert terms == sorted(terms, key=str.lower)
    assert len(terms) > 40
