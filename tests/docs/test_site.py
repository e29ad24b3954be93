"""The site builds without warnings, lists every page, and loads nothing from other hosts."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from tests.docs.pages import ROOT

DOCS = ROOT / "docs"
CONFIGURATION = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
ASSETS = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}
"""Elements that a browser loads, and the attribute with the address."""
NAVIGATION = re.compile(r"^nav = \[\n.*?^\]\n", re.MULTILINE | re.DOTALL)
FOREIGN = re.compile(r"(?:[a-z]+:)?//")
FETCHING = {"mermaid", "glightbox", "pyodide"}
"""Classes of elements for which the theme loads a script from another host."""


class Page(HTMLParser):
    """The links, assets, ids and classes of a built page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.assets: list[str] = []
        self.names: set[str] = set()
        self.classes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.names.add(found.get("id", ""))
        self.classes.update(found.get("class", "").split())
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        # Links to other pages, which are loaded on request.
        if tag in ASSETS and found.get("rel") not in ("prev", "next", "canonical"):
            self.assets.append(found.get(ASSETS[tag], ""))


def listed(entries: list[object]) -> Iterator[str]:
    """Yield the pages of a navigation, in order."""
    for entry in entries:
        values = list(entry.values()) if isinstance(entry, dict) else [entry]
        for value in values:
            if isinstance(value, str):
                yield value
            else:
                assert isinstance(value, list)
                yield from listed(value)


def build(directory: Path) -> subprocess.CompletedProcess[str]:
    """Build the site in *directory* with --strict."""
    argv = [sys.executable, "-m", "zensical", "build", "--strict"]
    return subprocess.run(argv, cwd=directory, capture_output=True, text=True, timeout=240, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    """Build the site and return every page by its file."""
    directory = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "zensical.toml", directory)
    shutil.copytree(DOCS, directory / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    done = build(directory)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in (done.stdout + done.stderr).lower()
    return {file: Page(file.read_text()) for file in sorted((directory / "build" / "site").rglob("*.html"))}


def test_every_page_is_in_the_navigation_once() -> None:
    there = sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))
    found = sorted(listed(CONFIGURATION["nav"]))
    assert [page for page in there if page not in found] == [], "not in the navigation: see zensical.toml"
    assert found == there


def test_the_front_page_lists_all_pages_as_the_navigation_does() -> None:
    _, _, lists = (DOCS / "index.md").read_text().partition("\n## All pages\n")
    in_lists = re.findall(r"^- \[(.+)\]\((.+)\)", lists, re.MULTILINE)
    assert [target for _, target in in_lists] == list(listed(CONFIGURATION["nav"]))[1:]
    for title, target in in_lists:
        assert (DOCS / target).read_text().startswith(f"# {title}\n")


def test_the_site_has_every_page_and_no_source(site: dict[Path, Page]) -> None:
    root = min(site, key=lambda file: len(file.parts)).parent
    built = {file.relative_to(root).with_suffix(".md").as_posix() for file in site}
    assert built - {"404.md"} == set(listed(CONFIGURATION["nav"]))
    assert not list(root.rglob("*.py"))


def test_every_link_of_the_site_leads_somewhere(site: dict[Path, Page]) -> None:
    for file, page in site.items():
        if file.name == "404.html":  # shown at any address, so its links begin at the root
            continue
        for link in page.links:
            target, anchor = urldefrag(link)
            if FOREIGN.match(target) or target.startswith("mailto:"):
                continue
            there = (file.parent / unquote(target)).resolve() if target else file
            assert there in site, f"{file.name}: {link}"
            assert not anchor or unquote(anchor) in site[there].names, f"{file.name}: {link}"


def test_no_page_needs_anything_from_another_host(site: dict[Path, Page]) -> None:
    for file, page in site.items():
        assert [asset for asset in page.assets if FOREIGN.match(asset)] == [], file.name
        assert page.classes.isdisjoint(FETCHING), file.name
        for asset in page.assets:
            if file.name != "404.html":
                assert (file.parent / unquote(urldefrag(asset)[0])).exists(), f"{file.name}: {asset}"


def test_no_style_needs_anything_from_another_host(site: dict[Path, Page]) -> None:
    root = min(site, key=lambda file: len(file.parts)).parent
    styles = list(root.rglob("*.css"))
    assert styles
    for style in styles:
        assert not re.search(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", style.read_text()), style.name


def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path) -> None:
    """With the project's settings, on a site of three pages."""
    settings, count = NAVIGATION.subn("", (ROOT / "zensical.toml").read_text())
    assert count == 1
    (tmp_path / "zensical.toml").write_text(settings)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Index\n")
    (tmp_path / "docs" / "page.md").write_text("# Page\n\n[gone](gone.md)\n")
    (tmp_path / "docs" / "part.md").write_text("# Part\n\n[no such part](index.md#gone)\n")
    done = build(tmp_path)
    assert done.returncode != 0
    assert "page.md:3" in done.stderr
    assert "part.md:3" in done.stderr
