"""What `parse` makes of a path, purely."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.errors import AbsoluteError, PathError
from carrel.paths.parsed_path import (
    NAME_BYTES,
    PATH_BYTES,
    child,
    link_destination,
    parse,
    parse_any,
    relative,
)
from tests.paths.settings import repeatable
from tests.requirements import requirement

names = st.text(min_size=1, max_size=8).filter(
    lambda name: not set(name) & set("/\\\0:") and name not in (".", "..") and name.isprintable()
)
pieces = names | st.sampled_from(["", ".", "..", ".."])
paths = st.lists(pieces, min_size=1, max_size=6).map("/".join).filter(lambda text: text[:1] not in ("", "/"))


# What is accepted


@requirement("P-01", "P-02", "P-03", "P-04", "P-20")
@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("data.txt", ("data.txt",)),
        ("dir/subdir/file.txt", ("dir", "subdir", "file.txt")),
        ("./data.txt", ("data.txt",)),
        (".", ()),
        ("./.", ()),
        ("a//b///c", ("a", "b", "c")),
        ("a/./b", ("a", "b")),
        ("a/../b", ("a", "..", "b")),
        ("..", ("..",)),
        ("../../etc/passwd", ("..", "..", "etc", "passwd")),
        ("data\\subdir/file.txt", ("data", "subdir", "file.txt")),
        ("a\\..\\b", ("a", "..", "b")),
        ("...", ("...",)),
        ("....//..x", ("....", "..x")),
        ("%2e%2e/f", ("%2e%2e", "f")),
        ("$HOME/~", ("$HOME", "~")),
        ("-rf", ("-rf",)),
        ("a b\n\r", ("a b\n\r",)),
        ("ab:c", ("ab:c",)),
        ("1:2", ("1:2",)),
        ("é:x", ("é:x",)),
    ],
)
def test_the_names_are_kept_in_their_order(path: str, parts: tuple[str, ...]) -> None:
    where = parse(path)
    assert where.parts == parts
    assert where.requested == path
    assert not where.absolute


@pytest.mark.parametrize(
    ("path", "must_dir", "dotted"),
    [
        ("a", False, False),
        ("a/b", False, False),
        ("a/", True, False),
        ("a//", True, False),
        ("a\\", True, False),
        ("a/.", True, True),
        ("a/./", True, True),
        ("a/..", True, True),
        ("a/../", True, True),
        ("a\\..", True, True),
        (".", True, True),
        ("./", True, True),
        ("..", True, True),
        ("./a", False, False),
        ("../a", False, False),
        ("a/../b", False, False),
        ("a...", False, False),
        ("a/.b", False, False),
        ("a/..b", False, False),
    ],
)
def test_a_slash_or_dot_at_the_end_becomes_a_flag(path: str, must_dir: bool, dotted: bool) -> None:
    where = parse(path)
    assert (where.must_dir, where.dotted) == (must_dir, dotted)
    assert bool(where.name) is not dotted


@pytest.mark.parametrize(
    ("path", "encoded", "parent", "name", "text"),
    [
        ("f", b"f", b".", b"f", "f"),
        ("a/b/c", b"a/b/c", b"a/b", b"c", "a/b/c"),
        ("./a//b/", b"a/b", b"a", b"b", "a/b"),
        (".", b".", b".", b"", "."),
        ("a/..", b"a/..", b"a", b"", "a/.."),
        ("a/.", b"a", b".", b"", "a"),
        ("é/世", "é/世".encode(), "é".encode(), "世".encode(), "é/世"),
    ],
)
def test_the_bytes_for_the_system_never_end_in_a_slash(
    path: str, encoded: bytes, parent: bytes, name: bytes, text: str
) -> None:
    where = parse(path)
    assert (where.encoded, where.parent, where.name, where.text) == (encoded, parent, name, text)


def test_a_path_object_is_as_good_as_text() -> None:
    assert parse(PurePosixPath("a/b")).parts == ("a", "b")
    assert parse(Path("a") / "b").parts == ("a", "b")


class Shifty(str):
    """Text that answers something else to whoever asks again."""

    def __str__(self) -> str:
        return "../evil"

    def split(self, *_: object) -> list[str]:
        return ["evil"]

    def replace(self, *_: object) -> str:
        return "/evil"


class ShiftyPath(os.PathLike[str]):
    """A path object that gives another path each time."""

    def __init__(self) -> None:
        self.answers = iter(["first", "../second"])

    def __fspath__(self) -> str:
        return next(self.answers)


def test_a_path_is_read_once_and_as_the_text_it_is() -> None:
    where = parse(Shifty("a/b"))
    assert where.parts == ("a", "b")
    assert type(where.requested) is str
    assert parse(ShiftyPath()).parts == ("first",)


def test_a_name_that_is_not_utf_8_keeps_its_bytes() -> None:
    where = parse(os.fsdecode(b"caf\xe9/x"))
    assert where.encoded == b"caf\xe9/x"


# What is refused


@requirement("P-06")
@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "///etc/passwd",
        "/",
        "/..",
        "\\",
        "\\etc\\passwd",
        "\\\\?\\C:\\f",
        "/.",
        "C:\\Windows\\win.ini",
        "C:f",
        "c:",
        "z:/x",
    ],
)
def test_an_absolute_path_is_refused_as_one(path: str) -> None:
    with pytest.raises(AbsoluteError, match="must be relative") as caught:
        parse(path)
    assert (caught.value.code, caught.value.path) == ("path.absolute", path)


@pytest.mark.parametrize("path", ["/etc/passwd", "/", "/..", "\\x\\y"])
def test_an_absolute_path_may_be_asked_about(path: str) -> None:
    where = parse_any(path)
    assert where.absolute
    assert where.parts == tuple(part for part in path.replace("\\", "/").split("/") if part)


@requirement("P-19", "P-22")
@pytest.mark.parametrize(
    "path",
    [
        "",
        "\0",
        "f\0",
        "f\0.png",
        "a/\0/b",
        "\ud800",
        "a/\udfff",
        chr(0xDC41),
        "x" * (NAME_BYTES + 1),
        "a/" + "x" * (NAME_BYTES + 1) + "/b",
        "€" * 86,
        "./" * 2100 + "f",
        "a/" * (PATH_BYTES // 2),
        "\udcc3\udca9",
    ],
    ids=lambda path: repr(path)[:20],
)
def test_what_no_path_may_hold_is_refused(path: str) -> None:
    for read in (parse, parse_any):
        with pytest.raises(PathError) as caught:
            read(path)
        assert type(caught.value) is PathError
        assert (caught.value.code, caught.value.path) == ("path.invalid", path)


@pytest.mark.parametrize(
    "path", ["x" * NAME_BYTES, "€" * 85, "a/" * 2047, ("x" * NAME_BYTES + "/") * 15 + "y" * 255]
)
def test_the_longest_names_and_paths_are_accepted(path: str) -> None:
    assert len(path.encode()) < PATH_BYTES
    assert "/".join(parse(path).parts) == path.rstrip("/")


@pytest.mark.parametrize(
    "path", ["x" * 10**6, "a/" * 10**6, "\0" * 10**6, "\ud800" * 10**6, "c:" + "x" * 10**6]
)
def test_the_message_about_a_huge_path_is_short(path: str) -> None:
    with pytest.raises(PathError) as caught:
        parse(path)
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("path", [b"f", None, 1, ["f"], object()])
def test_what_is_no_text_is_a_type_error(path: object) -> None:
    with pytest.raises(TypeError):
        parse(path)  # type: ignore[arg-type]  # on purpose


class BytesPath(os.PathLike[bytes]):
    def __fspath__(self) -> bytes:
        return b"f"


def test_a_path_object_of_bytes_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        parse(BytesPath())  # type: ignore[arg-type]  # on purpose


# What always holds


@repeatable
@given(paths)
def test_parsing_keeps_every_name_and_drops_only_what_means_nothing(path: str) -> None:
    where = parse(path)
    assert list(where.parts) == [piece for piece in path.split("/") if piece not in ("", ".")]
    assert not where.encoded.startswith(b"/")
    assert not where.encoded.endswith(b"/")
    assert b"//" not in where.encoded
    assert where.must_dir == path.endswith(("/", "/.", "/..")) or path in (".", "..")
    assert (where.name == b"") == where.dotted
    assert b"/" not in where.name


@repeatable
@given(paths)
def test_the_plainest_spelling_means_the_same(path: str) -> None:
    where = parse(path)
    again = parse(where.text)
    assert (again.parts, again.encoded, again.parent) == (where.parts, where.encoded, where.parent)


@repeatable
@given(paths)
def test_backslashes_and_slashes_mean_the_same(path: str) -> None:
    assert parse(path.replace("/", "\\"))[1:] == parse(path)[1:]


@repeatable
@given(st.text(max_size=40))
def test_any_text_is_a_path_or_refused_as_one(path: str) -> None:
    try:
        where = parse(path)
    except PathError as error:
        asked = error.path
    else:
        asked = where.requested
        assert b"\0" not in where.encoded
        assert not where.encoded.startswith(b"/")
    assert asked == path


@repeatable
@given(st.binary(min_size=1, max_size=20))
def test_a_name_that_was_listed_leads_back_to_its_bytes(listed: bytes) -> None:
    name = os.fsdecode(listed.translate(None, b"/\\\0:.") or b"x")
    assert parse(name).encoded == os.fsencode(name)


# Steps from one path to another


@pytest.mark.parametrize(
    ("path", "parts", "text", "name"),
    [
        ("/workspace/a/b", ("a", "b"), "a/b", b"b"),
        ("/workspace", (), ".", b""),
        ("/workspace/a/", ("a",), "a", b"a"),
        ("/workspace/..", ("..",), "..", b""),
    ],
)
def test_the_rest_of_an_absolute_path_is_relative(
    path: str, parts: tuple[str, ...], text: str, name: bytes
) -> None:
    asked = parse_any(path)
    where = relative(asked, parts)
    assert (where.requested, where.absolute, where.parts, where.text, where.name) == (
        path,
        False,
        parts,
        text,
        name,
    )
    assert where.must_dir == asked.must_dir


@pytest.mark.parametrize(
    ("path", "target", "parts", "must_dir", "dotted"),
    [
        ("l", "t", ("t",), False, False),
        ("d/l", "t", ("d", "t"), False, False),
        ("d/l", "../t", ("d", "..", "t"), False, False),
        ("d/l", "./e//t", ("d", "e", "t"), False, False),
        ("d/l", "t/", ("d", "t"), True, False),
        ("d/l/", "t", ("d", "t"), True, False),
        ("d/l", ".", ("d",), True, True),
        ("d/l", "..", ("d", ".."), True, True),
        ("d/l", "a\\b", ("d", "a\\b"), False, False),
    ],
)
def test_a_link_leads_on_from_the_directory_it_stands_in(
    path: str, target: str, parts: tuple[str, ...], must_dir: bool, dotted: bool
) -> None:
    where = link_destination(parse(path), target)
    assert (where.requested, where.parts, where.must_dir, where.dotted) == (path, parts, must_dir, dotted)
    assert not where.absolute


@pytest.mark.parametrize("target", ["/", "/etc/passwd", "//x"])
def test_an_absolute_link_is_seen_as_one(target: str) -> None:
    assert link_destination(parse("d/l"), target).absolute


@pytest.mark.parametrize("target", ["", "a\0", "x" * 256, "x/" * 2048])
def test_a_link_text_that_no_path_may_hold_is_refused(target: str) -> None:
    with pytest.raises(PathError) as caught:
        link_destination(parse("d/l"), target)
    assert caught.value.path == "d/l"


@pytest.mark.parametrize(
    ("path", "below", "parts"),
    [
        (".", "f", ("f",)),
        ("d", "e/f", ("d", "e", "f")),
        ("d/", "a\\b", ("d", "a\\b")),
        (".", "c:x", ("c:x",)),
    ],
)
def test_a_name_that_a_walk_found_is_taken_as_it_is(path: str, below: str, parts: tuple[str, ...]) -> None:
    where = child(parse(path), below)
    assert where.parts == parts
    assert where.name == parts[-1].encode()
    assert not where.must_dir
