"""`read`, `reader` and `stat`, the same behind every implementation."""

from __future__ import annotations

import pytest

from carrel.errors import (
    CarrelError,
    EscapeError,
    IsDirectoryError,
    LimitError,
    LoopError,
    MissingError,
    NotDirectoryError,
)
from carrel.fs.api import Existing, Links
from carrel.values import FileKind
from tests.contract.places import Place, read, refused, where, write
from tests.requirements import requirement

PNG = bytes.fromhex("89504E470D0A1A0A0000000D49484452")


@requirement("P-01", "P-02", "P-03", "P-07", "P-20", "R-03")
@pytest.mark.parametrize(
    "path",
    [
        "d/e/f",
        "./d/e/f",
        "d/./e/.//f",
        "d/../d/e/f",
        "d/e/../e/f",
        "d\\e/f",
        "d\\.\\e\\f",
        "d//e///f",
        "to-d/e/f",
        "to-e/f",
        "to-e/../e/f",
        "d/to-f",
        "slash/e/f",
        "dot/e/f",
    ],
)
def test_every_spelling_of_a_path_reads_the_same_file(place: Place, path: str) -> None:
    place.plant(
        "d/e/f = text", "to-d => d", "to-e => d/e", "d/to-f => ../d/e/f", "slash => d/", "dot => ./d/."
    )
    assert read(place.files, path) == b"text"


@requirement("R-01", "R-02", "R-18")
@pytest.mark.parametrize(
    "content", [b"", b"Hello World", PNG, b"  hello \n\n", "Hello 世界".encode(), b"x" * 300_000]
)
def test_content_comes_back_byte_for_byte(place: Place, content: bytes) -> None:
    write(place.files, "f", content)
    before = place.files.stat(where("f"), Links.FOLLOW)
    assert read(place.files, "f") == content
    assert place.files.stat(where("f"), Links.FOLLOW) == before


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [
        (0, None, b"0123456789"),
        (3, None, b"3456789"),
        (3, 4, b"3456"),
        (0, 0, b""),
        (8, 100, b"89"),
        (10, None, b""),
        (11, 5, b""),
        (2**62, None, b""),
        (2**70, 2**70, b""),
    ],
)
def test_a_window_holds_what_is_there(place: Place, offset: int, length: int | None, expected: bytes) -> None:
    place.plant("f = 0123456789")
    assert place.files.read(where("f"), limit=None, offset=offset, length=length) == expected


@pytest.mark.parametrize(
    ("limit", "offset", "length"), [(10, 0, None), (7, 3, None), (4, 3, 4), (0, 10, None)]
)
def test_a_read_of_exactly_the_limit_works(place: Place, limit: int, offset: int, length: int | None) -> None:
    place.plant("f = 0123456789")
    assert len(place.files.read(where("f"), limit=limit, offset=offset, length=length)) == limit


@pytest.mark.parametrize(("limit", "offset", "length"), [(9, 0, None), (6, 3, None), (3, 3, 4)])
def test_a_read_past_the_limit_tells_limit_and_size(
    place: Place, limit: int, offset: int, length: int | None
) -> None:
    place.plant("f = 0123456789")
    with refused(LimitError, "f", code="limit.read_bytes") as caught:
        place.files.read(where("f"), limit=limit, offset=offset, length=length)
    assert (caught.value.limit, caught.value.asked) == (limit, limit + 1)


