"""A short unified diff: the same as GNU's, as long as it is short."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.errors import LimitError
from carrel.tools.results.text_diff import (
    MAX_DIFF_CHARACTERS,
    MAX_DIFF_INPUT_BYTES,
    MAX_DIFF_LINES,
    text_diff,
)

PATH = "/workspace/a.txt"
LEFT_OUT = "... the rest of the diff is left out\n"


def diff(old: bytes, new: bytes) -> str | None:
    return text_diff(old, new, PATH, lambda: None)


def numbered(count: int) -> list[bytes]:
    return [b"line %d\n" % number for number in range(1, count + 1)]


def test_a_changed_line_stands_between_three_lines_on_each_side() -> None:
    lines = numbered(9)
    old = b"".join(lines)
    lines[4] = b"other\n"
    assert diff(old, b"".join(lines)) == (
        "--- /workspace/a.txt\n"
        "+++ /workspace/a.txt\n"
        "@@ -2,7 +2,7 @@\n"
        " line 2\n"
        " line 3\n"
        " line 4\n"
        "-line 5\n"
        "+other\n"
        " line 6\n"
        " line 7\n"
        " line 8\n"
    )


def test_a_last_line_without_an_end_says_so() -> None:
    assert diff(b"a\nb", b"a\nc\n") == (
        f"--- {PATH}\n+++ {PATH}\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n"
    )


def test_a_new_file_has_only_new_lines() -> None:
    assert diff(b"", b"a\nb\n") == f"--- {PATH}\n+++ {PATH}\n@@ -0,0 +1,2 @@\n+a\n+b\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"same\n", b"same\n"),
        (b"a\0b", b"text"),
        (b"text", b"a\0b"),
        (b"x" * (MAX_DIFF_INPUT_BYTES + 1), b"x"),
        (b"x", b"x" * (MAX_DIFF_INPUT_BYTES + 1)),
    ],
    ids=["equal", "binary before", "binary after", "large before", "large after"],
)
def test_equal_binary_or_large_contents_have_no_diff(old: bytes, new: bytes) -> None:
    assert diff(old, new) is None


def test_bytes_that_are_no_utf_8_are_shown_as_something() -> None:
    assert diff(b"a\xff\n", b"b\n") == f"--- {PATH}\n+++ {PATH}\n@@ -1 +1 @@\n-a\ufffd\n+b\n"


def test_a_long_diff_is_cut_and_says_so() -> None:
    found = diff(b"", b"".join(numbered(1000)))
    assert found is not None
    assert found.endswith(LEFT_OUT)
    assert found.count("\n") == MAX_DIFF_LINES + 1


def test_many_hunks_are_cut_too() -> None:
    lines = numbered(1000)
    old = b"".join(lines)
    lines[::20] = [b"other\n"] * 50
    found = diff(old, b"".join(lines))
    assert found is not None
    assert found.endswith(LEFT_OUT)


def test_a_long_line_is_left_out() -> None:
    found = diff(b"a\n", b"b" * MAX_DIFF_CHARACTERS)
    assert found == f"--- {PATH}\n+++ {PATH}\n@@ -1 +1 @@\n-a\n{LEFT_OUT}"


def test_a_long_search_can_be_stopped() -> None:
    def stop() -> None:
        raise LimitError("time", limit=1, asked=None, message="over")

    old = b"".join(b"%d\n" % (number * 7919 % 3001) for number in range(3000))
    new = b"".join(b"%d\n" % (number * 104729 % 3001) for number in range(3000))
    with pytest.raises(LimitError):
        text_diff(old, new, PATH, stop)


TEXTS = st.lists(st.sampled_from([b"a", b"b", b"c", b"", b"\r"]), max_size=20).map(b"\n".join)


@given(old=TEXTS, new=TEXTS)
def test_patch_makes_the_new_content_of_the_old_one(
    old: bytes, new: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = diff(old, new)
    if found is None:
        assert old == new
        return
    place = tmp_path_factory.getbasetemp() / "patched"
    assert _patched(place, old, found) == new


def _patched(place: Path, old: bytes, diff: str) -> bytes:
    place.mkdir(exist_ok=True)
    (place / "f").write_bytes(old)
    subprocess.run(
        ["patch", "--binary", "--quiet", "-o", "new", "f"], input=diff.encode(), cwd=place, check=True
    )
    return (place / "new").read_bytes() if (place / "new").exists() else b""
