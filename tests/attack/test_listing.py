"""Listings of what changes, of what is huge, and of names made to deceive (E22 to E25)."""

from __future__ import annotations

import json
import logging
import os
import stat
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from carrel.errors import LimitError
from carrel.testing import tree
from carrel.values import FileKind, Limits
from carrel.workspace.workspace import Workspace
from tests.attack.guards import in_time
from tests.attack.operations import names
from tests.attack.privilege import acting_as
from tests.attack.world import DEFAULT, RESOLVERS, Door, MakeWorld, Variant, World
from tests.requirements import requirement

pytestmark = pytest.mark.attack

real_scandir = os.scandir


class Interrupted:
    """A scan of a directory during which something happens."""

    def __init__(self, entries: Iterator[os.DirEntry[str]], happens: Callable[[], None]) -> None:
        self._entries = entries
        self._happens = happens

    def __iter__(self) -> Iterator[os.DirEntry[str]]:
        for entry in self._entries:
            self._happens()
            yield entry

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._entries.close()  # type: ignore[attr-defined]  # what os.scandir gives has it


def _interrupt(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], None]) -> None:
    """Let *happens* be called before each entry of every scan."""
    monkeypatch.setattr(os, "scandir", lambda directory: Interrupted(real_scandir(directory), happens))


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize("lead", ["$OUT", "../outside", "other"])
def test_a_listing_is_about_the_directory_that_was_opened(
    lead: str, variant: Variant, world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E22: not about what takes its name in the middle of it."""
    with world("d/secret; d/dir/; other/secret = something longer", variant) as here:
        expected = {path: os.lstat(here.root / path).st_ino for path in ("d/secret", "d/dir")}

        def swap() -> None:
            if not (here.root / "d").is_symlink():
                (here.root / "d").rename(here.root / "gone")
                (here.root / "d").symlink_to(here.fill(lead))

        _interrupt(monkeypatch, swap)
        with acting_as(variant.user):
            found = here.workspace.list("d")
        monkeypatch.undo()
        assert {info.path: info.inode for info in found} == expected
        assert (here.root / "d").is_symlink()


@requirement("P-21")
@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize("before", ["a", "a/b", "a/b/c"])
def test_a_walk_does_not_enter_what_was_put_in_place_of_a_directory(
    before: str, variant: Variant, world: MakeWorld
) -> None:
    """E22: whichever directory is swapped, and however far the walk has come."""
    with world("a/b/c/f; a/b/g", variant) as here:
        found = []
        for info in here.workspace.walk():
            found.append(info.path)
            if info.path == before:
                (here.root / before).rename(here.root / "gone")
                (here.root / before).symlink_to(here.out)
        assert set(found) <= {"a", "a/b", "a/b/c", "a/b/c/f", "a/b/g", "gone"}
        here.start_over()


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
def test_what_vanishes_in_the_middle_of_a_listing_is_left_out(
    variant: Variant, world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E23."""
    for call in (
        lambda workspace: names(workspace.list("d")),
        lambda workspace: names(list(workspace.walk("d"))),
        lambda workspace: tuple(workspace.glob("d/*")),
        lambda workspace: tuple(workspace.list_files("d/*")),
    ):
        with world("d/a; d/b; d/c; d/e/f", variant) as here:
            _interrupt(monkeypatch, lambda here=here: _remove_all_but(here.root / "d", "b"))  # type: ignore[misc]  # bound now
            with acting_as(variant.user):
                assert call(here.workspace) == ("d/b",)
            monkeypatch.undo()


def _remove_all_but(directory: Path, kept: str) -> None:
    for name in os.listdir(directory):
        if name == "e":
            (directory / "e" / "f").unlink()
            (directory / "e").rmdir()
        elif name != kept:
            (directory / name).unlink()


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
def test_a_search_goes_on_when_files_vanish(
    variant: Variant, world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E23."""
    with world("d/a; d/b; d/c", variant) as here:
        real = os.open

        def lose(path: object, *arguments: object, **options: object) -> int:
            (here.root / "d" / "b").unlink(missing_ok=True)
            return real(path, *arguments, **options)  # type: ignore[arg-type]  # passed on as it came

        monkeypatch.setattr(os, "open", lose)
        found = here.workspace.search("in", "d").matches
        monkeypatch.undo()
        assert {match.path for match in found} <= {"d/a", "d/b", "d/c"}
        assert {"d/a", "d/c"} <= {match.path for match in found}


@pytest.fixture(scope="module")
def crowd(places: Path) -> Path:
    """A workspace with a directory of more entries than the default limit."""
    top = places / "crowd"
    (top / "d").mkdir(parents=True)
    (top / "e").mkdir()
    assert DEFAULT.list_entries is not None
    fd = os.open(top / "d", os.O_RDONLY)
    for number in range(DEFAULT.list_entries + 1):
        os.mknod(f"{number}", stat.S_IFREG | 0o644, dir_fd=fd)
    os.close(fd)
    return top


@pytest.mark.slow
@pytest.mark.parametrize("resolver", ["kernel", "walk"])
def test_a_directory_with_too_many_entries_is_refused_by_default(resolver: str, crowd: Path) -> None:
    """E24."""
    with Workspace.open(crowd, confinement=resolver) as workspace:
        with in_time(20), pytest.raises(LimitError, match="100000") as caught:
            workspace.list("d")
        assert caught.value.code == "limit.list_entries"
        assert caught.value.limit == 100_000


@pytest.mark.slow
@pytest.mark.parametrize("resolver", ["kernel", "walk"])
@pytest.mark.parametrize("call", ["list", "walk", "glob", "list_files", "search", "usage"])
def test_a_crowded_directory_costs_no_more_than_the_limit(
    call: str, resolver: str, crowd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E24: neither time nor memory grows with what is not looked at."""
    seen = 0

    def count() -> None:
        nonlocal seen
        seen += 1

    walk_entries = 1000 if call == "usage" else 2000
    limits = Limits(list_entries=1000, walk_entries=walk_entries, disk_bytes=None, entries=None)
    with Workspace.open(crowd, confinement=resolver, limits=limits) as workspace:
        _interrupt(monkeypatch, count)
        tracemalloc.start()
        with in_time():
            _look_at(workspace, call)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        monkeypatch.undo()
    assert seen <= 1000 + 1 + len(os.listdir(crowd))
    assert peak < 4 * 2**20


def _look_at(workspace: Workspace, call: str) -> None:
    """Come to the limit in the way of *call*; a search says `truncated` instead of raising."""
    calls: dict[str, Callable[[], object]] = {
        "list": lambda: workspace.list("d"),
        "walk": lambda: list(workspace.walk()),
        "glob": lambda: workspace.glob("no-*"),
        "list_files": lambda: workspace.list_files("no-*"),
        "usage": workspace.usage,
    }
    if call == "search":
        assert workspace.search("no").reason == "entries"
        return
    with pytest.raises(LimitError):
        calls[call]()


def test_a_walk_gives_what_is_within_the_limit_before_it_complains(world: MakeWorld) -> None:
    """E24."""
    with world("a; b; c; d", RESOLVERS[0], Limits(walk_entries=3)) as here:
        found: list[str] = []
        outcome = here.attempt(lambda workspace: found.extend(info.path for info in workspace.walk()))
        assert found == ["a", "b", "c"]
        assert isinstance(outcome.error, LimitError)
        assert outcome.error.code == "limit.walk_entries"


ODD_NAMES = [
    "a\nb",
    "a\n",
    "\r",
    "a\tb",
    "a\x1b[2Jb",
    "a\x1b]0;title\x07",
    "a\u202egpj.exe",
    "a\u2066b",
    "a\u200bb",
    "\ufeffa",
    "a\x7f",
    "a\x85b",
    "a\u2028b",
    "\udcff\udcfe",
    "a\udc80b",
    "e\u0301",
    "é",
    "日本語",
    "🌍",
    "-rf",
    "--help",
    " a ",
    "a ",
    "...",
    "..a",
    "*",
    "?",
    "[a]",
    "$HOME",
    "`id`",
    "a;b",
    "a'b\"c",
    "%2e%2e",
    "CON",
    "ab:c",
    "x" * 255,
]


@requirement("L-23", "W-29")
@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize("name", ODD_NAMES, ids=ascii)
def test_an_odd_name_comes_back_exactly_and_can_be_used(
    name: str, variant: Variant, world: MakeWorld
) -> None:
    """E25."""
    with world("—", variant) as here, acting_as(variant.user):
        tree(here.root, f"{name} = own", f"d/{name} = below")
        workspace = here.workspace
        found = {info.path for info in workspace.list()}
        assert found == {name, "d"}
        assert {info.path for info in workspace.walk()} == {name, "d", f"d/{name}"}
        assert workspace.list_files() == sorted([name, f"d/{name}"])
        assert workspace.read(name) == b"own"
        assert workspace.read(f"d/{name}") == b"below"
        workspace.move(name, f"d/{name}", overwrite=True)
        workspace.copy(f"d/{name}", name)
        workspace.append(name, b"ed")
        assert workspace.read(name) == b"owned"
        assert workspace.stat(name).path == name
        workspace.remove("d", recursive=True)
        workspace.remove(name)
        assert workspace.list() == []


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize("name", ODD_NAMES, ids=ascii)
def test_an_odd_name_is_escaped_in_records_and_kept_in_the_journal(
    name: str, variant: Variant, world: MakeWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """E25: it cannot forge a second line, nor move the cursor of a terminal."""
    with world("—", variant) as here, caplog.at_level(logging.INFO, logger="carrel"):
        with acting_as(variant.user):
            caplog.clear()
            here.workspace.write(name, b"new")
            here.workspace.read(name)
            with pytest.raises(ValueError, match="escapes"):
                here.workspace.read(f"../{name}"[:250])
            events = [event for event in here.workspace.changes() if event.operation == "write"]
        assert [event.path for event in events] == [name]
        assert len(caplog.records) == 3
        for record in caplog.records:
            assert record.getMessage().isprintable()
            assert str(record.__dict__["path"]).isprintable()
        _require_journal_of_plain_lines(here)


def _require_journal_of_plain_lines(here: World) -> None:
    if here.variant.door is Door.DIRECTORY:
        return
    journal = (here.parent / ".carrel" / "sessions" / "ROOT" / "journal.0").read_bytes()
    assert journal.isascii()
    for line in journal.split(b"\n"):
        assert not line or json.loads(line)


@requirement("P-11", "L-21")
@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
def test_a_listing_tells_the_same_of_every_link_wherever_it_leads(variant: Variant, world: MakeWorld) -> None:
    """A link speaks of itself: nothing shows whether its target exists, or what it is."""
    layout = "a => $OUT/secret; b => $OUT/nothin; c => $OUT/folder"
    with world(layout, variant) as here:
        (here.out / "folder").mkdir()
        here.settle()
        for infos in (here.workspace.list(), list(here.workspace.walk())):
            assert {info.kind for info in infos} == {FileKind.LINK}
            sizes = {info.size_bytes for info in infos}
            assert len(sizes) == 1, "the links are of the same length, whatever stands at their end"
            assert {(info.mode, info.links, info.target) for info in infos} == {(0o777, 1, None)}
        assert here.workspace.list_files() == []
        assert here.workspace.glob("*") == ["a", "b", "c"]