@requirement("R-04", "R-05", "R-06")
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("missing", MissingError),
        ("missing/f", MissingError),
        ("missing/../f", MissingError),
        ("dangling", MissingError),
        ("d", IsDirectoryError),
        ("d/", IsDirectoryError),
        (".", IsDirectoryError),
        ("d/..", IsDirectoryError),
        ("to-d", IsDirectoryError),
        ("f/", NotDirectoryError),
        ("f/.", NotDirectoryError),
        ("f/..", NotDirectoryError),
        ("f/x", NotDirectoryError),
        ("f/../f", NotDirectoryError),
        ("to-f/", NotDirectoryError),
        ("shut", NotDirectoryError),
        ("loop", LoopError),
        ("loop/../f", LoopError),
        ("ping", LoopError),
        ("..", EscapeError),
        ("../ws/f", EscapeError),
        ("../outside/secret", EscapeError),
        ("d/../../ws/f", EscapeError),
        ("missing-or-not/../../outside/secret", EscapeError),
        ("out", EscapeError),
        ("out/", EscapeError),
        ("out-dir/secret", EscapeError),
        ("out-dir/../ws/f", EscapeError),
        ("out-missing", EscapeError),
        ("up", EscapeError),
        ("up/ws/f", EscapeError),
        ("absolute", EscapeError),
        ("absolute-inside/f", EscapeError),
        ("d/deep-out", EscapeError),
        ("chain-out", EscapeError),
        ("..\\outside\\secret", EscapeError),
    ],
)
@pytest.mark.parametrize("operation", ["read", "reader"])
def test_what_cannot_be_read_says_why(
    place: Place, path: str, kind: type[CarrelError], operation: str
) -> None:
    place.plant(
        "f",
        "d/",
        "to-f => f",
        "to-d => d",
        "shut => f/",
        "dangling => nothing",
        "loop => loop",
        "ping => pong",
        "pong => ping",
        "out => ../outside/secret",
        "out-dir => ../outside",
        "out-missing => ../outside/nothing",
        "up => ..",
        "absolute => /etc/passwd",
        "absolute-inside => /",
        "d/deep-out => ../../outside/secret",
        "chain-out => d/deep-out",
    )
    with refused(kind, path):
        if operation == "read":
            read(place.files, path)
        else:
            place.files.reader(where(path))


@pytest.mark.parametrize("links", [40, 41])
def test_forty_links_are_followed_and_one_more_is_too_many(place: Place, links: int) -> None:
    place.plant("end = text", *(f"c{count} => c{count + 1}" for count in range(links - 1)))
    place.plant(f"c{links - 1} => end")
    if links == 40:
        assert read(place.files, "c0") == b"text"
        assert read(place.files, "./c0") == b"text"
    else:
        with refused(LoopError, "c0"):
            read(place.files, "c0")
        assert read(place.files, "c1") == b"text"


def test_links_in_the_middle_count_too(place: Place) -> None:
    place.plant("d/end = text", "self => .", "to => d")
    assert read(place.files, "self/" * 39 + "to/end") == b"text"
    path = "self/" * 40 + "to/end"
    with refused(LoopError, path):
        read(place.files, path)


def test_dots_after_a_link_mean_the_parent_of_where_it_led(place: Place) -> None:
    place.plant("a => b/c", "b/c/", "b/t = beside the target", "t = beside the link")
    assert read(place.files, "a/../t") == b"beside the target"


@pytest.mark.parametrize("chunk_bytes", [1, 3, 10, 11, 2**20])
def test_a_reader_gives_all_in_chunks_that_are_not_too_large(place: Place, chunk_bytes: int) -> None:
    place.plant("f = 0123456789")
    pieces = list(place.files.reader(where("f")).chunks(chunk_bytes))
    assert b"".join(pieces) == b"0123456789"
    assert max(map(len, pieces)) <= chunk_bytes


def test_a_reader_knows_what_it_reads(place: Place) -> None:
    place.plant("d/f = text", "l => d/f")
    info = place.files.reader(where("l")).info
    assert (info.path, info.kind, info.size_bytes) == ("l", FileKind.FILE, 4)
    assert info.inode == place.files.stat(where("d/f"), Links.KEEP).inode


def test_an_empty_file_has_no_chunks(place: Place) -> None:
    place.plant("f = ")
    assert list(place.files.reader(where("f")).chunks(10)) == []


def test_chunks_go_on_where_the_last_ones_ended(place: Place) -> None:
    place.plant("f = 0123456789")
    reader = place.files.reader(where("f"))
    assert next(reader.chunks(4)) == b"0123"
    assert list(reader.chunks(100)) == [b"456789"]
    assert list(reader.chunks(100)) == []


def test_a_reader_keeps_its_content_when_the_file_is_replaced_or_removed(place: Place) -> None:
    place.plant("f = old text")
    reader = place.files.reader(where("f"))
    chunks = reader.chunks(4)
    first = next(chunks)
    write(place.files, "f", b"new")
    place.files.remove(where("f"))
    assert first + b"".join(chunks) == b"old text"


def test_a_reader_sees_what_is_appended_meanwhile(place: Place) -> None:
    place.plant("f = one")
    chunks = place.files.reader(where("f")).chunks(10)
    assert next(chunks) == b"one"
    place.files.append(where("f"), b"two", limit=None)
    assert list(chunks) == [b"two"]


