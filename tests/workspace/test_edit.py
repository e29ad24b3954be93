"""Replace text in a file, and say what changed so that `patch` could do it again."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel import Limits, Workspace
from carrel.errors import ChangedError, EditError, LimitError
from carrel.workspace.edit import replace
from tests.requirements import requirement
from tests.workspace.planting import plant

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
NO_NEWLINE = "\\ No newline at end of file\n"


def apply(diff: str, content: str) -> str:
    """What `patch` would make of *content*, every line and every count checked."""
    rows = [row + "\n" for row in diff.split("\n")[:-1]]
    old = [line + "\n" for line in content.split("\n")]
    old[-1] = old[-1][:-1]
    old = old if old[-1] else old[:-1]
    assert rows[0].startswith("--- ")
    assert rows[1].startswith("+++ ")
    new: list[str] = []
    at, row = 0, 2
    while row < len(rows):
        found = HUNK.fullmatch(rows[row].rstrip("\n"))
        assert found, rows[row]
        start, count, target, grown = (1 if part is None else int(part) for part in found.groups())
        begin = start - 1 if count else start
        new += old[at:begin]
        at = begin
        assert len(new) == (target - 1 if grown else target)
        seen = made = 0
        row += 1
        while seen < count or made < grown or (row < len(rows) and rows[row] == NO_NEWLINE):
            sign, text = rows[row][0], rows[row][1:]
            row += 1
            if row < len(rows) and rows[row] == NO_NEWLINE:
                text = text[:-1]
                row += 1
            if sign in " -":
                assert old[at] == text
                at += 1
                seen += 1
            if sign in " +":
                new.append(text)
                made += 1
            assert sign in " -+"
        assert (seen, made) == (count, grown)
    return "".join([*new, *old[at:]])


# What an edit does


@requirement("W-19")
def test_the_one_match_is_replaced_and_nothing_else(workspace: Workspace) -> None:
    workspace.write("f.py", "def old_func():\n    pass\n")
    done = workspace.edit("f.py", "old_func", "new_func")
    assert done.replacements == 1
    assert workspace.read_text("f.py") == "def new_func():\n    pass\n"


@requirement("W-20")
def test_an_edit_can_delete(workspace: Workspace) -> None:
    workspace.write("f", "line1\nDELETE_ME\nline3\n")
    workspace.edit("f", "DELETE_ME\n", "")
    assert workspace.read_text("f") == "line1\nline3\n"


@requirement("W-21")
def test_several_matches_are_refused_and_counted(workspace: Workspace) -> None:
    before = workspace.write("f", "foo\nbar\nfoo\nbaz\n")
    with pytest.raises(EditError, match="matches 2 locations") as caught:
        workspace.edit("f", "foo", "qux")
    assert (caught.value.code, caught.value.path) == ("edit.ambiguous", "f")
    assert isinstance(caught.value, ValueError)
    assert workspace.stat("f") == before


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("foo\nbar\nfoo\nfoo foo\n", "4 locations (lines 1, 3, 4)"),
        ("bar\r\nfoo foo", "2 locations (line 2)"),
        ("foo\n" * 10, "10 locations (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)"),
        ("foo\n" * 11, "11 locations (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more)"),
    ],
)
def test_the_lines_of_several_matches_are_told(workspace: Workspace, content: str, says: str) -> None:
    workspace.write("f", content)
    with pytest.raises(EditError) as caught:
        workspace.edit("f", "foo", "qux")
    assert caught.value.message == f"cannot edit 'f': the text to replace matches {says}"


@requirement("W-22")
def test_all_matches_are_replaced_when_asked(workspace: Workspace) -> None:
    workspace.write("f", "foo\nbar\nfoo\nbaz\n")
    assert workspace.edit("f", "foo", "qux", replace_all=True).replacements == 2
    assert workspace.read_text("f") == "qux\nbar\nqux\nbaz\n"


@requirement("W-23")
@pytest.mark.parametrize("replace_all", [True, False])
@pytest.mark.parametrize(
    ("old", "new", "code", "words"),
    [
        ("absent", "x", "edit.not_found", "not found"),
        ("", "x", "edit.empty", "empty"),
        ("foo", "foo", "edit.identical", "identical"),
        ("FOO", "x", "edit.not_found", "not found"),
        ("f.o", "x", "edit.not_found", "not found"),
    ],
)
def test_an_edit_that_makes_no_sense_changes_nothing(
    workspace: Workspace, old: str, new: str, code: str, words: str, replace_all: bool
) -> None:
    before = workspace.write("f", "foo\n")
    with pytest.raises(EditError, match=words) as caught:
        workspace.edit("f", old, new, replace_all=replace_all)
    assert caught.value.code == code
    assert workspace.stat("f") == before


@requirement("W-25")
def test_an_edit_over_several_lines_tells_replacements_sizes_and_path(workspace: Workspace) -> None:
    workspace.write("sub/f", "a\nb\nc\nd\n")
    done = workspace.edit("sub/f", "b\nc\n", "B\nand\nC\n")
    assert (done.replacements, done.before_bytes) == (1, 8)
    assert (done.info.size_bytes, done.info.path) == (12, "sub/f")
    assert workspace.stat("sub/f") == done.info


def test_characters_that_mean_something_to_patterns_are_plain(workspace: Workspace) -> None:
    workspace.write("f", r"a.*b \1 $& [x]" + "\n")
    workspace.edit("f", r".*b \1 $& [", r"\g<0>\n$1(")
    assert workspace.read_text("f") == r"a\g<0>\n$1(x]" + "\n"


def test_what_follows_from_a_replacement_is_not_replaced_again(workspace: Workspace) -> None:
    workspace.write("f", "aaa")
    assert workspace.edit("f", "a", "aa", replace_all=True).replacements == 3
    assert workspace.read("f") == b"aaaaaa"


def test_bytes_that_are_no_text_are_kept_around_an_edit(workspace: Workspace) -> None:
    workspace.write("f", b"\xff\xfe old \x00\x80\n")
    workspace.edit("f", "old", "Grüße")
    assert workspace.read("f") == b"\xff\xfe " + "Grüße".encode() + b" \x00\x80\n"


# Line ends


@pytest.mark.parametrize(
    ("content", "old", "new", "after"),
    [
        ("a\r\nb\r\nc\r\n", "b", "B", "a\r\nB\r\nc\r\n"),
        ("a\r\nb\r\nc\r\n", "a\nb\n", "A\nB\n", "A\r\nB\r\nc\r\n"),
        ("a\r\nb\r\nc\r\n", "b", "b1\nb2", "a\r\nb1\r\nb2\r\nc\r\n"),
        ("a\r\nb\r\nc\r\n", "a\r\nb\r\n", "A\r\n", "A\r\nc\r\n"),
        ("a\nb\nc\n", "a\nb", "A\nB", "A\nB\nc\n"),
        ("a\nb\r\nc\n", "b", "b1\nb2", "a\nb1\nb2\r\nc\n"),
        ("a\rb\rc", "b", "B", "a\rB\rc"),
        ("no end", "end", "END", "no END"),
    ],
)
def test_line_ends_are_kept(workspace: Workspace, content: str, old: str, new: str, after: str) -> None:
    workspace.write("f", content.encode())
    workspace.edit("f", old, new)
    assert workspace.read("f") == after.encode()


# Where an edit is refused


def test_a_file_that_changed_is_not_edited(workspace: Workspace, directory: Path) -> None:
    seen = workspace.write("f", "old\n").version
    (directory / "f").write_text("old but changed\n")
    with pytest.raises(ChangedError):
        workspace.edit("f", "old", "new", if_version=seen)
    assert (directory / "f").read_text() == "old but changed\n"
    workspace.edit("f", "old", "new", if_version=workspace.stat("f").version)
    assert (directory / "f").read_text() == "new but changed\n"


def test_edits_by_many_at_once_lose_nothing(workspace: Workspace) -> None:
    workspace.write("f", "start\n")
    begun = threading.Barrier(4)

    def add(name: int) -> None:
        begun.wait()
        for number in range(20):
            while True:
                try:
                    workspace.edit("f", "start\n", f"start\n{name}.{number}\n")
                except ChangedError:
                    continue
                break

    threads = [threading.Thread(target=add, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = workspace.read_text("f").splitlines()[1:]
    assert sorted(lines) == sorted(f"{name}.{number}" for name in range(4) for number in range(20))


def test_only_one_of_many_writers_replaces_a_version(workspace: Workspace) -> None:
    done: list[int] = []
    begun = threading.Barrier(4)
    seen = workspace.write("f", "old").version

    def replace_it(name: int) -> None:
        begun.wait()
        with suppress(ChangedError):
            workspace.write("f", str(name) * 100_000, if_version=seen)
            done.append(name)

    threads = [threading.Thread(target=replace_it, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 1
    assert workspace.read_text("f") == str(done[0]) * 100_000


def test_an_edit_through_a_link_changes_its_target(workspace: Workspace, directory: Path) -> None:
    plant(directory, "f = old", "link => f", "out => /etc/hostname")
    workspace.edit("link", "old", "new")
    assert (directory / "f").read_text() == "new"
    assert (directory / "link").is_symlink()
    with pytest.raises(ValueError, match="escapes session workspace"):
        workspace.edit("out", "a", "b")


def test_what_is_no_file_is_not_edited(workspace: Workspace, directory: Path) -> None:
    plant(directory, "sub/")
    with pytest.raises(IsADirectoryError):
        workspace.edit("sub", "a", "b")
    with pytest.raises(FileNotFoundError):
        workspace.edit("missing", "a", "b")


def test_an_edit_obeys_the_limits_of_reading_and_writing(directory: Path) -> None:
    plant(directory, "f = 0123456789")
    with Workspace.open(directory, limits=Limits(file_bytes=11)) as workspace:
        with pytest.raises(LimitError, match="12 bytes, the limit is 11") as caught:
            workspace.edit("f", "9", "9ab")
        assert caught.value.code == "limit.file_bytes"
    with Workspace.open(directory, limits=Limits(read_bytes=9)) as workspace:
        with pytest.raises(LimitError, match="10 bytes, the limit is 9") as caught:
            workspace.edit("f", "9", "")
        assert caught.value.code == "limit.read_bytes"
    assert (directory / "f").read_text() == "0123456789"


# The diff


def test_the_diff_is_a_unified_one_with_three_lines_around(workspace: Workspace) -> None:
    workspace.write("sub/f", "".join(f"{number}\n" for number in range(1, 11)))
    assert workspace.edit("sub/f", "5\n", "five\n").diff == (
        "--- sub/f\n+++ sub/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
    )


def test_a_later_hunk_knows_what_an_earlier_one_added(workspace: Workspace) -> None:
    content = "".join(f"{number}\n" for number in range(30))
    workspace.write("f", content)
    diff = workspace.edit("f", "5\n", "five\nFIVE\n", replace_all=True).diff
    assert [row for row in diff.splitlines() if row.startswith("@@")] == [
        "@@ -3,7 +3,8 @@",
        "@@ -13,7 +14,8 @@",
        "@@ -23,7 +25,8 @@",
    ]
    assert apply(diff, content) == workspace.read_text("f")


def test_a_file_without_a_final_newline_is_told(workspace: Workspace) -> None:
    workspace.write("f", "a\nb")
    assert workspace.edit("f", "b", "c").diff == (
        f"--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n{NO_NEWLINE}+c\n{NO_NEWLINE}"
    )


def test_a_long_diff_is_cut_and_says_so_but_the_file_is_changed(workspace: Workspace) -> None:
    workspace.write("f", "old line\n" * 20_000)
    done = workspace.edit("f", "old", "new", replace_all=True)
    assert done.replacements == 20_000
    assert done.diff.endswith("... the rest of the diff is left out\n")
    assert len(done.diff) < 200_000
    assert workspace.read("f") == b"new line\n" * 20_000


def test_a_single_lone_carriage_return_is_no_line_in_the_diff(workspace: Workspace) -> None:
    content = "a\rb\nX\nc\rd\n"
    workspace.write("f", content)
    assert apply(workspace.edit("f", "X", "Y").diff, content) == "a\rb\nY\nc\rd\n"


contents = st.lists(
    st.sampled_from(
        ["a", "b", "ab", "\n", "\n\n", "\r\n", "\r", "ä", " ", "-", "+", "\\", "\x0c", "\u2028", "x\n" * 4]
    )
).map("".join)
pieces = st.lists(st.sampled_from(["a", "b", "\n", "\r\n", "ä", "x\n", "-"]), max_size=3).map("".join)


@given(content=contents, old=pieces.filter(bool), new=pieces)
def test_the_diff_makes_the_new_content_of_the_old_one(content: str, old: str, new: str) -> None:
    try:
        done = replace(content.encode(), old, new, replace_all=True, path="f")
    except EditError:
        return
    assert apply(done.diff, content) == done.content.decode()


@given(content=contents, old=pieces.filter(bool), new=pieces)
def test_an_edit_of_a_plain_file_is_a_replacement_of_text(content: str, old: str, new: str) -> None:
    content = content.replace("\r", "")
    try:
        done = replace(content.encode(), old, new, replace_all=True, path="f")
    except EditError:
        assert old not in content or old == new
        return
    assert done.content.decode() == content.replace(old, new)
    assert done.count == content.count(old)


@pytest.mark.skipif(shutil.which("patch") is None, reason="there is no patch program here")
@pytest.mark.parametrize(
    ("content", "old", "new"),
    [
        ("a\nb\nc\n", "b", "B"),
        ("".join(f"{number}\n" for number in range(40)), "1\n", "one\nONE\n"),
        ("a\nb", "b", "c"),
        ("a\nb", "\nb", ""),
        ("a", "a", ""),
        ("a\n", "a\n", ""),
        ("\n" * 9 + "x", "x", "y\n"),
        ("a\r\nb\r\nc\r\n", "b", "B1\nB2"),
        ("a\rb\nX\nc\rd\n", "X", "Y"),
        ("-- x\n++ y\n-z\n", "-- x", "@@ -1 +1 @@"),
    ],
)
def test_the_patch_program_makes_the_same_change(
    workspace: Workspace, tmp_path: Path, content: str, old: str, new: str
) -> None:
    workspace.write("f", content.encode())
    done = workspace.edit("f", old, new, replace_all=True)
    (tmp_path / "copy").write_bytes(content.encode())
    subprocess.run(
        ["patch", "--binary", "--posix", "--force", "--quiet", "--fuzz=0", "copy"],
        cwd=tmp_path,
        input=done.diff.encode(),
        check=True,
        capture_output=True,
    )
    left = (tmp_path / "copy").read_bytes() if (tmp_path / "copy").exists() else b""
    assert left == workspace.read("f")


@pytest.mark.parametrize("content", [b"\n" * 150_000, b"a" * 500_000])
def test_very_many_places_take_no_memory_each(content: bytes) -> None:
    old = content[:1].decode()
    tracemalloc.start()
    try:
        done = replace(content, old, f"{old}{old}", replace_all=True, path="f")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert done.count == content.count(content[:1])
    assert done.diff == "--- f\n+++ f\n... the rest of the diff is left out\n"
    assert peak < 100 * len(content)
