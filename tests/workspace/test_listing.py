"""List one directory, walk a tree, match patterns, and count."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel import FileInfo, Limits, Workspace
from carrel.errors import LimitError, PatternError
from carrel.paths.glob import Pattern
from carrel.values import FileKind, Usage
from tests.requirements import requirement
from tests.workspace.planting import plant, reserve

ODD = ["-rf", "a b", "new\nline", "esc\x1b[31m", "世界", "\u202eevil", "*", "back\\slash", "c:drive", "..."]


# One directory


@requirement("L-13", "L-22")
def test_a_directory_lists_its_files_and_directories_and_nothing_deeper(
    workspace: Workspace, directory: Path
) -> None:
    plant(directory, "file1.txt = 12345", "file2.txt", "subdir/deep/f", "link => file1.txt")
    found = workspace.list()
    assert [(info.name, info.path, info.kind) for info in found] == [
        ("file1.txt", "file1.txt", FileKind.FILE),
        ("file2.txt", "file2.txt", FileKind.FILE),
        ("link", "link", FileKind.LINK),
        ("subdir", "subdir", FileKind.DIRECTORY),
    ]
    assert [info.size_bytes for info in found] == [5, 2, len("file1.txt"), 0]
    assert found[0].modified_ns == (directory / "file1.txt").stat().st_mtime_ns


@requirement("L-15", "P-04")
@pytest.mark.parametrize("path", [".", "./", "/workspace", "sub/.."])
def test_the_workspace_itself_is_listed_by_any_of_its_names(
    workspace: Workspace, directory: Path, path: str
) -> None:
    plant(directory, "a.txt", "b.py", "c.rs", "sub/")
    files = [info for info in workspace.list(path) if info.is_file]
    assert [info.name for info in files] == ["a.txt", "b.py", "c.rs"]


@requirement("L-09")
@pytest.mark.parametrize("path", ["sub/deep", "sub/deep/", "sub\\deep", "./sub//deep", "/workspace/sub/deep"])
def test_listed_paths_are_relative_to_the_workspace_however_it_was_asked(
    workspace: Workspace, directory: Path, path: str
) -> None:
    plant(directory, "sub/deep/f")
    (found,) = workspace.list(path)
    assert found.path == "sub/deep/f"
    assert workspace.read(found.path) == b"in"


@requirement("L-18")
@pytest.mark.parametrize("path", ["f", "f/", "f/x", "link"])
def test_what_is_no_directory_is_not_listed(workspace: Workspace, directory: Path, path: str) -> None:
    plant(directory, "f", "link => f")
    with pytest.raises(NotADirectoryError, match="is not a directory"):
        workspace.list(path)


@requirement("L-19")
@pytest.mark.parametrize("path", ["/etc", "/", "..", "out", "up"])
def test_a_directory_of_the_host_is_not_listed(workspace: Workspace, directory: Path, path: str) -> None:
    plant(directory, "out => /etc", "up => ..")
    for attempt in (workspace.list, workspace.walk):
        with pytest.raises(ValueError, match="workspace"):
            attempt(path)


@requirement("L-20")
def test_a_missing_directory_is_not_listed(workspace: Workspace) -> None:
    for attempt in (workspace.list, workspace.walk):
        with pytest.raises(FileNotFoundError, match="no such file or directory: 'missing'"):
            attempt("missing")


@requirement("P-11", "L-21")
def test_a_link_is_listed_the_same_whether_its_target_exists_or_not(
    workspace: Workspace, directory: Path, outside: Path
) -> None:
    plant(directory, f"there => {outside}/secret", f"never => {outside}/absent", "f", "in => f", "dir => .")
    first = {info.name: (info.kind, info.size_bytes, info.target) for info in workspace.list()}
    assert first["there"] == first["never"] == (FileKind.LINK, len(f"{outside}/secret"), None)
    (outside / "secret").unlink()
    assert {info.name: (info.kind, info.size_bytes, info.target) for info in workspace.list()} == first
    assert [info.path for info in workspace.walk()] == sorted(first)
    assert workspace.list_files() == ["f"]
    assert workspace.glob("*") == sorted(first)


@requirement("L-23")
def test_odd_names_come_back_intact(workspace: Workspace, directory: Path) -> None:
    for name in ODD:
        (directory / name).write_bytes(b"in")
    assert [info.name for info in workspace.list()] == sorted(ODD)
    assert [info.path for info in workspace.walk()] == sorted(ODD)
    assert workspace.list_files() == sorted(ODD)


@requirement("L-23")
def test_a_name_that_is_no_text_is_listed_and_found_by_that_again(
    workspace: Workspace, directory: Path
) -> None:
    with open(os.fsencode(directory) + b"/caf\xe9", "wb") as file:
        file.write(b"in")
    (found,) = workspace.list()
    assert found.name == "caf\udce9"
    assert workspace.read(found.path) == b"in"
    workspace.move(found.path, found.path + "2")
    assert os.listdir(os.fsencode(directory)) == [b"caf\xe92"]


@requirement("L-24")
def test_a_directory_of_a_thousand_entries_is_listed_whole(workspace: Workspace, directory: Path) -> None:
    names = [f"{number:04}" for number in range(1000)]
    plant(directory, *names)
    assert [info.name for info in workspace.list()] == names
    assert workspace.list_files() == names


# Trees


def test_a_walk_gives_parents_first_and_names_in_order(workspace: Workspace, directory: Path) -> None:
    plant(directory, "b/z", "b/a/f", "a", "c/", ".hidden/f")
    assert [info.path for info in workspace.walk()] == [
        ".hidden",
        ".hidden/f",
        "a",
        "b",
        "b/a",
        "b/a/f",
        "b/z",
        "c",
    ]
    assert [info.path for info in workspace.walk("b")] == ["b/a", "b/a/f", "b/z"]


def test_a_walk_never_goes_through_a_link(workspace: Workspace, directory: Path, outside: Path) -> None:
    plant(directory, "self => .", "up => ..", f"out => {outside}", "sub/f", "sub/back => ..")
    assert [info.path for info in workspace.walk()] == ["out", "self", "sub", "sub/back", "sub/f", "up"]
    with pytest.raises(ValueError, match="escapes"):
        workspace.walk("out")
    assert [info.path for info in workspace.walk("self")][-1] == "self/up"


def test_a_walk_that_ends_early_leaves_nothing_open(workspace: Workspace, directory: Path) -> None:
    plant(directory, "a/b/c/d/e/f")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        steps = workspace.walk()
        for _ in range(4):
            next(steps)
        del steps
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_directory_that_cannot_be_opened_is_shown_but_not_entered(unprivileged: Path) -> None:
    plant(unprivileged, "shut/f", "z")
    (unprivileged / "shut").chmod(0)
    with Workspace.open(unprivileged) as workspace:
        assert [info.path for info in workspace.walk()] == ["shut", "z"]
        with pytest.raises(PermissionError, match="permission denied: 'shut'"):
            workspace.list("shut")


@pytest.mark.timeout(60)
def test_a_very_deep_tree_is_reported_not_recursed_into(workspace: Workspace, directory: Path) -> None:
    held = os.open(directory, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=held)
        inner = os.open("d", os.O_RDONLY, dir_fd=held)
        os.close(held)
        held = inner
    os.close(held)
    seen: list[FileInfo] = []
    with pytest.raises(LimitError, match="deeper than 64 levels") as caught:
        seen.extend(workspace.walk())
    assert caught.value.code == "limit.depth"
    assert workspace.usage().entries == 300
    workspace.remove("d", recursive=True)
    assert os.listdir(directory) == []


# Patterns


@requirement("L-14", "L-05", "L-08")
@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.txt", ["sub/test3.txt", "test1.txt", "test2.txt"]),
        ("test?.txt", ["sub/test3.txt", "test1.txt", "test2.txt"]),
        ("test[12].txt", ["test1.txt", "test2.txt"]),
        ("test[!1].txt", ["sub/test3.txt", "test2.txt"]),
        ("./test*", ["test1.txt", "test2.txt"]),
        ("*/*.txt", ["sub/test3.txt"]),
        ("sub", ["sub"]),
        ("su*/", ["sub"]),
        ("**", ["other.py", "readme.md", "sub", "sub/test3.txt", "test1.txt", "test2.txt"]),
        ("*.rs", []),
        ("missing/*", []),
        ("readme.md/*", []),
        ("TEST1.txt", []),
    ],
)
def test_a_pattern_finds_what_matches(
    workspace: Workspace, directory: Path, pattern: str, found: list[str]
) -> None:
    plant(directory, "test1.txt", "test2.txt", "other.py", "readme.md", "sub/test3.txt")
    assert workspace.glob(pattern) == found


@requirement("L-16")
def test_directories_are_entered_whatever_their_own_name(workspace: Workspace, directory: Path) -> None:
    plant(directory, "findings/x.md", "findings/y.txt", "z.md")
    assert workspace.glob("*.md") == ["findings/x.md", "z.md"]
    assert workspace.list_files("**/*.md") == ["findings/x.md", "z.md"]


@requirement("L-17")
def test_hidden_entries_are_matched_only_when_asked_for_or_named(
    workspace: Workspace, directory: Path
) -> None:
    plant(directory, ".hidden", ".git/config", "shown", "sub/.env")
    assert workspace.glob("*") == ["shown", "sub"]
    assert workspace.glob("*", hidden=True) == [".git", ".git/config", ".hidden", "shown", "sub", "sub/.env"]
    assert workspace.glob(".h*") == [".hidden"]
    assert workspace.glob(".git/*") == [".git/config"]
    assert workspace.glob("sub/.env") == ["sub/.env"]


@requirement("P-18")
@pytest.mark.parametrize(
    "pattern", ["../*", "a/../../*", "..", r"..\*", "/etc/*", "/workspace/*", "", "/", "a\0"]
)
def test_a_pattern_that_leads_out_is_refused(workspace: Workspace, pattern: str) -> None:
    for attempt in (workspace.glob, workspace.list_files):
        with pytest.raises(PatternError, match="invalid pattern"):
            attempt(pattern)


@requirement("P-18", "P-11")
def test_a_pattern_does_not_lead_out_through_a_link(
    workspace: Workspace, directory: Path, outside: Path
) -> None:
    plant(directory, f"out => {outside}", "sub/up => ../..")
    for pattern in ("out/*", "out/**", "sub/up/*"):
        with pytest.raises(ValueError, match="escapes session workspace"):
            workspace.glob(pattern)
    assert workspace.glob("*/secret") == []
    assert workspace.glob("**/secret") == []


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 30 + "b", "a" * 200),
        ("**/a/" * 30 + "b", "a/" * 200 + "c"),
        ("a*" * 100 + "c", "a" * 200 + "b"),
    ],
)
def test_a_pattern_that_explodes_elsewhere_is_answered(pattern: str, path: str) -> None:
    assert not Pattern(pattern).matches(path)


@given(st.lists(st.sampled_from(["a", "b", "*", "?", "/", "**", "[ab]", "."]), min_size=1).map("".join))
def test_a_pattern_matches_the_plain_path_that_it_spells(pattern: str) -> None:
    try:
        compiled = Pattern(pattern)
    except PatternError:
        return
    names = [part for part in pattern.split("/") if part not in ("", ".")]
    path = "/".join(
        part.replace("[ab]", "a").replace("**", "x").replace("*", "x").replace("?", "x") for part in names
    )
    assert compiled.matches(path)


# Counting


def test_usage_counts_every_entry_and_each_file_once(workspace: Workspace, directory: Path) -> None:
    assert workspace.usage() == Usage(disk_bytes=0, entries=0)
    plant(directory, "a = hello", "sub/b = world", "link => a", ".hidden = !")
    assert workspace.usage() == Usage(disk_bytes=11, entries=5)
    os.link(directory / "a", directory / "again")
    assert workspace.usage() == Usage(disk_bytes=11, entries=6)


def test_usage_counts_a_sparse_file_by_its_size(workspace: Workspace, directory: Path) -> None:
    with (directory / "sparse").open("wb") as file:
        file.truncate(10**9)
    assert workspace.usage().disk_bytes == 10**9


def test_usage_counts_blocks_that_are_reserved_beyond_the_size(workspace: Workspace, directory: Path) -> None:
    plant(directory, "small = x", "d/other = 12345")
    reserve(directory / "d" / "reserved", 2**24)
    reserve(directory / "alone", 2**24)
    assert workspace.usage().disk_bytes >= 2**25
    workspace.remove("alone")
    workspace.remove("d", recursive=True)
    assert workspace.usage().disk_bytes == 1


# Limits


def test_a_listing_beyond_its_limit_says_the_limit(directory: Path) -> None:
    plant(directory, "sub/1", "sub/2", "sub/3")
    with Workspace.open(directory, limits=Limits(list_entries=2)) as workspace:
        with pytest.raises(
            LimitError, match="'sub' has more than 2 entries, the limit of a listing"
        ) as caught:
            workspace.list("sub")
        assert (caught.value.code, caught.value.limit) == ("limit.list_entries", 2)
        (directory / "sub" / "3").unlink()
        assert len(workspace.list("sub")) == 2


def test_a_walk_gives_as_much_as_its_limit_and_then_says_so(directory: Path) -> None:
    plant(directory, "1", "2", "3/4", "3/5")
    with Workspace.open(directory, limits=Limits(walk_entries=4)) as workspace:
        seen: list[str] = []
        with pytest.raises(LimitError, match="more than 4 entries, the limit of a walk") as caught:
            seen.extend(info.path for info in workspace.walk())
        assert seen == ["1", "2", "3", "3/4"]
        assert (caught.value.code, caught.value.limit) == ("limit.walk_entries", 4)
        with pytest.raises(LimitError):
            workspace.list_files()
        with pytest.raises(LimitError):
            workspace.glob("*")
        assert workspace.usage().entries == 5


def test_a_walk_tells_at_the_end_what_it_left_out(directory: Path) -> None:
    plant(directory, "1/2/3/4", "z")
    with Workspace.open(directory, limits=Limits(depth=2)) as workspace:
        seen: list[str] = []
        with pytest.raises(LimitError, match="deeper than 2 levels") as caught:
            seen.extend(info.path for info in workspace.walk())
        assert seen == ["1", "1/2", "z"]
        assert (caught.value.code, caught.value.limit, caught.value.path) == ("limit.depth", 2, "1/2")