def test_a_reader_outlives_the_end_of_the_place(place: Place) -> None:
    place.plant("f = 0123456789")
    chunks = place.files.reader(where("f")).chunks(5)
    assert next(chunks) == b"01234"
    place.files.close()
    assert list(chunks) == [b"56789"]


@requirement("L-22")
def test_stat_tells_kind_size_mode_and_path(place: Place) -> None:
    place.plant("d/", "l => d/f")
    write(place.files, "d/f", b"12345", mode=0o640)
    file = place.files.stat(where("d/./f"), Links.FOLLOW)
    assert (file.path, file.name, file.kind, file.size_bytes, file.mode, file.links) == (
        "d/f",
        "f",
        FileKind.FILE,
        5,
        0o640,
        1,
    )
    assert file.is_file
    assert file.target is None
    directory = place.files.stat(where("d"), Links.KEEP)
    assert (directory.kind, directory.size_bytes, directory.mode) == (FileKind.DIRECTORY, 0, 0o755)
    assert directory.is_directory


@requirement("P-04")
@pytest.mark.parametrize("path", [".", "./", "././.", "d/.."])
def test_the_place_itself_is_a_directory(place: Place, path: str) -> None:
    place.plant("d/")
    info = place.files.stat(where(path), Links.FOLLOW)
    assert info.is_directory
    assert info.path == where(path).text
    assert info.inode == place.files.stat(where("."), Links.KEEP).inode


@pytest.mark.parametrize("target", ["d/f", "nothing", "../outside/secret", "/etc/passwd", "l", "d/"])
def test_a_kept_link_tells_its_text_and_nothing_of_its_target(place: Place, target: str) -> None:
    place.plant("d/f", f"l => {target}")
    info = place.files.stat(where("l"), Links.KEEP)
    assert (info.path, info.kind, info.target) == ("l", FileKind.LINK, target)
    assert (info.size_bytes, info.mode) == (len(target), 0o777)


def test_a_followed_link_tells_about_its_target_under_the_name_asked_for(place: Place) -> None:
    place.plant("d/f = text", "l => d/f")
    info = place.files.stat(where("l"), Links.FOLLOW)
    assert (info.path, info.kind, info.size_bytes, info.target) == ("l", FileKind.FILE, 4, None)


@pytest.mark.parametrize("links", Links)
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("missing", MissingError),
        ("f/x", NotDirectoryError),
        ("f/", NotDirectoryError),
        ("to-f/", NotDirectoryError),
        ("loop/", LoopError),
        ("loop/x", LoopError),
        ("dangling/", MissingError),
        ("..", EscapeError),
        ("out/", EscapeError),
        ("out/.", EscapeError),
        ("out/..", EscapeError),
        ("out/secret", EscapeError),
    ],
)
def test_stat_refuses_alike_whether_links_are_kept_or_not(
    place: Place, path: str, kind: type[CarrelError], links: Links
) -> None:
    place.plant("f", "to-f => f", "dangling => nothing", "loop => loop", "out => ../outside")
    with refused(kind, path):
        place.files.stat(where(path), links)


@pytest.mark.parametrize(
    ("path", "kind"), [("loop", LoopError), ("dangling", MissingError), ("out", EscapeError)]
)
def test_stat_refuses_a_link_it_cannot_follow(place: Place, path: str, kind: type[CarrelError]) -> None:
    place.plant("dangling => nothing", "loop => loop", "out => ../outside")
    with refused(kind, path):
        place.files.stat(where(path), Links.FOLLOW)


def test_a_slash_makes_stat_follow_a_link_to_a_directory(place: Place) -> None:
    place.plant("d/", "l => d")
    assert place.files.stat(where("l/"), Links.KEEP).is_directory


def test_every_entry_has_an_inode_of_its_own(place: Place) -> None:
    place.plant("a", "b", "d/", "d/c", "l => a")
    found = [place.files.stat(where(path), Links.KEEP).inode for path in (".", "a", "b", "d", "d/c", "l")]
    assert len(set(found)) == len(found)


def test_the_version_changes_with_every_write_and_only_then(place: Place) -> None:
    seen = [write(place.files, "f", b"same").version, write(place.files, "f", b"same").version]
    place.files.append(where("f"), b"!", limit=None)
    seen.append(place.files.stat(where("f"), Links.FOLLOW).version)
    assert len(set(seen)) == 3
    read(place.files, "f")
    place.files.move(where("f"), where("g"), existing=Existing.REFUSE)
    assert place.files.stat(where("g"), Links.FOLLOW).version == seen[-1]
